"""How far a part of a kernel is compiled: no further than the kernels that contain it need.

Numba makes machine code of every function, with all that it calls, although a part is only ever run
inside kernels, which are optimised as a whole. Without that code a kernel takes two thirds of the time
to compile.
"""

from typing import Any

from numba.core import codegen, compiler

from pacplan.compiled.private import missing

# What is used of Numba here, by its owner.
_NAMES = {
    "the compiler": (compiler.Compiler, ("compile_extra", "define_pipelines")),
    "flags": (compiler.Flags, ("no_compile",)),
    "libraries of code": (
        getattr(codegen, "JITCodeLibrary", None),
        ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"),
    ),
}


def part_options() -> dict[str, Any]:
    """The options of `numba.njit` for a function that kernels call and Python never does."""
    lacking = [
        f"{name} of {owner}"
        for owner, (place, names) in _NAMES.items()
        for name in names
        if not hasattr(place, name)
    ]
    if lacking:
        missing(", ".join(lacking), "kernels take longer to compile")
        return {}
    return {"pipeline_class": _pipeline()}


def _pipeline() -> type:
    class PartLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
        def _optimize_final_module(self) -> None:
            """Leave it to the kernel, which optimises its parts as one."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    class PartCompiler(compiler.Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            state = self.state
            state.flags.no_compile = True
            state.library = PartLibrary(state.targetctx.codegen(), "part")
            state.library.enable_object_caching()
            return super().define_pipelines()

        def compile_extra(self, function: Any) -> Any:
            result = super().compile_extra(function)
            # Kernels find a part by its entry point. It has none, so any object of the right kind does.
            entry = [function].index
            result.target_context.insert_user_function(entry, result.fndesc, [result.library])
            return result._replace(entry_point=entry)

    return PartCompiler

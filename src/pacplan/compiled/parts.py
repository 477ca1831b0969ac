"""How far a part of a kernel is compiled: no further than the kernels that contain it need.

Numba makes machine code of every function, with all that it calls, although a part is only ever run
inside kernels, which are optimised as a whole. Without that code Bracket compiles in half the time.
"""

from typing import Any

from numba.core import codegen, compiler


class _PartLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    def _optimize_final_module(self) -> None:
        """Leave it to the kernel, which optimises its parts as one."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, for functions that kernels call and Python never does."""

    def define_pipelines(self) -> Any:
        """Make no code that can be run."""
        state = self.state
        state.flags.no_compile = True
        state.library = _PartLibrary(state.targetctx.codegen(), "part")
        state.library.enable_object_caching()
        return super().define_pipelines()

    def compile_extra(self, function: Any) -> Any:
        """Compile a function as far as kernels need it."""
        result = super().compile_extra(function)
        # Kernels find a part by its entry point. It has none, so any object of the right kind does.
        entry = [function].index
        result.target_context.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)

"""Compilation of the kernels: the decorators that say how a function is compiled, and what is kept."""

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import codegen, compiler
from numba.extending import intrinsic

from pacplan.compiled.cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])


class _PartLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    def _optimize_final_module(self) -> None:
        """Leave it to the kernel, which optimises its parts as one."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles a part of a kernel no further than the kernels that contain it need.

    Numba makes machine code of every function, with all that it calls, although a part is only ever run
    inside kernels, which are optimised as a whole. Without that code Bracket compiles in half the time.
    """

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


# Kernels allocate nothing and keep no reference to an argument, so they are compiled without Numba's
# memory management (`_nrt`): counting references would cost as much as the search itself. With it,
# references to named tuples would be wrong: nobody counts what they lead to.
_OPTIONS = {"error_model": "numpy", "_nrt": False}
# A part of a kernel is not called from Python or C: wrappers for that would take as long to compile as
# the part itself.
_CALLED = _OPTIONS | {
    "forceinline": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _PartCompiler,
}
PART = _CALLED | {"forceinline": True}


def inlined(function: F) -> F:
    """Compile `function` as a part of the kernels that call it. Python cannot call it."""
    return _part(function, PART)


def called(function: F) -> F:
    """As `inlined`, for what is long and stands in several places: the kernel contains it once."""
    return _part(function, _CALLED)


def _part(function: F, options: dict[str, Any]) -> F:
    if numba.config.DISABLE_JIT:
        return function
    compiled = numba.njit(**options)(function)
    choose = compiled.get_call_template

    def choose_for(args: Any, kws: Any) -> Any:
        return choose([_plain(kind) for kind in args], kws)

    def keep(result: Any) -> None:
        compiled.overloads[tuple(result.signature.args)] = result

    def refuse(*args: Any, **kws: Any) -> None:
        raise TypeError(f"{function.__name__} is a part of kernels: call it from a kernel")

    compiled.get_call_template = choose_for
    # A call from Python must not find a function without a wrapper.
    compiled.add_overload = keep
    compiled._compile_for_args = refuse
    return compiled  # type: ignore[no-any-return]


def _plain(kind: Any) -> Any:
    """The type of an argument, with one type for all integers.

    Otherwise a function would be compiled for every mixture of literals, 32-bit and 64-bit integers.
    """
    kind = types.unliteral(kind)
    return types.int64 if kind == types.int32 else kind


def kernel(function: F) -> F:
    """Compile `function` with Numba on first use, and keep the result in the user's cache folder.

    It runs without the interpreter's lock, so other threads go on: among them the one that halts
    the search at its deadline.
    """
    compiled = numba.njit(nogil=True, **_OPTIONS)(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(compiled)
    return compiled  # type: ignore[no-any-return]


def caller(signature: Any) -> Any:
    """A function `call(address, (arguments...))` that kernels can call, for one signature.

    At the address lies a compiled function that is not a part of the kernel (`numba.cfunc`), such as a
    user's own. So kernels are not compiled anew for every such function, and are found in the cache.
    Interpreted, they run its Python code, if `address_of` gave the address.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            returned, *taken = (
                context.get_value_type(kind) for kind in (signature.return_type, *signature.args)
            )
            pointer = ir.FunctionType(returned, taken).as_pointer()
            function = builder.inttoptr(values[0], pointer)
            parts = [builder.extract_value(values[1], i) for i in range(len(taken))]
            return builder.call(function, parts)

        return signature.return_type(address, arguments), generate

    call.in_python = lambda address, arguments: _at[address](*arguments)
    return call


# The Python code of functions by their addresses.
_at: dict[int, Callable[..., Any]] = {}


def address_of(function: Any) -> int:
    """The address of a compiled function (`numba.cfunc`), for `caller`."""
    _at[function.address] = function.__wrapped__
    return int(function.address)


@intrinsic  # type: ignore[untyped-decorator]
def call_python(typing: Any, address: Any, a: Any, b: Any, c: Any) -> Any:
    """Call the Python function at an address (its `id`) from a kernel, with three whole numbers.

    It leaves its answer in an array that the kernel sees. What it raises ends the kernel at once and
    comes through. (`numba.objmode` does more, takes longer, and does not check for errors
    on the way: an exception of a signal handler at the wrong moment would crash the interpreter.)
    """

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        python = context.get_python_api(builder)
        lock = python.gil_ensure()
        function = builder.inttoptr(values[0], python.pyobj)
        numbers = [python.long_from_longlong(value) for value in values[1:]]
        returned = python.call_function_objargs(function, numbers)
        for number in numbers:
            python.decref(number)
        failed = builder.icmp_unsigned("==", returned, returned.type(None))
        with builder.if_then(failed, likely=False):
            python.gil_release(lock)
            context.call_conv.return_exc(builder)
        python.decref(returned)
        python.gil_release(lock)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


call_python.in_python = lambda address, *numbers: ctypes.cast(address, ctypes.py_object).value(
    *map(int, numbers)
)


# Bytes that caches load at once.
_LINE = 64


@intrinsic  # type: ignore[untyped-decorator]
def begin_to_load(typing: Any, records: Any, index: Any) -> Any:
    """Begin to load a record, and do not wait for it. An index outside of the array does no harm.

    No result depends on it: interpreted, nothing happens.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        start = builder.gep(data, [values[1]])
        size = context.get_abi_sizeof(context.get_data_type(records.dtype))
        # A record may lie in two lines.
        for offset in (0,) if _LINE % size == 0 else (0, size - 1):
            address = builder.gep(builder.bitcast(start, byte), [word(offset)])
            # To be read; to be kept in all caches; not instructions.
            builder.call(prefetch, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(records, types.int64), generate


begin_to_load.in_python = lambda records, index: None

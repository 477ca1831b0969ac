"""Loads that begin before their time: what a kernel will read soon is brought into the caches."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_LINE = 64  # bytes that caches load at once


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

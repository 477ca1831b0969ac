"""References to named tuples: inside a kernel, a search and a model are one pointer each.

By value, each of their arrays would be seven arguments of every part of a kernel, hundreds in all, and
the compiler would spend most of its time passing them on.
"""

import hashlib
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model

_BYTES = ir.IntType(8).as_pointer()


class Reference(types.Type):  # type: ignore[misc]
    """The type of a reference to a named tuple."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.instance_class = kind.instance_class
        digest = hashlib.sha256(str(kind).encode()).hexdigest()[:16]
        super().__init__(f"Reference({kind.instance_class.__name__} {digest})")


_reference = cache(Reference)


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _BYTES)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        if name not in reference.kind.fields:
            return None
        field = reference.kind.types[reference.kind.fields.index(name)]
        return _reference(field) if _is_named(field) else field


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, reference: Any, value: Any, name: str) -> Any:
    number = reference.kind.fields.index(name)
    field = reference.kind.types[number]
    if field == types.none:
        return context.get_dummy_value()
    kind = context.get_value_type(reference.kind)
    place = cgutils.gep_inbounds(builder, builder.bitcast(value, kind.as_pointer()), 0, number)
    if _is_named(field):
        return builder.bitcast(place, _BYTES)
    found = builder.load(place)
    # No store changes what a reference leads to. So nothing is loaded twice.
    found.set_metadata("invariant.load", builder.module.add_metadata(()))
    return found


def _is_named(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple) and hasattr(kind, "instance_class")


@intrinsic  # type: ignore[untyped-decorator]
def refer(typing: Any, value: Any) -> Any:
    """A reference to a named tuple, used like the tuple itself; which it is if nothing is compiled."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = builder.bitcast(cgutils.alloca_once_value(builder, values[0]), _BYTES)
        # Behind this, the compiler does not know where the pointer comes from. Otherwise it might take
        # the loads, which nothing changes, to come before the tuple was put there.
        same = ir.FunctionType(_BYTES, [_BYTES])
        return builder.asm(same, "", "=r,0,~{memory}", [place], side_effect=True)

    return _reference(value)(value), generate


refer.in_python = lambda value: value

"""Dtype mask of an input, as kernels and meta functions check it. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascend_graph.binding.dtypes import scalar_types
from ascend_graph.prototypes import DataType, Parameter

#: Mask of every number of c10::ScalarType: the prototype lists no dtypes, or the parser did not understand them.
ANY = 2**64 - 1


@dataclass(frozen=True, slots=True)
class AllowedDtypes:
    """Allowed torch dtypes of an input."""

    #: One bit for each number of c10::ScalarType.
    mask: int
    #: Their GE names, for messages.
    listed: str

    def __contains__(self, scalar_type: int) -> bool:
        return bool(self.mask >> scalar_type & 1)


def allowed_dtypes(parameter: Parameter) -> AllowedDtypes:
    """Return the dtypes that the prototype allows for an input.

    >>> from ascend_graph.prototypes import parse_text
    >>> text = "REG_OP(Some).INPUT(x, TensorType({DT_FLOAT, DT_HIFLOAT8})).OUTPUT(y, ALL()).OP_END_FACTORY_REG(Some)"
    >>> found = allowed_dtypes(parse_text(text).prototypes[0].inputs[0])
    >>> found.listed, 6 in found, 5 in found, 0 in found
    ('DT_FLOAT, DT_HIFLOAT8', True, False, True)
    """
    return AllowedDtypes(ANY, "") if parameter.unknown_types else _allowed(parameter.dtypes)


@lru_cache(maxsize=256)
def _allowed(dtypes: tuple[DataType, ...]) -> AllowedDtypes:
    numbers = {number for dtype in dtypes for number in scalar_types(dtype)}
    if not numbers:
        return AllowedDtypes(ANY, "")
    return AllowedDtypes(sum(1 << n for n in numbers), ", ".join(dtype.ge_name for dtype in dtypes))

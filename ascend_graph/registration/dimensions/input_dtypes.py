"""Dtypes that a prototype lists for the tensor arguments of a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from ascend_graph.binding.bound import Binding
from ascend_graph.binding.dtypes import by_torch_dtype
from ascend_graph.prototypes import Parameter

#: PyTorch makes tensors of quantized dtypes with a scale alone, which no operator of a prototype takes.
_QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}
_TORCH_DTYPES = {number: dtype for dtype, number in by_torch_dtype().items() if dtype not in _QUANTIZED}


def fed_inputs(binding: Binding) -> dict[str, Parameter]:
    """Return the prototype's input that each argument of the schema feeds."""
    names = binding.argument_names()
    fed = {names.get(a.name, a.name): a.name for a in binding.schema.arguments}
    return {fed[p.name]: p for p in binding.prototype.inputs if p.name in fed}


def listed_dtypes(parameters: Mapping[str, Parameter]) -> dict[str, tuple[torch.dtype, ...]]:
    """Return the dtypes that the prototype lists for each argument, as far as torch has them."""
    return {
        name: tuple(_TORCH_DTYPES[d] for d in parameter.dtypes if d in _TORCH_DTYPES)
        for name, parameter in parameters.items()
    }


def dtype_combinations(listed: Mapping[str, Sequence[torch.dtype]]) -> list[dict[str, torch.dtype]]:
    """Return the combinations of dtypes by argument.

    The lists of a prototype are parallel; a shorter list repeats its last dtype.
    """
    known = {name: dtypes for name, dtypes in listed.items() if dtypes}
    longest = max(map(len, known.values()), default=0)
    columns = [{n: d[min(k, len(d) - 1)] for n, d in known.items()} for k in range(longest)]
    return [c for n, c in enumerate(columns) if c not in columns[:n]]

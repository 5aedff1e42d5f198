"""Meta functions of operators with sizes from data: each such size is an unbacked one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.meta import MetaFunction


def with_data_sizes(largest: MetaFunction, outputs: Sequence[Mapping[int, str]], subject: str) -> MetaFunction:
    """Return a meta function whose outputs have sizes that are not known before the kernel has run.

    Args:
        largest: The meta function of the largest sizes.
        outputs: For each return, the names of such sizes by dimension, counted from the end.
        subject: The operator, for messages.
    """

    def meta(*args: Any, **kwargs: Any) -> Any:
        made = largest(*args, **kwargs)
        try:
            context = torch.library.get_ctx()
        except RuntimeError as error:
            raise MetaError(
                f"{subject}: its sizes {', '.join(sorted({n for dims in outputs for n in dims.values()}))} come from data, which "
                "tensors on the meta device do not have; expected FakeTensors, as torch.compile and torch.export make them"
            ) from error
        sizes: dict[str, Any] = {}

        def cut(tensor: torch.Tensor, dims: Mapping[int, str]) -> torch.Tensor:
            if not dims:
                return tensor
            shape = list(tensor.shape)
            for dim, name in dims.items():
                bound = shape[dim]
                if name not in sizes:
                    sizes[name] = context.new_dynamic_size()
                    torch._check(sizes[name] <= bound)
                shape[dim] = sizes[name]
            return tensor.new_empty(shape)

        if isinstance(made, torch.Tensor):
            return cut(made, outputs[0])
        return tuple(map(cut, made, outputs))

    return meta

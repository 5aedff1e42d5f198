"""Forward-mode differentiation of ATen operators on the host: PyTorch's own formulas, which give what they give on
the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu  # noqa: F401
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

#: Pointwise, composed, reductions, views, matrices, convolutions, losses, sorting, in place, and formulas that are not
#: linear.
NAMES = (
    "add",
    "mul",
    "div",
    "sin",
    "pow",
    "where",
    "clamp",
    "cumsum",
    "sum",
    "var",
    "prod",
    "logsumexp",
    "softmax",
    "nn.functional.gelu",
    "nn.functional.layer_norm",
    "nn.functional.conv2d",
    "nn.functional.linear",
    "nn.functional.mse_loss",
    "matmul",
    "bmm",
    "addmm",
    "linalg.solve",
    "linalg.svd",
    "cat",
    "stack",
    "index_select",
    "gather",
    "scatter",
    "index_put",
    "sort",
    "topk",
    "max",
    "reshape",
    "transpose",
    "narrow",
    "masked_fill",
    "fft.fft",
    "complex",
    "copysign",
    "norm",
)


def tangents(function: Any, sample: Any, device: str, copied: bool) -> list[torch.Tensor]:
    """The tangents of a sample's results, with random ones of its floating-point tensors."""
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    leaves = [leaf.detach().to(device) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    moved = [
        n
        for n, leaf in enumerate(leaves)
        if isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())
    ]
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(leaves[n].shape, dtype=leaves[n].dtype, generator=generator).to(device) for n in moved]

    def call(*primals: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = list(leaves)
        for n, primal in zip(moved, primals, strict=True):
            given[n] = primal.clone() if copied else primal
        first, args, kwargs = tree_unflatten(given, spec)
        return tuple(t for t in tree_flatten(function(first, *args, **kwargs))[0] if isinstance(t, torch.Tensor))

    return [t.cpu() for t in torch.func.jvp(call, tuple(leaves[n] for n in moved), tuple(directions))[1]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "op", [op for op in op_db if op.name in NAMES and op.supports_forward_ad], ids=lambda op: op.full_name
)
def test_tangents_are_those_of_the_cpu(op: Any) -> None:
    functions = [(op.get_op(), False)]
    if op.get_inplace() is not None and op.supports_inplace_autograd:
        functions.append((op.get_inplace(), True))
    for sample in list(op.sample_inputs("cpu", torch.float64))[:3]:
        for function, in_place in functions:
            try:
                expected = tangents(function, sample, "cpu", in_place)
            except NotImplementedError as error:  # PyTorch has no formula of it
                with pytest.raises(NotImplementedError, match=str(error).partition(".")[0]):
                    tangents(function, sample, "npu", in_place)
                continue
            except (RuntimeError, ValueError):  # such a sample is not for writing in place
                assert in_place
                continue
            torch.testing.assert_close(tangents(function, sample, "npu", in_place), expected, equal_nan=True)


def test_no_operator_is_differentiated_by_kernels_of_the_wheel() -> None:
    """Those have no formulas of forward mode: they would pass a tangent by."""
    torch.ones(1).npu().add(1)
    left = [
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and "AutogradPrivateUse1: registered at ../torch_npu" in torch._C._dispatch_dump(name)
    ]
    assert not left

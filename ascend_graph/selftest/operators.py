"""Operators of the self-test: one for each route that needs only torch_npu and CANN.

``swiglu`` is an aclnn function of CANN that becomes a torch operator here; ``npu_rms_norm`` and ``npu_fast_gelu`` are
torch_npu's own, bound to their prototypes. Names and parameters follow CANN's documentation.
"""

from __future__ import annotations

from typing import Any

import torch
import torch_npu  # noqa: F401 - it defines torch.ops.npu

import ascend_graph

PROTOTYPES = """
REG_OP(SwiGlu)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .ATTR(dim, Int, -1)
    .OP_END_FACTORY_REG(SwiGlu)
REG_OP(RmsNorm)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .INPUT(gamma, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .OUTPUT(rstd, TensorType({DT_FLOAT, DT_FLOAT, DT_FLOAT}))
    .ATTR(epsilon, Float, 1e-6)
    .OP_END_FACTORY_REG(RmsNorm)
REG_OP(FastGelu)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16}))
    .OP_END_FACTORY_REG(FastGelu)
"""
DECLARATION = """
aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor *x, int64_t dim, const aclTensor *out, uint64_t *workspaceSize,
                                        aclOpExecutor **executor);
aclnnStatus aclnnSwiGlu(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""


def _swiglu(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.float().chunk(2, -1)
    return (torch.nn.functional.silu(gate) * up).to(x.dtype)


def _rms_norm(x: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    rstd = (x.float().square().mean(-1, keepdim=True) + epsilon).rsqrt()
    return (x.float() * rstd * gamma.float()).to(
        x.dtype
    ), rstd.detach()  # which takes no part in the operator's gradient


def _fast_gelu(x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.sigmoid(1.702 * wide)).to(x.dtype)


def register() -> None:
    """Register the operators in this process.

    They override torch_npu's meta functions and converters, to test the ones derived from relation and prototype.
    """
    ascend_graph.load_prototypes(PROTOTYPES)
    ascend_graph.load_aclnn(DECLARATION)
    ascend_graph.register_aclnn(
        "aclnnSwiGlu",
        schema="ascend_graph_selftest::swiglu(Tensor x) -> Tensor",
        op_type="SwiGlu",
        shape="x[*s, n] -> out[*s, n // 2] where n % 2 == 0",
        aclnn_arguments={"dim": -1},
    )
    ascend_graph.register_op(
        "RmsNorm",
        eager=torch.ops.npu.npu_rms_norm,
        shape="x[*s, n], gamma[n] -> y[*s, n], rstd[*s, 1]: float32",
        override=True,
    )
    ascend_graph.register_op("FastGelu", eager=torch.ops.npu.npu_fast_gelu, shape="x[*s] -> y[*s]", override=True)


_BATCHES = [torch.randn(rows, 16, generator=torch.Generator().manual_seed(rows)) for rows in (4, 9)]
#: Inputs of the measured rows: two calls of different sizes for each.
INPUTS: dict[str, list[tuple[torch.Tensor, ...]]] = {
    "SwiGlu": [(x,) for x in _BATCHES],
    "RmsNorm": [(x, torch.linspace(0.5, 1.5, 16)) for x in _BATCHES],
    "FastGelu": [(x,) for x in _BATCHES],
}
#: References with which ``ascend-graph check`` compares values.
REFERENCES: dict[str, Any] = {"SwiGlu": _swiglu, "RmsNorm": _rms_norm, "FastGelu": _fast_gelu}

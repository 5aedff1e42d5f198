"""Explained differences of operators on `npu` from the CPU, which `benchmarks/op_db.py` compares with its findings.

An entry has regular expressions for the operators, the checks and the message, so that it does not cover another fault of
the same operator. An entry that explains nothing in a whole run is reported as stale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.operators.checks import CheckMismatch


@dataclass(frozen=True)
class Explained:
    """Difference that is not a fault of the host runtime."""

    verdict: str
    operators: str
    checks: str
    message: str
    why: str

    def covers(self, outcome: CheckMismatch) -> bool:
        """Return whether this entry covers the outcome."""
        return (
            outcome.verdict.value == self.verdict
            and re.fullmatch(self.operators, outcome.operator) is not None
            and re.fullmatch(self.checks, outcome.check) is not None
            and re.search(self.message, outcome.message) is not None
        )


EXPLAINED: tuple[Explained, ...] = (
    Explained(
        "raises",
        "bfloat16|bool|byte|cdouble|cfloat|chalf|char|double|float|half|int|long|short|to",
        "forward|captured|backward|forward AD|(noncontiguous|conjugate|negative).*",
        "Only c10::MemoryFormat::Contiguous is supported for creating a npu tensor",
        "the stock torch_npu refuses to allocate in another memory format, on a device too",
    ),
    Explained(
        "raises",
        "mode",
        "out.*",
        "mode only supports CPU, CUDA and XPU device type",
        "torch_npu has no kernel for mode.values, and PyTorch's own refuses other devices, on a device too",
    ),
    Explained(
        "raises",
        "svd|conj_physical",
        "out.*|.*in place.*",
        "DispatchStub: missing kernel for npu",
        "PyTorch's own kernel asks for a conj_physical of the device that torch_npu has not, on a device too",
    ),
    Explained(
        "raises",
        "sparse.sampled_addmm|sparse.mm.reduce",
        "forward|captured|backward|(noncontiguous|conjugate|negative).*",
        "Could not run 'aten::(sparse_sampled_addmm|_sparse_mm_reduce_impl)' .* 'SparseCsrnpu' backend",
        "torch_npu has no such kernel for compressed sparse tensors, on a device too",
    ),
    Explained(
        "lenient",
        "native_group_norm",
        "noncontiguous|noncontiguous backward",
        "Expected X.is_contiguous",
        "torch_npu's kernel takes tensors with gaps, PyTorch's CPU kernel alone does not",
    ),
    Explained(
        "lenient",
        "as_strided_scatter|select_scatter|nn.functional.ctc_loss",
        "devices",
        "accepts tensors of two devices",
        "PyTorch's own code copies the other tensor to the device, on every device",
    ),
    Explained(
        "wrong",
        r"(nn\.functional|native|_native|_batch)\S*_norm\S*",
        "layout.*",
        r"result 0 is .* strides|result 1 is \w+ \(0,\)",
        "torch_npu's kernels give contiguous results, and the CPU's no statistics in evaluation; the meta functions say otherwise, on a device too",
    ),
    Explained(
        "wrong",
        r"(max|min)\.reduction_no_dim|prod|masked\.(var|std)|ormqr|linalg\.householder_product|nn\.functional\.cosine_similarity|tensordot",
        "layout.*",
        "result",
        "PyTorch differentiates fake tensors otherwise: by another formula, or by sums that are not accumulated in place",
    ),
    Explained(
        "wrong",
        r"nn\.functional\.(hardswish|hardtanh|cross_entropy)|logit",
        "layout.* backward",
        "result 0",
        "the gradient's kernel gives the order of its first argument; fake tensors decompose it into operators that prefer the other's",
    ),
    Explained(
        "wrong",
        "native_dropout_backward",
        "layout transposed",
        "result 0",
        "PyTorch's meta function keeps channels last and no other order of memory, its kernel keeps any, torch_npu's none",
    ),
)


def explanation(outcome: CheckMismatch) -> Explained | None:
    """Return the entry that explains why this outcome is not a fault of the host runtime, or None."""
    return next((e for e in EXPLAINED if e.covers(outcome)), None)

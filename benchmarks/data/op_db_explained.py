"""Where an operator on `npu` differs from the CPU for a reason, and which: `benchmarks/op_db.py` reads its findings beside this list.

An entry names the operators, the checks and what was said, as regular expressions, so that another fault of the same
operator is none of these. One that explains nothing in a whole run is stale, and said to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.operators.checks import Outcome


@dataclass(frozen=True)
class Explained:
    """A difference that is none of the host runtime's."""

    verdict: str
    operators: str
    checks: str
    message: str
    why: str

    def covers(self, outcome: Outcome) -> bool:
        """Whether this is what the outcome says."""
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
        "raises",
        "to_sparse",
        "forward|captured|backward|(noncontiguous|conjugate|negative).*",
        "_to_sparse(\\.\\w+)? (gives a (sparse COO|compressed sparse) tensor|cannot be captured)",
        "documented: the host runtime makes no sparse tensors from dense ones",
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
)


def explanation(outcome: Outcome) -> Explained | None:
    """Why this outcome is no fault of the host runtime, if something says so."""
    return next((e for e in EXPLAINED if e.covers(outcome)), None)

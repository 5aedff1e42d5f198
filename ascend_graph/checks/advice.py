"""Advice on checks that fail: the most frequent cause, and what to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ascend_graph.shapes.relation import Relation
from ascend_graph.shapes.syntax import Dims, Name, Size

if TYPE_CHECKING:
    from ascend_graph.checks.calls.samples import Sample

#: By check: what most often makes it fail; and, after the colon, what to write.
ADVICE: Mapping[str, str] = {
    "runs": "a size that the kernel does not expect: correct the line that the message names, or the tiling function",
    "waits": "a wait that is missing in the kernel: add SetFlag and WaitFlag between the two lines, or a queue",
    "arguments": "the kernel writes or returns its input: work on a copy, or declare what it writes, Tensor(a!)",
    "repeats": "elements that are not written, or an accumulator that does not begin at 0: write the whole output",
    "reference": "another formula, or too strict a tolerance: correct one of both, or pass rtol= and atol=",
    "meta": "the relation or meta function gives another shape or dtype than the kernel: correct shape= or meta=",
    "layout": "the kernel takes any strides for contiguous: call contiguous() before it, or read the strides",
    "outside": "the last tile is copied whole: copy only the elements that are left",
    "vmap": "a dimension of batch= is not independent of the others: leave it out",
    "sharding": "a dimension is not what batch= or reduce= says of it: leave it out, or declare it with the other",
    "gradient": "another formula than that of the reference: correct backward= or forward=",
    "ge": "eager mode calls another kernel, or with other attrs: compare both in ascend-graph explain",
    "ge_dynamic": "a size or value that is fixed when the graph is compiled: take it from the call's tensors",
    "npugraph_ex": "eager mode calls another kernel, or one that reads values on the host: compare both in ascend-graph explain",
    "export": "the meta function reads a value or decides on a size: write a shape relation, shape=",
    "gradient_in_graphs": "backward= calls what no graph can contain: register its operators with register_op, too",
    "recompilations": "the meta function decides on a size: write a shape relation, shape=",
    "dtypes": "the kernel converts it, or takes its bytes for another dtype: list it in the prototype, or refuse it",
    "large": "a core that has several tiles: correct the loop over tiles, what waits for it, or the count of the last one",
    "process": "a write outside memory, or a loop that does not end: call the operator alone, with "
    "ASCEND_GRAPH_KERNEL_TIMEOUT=5 for a loop",
}

#: By check and message: what this message is about; and, after the colon, what to write.
SPECIFIC: tuple[tuple[str, str, str], ...] = (
    ("runs", r"multiple of 32", "a tail that is not a multiple of 32 bytes: copy it with DataCopyPad"),
    ("runs", r"\b0 (?:bytes|elements)", "a size of 0: return early in the kernel"),
    (
        "runs",
        r"asked for .* workspace",
        "a workspace that is too small: set GetWorkspaceSizes(1)[0] in the tiling function",
    ),
    ("runs", r"out of bounds", "a block or tile after the last one: correct its begin and count, or return early"),
    *(
        (
            check,
            r"which block -?\d+ writes, too",
            "blocks whose parts are not whole blocks of 32 bytes: correct begin and count",
        )
        for check in ("runs", "waits")
    ),
    (
        "runs",
        r"does not wait for pipe",
        "a wait that is missing in the kernel: add SetFlag and WaitFlag between the two lines",
    ),
    (
        "waits",
        r"nothing set the flag",
        "a flag that is set in another branch, or with another number: set it before each wait",
    ),
    (
        "runs",
        r"queue \w+ is ",
        "a queue that does not balance: write AllocTensor, EnQue, DeQue and FreeTensor for each tile",
    ),
    ("runs", r"which nothing wrote", "a tile that is read before it is filled: copy or compute it first"),
    ("runs", r"overflow the unified buffer", "tiles that are too large: make them smaller in the tiling function"),
    (
        "runs",
        r"tiling structure has",
        "tiling structures that differ in op_host and op_kernel: include one header in both",
    ),
    ("runs", r"tiling key", "SetTilingKey and TILING_KEY_IS differ: write the same keys in both"),
    ("runs", r"write ValueDepend", "values of an input that only ValueDepend gives to the tiling function: write it"),
    (
        "runs",
        r"tiling function accesses memory",
        "a wrong index of GetAttrPointer or GetInputShape, or an absent input: correct it, or compare with nullptr",
    ),
    (
        "outside",
        r"that the operator allocates",
        "a workspace that is smaller than what the kernel uses: allocate what its tiling counts with",
    ),
    (
        "outside",
        r"begin in the middle of their storage",
        "the binding passes storage().data(), the begin of the storage: pass data_ptr()",
    ),
    (
        "dtypes",
        r"computed otherwise",
        "the kernel takes its bytes for another dtype: add TORCH_CHECK(x.scalar_type() == at::kFloat, …) to the binding",
    ),
    (
        "gradient_in_graphs",
        r"Cannot access data pointer",
        "backward calls the function of a kernel: define an operator of it, and call that by the dispatcher",
    ),
    (
        "gradient",
        r"where the gradient of a result is",
        "backward takes any strides for contiguous: call contiguous() on the gradients before its kernel",
    ),
    (
        "npugraph_ex",
        r"\b107030\b",
        "the binding waits for the device (item(), a copy to the CPU): pass the value as an attr, or let the kernel read it",
    ),
    (
        "npugraph_ex",
        r"no capture records",
        "a launch on another stream than the current one: pass c10_npu::getCurrentNPUStream().stream(false)",
    ),
    *(
        (
            check,
            r"against eager mode: argument \d+",
            "a write that the schema does not declare, so that the graph drops the call: declare it, Tensor(a!)",
        )
        for check in ("ge", "ge_dynamic", "npugraph_ex")
    ),
    (
        "gradient_in_graphs",
        r"convert all Tensors to FakeTensors",
        "npugraph_ex takes no constant that a gradient makes (torch.where of numbers, zeros): compute it from a tensor, "
        'as grad * (x > 0), or train with backend="aot_eager"',
    ),
)


#: Of values that differ in a check other than ``repeats``, where that failed, too.
UNSTEADY = "results that differ from call to call: correct what the check repeats says first"


def advice_on(check: str, message: str, unsteady: bool = False) -> str:
    """Return the advice for a failed check with this message; empty for an unknown check.

    Args:
        check: The check that failed.
        message: What it says.
        unsteady: Whether the check ``repeats`` failed for the same operator.
    """
    if unsteady and check != "repeats" and "elements differ" in message:
        return UNSTEADY
    found = (text for name, pattern, text in SPECIFIC if name == check and re.search(pattern, message))
    return next(found, ADVICE.get(check, ""))


def excluding(relation: Relation, sample: Sample, fault: str) -> str:
    """Return a condition that keeps such a call out of a relation, after a colon; empty if the fault shows none."""
    empty = any(tensor.numel() == 0 for tensor in sample.tensors)
    if not relation.inputs or not (empty or "multiple of 32" in fault):
        return ""
    tensor = relation.input_tensors[0]
    shape = tensor.alternatives[0].shape
    last = shape.items[-1] if isinstance(shape, Dims) and shape.items else None
    size = str(last.value) if isinstance(last, Size) and isinstance(last.value, Name) else f"numel({tensor.name})"
    block = 32 // min((one.element_size() for one in sample.tensors), default=4)  # elements of the narrowest dtype
    return f": where {size} {'> 0' if empty else f'% {block} == 0'}"

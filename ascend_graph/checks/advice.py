"""Advice on checks that fail: the most frequent cause, and what to write."""

from __future__ import annotations

from collections.abc import Mapping

#: By check: what most often makes it fail; and, after the colon, what to write.
ADVICE: Mapping[str, str] = {
    "runs": "a tail that is not a multiple of 32 bytes, or a size of 0: copy it with DataCopyPad, and return early for 0",
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
    "process": "a write outside memory, or a loop that does not end: call the operator alone, with "
    "ASCEND_GRAPH_KERNEL_TIMEOUT=5 for a loop",
}

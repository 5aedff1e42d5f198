"""Checks for number formats that an SoC does not have."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ascend_graph.host.kernels import HostKernel, find_host_kernel
from ascend_graph.host.runtime.aclnn_functions.unsupported_socs import NEW_FORMATS, check_format
from ascend_graph.prototypes import DataType

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import OpDef


def check_formats(op: OpDef, kernel: HostKernel) -> None:
    """Refuse one of GE's own operators with inputs or outputs in a format that the SoC does not have."""
    for description in (*op.input_desc, *op.output_desc):
        dtype = _new_formats().get(description.dtype)
        if dtype is not None and kernel is find_host_kernel(op.type):
            check_format(op.type, description.name or "an output", dtype)


@functools.cache
def _new_formats() -> Mapping[int, DataType]:
    """Return the formats by their numbers in the protobuf."""
    from torchair._ge_concrete_graph.ge_ir_pb2 import DataType as ProtoDataType

    numbers = dict(ProtoDataType.items())
    return {numbers[f"DT_{dtype.name}"]: dtype for dtype in NEW_FORMATS if f"DT_{dtype.name}" in numbers}

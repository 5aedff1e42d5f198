"""Single operators: what their kernels say of the outputs before they run."""

from __future__ import annotations

import pytest
import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.runtime.single_op import infer_operator


def test_shapes_are_inferred_of_tensors_without_values() -> None:
    x, found = torch.empty(4, 1, dtype=torch.float16, device="meta"), torch.zeros(10, dtype=torch.int64)
    infer_operator("BroadcastTo", [("", x), ("", torch.tensor([3, 4, 5]))], [], [("", found)])
    assert found.tolist() == [1, 3, 3, 4, 5, 0, 0, 0, 0, 0]


def test_shapes_that_depend_on_unknown_values_are_refused() -> None:
    x, shape = torch.empty(4, device="meta"), torch.empty(2, dtype=torch.int64, device="meta")
    with pytest.raises(HostRuntimeError, match="BroadcastTo: the shapes of its outputs are not known before it runs"):
        infer_operator("BroadcastTo", [("", x), ("", shape)], [], [("", torch.zeros(10, dtype=torch.int64))])

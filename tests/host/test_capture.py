"""What a captured graph keeps of its operators' arguments, and what it refuses to capture."""

from __future__ import annotations

import pytest
import torch


def _captured(body) -> tuple[torch.npu.NPUGraph, object]:
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = body()
    return graph, result


def test_a_capture_keeps_sizes_and_strides() -> None:
    x = torch.arange(6.0, device="npu").reshape(2, 3)

    def body() -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 1
        z = y[0] * 10
        y.t_()
        return y, z

    graph, (y, z) = _captured(body)
    graph.replay()
    assert z.tolist() == [0, 10, 20]
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_capture_keeps_addresses() -> None:
    x = torch.ones(4, device="npu")
    old = x.data
    graph, y = _captured(lambda: x + 1)
    x.data = torch.full((4,), 7.0, device="npu")
    old.fill_(2)
    graph.replay()
    assert y.tolist() == [3] * 4


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.unsqueeze_(0),
        lambda y: y.transpose_(0, 1),
        lambda y: y.swapaxes_(0, 1),
        lambda y: y.resize_(1, 2),
        lambda y: y.resize_(8, 8),
        lambda y: y.as_strided_((2,), (1,)),
        lambda y: y.set_(),
        lambda y: y.set_(torch.zeros(3, device="npu")),
        lambda y: setattr(y, "data", torch.zeros(5, device="npu")),
    ],
    ids=["unsqueeze_", "transpose_", "swapaxes_", "smaller", "larger", "as_strided_", "set_", "set_other", "data"],
)
@pytest.mark.parametrize("inside", [True, False])
def test_changes_of_a_tensor_itself_do_not_reach_back(change, inside: bool) -> None:
    x = torch.arange(6.0, device="npu").reshape(2, 3)

    def body() -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        z = y + 1
        if inside:
            change(y)
        return y, z

    graph, (y, z) = _captured(body)
    if not inside:
        change(y)
    for _ in range(2):
        graph.replay()
        assert z.tolist() == [[1, 3, 5], [7, 9, 11]]


def test_a_number_in_host_memory_is_read_when_it_is_recorded() -> None:
    x, factor = torch.ones(2, device="npu"), torch.tensor(3.0)
    graph, y = _captured(lambda: x * factor)
    factor.fill_(5)
    graph.replay()
    assert y.tolist() == [3, 3]


def test_an_argument_that_is_resized_for_its_result() -> None:
    x = torch.arange(4.0, device="npu")

    def body() -> torch.Tensor:
        out = torch.empty(0, device="npu")
        torch.add(x, 1, out=out)
        return out

    graph, out = _captured(body)
    assert out.shape == (4,)
    graph.replay()
    assert out.tolist() == [1, 2, 3, 4]


def test_overlapping_arguments_are_read_before_they_are_written() -> None:
    x = torch.arange(5.0, device="npu")
    graph, _ = _captured(lambda: x[1:].sub_(x[:-1]))
    graph.replay()
    assert x.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("body", "operator"),
    [
        (lambda x: x.nonzero(), "aten::nonzero"),
        (lambda x: x[x > 1], "aten::index"),
        (lambda x: torch.masked_select(x, x > 1), "aten::masked_select"),
        (lambda x: torch.equal(x, x), "aten::equal"),
        (lambda x: torch.unique(x), "aten::_unique2"),
        (lambda x: torch.nn.functional.one_hot(x.long()), "captur"),
        (lambda x: torch.repeat_interleave(x.long()), "aten::repeat_interleave"),
        (lambda x: x.cpu(), "aten::copy_"),
        (lambda x: x.copy_(torch.zeros(3)), "aten::copy_"),
        (lambda x: torch.zeros(3).copy_(x, non_blocking=True), "aten::copy_"),
        (lambda x: x.copy_(torch.zeros(3), non_blocking=True), "aten::copy_"),
        (lambda x: str(x), "captur"),
        (lambda x: x.sum().item(), "captur"),
    ],
)
def test_what_depends_on_values_is_refused(body, operator: str) -> None:
    x = torch.arange(3.0, device="npu")
    with pytest.raises(RuntimeError, match="captur") as raised, torch.npu.graph(torch.npu.NPUGraph()):
        body(x)
    assert operator in str(raised.value)
    assert x.sum().item() == 3


def test_copies_of_pinned_memory_are_recorded() -> None:
    x, into = torch.zeros(3).pin_memory(), torch.zeros(3).pin_memory()
    device = torch.zeros(3, device="npu")

    def body() -> None:
        device.copy_(x, non_blocking=True)
        into.copy_(device * 2, non_blocking=True)

    graph, _ = _captured(body)
    x.copy_(torch.tensor([1.0, 2, 3]))
    assert into.tolist() == [0, 0, 0]
    graph.replay()
    assert into.tolist() == [2, 4, 6]

"""Operators that take objects, in captures: a replay would run them with the object of the first call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once

opaque = pytest.importorskip("torch._library.opaque_object", reason="this torch has no opaque types")
if not hasattr(opaque, "OpaqueBase"):
    pytest.skip("this torch has no classes of opaque types", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def _ge_first() -> None:
    compile_for_ge_once()


class Scale(opaque.OpaqueBase):  # type: ignore[misc]
    """An object that PyTorch gives to graphs by reference."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


opaque.register_opaque_type(Scale, typ="reference")


@pytest.fixture(scope="module")
def scaled() -> Iterator[Any]:
    library = torch.library.Library("captured_objects", "DEF")
    library.define(f"scaled(Tensor x, {opaque.get_opaque_type_name(Scale)} by) -> Tensor")
    library.impl("scaled", lambda x, by: x * by.factor, "PrivateUse1")
    operator = torch.ops.captured_objects.scaled.default
    registered = ascend_graph.register_kernel(eager=operator, shape="x[*s] -> y[*s]")
    torch._dynamo.reset()
    yield operator
    registered.unregister()
    library._destroy()


def test_an_object_is_read_anew_in_every_call(scaled: Any) -> None:
    x, by = torch.ones(2).npu(), Scale(3.0)
    run = torch.compile(lambda x, by: scaled(x, by) + 1, backend="aot_eager", fullgraph=True)
    assert run(x, by).tolist() == [4, 4]
    by.factor = 5.0
    assert (run(x, by).tolist(), run(x, Scale(7.0)).tolist()) == ([6, 6], [8, 8])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_capture_refuses_an_object(scaled: Any, dynamic: bool) -> None:
    run = torch.compile(lambda x, by: scaled(x, by) + 1, backend="npugraph_ex", dynamic=dynamic, fullgraph=True)
    with pytest.raises(Exception, match=r"scaled.*takes .*, an object, .* first call; expected tensors and numbers"):
        run(torch.ones(2).npu(), Scale(3.0))


@pytest.mark.xfail(strict=True, reason="operators that take an object, in docs/wheel-faults.md")
def test_operators_of_torch_library_alone_get_the_object_of_the_call() -> None:
    library = torch.library.Library("captured_objects_alone", "DEF")
    library.define(f"scaled(Tensor x, {opaque.get_opaque_type_name(Scale)} by) -> Tensor")
    library.impl("scaled", lambda x, by: x * by.factor, "PrivateUse1")
    torch.library.register_fake("captured_objects_alone::scaled", lambda x, by: torch.empty_like(x), lib=library)
    operator = torch.ops.captured_objects_alone.scaled.default
    run = torch.compile(lambda x, by: operator(x, by) + 1, backend="npugraph_ex", fullgraph=True)
    assert [run(torch.ones(2).npu(), Scale(factor)).tolist() for factor in (3.0, 5.0)] == [[4, 4], [6, 6]]

"""Operators registered and checked where a program has modes of its own, as where a model is built."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

import ascend_graph

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf")
HEADER = "REG_OP(ModesNorm).INPUT(x, TensorType::ALL()).OUTPUT(y, TensorType::ALL()).OP_END_FACTORY_REG(ModesNorm)"
MODES: dict[str, Callable[[], Any]] = {
    "none": contextlib.nullcontext,
    "device": lambda: torch.device("npu"),
    "meta": lambda: torch.device("meta"),
    "fake": FakeTensorMode,
    "dispatch": lambda: FlopCounterMode(display=False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.fixture(scope="module")
def operator() -> Iterator[Any]:
    library = torch.library.Library("modes", "DEF")
    library.define("norm(Tensor x) -> Tensor")
    library.impl("norm", lambda x: x - x.sum(-1, keepdim=True).to(x.dtype), "CPU")
    yield torch.ops.modes.norm
    library._destroy()


@pytest.mark.parametrize("mode", MODES)
def test_registration_and_opcheck_have_tensors_of_their_own(operator: Any, mode: str) -> None:
    with MODES[mode]():
        ascend_graph.load_prototypes(HEADER)
        registered = ascend_graph.register_op("ModesNorm", eager=operator, shape="x[*s, d] -> y[*s, d]", batch=("*s",))
        try:
            assert "was compared with its parts" in registered.evidence["batch"]
            report = ascend_graph.opcheck("ModesNorm", checks=["runs", "arguments", "meta"])
        finally:
            registered.unregister()
        made = torch.ones(2, dtype=torch.float32)
    assert [result.state.value for result in report.outcomes] == ["passed"] * 3
    # The mode is in force again.
    assert made.device.type == {"device": "npu", "meta": "meta"}.get(mode, "cpu")
    assert (type(made) is torch.Tensor) == (mode != "fake")


def test_quantized_dtypes_of_a_prototype_are_not_drawn(operator: Any) -> None:
    ascend_graph.load_prototypes(HEADER)
    registered = ascend_graph.register_op("ModesNorm", eager=operator, shape="x[*s, d] -> y[*s, d]")
    try:
        report = str(ascend_graph.opcheck("ModesNorm", checks=["runs"]))
    finally:
        registered.unregister()
    assert "qint" not in report


def test_an_autocast_rule_takes_attrs(operator: Any) -> None:
    library = torch.library.Library("modes", "FRAGMENT")
    library.define("scale(Tensor x, *, float by=2.0) -> Tensor")
    library.impl("scale", lambda x, *, by=2.0: x * by, "CPU")
    ascend_graph.load_prototypes(
        "REG_OP(ModesScale).INPUT(x, ALL()).OUTPUT(y, ALL()).ATTR(by, Float, 2.0).OP_END_FACTORY_REG(ModesScale)"
    )
    registered = ascend_graph.register_op("ModesScale", eager=torch.ops.modes.scale, shape="x[*s] -> y[*s]")

    @torch.library.impl("modes::scale", "AutocastCPU", lib=library)
    def scale(x: torch.Tensor, **attrs: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return torch.ops.modes.scale(x.bfloat16(), **attrs)

    try:
        with torch.autocast("cpu"):
            eager = torch.ops.modes.scale(torch.ones(2), by=3.0)
            compiled = torch.compile(lambda x: torch.ops.modes.scale(x, by=3.0), backend="aot_eager")(torch.ones(2))
        for result in (eager, compiled):
            assert result.dtype == torch.bfloat16
            assert result.tolist() == [3, 3]
        assert torch.ops.modes.scale(torch.ones(2)).dtype == torch.float32
    finally:
        registered.unregister()
        library._destroy()

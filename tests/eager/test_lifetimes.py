"""Operators that are registered and unregistered while others call them, differentiate them, compile and capture
them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
import torch
from eager_package import PROTOTYPES, SHAPES
from torch._subclasses.fake_tensor import FakeTensorMode

import ascend_graph
from ascend_graph.dispatch import calls
from ascend_graph.dispatch.calls import CallsInFlightError, calls_of
from ascend_graph.dispatch.definition import RemovedOperatorError

Register = Callable[..., Any]

#: One thread changes what four call: by name and by what was looked up before, with gradients and without.
CHANGING = """
import collections, sys, threading, time
import torch, torch_npu, ascend_graph
from ascend_graph.dispatch.definition import RemovedOperatorError

sys.path.insert(0, {directory!r})
from eager_package import PROTOTYPES
ascend_graph.load_prototypes(PROTOTYPES)
backward = (lambda ctx, grad, *, x: 2 * grad) if {differentiated} else None
register = lambda **options: ascend_graph.register_op("Twice", shape="x[*s] -> y[*s]", backward=backward, **options)
seen, stop = collections.Counter(), threading.Event()
sys.setswitchinterval(1e-5)  # threads meet in windows of a few instructions

def call(find):
    x = torch.ones(4).npu()
    while not stop.is_set():
        try:
            y = find()(x.detach().requires_grad_() if {differentiated} else x)
            if {differentiated}:
                y.sum().backward()
            assert y.detach().tolist() == [2, 2, 2, 2]
            seen["called"] += 1
        except (RemovedOperatorError, AttributeError) as error:
            assert "twice" in str(error), error
            seen["gone"] += 1
            time.sleep(0.002)

current = [register()]
finds = [lambda: torch.ops.ascend.twice, lambda: current[0].overload] * 2
threads = [threading.Thread(target=call, args=(find,)) for find in finds]
for thread in threads:
    thread.start()
for turn in range({turns}):
    if turn % 2:
        current[0].unregister()
        current[0] = register()
    else:
        backward = (lambda ctx, grad, *, x, turn=turn: 2 * grad) if {differentiated} else None
        current[0] = register(override=True)
    time.sleep(0.005)
stop.set()
for thread in threads:
    thread.join()
print("called", seen["called"] > 0)
"""


@pytest.mark.parametrize("differentiated", [False, True])
def test_calls_and_changes_in_threads(package: Path, tmp_path: Path, differentiated: bool) -> None:
    """A call that is under way is one of the operator as it was; later ones find it as it is, or gone."""
    script = tmp_path / "changing.py"
    script.write_text(CHANGING.format(directory=str(Path(__file__).parent), differentiated=differentiated, turns=120))
    command = [sys.executable, "-X", "faulthandler", str(script)]
    done = preloaded.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "called True" in done.stdout
    assert "Error" not in done.stderr, done.stderr[-4000:]


@pytest.fixture
def register() -> Iterator[Register]:
    ascend_graph.load_prototypes(PROTOTYPES)
    made = []

    def one(op_type: str = "Twice", **options: Any) -> Any:
        options.setdefault("shape", SHAPES.get(op_type))
        made.append(ascend_graph.register_op(op_type, **options))
        return made[-1]

    yield one
    for operator in made:
        operator.unregister()


def test_a_backward_graph_outlives_the_operator(register: Register) -> None:
    x = torch.ones(2).npu().requires_grad_()
    for backward, expected in ((lambda ctx, grad, *, x: 2 * grad * x, [2, 2]), (None, None)):
        operator = register(backward=backward)
        y = operator(x)
        operator.unregister()
        if expected is None:
            with pytest.raises(RuntimeError, match="::twice has no gradient"):
                y.sum().backward()
        else:
            assert torch.autograd.grad(y.sum(), x)[0].tolist() == expected


def test_a_gradient_operator_that_is_gone_is_named(register: Register) -> None:
    gradient = register("AddCustomGrad", shape="dz[*s] -> dx[*s], dy[*s]")
    x = torch.ones(2).npu().requires_grad_()
    z = register("AddCustom", backward="AddCustomGrad")(x, x)
    gradient.unregister()
    with pytest.raises(RemovedOperatorError, match="ascend::add_custom_grad was removed"):
        z.sum().backward()


def test_a_capture_outlives_the_operator(register: Register) -> None:
    operator, x = register(), torch.ones(2).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = operator(x)
        operator.unregister()
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [10, 10]


def test_a_compiled_graph_names_the_operator_that_is_gone(register: Register) -> None:
    operator, x = register(), torch.ones(2).npu()
    overload = operator.overload
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: overload(x) + 1, backend="aot_eager")
    assert compiled(x).tolist() == [3, 3]
    operator.unregister()
    with pytest.raises((RemovedOperatorError, AttributeError), match="twice"):
        compiled(x)


def test_fake_calls_of_an_operator_that_is_gone(register: Register) -> None:
    operator = register()
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(2))
        assert operator(x).shape == (2,)
        operator.unregister()
        with pytest.raises(RemovedOperatorError, match="ascend::twice was removed"):
            operator(x)


def test_scripts_find_the_operator(register: Register) -> None:
    register()

    def call(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.ascend.twice(x)

    assert torch.jit.script(call)(torch.ones(2).npu()).tolist() == [2, 2]


# --------------------------------------------------------------------------------------------------- calls that do not
# end


def test_an_operator_is_not_changed_within_a_call_of_it(register: Register) -> None:
    within = [True, False]

    def meta(x: Any) -> Any:
        if within.pop(0):
            operator.unregister()
        return torch.empty_like(x)

    operator = register(shape=meta)
    with pytest.raises(CallsInFlightError, match="ascend::twice is registered or unregistered within a call of it"):
        operator(torch.empty(2, device="meta"))
    assert operator.registered
    assert operator(torch.ones(2).npu()).tolist() == [2, 2]


def test_a_change_does_not_wait_for_ever(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call waits for what the one who changes holds; the message says so, and nothing was changed."""
    monkeypatch.setattr(calls, "PATIENCE", 0.3)
    entered, leave = threading.Event(), threading.Event()

    def meta(x: Any) -> Any:
        entered.set()
        leave.wait(60)
        return torch.empty_like(x)

    operator = register(shape=meta)
    thread = threading.Thread(target=operator, args=(torch.empty(2, device="meta"),))
    thread.start()
    entered.wait(60)
    with pytest.raises(CallsInFlightError, match=r"ascend::twice is not changed: 1 thread\(s\) are within calls"):
        operator.unregister()
    leave.set()
    thread.join()
    assert operator.registered
    assert operator(torch.ones(2).npu()).tolist() == [2, 2]


def test_registering_within_a_call_that_a_change_waits_for(register: Register) -> None:
    """Each would wait for the other: the one within the call is told."""
    entered, errors = threading.Event(), []

    def meta(x: Any) -> Any:
        entered.set()
        while calls_of("ascend::twice") not in calls._drained:
            time.sleep(0.01)
        try:
            ascend_graph.register_op("Square", shape=SHAPES["Square"])
        except CallsInFlightError as error:
            errors.append(str(error))
        return torch.empty_like(x)

    operator = register(shape=meta)
    thread = threading.Thread(target=operator, args=(torch.empty(2, device="meta"),))
    thread.start()
    entered.wait(60)
    operator.unregister()
    thread.join()
    assert len(errors) == 1
    assert "registered within a call of ascend::twice, which another thread changes and waits for" in errors[0]

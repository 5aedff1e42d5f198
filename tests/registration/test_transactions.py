"""register_op, override, unregister in any order, failing at any stage: what is in force is what a model says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode

import ascend_graph
from ascend_graph import AscendGraphError
from ascend_graph.dispatch.definition import RemovedOperatorError, SchemaDefinition
from ascend_graph.dispatch.torchair import existing_converter, torchair
from ascend_graph.eager import plans
from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.registration import RegistrationError, planning, request
from ascend_graph.shapes import ShapeError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it

pytestmark = pytest.mark.filterwarnings("default")

PLAIN = """REG_OP(SeqTwice).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(SeqTwice)"""
IN_PLACE = """REG_OP(SeqAccumulate).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(x, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(SeqAccumulate)"""
LATER = """REG_OP(SeqTwice).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).ATTR(times, Int, 2)
    .OP_END_FACTORY_REG(SeqTwice)"""


class FaultError(Exception):
    """What a test lets happen."""


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """``faults(n)``: the n-th thing that is registered from now on fails, once; ``faults(None)``: none does."""
    left: list[int | None] = [None]

    def step() -> None:
        if left[0] is None:
            return
        left[0] -= 1
        if left[0] < 0:
            left[0] = None
            raise FaultError

    def failing(holder: Any, name: str) -> None:
        real = getattr(holder, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            step()
            return real(*args, **kwargs)

        monkeypatch.setattr(holder, name, wrapped)

    for name in ("register_meta", "register_converter", "register_mutation", "register_gradient"):
        failing(planning, name)
    failing(SchemaDefinition, "apply")
    failing(plans, "register_meta")
    failing(plans, "KernelHandle")

    def arm(n: int | None) -> None:
        left[0] = n

    return arm


def converter(x: Any, *args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
    return x


def prototype(text: str) -> OpPrototype:
    return parse_text(text).prototypes[0]


# ------------------------------------------------------------------------------------------------------- the operators


@dataclass(frozen=True)
class Way:
    """One way to register: what is passed, and what is then to be seen."""

    options: dict[str, Any]
    meta: Any = None
    gradient: int | None = None
    own_converter: bool = True


def _backward(factor: int) -> Callable[..., Any]:
    return lambda ctx, grad: grad * factor


def _new(size: int) -> Callable[..., Any]:
    return lambda x: x.new_empty(size)


#: For operators of others. ``override`` is drawn.
WAYS = [
    Way({"shape": "x[*s] -> y[5]"}, 5),
    Way({"shape": _new(6)}, 6),
    Way({"shape": "x[*s] -> y[7]", "backward": _backward(3)}, 7, 3),
    Way({"meta": _new(8), "backward": _backward(4), "converter": converter}, 8, 4),
    Way({"shape": "x[*s] -> y[9]", "converter": converter}, 9),
]
BAD = [
    {"shape": "nobody[n] -> y[n]"},
    {"shape": "x[n -> y[n]"},
    {"shape": "x[*s] -> y[5]", "backward": 3},
    {"shape": "x[*s] -> y[5]", "arguments": {"nothing": "x"}},
    {"shape": "x[*s] -> y[5]", "samples": [3]},
    {"meta": 3},
]
IN_PLACE_WAYS = [
    Way({"shape": "x -> x"}, "x"),
    Way({"meta": lambda x: x}, "x"),
    Way({"shape": "x -> x", "converter": converter}, "x"),
]


def seen_meta(overload: Any) -> Any:
    """What meta tensors and fake tensors get; they agree."""
    found = []
    for mode in (None, FakeTensorMode()):
        try:
            if mode is None:
                x = torch.empty(2, 3, device="meta")
                y = overload(x)
            else:
                with mode:
                    x = torch.empty(2, 3)
                    y = overload(x)
            found.append("x" if y is x else y.shape[-1])
        except (NotImplementedError, RuntimeError) as error:
            if not isinstance(error, NotImplementedError) and "Unsupported" not in type(error).__name__:
                raise
            found.append(None)
    assert found[0] == found[1]
    return found[0]


def seen_gradient(overload: Any) -> Any:
    name = overload.name()
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "Autograd"):
        return None
    x = torch.ones(2).npu().requires_grad_()
    try:
        overload(x).sum().backward()
    except RuntimeError:
        return None
    return None if x.grad is None else round(float(x.grad[0]))


class Machine(RuleBasedStateMachine):
    """One operator of others, with or without a meta function and a converter of theirs."""

    arm: Callable[[int | None], None]
    numbers = count()

    def __init__(self) -> None:
        super().__init__()
        self.library = torch.library.Library("seq", "FRAGMENT")
        self.theirs: list[torch.library.Library] = []
        self.overload: Any = None
        self.now: Any = None
        self.way: Way | None = None

    @precondition(lambda self: self.overload is None)
    @rule(
        kind=st.sampled_from(["bare", "fake", "meta kernel", "converter", "both", "in place"]),
    )
    def begin(self, kind: str) -> None:
        name = f"op{next(self.numbers)}"
        self.in_place = kind == "in place"
        self.library.define(f"{name}(Tensor(a!) x) -> Tensor(a!)" if self.in_place else f"{name}(Tensor x) -> Tensor")
        self.library.impl(name, (lambda x: x.mul_(2)) if self.in_place else (lambda x: x.detach() * 2), "PrivateUse1")
        self.overload = getattr(torch.ops.seq, name).default
        self.base_meta = None
        if kind == "fake":
            torch.library.register_fake(f"seq::{name}", lambda x: x.new_empty(2), lib=self.library)
            self.base_meta = 2
        elif kind in ("meta kernel", "both"):
            self.library.impl(name, lambda x: x.new_empty(3), "Meta")
            self.base_meta = 3
        if kind in ("converter", "both"):
            torchair().fx.register_fx_node_ge_converter(self.overload)(converter)
        self.base_converter = existing_converter(self.overload)
        self.converter = self.base_converter

    @precondition(lambda self: self.overload is not None)
    @rule(way=st.integers(0, len(WAYS) - 1), override=st.booleans(), fault=st.none() | st.integers(0, 4))
    def register(self, way: int, override: bool, fault: int | None) -> None:
        ways = IN_PLACE_WAYS if self.in_place else WAYS
        chosen = ways[way % len(ways)]
        theirs = self.base_meta is not None or ("converter" in chosen.options and self.base_converter is not None)
        refused = not override and (self.way not in (None, chosen) or (self.way is None and theirs))
        self.arm(fault)
        try:
            self.now = self.register_op(**chosen.options, override=override)
        except FaultError:
            return
        except RegistrationError:
            if not refused:
                raise
            return
        finally:
            self.arm(None)
        assert not refused
        if self.way is not chosen:
            made = override or self.base_converter is None
            before, self.converter = self.converter, existing_converter(self.overload)
            assert (self.converter is not before) if made else (self.converter is self.base_converter)
        self.way = chosen

    @precondition(lambda self: self.overload is not None)
    @rule(options=st.sampled_from(BAD))
    def register_badly(self, options: dict[str, Any]) -> None:
        with pytest.raises(AscendGraphError):
            self.register_op(**options, override=True)

    @precondition(lambda self: self.now is not None)
    @rule()
    def unregister(self) -> None:
        self.now.unregister()
        self.now.unregister()
        assert not self.now.registered
        self.now, self.way, self.converter = None, None, self.base_converter

    @precondition(lambda self: self.overload is not None)
    @invariant()
    def in_force(self) -> None:
        if self.overload is None:
            return
        registered = [op for op in ascend_graph.registered_ops() if op.overload is self.overload]
        assert registered == ([] if self.now is None else [self.now])
        assert seen_meta(self.overload) == (self.base_meta if self.way is None else self.way.meta)
        assert existing_converter(self.overload) is self.converter
        assert seen_gradient(self.overload) == (None if self.way is None else self.way.gradient)
        assert (FunctionalTensorMode in self.overload.python_key_table) == (self.in_place and self.way is not None)
        x = torch.ones(1).npu()
        assert float(self.overload(x)) == 2

    def register_op(self, **options: Any) -> Any:
        op_type = "SeqAccumulate" if self.in_place else "SeqTwice"
        return ascend_graph.register_op(op_type, eager=self.overload, **options)

    def teardown(self) -> None:
        self.arm(None)
        if self.now is not None:
            self.now.unregister()
        self.library._destroy()


OWN_WAYS = [
    ("x[*s] -> y[*s, 4]", None),
    ("x[a, b] -> y[a, b, 5]", None),
    ("x[*s] -> y[*s, 6]", lambda ctx, grad: grad.sum(-1)),
]


class OwnMachine(RuleBasedStateMachine):
    """An operator that registering defines, of a prototype that changes: with one attr more its schema is another."""

    arm: Callable[[int | None], None]
    choose: Callable[[OpPrototype], None]

    def __init__(self) -> None:
        super().__init__()
        self.now: Any = None
        self.state: tuple[int, int] | None = None

    @rule(way=st.integers(0, 2), version=st.integers(0, 1), override=st.booleans(), fault=st.none() | st.integers(0, 6))
    def register(self, way: int, version: int, override: bool, fault: int | None) -> None:
        self.choose(prototype((PLAIN, LATER)[version]))
        shape, backward = OWN_WAYS[way]
        refused = not override and self.state not in (None, (way, version))
        self.arm(fault)
        try:
            made = ascend_graph.register_op("SeqTwice", shape=shape, backward=backward, override=override)
        except FaultError:
            return
        except RegistrationError:
            if not refused:
                raise
            return
        finally:
            self.arm(None)
        assert not refused
        if self.now is not None and made is not self.now:
            assert not self.now.registered
            if self.state is not None and self.state[1] != version:
                with pytest.raises(RemovedOperatorError):
                    self.now(torch.empty(2, 3, device="meta"))
        self.now, self.state = made, (way, version)

    @rule(shape=st.sampled_from(["nobody[n] -> y[n]", "x[*s] -> z[*s]", None]))
    def register_badly(self, shape: str | None) -> None:
        with pytest.raises(AscendGraphError):
            ascend_graph.register_op("SeqTwice", shape=shape, override=True)

    @precondition(lambda self: self.now is not None)
    @rule()
    def unregister(self) -> None:
        self.now.unregister()
        self.now, self.state = None, None

    @invariant()
    def in_force(self) -> None:
        if self.state is None or self.now is None:
            assert not hasattr(torch.ops.ascend, "seq_twice")
            return
        way, version = self.state
        overload = torch.ops.ascend.seq_twice.default
        assert self.now.registered
        assert self.now.overload is overload, "who holds it may go on calling it"
        assert len(overload._schema.arguments) == 1 + version
        assert seen_meta(overload) == 4 + way
        assert existing_converter(overload) is not None
        with pytest.raises(AscendGraphError) as caught:  # the kernel's shapes are asked before its aclnn function
            overload(torch.ones(2).npu())
        assert ("ShapeError" if way == 1 else "MissingFunctionError") == type(caught.value).__name__
        assert torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "Autograd") or way != 2

    def teardown(self) -> None:
        self.arm(None)
        if self.now is not None:
            self.now.unregister()


@pytest.fixture(autouse=True)
def loaded() -> Iterator[None]:
    ascend_graph.load_prototypes(PLAIN + IN_PLACE)
    yield
    torch._dynamo.reset()


SETTINGS = settings(max_examples=25, stateful_step_count=12, deadline=None)


def test_an_operator_of_others(faults: Callable[[int | None], None]) -> None:
    machine = type("Tested", (Machine,), {"arm": staticmethod(faults)})
    run_state_machine_as_test(machine, settings=SETTINGS)


def test_an_operator_of_our_own(faults: Callable[[int | None], None], monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(prototype: OpPrototype) -> None:
        monkeypatch.setattr(request, "find_prototype", lambda op_type: prototype)

    machine = type("Tested", (OwnMachine,), {"arm": staticmethod(faults), "choose": staticmethod(choose)})
    run_state_machine_as_test(machine, settings=SETTINGS)


# ------------------------------------------------------------------------------------------------ each proved fault


@pytest.fixture
def define() -> Iterator[Callable[..., Any]]:
    """``define(name, schema, meta)``: an operator with an NPU kernel; what is registered for it goes with the test."""
    library = torch.library.Library("seq_one", "FRAGMENT")
    made = []

    def one(name: str, schema: str = "(Tensor x) -> Tensor", meta: Any = None) -> Any:
        library.define(name + schema)
        library.impl(name, lambda x: x * 2, "PrivateUse1")
        if meta is not None:
            library.impl(name, meta, "Meta")
        made.append(getattr(torch.ops.seq_one, name).default)
        return made[-1]

    yield one
    for registered in ascend_graph.registered_ops():
        if registered.overload in made:
            registered.unregister()
    library._destroy()


def test_a_failed_override_leaves_the_converter_of_others(
    define: Callable[..., Any], faults: Callable[[int | None], None]
) -> None:
    overload = define("kept_converter")
    torchair().fx.register_fx_node_ge_converter(overload)(converter)
    theirs = existing_converter(overload)
    first = ascend_graph.register_op("SeqTwice", eager=overload, shape="x[*s] -> y[*s]")
    assert "kept" in first.evidence["converter"]
    faults(2)
    with pytest.raises(FaultError):
        ascend_graph.register_op("SeqTwice", eager=overload, shape="x[n] -> y[n]", backward=_backward(2), override=True)
    assert first.registered
    assert existing_converter(overload) is theirs


def test_samples_that_are_given_once(define: Callable[..., Any]) -> None:
    """A generator is read once, and the same samples are the same call, tensors or not."""
    overload = define("sampled")

    def given(fill: float = 1) -> list[Any]:
        return [((torch.full(sizes, fill).npu(),), {}) for sizes in [(2, 3), (4,), (2, 3, 5), (7, 2)]]

    samples = given()
    first = ascend_graph.register_op("SeqTwice", eager=overload, samples=(sample for sample in samples))
    assert ascend_graph.register_op("SeqTwice", eager=overload, samples=samples) is first
    assert ascend_graph.register_op("SeqTwice", eager=overload, samples=given()) is first
    with pytest.raises(RegistrationError, match="samples: registered"):
        ascend_graph.register_op("SeqTwice", eager=overload, samples=given(2))


def test_a_custom_op_without_a_meta_function_has_none() -> None:
    @torch.library.custom_op("seq_one::bare", mutates_args=())
    def bare(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    overload = torch.ops.seq_one.bare.default
    registered = ascend_graph.register_op("SeqTwice", eager=overload, shape="x[*s] -> y[*s]")
    with FakeTensorMode():
        assert overload(torch.empty(2, 3)).shape == (2, 3)
    registered.unregister()
    with FakeTensorMode(), pytest.raises(RuntimeError, match="no fake impl"):
        overload(torch.empty(2, 3))


def test_a_custom_op_that_returns_nothing_has_no_meta_function_of_its_author() -> None:
    @torch.library.custom_op("seq_one::doubles", mutates_args=("x",))
    def doubles(x: torch.Tensor) -> None:
        x.mul_(2)

    overload = torch.ops.seq_one.doubles.default
    registered = ascend_graph.register_kernel(eager=overload, shape="x[n, m] ->")
    with FakeTensorMode(), pytest.raises(ShapeError, match="x"):
        overload(torch.empty(2))
    registered.unregister()
    with FakeTensorMode():
        overload(torch.empty(2))


@pytest.mark.parametrize("ours", ["x[*s] -> y[5]", _new(5)])
def test_a_meta_kernel_comes_back_for_fake_tensors_and_modes(define: Callable[..., Any], ours: Any) -> None:
    """Where a mode is active torch asks a second table, which taking a kernel back leaves as it is."""
    overload = define(f"comes_back_{type(ours).__name__}", meta=lambda x: x.new_empty(3))
    registered = ascend_graph.register_op("SeqTwice", eager=overload, shape=ours, override=True)
    assert seen_meta(overload) == 5
    registered.unregister()
    assert seen_meta(overload) == 3


def test_an_operator_that_returns_what_it_writes_twice(define: Callable[..., Any]) -> None:
    overload = define("again_", "(Tensor(a!) x) -> Tensor(a!)")
    for _ in range(2):
        ascend_graph.register_op("SeqAccumulate", eager=overload, shape="x -> x").unregister()
    assert not overload.functorch_table
    assert not overload.py_kernels
    assert not overload.python_key_table


def test_a_name_that_others_have_taken() -> None:
    library = torch.library.Library("ascend", "FRAGMENT")
    library.define("seq_twice(Tensor x) -> Tensor")
    try:
        with pytest.raises(AscendGraphError, match="ascend::seq_twice exists already; pass it as eager="):
            ascend_graph.register_op("SeqTwice", shape="x[*s] -> y[*s]")
    finally:
        library._destroy()


@pytest.mark.parametrize("sample", [3, (1, 2), ((1,), {}, 3), "ab"])
def test_what_is_no_sample(define: Callable[..., Any], sample: Any) -> None:
    with pytest.raises(RegistrationError, match=r"samples\[1\] is .*; expected \(args, kwargs\)"):
        ascend_graph.register_op(
            "SeqTwice", eager=define("sample"), samples=[((torch.ones(2),), {}), sample], override=True
        )

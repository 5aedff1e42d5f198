"""The fuzzer: what it draws, how it shrinks, what it calls a fault of the wheel, and that a planted fault is found."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from random import Random

import pytest
import torch

from ascend_graph.host.kernels import find_host_kernel
from benchmarks.fuzz import compare, planted, reference
from benchmarks.fuzz.arrangements import ARRANGEMENTS, recomputed
from benchmarks.fuzz.cases import generate_case
from benchmarks.fuzz.causes import cause_of
from benchmarks.fuzz.check import judge, run_mode
from benchmarks.fuzz.controls import calls_operators
from benchmarks.fuzz.deploy import reference_function
from benchmarks.fuzz.findings import FuzzFinding, pattern_of
from benchmarks.fuzz.generate import LINES, generate, generate_line
from benchmarks.fuzz.known import KNOWN, known_fault
from benchmarks.fuzz.minimize import minimized, valid
from benchmarks.fuzz.modes import Earlier, ModeResult, call_once, cpu_results, prepare
from benchmarks.fuzz.operators import AttrSpec, FuzzOperator, FuzzOutput, InputSpec, prototype, relation, schema
from benchmarks.fuzz.programs import FuzzProgram, Input, ProgramLine, from_json, make_arguments, to_json
from benchmarks.fuzz.script import script
from benchmarks.fuzz.settings import OWNERS, Holder, Setting
from benchmarks.fuzz.workers import overdue, processor_time
from benchmarks.fuzz.woven import generate_woven


def program(
    *lines: tuple[str, tuple[str, ...], tuple[str, ...]], outputs: tuple[str, ...], inputs: int = 1
) -> FuzzProgram:
    """Return a program of float32 inputs of one dimension."""
    names = tuple(Input(f"x{i}", "float32", ("a",)) for i in range(inputs))
    return FuzzProgram(1, names, tuple(ProgramLine(*line) for line in lines), outputs, ({"a": 3},))


# ------------------------------------------------------------------------------------------------------------ what is
# drawn


def test_a_seed_is_a_program() -> None:
    assert [to_json(generate(seed)) for seed in range(5)] == [to_json(generate(seed)) for seed in range(5)]
    assert [to_json(generate_case(seed)) for seed in range(5)] == [to_json(generate_case(seed)) for seed in range(5)]
    assert [to_json(generate_woven(seed)) for seed in range(3)] == [to_json(generate_woven(seed)) for seed in range(3)]
    assert len({to_json(generate(seed)) for seed in range(5)}) == 5


def test_a_program_is_data() -> None:
    for made in (generate(3), generate_case(3), generate_woven(3)):
        assert from_json(to_json(made)) == made
        compile(made.source(), "program", "exec")
        compile(script(made, "ge"), "script", "exec")


def test_draws_hold_what_they_promise() -> None:
    drawn = [generate(seed) for seed in range(40)]
    assert all(node.targets or "_" in node.text or "=" in node.text for p in drawn for node in p.nodes)
    assert any(p.grad for p in drawn)
    assert any(p.dynamic for p in drawn)
    assert any(i.alias for p in drawn for i in p.inputs)
    assert any(i.layout == "gaps" for p in drawn for i in p.inputs)
    assert any(not node.targets for p in drawn for node in p.nodes)
    cases = [generate_case(seed).operators[0] for seed in range(60)]
    assert {op.route for op in cases} == {"own", "overload", "aclnn"}
    assert any(op.in_place for op in cases)
    assert any(op.backward for op in cases)
    assert any(op.batch for op in cases)
    assert any(op.batch == () and i.kind == "list" for op in cases for i in op.inputs)
    assert generate_case(0, "author").operators[0].functional == "author"
    assert generate_case(0, "gradient").grad
    assert {i.kind for op in cases for i in op.inputs} == {"required", "optional", "list"}
    assert len({a.type for op in cases for a in op.attrs}) >= 7


def test_woven_programs_call_operators_between_other_lines() -> None:
    drawn = [p for p in map(generate_woven, range(12)) if p.operators]
    assert all(p.operators[0].backward == p.grad for p in drawn)
    called = [[node.text[:3] for node in p.nodes] for p in drawn]
    assert any("op1" in texts and texts[-1] not in ("op0", "op1") for texts in called)
    assert any(texts.count("op0") > 2 for texts in called)


def test_a_line_alone_is_a_program_of_that_line() -> None:
    line = next(line for line in LINES["write"] if "cumsum_" in line[1])
    found = next(p for seed in range(20) if (p := generate_line(line, seed)) is not None)
    assert "cumsum_" in found.nodes[-1].text


def test_a_write_to_what_the_same_call_reads_is_not_drawn() -> None:
    column = ("{0}.as_strided({0}.shape[:1], {0}.stride()[:1], 0)", ("x0",), ("v0",))
    made = program(column, ("{0}.copy_({1})", ("x0", "v0"), ()), outputs=("x0",))
    square = replace(made, inputs=(replace(made.inputs[0], sizes=("a", "a")),))
    assert not valid(square)  # its values depend on the order in which copy_ goes over the rows
    assert valid(program(("{0}.add_({0})", ("x0",), ()), ("{0}[0].copy_({0}[-1])", ("x0",), ()), outputs=("x0",)))
    doubled = program(
        ("{0}.as_strided((2, 2), (1, 1))", ("x0",), ("v0",)), ("{0}.mul_(2)", ("v0",), ()), outputs=("n",)
    )
    assert not valid(doubled)


# ---------------------------------------------------------------------------------------------------------------
# operators

_SCALED = FuzzOperator(
    "Scaled",
    (InputSpec("x", "required", ("m", "n"), label="x"), InputSpec("bias", "optional", ("n",), label="b_t")),
    (AttrSpec("axis", "Int", 2, "dim"), AttrSpec("mode", "String", None, "mode")),
    (FuzzOutput("y", ("n",), ("2 * n",), (1.0, 2.0)),),
    ("float32", "float16"),
    route="overload",
    order=(1, 0, 3, 2),
)


def test_an_operator_is_a_prototype_a_relation_and_a_schema() -> None:
    assert ".OPTIONAL_INPUT(bias, TensorType({DT_FLOAT, DT_FLOAT16}))" in prototype(_SCALED)
    assert ".ATTR(axis, Int, 2)" in prototype(_SCALED)
    assert ".REQUIRED_ATTR(mode, String)" in prototype(_SCALED)
    assert relation(_SCALED) == "x[m, n], bias[n] -> y[2 * n]"
    assert schema(_SCALED) == "scaled(Tensor? b_t, Tensor x, *, str mode, int dim=2) -> (Tensor y)"


def test_the_reference_is_by_the_description() -> None:
    x, bias = torch.ones(2, 3), torch.full((3,), 0.5)
    call = reference_function(_SCALED)
    given = call(bias, x, mode="", dim=4)
    # The sum over m of x, twice the bias, a quarter of the attr; and what is made twice as long has the other sign
    # there.
    assert given.tolist() == [2.0 + 1.0 + 1.0] * 3 + [-4.0] * 3
    assert call(None, x, mode="")[0].item() == 2.0 + 2 * 3.0 + 0.5  # an absent input is not one of zeros


# ------------------------------------------------------------------------------------------------------------ what
# differs


def test_values_that_rounding_decides_are_not_compared() -> None:
    made = program(("torch.floor({0} * 10 / 10)", ("x0",), ("v0",)), outputs=("v0",))
    (expected,) = cpu_results(made)
    near = replace(expected, outputs=[expected.outputs[0] - torch.tensor([0.0, 0.0, 0.0])])
    assert compare.differs(made, "eager", 0, near, expected) is None
    off = replace(expected, outputs=[expected.outputs[0] + 2])
    assert compare.differs(made, "eager", 0, off, expected) == (
        "value of outputs",
        "[0]: 3 of 3 values differ, at (0,): " + _first(off, expected),
    )


def _first(actual: ModeResult, expected: ModeResult) -> str:
    return f"{actual.outputs[0][0].item()!r}, not {expected.outputs[0][0].item()!r}"


def test_shared_memory_is_compared() -> None:
    made = program(("{0}[1:]", ("x0",), ("v0",)), outputs=("v0",))
    (expected,) = cpu_results(made)
    assert expected.shared == (("argument 0", "output 0"),)
    assert compare.differs(made, "eager", 0, replace(expected, shared=()), expected) == (
        "memory is not shared",
        "argument 0 and output 0",
    )


def test_memory_that_results_share_in_one_mode_alone_is_compared() -> None:
    made = program(
        ("{0} * 2", ("x0",), ("v0",)),
        ("{0}[1:]", ("v0",), ("v1",)),
        ("{0} * 3", ("x0",), ("v2",)),
        outputs=("v0", "v1", "v2"),
    )
    (expected,) = cpu_results(made)
    lost, kept = compare.without_lost_sharing(replace(expected, shared=()), expected)
    assert compare.differs(made, "ge", 0, lost, kept) is None  # that of v0 and v1, which graphs do not promise
    more, kept = compare.without_lost_sharing(replace(expected, shared=(("output 0", "output 2"),)), expected)
    assert compare.differs(made, "ge", 0, more, kept) == ("memory is shared", "output 0 and output 2")


def test_an_argument_of_an_earlier_call_may_not_change() -> None:
    before, kept = Earlier(), list[torch.Tensor]()

    def keeping(x: torch.Tensor) -> tuple[torch.Tensor]:
        kept.append(x)
        kept[0].add_(len(kept) - 1)
        return (x,)

    results = [call_once(keeping, [torch.ones(2)], "cpu", False, before) for _ in range(2)]
    assert [r.earlier for r in results] == [(), ("argument 0 of call 1",)]


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("exchanged", [False, True])
def test_inputs_that_are_held_stay_the_same_tensors(owner: str, exchanged: bool) -> None:
    holder = Holder(Setting(("x0",), owner, exchanged), ["x0", "x1"])
    seen = list[torch.Tensor]()

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen.append(x)
        return x + y

    run = holder.bound(function, lambda inner: inner)
    for number in range(4):
        kept = holder.keep([torch.full((2,), float(number)), torch.ones(2)])
        assert kept[0] is (run(*kept), seen[-1])[1]
        assert run(*kept).tolist() == [number + 1.0] * 2
    assert len({*map(id, seen)}) == 1 + exchanged


def test_a_program_that_keeps_its_first_tensor_differs_where_inputs_are_exchanged() -> None:
    made = replace(
        program(("{0} + 1", ("x0",), ("v0",)), outputs=("v0",)), setting=Setting(("x0",), "caller", exchanged=True)
    )
    assert from_json(to_json(made)) == made
    kept = list[torch.Tensor]()

    def keeping(x: torch.Tensor, n: int) -> tuple[torch.Tensor]:
        kept.append(x)
        return (kept[0] + 1,)

    holder = Holder(made.setting, made.names())
    for call in range(3):
        x, n = make_arguments(made, 0)
        result = call_once(keeping, [x * (call + 1), n], "cpu", False, holder=holder)
        assert torch.equal(result.outputs[0], x * (call + 1) + 1) == (call == 0)


def test_a_written_argument_is_compared() -> None:
    made = program(("{0}.add_(1)", ("x0",), ()), outputs=("n",))
    (expected,) = cpu_results(made)
    found = compare.differs(made, "ge", 0, replace(expected, arguments=make_arguments(made, 0)), expected)
    assert found is not None
    assert found[0] == "value of arguments"


def test_an_error_is_the_same_whatever_numbers_are_in_it() -> None:
    one = pattern_of("RuntimeError: node Add_1 (Add): output 0 has shape [8]; [7] was inferred")
    assert one == pattern_of("RuntimeError: node Add_23 (Add): output 1 has shape [5, 4]; [5, 3] was inferred")
    assert one != pattern_of("RuntimeError: node Add_1 (Add): input 0 has shape [8]; [7] was inferred")


# ---------------------------------------------------------------------------------------------------------------
# smaller


def test_the_minimizer_shrinks_to_what_fails() -> None:
    large = generate(12)
    line = ProgramLine("torch.special.sinc({0})", ("x9",), ("v90",))
    grown = replace(
        large,
        inputs=(*large.inputs, Input("x9", "float16", ("a", "b"), "transposed")),
        nodes=(*large.nodes, line, ProgramLine("{0} + 1", ("v90",), ("v91",))),
        outputs=(*large.outputs, "v91", "v90"),
    )
    asked: list[FuzzProgram] = []

    def fails(candidate: FuzzProgram) -> bool:
        asked.append(candidate)
        return any("sinc" in node.text and node.targets[0] in candidate.outputs for node in candidate.nodes)

    small = minimized(grown, fails)
    assert [node.text for node in small.nodes] == ["torch.special.sinc({0})"]
    assert [i.sizes for i in small.inputs] == [()]
    assert small.inputs[0].layout == "plain"
    assert small.inputs[0].dtype == "float32"
    assert len(small.sizes) == 1
    assert len(small.outputs) == 1
    assert all(cpu_results(p) for p in asked), "a program that the CPU refuses is never asked about"


# ------------------------------------------------------------------------------------------------------ what is not
# ours


def test_a_refusal_names_its_cause() -> None:
    made = generate(0)
    text = "RuntimeError: torch.ops.aten.trunc.default ge_converter is not implemented!"
    assert cause_of(text, made) == "TorchAir has no converter for aten.trunc.default"
    assert cause_of("RuntimeError: node Add: something else", made) == ""
    dtypes = "AssertionError: Inputs data type mismatch 27 vs. 27\n\nWhile executing %eq"
    assert "two dtypes" in cause_of(f"{dtypes} : [num_users=1]", made)
    assert cause_of(f"{dtypes.replace('%eq', '%add')} : [num_users=1]", made) == ""


_MODIFIED = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
)


@pytest.mark.parametrize(
    ("form", "lines", "named"),
    [
        ("pair", ("op0({0})", "{0}.add_(1)"), True),
        ("pair", ("op0({0})", "{0}[1:].add_(1)"), True),
        ("pair", ("{0}.add_(1)", "op0({0})"), False),
        ("pair", ("op0({0}.clone())", "{0}.add_(1)"), False),
        ("pair", ("op0({0}).add_(1)",), False),
        ("saved", ("op0({0}).add_(1)",), True),
    ],
)
def test_a_write_to_what_a_gradient_keeps_is_known_by_the_program(
    form: str, lines: tuple[str, ...], named: bool
) -> None:
    kept = FuzzOperator(
        "Kept",
        (InputSpec("x", "required", ("n",), label="x"),),
        (),
        (FuzzOutput("y", ("n",), ("n",), (1.0,)),),
        ("float32",),
        order=(0,),
        backward=True,
        form=form,
    )
    made = program(("{0} * 1", ("x0",), ("v0",)), *((line, ("v0",), ()) for line in lines), outputs=("v0",))
    assert bool(cause_of(_MODIFIED, replace(made, operators=(kept,)))) == named


@pytest.mark.parametrize("squeezed", [True, False])
def test_what_pytorchs_tracing_refuses_on_the_device_alone_is_known(squeezed: bool) -> None:
    lines = (
        ("F.linear({0}, {0}.reshape(-1, {0}.shape[-1]))", ("x0",), ("v0",)),
        ("torch.atleast_2d({0})", ("v0",), ("v1",)),
        ("{0}.squeeze(0).reshape(-1)", ("v0",), ("v2",)),
    )
    made = program(*lines, outputs=("v1", "v2") if squeezed else ("v1",))
    made = replace(made, inputs=(replace(made.inputs[0], grad=True),), sizes=({"a": 4},))
    prepare()
    expected = cpu_results(made)
    _, finding = run_mode(made, "npugraph_ex", expected)
    assert finding is None or squeezed
    finding = finding or FuzzFinding("program 1", "npugraph_ex", "raises", "AssertionError: incorrect out shape")
    assert judge(made, finding, expected)[1] == (_DEVICE if squeezed else "")


_DEVICE = "PyTorch's own tracing refuses it on the device"


def test_a_fault_of_the_wheel_has_a_row_in_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs/wheel-faults.md").read_text()
    assert all(f"| `{fault.name}` |" in page for fault in KNOWN)


@pytest.mark.parametrize("fault", KNOWN, ids=lambda fault: fault.name)
def test_a_fault_of_the_wheel_is_recognized_by_the_program(fault: object) -> None:
    prepare()  # some of them run the program in both kinds of graphs
    made, finding = fault.smallest()  # type: ignore[attr-defined]
    assert known_fault(made, finding) == fault.name  # type: ignore[attr-defined]
    sibling, of_sibling = fault.sibling()  # type: ignore[attr-defined]
    assert known_fault(sibling, of_sibling) == ""
    assert known_fault(made, replace(finding, kind="value of gradients", message="1 of 3 values differ")) == ""


def test_an_overwritten_input_of_booleans_is_recognized() -> None:
    prepare()
    view = program(("{0}.view(-1, 1)", ("x0",), ("v0",)), outputs=("v0",))
    made = replace(view, inputs=(Input("x0", "bool", (3,)),), sizes=({}, {}))
    finding = run_mode(made, "npugraph_ex", cpu_results(made))[1]
    assert finding is not None
    assert finding.kind == "value of earlier arguments"
    assert known_fault(made, finding) == "view-of-first-input"


def test_a_call_whose_only_results_are_empty_lists_is_in_no_graph() -> None:
    """An input of such a program is overwritten as one of a program of ATen operators alone."""
    dropped = generate_case(62010017)
    assert "[]" in dropped.source()
    assert not calls_operators(dropped)
    assert calls_operators(generate_case(62010018))


def test_the_bits_of_an_input_are_recognized_next_to_another_fault() -> None:
    prepare()
    written = (("{0}.mul_({0})", ("x0",), ()), ("{0}[1:]", ("x0",), ("v0",)))
    lines = (*written, ("torch.sin({0})", ("x1",), ("v1",)))
    made = program(*lines, outputs=("v1", "v0"), inputs=2)
    inputs = (made.inputs[0], replace(made.inputs[1], layout="negated"))
    made = replace(made, inputs=inputs, sizes=({"a": 3}, {"a": 5}))
    finding = run_mode(made, "ge_dynamic", cpu_results(made))[1]
    assert finding is not None
    assert known_fault(made, finding) == "bits-of-inputs"


def test_a_control_may_differ_as_pytorchs_own_tracing_does() -> None:
    prepare()
    lines = (
        ("torch.where({0} > 0, {0}, 2.0)", ("x0",), ("v0",)),
        ("torch._foreach_add_([{0}, {0}], 1)", ("x1",), ()),  # traced, it adds 1 where eager mode adds 2
    )
    made = program(*lines, outputs=("v0",), inputs=2)
    made = replace(made, inputs=(replace(made.inputs[0], grad=True), made.inputs[1]))
    finding = run_mode(made, "npugraph_ex", cpu_results(made))[1]
    assert finding is not None
    assert known_fault(made, finding) == "real-constant-in-gradient"


def test_arrangements_are_in_memory_as_they_are_called() -> None:
    values = torch.arange(6.0).reshape(2, 3)
    assert ARRANGEMENTS["expanded"](values).stride() == (0, 1)
    assert ARRANGEMENTS["windows"](values).stride() == (1, 1)
    assert ARRANGEMENTS["stepped"](values).storage_offset() == 1
    assert ARRANGEMENTS["negated"](values).is_neg()
    for name in ("stepped", "negated"):
        torch.testing.assert_close(ARRANGEMENTS[name](values).resolve_neg(), values)
    drawn = [generate(seed) for seed in range(12)]
    assert any(i.layout in ARRANGEMENTS for made in drawn for i in made.inputs)


def test_a_program_that_writes_to_no_argument_may_be_recomputed() -> None:
    made = program(("torch.sin({0})", ("x0",), ("v0",)), outputs=("v0",))
    made = replace(made, inputs=(replace(made.inputs[0], grad=True),))
    assert {recomputed(made, Random(n)).checkpoint for n in range(20)} == {False, True}
    checked = replace(made, checkpoint=True)
    assert from_json(to_json(checked)) == checked
    (plain,), (again,) = cpu_results(made)[:1], cpu_results(checked)[:1]
    torch.testing.assert_close(again.gradients, plain.gradients)
    writes = replace(made, nodes=(ProgramLine("{0}.detach().mul_(2)", ("x0",)), *made.nodes))
    assert not any(recomputed(writes, Random(n)).checkpoint for n in range(20))


@pytest.mark.parametrize("layout", ["plain", "offset"])
def test_as_strided_of_an_input_with_an_offset_is_the_wheels_fault(layout: str) -> None:
    line = ("{0}.as_strided({0}.shape[:1], {0}.stride()[:1], 0)", ("x0",), ("v0",))
    made = program(line, ("{0}.add_(1)", ("v0",), ()), outputs=("n",))
    made = replace(made, inputs=(replace(made.inputs[0], layout=layout),))
    finding = FuzzFinding("program 0", "ge_dynamic", "value of arguments", "call 1: [0]: 2 of 3 values differ")
    assert known_fault(made, finding) == ("as-strided-of-a-view" if layout == "offset" else "")


@pytest.mark.slow
def test_a_planted_fault_is_found() -> None:
    count, missed = planted.search(0, ["subtraction_is_reversed"])
    assert (count, missed) == (1, [])


@pytest.mark.parametrize("fault", planted.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: planted.Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it replaces is there: names of the product that moved are found here, not by a search that finds nothing."""
    replaced = []

    def around(module: str, path: str, _: object) -> None:
        replaced.append(attrgetter(path)(import_module(module)))

    monkeypatch.setattr(planted, "_around", around)
    monkeypatch.setattr(planted, "_kernel", lambda op_type, _: replaced.append(find_host_kernel(op_type)))
    monkeypatch.setattr(
        planted, "_dispatched", lambda overload, _: replaced.append(attrgetter(overload)(torch.ops.aten))
    )
    fault.plant()
    assert replaced
    assert all(replaced)


def test_only_processor_time_counts_against_a_process() -> None:
    """A busy machine is no reason to call a program dead; waiting for what does not come is."""
    assert overdue(elapsed=1000, used=170, limit=180) == ""
    assert overdue(elapsed=200, used=181, limit=180) == "no result after 180 seconds of processor time"
    assert overdue(elapsed=200, used=1, limit=180) == "no result after 200 seconds, idle"
    before = processor_time(os.getpid())
    start = time.process_time()
    while time.process_time() < start + 0.1:
        pass
    assert processor_time(os.getpid()) > before


def test_variations_hold_what_they_promise() -> None:
    cases = [generate_case(seed) for seed in range(150)]
    ops = [case.operators[0] for case in cases]
    names = [[*(i.name for i in op.inputs), *(o.name for o in op.outputs)] for op in ops]
    assert any(a != b and b.removesuffix("Ref") == a for group in names for a in group for b in group)
    assert any(o.count for op in ops for o in op.outputs)
    assert {op.form for op in ops if op.backward} == {"pair", "names", "saved"}
    assert any(op.forward and not op.backward for op in ops)
    assert any(a.type == "ListType" for op in ops for a in op.attrs)
    assert {"Scalar", "int?", "SymInt[]"} <= {a.schema_type for op in ops for a in op.attrs}
    assert any(a.schema_default not in (None, a.default) for op in ops for a in op.attrs)
    assert any("unbind(0)" in case.source() for case in cases)
    # Parts of one tensor have one size, and another list with the same sizes may have other ones.
    assert "unbind(0)" not in generate_case(61310029).source()
    assert any(0 in sizes.values() for case in cases for sizes in case.sizes)
    assert all(from_json(to_json(case)) == case for case in cases)


def test_a_tangent_is_that_of_the_reference() -> None:
    op = replace(_SCALED, outputs=(replace(_SCALED.outputs[0], written=("n",), curve="square"),))
    x, bias = torch.randn(2, 3), torch.randn(3)
    call = reference_function(op)
    _, expected = torch.func.jvp(lambda x, b: call(b, x, mode=""), (x, bias), (torch.ones(2, 3), torch.ones(3)))
    found = reference.tangents(op.data(), [x, bias], [torch.ones(2, 3), torch.ones(3)])
    torch.testing.assert_close(found[0], expected)

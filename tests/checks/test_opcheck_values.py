"""Which calls opcheck draws and how it judges them: values of attrs from all that names some, kernels that fail,
tolerances."""

from __future__ import annotations

import functools
import json
import logging
import logging.handlers
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import preloaded
import pytest
import torch
from click.testing import CliRunner

import ascend_graph
from ascend_graph.checks.calls.constants import constants_of
from ascend_graph.checks.calls.samples import SampleError
from ascend_graph.checks.kinds.subject import fault
from ascend_graph.checks.opcheck import opcheck
from ascend_graph.checks.report import CheckError, CheckReport, CheckState
from ascend_graph.cli import main

pytestmark = pytest.mark.filterwarnings("ignore")

HEADER = """
REG_OP(VluPick)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(z, TensorType({DT_FLOAT, DT_FLOAT16}))
    .ATTR(mode, String, "sum")
    .ATTR(level, Int, 1)
    .OP_END_FACTORY_REG(VluPick)
"""
RELATION = "x[*s, n]: T -> y[*s, n], z[*s, n]"
_number = iter(range(10_000))
Define = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def _prototypes() -> None:
    ascend_graph.load_prototypes(HEADER)


@pytest.fixture
def define() -> Iterator[Define]:
    """Register VluPick with a kernel; the relation may be another one."""
    made: list[Any] = []

    def register(kernel: Callable[..., Any], shape: str = RELATION) -> Any:
        library = torch.library.Library(f"vlu{next(_number)}", "DEF")
        library.define('pick(Tensor x, *, str mode="sum", int level=1) -> (Tensor y, Tensor z)')
        library.impl("pick", kernel, "PrivateUse1")
        overload = getattr(torch.ops, library.ns).pick
        registered = ascend_graph.register_op("VluPick", eager=overload, shape=shape)
        made.append((registered, library))
        return registered

    yield register
    for registered, library in made:
        registered.unregister()
        library._destroy()


def pick(x: Any, *, mode: str = "sum", level: int = 1) -> Any:
    if mode not in ("sum", "mean"):
        raise ValueError(f"mode is {mode}")
    return (x + level) * (2 if mode == "mean" else 1), x - level


def ignores_mode(x: Any, *, mode: str = "sum", level: int = 1) -> Any:
    return x + level, x - level


def tried(report: CheckReport, name: str) -> tuple[Any, ...]:
    return next(one.tried for one in report.attrs if one.name == name)


# ------------------------------------------------------------------------------------------------------ values of attrs

MODES = {"sum": 1, "mean": 2}
TEXTS = ("a", "b")


def compares(x: Any, mode: str = "none") -> Any:
    return x if mode == "plain" else -x if mode != "turned" else x


def looks_up(x: Any, mode: str) -> Any:
    return x * MODES[mode]


def lists(x: Any, mode: Literal["one", "two"] | None = None) -> Any:
    return x


def matches(x: Any, mode: str) -> Any:
    match mode:
        case "left" | "right":
            return x
    return -x


def asks_another(x: Any, mode: str) -> Any:
    return looks_up(x, mode.lower())


def takes_keywords(x: Any, **rest: Any) -> Any:
    return x if rest["mode"] in TEXTS else rest.get("mode") == "c"


class Callable_:
    def __call__(self, x: Any, mode: str) -> Any:
        renamed = mode
        return x if renamed == "called" else -x


def in_a_closure() -> Callable[..., Any]:
    known = {"inner"}
    return lambda x, way: x if way in known else -x


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (compares, ["none", "plain", "turned"]),
        (looks_up, ["sum", "mean"]),
        (lists, [None, "one", "two"]),
        (matches, ["left", "right"]),
        (asks_another, ["sum", "mean"]),
        (takes_keywords, ["a", "b", "c"]),
        (Callable_(), ["called"]),
        (in_a_closure(), ["inner"]),
        (functools.partial(compares), ["none", "plain", "turned"]),
        (torch.add, []),
    ],
)
def test_what_a_function_knows_of_an_argument(function: Callable[..., Any], expected: list[Any]) -> None:
    assert sorted(map(str, constants_of(function, ["x", "mode"]).values.get("mode", []))) == sorted(map(str, expected))


def test_limits_are_tried_on_both_sides() -> None:
    found = constants_of(lambda x, level: x if level > 3 else -x, ["x", "level"])
    assert found.values["level"] == [2, 3, 4]


def test_a_reference_that_ignores_an_attr_is_found_by_the_values_of_another(define: Define) -> None:
    """The relation and the reference name none: the operator's refusal of a stranger does."""

    def explains(x: Any, *, mode: str = "sum", level: int = 1) -> Any:
        if mode not in MODES:
            raise ValueError("mode must be one of sum, mean")
        return pick(x, mode=mode, level=level)

    report = opcheck(define(explains), reference=ignores_mode, checks=["reference"], raise_exception=False)
    assert [o.state for o in report.outcomes] == [CheckState.FAILED]
    assert "mode='mean'" in report.outcomes[0].sample
    assert tried(report, "mode") == ("sum", "mean")
    assert "attr mode: tried 'sum', 'mean' (the reference does not read it)" in str(report)


def test_the_reference_names_values(define: Define) -> None:
    wrong = define(lambda x, *, mode="sum", level=1: pick(x, mode="sum" if mode == "mean" else mode, level=level))
    with pytest.raises(CheckError, match="mode='mean'") as raised:
        opcheck(wrong, reference=pick, checks=["reference"])
    assert "attr mode: tried 'sum', 'mean'" in str(raised.value)


def test_the_relation_names_values(define: Define) -> None:
    shape = 'x[*s, n]: T -> y[*s, n] if mode == "sum" else [*s], z[*s, n] where level in (1, 5)'
    report = opcheck(define(pick, shape=shape), checks=["arguments"], raise_exception=False)
    assert tried(report, "level") == (1, 5)
    [mode] = [one for one in report.attrs if one.name == "mode"]
    assert (mode.tried, mode.refused, mode.untried) == (("sum",), (), ())


def test_the_operators_own_check_names_integers(define: Define) -> None:
    def checked(x: Any, *, mode: str = "sum", level: int = 1) -> Any:
        if level not in (1, 4, 16):
            raise ValueError("unknown level")
        return pick(x, mode=mode, level=level)

    report = opcheck(define(checked), checks=["arguments"])
    assert set(tried(report, "level")) == {1, 4, 16}
    [level] = [one for one in report.attrs if one.name == "level"]
    assert {value for value, _ in level.refused} == {0, -1, 2}


def test_what_nothing_names_is_said(define: Define) -> None:
    report = opcheck(define(lambda x, *, mode="sum", level=1: ignores_mode(x, level=level)), checks=["arguments"])
    assert "attr mode: tried 'sum' (nothing names another value: give samples=" in str(report)
    data = {one["name"]: one for one in json.loads(json.dumps(report.as_dict()))["attrs"]}
    assert data["mode"]["tried"] == ["sum"]


# ------------------------------------------------------------------------------------------------------------
# tolerances


def less_exact(x: Any, *, mode: str = "sum", level: int = 1) -> Any:
    y, z = ignores_mode(x, level=level)
    return y * 1.01, z


@pytest.mark.parametrize("rtol", [{"y": 0.05}, 0.05, {torch.float32: 0.05, "float16": 0.05}, {"y": 0.05, "z": 0.0}])
def test_tolerances_by_output_and_by_dtype(define: Define, rtol: Any) -> None:
    op = define(less_exact)
    options: dict[str, Any] = {"reference": ignores_mode, "checks": ["reference"], "raise_exception": False}
    assert opcheck(op, rtol=rtol, **options).ok
    assert "return 0" in opcheck(op, rtol={"z": 0.05}, **options).failures[0].message
    assert "return 0" in opcheck(op, rtol={torch.bfloat16: 0.05}, **options).failures[0].message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"rtol": {"w": 1.0}},
            "rtol has the key 'w', which is neither an output nor a dtype; expected one of the outputs .y, z.",
        ),
        ({"atol": -1.0}, "atol must be a finite number of 0 or more, got -1.0"),
        ({"rtol": {"y": True}}, r"rtol\['y'\] must be a finite number of 0 or more, got True"),
        ({"rtol": "1e-3"}, "rtol must be a finite number of 0 or more, got '1e-3'"),
        ({"atol": {"y": float("nan")}}, r"atol\['y'\] must be a finite number"),
    ],
)
def test_tolerances_that_are_none(define: Define, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SampleError, match=message):
        opcheck(define(pick), **given)


def test_lists_of_results_have_the_tolerance_of_their_return() -> None:
    with torch.library._scoped_library("vlu_lists", "DEF") as library:
        library.define("parts(Tensor x) -> (Tensor[] parts, Tensor whole)")
        library.impl("parts", lambda x: ([x * 1.01, x * 1.01], x.clone()), "CompositeExplicitAutograd")
        op = torch.ops.vlu_lists.parts

        def run(**tolerance: Any) -> bool:
            return opcheck(
                op,
                [(torch.ones(3),)],
                reference=lambda x: ([x, x], x),
                checks=["reference"],
                raise_exception=False,
                **tolerance,
            ).ok

        assert run(rtol={"parts": 0.1})
        assert not run(rtol={"whole": 0.1})


# --------------------------------------------------------------------------------------------------- kernels that fail


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of kernels: one copies whole blocks alone, one halves a dimension, one does not wait for a copy."""
    target = tmp_path_factory.mktemp("opp") / "judged"
    result = CliRunner().invoke(main, ["build", str(Path(__file__).parent / "judged"), "-o", str(target)])
    assert result.exit_code == 0, result.output
    return target


def run_with(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    prelude = "import json, torch, torch_npu, torchair, ascend_graph\n"
    return preloaded.run(
        [sys.executable, "-W", "ignore", "-c", prelude + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )


@pytest.mark.slow
def test_a_kernel_that_fails_is_a_failure_with_the_rule(package: Path) -> None:
    result = run_with(
        package,
        """
        op = ascend_graph.register_op("JudgedCopy", shape="x[*s] -> y[*s]")
        options = dict(reference=lambda x, *, mode="once": x.clone(), raise_exception=False)
        for checks in (["runs", "reference", "arguments", "recompilations"], ["arguments"]):
            print(json.dumps(ascend_graph.opcheck(op, checks=checks, **options).as_dict()))
        print(json.dumps(ascend_graph.opcheck(op, [(torch.ones(3),)], checks=["arguments"], **options).as_dict()))
        op.unregister()
        narrow = ascend_graph.register_op("JudgedCopy", shape="x[*s, n] -> y[*s, n] where n % 8 == 0, n <= 1024")
        print(json.dumps(ascend_graph.opcheck(narrow, checks=["runs"], raise_exception=False).as_dict()))
        """,
    )
    assert result.returncode == 0, result.stderr
    whole, alone, given, narrow = map(json.loads, result.stdout.splitlines())
    runs, reference, *_ = whole["checks"]
    assert runs["state"] == "failed"
    assert (
        "calls that relation and prototype allow fail: error 507015: kernel judged_copy, block 0 of 1: DataCopy: "
        "unaligned" in runs["message"]
    )
    assert runs["sample"].startswith("(torch.float32[")
    # What the tiling function compares the attr with was drawn, though the reference ignores it.
    assert reference["state"] == "failed"
    assert "mode='twice'" in reference["sample"]
    assert [sorted(one["tried"]) for one in whole["attrs"]] == [["once", "twice"]]
    assert [(c["check"], c["state"]) for c in alone["checks"]] == [("runs", "failed"), ("arguments", "passed")]
    assert [c["state"] for c in given["checks"]] == ["failed", "skipped"]
    assert [c["state"] for c in narrow["checks"]] == ["passed"]


@pytest.mark.slow
def test_a_wait_that_a_kernel_lacks_is_a_failure_though_no_number_shows_it(package: Path) -> None:
    result = run_with(
        package,
        """
        op = ascend_graph.register_op("JudgedWait", shape="x[*s] -> y[*s]")
        checks = dict(checks=["waits", "reference", "large"], reference=lambda x: 2 * x, raise_exception=False)
        print(json.dumps(ascend_graph.opcheck(op, **checks).as_dict()))
        print(json.dumps(ascend_graph.opcheck(op, **checks | {"checks": ["large"]}).as_dict()))
        op = ascend_graph.register_op("JudgedCopy", shape="x[*s] -> y[*s]")
        print(json.dumps(ascend_graph.opcheck(op, [(torch.ones(8),)], checks=["waits"]).as_dict()))
        """,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    lacking, grown, right = (json.loads(line) for line in result.stdout.splitlines())
    waits, reference, large = lacking["checks"]
    assert large["message"] == "the check waits fails for smaller calls"
    (large,) = grown["checks"]
    assert (waits["state"], reference["state"]) == ("failed", "passed")
    assert "Muls writes dst on pipe V and does not wait for pipe MTE2, on which DataCopyPad" in waits["message"]
    assert waits["advice"].startswith("a wait that is missing in the kernel")
    assert (large["state"], large["message"]) == ("failed", waits["message"])  # a loop's second round alone may lack it
    assert [c["state"] for c in right["checks"]] == ["passed"]


def test_waits_are_asked_of_kernels_in_ascend_c_alone() -> None:
    report = opcheck(torch.ops.aten.neg.default, [(torch.ones(3),)], checks=["waits"])
    assert [(o.state, o.message) for o in report.outcomes] == [
        (CheckState.SKIPPED, "the operator has no kernel in Ascend C")
    ]


# ------------------------------------------------------------------------------------------------------------- in
# pytest


def test_what_pytest_shows_is_the_report(tmp_path: Path) -> None:
    test = tmp_path / "test_shown.py"
    test.write_text(
        textwrap.dedent(f"""
        import torch, torch_npu, torchair, ascend_graph
        from ascend_graph.host.kernels import host_kernel

        @host_kernel("VluPick")
        def kernel(x, *, mode="sum", level=1):
            return x + level, x - level

        def test_it():
            ascend_graph.load_prototypes({HEADER!r})
            library = torch.library.Library("vlu_shown", "DEF")
            library.define('pick(Tensor x, *, str mode="sum", int level=1) -> (Tensor y, Tensor z)')
            library.impl("pick", kernel, "PrivateUse1")
            op = ascend_graph.register_op("VluPick", eager=torch.ops.vlu_shown.pick, shape={RELATION!r})
            ascend_graph.opcheck(op, reference=lambda x, *, mode="sum", level=1: (x, x),
                checks=["reference", "ge", "export"])
        """)
    )
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
    ]
    result = preloaded.run([*command, str(test)], capture_output=True, text=True, check=False, cwd=tmp_path)
    shown = result.stdout
    assert "reference: against the reference: return 0" in shown
    assert "attr mode: tried 'sum'" in shown
    assert "Captured log call" not in shown
    assert "def opcheck(" not in shown
    assert "raise_on_failure" not in shown


def test_records_for_others_stay(define: Define) -> None:
    def logs(x: Any, *, mode: str = "sum", level: int = 1) -> Any:
        logging.getLogger("vlu").warning("of the author")
        return ignores_mode(x, level=level)

    kept = logging.handlers.BufferingHandler(capacity=1_000)
    logging.getLogger().addHandler(kept)
    try:
        opcheck(define(logs), checks=["arguments"])
    finally:
        logging.getLogger().removeHandler(kept)
    assert "of the author" in [record.getMessage() for record in kept.buffer]


def test_results_of_several_sizes_are_not_taken_for_what_lies_behind_one() -> None:
    """The memory of a larger result that was free may be cut in two: what follows a small one is then of another
    tensor."""
    with torch.library._scoped_library("vlu_sizes", "DEF") as library:
        library.define("parts(Tensor x, Tensor bias) -> (Tensor small, Tensor large)")
        library.impl("parts", lambda x, bias: (bias.clone(), x.repeat(1, 2)), "PrivateUse1")
        report = opcheck(
            torch.ops.vlu_sizes.parts,
            [(torch.ones(rows, 7), torch.ones(7)) for rows in (3, 17, 33, 64, 100)],
            checks=["outside"],
            raise_exception=False,
        )
    assert report.ok, str(report)


class ConstantStatistics(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        total = x.sum(-1)
        ctx.mark_non_differentiable(total)
        return 3 * x, total

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        return 3 * grad


def test_an_output_without_a_gradient_is_left_out_of_the_reference_s() -> None:
    library = torch.library.Library(f"vlu{next(_number)}", "DEF")
    library.define("stats(Tensor x) -> (Tensor, Tensor)")
    library.impl("stats", lambda x: ConstantStatistics.apply(x), "CompositeImplicitAutograd")
    overload = getattr(torch.ops, library.ns).stats.default
    samples = [ascend_graph.Sample((torch.randn(2, 3),))]
    checks = ["reference", "gradient"]
    report = opcheck(overload, samples, reference=lambda x: (3 * x, x.sum(-1)), checks=checks)
    assert [one.state for one in report.outcomes] == [CheckState.PASSED] * 2
    assert report.notes == ("return 1 has no gradient here, and one in the reference, which is left out",)
    with pytest.raises(CheckError, match="the gradient of tensor 0 is not the gradient of the reference"):
        opcheck(overload, samples, reference=lambda x: (x + 2 * x.detach(), x.sum(-1)), checks=checks)
    library._destroy()


def test_the_reference_of_an_operator_that_writes_is_told_to_write() -> None:
    library = torch.library.Library(f"vlu{next(_number)}", "DEF")
    library.define("grow_(Tensor(a!) x) -> ()")
    library.impl("grow_", lambda x: x.add_(1) and None, "PrivateUse1")
    overload = getattr(torch.ops, library.ns).grow_.default
    samples = [ascend_graph.Sample((torch.ones(1),))]
    with pytest.raises(
        CheckError, match="the reference returns 1 values; the operator returns 0, and writes x: write to them"
    ):
        opcheck(overload, samples, reference=lambda x: x + 1, checks=["reference"])
    library._destroy()


@pytest.mark.parametrize("name", ["copy", "::copy", "mine::copy<float, 3>"])
def test_the_rule_that_a_kernel_of_any_name_broke_is_in_the_message(name: str) -> None:
    rule = f"kernel {name}, block 0 of 8: DataCopy: unaligned copy"
    text = f"npuSynchronizeDevice: NPU function error: Aclrt, error code is 507015\n[ERROR] PTA\n{rule}\n"
    assert fault(RuntimeError(text)) == f"error 507015: {rule}"

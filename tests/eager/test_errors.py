"""Bad input and failing kernels: exceptions that say what is wrong, nothing left behind, the device usable
afterwards."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import preloaded
import pytest
import torch
from eager_package import prototype
from torch._subclasses import FakeTensorMode

from ascend_graph import AscendGraphError
from ascend_graph.dispatch.definition import RemovedOperatorError
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.eager import (
    AclnnError,
    EagerArgumentError,
    EagerError,
    EagerOperator,
    MissingFunctionError,
    define_operator,
)
from ascend_graph.prototypes import parse_text
from ascend_graph.shapes import RelationError

Define = Callable[..., EagerOperator]
ADD = "x[*s], y[*s] -> z[*s]"


def _still_works(define: Define) -> None:
    add = define("AddCustom", ADD, name="still_works").overload
    x = torch.randn(5).npu()
    torch.testing.assert_close(add(x, x).cpu(), 2 * x.cpu())


def test_a_tensor_on_another_device(define: Define) -> None:
    add = define("AddCustom", ADD).overload
    with pytest.raises(
        EagerArgumentError, match=r"eager_tests::add_custom: argument y is on cpu; all tensors must be on npu:0"
    ):
        add(torch.zeros(2).npu(), torch.zeros(2))
    with pytest.raises(EagerArgumentError, match="argument xs is on cpu"):
        define("Gather1", lambda x, xs: x.new_empty(1)).overload(torch.zeros(2).npu(), [torch.zeros(2)])
    with pytest.raises(NotImplementedError, match="CPU"):
        add(torch.zeros(2), torch.zeros(2))
    _still_works(define)


def test_arguments_that_do_not_fit_the_schema(define: Define) -> None:
    add = define("AddCustom", ADD).overload
    x = torch.zeros(2).npu()
    for arguments in ((x, None), (x, 3), (x,), (x, x, x)):
        with pytest.raises((RuntimeError, TypeError), match="add_custom"):
            add(*arguments)
    _still_works(define)


@pytest.mark.parametrize(
    ("relation", "shapes", "match"),
    [
        (ADD, [(2, 3), (2, 4)], "eager_tests::add_custom: dimension 1 of \\*s is 3 by x, but 4 by y"),
        ("x[n, m], y[n] -> z[n]", [(2,), (2,)], r"x\[n, m\] has 2 dimension\(s\), the input has 1"),
        ("x[n], y[m] -> z[n - m]", [(2,), (3,)], r"output z would have a dimension n - m = -1"),
        ("x[n], y[m] -> z[n // m]", [(2,), (0,)], "zero|divi|m is 0"),
        ("x[n], y[m] -> z[n] where n > m", [(2,), (2,)], "n > m must hold"),
        ("x[n]: float16, y[n] -> z[n]", [(2,), (2,)], "x has dtype torch.float32"),
    ],
)
def test_shapes_that_do_not_fit_the_relation(
    define: Define, relation: str, shapes: list[tuple[int, ...]], match: str
) -> None:
    add = define("AddCustom", relation).overload
    with pytest.raises(AscendGraphError, match=match):
        add(*[torch.zeros(shape).npu() for shape in shapes])
    _still_works(define)


def test_a_kernel_that_fails(define: Define) -> None:
    failing = define("Failing", "x[*s] -> y[*s]").overload
    x = torch.zeros(2, 3).npu()
    with pytest.raises(AclnnError) as caught:
        failing(x.t())
    assert caught.value.code == 561000
    message = str(caught.value)
    assert message.startswith(
        "eager_tests::failing: aclnnFailing failed with error 561000: Failing: the host kernel failed: "
    )
    assert "the kernel was asked to fail" in message
    assert "arguments: x=Float[3, 2] on npu:0 with strides [1, 3], fail=True" in message
    assert isinstance(caught.value, RuntimeError)
    failing(x, fail=False)
    _still_works(define)


def test_an_argument_that_the_aclnn_function_refuses(define: Define) -> None:
    gather = define("Gather1", lambda x, xs: torch.empty(1, device="meta")).overload
    x = torch.zeros(1).npu()
    with pytest.raises(
        AclnnError, match="aclnnGather1GetWorkspaceSize failed with error 161001: .*'xs' is null"
    ) as caught:
        gather(x, [])
    assert caught.value.code == 161001
    assert gather(x, [x]).shape == (1,)


def test_a_function_that_is_in_no_library(
    define: Define, package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nowhere = define("Nowhere", "x[*s] -> y[*s]").overload
    x = torch.zeros(2).npu()
    with pytest.raises(MissingFunctionError) as caught:
        nowhere(x)
    message = str(caught.value)
    assert "eager_tests::nowhere: aclnnNowhereGetWorkspaceSize is in no library" in message
    assert f"{package}/op_api/lib/libcust_opapi.so has no such function" in message
    assert "libopapi.so" in message
    assert "Set ASCEND_CUSTOM_OPP_PATH" in message
    assert f"now: ASCEND_CUSTOM_OPP_PATH={package}" in message

    broken = tmp_path / "op_api/lib/libcust_opapi.so"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{tmp_path}:/does/not/exist")
    with pytest.raises(
        MissingFunctionError, match=r"libcust_opapi.so does not load: .*(?s:.)*/does/not/exist/op_api.* does not exist"
    ):
        nowhere(x)


def test_a_package_may_be_selected_after_the_first_call(
    define: Define, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = define("AddCustom", ADD).overload
    x = torch.ones(2).npu()
    monkeypatch.delenv("ASCEND_CUSTOM_OPP_PATH")
    with pytest.raises(MissingFunctionError, match="ASCEND_CUSTOM_OPP_PATH is not set"):
        add(x, x)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    assert add(x, x).cpu().tolist() == [2, 2]


def test_a_library_of_another_abi(define: Define, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "other.cpp"
    source.write_text(
        'extern "C" void symbol_of_another_release(); extern "C" void aclnnNowhere() { symbol_of_another_release(); }'
    )
    library = tmp_path / "op_api/lib/libcust_opapi.so"
    library.parent.mkdir(parents=True)
    subprocess.run(["g++", "-shared", "-fPIC", "-Wl,-z,now", source, "-o", library], check=True)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path))
    with pytest.raises(MissingFunctionError, match="does not load: .*undefined symbol: symbol_of_another_release"):
        define("Nowhere", "x[*s] -> y[*s]").overload(torch.zeros(2).npu())


def test_out_of_memory(define: Define) -> None:
    probe = define("Probe", "x[k], w[m] -> y[k, m, m * m], z[k]").overload
    x, w = torch.zeros(1000).npu(), torch.zeros(30000).npu()
    for _ in range(3):
        with pytest.raises((torch.OutOfMemoryError, RuntimeError), match="memory"):
            probe(x, w)
    _still_works(define)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "REG_OP(Bad).INPUT(x, {ANY}).OUTPUT(y, {ANY}).ATTR(t, ListListInt, {{}}).OP_END_FACTORY_REG(Bad)",
            "attr t has type ListListInt",
        ),
        (
            "REG_OP(Bad).INPUT(x, {ANY}).OUTPUT(y, {ANY}).ATTR(t, Tensor, Tensor()).OP_END_FACTORY_REG(Bad)",
            "attr t has type Tensor",
        ),
        ("REG_OP(Bad).OUTPUT(y, {ANY}).ATTR(n, Int, 3).OP_END_FACTORY_REG(Bad)", "Bad has no inputs"),
        ("REG_OP(Bad).INPUT(x, {ANY}).GRAPH(body).OUTPUT(y, {ANY}).OP_END_FACTORY_REG(Bad)", "subgraph body"),
    ],
)
def test_prototypes_that_do_not_fit_aclnn(text: str, match: str) -> None:
    bad = parse_text(text.format(ANY="TensorType::ALL()")).prototypes[0]
    with pytest.raises(EagerError, match=match):
        define_operator(bad, "x[*s] -> y[*s]", namespace="eager_tests")
    assert not hasattr(torch.ops.eager_tests, "bad")


@pytest.mark.parametrize(
    ("shape", "error", "match"),
    [
        (
            None,
            EagerError,
            r"AddCustom: the shape of z is not known; pass a relation .* as \"x\[\*s\], y\[\*s\] -> z\[\*s\]\"",
        ),
        ("x[*s] -> y[*s]", EagerError, "AddCustom has no output y"),
        ("x[*s] -> ", EagerError, "AddCustom has the output z, which the relation lacks"),
        ("x[*s], w[*s] -> z[*s]", MetaError, "w is not an argument"),
        ("x[n] -> z[k]", MetaError, "k must be a dimension or an argument"),
        ("x[n -> z[n]", RelationError, "expected"),
    ],
)
def test_a_failed_definition_leaves_nothing(shape: str | None, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        define_operator(prototype("AddCustom"), shape, namespace="eager_tests")
    assert not hasattr(torch.ops.eager_tests, "add_custom")
    define_operator(prototype("AddCustom"), ADD, namespace="eager_tests").remove()
    assert not hasattr(torch.ops.eager_tests, "add_custom")


def test_the_output_that_is_written_in_place_is_its_name_alone(define: Define) -> None:
    with pytest.raises(EagerError, match=r"x is written in place, .*; write '-> x' instead of '-> x\[\*s\]'"):
        define("Increment", "x[*s] -> x[*s]")


def test_an_operator_that_exists(define: Define) -> None:
    define("AddCustom", ADD)
    with pytest.raises(EagerError, match="eager_tests::add_custom exists already"):
        define("AddCustom", ADD)


@pytest.mark.parametrize("device", ["npu", "meta"])
def test_an_operator_that_was_removed(device: str) -> None:
    x = torch.zeros(2, device=device)
    for _ in range(2):
        operator = define_operator(prototype("AddCustom"), ADD, namespace="eager_tests")
        packet = torch.ops.eager_tests.add_custom
        assert operator.overload(x, x).shape == packet(x, x).shape == (2,)
        operator.remove()
        for call in (operator.overload, packet):
            with pytest.raises(RemovedOperatorError, match="eager_tests::add_custom was removed"):
                call(x, x)
        with FakeTensorMode() as mode, pytest.raises(RemovedOperatorError):
            operator.overload(*[mode.from_tensor(torch.zeros(2)) for _ in range(2)])


QUEUED = """
import os, sys, time
os.environ["TASK_QUEUE_ENABLE"] = sys.argv[2]
import torch, torch_npu
sys.path.insert(0, sys.argv[1])
from eager_package import prototype
from ascend_graph.eager import define_operator
add = define_operator(prototype("AddCustom"), "x[*s], y[*s] -> z[*s]").overload
x = torch.arange(6.0).npu()
torch.npu.synchronize()
z = x
for _ in range(100):
    z = add(z, x)
torch.npu.synchronize()
assert z.cpu().tolist() == [v * 101 for v in range(6)], z
failing = define_operator(prototype("Failing"), "x[*s] -> y[*s]").overload
try:
    failing(x)
    # torch_npu empties its queue before it notes the error: synchronizing in between sees neither of the two.
    for _ in range(1000):
        torch.npu.synchronize()
        time.sleep(0.001)
except RuntimeError as error:
    print("failed:", type(error).__name__, error)
else:
    raise SystemExit("no error")
"""


@pytest.mark.parametrize("level", ["1", "2"])
def test_launches_on_the_task_queue(package: Path, level: str) -> None:
    here = str(Path(__file__).parent)
    run = preloaded.run(
        [sys.executable, "-c", textwrap.dedent(QUEUED), here, level],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    print(run.stdout, run.stderr)
    assert "failed:" in run.stdout
    assert "Failing" in run.stdout

"""Headers of one CANN, and another one that is installed: what differs is a message with both versions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import ascend_graph
from ascend_graph.aclnn import process_catalog as functions
from ascend_graph.binding import CannMismatchError, CannMismatchWarning
from ascend_graph.binding.calls.installed import check_declarations, declaration
from ascend_graph.prototypes import process_catalog as prototypes

PROTOTYPE = """REG_OP(Moved)
    .INPUT({x}, TensorType({{DT_FLOAT}}))
    .OPTIONAL_INPUT(bias, TensorType({{DT_FLOAT}})){inputs}
    .OUTPUT(y, TensorType({{DT_FLOAT}}))
    .ATTR(scale, Float, 1.0){attrs}
    .OP_END_FACTORY_REG(Moved)
"""
DECLARATION = """
aclnnStatus aclnnMovedGetWorkspaceSize(const aclTensor *x, {parameter}const aclTensor *y, uint64_t *workspaceSize,
                                       aclOpExecutor **executor);
aclnnStatus aclnnMoved(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""


def prototype(x: str = "x", inputs: str = "", attrs: str = "") -> str:
    return PROTOTYPE.format(x=x, inputs=f"\n    {inputs}" if inputs else "", attrs=f"\n    {attrs}" if attrs else "")


def cann(directory: Path, version: str, *, reg_op: str = "", aclnn: str = "") -> Path:
    """The files of a CANN that say what its operators are."""
    files = {
        "compiler/version.info": f"Version={version}\n",
        "opp/version.info": "Version=7.0\n",
        "opp/built-in/op_proto/inc/moved_ops.h": reg_op,
        "include/aclnnop/aclnn_moved.h": aclnn,
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No CANN but those of a test, and nothing known of them afterwards."""
    for variable in ("ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "ASCEND_HOME_PATH"):
        monkeypatch.delenv(variable, raising=False)
    yield
    prototypes.clear()
    functions.clear()


@pytest.fixture
def operator() -> Iterator[object]:
    library = torch.library.Library("moved", "DEF")
    library.define("op(Tensor x, Tensor? bias=None, *, float scale=1.0) -> Tensor")
    yield torch.ops.moved.op
    library._destroy()


def register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: object, old: str, new: str
) -> ascend_graph.RegisteredOp:
    """Registered by the header of one CANN, with another selected."""
    old_cann = cann(tmp_path / "old", "8.0.RC3", reg_op=old)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann(tmp_path / "new", "8.3.RC1", reg_op=new)))
    ascend_graph.load_prototypes(old_cann / "opp/built-in/op_proto/inc/moved_ops.h")
    return ascend_graph.register_op("Moved", eager=operator, shape="x[*s], bias[*s] -> y[*s]", override=True)


@pytest.mark.parametrize(
    ("new", "change"),
    [
        (prototype(x="x1"), "input x is gone; required input x1 is new"),
        (prototype(attrs=".REQUIRED_ATTR(axis, Int)"), "required attr axis: Int is new"),
        (prototype(inputs=".INPUT(rate, TensorType({DT_FLOAT}))"), "required input rate is new"),
        (prototype().replace("ATTR(scale, Float, 1.0)", "ATTR(scale, Int, 1)"), "attr scale was Float and is Int"),
        (
            prototype().replace("ATTR(scale, Float, 1.0)", "ATTR(scale, Float, 2.0)"),
            "attr scale had the default 1.0, now 2.0, which graphs take where a call leaves it out",
        ),
    ],
)
def test_what_breaks_nodes_is_a_warning_with_both_versions(
    new: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: object
) -> None:
    with pytest.warns(CannMismatchWarning) as caught:
        op = register(tmp_path, monkeypatch, operator, prototype(), new)
    op.unregister()
    header = "opp/built-in/op_proto/inc/moved_ops.h"
    assert str(caught[0].message) == (
        f"REG_OP(Moved) is bound by {tmp_path}/old/{header}:1 (CANN 8.0.RC3), and installed is "
        f"{tmp_path}/new/{header}:1 "
        f'(CANN 8.3.RC1): {change}. Write: ascend_graph.load_prototypes("{tmp_path}/new/{header}")  # instead of the '
        f"other "
        "definition; or install the CANN that it is of"
    )
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (prototype(), prototype(attrs=".ATTR(mode, Int, 0)"), "attr mode: Int = 0 is new"),
        (prototype(), prototype(inputs=".OPTIONAL_INPUT(mask, TensorType({DT_FLOAT}))"), "optional input mask is new"),
        (prototype(attrs=".ATTR(mode, Int, 0)"), prototype(), "mode is not there, so that graphs cannot use it"),
        (
            prototype(inputs=".OPTIONAL_INPUT(mask, TensorType({DT_FLOAT}))"),
            prototype(),
            "mask is not there, so that graphs cannot use it",
        ),
        (prototype(), prototype(), None),
    ],
)
def test_what_breaks_nothing_is_evidence(
    old: str, new: str, change: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: object
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CannMismatchWarning)
        op = register(tmp_path, monkeypatch, operator, old, new)
    said = op.evidence.get("CANN")
    op.unregister()
    if change is None:
        assert said is None
    else:
        assert said is not None
        assert said.endswith(f"(CANN 8.3.RC1): {change}")


def test_an_operator_package_is_the_one_that_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: object
) -> None:
    """CANN takes the first definition of an op: that of a package goes before its own."""
    package = cann(tmp_path / "package", "8.0.RC3", reg_op=prototype())
    (package / "opp/built-in/op_proto").rename(package / "op_proto")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    register(tmp_path, monkeypatch, operator, prototype(), prototype(x="x1")).unregister()


@pytest.mark.parametrize(
    ("parameter", "change"),
    [
        ("double rate, ", "parameter 2 is new: double rate"),
        ("const aclTensor *mask, ", "parameter 2 is new: const aclTensor *mask"),
    ],
)
def test_a_function_with_other_parameters_is_not_called(
    parameter: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = cann(tmp_path / "old", "8.0.RC3", aclnn=DECLARATION.format(parameter=""))
    new = cann(tmp_path / "new", "8.3.RC1", aclnn=DECLARATION.format(parameter=parameter))
    monkeypatch.setenv("ASCEND_HOME_PATH", str(new))
    ascend_graph.load_aclnn(old / "include/aclnnop/aclnn_moved.h")
    with pytest.raises(CannMismatchError) as raised:
        ascend_graph.register_aclnn("aclnnMoved", shape="x[*s] -> y[*s]")
    assert not hasattr(torch.ops.ascend, "moved")
    header = "include/aclnnop/aclnn_moved.h"
    assert str(raised.value) == (
        f"aclnnMoved is bound by {old}/{header}:2 (CANN 8.0.RC3), and installed is {new}/{header}:2 (CANN 8.3.RC1): "
        f"{change}. A "
        "call with the parameters of the one corrupts the memory of the other. Write: "
        f'ascend_graph.load_aclnn("{new}/{header}")  # instead of the other header; or install the CANN that it is of'
    )
    compiled = functions.find("aclnnMoved")  # into a library, which is imported here
    with pytest.raises(CannMismatchError, match=r"<text>:1 \(CANN 8\.0\.RC3\), and installed is .*8\.3\.RC1.* anew"):
        check_declarations(declaration(compiled), "8.0.RC3")


@pytest.mark.parametrize("new", ["long *size_", "int64_t *size_"])
def test_other_names_of_one_type_are_the_same_call(new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = DECLARATION.format(parameter="int64_t size, ")
    text = DECLARATION.format(parameter=f"{new.replace('*', '')}, ")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(cann(tmp_path / "new", "8.3.RC1", aclnn=text)))
    ascend_graph.load_aclnn(cann(tmp_path / "old", "8.0.RC3", aclnn=old) / "include/aclnnop/aclnn_moved.h")
    op = ascend_graph.register_aclnn("aclnnMoved", shape="x[*s] -> y[*s]")
    assert "CANN" not in op.evidence
    op.unregister()
    check_declarations(declaration(functions.find("aclnnMoved")))


def test_only_the_headers_that_mention_an_op_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = cann(tmp_path, "8.3.RC1", reg_op=prototype())
    (home / "opp/built-in/op_proto/inc/another.h").write_text("REG_OP(Broken\n")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
    found = prototypes.installed("Moved")
    assert found is not None
    assert found.file.endswith("moved_ops.h")
    assert prototypes.installed("Move") is None
    assert prototypes.diagnostics == ()

"""The page on a registered operator, and the same as data."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from rich.console import Console

import ascend_graph
from ascend_graph.binding import BindingWarning
from ascend_graph.checks.explain import ExplainError
from ascend_graph.cli import main
from ascend_graph.registration import RegisteredOp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair.npu_fx_compiler

HEADER = """
REG_OP(ExplainedOp)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(cache, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
    .OUTPUT(cache, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(extra, TensorType({DT_FLOAT}))
    .ATTR(axis, Int, -1)
    .ATTR(mode, Int, 0)
    .ATTR(fast, Bool, false)
    .ATTR(dst_type, Int, 2)
    .OP_END_FACTORY_REG(ExplainedOp)
"""


@pytest.fixture
def registered() -> Iterator[RegisteredOp]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("explained", "DEF")
    library.define(
        "op(Tensor self, Tensor cache, int dim, str mode, *, int dst_type=1, str note='') -> (Tensor, Tensor)"
    )
    with pytest.warns(BindingWarning, match="its returns have no names"):
        op = ascend_graph.register_op(
            "ExplainedOp",
            eager=torch.ops.explained.op,
            shape="x[*s], cache[*c] -> y[*s], cache[*c]",
            arguments={"mode": ("mode", {"half": 0}), "fast": True},
        )
    yield op
    op.unregister()
    library._destroy()


def test_data(registered: RegisteredOp) -> None:
    facts = ascend_graph.explain(registered).as_dict()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["operator"] == "explained::op"
    assert facts["relation"] == "x[*s], cache[*c] -> y[*s], cache[*c]"
    inputs = {pair["name"]: pair for pair in facts["inputs"]}
    assert inputs["x"]["argument"] == "Tensor self"
    assert inputs["x"]["evidence"] == "first tensor, first input"
    assert "copied first" in inputs["cache"]["note"]
    assert inputs["bias"]["note"] == "absent"
    attrs = {pair["name"]: pair for pair in facts["attrs"]}
    assert attrs["axis"]["evidence"] == "synonyms"
    assert "converted by a table" in attrs["mode"]["note"]
    assert attrs["fast"]["value"] == "True"
    assert "torch's number of a dtype" in attrs["dst_type"]["note"]
    assert [(r["output"], r["evidence"]) for r in facts["returns"]] == [
        ("y", "named by the shape relation"),
        ("cache", "named by the shape relation"),
    ]
    assert facts["unused_arguments"] == [{"argument": "note", "may_only_be": "''"}]
    assert facts["dropped_outputs"] == ["extra"]


@pytest.mark.parametrize("form", ["object", "packet", "overload", "op type", "name"])
def test_page(registered: RegisteredOp, form: str) -> None:
    named = {
        "object": registered,
        "packet": torch.ops.explained.op,
        "overload": torch.ops.explained.op.default,
        "op type": "ExplainedOp",
        "name": "explained::op",
    }
    page = str(ascend_graph.explain(named[form]))
    for line in (
        "explained::op → ExplainedOp",
        "REG_OP(ExplainedOp)",
        "synonyms",
        "the relation given",
        "made from the",
    ):
        assert line in page
    assert all(len(line) <= 120 for line in page.splitlines())
    shown = io.StringIO()
    Console(file=shown, width=120).print(ascend_graph.explain(named[form]))
    assert "Binding" in shown.getvalue()


def test_command(registered: RegisteredOp, tmp_path: Path) -> None:
    script = tmp_path / "ops.py"
    script.write_text("import ascend_graph\n")

    def explained(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["explain", str(script), *arguments])

    assert "explained::op → ExplainedOp" in explained("ExplainedOp").stdout
    assert "explained::op" in [page["operator"] for page in json.loads(explained("--format", "json").stdout)]
    refused = explained("Nothing")
    assert refused.exit_code == 1
    assert "'Nothing' is not registered" in refused.stderr


def test_unregistered(registered: RegisteredOp) -> None:
    registered.unregister()
    assert "not registered any more" in str(ascend_graph.explain(registered))
    with pytest.raises(ExplainError, match="'ExplainedOp' is not registered"):
        ascend_graph.explain("ExplainedOp")


def test_a_converter_that_others_registered_since_is_named(registered: RegisteredOp) -> None:
    assert "since" not in ascend_graph.explain(registered).as_dict()["evidence"]["converter"]

    @torchair.register_fx_node_ge_converter(registered.overload)
    def theirs(*args: object, meta_outputs: object = None, **attrs: object) -> None: ...

    evidence = ascend_graph.explain(registered).as_dict()["evidence"]["converter"]
    assert evidence.startswith(f"replaced since by {__name__}.")
    assert evidence.endswith(".theirs, which graphs call; before: made from the binding")
    registered.unregister()
    assert "since" not in registered.evidence["converter"]

"""Lines that errors propose are lines that work: each is taken from the message, followed, and the operator is
called."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ascend_graph.codegen.op_project import generate_op_project
from ascend_graph.codegen.rendering import GenerationError

import ascend_graph
from ascend_graph.errors import AscendGraphError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu.dynamo.torchair  # noqa: F401

HEADER = """
REG_OP(PrpAdd)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(PrpAdd)
REG_OP(PrpSum)
    .DYNAMIC_INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(PrpSum)
REG_OP(PrpPick)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(index, TensorType({DT_INT32}))
    .OUTPUT(count, TensorType({DT_INT32}))
    .OP_END_FACTORY_REG(PrpPick)
"""


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    ascend_graph.load_prototypes(HEADER)
    with torch.library._scoped_library("prp", "DEF") as made:
        made.define("add(Tensor x, Tensor y) -> Tensor")
        made.impl("add", lambda x, y: x + y, "PrivateUse1")
        made.define("sum(Tensor[] x) -> Tensor")
        made.impl("sum", lambda x: torch.stack(x).sum(0), "PrivateUse1")
        made.define("pick(Tensor x) -> (Tensor index, Tensor count)")
        made.impl(
            "pick",
            lambda x: (x.new_zeros(x.shape, dtype=torch.int32), x.new_zeros(1, dtype=torch.int32)),
            "PrivateUse1",
        )
        yield made


def refusal(op_type: str, **options: Any) -> str:
    with pytest.raises(AscendGraphError) as raised:
        ascend_graph.register_op(op_type, **options)
    return str(raised.value)


def follow(op_type: str, *args: Any, **options: Any) -> Any:
    """Register the operator, run it in a graph and in eager mode, and return what a fake tensor says."""
    registered = ascend_graph.register_op(op_type, **options)
    try:
        eager = registered(*args)
        compiled = torch.compile(lambda *a: registered.overload(*a), backend="aot_eager", fullgraph=True)(*args)
        torch.testing.assert_close(compiled, eager)
        return eager
    finally:
        registered.unregister()


def on_npu(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device="npu")


def test_a_declaration_that_is_a_text(library: torch.library.Library) -> None:
    message = refusal("PrpAdd", eager=torch.ops.prp.add, shape="x[m, n], y[m, n] -> z[m, n]", batch="m")
    [line] = re.findall(r"write (batch=\(.*\))", message)
    options = eval(f"dict({line})")
    follow(
        "PrpAdd", on_npu(2, 3), on_npu(2, 3), eager=torch.ops.prp.add, shape="x[m, n], y[m, n] -> z[m, n]", **options
    )


def test_a_list_in_a_relation(library: torch.library.Library) -> None:
    message = refusal("PrpSum", eager=torch.ops.prp.sum, shape="x[n] -> y[n]")
    [pattern] = re.findall(r"write (x\[.*\])", message)
    result = follow("PrpSum", [on_npu(3), on_npu(3)], eager=torch.ops.prp.sum, shape=f"{pattern} -> y[n]")
    assert result.tolist() == [2.0, 2.0, 2.0]


def test_one_tensor_that_a_relation_calls_a_list(library: torch.library.Library) -> None:
    message = refusal("PrpAdd", eager=torch.ops.prp.add, shape="x[i][n], y[n] -> z[n]")
    [pattern] = re.findall(r"write (x\[.*\])", message)
    follow("PrpAdd", on_npu(3), on_npu(3), eager=torch.ops.prp.add, shape=f"{pattern}, y[n] -> z[n]")


def test_a_size_that_depends_on_data(library: torch.library.Library) -> None:
    message = refusal("PrpPick", eager=torch.ops.prp.pick, shape="x[n] -> index[k]: int32, count[1]: int32")
    assert "mentions k; expected dimensions and arguments" in message
    assert "a number that only the values of a tensor tell" in message
    [size, count] = re.findall(r"(index\[n\]), (count\[1\]: int32)", message)[0]
    index, number = follow("PrpPick", on_npu(4), eager=torch.ops.prp.pick, shape=f"x[n] -> {size}: int32, {count}")
    assert (index.shape, number.shape) == ((4,), (1,))


@pytest.mark.parametrize(
    ("relation", "line"),
    [
        (
            "x[n] -> index[k]: int32, count[1]: int32 where n >= k, n > 0",
            "x[n] -> index[n]: int32, count[1]: int32 where n > 0",
        ),
        ("x[n] -> index[k]: int32, count[]: int32 where k = count, k <= n", "x[n] -> index[n]: int32, count[]: int32"),
        (
            "x[n] -> index[2 * k]: int32, count[1]: int32 where k <= n + 1",
            "x[n] -> index[2 * (n + 1)]: int32, count[1]: int32",
        ),
    ],
)
def test_a_size_that_depends_on_data_with_a_bound(library: torch.library.Library, relation: str, line: str) -> None:
    """The kernel of an operator that is made from its prototype has no such size: the refusal has the relation to write."""
    message = refusal("PrpPick", shape=relation)
    assert "k is a number that only the values of a tensor tell: every mode allocates the largest size" in message
    assert f"Write {line}; or make the size an attr of the operator" in message
    if "2 *" not in line and "count[]" not in line:
        index, _ = follow("PrpPick", on_npu(4), eager=torch.ops.prp.pick, shape=line)
        assert index.shape == (4,)


def test_a_kept_meta_function_that_is_not_there(library: torch.library.Library) -> None:
    shape = "x[n], y[n] -> z[n]"
    message = refusal("PrpAdd", eager=torch.ops.prp.add, shape=shape, meta="kept")
    assert 'leave meta="kept" out' in message
    follow("PrpAdd", on_npu(3), on_npu(3), eager=torch.ops.prp.add, shape=shape)


def test_the_shapes_of_a_project(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(HEADER)
    with pytest.raises(GenerationError) as raised:
        generate_op_project(tmp_path / "p", [header], shapes={})
    [proposal] = re.findall(r"--shape '([^']*)'", str(raised.value))
    op_type, _, relation = proposal.partition("=")
    made = generate_op_project(tmp_path / "p", [header], shapes={op_type: relation})
    assert made.operators == ("PrpAdd",)
    for name, why in made.left_out:
        assert f"add --shape '{name}=…'" in why

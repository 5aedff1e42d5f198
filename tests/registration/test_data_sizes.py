"""Operators whose kernel returns as much as it finds, registered by a relation that bounds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch_npu  # noqa: F401
import torchair
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import ascend_graph
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.registration import RegisteredOp
from ascend_graph.shapes import RelationError

PROTOTYPE = """
REG_OP(DszFind).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(values, TensorType({DT_FLOAT})).OUTPUT(rows, TensorType({DT_INT64}))
    .OUTPUT(count, TensorType({DT_INT32})).OP_END_FACTORY_REG(DszFind)
"""
RELATION = "x[n, m] -> values[k], rows[k, 2]: int64, count[1]: int32 where k <= n * m"
X = ((1.0, -2.0, 3.0), (-4.0, -5.0, 6.0))


@torch._dynamo.disable
def find(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    on_cpu = x.cpu()
    rows = (on_cpu > 0).nonzero()
    count = torch.tensor([len(rows)], dtype=torch.int32)
    return on_cpu[on_cpu > 0].to(x.device), rows.to(x.device), count.to(x.device)


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    library = torch.library.Library("dsz", "DEF")
    library.define("find(Tensor x) -> (Tensor values, Tensor rows, Tensor count)")
    library.impl("find", find, "PrivateUse1")
    yield library
    library._destroy()


@pytest.fixture(params=["kernel", "prototype"])
def found(library: torch.library.Library, request: pytest.FixtureRequest) -> Iterator[RegisteredOp]:
    if request.param == "kernel":
        op = ascend_graph.register_kernel(eager=torch.ops.dsz.find, shape=RELATION)
    else:
        ascend_graph.load_prototypes(PROTOTYPE)
        op = ascend_graph.register_op("DszFind", eager=torch.ops.dsz.find, shape=RELATION)
    yield op
    op.unregister()


def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values, rows, _ = torch.ops.dsz.find(x * 2)
    return values + 1, rows


def whole_graphs() -> Any:
    """Let a whole graph have sizes from data, for which torch 2.7 must be asked."""
    return torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)


def check(made: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert made[0].tolist() == [3.0, 7.0, 13.0]
    assert made[1].tolist() == [[0, 0], [0, 2], [1, 2]]


def test_outputs_share_a_size_that_is_bounded(found: RegisteredOp) -> None:
    assert "with sizes from data" in str(ascend_graph.explain(found))
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        values, rows, count = torch.ops.dsz.find(torch.empty(2, 3, device="npu"))
        (size,) = values.shape
        assert size.node.expr == rows.shape[0].node.expr
        assert (rows.shape[1], rows.dtype, count.shape) == (2, torch.int64, (1,))
        assert mode.shape_env.bound_sympy(size.node.expr).upper == 6


def test_export_and_compiled_programs(found: RegisteredOp) -> None:
    x = torch.tensor(X).npu()
    check(model(x))

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return model(x)

    check(torch.export.export(Model(), (x,)).module()(x))
    for backend in ("aot_eager", "npugraph_ex", torchair.get_npu_backend()):
        torch._dynamo.reset()
        check(torch.compile(model, backend=backend)(x))
    torch._dynamo.reset()
    with whole_graphs():
        check(torch.compile(model, backend="aot_eager", fullgraph=True)(x))


@pytest.mark.parametrize("backend", ["npugraph_ex", "ge"])
def test_full_graphs_are_refused(found: RegisteredOp, backend: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=torchair.get_npu_backend() if backend == "ge" else backend, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="backend="), whole_graphs():
        compiled(torch.tensor(X).npu())


def test_tensors_on_the_meta_device_have_no_data(found: RegisteredOp) -> None:
    with pytest.raises(MetaError, match="its sizes k come from data.*expected FakeTensors"):
        torch.ops.dsz.find(torch.empty(2, 3, device="meta"))


@pytest.mark.parametrize(
    ("relation", "error", "match"),
    [
        (
            "x[n, m] -> values[2 * k], rows[k, 2]: int64, count[1]: int32 where k <= n",
            RelationError,
            "computes with it",
        ),
        (
            "x[n, m] -> values[k], rows[k, 2]: int64, count[1]: int32 where k <= n, k > 0",
            RelationError,
            "computes with it",
        ),
        ("x[n, m] -> values[k], rows[k, 2]: int64, count[1]: int32", ascend_graph.AscendGraphError, "k is a number"),
        ("x[n, m] -> values[k], rows[q, 2]: int64, count[1]: int32 where k <= n", ascend_graph.AscendGraphError, "q"),
    ],
)
def test_what_is_refused(library: torch.library.Library, relation: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ascend_graph.register_kernel(eager=torch.ops.dsz.find, shape=relation)

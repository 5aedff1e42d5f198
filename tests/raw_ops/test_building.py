"""Raw ops at run time and generated modules, in TorchAir's own graphs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from ascend_graph.codegen.raw_op_module import raw_op_module

from ascend_graph import raw_ops
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import load_prototypes, parse_text, process_catalog
from ascend_graph.raw_ops import IncompatibleCannError, NodeStyle, RawOpError, make_raw_op

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch_npu  # noqa: F401
        from torchair._ge_concrete_graph import compat_ir
        from torchair.ge import _ge_graph as ge
except Exception as error:
    pytest.skip(f"needs torch_npu: {error}", allow_module_level=True)

HEADER = """
REG_OP(Plain)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_FLOAT}))
    .ATTR(epsilon, Float, 1e-7)
    .ATTR(big, Int, 9223372036854775807)
    .OP_END_FACTORY_REG(Plain)
REG_OP(Everything)
    .DYNAMIC_INPUT(xs, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
    .INPUT(axes, TensorType::IndexNumberType())
    .DYNAMIC_OUTPUT(ys, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_FLOAT}))
    .REQUIRED_ATTR(n, Int)
    .ATTR(i, Int, 1).ATTR(f, Float, 0.5).ATTR(b, Bool, true).ATTR(s, String, "a\\"b").ATTR(t, Type, DT_BF16)
    .ATTR(li, ListInt, {1, 2}).ATTR(lf, ListFloat, {0.1}).ATTR(lb, ListBool, {true}).ATTR(ls, ListString, {"a", "b"})
    .ATTR(lt, ListType, {DT_INT8}).ATTR(lli, ListListInt, {{1}, {}}).ATTR(bytes, Bytes, {1, 2})
    .ATTR(value, Tensor, Tensor())
    .OP_END_FACTORY_REG(Everything)
REG_OP(Sink).INPUT(x, TensorType::ALL()).OP_END_FACTORY_REG(Sink)
REG_OP(Choose)
    .INPUT(cond, TensorType::ALL()).OUTPUT(y, TensorType::ALL())
    .GRAPH(then_branch).DYNAMIC_GRAPH(others)
    .OP_END_FACTORY_REG(Choose)
"""
PROTOTYPES = {prototype.op_type: prototype for prototype in parse_text(HEADER).prototypes}


@pytest.fixture(autouse=True)
def catalog() -> Iterator[None]:
    process_catalog.clear()
    load_prototypes(HEADER)
    yield
    process_catalog.clear()


@pytest.fixture(autouse=True)
def depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchAir counts a raw op of its own that raised as running for ever, and writes no code of the graph then."""
    monkeypatch.setattr(ge.local_variable, "auto_convert_nesting", 0, raising=False)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    path = tmp_path_factory.mktemp("generated") / "generated_raw_ops.py"
    path.write_text(raw_op_module(PROTOTYPES.values()).source)
    spec = importlib.util.spec_from_file_location("generated_raw_ops", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated_raw_ops"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["generated_raw_ops"]


@pytest.fixture(params=["run time", "generated"])
def ops(request: pytest.FixtureRequest) -> Any:
    """The raw ops made in either way."""
    return raw_ops if request.param == "run time" else request.getfixturevalue("generated")


def nodes(graph: Any) -> list[str]:
    return [node.name for node in graph.op]


def test_a_plain_node(ops: Any) -> None:
    with ge.GeGraph() as graph:
        x, y = ge.Const(1.0), ge.Const(2.0)
        z = ops.Plain(x, y)
        node = graph.op[-1]
        assert (node.type, node.name, list(node.input)) == ("Plain", "Plain", ["Const:0", "Const_1:0"])
        assert [desc.name for desc in node.input_desc] == ["x", "y"]
        assert [desc.name for desc in node.output_desc] == ["z"]
        assert node.attr["epsilon"].f == pytest.approx(1e-7)
        assert node.attr["big"].i == 2**63 - 1
        assert z.tensor == "Plain:0"
        assert ops.Plain(y=y, x=x).tensor == "Plain_1:0"
        assert (
            'Plain_0 = ge.Plain(ge.Const(1.0, dtype=0), ge.Const(2.0, dtype=0), node_name="Plain")' in graph.python_code
        )


def test_code_is_written_after_a_call_that_raised() -> None:
    with ge.GeGraph() as graph:
        with pytest.raises(RawOpError):
            raw_ops.Plain(1.0, 2.0, epsilon="small")
        raw_ops.Plain(ge.Const(1.0), ge.Const(2.0))
        assert "ge.Plain(" in graph.python_code


def test_every_kind_of_parameter(ops: Any) -> None:
    with ge.GeGraph() as graph:
        x = ge.Const(1.0)
        ys, z = ops._Everything(
            [x, x],
            None,
            [0, 1],
            size_of_ys=2,
            n=7,
            f=0.0,
            ls=["c"],
            li=[],
            value=None,
            dependencies=[x],
            node_name="me",
        )
        node = graph.op[-1]
        assert node.name == "me"
        assert list(node.input) == ["Const:-1", "Const:0", "Const:0", "", "Const_1:0"]
        assert graph.op[1].attr["value"].t.desc.dtype == 8  # proto's DT_INT64
        assert [desc.name for desc in node.input_desc] == ["xs0", "xs1", "bias", "axes"]
        assert node.input_desc[2].attr["_is_unfed_optional"].i == 1
        assert [desc.name for desc in node.output_desc] == ["ys0", "ys1", "z"]
        assert [[tensor.tensor for tensor in ys], z.tensor] == [["me:0", "me:1"], "me:2"]
        attr = node.attr
        assert (attr["n"].i, attr["i"].i, attr["f"].f, attr["b"].b) == (7, 1, 0.0, True)
        assert attr["f"].WhichOneof("value") == "f"
        assert (attr["s"].s, attr["bytes"].bt, attr["t"].dt) == (b'a"b', b"\x01\x02", 27)
        # GE drops a list whose val_type is VT_LIST_NONE: strings need VT_LIST_STRING.
        assert (list(attr["ls"].list.s), attr["ls"].list.val_type) == ([b"c"], 1)
        assert (list(attr["li"].list.i), attr["li"].list.val_type) == ([], 2)
        assert (list(attr["lb"].list.b), list(attr["lt"].list.dt)) == ([True], [2])
        assert [list(item.list_i) for item in attr["lli"].list_list_int.list_list_i] == [[1], []]
        assert attr["value"].WhichOneof("value") == "t"


def test_an_op_without_outputs_returns_none(ops: Any) -> None:
    with ge.GeGraph():
        assert ops.Sink(ge.Const(1.0)) is None


def test_both_ways_build_the_same_graph(generated: ModuleType) -> None:
    def build(ops: Any) -> bytes:
        with ge.GeGraph() as graph:
            x = ge.Const(1.0)
            y = ops.Plain(x, 2.0, epsilon=3)
            ys, z = ops._Everything((y,), x, 3, size_of_ys=1, n=1, lf=(1.5, 2), t=3, lli=[[1, 2]])
            ops.Plain(ys[0], z, node_name="last", dependencies=[y])
            ops.Sink(z)
            return bytes(graph._proto.SerializeToString(deterministic=True))

    assert build(raw_ops) == build(generated)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda ops, x: ops.Plain(x), TypeError),
        (lambda ops, x: ops.Plain(x, x, x), TypeError),
        (lambda ops, x: ops.Plain(x, x, epsylon=1), TypeError),
        (lambda ops, x: ops._Everything([x], None, x, n=1), TypeError),
        (lambda ops, x: ops.Plain(x, None), AssertionError),
        (lambda ops, x: ops._Everything(x, None, x, n=1, size_of_ys=1), (AssertionError, TypeError)),
        (lambda ops, x: ops.Plain(x, x, epsilon="a"), (RawOpError, TypeError)),
        (lambda ops, x: ops.Plain(x, x, big=2**63), (RawOpError, ValueError)),
        (lambda ops, x: ops._Everything([x], None, x, n=1, size_of_ys=1, ls="abc"), (RawOpError, TypeError)),
        (lambda ops, x: ops.Plain(x, x, node_name="Const"), AssertionError),
        (lambda ops, x: ops.Plain(x, x, dependencies=[3]), AttributeError),
    ],
)
def test_a_call_that_fails_leaves_the_graph_as_it_was(
    ops: Any, call: Callable[[Any, Any], Any], error: type[Exception]
) -> None:
    with ge.GeGraph() as graph:
        x = ge.Const(1.0)
        with pytest.raises(error):
            call(ops, x)
        assert nodes(graph) == ["Const"]
        ops.Plain(x, x)
        assert nodes(graph) == ["Const", "Plain"]


def test_errors_name_the_attr_and_the_value() -> None:
    with ge.GeGraph():
        x = ge.Const(1.0)
        with pytest.raises(RawOpError, match=r"Plain: epsilon='a' must be a value of the attr type Float \(float\)"):
            raw_ops.Plain(x, x, epsilon="a")
        with pytest.raises(RawOpError, match=r"Plain: epsilon=1e\+300 must be .*float32 does not hold 1e\+300"):
            raw_ops.Plain(x, x, epsilon=1e300)
        raw_ops.Plain(x, x, epsilon=float("-inf"))
        with pytest.raises(RawOpError, match=r"Plain: epsilon=Tensor\(.*\) depends on a symbolic size"):
            raw_ops.Plain(x, x, epsilon=x)
        with pytest.raises(RawOpError, match=r"size_of_ys=-1 must be the number of tensors of the output ys"):
            raw_ops._Everything([x], None, x, n=1, size_of_ys=-1)


def test_compact_nodes_leave_out_what_is_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    answers = iter(["", "", "no such attr"])

    def answer(*question: Any, **named: Any) -> str:
        asked.append((*question, *named.values()))
        return next(answers)

    monkeypatch.setattr(compat_ir, "is_cann_compat", answer)
    everything = make_raw_op(PROTOTYPES["Everything"], NodeStyle.COMPACT)
    with ge.GeGraph() as graph:
        x = ge.Const(1.0)
        everything([x], None, x, size_of_ys=1, n=1, li=[1, 2], f=0.0, node_name="a", dependencies=[x])
        node = graph.op[-1]
        assert (node.name, list(node.input), sorted(node.attr)) == ("a", ["Const:0", "Const:0", "Const:-1"], ["f", "n"])
        everything([x], x, x, size_of_ys=0, n=1, i=1, s='a"b', lli=[[1], []], lt=[2])
        assert sorted(graph.op[-1].attr) == ["n"]
        with pytest.raises(IncompatibleCannError, match="no such attr"):
            everything([x], None, x, size_of_ys=0, n=1, b=False)
        assert len(graph.op) == 3
    assert asked == [("Everything", (), ("f",)), ("Everything", ("bias",), ()), ("Everything", (), ("b",))]


def test_tensor_attrs_take_values() -> None:
    with ge.GeGraph() as graph:
        x = ge.Const(1.0)
        raw_ops._Everything([x], None, x, size_of_ys=0, n=1, value=[1.0, 2.0])
        assert nodes(graph) == ["Const", "Everything"]
        ge.Const([1.0, 2.0])
        assert graph.op[1].attr["value"].t == graph.op[2].attr["value"].t


def test_subgraphs_move_into_the_model(ops: Any) -> None:
    def branch(name: str) -> Any:
        with ge.GeGraph(name=name) as graph:
            ge.Const(1.0)
        return graph

    with ge.GeGraph() as inner:
        ops.Choose(ge.Const(1.0), then_branch=branch("a"), others=[])
    with ge.GeGraph() as graph:
        y = ops.Choose(ge.Const(1.0), then_branch=inner, others=[branch("b"), inner])
        node = graph.op[-1]
    assert y.tensor == "Choose:0"
    assert list(node.subgraph_name) == ["Choose_then_branch", "Choose_others0", "Choose_others1"]
    names = [part.name for part in graph.model.graph][1:]
    assert names == [
        "Choose_then_branch",
        "Choose_then_branch/Choose_then_branch",
        "Choose_others0",
        "Choose_others1",
        "Choose_others1/Choose_then_branch",
    ]
    nested = {part.name: [name for node in part.op for name in node.subgraph_name] for part in graph.model.graph}
    assert nested["Choose_others1"] == ["Choose_others1/Choose_then_branch"]


def test_a_wrong_subgraph_leaves_the_model_as_it_was() -> None:
    with ge.GeGraph() as graph:
        x = ge.Const(1.0)
        with pytest.raises(RawOpError, match="then_branch needs a GeGraph, not int"):
            raw_ops.Choose(x, then_branch=3, others=[])
        assert (nodes(graph), len(graph.model.graph)) == (["Const"], 1)


def test_functions_are_found_by_name() -> None:
    assert raw_ops.Plain is raw_ops.Plain
    assert raw_ops.get_raw_op("Everything") is raw_ops._Everything
    with pytest.raises(AttributeError, match="is named _Everything"):
        raw_ops.Everything  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'Plain'") as caught:
        raw_ops.Plane  # noqa: B018
    assert isinstance(caught.value, AscendGraphError)
    assert not hasattr(raw_ops, "__wrapped__")


def test_a_reloaded_prototype_gives_a_new_function() -> None:
    before = raw_ops.Sink
    with pytest.warns(UserWarning, match="defined differently"):
        load_prototypes("REG_OP(Sink).INPUT(x, TensorType::ALL()).ATTR(a, Int, 1).OP_END_FACTORY_REG(Sink)")
    with ge.GeGraph() as graph:
        raw_ops.Sink(ge.Const(1.0), a=2)
        assert graph.op[-1].attr["a"].i == 2
    assert raw_ops.Sink is not before


def test_attrs_of_a_scope_reach_the_node(ops: Any) -> None:
    with ge.GeGraph() as graph, ge.attr_scope({"_super_kernel_scope": b"here"}):
        x = ge.Const(1.0)
        ops.Plain(x, x)
        assert graph.op[-1].attr["_super_kernel_scope"].s == b"here"


def test_each_thread_has_its_own_graph() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with ge.GeGraph() as graph:
                x = ge.Const(1.0)
                for _ in range(50):
                    x = raw_ops.Plain(x, x)
                assert nodes(graph)[-1] == "Plain_49"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

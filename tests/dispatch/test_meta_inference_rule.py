"""TorchAir's own shape path: in a dynamic graph it writes an operator's `_inference_rule` from the symbolic shapes that
the
meta function gives. Every expression a relation makes must survive that translation."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import ascend_graph
from ascend_graph.dispatch.meta import meta_function
from ascend_graph.host.kernels import host_kernel
from ascend_graph.shapes import parse_relation

pytest.importorskip("torch_npu", reason="TorchAir comes with torch_npu", exc_type=ImportError)
translate = pytest.importorskip("torchair._ge_concrete_graph.infer_symbol_shape").sympy_to_ge_expr

#: GE's symbolic functions.
GE: dict[str, Any] = {
    "Floor": math.floor,
    "Ceil": math.ceil,
    "Div": lambda a, b: a / b,
    "Mod": lambda a, b: a % b,
    "Min": min,
    "Max": max,
    "Pow": pow,
}

RELATIONS = [
    "x[m, n], y[p] -> o[m + n, 2 * p - 1, m // 2, n % 3]",
    "x[m, n], y[p] -> o[ceildiv(m, k), ceildiv(m, n), (m + n) // k * 4]",
    "x[m, n], y[p] -> o[min(m, p), max(n, p), m * n * p]",
    "x[*s], y[p] -> o[*s, numel(x) // p, prod(s) + rank(x)]",
    "x[..., n], y[...] -> o[..., n // 2]",
]


@pytest.fixture
def schema() -> Iterator[Any]:
    library = torch.library.Library("rules", "FRAGMENT")
    library.define("rule(Tensor x, Tensor y, int k=3) -> Tensor")
    yield torch.ops.rules.rule.default._schema
    library._destroy()


@pytest.mark.parametrize("text", RELATIONS)
def test_symbolic_shapes_become_expressions_of_ge(schema: Any, text: str) -> None:
    relation = parse_relation(text)
    function = meta_function(relation, schema)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    sizes: dict[str, tuple[int, ...]] = {"x": (6, 8), "y": (6,) if "..." in text else (5,)}
    fakes = {}
    for name, shape in sizes.items():
        context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * len(shape))
        fakes[name] = mode.from_tensor(torch.empty(shape), symbolic_context=context)
    with mode:
        out = function(fakes["x"], fakes["y"])
    symbols = {str(d): d.node.hint for f in fakes.values() for d in f.shape}
    rng = random.Random(text)
    for scale in (1, *(rng.randint(2, 9) for _ in range(5))):
        values = {symbol: hint * scale for symbol, hint in symbols.items()}
        shapes = {name: tuple(values[str(d)] for d in fake.shape) for name, fake in fakes.items()}
        ((wanted, _),) = relation.infer(shapes, dict.fromkeys(shapes, "float16"), {"k": 3})
        # Written by TorchAir's translator, from the expressions of the list above.
        got = [eval(translate(str(d)), GE, values) for d in out.shape]
        assert got == list(wanted)


# ---------------------------------------------------------------------------------------------------- a graph as a
# whole

HEADER = """
REG_OP(RuleMix)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(w, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_INT32}))
    .REQUIRED_ATTR(block, Int)
    .OP_END_FACTORY_REG(RuleMix)
"""
MIX = "x[m, k], w[k, n], bias[n] -> y[m, n + n], z[ceildiv(m, block), max(m, n), m * k // 2]: int32"


@host_kernel("RuleMix")
def _mix(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None, *, block: int) -> tuple[torch.Tensor, ...]:
    product = x @ w if bias is None else x @ w + bias
    (m, k), n = x.shape, w.shape[1]
    z = torch.full((-(-m // block), max(m, n), m * k // 2), block, dtype=torch.int32, device=x.device)
    return torch.cat((product, -product), 1), z


@pytest.mark.filterwarnings("default")  # compiling warns of much that is torch's and torchair's own affair
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_dynamic_graph_carries_rules_that_agree_with_the_relation(
    monkeypatch: pytest.MonkeyPatch, with_bias: bool
) -> None:
    import torchair
    from torchair._ge_concrete_graph.fx2ge_converter import GeConcreteGraph

    ascend_graph.load_prototypes(HEADER)
    namespace = f"rule_mix_{with_bias}".lower()
    library = torch.library.Library(namespace, "DEF")
    library.define("mix(Tensor x, Tensor w, *, Tensor? bias=None, int block) -> (Tensor y, Tensor z)")
    library.impl("mix", _mix, "PrivateUse1")
    overload = getattr(torch.ops, namespace).mix.default
    registered = ascend_graph.register_op("RuleMix", eager=overload, shape=MIX)
    rules: list[dict[str, Any]] = []
    call = GeConcreteGraph.__call__

    def watched(graph: Any, *args: Any, **kwargs: Any) -> Any:
        rules.extend(json.loads(op.attr["_inference_rule"].s) for op in graph._graph.op if op.type == "RuleMix")
        return call(graph, *args, **kwargs)

    monkeypatch.setattr(GeConcreteGraph, "__call__", watched)
    torch._dynamo.utils.counters.clear()
    try:
        backend = torchair.get_npu_backend()
        compiled = torch.compile(
            lambda x, w, b: overload(x, w, bias=b, block=4), backend=backend, dynamic=True, fullgraph=True
        )
        for m, k, n in ((6, 8, 10), (5, 3, 7), (10, 9, 4)):
            x, w, b = torch.randn(m, k), torch.randn(k, n), torch.randn(n) if with_bias else None
            y, z = compiled(x.npu(), w.npu(), None if b is None else b.npu())
            wanted = _mix(x, w, b, block=4)
            torch.testing.assert_close(y.cpu(), wanted[0])
            assert torch.equal(z.cpu(), wanted[1])
            rule = rules[-1]
            assert rule["dtype"] == [0, 3]  # GE's numbers of float and int32
            given = [list(t.shape) for t in (x, w, b) if t is not None]
            assert _evaluated(rule["shape"], given) == [list(wanted[0].shape), list(wanted[1].shape)]
        # torch 2.7 guards which of two symbolic sizes is the smaller.
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1 + (torch.__version__ < (2, 8))
    finally:
        registered.unregister()
        library._destroy()
        torch._dynamo.reset()


def _evaluated(rule: dict[str, Any], shapes: list[list[int]]) -> list[list[int]]:
    """The output shapes that a rule of TorchAir gives for input shapes."""
    values: dict[str, int] = {}
    for symbols, shape in zip(rule["inputs"], shapes, strict=False):
        values |= dict(zip(symbols or (), shape, strict=False))
    # Written by TorchAir's translator, from the relation above.
    return [[eval(size, GE, values) for size in output] for output in rule["outputs"]]

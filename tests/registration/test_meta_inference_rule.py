"""TorchAir's own shape path: in a dynamic graph it writes an operator's `_inference_rule` from the symbolic shapes that the
meta function gives. Every expression a relation makes must survive that translation."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from ascend_graph.registration.meta import meta_function
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

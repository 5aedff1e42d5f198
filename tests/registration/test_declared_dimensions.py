"""What is declared of dimensions, on random operators whose dimensions are known: what is true is taken, everything
else is refused."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.distributed.tensor import DTensor

import ascend_graph
from ascend_graph import opcheck
from ascend_graph.registration.dimensions.batching import VmapLoopWarning
from ascend_graph.registration.dimensions.independence_checks import find_independent_dims
from ascend_graph.registration.dimensions.independent_dims import BatchError

pytestmark = pytest.mark.filterwarnings("error::ascend_graph.registration.dimensions.batching.VmapLoopWarning")

LETTERS = "abcd"
WAYS = ("batch", "sum", "max", "min")
SEEDS = range(12)


@dataclass(frozen=True)
class Made:
    """A random operator of two tensors, and what is true of its dimensions."""

    relation: str
    kernel: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    #: Dimension → how it may be declared.
    truth: Mapping[str, str | None]
    sizes: Mapping[str, int]
    places: tuple[str, str, str]


def make(seed: int) -> Made:
    """Products summed, or largest products, over some dimensions; then perhaps a step along others, and one that no
    sum goes through."""
    rng = random.Random(seed)
    x, w = ("".join(rng.sample(LETTERS, rng.randint(1, 3))) for _ in range(2))
    every = sorted({*x, *w})
    y = "".join(rng.sample(every, rng.randint(1, len(every))))
    over = [name for name in every if name not in y]
    how = rng.choice(("sum", "max", "min"))
    mixed = set(rng.sample(y, rng.choice((0, 1)) if len(y) > 1 else 0))
    bent = rng.random() < 0.3

    def kernel(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        product = torch.einsum(f"{x},{w}->{y}{''.join(over)}", one, other)
        if over:
            axes = tuple(range(len(y), product.dim()))
            product = product.sum(axes) if how == "sum" else getattr(torch, f"a{how}")(product, axes)
        for name in mixed:
            product = product.cumsum(y.index(name)) + product.roll(1, y.index(name))
        return (3 * product).cos() if bent else product

    # A largest or smallest product goes through a running sum as little as a sum does through a cosine.
    through = not bent and (how == "sum" or not mixed)
    truth = {name: "batch" if name in y else how if through else None for name in every}
    truth |= dict.fromkeys(mixed)
    written = [f"x[{', '.join(x)}]", f"w[{', '.join(w)}]", f"y[{', '.join(y)}]"]
    sizes = dict(zip(every, rng.sample((2, 3, 4, 5), len(every)), strict=True))
    return Made(f"{written[0]}, {written[1]} -> {written[2]}", kernel, truth, sizes, (x, w, y))


#: What was made, its registration with declarations, and its torch operator.
Case = tuple[Made, Callable[..., ascend_graph.RegisteredOp], Any]


@pytest.fixture(params=SEEDS)
def made(request: pytest.FixtureRequest) -> Iterator[Case]:
    seed: int = request.param
    op = make(seed)
    ascend_graph.load_prototypes(
        f"REG_OP(Declared{seed}).INPUT(x, TensorType({{DT_FLOAT}})).INPUT(w, TensorType({{DT_FLOAT}}))"
        f".OUTPUT(y, TensorType({{DT_FLOAT}})).OP_END_FACTORY_REG(Declared{seed})"
    )
    library = torch.library.Library("declared", "FRAGMENT")
    library.define(f"op{seed}(Tensor x, Tensor w) -> Tensor")
    for key in ("CPU", "PrivateUse1"):
        library.impl(f"op{seed}", op.kernel, key)
    overload = getattr(torch.ops.declared, f"op{seed}").default
    registered: list[ascend_graph.RegisteredOp] = []

    def register(**given: Any) -> ascend_graph.RegisteredOp:
        registered.append(ascend_graph.register_op(f"Declared{seed}", eager=overload, shape=op.relation, **given))
        return registered[-1]

    yield op, register, overload
    for one in registered:
        one.unregister()
    library._destroy()


def declared(name: str, way: str) -> dict[str, Any]:
    return {"batch": (name,)} if way == "batch" else {"reduce": {name: way}}


def rules_of(overload: Any) -> list[str]:
    """What vmap and DTensor know of an operator."""
    propagator = DTensor._op_dispatcher.sharding_propagator
    tables = ("op_single_dim_strategy_funcs", "op_strategy_funcs", "op_to_rules", "op_to_schema_info")
    known = [table for table in tables if overload in getattr(propagator, table, {})]
    has = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "FuncTorchBatched")
    return [*known, "vmap"] if has else known


def test_what_is_not_true_is_refused_with_a_call_and_leaves_no_rule(
    made: Case,
) -> None:
    op, register, overload = made
    for name, way in itertools.product(op.truth, WAYS):
        if op.truth[name] != way:
            with pytest.raises(BatchError, match=rf"^declared::op\d+: .*\b{name}\b"):
                register(**declared(name, way))
            assert rules_of(overload) == []
    found = find_independent_dims(overload, ascend_graph.parse_relation(op.relation))
    assert {**dict.fromkeys(found.batch, "batch"), **found.reduce} == {n: w for n, w in op.truth.items() if w}


def test_what_is_true_is_mapped_and_sharded(made: Case) -> None:
    op, register, overload = made
    batch = tuple(name for name, way in op.truth.items() if way == "batch")
    registered = register(batch=batch, reduce={n: w for n, w in op.truth.items() if w not in ("batch", None)})
    assert {"op_to_schema_info", "vmap"} <= set(rules_of(overload))
    x, w = (torch.randn([op.sizes[name] for name in place]) for place in op.places[:2])
    opcheck(registered, [(x, w)], checks=["vmap", "sharding"])
    for of_x, of_w in ((0, None), (None, -1), (x.dim(), 0)):
        xs = x if of_x is None else torch.stack([x, x * 2 - 1, x.flip(0)], of_x)
        ws = w if of_w is None else torch.stack([w, w.flip(-1), 1 - w], of_w)
        parts = torch.stack(
            [
                op.kernel(x if of_x is None else xs.select(of_x, n), w if of_w is None else ws.select(of_w, n))
                for n in range(3)
            ]
        )
        once = torch.vmap(overload, (of_x, of_w))
        mapped = [place for place, axis in zip(op.places, (of_x, of_w), strict=False) if axis is not None]
        with announced_unless(batch, mapped):
            torch.testing.assert_close(once(xs, ws), parts, rtol=1e-4, atol=1e-4)
        with announced_unless(batch, mapped, [op.places[0]]):
            twice = torch.vmap(once, (0, None))(torch.stack([xs * 2, xs]), ws)
        torch.testing.assert_close(twice[1], parts, rtol=1e-4, atol=1e-4)


def announced_unless(batch: tuple[str, ...], *levels: list[str]) -> contextlib.AbstractContextManager[Any]:
    """A loop is announced, unless each level has an independent dimension that is in everything that is mapped
    there."""
    taken = all(any(all(name in place for place in mapped) for name in batch) for mapped in levels)
    return contextlib.nullcontext() if taken else pytest.warns(VmapLoopWarning)


@pytest.mark.parametrize(
    ("schema", "dtype"),
    [
        ("int dst_type=6", ": dst_type"),
        ("ScalarType dst_type", ": dst_type"),
        ("ScalarType? dst_type=None", ": dst_type if dst_type is not None else float32"),
        ("ScalarType dst_type", ""),  # which the relation does not read
    ],
)
def test_calls_of_operators_that_take_a_dtype_are_drawn(schema: str, dtype: str) -> None:
    library = torch.library.Library("drawn_dtypes", "FRAGMENT")
    number = {4: torch.int64, 5: torch.float16, 6: torch.float32, 15: torch.bfloat16}

    def kernel(x: torch.Tensor, *, dst_type: Any = None) -> torch.Tensor:
        made = x * 2
        if not dtype:
            return made
        return made.to(dst_type if isinstance(dst_type, torch.dtype) else number[6 if dst_type is None else dst_type])

    relation = f"x[m, n] -> y[m, n]{dtype}"
    try:
        library.define(f"convert(Tensor x, *, {schema}) -> Tensor")
        library.impl("convert", kernel, "CPU")
        op = ascend_graph.register_kernel(eager=torch.ops.drawn_dtypes.convert, shape=relation, batch=("m", "n"))
        op.unregister()
    finally:
        library._destroy()

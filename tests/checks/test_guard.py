"""The guard against metas that are right, and against one wrong in each way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from ascend_graph.checks.guard import MetaGuard, MetaMismatchError
from ascend_graph.dispatch.fake import MetaHandle, register_meta
from ascend_graph.dispatch.meta import meta_function
from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import parse_relation

Make = Callable[..., Any]


@pytest.fixture
def operator() -> Iterator[Make]:
    """Makes an operator with a CPU kernel, and a meta function from a relation or a function."""
    library = torch.library.Library("guarded", "FRAGMENT")
    handles: list[MetaHandle] = []

    def make(name: str, schema: str, kernel: Callable[..., Any], meta: Any) -> Any:
        library.define(name + schema)
        library.impl(name, kernel, "CPU")
        overload = getattr(torch.ops.guarded, name).default
        function = meta_function(parse_relation(meta), overload._schema) if isinstance(meta, str) else meta
        handles.append(register_meta(overload, function))
        return overload

    yield make
    for handle in handles:
        handle.remove()
    library._destroy()


def test_a_right_meta_passes(operator: Make) -> None:
    mm = operator("mm", "(Tensor x, Tensor w) -> Tensor", torch.mm, "x[m, k], w[k, n] -> y[m, n]")
    with MetaGuard() as guard:
        mm(torch.ones(2, 3), torch.ones(3, 5))
        torch.ones(2) + 1  # not watched: torch's own
    assert guard.checked == 1
    assert guard.mismatches == []


@pytest.mark.parametrize(
    ("name", "kernel", "meta", "what"),
    [
        ("shape", lambda x: x.sum(0), "x[m, n] -> y[m]", "shape"),
        ("dtype", lambda x: x.to(torch.float64), "x[m, n] -> y[m, n]", "dtype"),
        ("strides", lambda x: x.clone().t().contiguous().t(), "x[m, n] -> y[m, n]", "strides"),
        ("aliasing", lambda x: x.view(x.shape), "x[m, n] -> y[m, n]", "aliasing"),
        ("promised_alias", lambda x: x.clone(), lambda x: x, "aliasing"),
        ("refusal", lambda x: x.clone(), "x[m, n, k] -> y[m, n, k]", "refusal"),
    ],
)
def test_each_way_to_be_wrong(operator: Make, name: str, kernel: Any, meta: Any, what: str) -> None:
    overload = operator(name, "(Tensor x) -> Tensor", kernel, meta)
    with MetaGuard({"guarded"}, collect=True) as guard:
        overload(torch.ones(2, 3))
    assert [m.what for m in guard.mismatches] == [what]
    with pytest.raises(MetaMismatchError, match=f"guarded::{name}: {what}"), MetaGuard():
        overload(torch.ones(2, 3))


def test_an_absent_output(operator: Make) -> None:
    schema = "(Tensor x, bool both=True) -> (Tensor, Tensor)"
    kernel = lambda x, both=True: (x + 1, x + 2 if both else None)  # noqa: E731
    overload = operator("pair", schema, kernel, "x[n] -> y[n], z[n] if both else None")
    with MetaGuard([overload]) as guard:
        overload(torch.ones(3))
    assert guard.checked == 1


def test_strides_of_dimensions_of_size_one_do_not_matter(operator: Make) -> None:
    overload = operator(
        "thin", "(Tensor x) -> Tensor", lambda x: x.clone().as_strided((1, 3), (7, 1)), "x[a, b] -> y[a, b]"
    )
    with MetaGuard() as guard:
        overload(torch.ones(1, 3))
    assert guard.checked == 1


def test_what_cannot_be_watched() -> None:
    with pytest.raises(AscendGraphError, match="expected an overload, a packet or a namespace"):
        MetaGuard([3])

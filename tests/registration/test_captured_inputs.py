"""Captured graphs with registered operators that return their inputs, views of them, or keep them for the gradient."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torchair
from torch.utils._pytree import tree_leaves
from writing_operators import captured, numbers

import ascend_graph
from ascend_graph.host.kernels import host_kernel

T = torch.Tensor
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]

HEADER = """
REG_OP(CapturedScale)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(w, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(CapturedScale)

REG_OP(CapturedGrow)
    .INPUT(total, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(total, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(CapturedGrow)
"""


@host_kernel("CapturedScale")
def _scale(x: T, w: T) -> T:
    return x * w


@host_kernel("CapturedGrow", writes=("total",))
def _grow(total: T, x: T) -> T:
    return total.mul_(10).add_(x)


def _gradient(ctx: Any, grad: T) -> tuple[T, T]:
    x, w, _ = ctx.saved_tensors
    return grad * w, grad * x


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("captured_inputs", "DEF")
    library.define("scale(Tensor x, Tensor w) -> Tensor")
    library.define("grow(Tensor(a!) total, Tensor x) -> ()")
    for key in ("CPU", "PrivateUse1"):
        library.impl("scale", _scale, key)
        library.impl("grow", lambda total, x: (_grow(total, x), None)[1], key)
    scale, grow = torch.ops.captured_inputs.scale.default, torch.ops.captured_inputs.grow.default
    registered = [
        ascend_graph.register_op("CapturedScale", eager=scale, shape="x[*s], w[*s] -> y[*s]", backward=_gradient),
        ascend_graph.register_op("CapturedGrow", eager=grow),
    ]
    yield SimpleNamespace(scale=scale, grow=grow)
    for registration in registered:
        registration.unregister()
    library._destroy()


def compiled(function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
    """Compile with npugraph_ex; with TorchAir's own captures in a process of their own, for it has no room for both."""
    if "reduce-overhead" not in os.environ.get("CAPTURES", ""):
        return captured(function, dynamic)
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    return torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config), dynamic=dynamic)


RETURNS: dict[str, Callable[[T], Any]] = {
    "the input": lambda x: x,
    "a part": lambda x: x[1:],
    "detached": lambda x: x.detach(),
    "transposed": lambda x: x.t()[1:],
    "two views": lambda x: (x[0], x.view(-1)),
    "parts": lambda x: x.split(2),
    "rows": lambda x: x.unbind(1),
    "a copy": lambda x: x.clone(),
    "a copy of a part": lambda x: x[1:].clone(),
    "a repeated one": lambda x: x.repeat(1, 1),
    "contiguous": lambda x: x.contiguous(),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("returned", RETURNS)
def test_what_lies_in_an_input_is_returned_from_the_callers_tensor(
    ops: SimpleNamespace, dynamic: bool, returned: str
) -> None:
    def run(x: T, w: T) -> Any:
        return ops.scale(x, w), RETURNS[returned](x)

    program = compiled(run, dynamic)
    calls = [numbers(4 if dynamic and n == 1 else 3, 4) + n for n in range(3)]
    given = [x.npu() for x in calls]
    lying = []
    for x, on_device in zip(calls, given, strict=True):
        results, expected = tree_leaves(program(on_device, (x * 2).npu())), tree_leaves(run(x, x * 2))
        for result, right in zip(results, expected, strict=True):
            torch.testing.assert_close(result.cpu(), right)
            assert result.stride() == right.stride()
            assert _shared(result, on_device) == _shared(right, x)
        lying += [(result, right) for result, right in zip(results, expected, strict=True) if _shared(right, x)]
    for found, right in [*zip(given, calls, strict=True), *lying]:
        torch.testing.assert_close(found.cpu(), right)


def _shared(a: T, b: T) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def test_what_a_gradient_keeps_is_the_callers_tensor(ops: SimpleNamespace) -> None:
    program = compiled(lambda x, w: ops.scale(x.t(), w.t()))
    w = numbers(3, 4).npu().requires_grad_()
    calls = [numbers(3, 4) + n for n in range(3)]
    on_device = [x.npu() for x in calls]
    for x, given in zip(calls, on_device, strict=True):
        w.grad = None
        program(given, w).sum().backward()
        torch.testing.assert_close(w.grad.cpu(), x)
    assert [x.cpu().tolist() for x in on_device] == [x.tolist() for x in calls]


def test_a_gradient_that_is_handed_on_stays_as_it_is(ops: SimpleNamespace) -> None:
    program = compiled(lambda x, y, w: ops.scale(x, w) * 0 + x + y)
    x, y, w = (numbers(3, 4).npu().requires_grad_() for _ in range(3))
    outside = [torch.full((3, 4), float(n + 1)).npu() for n in range(3)]
    for n, grad in enumerate(outside):
        for found in torch.autograd.grad(program(x, y, w), (x, y), grad):
            torch.testing.assert_close(found.cpu(), torch.full((3, 4), float(n + 1)))
    assert [grad[0, 0].item() for grad in outside] == [1, 2, 3]


def test_views_of_written_inputs_have_the_new_values(ops: SimpleNamespace) -> None:
    def run(total: T, x: T) -> tuple[T, T]:
        ops.grow(total, x)
        return total[1:], x.t()

    program = compiled(run)
    for n in range(3):
        total, x = numbers(3, 4) + n, numbers(3, 4) - n
        given, on_device = total.npu(), x.npu()
        part, turned = program(given, on_device)
        right, _ = run(total, x)
        torch.testing.assert_close(part.cpu(), right)
        torch.testing.assert_close(turned.cpu(), x.t())
        torch.testing.assert_close(given.cpu(), total)
        torch.testing.assert_close(on_device.cpu(), x)
        assert part.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


def test_parts_of_an_input_that_needs_gradients_are_its_views(ops: SimpleNamespace) -> None:
    program = compiled(lambda x, w: (ops.scale(x, w), *x.split(2)))
    for n in range(3):
        x, w = (numbers(4, 3) + n).npu().requires_grad_(), numbers(4, 3).npu()
        scaled, first, second = program(x, w)
        assert (first.data_ptr(), second.data_ptr()) == (x.data_ptr(), x[2:].data_ptr())
        (scaled.sum() + (first * second).sum()).backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, w + x.detach().roll(2, 0))


#: Writes to a part of a value.
PARTS: dict[str, Callable[[T], Any]] = {
    "rows": lambda v: v[1:].mul_(2),
    "a row": lambda v: v[1].mul_(2),
    "a column": lambda v: v[:, 1].mul_(2),
    "the diagonal": lambda v: v.diagonal().mul_(2),
    "two parts": lambda v: (v[:1].mul_(2), v[:, :2].add_(1)),
    "another part": lambda v: v[:1].copy_(v[1:2] * 2),
    "a part by strides": lambda v: v.as_strided((3,), (1,), 0).mul_(2),
    "a column by strides": lambda v: v.as_strided((3,), (3,), 1).add_(v[0] * 2),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_written_has_its_gradient(ops: SimpleNamespace, part: str, dynamic: bool) -> None:
    def run(x: T, w: T) -> T:
        value = torch.sin(ops.scale(x, w))
        PARTS[part](value)
        return value * value

    found = []
    for program, device in ((run, "cpu"), (compiled(run, dynamic), "npu")):
        x = (numbers(3, 3) / 10).to(device).requires_grad_()
        (program(x, (numbers(3, 3) / 7).to(device)) * numbers(3, 3).to(device)).sum().backward()
        assert x.grad is not None
        found.append(x.grad.cpu())
    torch.testing.assert_close(found[1], found[0])


def test_an_input_that_is_only_returned_may_change_its_size(ops: SimpleNamespace) -> None:
    program = compiled(lambda x, z, w: (ops.scale(z, w), x[1:], x.detach(), *x.split(1, 1)), dynamic=True)
    for rows in (7, 5, 6):
        x, z = numbers(rows, 4).npu(), numbers(3, 4).npu()
        scaled, part, whole, *_ = program(x, z, z)
        torch.testing.assert_close(scaled, z * z)
        torch.testing.assert_close(part, x[1:])
        torch.testing.assert_close(whole, x)


def test_an_expanded_input_is_returned(ops: SimpleNamespace) -> None:
    program = compiled(lambda x, w: (ops.scale(x, w), x.t(), w.detach()))
    for n in range(3):
        x, w = numbers(4) + n, numbers(3, 4)
        scaled, turned, _ = program(x.npu().expand(3, 4), w.npu())
        torch.testing.assert_close(scaled.cpu(), x * w)
        torch.testing.assert_close(turned.cpu(), x.expand(3, 4).t())


#: Views whose dimensions are in another order in memory, of a tensor of 4 by 6.
ORDERS: dict[str, Callable[[T], T]] = {
    "transposed": lambda x: x.t(),
    "permuted": lambda x: x.view(4, 2, 3).permute(1, 2, 0),
    "a transposed part": lambda x: x[:, ::2].t(),
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_gradient_keeps_what_is_computed_of_an_input_with_strides(ops: SimpleNamespace, order: str) -> None:
    program = compiled(lambda x, w: ops.scale(x.clone(), w) * x.clone() * torch.sin(w))
    for n in range(3):
        x, w = ((ORDERS[order](numbers(4, 6) + n + k)) for k in range(2))
        given, scale = (ORDERS[order]((numbers(4, 6) + n + k).npu()).detach().requires_grad_() for k in range(2))
        program(given, scale).sum().backward()
        assert given.grad is not None
        assert scale.grad is not None
        torch.testing.assert_close(given.grad.cpu(), 2 * x * w * w.sin())
        torch.testing.assert_close(scale.grad.cpu(), x * x * (w.sin() + w * w.cos()))


@pytest.mark.skipif("CAPTURES" in os.environ, reason="the option is npugraph_ex's")
def test_a_gradient_of_an_input_with_strides_may_change_its_size(ops: SimpleNamespace) -> None:
    program = torch.compile(
        lambda x: ops.scale(x.clone(), x) * x.clone(),
        backend="npugraph_ex",
        dynamic=True,
        options={"reuse_graph_pool_in_same_fx": False},
    )
    for rows in (3, 5, 4):
        x = numbers(rows, 4).npu().t().detach().requires_grad_()
        program(x).sum().backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad.cpu(), 3 * numbers(rows, 4).t() ** 2)


def _flat(x: T) -> T:
    """Return the elements in the order of memory, as a kernel does that goes by the address alone."""
    return x.as_strided((x.numel(),), (1,)).clone()


@pytest.fixture(scope="module")
def raw() -> Iterator[SimpleNamespace]:
    library = torch.library.Library("captured_raw", "DEF")
    library.define("flat(Tensor x) -> Tensor")
    library.define("add(Tensor(a!) total, Tensor x) -> ()")
    for key in ("CPU", "PrivateUse1"):
        library.impl("flat", _flat, key)
        library.impl("add", lambda total, x: (total.add_(_flat(x)), None)[1], key)
    flat, add = torch.ops.captured_raw.flat.default, torch.ops.captured_raw.add.default
    registered = [
        ascend_graph.register_kernel(eager=flat, meta=lambda x: x.new_empty(x.numel())),
        ascend_graph.register_kernel(eager=add, shape="->"),
    ]
    yield SimpleNamespace(flat=flat, add=add)
    for registration in registered:
        registration.unregister()
    library._destroy()


def _added(ops: SimpleNamespace, x: T, total: T) -> T:
    ops.add(total, x)
    return x * 2


def _added_to_a_copy(ops: SimpleNamespace, x: T, total: T) -> T:
    total = total * 1
    ops.add(total, x * 3)
    return total


#: Programs of an input with strides and of a tensor with as many elements.
READ: dict[str, Callable[[SimpleNamespace, T, T], Any]] = {
    "itself": lambda ops, x, total: ops.flat(x),
    "computed": lambda ops, x, total: ops.flat(x * 2) + total,
    "a view": lambda ops, x, total: ops.flat(x.transpose(0, 1)[:2]),
    "twice": lambda ops, x, total: (ops.flat(x), x + 1, x),
    "added": _added,
    "added to a copy": _added_to_a_copy,
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("order", ["transposed", "permuted"])
@pytest.mark.parametrize("read", READ)
def test_authors_kernels_get_an_input_with_the_strides_of_eager_calls(
    raw: SimpleNamespace, read: str, order: str, dynamic: bool
) -> None:
    def program(x: T, total: T) -> Any:
        return READ[read](raw, x, total)

    in_graph = compiled(program, dynamic)
    for n in range(2):
        given = ORDERS[order](numbers(4, 6) + n)
        on_device = ORDERS[order]((numbers(4, 6) + n).npu())
        totals = [torch.zeros(given.numel()), torch.zeros(given.numel()).npu()]
        expected, found = tree_leaves(program(given, totals[0])), tree_leaves(in_graph(on_device, totals[1]))
        for right, value in zip([*expected, totals[0]], [*found, totals[1]], strict=True):
            torch.testing.assert_close(value.cpu(), right)


def test_authors_kernels_get_a_repeated_row_as_one(raw: SimpleNamespace) -> None:
    strides = []
    library = torch.library.Library("captured_raw", "FRAGMENT")
    library.define("row(Tensor x) -> Tensor")
    library.impl("row", lambda x: (strides.append(x.stride()), x.sum(0))[1], "PrivateUse1")
    op = ascend_graph.register_kernel(eager=torch.ops.captured_raw.row, shape="x[m, n] -> y[n]")
    try:
        found = compiled(lambda x: op.overload(x))(numbers(6).npu().expand(4, 6))
    finally:
        op.unregister()
        library._destroy()
    torch.testing.assert_close(found.cpu(), numbers(6) * 4)
    assert set(strides) == {(0, 1)}


def test_windows_of_an_input_are_read_from_a_copy(raw: SimpleNamespace) -> None:
    """They cannot be copied to memory of the same layout."""
    found = compiled(lambda x: raw.flat(x * 1))(numbers(8).npu().unfold(0, 4, 2))
    torch.testing.assert_close(found.cpu(), numbers(8).unfold(0, 4, 2).flatten())


class _Cached(torch.nn.Module):
    def __init__(self, cache: str) -> None:
        import npugraph_ex.inference  # TorchAir's own captures are not possible after it

        super().__init__()
        self.cached = npugraph_ex.inference.cache_compile(self.program, dynamic=False, cache_dir=cache)

    def forward(self, x: T, w: T) -> tuple[T, T]:
        found: tuple[T, T] = self.cached(x, w)
        return found

    def program(self, x: T, w: T) -> tuple[T, T]:
        return torch.ops.captured_inputs.scale(x, w), x[1:]


@pytest.mark.skipif("CAPTURES" in os.environ, reason="npugraph_ex keeps graphs by functions of its own")
def test_graphs_that_are_kept_return_views_of_the_callers_tensor(ops: SimpleNamespace, tmp_path: Path) -> None:
    for _ in ("compiled", "from the cache"):
        program, w = _Cached(str(tmp_path)), numbers(3, 4).npu()
        given = [numbers(3, 4).npu() + n for n in range(3)]
        for n, x in enumerate(given):
            scaled, part = program(x, w)
            assert part.data_ptr() == x[1:].data_ptr()
            torch.testing.assert_close(scaled.cpu(), (numbers(3, 4) + n) * numbers(3, 4))
        assert [x[0, 0].item() for x in given] == [1, 2, 3]
        assert list(tmp_path.rglob("compiled_module"))


@pytest.mark.skipif("CAPTURES" in os.environ, reason="npugraph_ex keeps graphs by functions of its own")
def test_graphs_that_are_kept_take_inputs_with_strides(ops: SimpleNamespace, tmp_path: Path) -> None:
    for _ in ("compiled", "from the cache"):
        program, w = _Cached(str(tmp_path)), numbers(4, 3).npu()
        for n in range(3):
            scaled, part = program(numbers(3, 4).npu().t() + n, w)
            torch.testing.assert_close(scaled.cpu(), (numbers(3, 4).t() + n) * numbers(4, 3))
            torch.testing.assert_close(part.cpu(), (numbers(3, 4).t() + n)[1:])


class _CachedWrites(_Cached):
    def program(self, x: T, w: T) -> tuple[T, T]:
        torch.ops.captured_inputs.grow(x[:, ::2], w * 1)
        return w * 2, x[1:]


@pytest.mark.skipif("CAPTURES" in os.environ, reason="npugraph_ex keeps graphs by functions of its own")
def test_graphs_that_are_kept_write_layers_of_a_cache(ops: SimpleNamespace, tmp_path: Path) -> None:
    for first in (2, 0, 2):  # the last one reads what the first one wrote
        program, w = _CachedWrites(str(tmp_path / str(first))), numbers(3, 2).npu()
        cache = numbers(4, 3, 4)
        on_device = cache.npu()
        for layer in (first, 3, 0, 1):
            _grow(cache[layer][:, ::2], numbers(3, 2))
            _, part = program(on_device[layer], w)
            torch.testing.assert_close(on_device.cpu(), cache)
            torch.testing.assert_close(part.cpu(), cache[layer][1:])


@pytest.mark.slow
@pytest.mark.skipif("CAPTURES" in os.environ, reason="it is this test that runs the others")
def test_torchairs_own_captures_do_as_npugraph_ex() -> None:
    """Needs a process of its own: the wheel has room for one of the two."""
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "CAPTURES": "reduce-overhead"},
        check=True,
    )

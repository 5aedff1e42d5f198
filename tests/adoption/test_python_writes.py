"""Operators whose Python kernel writes what their schema does not say: an operator with the marks stands for them."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import Decision, State

from .conftest import Adopt, decision, schema_of

HEAD = """import torch
import torch.distributed as dist
import triton
import triton.language as tl
from mine import _C, caches
from .caches import fill as filled

library = torch.library.Library("mine", "DEF")
library.define("put(Tensor x, Tensor cache) -> Tensor")
library.define("fill(Tensor x, Tensor(a!) y) -> ()")


def helper(a, b):
    b[0].add_(a)
    return a


@triton.jit
def rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = y_ptr + tl.arange(0, BLOCK)
    tl.store(at, tl.load(x_ptr + tl.arange(0, BLOCK)))


@triton.jit
def named_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = y_ptr + tl.arange(0, BLOCK)
    tl.store(value=tl.load(x_ptr + tl.arange(0, BLOCK)), pointer=at)


@torch.library.impl("mine::put", "PrivateUse1")
def put(x, cache):
    y = torch.empty_like(x)
"""
CACHES = """def fill(x, cache):
    inner(cache)

def inner(one):
    one.zero_()
"""
BOUND = """
void of_its_own(const at::Tensor &x);
void opened(const at::Tensor &from, const at::Tensor &to) { of_its_own(to); }
void copied(const at::Tensor &from, const at::Tensor &to) { to.copy_(from); }
PYBIND11_MODULE(_C, m) { m.def("copied", &copied); m.def("opened", &opened); }
"""


def adopt_put(adopted: Adopt, body: str) -> Decision:
    """Adopt a repository with an operator ``mine::put`` of a kernel in Python."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    files = {"mine/__init__.py": "", "mine/caches.py": CACHES, "mine/ops.py": f"{HEAD}{lines}\n", "ops.cpp": BOUND}
    return decision(adopted(files), "mine::put")


@pytest.mark.parametrize(
    "body",
    [
        "cache.copy_(x)\nreturn y",
        "cache[x] = 1\nreturn y",
        "cache[0] += x\nreturn y",
        "cache += x\nreturn y",
        "torch.add(x, 1, out=cache)\nreturn y",
        "part = cache.view(-1)[2:]\npart.zero_()\nreturn y",
        "for one in cache:\n    one.fill_(0)\nreturn y",
        "for one, _ in zip((cache, y), range(2)):\n    one.fill_(0)\nreturn y",
        "helper(x, cache)\nreturn y",
        "helper(b=cache, a=x)\nreturn y",
        "_C.copied(x, cache)\nreturn y",
        "torch.ops.mine.fill(x, cache)\nreturn y",
        "torch_npu.npu_scatter_nd_update_(cache, x, y)\nreturn y",
        "dist.all_reduce(cache)\nreturn y",
        "rows[(1,)](x, cache, 4, BLOCK=4)\nreturn y",
        "named_rows[(1,)](x, cache, 4, BLOCK=4)\nreturn y",
        "if x.dim() > 1:\n    cache = cache.clone()\ncache.zero_()\nreturn y",
        "def inner(one):\n    one.zero_()\ninner(cache)\nreturn y",
        "z = [cache]\nz[0].zero_()\nreturn y",
        "filled(x, cache)\nreturn y",
        "caches.fill(x, cache=cache)\nreturn y",
    ],
)
def test_what_a_python_kernel_writes_is_marked(adopted: Adopt, body: str) -> None:
    one = adopt_put(adopted, body)
    assert (one.state, schema_of(one)) == (
        State.BY_NAMES, "mine_writes::put(Tensor x, Tensor(a1!) cache) -> Tensor",
    ), one.reason  # fmt: skip
    assert (one.eager, one.relation) == ("torch.ops.mine.put", "x[*s] -> y like x")


def test_a_written_argument_that_is_returned_is_marked_as_returned(adopted: Adopt) -> None:
    one = adopt_put(adopted, "cache.copy_(x)\nreturn cache")
    assert schema_of(one) == "mine_writes::put(Tensor x, Tensor(a1!) cache) -> Tensor(a1!)"
    assert one.relation == "cache -> cache"


@pytest.mark.parametrize(
    "body",
    [
        "y.copy_(cache)\nreturn y",
        "cache = cache + 1\ncache.add_(x)\nreturn y",
        "cache = cache.clone()\ncache[0] = 1\nreturn y",
        "for one in cache.clone():\n    one.fill_(0)\nreturn y",
        "rows[(1,)](cache, y, 4, BLOCK=4)\nreturn y",
        "n = cache.shape[0]\nn += 1\nreturn y",
        "z = [cache]\nz[0] = x\nreturn y",
        "if x.dim() > 1:\n    cache = cache.clone()\nelse:\n    cache = y\ncache.zero_()\nreturn y",
        "_C.copied(cache, y)\nreturn y",
        "helper(cache, y)\nreturn y",
        "cache.requires_grad_(False)\nreturn y",
    ],
)
def test_a_python_kernel_that_only_reads_is_registered_as_it_is(adopted: Adopt, body: str) -> None:
    one = adopt_put(adopted, body)
    assert (one.state, schema_of(one)) == (State.BY_NAMES, ""), one.reason


def test_a_returned_argument_that_a_bound_function_may_write_is_undecided(adopted: Adopt) -> None:
    one = adopt_put(adopted, "_C.opened(x, cache)\nreturn cache")
    assert one.state is State.UNDECIDED
    assert "it returns cache, which its schema does not say, and it passes to to of_its_own" in one.reason


def test_an_operator_without_returns_is_marked_too(adopted: Adopt) -> None:
    text = (
        'import torch\n\ntorch.library.define("mine::put", "(Tensor x, Tensor cache) -> ()")\n\n'
        '@torch.library.impl("mine::put", "PrivateUse1")\ndef put(x, cache):\n    cache.copy_(x)\n'
    )
    one = decision(adopted({"ops.py": text}), "mine::put")
    assert schema_of(one) == "mine_writes::put(Tensor x, Tensor(a1!) cache) -> ()", one.reason


def test_a_custom_op_that_says_that_it_writes_nothing(adopted: Adopt) -> None:
    text = (
        'import torch\n\n@torch.library.custom_op("mine::put", mutates_args=())\n'
        "def put(x: torch.Tensor, caches: list[torch.Tensor]) -> torch.Tensor:\n"
        "    caches[1].copy_(x)\n    return torch.empty_like(x)\n"
    )
    one = decision(adopted({"ops.py": text}), "mine::put")
    assert schema_of(one) == "mine_writes::put(Tensor x, Tensor(a1!)[] caches) -> Tensor", one.reason

"""Run by torchrun: operators with declared dimensions give, sharded in every way, what they give whole."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import ascend_graph

FLOAT = "TensorType({DT_FLOAT})"
HEADER = f"""
REG_OP(ShardNorm).INPUT(x, {FLOAT}).INPUT(gamma, {FLOAT}).OUTPUT(y, {FLOAT}).OUTPUT(scale, {FLOAT})
    .OP_END_FACTORY_REG(ShardNorm)
REG_OP(ShardMatMul).INPUT(a, {FLOAT}).INPUT(b, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(ShardMatMul)
REG_OP(ShardSoftmax).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).REQUIRED_ATTR(dim, Int).OP_END_FACTORY_REG(ShardSoftmax)
REG_OP(ShardSum).INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).REQUIRED_ATTR(dims, ListInt).OP_END_FACTORY_REG(ShardSum)
REG_OP(ShardNormGrad).INPUT(dy, {FLOAT}).INPUT(x, {FLOAT}).OUTPUT(dx, {FLOAT}).OUTPUT(dgamma, {FLOAT})
    .OP_END_FACTORY_REG(ShardNormGrad)
REG_OP(ShardAdd).INPUT(x, {FLOAT}).INPUT(y, {FLOAT}).OUTPUT(z, {FLOAT}).OP_END_FACTORY_REG(ShardAdd)
"""


def norm(x: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.norm(dim=-1, keepdim=True)
    return x / scale * gamma, scale


def norm_grad(dy: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """A gradient of a norm: rows by themselves, next to the sum over them."""
    return dy * x.norm(dim=-1, keepdim=True), (dy * x).reshape(-1, x.size(-1)).sum(0)


def register() -> torch.library.Library:
    """Operators of each kind: groups next to a dimension, reduced dimensions, an axis by an attr, what broadcasts."""
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("sharded", "DEF")

    def add(op_type: str, schema: str, kernel: Callable[..., Any], relation: str, **given: Any) -> None:
        library.define(schema)
        name = schema.partition("(")[0]
        for device in ("CPU", "PrivateUse1"):
            library.impl(name, kernel, device)
        if op_type == "ShardMatMul":
            torch.library.register_autograd(
                "sharded::mm",
                lambda ctx, g: (g @ ctx.saved_tensors[1].t(), ctx.saved_tensors[0].t() @ g),
                setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
                lib=library,
            )
        ascend_graph.register_op(op_type, eager=getattr(torch.ops.sharded, name), shape=relation, **given)

    relation = "x[*s, n], gamma[n] -> y[*s, n], scale[*s, 1]"
    add("ShardNorm", "norm(Tensor x, Tensor gamma) -> (Tensor, Tensor)", norm, relation, batch=("s",))
    relation = "a[m, k], b[k, n] -> y[m, n]"
    add("ShardMatMul", "mm(Tensor a, Tensor b) -> Tensor", torch.mm, relation, batch=("m", "n"), reduce=("k",))
    relation = "x[*s, n@dim] -> y[*s, n@dim]"
    add("ShardSoftmax", "softmax(Tensor x, int dim) -> Tensor", torch.softmax, relation, batch=("s",))
    add(
        "ShardSum",
        "total(Tensor x, int[] dims) -> Tensor",
        torch.sum,
        "x[*s, *r@dims] -> y[*s]",
        batch=("s",),
        reduce=("r",),
    )
    relation = "dy[*s, n], x[*s, n] -> dx[*s, n], dgamma[n]"
    schema = "norm_grad(Tensor dy, Tensor x) -> (Tensor, Tensor)"
    add("ShardNormGrad", schema, norm_grad, relation, reduce=("s",))
    add("ShardAdd", "add(Tensor x, Tensor y) -> Tensor", torch.add, "x[...], y[...] -> z[...]", batch=("...",))
    return library


def placements(tensor: Tensor, dims: int) -> list[tuple[Any, ...]]:
    return list(itertools.product([Replicate(), *(Shard(n) for n in range(tensor.dim()))], repeat=dims))


def main() -> None:
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl")
    torch.manual_seed(0)
    library = register()
    ops = torch.ops.sharded
    calls: list[tuple[Any, list[Tensor], tuple[Any, ...]]] = [
        (ops.norm, [torch.rand(4, 8, 12), torch.rand(12)], ()),
        (ops.mm, [torch.rand(8, 12), torch.rand(12, 4)], ()),
        (ops.softmax, [torch.rand(8, 4, 5)], (1,)),
        (ops.total, [torch.rand(8, 4, 5)], ([1],)),
        (ops.total, [torch.rand(8, 4, 5)], ([0, 2],)),
        (ops.norm_grad, [torch.rand(8, 4, 5), torch.rand(8, 4, 5)], ()),
        (ops.add, [torch.rand(4, 8), torch.rand(8)], ()),
        (ops.add, [torch.rand(4, 8), torch.rand(1, 8)], ()),
    ]
    count = 0
    for shape in ((4,), (2, 2)):
        mesh = init_device_mesh("npu", shape)
        for op, made, attrs in calls:
            tensors = [t.npu() for t in made]
            whole = op(*tensors, *attrs)
            whole = whole if isinstance(whole, tuple) else (whole,)
            ways = list(itertools.product(*(placements(t, len(shape)) for t in tensors)))
            for way in ways if len(shape) == 1 else ways[::7]:
                given = [distribute_tensor(t, mesh, p) for t, p in zip(tensors, way, strict=True)]
                found = op(*given, *attrs)
                for one, expected in zip(found if isinstance(found, tuple) else (found,), whole, strict=True):
                    assert isinstance(one, DTensor), op
                    torch.testing.assert_close(one.full_tensor(), expected, msg=lambda m, w=way, o=op: f"{o} {w}: {m}")
                count += 1
        a, b = (torch.rand(s).npu().requires_grad_() for s in ((8, 12), (12, 4)))
        expected = torch.autograd.grad((a @ b).square().sum(), (a, b))
        for way in ((Shard(0), Replicate()), (Shard(1), Shard(0)), (Replicate(), Shard(1))):
            da, db = (
                distribute_tensor(t.detach(), mesh, [p] * len(shape)).requires_grad_()
                for t, p in zip((a, b), way, strict=True)
            )
            gradients = torch.autograd.grad(
                ops.mm(da, db).redistribute(mesh, [Replicate()] * len(shape)).square().sum(), (da, db)
            )
            for one, whole_one in zip(gradients, expected, strict=True):
                torch.testing.assert_close(one.full_tensor(), whole_one)
            count += 1
    print(f"{count} placements are equal", flush=True)
    library._destroy()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""PyTorch's database of modules on the device against the CPU, forward and backward, in training and evaluation."""

from __future__ import annotations

import copy
import warnings
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from benchmarks.operators.checks import CheckMismatch
from benchmarks.operators.comparison import ComparisonVerdict, compare
from benchmarks.operators.trees import tensors


def _run(module: torch.nn.Module, backward: bool, tree: Any) -> Any:
    args, kwargs, marker = tree
    there = copy.deepcopy(module).to(marker.device)
    result = there(*args, **kwargs)
    differentiable = [t for t in tensors(result) if t.requires_grad]
    if not backward or not differentiable:
        return {"result": result, "state": dict(there.state_dict())}
    sum(t.abs().sum() for t in differentiable).backward()
    return {
        "parameters": {name: p.grad for name, p in there.named_parameters()},
        "inputs": [t.grad for t in tensors((args, kwargs)) if t.is_leaf],
    }


def check_modules(device: str = "npu") -> Iterator[CheckMismatch]:
    """Yield every comparison of the database's modules with float32, forward and backward."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        for training in (True, False):
            torch.manual_seed(zlib.crc32(info.name.encode()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                inputs = info.module_inputs_func(
                    info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
                )
            for i, given in enumerate(inputs):
                if given.forward_input is None:
                    continue
                built = given.constructor_input
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    module = info.module_cls(*built.args, **built.kwargs).train(training)
                marker = torch.empty(0)
                tree = (given.forward_input.args, given.forward_input.kwargs, marker)
                for backward in (False, True):
                    verdict, message = compare(partial(_run, module, backward), tree, device)
                    check = f"{'training' if training else 'evaluation'} {'backward' if backward else 'forward'}"
                    yield CheckMismatch(info.name, "float32", i, check, verdict, message)


def run_modules(device: str = "npu") -> dict[str, int]:
    """Run :func:`check_modules`, print its differences and return its counts by verdict."""
    counts = {
        v.value: 0
        for v in (
            ComparisonVerdict.EQUAL,
            ComparisonVerdict.REFUSED,
            ComparisonVerdict.RAISES,
            ComparisonVerdict.WRONG,
            ComparisonVerdict.LENIENT,
        )
    }
    for o in check_modules(device):
        counts[o.verdict.value] += 1
        if o.verdict not in (ComparisonVerdict.EQUAL, ComparisonVerdict.REFUSED):
            print(f"{o.verdict.value}: {o.operator} [{o.sample}] {o.check}: {' '.join(o.message.split())[:240]}")
    return counts

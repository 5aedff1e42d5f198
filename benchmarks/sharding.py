"""Sharding rules from relations, checked on four ranks and compared with those of PyTorch and torch_npu.

    make bench NAME=sharding

The relations are those that the search found for ATen's functional operators (``data/found_relations.txt``, as ``make bench
NAME=inference`` prints them) and those of torch_npu's operators (``data/npu_relations.py``). The independent and the reduced
dimensions of an operator are found by running it (``ascend_graph.registration.dimensions.independence_checks.find_independent_dims``): ATen's on
calls drawn from the relation, torch_npu's on those that the tests in ``tests/host/operators`` make.

- ``operators``: operators that can be sharded in some way; ``rules``, ``correct``, ``wrong``: their placements, each tried on
  four ranks with hccl. A correct one gives the whole call's results from the shards, placed as the rule says.
- ``strategies``: placements of these calls that PyTorch's and torch_npu's own strategies accept without communication, with
  something sharded and no partial inputs; ``again``: those of them that the derived rules accept, with the same outputs.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from _common import run
from rich.console import Console
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from ascend_graph.registration.dimensions.independence_checks import _difference, _drawn, find_independent_dims
from ascend_graph.registration.dimensions.independent_dims import IndependentDims
from ascend_graph.registration.dimensions.sharding import register_sharding_rule, sharding_rule
from ascend_graph.shapes import parse_relation
from benchmarks.data.npu_relations import BRANCH_FREE, SMALL_BRANCHES
from benchmarks.distributed import count, under_torchrun

ROOT = Path(__file__).parent.parent
RANKS = 4
#: Maximum numbers of calls of one operator, elements of one of their tensors, and compared placements of one call.
CALLS, ELEMENTS, WAYS = 3, 1 << 20, 64
#: Time limit in seconds for finding the dimensions of one operator.
LIMIT = 20

#: Call: positional and keyword arguments, on the CPU.
Call = tuple[tuple[Any, ...], dict[str, Any]]
#: Relation, independent dimensions, reduced dimensions and calls by operator.
Derived = dict[str, tuple[str, tuple[str, ...], dict[str, str], list[Call]]]

OF_THE_WHEEL = {f"npu::{name}": entry.relation for name, entry in (BRANCH_FREE | SMALL_BRANCHES).items()}
FOUND = dict(
    line.split("  ", 1)
    for line in (ROOT / "benchmarks/data/found_relations.txt").read_text(encoding="utf-8").splitlines()
)


def overload_of(name: str) -> Any:
    """Return the overload of a name such as ``aten::add.Tensor``."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")


def functional(overload: Any) -> bool:
    """Return whether an operator has returns, no aliases or writes, and is not random."""
    schema = overload._schema
    every = (*schema.arguments, *schema.returns)
    random_ = torch.Tag.nondeterministic_seeded in overload.tags
    return bool(schema.returns) and not random_ and all(a.alias_info is None for a in every)


# ------------------------------------------------------------------------------------------------------ what is derived


class OperatorCallRecorder(TorchDispatchMode):
    """Dispatch mode that keeps calls of the wheel's operators that have relations."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[Call]] = defaultdict(list)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if name in OF_THE_WHEEL and len(self.calls[name]) < CALLS * 2 and functional(func):
            tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            if all(t.numel() <= ELEMENTS for t in tensors):
                kept = tree_map_only(torch.Tensor, lambda t: t.detach().cpu().clone(), (tuple(args), dict(kwargs)))
                self.calls[name].append(kept)
        return func(*args, **kwargs)


def record(file: str) -> None:
    """Write the calls that the operators' tests make, run in one mode only, to a file."""
    import pytest

    sys.path.insert(0, str(ROOT / "tests/host/operators"))
    import operator_modes

    recorder = OperatorCallRecorder()

    def check(function: Callable[..., Any], args: Sequence[Any], expected: Any, modes: str = "") -> None:
        with recorder:
            operator_modes._eager(function, args)

    operator_modes.check = check
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", str(ROOT / "tests/host/operators")])
    torch.save(dict(recorder.calls), file)


def derive(recorded: Mapping[str, list[Call]]) -> Derived:
    """Find each operator's independent and reduced dimensions by running it; operators without any are left out."""
    derived: Derived = {}
    for name, relation in (FOUND | OF_THE_WHEEL).items():
        calls = recorded.get(name)
        with contextlib.suppress(
            Exception
        ):  # an operator that this build has not, or that a relation is too narrow for
            overload = overload_of(name)
            if not functional(overload) or (name in OF_THE_WHEEL and not calls):
                continue
            signal.alarm(LIMIT)
            samples = tree_map_only(torch.Tensor, lambda t: t.npu(), calls)
            independent = find_independent_dims(
                overload, parse_relation(relation), device="npu" if calls else "cpu", samples=samples
            )
            if independent.batch or independent.reduce:
                derived[name] = (
                    relation,
                    independent.batch,
                    dict(independent.reduce),
                    calls or drawn(overload, independent),
                )
        signal.alarm(0)
    return derived


def drawn(overload: Any, independent: IndependentDims) -> list[Call]:
    """Draw calls from the relation in which something can be sharded."""
    kept: list[Call] = []
    for values, _ in zip(_drawn(overload, independent, random.Random(0), "cpu"), range(40), strict=False):
        schema = overload._schema
        args = tuple(values[a.name] for a in schema.arguments if not a.kwarg_only)
        call = args, {a.name: values[a.name] for a in schema.arguments if a.kwarg_only}
        if len(kept) < CALLS and rules(overload, independent, call) and traceable(overload, call):
            kept.append(call)
    return kept


def traceable(overload: Any, call: Call) -> bool:
    """Return whether a call runs on fake tensors, which DTensor uses to infer shapes."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            args, kwargs = tree_map_only(torch.Tensor, mode.from_tensor, call)
            overload(*args, **kwargs)
    except Exception:  # whatever PyTorch does not trace
        return False
    return True


# ------------------------------------------------------------------------------------------------------------- four ranks


def placed_evenly(values: Sequence[Any], placements: Sequence[Any]) -> bool:
    """Return whether every rank gets an equal, non-empty part of each sharded tensor."""
    from torch.distributed.tensor import Shard

    return all(
        not isinstance(p, Shard) or (isinstance(v, torch.Tensor) and v.shape[p.dim] % RANKS == 0 < v.shape[p.dim])
        for v, p in zip(values, placements, strict=True)
    )


def rules(overload: Any, independent: IndependentDims, call: Call) -> list[tuple[list[Any], list[Any]]]:
    """Return the placements that the rule allows for a call, without the replicated one."""
    args, kwargs = call
    values = [*args, *kwargs.values()]
    found = sharding_rule(overload, independent)(*args, **kwargs)[1:]
    return [(outputs, inputs) for outputs, inputs in found if placed_evenly(values, inputs)]


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def sharded(overload: Any, call: Call, inputs: Sequence[Any], mesh: Any) -> list[Any]:
    """Return an operator's results for tensors with the given placements."""
    from torch.distributed.tensor import Replicate, distribute_tensor

    args, kwargs = call
    values = [
        distribute_tensor(v, mesh, [p or Replicate()]) if isinstance(v, torch.Tensor) else v
        for v, p in zip((*args, *kwargs.values()), inputs, strict=True)
    ]
    return listed(overload(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True))))


def own_strategies(overload: Any, call: Call, mesh: Any) -> list[tuple[list[Any], list[Any]]]:
    """Return the placements that DTensor accepts without communication, before the operator has a rule from here."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.debug import CommDebugMode

    values = [*call[0], *call[1].values()]
    choices = [
        [Replicate(), *(Shard(n) for n in range(v.dim()))] if isinstance(v, torch.Tensor) else [None] for v in values
    ]
    taken = []
    for inputs in itertools.islice(itertools.product(*choices), WAYS):
        if not any(isinstance(p, Shard) for p in inputs) or not placed_evenly(values, inputs):
            continue
        watch = CommDebugMode()
        try:
            with watch:
                outputs = [o.placements[0] for o in sharded(overload, call, inputs, mesh)]
        except Exception:  # without a strategy for these, or for the operator at all
            continue
        # The scatters and broadcasts of distribute_tensor are not part of the strategy.
        kinds = {str(kind).rpartition(".")[2] for kind in watch.get_comm_counts()}
        if not any(
            word in kind
            for kind in kinds
            for word in ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "alltoall")
        ):
            taken.append((outputs, list(inputs)))
    return [(o, i) for o, i in taken if any(not isinstance(p, Replicate) for p in o)]


def on_a_rank(file: str) -> None:
    """Try every placement of every call and print the wrong ones."""
    from torch.distributed.device_mesh import init_device_mesh

    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl")
    mesh = init_device_mesh("npu", (RANKS,))
    derived: Derived = torch.load(file, weights_only=False)
    tried, wrong, operators, theirs, again = 0, [], set(), 0, 0
    for name, (relation, batch, reduce, calls) in derived.items():
        overload, independent = overload_of(name), IndependentDims(parse_relation(relation), batch, reduce)
        given = [tree_map_only(torch.Tensor, lambda t: t.npu(), call) for call in calls]
        try:
            wholes = [listed(overload(*args, **kwargs)) for args, kwargs in given]
        except RuntimeError:  # not on the device
            continue
        for call in given:
            strategies = own_strategies(overload, call, mesh)
            allowed = [str(rule) for rule in rules(overload, independent, call)]
            theirs += len(strategies)
            again += sum(str(strategy) in allowed for strategy in strategies)
        register_sharding_rule(overload, independent)
        for call, whole in zip(given, wholes, strict=True):
            for outputs, inputs in rules(overload, independent, call):
                tried += 1
                operators.add(name)
                try:
                    for one, expected, placed in zip(
                        sharded(overload, call, inputs, mesh), whole, outputs, strict=True
                    ):
                        assert one.placements == (placed,), f"placed {one.placements}, not {placed}"
                        worst = _difference(expected.cpu(), one.full_tensor().cpu())
                        assert not worst, worst
                except Exception:  # of any kind: it is reported with the placements, and the others are tried
                    wrong.append(f"{name} {inputs} -> {outputs}: {traceback.format_exc(limit=-1)}")
    if dist.get_rank() == 0:
        print("\n".join(wrong), flush=True)
        print(
            f"{len(operators)} operators {tried} rules {len(wrong)} are wrong {theirs} theirs {again} again", flush=True
        )
    dist.destroy_process_group()


def main() -> dict[str, Any]:
    """Run all parts and return the figures."""
    with tempfile.TemporaryDirectory() as directory:
        calls, derived = Path(directory) / "calls", Path(directory) / "derived"
        for part, files in (("--record", (calls,)), ("--derive", (calls, derived))):
            command = [sys.executable, "-m", "ascend_graph.host", "--quiet", __file__, part, *map(str, files)]
            subprocess.run(command, check=True, stdout=sys.stderr)
        output = under_torchrun(Path(__file__), RANKS, "--rank", str(derived))
    Console().print(output)
    rules_, wrong = count(r"(\d+) rules", output), count(r"(\d+) are wrong", output)
    return {
        "operators": count(r"(\d+) operators", output),
        "rules": rules_,
        "correct": rules_ - wrong,
        "wrong": wrong,
        "strategies": count(r"(\d+) theirs", output),
        "again": count(r"(\d+) again", output),
    }


def too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"{LIMIT} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        on_a_rank(sys.argv[2])
    elif sys.argv[1:2] == ["--record"]:
        record(sys.argv[2])
    elif sys.argv[1:2] == ["--derive"]:
        signal.signal(signal.SIGALRM, too_long)
        torch.save(derive(torch.load(sys.argv[2], weights_only=False)), sys.argv[3])
    else:
        run(main)

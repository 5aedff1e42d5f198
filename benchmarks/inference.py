"""Benchmark of shape inference: relations found by running ATen's CPU kernels, as if they had no meta functions.

The truth comes from torch's own test inputs (``op_db``): every ATen overload they call is recorded with its arguments and
results. The relation that inference finds, without seeing these, is compared with the records. ``correct``: it agrees with
all calls that it accepts, and accepts some. ``refused``: inference refused. ``wrong``: it differs anywhere. Inputs that a
correct relation does not accept are counted separately, and so are strides.

Three sets are judged and counted separately: overloads with which the family of relations was developed; overloads that it
never saw (``held_out``: the remaining ones, and those that only backward passes call); and operators of torch_npu without
branches in their hand-written meta functions, which are the truth there (``npu``). Their kernels are those of the host
runtime, or references in ``data/npu_references.py``.

A fourth set, ``everyday``, has operators as authors write them (``data/everyday.py``), with the calls that each accepts. A
relation is ``right`` there if it accepts all of these and predicts the kernel's results. One that accepts a part is
``narrower`` if the search said so, and ``silent`` if not. Every second one was held out while the search was developed, and
two sets were written later.

    python -m ascend_graph.host benchmarks/inference.py [seen] [held_out] [npu] [everyday]
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import random
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from ascend_graph.dispatch.meta import meta_function
from ascend_graph.inference import InferenceError, infer_relation, signature_of
from ascend_graph.shapes import Relation, ShapeError
from benchmarks.data.everyday import Everyday
from benchmarks.data.everyday_later import OPERATORS
from benchmarks.data.npu_references import HOST_KERNELS, REFERENCES
from benchmarks.data.npu_relations import BRANCH_FREE
from benchmarks.metas import Caller, overload

#: Maximum number of records per overload.
RECORDS = 24
#: Time limit for one overload in seconds.
LIMIT = 60
#: Maximum number of overloads, spread evenly over the alphabet; BACKWARD is that of those that only backward passes call.
OVERLOADS = 400
BACKWARD = 80


@dataclass(frozen=True, slots=True)
class Record:
    """Record of one call: shapes, dtypes and strides of the tensors, attrs, and the outputs."""

    tensors: Mapping[str, Any]
    attrs: Mapping[str, Any]
    outputs: tuple[Any, ...]


@dataclass(slots=True)
class OverloadResult:
    """Result for one overload."""

    name: str
    seconds: float
    outcome: str
    relation: str = ""
    accepted: int = 0
    records: int = 0
    #: Number of accepted records with the strides of the meta function.
    strides: int = 0
    #: Input that the kernel accepts and the relation does not.
    narrower: str = ""
    remark: str = ""
    differences: list[str] = field(default_factory=list)


def _spec(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, tuple(value.stride())
    return None if value is None else [_spec(item) for item in value]


def _first(spec: Any, index: int) -> Any:
    return [item and item[index] for item in spec] if isinstance(spec, list) else spec and spec[index]


def _meta(spec: Any) -> Any:
    if isinstance(spec, list):
        return [_meta(item) for item in spec]
    return spec and torch.empty_strided(spec[0], spec[2], dtype=spec[1], device="meta")


class FunctionalCallRecorder(TorchDispatchMode):
    """Dispatch mode that records the calls of functional ATen overloads."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[Any, dict[str, Record]] = defaultdict(dict)

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if candidate(func) and len(self.records[func]) < RECORDS:
            record = self.record(func, args, kwargs, result)
            self.records[func].setdefault(repr(record), record)
        return result

    @staticmethod
    def record(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Record:
        """Return the call as plain values."""
        arguments = func._schema.arguments
        values = {a.name: a.default_value if a.has_default_value() else None for a in arguments}
        values |= dict(zip((a.name for a in arguments), args, strict=False)) | dict(kwargs)
        specs = {a.name: _spec(values[a.name]) for a in arguments if "Tensor" in str(a.type)}
        attrs = {a.name: values[a.name] for a in arguments if "Tensor" not in str(a.type)}
        outputs = (result,) if len(func._schema.returns) == 1 else result
        return Record(specs, attrs, tuple(_spec(output) for output in outputs))


def candidate(func: Any) -> bool:
    """Return whether an overload could be a custom operator: functional, with tensor inputs and outputs, not a view."""
    schema = func._schema
    if schema.name.split("::")[0] != "aten" or schema.name.endswith("_") or any(a.is_out for a in schema.arguments):
        return False
    if any(a.alias_info is not None for a in (*schema.arguments, *schema.returns)) or not schema.returns:
        return False
    tensors = [a for a in schema.arguments if "Tensor" in str(a.type)]
    return bool(tensors) and all("Tensor" in str(r.type) for r in schema.returns)


def recorded() -> tuple[dict[Any, list[Record]], dict[Any, list[Record]]]:
    """Return the calls of torch's test inputs by overload, and those of overloads that only backward passes call."""
    from torch.testing._internal.common_methods_invocations import op_db

    forward, backward = FunctionalCallRecorder(), FunctionalCallRecorder()
    for info in op_db:
        for dtype in (torch.float32, torch.int64):
            if not info.supports_dtype(dtype, "cpu"):
                continue
            for number, sample in enumerate(info.sample_inputs("cpu", dtype)):
                if number >= 12:
                    break
                try:
                    with torch.no_grad(), forward:
                        info.op(sample.input, *sample.args, **sample.kwargs)
                except Exception:  # a test input that this build does not run
                    break
        if not info.supports_autograd:
            continue
        for number, sample in enumerate(info.sample_inputs("cpu", torch.float32, requires_grad=True)):
            if number >= 6:
                break
            with contextlib.suppress(Exception):
                result = info.op(sample.input, *sample.args, **sample.kwargs)
                tensors = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
                with backward:
                    torch.autograd.backward(tensors, [torch.ones_like(t) for t in tensors])
    seen = _records(forward)
    return seen, {func: found for func, found in _records(backward).items() if func not in seen}


def _records(recorder: FunctionalCallRecorder) -> dict[Any, list[Record]]:
    return {func: list(records.values()) for func, records in recorder.records.items() if records}


#: Function from a relation to the records that it is compared with.
Truth = Callable[[Relation], Sequence[Record]]


def judge(func: Any, kernel: Callable[..., Any], truth: Truth, device: str) -> OverloadResult:
    """Infer a relation and compare it with the records."""
    start = time.perf_counter()
    try:
        found = infer_relation(kernel, func._schema, device=device)
    except InferenceError as error:
        remark = next((line for line in str(error).splitlines() if "last error" in line), str(error).splitlines()[0])
        return OverloadResult(func.name(), time.perf_counter() - start, "refused", remark=remark.strip())
    records = truth(found.relation)
    result = OverloadResult(
        func.name(), time.perf_counter() - start, "correct", str(found.relation), records=len(records)
    )
    result.narrower = found.narrower
    meta = meta_function(found.relation, func._schema)
    for record in records:
        compare(func, meta, record, result)
    if result.differences:
        result.outcome, result.remark = "wrong", result.differences[0]
    return result


def apart(func: Any, kernel: Callable[..., Any], truth: Truth, device: str) -> OverloadResult:
    """Run :func:`judge` in a separate process with a time limit."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(judge(func, kernel, truth, device)))
    process.start()
    sender.close()
    try:
        if receiver.poll(LIMIT):
            return receiver.recv()  # type: ignore[no-any-return]
        reason = f"not finished within {LIMIT} s"
    except EOFError:
        reason = "the process ended"
    finally:
        process.kill()
        process.join()
    return OverloadResult(func.name(), 0.0, "refused", remark=reason)


def compare(func: Any, meta: Callable[..., Any], record: Record, result: OverloadResult) -> None:
    """Compare the promise of a relation's meta function for one record with the recorded outputs."""
    values = {name: _meta(spec) for name, spec in record.tensors.items()} | record.attrs
    arguments = func._schema.arguments
    try:
        promised = meta(
            *(values[a.name] for a in arguments if not a.kwarg_only),
            **{a.name: values[a.name] for a in arguments if a.kwarg_only},
        )
    except ShapeError as error:
        result.remark = str(error)
        return
    result.accepted += 1
    said = [_spec(p) for p in ((promised,) if len(func._schema.returns) == 1 else promised)]
    if [_first(s, 0) for s in said] != [_first(o, 0) for o in record.outputs] or [_first(s, 1) for s in said] != [
        _first(o, 1) for o in record.outputs
    ]:
        result.differences.append(f"says {said}, was {list(record.outputs)} for {record.tensors} {record.attrs}")
    result.strides += _layout(said) == _layout(record.outputs)


def _layout(specs: Any) -> Any:
    """Return the strides that matter: not those of dimensions of size 1, nor of empty tensors."""
    if isinstance(specs, list | tuple) and not (len(specs) == 3 and isinstance(specs[1], torch.dtype)):
        return [_layout(spec) for spec in specs]
    if specs is None or 0 in specs[0]:
        return None
    return [stride for size, stride in zip(specs[0], specs[2], strict=True) if size != 1]


def by_hand(op: str) -> Truth:
    """Return the truth of a torch_npu operator's hand-written meta function, for random inputs that fit a relation."""

    def truth(relation: Relation) -> list[Record]:
        entry = replace(BRANCH_FREE[op], relation=str(relation), given=relation.inputs)
        func = overload(op)
        caller = Caller(func._schema, entry, relation)
        rng = random.Random(op)
        found = []
        for attrs, _ in zip(caller.attrs(), range(RECORDS), strict=False):
            with contextlib.suppress(Exception):  # what the function written by hand refuses says nothing
                args, kwargs = caller.arguments(attrs | caller.tensors(attrs, rng))
                found.append(FunctionalCallRecorder.record(func, args, kwargs, func(*args, **kwargs)))
        return found

    return truth


def chosen() -> Iterator[tuple[str, Any, Callable[..., Any], Truth, str]]:
    """Yield the items to judge: set, overload, kernel, truth, and the device that the kernel runs on."""
    calls, backward = recorded()
    names = sorted(calls, key=lambda func: func.name())
    step = max(len(names) / OVERLOADS, 1)
    known = [names[int(n * step)] for n in range(min(len(names), OVERLOADS))]
    for func in known:
        yield "seen", func, func, _recorded(calls[func]), "cpu"
    for func in names:
        if func not in known:
            yield "held_out", func, func, _recorded(calls[func]), "cpu"
    others = sorted(backward, key=lambda func: func.name())
    for func in others[:: max(len(others) // BACKWARD, 1)][:BACKWARD]:
        yield "held_out", func, func, _recorded(backward[func]), "cpu"
    for op, kernel in REFERENCES.items():
        yield "npu", overload(op), kernel, by_hand(op), "cpu"
    for op in HOST_KERNELS:
        yield "npu", overload(op), overload(op), by_hand(op), "npu"


def _recorded(records: Sequence[Record]) -> Truth:
    return lambda relation: records


def results(sets: Container[str]) -> Iterator[tuple[str, OverloadResult]]:
    """Judge the chosen items of the given sets."""
    for name, func, kernel, truth, device in chosen():
        try:
            signature_of(func._schema)
        except InferenceError:
            continue
        if name in sets:
            # A device is best initialized by the process that inference makes for the kernel.
            yield name, (apart if device == "cpu" else judge)(func, kernel, truth, device)


#: Number of calls of an everyday operator that a relation is compared with.
CALLS = 150


#: Sets of everyday operators: those with which the search was developed, those held out, and those written later.
EVERYDAY = {"everyday": "", "everyday_aside": "aside", "everyday_third": "third", "everyday_fourth": "fourth"}


def everyday(kept: str) -> dict[str, Any]:
    """Judge the everyday operators of one set; count ``right``, ``narrower``, ``silent``, ``refused``, ``wrong``."""
    library = torch.library.Library("everyday", "FRAGMENT")
    outcomes: Counter[str] = Counter()
    start = time.perf_counter()
    for op in OPERATORS:
        if op.kept != kept:
            continue
        library.define(op.schema)
        func = getattr(torch.ops.everyday, op.name).default
        began = time.perf_counter()
        outcome, text = judge_everyday(func, op)
        outcomes[outcome] += 1
        print(f"{outcome:8} {time.perf_counter() - began:5.1f} s  {op.name}  {text}", file=sys.stderr)
    library._destroy()
    kinds = ("right", "narrower", "silent", "refused", "wrong")
    return {
        "ops": sum(outcomes.values()),
        **{kind: outcomes[kind] for kind in kinds},
        "seconds": round(time.perf_counter() - start, 1),
    }


def judge_everyday(func: Any, op: Everyday) -> tuple[str, str]:
    """Judge the relation found for one everyday operator, against calls that the operator accepts."""
    try:
        found = infer_relation(op.kernel, func._schema)
    except InferenceError as error:
        return "refused", str(error).splitlines()[0]
    meta = meta_function(found.relation, func._schema)
    rng, accepted = random.Random(1), 0
    for _ in range(CALLS):
        args = op.call(rng)
        try:
            said = meta(*tree_map_only(torch.Tensor, lambda t: t.to("meta"), list(args)))
        except ShapeError:
            continue
        accepted += 1
        promised, real = ([(t.shape, t.dtype) for t in tree_leaves(r)] for r in (said, op.kernel(*args)))
        if promised != real:
            return "wrong", f"{found.relation} says {promised}, was {real}"
    if accepted == CALLS:
        return "right", str(found.relation)
    return ("narrower" if found.narrower else "silent"), f"{found.relation} accepts {accepted} of {CALLS}"


def main(sets: Sequence[str] = ("seen", "held_out", "npu", "everyday")) -> dict[str, Any]:
    """Judge every overload, print the table, return the summary."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if list(sets) == ["everyday"]:
        summary: dict[str, Any] = {name: everyday(kept) for name, kept in EVERYDAY.items()}
        print(json.dumps(summary))
        return summary
    table = Table("operator", "outcome", "seconds", "accepted", "strides", "relation", "remark")
    found: dict[str, list[OverloadResult]] = defaultdict(list)
    for name, result in results(sets):
        found[name].append(result)
        print(
            f"{result.outcome:8} {result.seconds:5.1f} s  {result.name}  {result.relation or result.remark}",
            file=sys.stderr,
        )
        table.add_row(
            result.name,
            result.outcome,
            f"{result.seconds:.1f}",
            f"{result.accepted}/{result.records}",
            f"{result.strides}/{result.accepted}",
            escape(result.relation),
            escape((result.narrower or result.remark)[:160]),
        )
    Console(width=240).print(table)
    summary = {}
    if "everyday" in sets:
        summary = {name: everyday(kept) for name, kept in EVERYDAY.items()}
    for name, results_ in found.items():
        prefix = "" if name == "seen" else f"{name}_"
        summary |= {f"{prefix}{key}": value for key, value in counts(results_).items()}
    print(json.dumps(summary))
    return summary


def counts(found: Sequence[OverloadResult]) -> dict[str, Any]:
    """Return the figures of one set."""
    correct = [r for r in found if r.outcome == "correct"]
    return {
        "ops": len(found),
        "correct": len(correct),
        "refused": sum(r.outcome == "refused" for r in found),
        "wrong": sum(r.outcome == "wrong" for r in found),
        "narrower": sum(bool(r.narrower) for r in correct),
        "correct_without_record": sum(r.accepted == 0 for r in correct),
        "records_accepted": sum(r.accepted for r in correct),
        "records": sum(r.records for r in correct),
        "strides_equal": sum(r.strides for r in correct),
        "seconds": round(sum(r.seconds for r in found), 1),
    }


if __name__ == "__main__":
    main(sys.argv[1:] or ("seen", "held_out", "npu", "everyday"))

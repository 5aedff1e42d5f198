"""Shape relations found by running ATen's CPU kernels, treated as if nobody had written a meta function for them.

What the operators really do is taken from torch's own test inputs (``op_db``): every ATen overload they call is
recorded with its arguments and results, and the relation that inference finds, which has not seen these, is compared
with the records. ``correct``: it agrees with all it accepts, and accepts some. ``refused``: inference refused.
``wrong``: it differs anywhere. Inputs that a correct relation does not accept are counted apart.

    python -m ascend_graph.host benchmarks/inference.py
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode

from ascend_graph.registration.inference import InferenceError, Inferred, infer_relation, signature_of
from ascend_graph.registration.meta import TORCH
from ascend_graph.shapes import RelationError, ShapeError

#: Records per overload.
RECORDS = 24
#: Seconds for one overload.
LIMIT = 60
#: At most this many overloads, evenly over the alphabet.
OVERLOADS = 400


@dataclass(frozen=True, slots=True)
class Record:
    """One call as torch's tests make it: shapes, dtypes and attrs, and what came out."""

    shapes: Mapping[str, Any]
    dtypes: Mapping[str, Any]
    attrs: Mapping[str, Any]
    outputs: tuple[Any, ...]


@dataclass(slots=True)
class Result:
    """What came out for one overload."""

    name: str
    seconds: float
    outcome: str
    relation: str = ""
    accepted: int = 0
    records: int = 0
    remark: str = ""
    differences: list[str] = field(default_factory=list)


def _spec(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    return None if value is None else [_spec(item) for item in value]


def _first(spec: Any, index: int) -> Any:
    return [item and item[index] for item in spec] if isinstance(spec, list) else spec and spec[index]


class Recorder(TorchDispatchMode):
    """Records the calls of functional ATen overloads."""

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
        """The call in plain values."""
        arguments = func._schema.arguments
        values = {a.name: a.default_value if a.has_default_value() else None for a in arguments}
        values |= dict(zip((a.name for a in arguments), args, strict=False)) | dict(kwargs)
        specs = {a.name: _spec(values[a.name]) for a in arguments if "Tensor" in str(a.type)}
        attrs = {a.name: values[a.name] for a in arguments if "Tensor" not in str(a.type)}
        outputs = (result,) if len(func._schema.returns) == 1 else result
        return Record(
            {n: _first(s, 0) for n, s in specs.items()},
            {n: _first(s, 1) for n, s in specs.items()},
            attrs,
            tuple(_spec(output) for output in outputs),
        )


def candidate(func: Any) -> bool:
    """Whether an overload could be a custom operator: functional, tensors in and tensors out, no view."""
    schema = func._schema
    if schema.name.split("::")[0] != "aten" or schema.name.endswith("_") or any(a.is_out for a in schema.arguments):
        return False
    if any(a.alias_info is not None for a in (*schema.arguments, *schema.returns)) or not schema.returns:
        return False
    tensors = [a for a in schema.arguments if "Tensor" in str(a.type)]
    return bool(tensors) and all("Tensor" in str(r.type) for r in schema.returns)


def recorded() -> dict[Any, list[Record]]:
    """Every overload that torch's test inputs call, with its calls."""
    from torch.testing._internal.common_methods_invocations import op_db

    recorder = Recorder()
    for info in op_db:
        for dtype in (torch.float32, torch.int64):
            if not info.supports_dtype(dtype, "cpu"):
                continue
            for number, sample in enumerate(info.sample_inputs("cpu", dtype)):
                if number >= 12:
                    break
                try:
                    with torch.no_grad(), recorder:
                        info.op(sample.input, *sample.args, **sample.kwargs)
                except Exception:  # a test input that this build does not run
                    break
    return {func: list(records.values()) for func, records in recorder.records.items() if records}


def judge(func: Any, records: Sequence[Record]) -> Result:
    """Infer, and compare with the records."""
    start = time.perf_counter()
    try:
        found = infer_relation(func, func._schema)
    except InferenceError as error:
        remark = next((line for line in str(error).splitlines() if "last error" in line), str(error).splitlines()[0])
        return Result(func.name(), time.perf_counter() - start, "refused", records=len(records), remark=remark.strip())
    result = Result(func.name(), time.perf_counter() - start, "correct", str(found.relation), records=len(records))
    for record in records:
        compare(found, record, result)
    if result.differences:
        result.outcome, result.remark = "wrong", result.differences[0]
    return result


def apart(func: Any, records: Sequence[Record]) -> Result:
    """:func:`judge` in a process of its own: some kernels crash for arguments they do not check."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(judge(func, records)), daemon=True)
    process.start()
    sender.close()
    try:
        if receiver.poll(LIMIT):
            return receiver.recv()  # type: ignore[no-any-return]
        reason = f"not finished within {LIMIT} s"
    except EOFError:
        reason = "the kernel crashed"
    finally:
        process.kill()
        process.join()
    return Result(func.name(), 0.0, "refused", records=len(records), remark=reason)


def compare(found: Inferred, record: Record, result: Result) -> None:
    """Compare what a relation promises for one record with what came out."""
    relation = found.relation
    shapes = {name: record.shapes[name] for name in relation.inputs}
    dtypes = {name: record.dtypes[name] for name in relation.inputs}
    try:
        promised = relation.infer(shapes, dtypes, record.attrs, system=TORCH)
    except (ShapeError, RelationError) as error:
        result.remark = str(error)
        return
    result.accepted += 1
    plain = [[(tuple(s), d) for s, d in p] if isinstance(p, list) else p and (tuple(p[0]), p[1]) for p in promised]
    if plain != list(record.outputs):
        result.differences.append(f"says {plain}, was {list(record.outputs)} for {record.shapes} {record.attrs}")


def results() -> Iterator[Result]:
    """Judge all overloads."""
    calls = recorded()
    names = sorted(calls, key=lambda func: func.name())
    step = max(len(names) / OVERLOADS, 1)
    chosen = [names[int(n * step)] for n in range(min(len(names), OVERLOADS))]
    for func in chosen:
        try:
            signature_of(func._schema)
        except InferenceError:
            continue
        yield apart(func, calls[func])


def main() -> dict[str, Any]:
    """Judge every overload, print the table, return the summary."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    table = Table("operator", "outcome", "seconds", "accepted", "relation", "remark")
    found = []
    for result in results():
        found.append(result)
        print(
            f"{result.outcome:8} {result.seconds:5.1f} s  {result.name}  {result.relation or result.remark}",
            file=sys.stderr,
        )
        table.add_row(
            result.name,
            result.outcome,
            f"{result.seconds:.1f}",
            f"{result.accepted}/{result.records}",
            result.relation,
            result.remark[:160],
        )
    Console(width=240).print(table)
    correct = [r for r in found if r.outcome == "correct"]
    summary = {
        "ops": len(found),
        "correct": len(correct),
        "refused": sum(r.outcome == "refused" for r in found),
        "wrong": sum(r.outcome == "wrong" for r in found),
        "correct_without_record": sum(r.accepted == 0 for r in correct),
        "records_accepted": sum(r.accepted for r in correct),
        "records": sum(r.records for r in correct),
        "seconds": round(sum(r.seconds for r in found), 1),
    }
    print(json.dumps(summary))
    return summary


if __name__ == "__main__":
    main()

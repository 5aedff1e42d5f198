"""Relations found from authors' InferShape functions, over the operator projects of repositories.

``python benchmarks/infer_shape.py CHECKOUT…`` samples sources named ``*_infershape.cpp`` of each checkout, compiles each with
the host toolkit, and searches for the relation that its functions follow. The relation is then compared with the function on
200 fresh inputs. The last line is JSON: ``sources`` (sampled), ``not_compiled``, ``operators``, ``relations`` (agreeing on
all fresh inputs), ``with_values`` (those of functions that read values of inputs, which are arguments there), ``wrong`` (not
agreeing), ``by_call`` (a meta that calls InferShape), ``by_value`` (InferShape reads values of tensors), ``sets_nothing``
(it returns without a shape), ``share`` of the operators with a relation among all but these two, ``share_of_all``, processor
``seconds`` of a search (mean and highest), and ``results`` by operator.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ascend_graph.compilation import BuildError
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.infer_shape.sources import source_functions
from ascend_graph.inference import InferenceError
from ascend_graph.inference.functions.comparison import isolated_agreement
from ascend_graph.inference.functions.questions import UNSET
from ascend_graph.inference.functions.search import infer_with_values
from ascend_graph.shapes.functions import ShapeFunction
from benchmarks._common import run

#: Fresh inputs on which a relation is compared with its function.
FRESH = 200


def sources(checkout: Path) -> list[Path]:
    """Return the sources of InferShape functions of a checkout, those of tests left out."""
    found = checkout.rglob("op_host/**/*_infershape.cpp")
    return sorted(path for path in found if not {"tests", "ut", "examples"} & set(path.relative_to(checkout).parts))


def operators(paths: Sequence[Path], checkout: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of each operator, or of a source that does not compile."""
    for path in paths:
        name = str(path.relative_to(checkout))
        try:
            found = source_functions(path)
        except (BuildError, AscendGraphError) as error:
            first = next((line for line in str(error).splitlines() if "error:" in line), str(error))
            yield {"source": name, "state": "not compiled", "detail": first[:300]}
            continue
        for op_type in found.without_prototype:
            yield {"source": name, "operator": op_type, "state": "no prototype", "detail": ""}
        for function in found.functions:
            yield {"source": name, "operator": function.prototype.op_type, **_result(function)}


def _result(function: ShapeFunction) -> dict[str, Any]:
    began = _processor_seconds()
    try:
        found, asked = infer_with_values(function)
    except InferenceError as error:
        state = "by value" if function.data_inputs or "depends on values" in str(error) else "by call"
        state = "sets nothing" if UNSET in str(error) else state
        return {"state": state, "detail": str(error)[-600:], "seconds": _processor_seconds() - began}
    seconds = _processor_seconds() - began
    values = len(asked.prototype.inputs) < len(function.prototype.inputs)
    result = {"relation": str(found.relation), "seconds": round(seconds, 3), "values": values}
    try:
        checked = isolated_agreement(found.relation, asked, FRESH, seed=1009)
    except InferenceError as error:
        return {**result, "state": "by call", "detail": str(error)}
    result |= {"compared": checked.compared, "narrower": checked.refused_by_relation}
    if checked.differing:
        return {**result, "state": "wrong", "detail": checked.differing[0]}
    return {**result, "state": "relation" if checked.compared >= FRESH // 2 else "by call", "detail": ""}


def _processor_seconds() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(description="Relations from InferShape functions.")
    parser.add_argument("checkouts", nargs="*", type=Path, help="without any nothing is tried")
    parser.add_argument("--count", type=int, default=25, help="sources of all checkouts together; 0 for all")
    parser.add_argument("--seed", type=int, default=[0], nargs="+", help="of several, each draws a sample")
    parser.add_argument("--ops", default="", help="names of project directories, with commas")
    arguments = parser.parse_args()
    names = {name for name in arguments.ops.split(",") if name}
    every = [(c.resolve(), p) for c in arguments.checkouts for p in sources(c.resolve())]
    every = [(c, p) for c, p in every if not names or names & set(p.parts)]
    count = len(every) if names or not arguments.count else min(arguments.count, len(every))
    chosen = sorted(one for seed in arguments.seed for one in random.Random(seed).sample(every, count))
    results: list[dict[str, Any]] = []
    started = time.monotonic()
    for checkout, path in chosen:
        for one in operators([path], checkout):
            print(f"{one.get('operator', one['source'])}: {one['state']} {one.get('relation', '')} {one['detail']}",
                  file=sys.stderr, flush=True)  # fmt: skip
            results.append(one)
    states = [one["state"] for one in results]
    asked = [one for one in results if "operator" in one and one["state"] != "no prototype"]
    relations = states.count("relation")
    seconds = [one["seconds"] for one in asked if "seconds" in one]
    return {
        "sources": len(chosen), "of": len(every), "not_compiled": states.count("not compiled"),
        "no_prototype": states.count("no prototype"), "operators": len(asked), "relations": relations,
        "with_values": sum(one["state"] == "relation" and one["values"] for one in asked),
        "wrong": states.count("wrong"), "by_call": states.count("by call"), "by_value": states.count("by value"),
        "sets_nothing": states.count("sets nothing"),
        "share": round(relations / max(len(asked) - states.count("by value") - states.count("sets nothing"), 1), 3),
        "share_of_all": round(relations / max(len(asked), 1), 3),
        "seconds_mean": round(sum(seconds) / max(len(seconds), 1), 3), "seconds_highest": round(max(seconds, default=0), 3),
        "wall_seconds": round(time.monotonic() - started, 1), "results": results,
    }  # fmt: skip


if __name__ == "__main__":
    run(main)

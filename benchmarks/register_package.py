"""Time of registering an operator package of a thousand operators, and of the first use of each.

make bench NAME=register_package            # ARGS='--operators 1000'

Three fresh processes are measured: one without the package's cached schemas, one with them, and one that registers a
single operator by ``register_op``, with the modules that it imports. Times are processor time, for other work on the
machine changes that least; imports are taken out by a package of one operator. ``bare_ms`` is what torch alone takes for
an operator, in the same process: its definition, one kernel, one meta function and the lookup, all in Python. Both are
taken without the garbage collector, which looks through all of torch's objects once in such a loop. Other work on the
machine changes ``each_of_bare``, the ratio, less than either.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _common import run
from rich.console import Console
from rich.table import Table

_HEADER = """
/**
 * @brief Adds two tensors.
 * @par Inputs:
 * @li x: A tensor.
 * @li y: A tensor of the same shape.
 */
REG_OP({name})
    .INPUT(x, TensorType({{DT_FLOAT, DT_FLOAT16, DT_BF16, DT_INT32}}))
    .INPUT(y, TensorType({{DT_FLOAT, DT_FLOAT16, DT_BF16, DT_INT32}}))
    .OUTPUT(z, TensorType({{DT_FLOAT, DT_FLOAT16, DT_BF16, DT_INT32}}))
    .ATTR(alpha, Float, 1.0)
    .REQUIRED_ATTR(axis, Int)
    .OP_END_FACTORY_REG({name})
"""
_RELATIONS = ("x[*s], y[*s] -> z[*s]", "x[a, *s], y[a, *s] -> z[a, *s]", "x[..., n], y[..., n] -> z[..., n]")
_MEASURED = """
import gc, json, sys, time
import torch, torch_npu
import ascend_graph
from ascend_graph.eager.library import kernels
directory, one = sys.argv[1:]
ascend_graph.register_package(one, namespace="warm")["WarmUp"]
kernels()
start = time.process_time()
package = ascend_graph.register_package(directory, namespace="measured")
registered = (time.process_time() - start) * 1e3
names = [schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("measured::")]
start = time.process_time()
package[package.operators[0]]
first = (time.process_time() - start) * 1e3
gc.disable()
start = time.process_time()
package.register_all()
each = (time.process_time() - start) * 1e3 / (len(package) - 1)
def returned(x, *rest):
    return x
kept = []
start = time.process_time()
for n in range(len(package) - 1):
    library = torch.library.Library("bare", "FRAGMENT")
    library.define(f"many{n}(Tensor x, Tensor y, float alpha=1.0, *, int axis) -> Tensor z")
    library.impl(f"many{n}", returned, "PrivateUse1")
    torch.library.register_fake(f"bare::many{n}", returned, lib=library)
    kept.append((library, getattr(torch.ops.bare, f"many{n}").default))
bare = (time.process_time() - start) * 1e3 / (len(package) - 1)
print(json.dumps({"ms": registered, "schemas": len(names), "first": first, "each": each, "bare": bare}))
"""
_ONE = """
import json, sys, time
import torch, torch_npu
import ascend_graph
from ascend_graph.eager.library import eager_library
assert eager_library().cached()
ascend_graph.load_prototypes(sys.argv[1])
before = set(sys.modules)
start = time.process_time()
ascend_graph.register_op("WarmUp", shape="x[*s], y[*s] -> z[*s]")
seconds, added = time.process_time() - start, set(sys.modules) - before
ge = [name for name in added if name.startswith(("torchair.", "torch_npu.dynamo.torchair"))]
print(json.dumps({"s": seconds, "modules": len(added), "torchair": len(ge)}))
"""


def make_package(directory: Path, names: list[str]) -> Path:
    """Write a package of prototypes and relations."""
    inc = directory / "op_proto" / "inc"
    inc.mkdir(parents=True)
    (inc / "op_proto.h").write_text("".join(_HEADER.format(name=name) for name in names))
    sections = (f"[{name}]\nshape = {_RELATIONS[n % len(_RELATIONS)]}\n" for n, name in enumerate(names))
    (directory / "relations.ini").write_text("\n".join(sections))
    return directory


def main() -> dict[str, Any]:
    """Measure in fresh processes, print a table and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", type=int, default=1000)
    count = parser.parse_args().operators
    from ascend_graph.compilation.cache import cache_directory
    from ascend_graph.eager.library import eager_library

    compiled = eager_library().build()
    with tempfile.TemporaryDirectory() as work:
        package = make_package(Path(work, "vendors", "many"), [f"Many{n:05d}" for n in range(count)])
        one = make_package(Path(work, "vendors", "one"), ["WarmUp"])
        cache = Path(work, "cache")
        cache.mkdir()
        for name in {compiled.parent.name if compiled.parent != cache_directory() else compiled.name}:
            (cache / name).symlink_to(cache_directory() / name)

        def measure(code: str, *arguments: Path) -> dict[str, Any]:
            # A file: torch looks for the source of each meta function, and of one from -c in every module.
            script = Path(work, "measured.py")
            script.write_text(code)
            command = [sys.executable, str(script), *map(str, arguments)]
            environment = os.environ | {"ASCEND_GRAPH_CACHE": str(cache)}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found

        cold = measure(_MEASURED, package, one)
        warm = measure(_MEASURED, package, one)
        single = measure(_ONE, one / "op_proto/inc/op_proto.h")
    table = Table(title=f"register_package of {count} operators, processor time")
    for column in ("process", "registered, ms", "schemas", "first use, ms", "each further, ms", "torch alone, ms"):
        table.add_column(column, justify="right")
    for name, row in (("first", cold), ("second", warm)):
        figures = (
            f"{row['ms']:.1f}",
            str(row["schemas"]),
            f"{row['first']:.1f}",
            f"{row['each']:.2f}",
            f"{row['bare']:.2f}",
        )
        table.add_row(name, *figures)
    console = Console()
    console.print(table)
    console.print(f"register_op: {single['s']:.2f} s, {single['modules']} modules, {single['torchair']} of TorchAir")
    return {
        "operators": count,
        "cold_ms": round(cold["ms"], 1),
        "warm_ms": round(warm["ms"], 1),
        "first_use_ms": round(warm["first"], 1),
        "each_ms": round(warm["each"], 3),
        "bare_ms": round(warm["bare"], 3),
        "each_of_bare": round(warm["each"] / warm["bare"], 1),
        "register_op_s": round(single["s"], 2),
        "register_op_modules": single["modules"],
        "register_op_torchair_modules": single["torchair"],
    }


if __name__ == "__main__":
    run(main)

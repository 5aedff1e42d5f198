"""Time to generate a library of 100 operators and to build its wheel, as its author does, in seconds.

It has 50 operators with a required and an optional input and attrs of six types, and their 50 gradient operators.

    make bench NAME=library_build
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ascend_graph.codegen.eager_library.project import generate_project
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))
from _common import run

PAIRS = 50
_INPUTS = ".INPUT(x, TensorType::ALL()).OPTIONAL_INPUT(b, TensorType::ALL())"
_ATTRS = (
    '.ATTR(axis, Int, 1).ATTR(eps, Float, 1e-5).ATTR(flag, Bool, false).ATTR(mode, String, "sum")'
    ".ATTR(dims, ListInt, {1, 2}).ATTR(dtype, Type, DT_FLOAT)"
)


def _prototypes() -> str:
    forward = [
        f"REG_OP(Op{n}){_INPUTS}.OUTPUT(y, TensorType::ALL()){_ATTRS}.OP_END_FACTORY_REG(Op{n})" for n in range(PAIRS)
    ]
    backward = [
        f"REG_OP(Op{n}Grad).INPUT(dy, TensorType::ALL()){_INPUTS}.OUTPUT(dx, TensorType::ALL()){_ATTRS}.OP_END_FACTORY_REG(Op{n}Grad)"
        for n in range(PAIRS)
    ]
    return "\n".join([*forward, *backward])


def main() -> dict[str, Any]:
    """Generate the library, build the wheel and print the times."""
    relations = {f"Op{n}": "x[*s], b -> y[*s]: dtype" for n in range(PAIRS)}
    relations |= {f"Op{n}Grad": "dy, x[*s], b -> dx[*s]" for n in range(PAIRS)}
    with tempfile.TemporaryDirectory(prefix="library_build.") as work:
        header = Path(work, "op_proto.h")
        header.write_text(_prototypes())
        start = time.perf_counter()
        project = generate_project(Path(work, "hundred_ops"), header, shapes=relations)
        generated = time.perf_counter()
        # Without isolation, to time the build and not the download of torch.
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", str(project.directory)]
        build = subprocess.run(command, capture_output=True, text=True, check=False)
        built = time.perf_counter()
        if build.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{build.stdout}{build.stderr}")
        (wheel,) = project.directory.glob("dist/*.whl")
        size = wheel.stat().st_size
    count = len(project.operators)
    Console().print(
        f"{count} operators, {PAIRS} of them with a gradient: generated in {generated - start:.2f} s, built in {built - generated:.0f} s "
        f"({(built - generated) / count:.2f} s each); wheel of {size / 1e6:.1f} MB"
    )
    return {
        "operators": count,
        "generate_s": round(generated - start, 3),
        "build_s": round(built - generated, 1),
        "build_per_operator_s": round((built - generated) / count, 3),
        "wheel_mb": round(size / 1e6, 2),
    }


if __name__ == "__main__":
    run(main)

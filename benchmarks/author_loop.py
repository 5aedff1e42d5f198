"""Time of an author's loop in seconds: change a line of a kernel, build the operator package, call the operator.

    make bench NAME=author_loop

The project is examples/operator_package, AddCustom for two dtypes. ``changed_s``, ``unchanged_s``, ``tiling_s`` (a line of
the tiling function) and ``refused_s`` (an error in the kernel) are of ``ascend-graph build``; ``call_s`` is a new process
that imports torch_npu, loads the package and calls the operator.
``ratio`` is the processor time of a build after a change to that of g++ on two empty kernels: one for each dtype.
``keys_first_launch_s`` is what the first launch of a tiling key takes that the build left for it, in a kernel of 20 keys.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ascend_graph.compilation import compiler
from ascend_graph.environment import toolkit_directory

sys.path.insert(0, str(Path(__file__).parent))
from _common import run

TREE = Path(__file__).resolve().parents[1]
#: Statement that is changed to a different one each time; only a comment would not be compiled.
STATEMENT = "AscendC::Add(z, x, y, count);"
CHANGED = "AscendC::Add(z, x, y, count + {number} - {number});"
#: The same with a name that there is not.
WRONG = "AscendC::Add(z, x, y, no_such_count);"
#: Statement of the tiling function that is changed.
TILED = "context->SetBlockDim(cores);"
#: Statement before which the kernel asks the preprocessor for its tiling key.
RUN = "kernel.Run("
KEYS = 20
ROUNDS = 3
EMPTY = '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void empty(GM_ADDR x) {}\n'
CALL = """
import torch, ascend_graph
ascend_graph.register_op("AddCustom", shape="x[*s], y[*s] -> z[*s]")
add = torch.ops.ascend.add_custom
x = torch.ones(2048, dtype=torch.float16).npu()
assert add(x, x).cpu().eq(2).all()
"""


def _timed(command: Sequence[str | Path], environment: dict[str, str], *, succeeds: bool = True) -> tuple[float, float]:
    """Return a command's wall and processor seconds; it must succeed, or fail."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if (done.returncode == 0) is not succeeds:
        raise RuntimeError(f"{' '.join(map(str, command))} returned {done.returncode}:\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _by_hand(work: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds of g++ for an empty kernel: the cost of kernel_operator.h."""
    source = work / "empty.cpp"
    source.write_text(EMPTY)
    include = [f"-I{toolkit_directory() / place}" for place in ("include", "compiler/tikcpp/tikcfw")]
    command = [
        *compiler(),
        "-std=c++17",
        "-O2",
        "-fPIC",
        "-w",
        *include,
        "-c",
        str(source),
        "-o",
        str(work / "empty.o"),
    ]
    return _timed(command, environment)


def _first_launch(
    kernel: Path, text: str, work: Path, build: Sequence[str], environment: dict[str, str]
) -> tuple[float, float]:
    """Return the seconds of the program that compiles a tiling key when it is first launched."""
    keys = "".join(f"TILING_KEY_IS({key});\n" for key in range(KEYS))
    kernel.write_text(text.replace(RUN, f"\n#if TILING_KEY_VAR >= 0\n{keys}#endif\n{RUN}", 1))
    command = [*build[:-1], str(work / "keys")]
    _timed(command, environment)
    stem = work / "keys/op_impl/host/kernels/add_custom_0"
    program = [sys.executable, "-m", "ascend_graph.host.packages.kernel_keys", str(stem)]
    return min(_timed([*program, str(key)], environment) for key in range(1, 1 + ROUNDS))


def main() -> dict[str, Any]:
    """Build, change, build, call; print the medians."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="author_loop.") as place:
        work = Path(place)
        environment = {**os.environ, "ASCEND_GRAPH_CACHE": str(work / "cache"), "CCACHE_DISABLE": "1"}
        project, kernel = work / "project", work / "project/op_kernel/add_custom.cpp"
        shutil.copytree(TREE / "examples/operator_package", project)
        build = [sys.executable, "-m", "ascend_graph.cli", "build", str(project), "-o", str(work / "opp")]
        first = _timed(build, environment)
        unchanged = min(_timed(build, environment) for _ in range(ROUNDS))
        changed, text = [], kernel.read_text()
        for number in range(ROUNDS):
            kernel.write_text(text.replace(STATEMENT, CHANGED.format(number=number), 1))
            changed.append(_timed(build, environment))
        middle = sorted(changed)[ROUNDS // 2]
        kernel.write_text(text.replace(STATEMENT, WRONG, 1))
        wrong = min(_timed(build, environment, succeeds=False) for _ in range(ROUNDS))
        kernel.write_text(text)
        host_source = project / "op_host/add_custom.cpp"
        tiled, host_text = [], host_source.read_text()
        for number in range(ROUNDS):
            changed_text = TILED.replace("cores", f"cores + {number} - {number}")
            host_source.write_text(host_text.replace(TILED, changed_text, 1))
            tiled.append(_timed(build, environment))
        tiling = sorted(tiled)[ROUNDS // 2]
        hand = _by_hand(work, environment)
        first_launch = _first_launch(kernel, text, work, build, environment)
        environment = {**os.environ, "CCACHE_DISABLE": "1"}
        host = [sys.executable, "-m", "ascend_graph.host", "--quiet", "--opp", str(work / "opp")]
        call = min(
            _timed([*host, "-c", CALL], environment) for _ in range(2)
        )  # the first one compiles the eager kernel
    for name, (wall, processor) in {
        "first build": first, "nothing changed": unchanged, "a line of the kernel changed": middle,
        "an error in the kernel": wrong, "a line of the tiling function changed": tiling,
        "first launch of a tiling key": first_launch,
        "call in a new process": call, "an empty kernel by g++": hand,
    }.items():  # fmt: skip
        console.print(f"{name}: {wall:.1f} s, {processor:.1f} s of processor time")
    return {
        "first_s": round(first[0], 2),
        "unchanged_s": round(unchanged[0], 2),
        "unchanged_cpu_s": round(unchanged[1], 2),
        "changed_s": round(middle[0], 2),
        "changed_cpu_s": round(middle[1], 2),
        "refused_s": round(wrong[0], 2),
        "refused_cpu_s": round(wrong[1], 2),
        "tiling_s": round(tiling[0], 2),
        "tiling_cpu_s": round(tiling[1], 2),
        "keys_first_launch_s": round(first_launch[0], 2),
        "keys_first_launch_cpu_s": round(first_launch[1], 2),
        "call_s": round(call[0], 2),
        "call_cpu_s": round(call[1], 2),
        "empty_cpu_s": round(hand[1], 2),
        "ratio": round(middle[1] / (2 * hand[1]), 2),
    }


if __name__ == "__main__":
    run(main)

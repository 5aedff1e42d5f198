"""``--streams``: work that does not wait for the stream whose results it uses is refused with the operator's name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import json, torch, torch_npu
main, side, other = torch.npu.current_stream(), torch.npu.Stream(), torch.npu.Stream()

def fresh():
    x = torch.zeros(8, 8, device="npu")
    torch.npu.synchronize()
    return x

def on(stream):
    return torch.npu.stream(stream)
"""

#: What is wrong, and the operator that is named for it.
FAULTS = {
    "reads what another stream writes": ("x = fresh()\nwith on(side): x.add_(1)\nx.relu()", "aten::relu"),
    "reads a result of another stream": ("x = fresh()\nwith on(side): y = x * 2\ny.exp()", "aten::exp"),
    "overwrites what another stream reads": ("x = fresh()\nwith on(side): y = x * 2\nx.zero_()", "aten::zero_"),
    "overwrites what another stream writes": (
        "x = fresh()\nwith on(side): x.fill_(1)\nwith on(other): x.fill_(2)",
        "aten::fill_",
    ),
    "waits for the wrong stream": (
        "x = fresh()\nwith on(side): x.add_(1)\nother.synchronize()\nx.relu()",
        "aten::relu",
    ),
    "waits before the work is there": (
        "x = fresh()\nmain.wait_stream(side)\nwith on(side): x.add_(1)\nx.relu()",
        "aten::relu",
    ),
    "waits for an event of earlier work": (
        (
            "x = fresh()\ne = torch.npu.Event()\nside.record_event(e)\nwith on(side): x.add_(1)\nmain.wait_event(e)\n"
            "x.relu()"
        ),
        "aten::relu",
    ),
    "copies to the host from the wrong stream": ("x = fresh()\nwith on(side): x.add_(1)\nx.cpu()", "aten::_to_copy"),
    "reads a view": ("x = fresh()\nwith on(side): x.add_(1)\nx[:2].t().relu()", "aten::relu"),
    "multiplies": ("x = fresh()\nwith on(side): y = x + 1\nx @ y", "aten::mm"),
}

#: What is right.
RIGHT = {
    "one stream": "x = fresh()\nx.add_(1).relu().cpu()",
    "waits for the stream": "x = fresh()\nwith on(side): x.add_(1)\nmain.wait_stream(side)\nx.relu()",
    "waits for an event": (
        "x = fresh()\ne = torch.npu.Event()\n"
        "with on(side):\n    x.add_(1)\n    e.record()\n"
        "main.wait_event(e)\nx.relu()"
    ),
    "synchronizes the device": "x = fresh()\nwith on(side): x.add_(1)\ntorch.npu.synchronize()\nx.relu()",
    "synchronizes the stream": "x = fresh()\nwith on(side): x.add_(1)\nside.synchronize()\nx.relu()",
    "two readers": "x = fresh()\nwith on(side): y = x * 2\nwith on(other): z = x * 3",
    "through a third stream": (
        "x = fresh()\nwith on(side): x.add_(1)\nother.wait_stream(side)\nmain.wait_stream(other)\nx.relu()"
    ),
    "memory that is recorded": (
        "x = fresh()\nwith on(side):\n    y = x * 2\n    x.record_stream(side)\ndel x\nz = fresh()"
    ),
    "trains": (
        "l = torch.nn.Linear(8, 8).npu()\no = torch.optim.SGD(l.parameters(), 0.1)\nl(fresh()).sum().backward()\n"
        "o.step()"
    ),
}

RUN = """
def run(code):
    try:
        exec(code, globals())
    except torch.cuda._sanitizer.CUDASanitizerErrors as found:
        return str(found.errors[0]).partition("during kernel:")[2].split("(")[0].strip()
    finally:
        torch.npu.synchronize()
print(json.dumps({name: run(code) for name, code in json.loads(programs).items()}))
"""


def checked(tmp_path: Path, code: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(code)
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", "--streams", str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_streams_that_do_not_wait_are_found_and_others_are_let_alone(tmp_path: Path) -> None:
    programs = {name: code for name, (code, _) in FAULTS.items()} | RIGHT
    result = checked(tmp_path, f"{BEGIN}\nprograms = {json.dumps(programs)!r}\n{RUN}")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    named = {name: said and said.partition(".")[0] for name, said in found.items()}
    assert named == {name: operator for name, (_, operator) in FAULTS.items()} | dict.fromkeys(RIGHT)


def test_a_program_ends_with_the_operators_name(tmp_path: Path) -> None:
    result = checked(tmp_path, BEGIN + FAULTS["reads a result of another stream"][0])
    assert result.returncode == 1
    assert "aten::exp(Tensor self) -> Tensor" in result.stderr


def test_memory_and_streams_are_checked_one_after_the_other() -> None:
    command = [sys.executable, "-m", "ascend_graph.host", "--strict", "--streams", "-c", "pass"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, "start the program once with each" in result.stderr) == (2, True)

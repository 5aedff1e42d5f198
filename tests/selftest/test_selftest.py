"""The self-test: one file of results, whatever crashes, hangs or refuses; and CANN's compiler where one is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ascend_graph import selftest
from ascend_graph.selftest import Wanted, as_text
from ascend_graph.selftest.atc import command, compile_model, find_atc


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_atc_is_found_on_the_path_and_below_cann(tmp_path: Path) -> None:
    assert find_atc({"PATH": "/nowhere"}) is None
    below = program(tmp_path / "cann/bin/atc", "exit 0")
    assert find_atc({"PATH": "/nowhere", "ASCEND_HOME_PATH": str(tmp_path / "cann")}) == below
    first = program(tmp_path / "bin/atc", "exit 0")
    assert find_atc({"PATH": str(tmp_path / "bin"), "ASCEND_HOME_PATH": str(tmp_path / "cann")}) == first


def test_a_graph_is_compiled_or_the_command_is_said(tmp_path: Path) -> None:
    model = tmp_path / "graph/export.air"
    model.parent.mkdir()
    model.touch()
    assert command(None, model, "Ascend910B3") == [
        "atc",
        "--framework=1",
        f"--model={model}",
        f"--output={tmp_path}/graph/export_Ascend910B3",
        "--soc_version=Ascend910B3",
    ]
    nothing = compile_model(None, model, "Ascend910B3")
    assert (nothing["ok"], nothing["command"]) == (None, " ".join(command(None, model, "Ascend910B3")))
    good = compile_model(program(tmp_path / "atc", 'echo "ATC run success, $3"; pwd'), model, "X")
    assert (good["ok"], good["output"]) == (
        True,
        f"ATC run success, --output={tmp_path}/graph/export_X\n{tmp_path}/graph",
    )
    bad = compile_model(program(tmp_path / "atc", "echo E10001 unknown op >&2; exit 3"), model, "X")
    assert (bad["ok"], bad["output"]) == (False, "E10001 unknown op")
    absent = compile_model(tmp_path / "none", model, "X")
    assert (absent["ok"], absent["output"]) == (False, "does not run: No such file or directory")


def test_a_row_that_dies_is_a_result_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The process is started again behind what killed it; one that dies before anything starts is not started for
    ever."""
    asked = []

    def lines(_: Wanted, on_host: bool, done: Sequence[str]) -> Iterator[dict[str, Any]]:
        asked.append(list(done))
        if not done:
            yield {"about": {"name": "x"}}
            yield {"start": "first"}
            yield {"row": {"name": "first", "ok": True}}
            yield {"start": "second"}
            yield {"died": "ended by SIGSEGV"}
        else:
            yield {"start": "third"}
            yield {"export": {"name": "third", "model": "m"}}
            yield {"ended": True}

    monkeypatch.setattr(selftest, "_lines", lines)
    found = list(selftest._measured(Wanted(tmp_path), True, lambda _: None))
    assert found == [
        ("about", {"name": "x"}),
        ("row", {"name": "first", "ok": True}),
        ("row", {"name": "second", "ok": False, "error": "ended by SIGSEGV"}),
        ("export", {"name": "third", "model": "m"}),
    ]
    assert asked == [[], ["first", "second"]]
    monkeypatch.setattr(selftest, "_lines", lambda *_: iter([{"died": "ended with 1"}]))
    assert list(selftest._measured(Wanted(tmp_path), True, lambda _: None)) == [
        ("row", {"name": "start", "ok": False, "error": "ended with 1"})
    ]


def test_results_for_people() -> None:
    rows = [
        {"name": "op: eager", "ok": True, "first_ms": 1.0, "call_us": 2.0},
        {"name": "op: GE", "ok": False, "error": "ended by SIGSEGV"},
    ]
    graph = {"name": "op static", "model": "m", "command": "atc --framework=1", "ok": None, "output": ""}
    results: dict[str, Any] = {
        "ran_on": "host runtime",
        "versions": {"torch": "2.13.0", "cann": None},
        "rows": rows,
        "checks": [],
        "seconds": 3.0,
        "atc": {"program": None, "graphs": [graph]},
        "failed": ["op: GE"],
    }
    text = as_text(results)
    assert text.splitlines()[0] == "on the host runtime: torch 2.13.0"
    assert "!!  op: GE     ended by SIGSEGV" in text
    assert "  atc --framework=1" in text
    assert text.endswith("1 failed: op: GE (3.0 s)")


@pytest.mark.slow
def test_the_whole_self_test_with_a_module_that_crashes_and_a_compiler(tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text('''
import os
import torch, torch_npu, ascend_graph
ascend_graph.load_prototypes("""
REG_OP(SelfCrash).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(SelfCrash)
""")
library = torch.library.Library("selfcrash", "DEF")
library.define("crash(Tensor x) -> Tensor")
library.impl("crash", lambda x: os.abort(), "PrivateUse1")
ascend_graph.register_op("SelfCrash", eager=torch.ops.selfcrash.crash, shape="x[*s] -> y[*s]")
''')
    script = 'case "$2" in *rms_norm*) echo E10001 RmsNorm; exit 1;; esac; test -s "${2#--model=}"'
    program(tmp_path / "bin/atc", script)
    output = tmp_path / "results.json"
    arguments = [str(tmp_path / "crashing.py"), "-o", str(output), "--count", "1", "--soc", "Ascend910B3"]
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    result = subprocess.run(
        [sys.executable, "-m", "ascend_graph.cli", "selftest", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    results = json.loads(output.read_text())
    assert (result.returncode, results["ok"], results["ran_on"]) == (1, False, "host runtime")
    assert len(results["rows"]) == 20
    assert all(row["ok"] and row["call_us"] > 0 for row in results["rows"])
    graphs = {graph["name"]: graph["ok"] for graph in results["atc"]["graphs"]}
    assert graphs == {
        f"export {name} {kind}": "rms_norm" not in name
        for name in ("ascend_graph_selftest::swiglu", "npu::npu_rms_norm", "npu::npu_fast_gelu", "selfcrash::crash")
        for kind in ("static", "dynamic")
    }
    assert sorted(results["failed"]) == [
        "export npu::npu_rms_norm dynamic",
        "export npu::npu_rms_norm static",
        "selfcrash.crash.default",
    ]
    assert results["versions"]["torch_npu"]
    assert [report["ok"] for report in results["checks"]] == [True, True, True, False]
    assert "3 failed: " in result.stdout

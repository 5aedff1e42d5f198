"""How often the compiler runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import Toolkit

KERNEL = '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void kernel(GM_ADDR x) {}\n'


@pytest.mark.slow
def test_an_error_is_found_by_one_compilation(tools: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the precompiled header, where the source's first headers have one."""
    log, program = tmp_path / "log", tmp_path / "g++"
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec g++ "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ASCENDC_HOST_CXX", str(program))
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "kernel.asc"
    for number in ("1", "2", "nothing"):
        source.write_text(f"{KERNEL}int number = {number};\n")
        log.unlink(missing_ok=True)
        done = tools.bisheng("-c", source, "-o", tmp_path / "kernel.o")
    assert (done.returncode, done.stderr.count("error:")) == (1, 1)
    assert f"{source}:3:14: error: 'nothing' was not declared" in done.stderr
    steps = [line for line in log.read_text().splitlines() if " -c " in line]
    assert len(steps) == 1
    assert ".rest.ii" in steps[0]

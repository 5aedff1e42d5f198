"""CANN's offline compiler, ``atc``: it compiles exported graphs for a processor on a machine without one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Seconds that one graph may take.
_LIMIT = 600
#: How many of the last characters of its output are kept.
_KEPT = 2_000


def find_atc(environment: Mapping[str, str]) -> Path | None:
    """The program: on PATH, or below the CANN that is selected."""
    found = shutil.which("atc", path=environment.get("PATH", os.defpath))
    if found:
        return Path(found)
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        path = Path(environment.get(variable) or "/nonexistent") / "bin/atc"
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def command(atc: Path | None, model: Path, soc: str) -> list[str]:
    """How a graph is compiled that TorchAir exported: its form (AIR) is framework 1."""
    return [
        str(atc or "atc"),
        "--framework=1",
        f"--model={model}",
        f"--output={model.with_suffix('')}_{soc}",
        f"--soc_version={soc}",
    ]


def compile_model(atc: Path | None, model: Path, soc: str) -> dict[str, Any]:
    """Compile a graph, or say with which command it is compiled where there is no compiler."""
    words = command(atc, model, soc)
    result: dict[str, Any] = {"model": str(model), "command": shlex.join(words), "ok": None, "output": ""}
    if atc is None:
        return result
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=False, cwd=model.parent
        )
    except subprocess.TimeoutExpired:
        return {**result, "ok": False, "output": f"did not end within {_LIMIT} s"}
    except OSError as error:
        return {**result, "ok": False, "output": f"does not run: {error.strerror or error}"}
    return {**result, "ok": done.returncode == 0, "output": (done.stdout + done.stderr)[-_KEPT:].strip()}

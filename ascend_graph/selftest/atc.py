"""CANN's offline compiler, ``atc``: it compiles exported graphs for a SoC on a machine without an NPU."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ascend_graph.environment import toolkit_directory

#: Seconds that one graph may take.
_LIMIT = 600
#: Number of characters that are kept from the end of its output.
_KEPT = 2_000


def find_atc(environment: Mapping[str, str]) -> Path | None:
    """Return ``atc`` from PATH or the selected CANN, or None; the host toolkit's, which only refuses, is skipped."""
    refusing = toolkit_directory() / "bin"
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    path_without = os.pathsep.join(entry for entry in entries if Path(entry) != refusing)
    found = shutil.which("atc", path=path_without)
    if found:
        return Path(found)
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        path = Path(environment.get(variable) or "/nonexistent") / "bin/atc"
        if path.parent != refusing and path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def command(atc: Path | None, model: Path, soc: str) -> list[str]:
    """Return the command that compiles a graph exported by TorchAir: its format (AIR) is framework 1."""
    return [
        str(atc or "atc"),
        "--framework=1",
        f"--model={model}",
        f"--output={model.with_suffix('')}_{soc}",
        f"--soc_version={soc}",
    ]


def compile_model(atc: Path | None, model: Path, soc: str) -> dict[str, Any]:
    """Compile a graph and return the result; without a compiler, return only the command that would compile it."""
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

"""The tests of the wheel, where it is not installed: in a directory of its own, which only their process sees."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: Version, and the newest Python that it has a wheel for.
WHEEL, NEWEST_PYTHON = "triton-ascend==3.2.0", (3, 11)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("triton") is not None, reason="a triton is installed: test_wheel.py uses it"
)
@pytest.mark.skipif(
    sys.version_info[:2] > NEWEST_PYTHON or platform.machine() not in ("x86_64", "aarch64"),
    reason=f"{WHEEL} has no wheel for this Python and machine",
)
def test_kernels_run_with_the_stock_wheel(tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "wheel"), WHEEL]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{WHEEL} cannot be installed here: {done.stderr.strip().splitlines()[-1:]}")
    path = os.pathsep.join(filter(None, [str(tmp_path / "wheel"), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "test_wheel.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout

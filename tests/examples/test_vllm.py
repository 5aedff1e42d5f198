"""vLLM with vllm-ascend, served from published wheels: greedy tokens are those of transformers on the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from .conftest import EXAMPLES

#: The environment that examples/vllm/environment.py made; it needs gigabytes of wheels, so that no test makes it.
ENVIRONMENT = Path(os.environ.get("ASCEND_GRAPH_VLLM", EXAMPLES.parent / "build/vllm"))
PYTHON = ENVIRONMENT / "bin/python"


def environment_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vllm_environment", EXAMPLES / "vllm/environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_requirements_leave_out_cuda_and_extras() -> None:
    metadata = """Metadata-Version: 2.4
Requires-Dist: regex
Requires-Dist: torch==2.9.0
Requires-Dist: nvidia-nccl-cu12==2.27; platform_system == "Linux"
Requires-Dist: triton-ascend==3.2.0
Requires-Dist: transformers<5,>=4.56.0
Requires-Dist: ray>=2; extra == "ray"
Requires-Dist: torchmetrics>=1

Requires patience."""
    assert environment_script().requirements(metadata) == ["regex", "transformers<5,>=4.56.0", "torchmetrics>=1"]


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="no environment: python examples/vllm/environment.py build/vllm")
@pytest.mark.parametrize("options", [(), ("--graph",), ("--ranks", "2"), ("--graph", "--ranks", "2")], ids=" ".join)
def test_greedy_tokens_are_those_of_transformers(options: tuple[str, ...], tmp_path: Path) -> None:
    # A host runtime of its own: that of this process is for another PyTorch.
    ours = ("ASCEND_", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTEST", "CMAKE_", "CPLUS_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [PYTHON, "-m", "ascend_graph.host", "--quiet", EXAMPLES / "vllm/serve.py", tmp_path / "model", *options],
        cwd=tmp_path, env=plain | {"ASCEND_GRAPH_HOST_DEVICES": "2"}, capture_output=True, text=True, check=False,
        timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    output = done.stdout
    result = json.loads([line for line in output.splitlines() if line.startswith("{")][-1])
    assert result["equal"]
    assert result["cached"][4] == 128  # the second time, the first block of the long prompt

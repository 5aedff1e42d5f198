"""An environment with vLLM, vllm-ascend and ascend_graph, from PyPI: ``python environment.py DIRECTORY [--tree TREE]``.

The wheels of vllm-ascend, torch_npu and Triton-Ascend are installed as they are published. vLLM is built for no device
(``VLLM_TARGET_DEVICE=empty``), as vllm-ascend's own installation guide has it. What they require is installed, but for libraries
of CUDA. A step that was taken is not taken again.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]

#: The newest vllm-ascend whose requirements PyPI has, and those.
VLLM, VLLM_ASCEND, TRITON_ASCEND = "0.18.0", "0.18.0", "3.2.0"
TORCH, TORCHVISION, TORCH_NPU = "2.9.0", "0.24.0", "2.9.0"

#: Requirements of the two that are for CUDA, for more than one machine, or installed by a step of their own.
LEFT_OUT = re.compile(
    r"(torch|torchvision|torchaudio|torchcodec|torch-npu|triton|triton-ascend|nvidia|cuda|flashinfer|xformers|quack|tilelang"
    r"|memfabric|memcache|arctic-inference|fastsafetensors|runai|nixl|opencv|ray|vllm)\b"
)


def requirements(metadata: str) -> list[str]:
    """Return the requirements in a wheel's METADATA, without extras and ``LEFT_OUT``."""
    lines = re.findall(r"(?m)^Requires-Dist: (.+)$", metadata)
    return [line for line in lines if "extra ==" not in line and not LEFT_OUT.match(line.lower().replace("_", "-"))]


class Environment:
    """A virtual environment and what was installed into it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = directory / "bin/python"

    @property
    def site(self) -> Path:
        """The directory of installed packages."""
        return next(self.directory.glob("lib/python*/site-packages"))

    def pip(self, *arguments: str | Path, **variables: str) -> None:
        """Run pip with a virtual environment's programs on PATH."""
        path = f"{self.directory / 'bin'}:{os.environ['PATH']}"
        command = [self.python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
        subprocess.run(command, check=True, env={**os.environ, "PATH": path, **variables})

    def metadata(self, name: str) -> str:
        """Return the METADATA of an installed package."""
        return next(self.site.glob(f"{name}-*.dist-info/METADATA")).read_text()

    def step(self, name: str, function: Callable[[Environment], None]) -> None:
        """Take a step, unless it was taken before."""
        done = self.directory / f"done-{name}"
        if not done.exists():
            print(f"{name} …", flush=True)
            function(self)
            done.touch()


def install_torch(environment: Environment) -> None:
    """Install PyTorch and torchvision for the CPU; where pip offers only those for CUDA, take CUDA's libraries out of them."""
    sys.path.insert(0, str(TREE))
    from benchmarks._torch_without_cuda import remove_cuda

    wheels = environment.directory / "wheels"
    for name, version in (("torch", TORCH), ("torchvision", TORCHVISION)):
        try:
            environment.pip("download", "--no-deps", "-d", wheels, f"{name}=={version}+cpu")
        except subprocess.CalledProcessError:
            environment.pip("download", "--no-deps", "-d", wheels, f"{name}=={version}")
        with zipfile.ZipFile(next(wheels.glob(f"{name}-*.whl"))) as archive:
            archive.extractall(environment.site)
    shutil.rmtree(wheels)
    for program in (environment.site / "torch/bin").glob("*"):
        program.chmod(0o755)
    remove_cuda(environment.site)
    environment.pip("install", *requirements(environment.metadata("torch")))
    environment.pip("install", "--no-deps", f"torch_npu=={TORCH_NPU}")


def install_vllm(environment: Environment) -> None:
    """Build vLLM for no device, and install what it requires."""
    environment.pip("install", "setuptools>=77,<81", "setuptools-scm>=8", "wheel", "packaging", "jinja2", "cmake", "ninja",
                    "setuptools-rust", "numpy", "pyyaml")  # fmt: skip
    # Without the version's suffix for such a build (+empty), which pip takes for another version than it asked for.
    environment.pip("install", "--no-deps", "--no-binary", "vllm", "--no-build-isolation", f"vllm=={VLLM}",
                    VLLM_TARGET_DEVICE="empty", VLLM_VERSION_OVERRIDE=VLLM, TORCH_DEVICE_BACKEND_AUTOLOAD="0")  # fmt: skip
    environment.pip("install", *requirements(environment.metadata("vllm")))


def install_vllm_ascend(environment: Environment) -> None:
    """Install the published wheels of vllm-ascend and Triton-Ascend, and what the first requires."""
    environment.pip("install", "--no-deps", "--only-binary", ":all:", f"vllm-ascend=={VLLM_ASCEND}")
    environment.pip("install", *requirements(environment.metadata("vllm_ascend")))
    environment.pip("uninstall", "-y", "triton")  # Triton-Ascend is in its place, under the same name
    environment.pip("install", "--no-deps", f"triton-ascend=={TRITON_ASCEND}")


def main() -> None:
    """Make the environment in the directory of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tree", type=Path, default=TREE, help="ascend_graph's tree, installed in place")
    arguments = parser.parse_args()
    environment = Environment(arguments.directory.resolve())
    if not environment.python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment.directory], check=True)
    environment.step("torch", install_torch)
    environment.step("ascend-graph", lambda one: one.pip("install", "--no-deps", "-e", arguments.tree))
    environment.step("vllm", install_vllm)
    environment.step("vllm-ascend", install_vllm_ascend)
    print(f"{environment.python} -m ascend_graph.host serve.py")


if __name__ == "__main__":
    main()

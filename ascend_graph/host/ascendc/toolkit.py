"""The Ascend C part of the host toolkit, laid out as CANN lays it out.

Authors' build files find headers, CMake modules and the compiler below ``ASCEND_HOME_PATH``; ``install`` puts ours
there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ascend_graph.errors import AscendGraphError

RUNTIME = "libascendc_runtime.so"

# Authors link these for tiling functions, which are headers alone here; a host runtime may bring its own.
_HEADERS_ONLY = ("libtiling_api.so", "libplatform.so", "libregister.so")


class ToolkitError(AscendGraphError):
    """The toolkit's sources are missing, or its runtime library does not compile."""


def sources() -> Path:
    """The directory with the headers, CMake modules and runtime sources: in the package, or in a checkout beside it.

    Raises ToolkitError when there is neither.
    """
    package = Path(__file__).resolve().parents[2]
    candidates = (package / "host/toolkit/ascendc", package.parent / "csrc/ascendc")
    for candidate in candidates:
        if (candidate / "include/kernel_operator.h").is_file():
            return candidate
    raise ToolkitError(f"the Ascend C headers are missing: neither {candidates[0]} nor {candidates[1]} has them")


def build_runtime(target: Path, *, extra: tuple[str, ...] = ()) -> None:
    """Compiles the runtime library of kernels to ``target`` with g++ (or ``$ASCENDC_HOST_CXX``).

    ``extra`` are further sources or options: the host runtime's library to link, or a stand-in for it.
    Raises ToolkitError with the compiler's output when that fails.
    """
    root = sources()
    command = [
        os.environ.get("ASCENDC_HOST_CXX", "g++"),
        *("-std=c++17", "-O2", "-fPIC", "-shared", "-pthread", f"-I{root / 'include'}"),
        *(str(source) for source in sorted((root / "runtime").glob("*.cpp"))),
        *extra,
        *("-o", str(target)),
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolkitError(f"{RUNTIME} does not compile:\n{result.stderr}")


def install(home: Path, *, runtime: Path | None = None) -> None:
    """Lays out the Ascend C toolkit in ``home``, the directory that ``ASCEND_HOME_PATH`` will name.

    ``runtime`` is a built runtime library to link there; without it one is compiled unless ``home`` has one. What
    exists is kept when it is right and replaced when it is not, so the call may be repeated.
    """
    root = sources()
    headers = root / "include"
    cmake = root / "cmake"
    for directory in (
        "bin",
        "include",
        "lib64/cmake/ASC",
        "compiler/tikcpp",
        "tools/tikcpp",
        "compiler/ccec_compiler/bin",
    ):
        (home / directory).mkdir(parents=True, exist_ok=True)
    _link(home / "compiler/tikcpp/tikcfw", headers)
    _link(home / "include/ascendc", headers)
    for entry in headers.iterdir():
        _link(home / "include" / entry.name, entry)
    # CMake takes the path it was given: both stay three levels below the home.
    _link(home / "compiler/tikcpp/ascendc_kernel_cmake", cmake)
    _link(home / "tools/tikcpp/ascendc_kernel_cmake", cmake)
    shutil.copyfile(cmake / "asc-config.cmake", home / "lib64/cmake/ASC/asc-config.cmake")
    _write_program(home / "bin/bisheng")
    _link(home / "compiler/ccec_compiler/bin/bisheng", home / "bin/bisheng")
    _write_environment(home)
    library = home / "lib64" / RUNTIME
    for name in _HEADERS_ONLY:
        if not (home / "lib64" / name).exists():
            (home / "lib64" / name).unlink(missing_ok=True)
            (home / "lib64" / name).symlink_to(RUNTIME)
    if runtime is not None:
        _link(library, runtime)
    elif not library.exists():
        build_runtime(library)


def _link(path: Path, target: Path) -> None:
    target = target.resolve()
    if path.is_symlink() and path.resolve() == target:
        return
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        raise ToolkitError(
            f"{path} is a directory that this toolkit did not make; give install() a directory of its own"
        )
    path.symlink_to(target)


def _write_program(path: Path) -> None:
    # The driver runs with the Python that has this package, whatever `python3` the author's scripts find.
    package_parent = Path(__file__).resolve().parents[3]
    path.write_text(
        f"#!{sys.executable}\n"
        '"""The compiler of the host toolkit."""\n'
        "import os, sys\n"
        f"sys.path.insert(0, {str(package_parent)!r})\n"
        f"os.environ.setdefault('ASCENDC_HOST_HOME', {str(path.absolute().parent.parent)!r})\n"
        "from ascend_graph.host.ascendc.driver import main\n"
        "main()\n",
        encoding="utf-8",
    )
    path.chmod(0o755)


def _write_environment(home: Path) -> None:
    text = f"""\
# Ascend C on the host: source this file as CANN's set_env.sh is sourced.
export ASCEND_HOME_PATH={home}
export ASCEND_TOOLKIT_HOME={home}
export ASCEND_CANN_PACKAGE_PATH={home}
export PATH={home}/bin:$PATH
export CMAKE_PREFIX_PATH={home}:{home}/lib64/cmake${{CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}}
export LD_LIBRARY_PATH={home}/lib64${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
"""
    for name in ("set_env.sh", "bin/setenv.bash"):
        (home / name).write_text(text, encoding="utf-8")

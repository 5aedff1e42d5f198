"""The Ascend C toolkit with a runtime that launches at once: kernels run without streams, and without PyTorch."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from ascend_graph.environment import toolkit_directory

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "csrc/ascendc"
HOST = HERE.parents[1] / "csrc/host"
#: What the runtime library is made of: the product's, with a seam of its own in place of libascendcl's.
LIBRARY = (*sorted((SOURCES / "runtime").glob("*.cpp")), *sorted((HOST / "acl/guard").glob("*")), HERE / "seam.cpp")
RUNTIME = "libascendc_runtime.so"
#: How kernels name it when they are loaded, for the process may have the product's under the other name.
LOADED_AS = "libascendc_standalone.so"


def assemble(home: Path) -> Path:
    """Make the toolkit in ``home``, unless it is there: the runtime library is returned. Of several processes one
    makes it."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _assemble(home)


def _assemble(home: Path) -> Path:
    installed = toolkit_directory()
    library = home / "lib64" / RUNTIME
    if not library.exists():
        shutil.rmtree(home, ignore_errors=True)
        library.parent.mkdir(parents=True)
        partial = library.with_suffix(".partial")
        includes = [SOURCES / "include", HOST, HOST / "include", installed / "include"]
        # Bound to its own seam, also where the process has loaded the product's libascendcl.so before.
        flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-pthread", "-Wl,-Bsymbolic", f"-Wl,-soname,{LOADED_AS}"]
        flags += [f"-I{path}" for path in includes]
        subprocess.run(
            ["g++", *flags, *(str(p) for p in LIBRARY if p.suffix == ".cpp"), "-o", str(partial)],
            check=True,
            timeout=900,
        )
        library.with_name(LOADED_AS).symlink_to(RUNTIME)
        partial.rename(library)
    # Everything else is the installed toolkit's; the compiler finds the runtime from where it lies itself.
    shutil.copytree(installed / "bin", home / "bin", dirs_exist_ok=True)
    for entry in (*installed.iterdir(), *(installed / "lib64").iterdir()):
        link = home / entry.relative_to(installed)
        if link.name not in ("bin", "lib64", RUNTIME, "libascendcl.so") and not link.is_symlink():
            link.symlink_to(entry)
    return library

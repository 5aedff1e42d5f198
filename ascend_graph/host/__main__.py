"""Launcher ``python -m ascend_graph.host``: it runs a script, a module or code on the host runtime."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NoReturn

from ascend_graph.compilation.processes import ended_by_signals
from ascend_graph.environment import (
    BRIDGE_VARIABLE,
    OVERRUNS_VARIABLE,
    PIPES_VARIABLE,
    PROCESSOR_VARIABLE,
    STRICT_VARIABLE,
    HostRuntimeError,
    is_active,
    real_cann,
    toolkit_directory,
)
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import architecture, processor_with
from ascend_graph.host.toolkit import host_environment, host_path
from ascend_graph.versions import check

#: Usage, then what the options do; a docstring is not there with -OO.
_HELP = """    python -m ascend_graph.host [--force] [--strict] [--streams] [--pipes] [--overruns] [--opp DIR]…
                                [--npu-arch ARCH] [--quiet] script.py args…
    python -m ascend_graph.host [options] script.sh args…
    python -m ascend_graph.host [options] ./program args…    (or one that is found on PATH: cmake, bash)
    python -m ascend_graph.host [options] -m module args…
    python -m ascend_graph.host [options] -c code args…

--strict lets only kernels and copies access device memory; --streams rejects work that does not wait for the stream
whose results it reads or overwrites; --pipes ends kernels whose pipes do not wait for one another
(docs/host-runtime.md); --overruns lets operations go on beyond their buffer, as on a device (docs/ascendc/rules.md). --npu-arch dav-3510 emulates an Ascend950 instead of an
Atlas A2 (docs/ascendc.md).

The process is replaced by a Python that finds the host runtime's libraries under CANN's names; children inherit them.
Options end at the script, ``-m`` or ``-c``; whatever follows belongs to it.
"""
_USAGE = _HELP.split("\n\n", maxsplit=1)[0].rstrip()


def _parse(arguments: list[str]) -> tuple[set[str], list[str], str | None, list[str]]:
    """Parse arguments into flags, operator packages, the architecture (None if not given) and the command."""
    flags: set[str] = set()
    packages: list[str] = []
    npu_arch = None
    rest = list(arguments)
    while rest:
        if rest[0] in ("--force", "--quiet", "--strict", "--streams", "--pipes", "--overruns"):
            flags.add(rest[0])
        elif rest[0] == "--opp" and len(rest) > 1:
            packages.append(rest.pop(1))
        elif rest[0] == "--npu-arch" and len(rest) > 1:
            npu_arch = rest.pop(1)
        elif rest[0] in ("-h", "--help"):
            print(_HELP)
            raise SystemExit(0)
        elif rest[0] in ("-m", "-c") and len(rest) > 1:
            return flags, packages, npu_arch, rest
        elif rest[0].startswith("-"):
            raise HostRuntimeError(
                f"unknown or incomplete option {rest[0]!r}; correct it, or write it after the script, if it is the script's:\n{_USAGE}"
            )
        else:
            return flags, packages, npu_arch, rest
        rest.pop(0)
    raise HostRuntimeError(f"nothing to run; give a script, a program, -m MODULE or -c CODE:\n{_USAGE}")


def _package_directory(directory: str) -> str:
    path = Path(directory).resolve()
    if not (path / "op_api" / "lib" / "libcust_opapi.so").exists():
        raise HostRuntimeError(
            f"--opp {directory}: no operator package there: expected {path}/op_api/lib/libcust_opapi.so; build one with "
            f"ascend-graph build PROJECT -o {shlex.quote(str(directory))}, or from Python kernels with ascend_graph.host.build_operator_package"
        )
    return str(path)


def _check_command(command: list[str]) -> None:
    """Reject a command that cannot run, before anything is compiled for it."""
    if command[0] == "-m":
        name = command[1].partition(".")[0]
        # The program has the working directory on its path; the command ascend-graph does not.
        if importlib.util.find_spec(name) is None and PathFinder.find_spec(name, [str(Path.cwd())]) is None:
            raise HostRuntimeError(f"module {command[1]!r} was not found; install it, or correct its name after -m")
    elif command[0] != "-c" and not Path(command[0]).exists() and _on_path(command[0], host_path(os.environ)) is None:
        raise HostRuntimeError(
            f"file {command[0]!r} was not found, and PATH has no program of that name; correct its path"
        )


def launch(arguments: list[str]) -> NoReturn:
    """Replace this process by ``python arguments…`` on the host runtime.

    Raises:
        HostRuntimeError: unusable arguments, or a real CANN would be shadowed.
        BuildError: the bridge to PyTorch does not compile.
    """
    flags, packages, npu_arch, command = _parse(arguments)
    quiet = "--quiet" in flags
    if {"--strict", "--streams"} <= flags:
        raise HostRuntimeError(
            "--strict and --streams: start the program once with each; the check of streams follows torch_npu's allocator, which "
            "--strict leaves out"
        )
    _check_command(command)
    directories = list(map(_package_directory, packages))
    device = {}
    if npu_arch is not None:
        device[PROCESSOR_VARIABLE] = processor_with(architecture(npu_arch), os.environ)
    shadowed = real_cann(os.environ)
    if shadowed and "--force" not in flags:
        raise HostRuntimeError(
            f"a CANN is installed here ({shadowed}); the host runtime would shadow it. Run python directly to use the NPU, or "
            "pass --force to use the host runtime all the same"
        )
    bridge = None
    if importlib.util.find_spec("torch") and importlib.util.find_spec("torch_npu"):
        from ascend_graph.host.bridge import bridge_library

        remark = check(os.environ)
        if remark and not quiet:
            print(f"ascend_graph: {remark}", file=sys.stderr)
        with ended_by_signals():
            bridge = _inherited_bridge() or bridge_library().build()
    strict = {STRICT_VARIABLE: "1"} if "--strict" in flags else {}
    # torch_npu's own check, which it imports with itself where the variable is set; 1 asks for record_stream too.
    streams = {"TORCH_NPU_SANITIZER": "1"} if "--streams" in flags else {}
    pipes = {PIPES_VARIABLE: "1"} if "--pipes" in flags else {}
    overruns = {OVERRUNS_VARIABLE: "1"} if "--overruns" in flags else {}
    known = filter(None, os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":"))
    selected = {"ASCEND_CUSTOM_OPP_PATH": ":".join([*directories, *known])} if packages else {}
    environment = host_environment(
        {**os.environ, **strict, **streams, **pipes, **overruns, **selected, **device}, bridge
    )
    if not quiet:
        other = "".join(f" in place of an {name}" for name in device.values())
        print(
            f"ascend_graph: host runtime active ({toolkit_directory()}); this is a CPU, not an NPU{other}",
            file=sys.stderr,
        )
        sys.stderr.flush()
    if command[0].endswith(".sh"):  # an author's build or run script
        shell = shutil.which("bash", path=environment["PATH"]) or "/bin/sh"
        os.execve(shell, [shell, *command], environment)
    if not command[0].startswith("-") and (program := _on_path(command[0], environment["PATH"])):
        os.execve(program, command, environment)
    if _is_program(Path(command[0])):
        os.execve(command[0], command, environment)
    os.execve(sys.executable, [sys.executable, *command], environment)


def _inherited_bridge() -> Path | None:
    """Return the bridge of the parent process on the host runtime if it was built for the same Python, else None."""
    bridge = os.environ.get(BRIDGE_VARIABLE, "")
    same = is_active() and os.environ.get("ASCEND_GRAPH_PYTHON") == sys.executable
    return Path(bridge) if same and bridge and Path(bridge).is_file() else None


def _on_path(name: str, path: str) -> str | None:
    """Return the program that a shell with this PATH starts for a bare name; None if a script has the name.

    The PATH is that of the process to be started: some programs, such as CMake, find their own files through it.
    """
    is_script = Path(name).is_file() or (Path(name) / "__main__.py").is_file()
    return None if os.sep in name or is_script else shutil.which(name, path=path)


def _is_program(path: Path) -> bool:
    """Return whether the file is an executable binary (ELF), which runs without an interpreter."""
    if not path.is_file() or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def main() -> NoReturn:
    """Run ``python -m ascend_graph.host`` on this process's arguments."""
    try:
        launch(sys.argv[1:])
    except AscendGraphError as error:
        print(f"ascend_graph.host: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()

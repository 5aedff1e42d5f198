"""Checks of environment variables with wrong names or values."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ascend_graph.compilation.toolchain import jobs, options_of
from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.known_variables import KNOWN, nearly
from ascend_graph.environment import (
    ACTIVE_VARIABLE,
    AUTHOR_SHAPES_VARIABLE,
    BRIDGE_VARIABLE,
    OVERRUNS_VARIABLE,
    PIPES_VARIABLE,
    PROCESSOR_VARIABLE,
    STRICT_VARIABLE,
    TIMEOUT_VARIABLE,
    TRITON_VARIABLE,
    is_strict,
    kernel_timeout,
    processor,
    toolkit_directory,
)
from ascend_graph.errors import AscendGraphError
from ascend_graph.packages.autoload import AUTOLOAD_VARIABLE
from ascend_graph.versions import UNTESTED_VARIABLE

#: This package's variables; any other with the same prefix is misspelled.
OWN = (
    AUTOLOAD_VARIABLE,
    "ASCEND_GRAPH_CACHE",
    "ASCEND_GRAPH_CHECK_EFFECTS",
    "ASCEND_GRAPH_COMPLETE",
    ACTIVE_VARIABLE,
    AUTHOR_SHAPES_VARIABLE,
    BRIDGE_VARIABLE,
    "ASCEND_GRAPH_HOST_DEVICES",
    "ASCEND_GRAPH_HOST_MEMORY",
    "ASCEND_GRAPH_KERNEL_IN_PLACE",
    OVERRUNS_VARIABLE,
    PIPES_VARIABLE,
    "ASCEND_GRAPH_KERNEL_THREADS",
    PROCESSOR_VARIABLE,
    TIMEOUT_VARIABLE,
    "ASCEND_GRAPH_PYTHON",
    "ASCEND_GRAPH_SANITIZE",
    STRICT_VARIABLE,
    TRITON_VARIABLE,
    UNTESTED_VARIABLE,
)
_DIRECTORIES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CANN_PACKAGE_PATH")
#: Values that are taken; others count as unset.
_CHOICES = {
    "TASK_QUEUE_ENABLE": "012",
    "ASCEND_LAUNCH_BLOCKING": "01",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "01",
    AUTOLOAD_VARIABLE: "01",
    OVERRUNS_VARIABLE: "01",
    PIPES_VARIABLE: "01",
}
_NUMBERS = {"ASCEND_GRAPH_HOST_DEVICES": "a number of devices", "ASCEND_GRAPH_HOST_MEMORY": "a number of bytes"}


def variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding about each variable with a wrong value, or that no known program reads."""
    yield from _misspelt(environment)
    for name in _DIRECTORIES:
        value = environment.get(name, "")
        if value and not Path(value).is_dir():
            yield Finding(name, f"{value} does not exist", True, f"unset {name}  # then source CANN's set_env.sh")
    for name, choices in _CHOICES.items():
        value = environment.get(name, "")
        if value and (len(value) > 1 or value not in choices):
            text = f"{value!r} is not one of {', '.join(choices)}"
            yield Finding(name, text, True, f"export {name}={choices[-1]}")
    for name, what in _NUMBERS.items():
        value = environment.get(name, "")
        if value and (not value.isdecimal() or int(value) == 0):
            yield Finding(name, f"{value!r} is not {what}: it is taken as not set", True, f"unset {name}")
    yield from _refused(TIMEOUT_VARIABLE, lambda: kernel_timeout(environment))
    yield from _refused(PROCESSOR_VARIABLE, lambda: processor(environment))
    yield from _refused(STRICT_VARIABLE, lambda: is_strict(environment))
    yield from _refused("MAX_JOBS", jobs)
    for name in ("CXXFLAGS", "LDFLAGS"):
        yield from _refused(name, lambda name=name: options_of(name))  # type: ignore[misc]
    yield from _preloaded(environment)
    yield from _devices(environment)
    yield from _cann(environment)
    yield from _slow(environment)


def _misspelt(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding about each unknown variable whose name is close to a known one, or has this package's prefix."""
    for name, value in environment.items():
        if name in OWN or name in KNOWN:
            continue
        if name.startswith("ASCEND_GRAPH_"):
            meant = next(iter(difflib.get_close_matches(name, OWN, 1)), None)
            text = f"is not a variable of ascend_graph{f'; {meant} is' if meant else ''}"
        else:
            meant = nearly(name, {*OWN, *KNOWN})
            text = f"is read by nothing that is known here; {meant} is"
            if meant is None:
                continue
        export = f"; export {meant}={shlex.quote(value)}" if meant and meant not in environment else ""
        yield Finding(name, text, True, f"unset {name}{export}")


def _refused(name: str, read: Callable[[], object]) -> Iterator[Finding]:
    try:
        read()
    except AscendGraphError as error:
        yield Finding(name, str(error), True, f"unset {name}")


def _preloaded(environment: Mapping[str, str]) -> Iterator[Finding]:
    for path in re.split(r"[ :]+", environment.get("LD_PRELOAD", "")):
        if "/" in path and not Path(path).exists():
            yield Finding("LD_PRELOAD", f"{path} does not exist", True, "unset LD_PRELOAD")


def _devices(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about the list of devices that a process may see."""
    name = "ASCEND_RT_VISIBLE_DEVICES"
    value = environment.get(name)
    if value is None:
        return
    if not re.fullmatch(r"\d+(,\d+)*", value):
        given = ",".join(map(str, sorted({*map(int, re.findall(r"\d+", value))}))) or "0"
        text = f"{value!r} is not a list of numbers without spaces such as 0,1: what comes after the first other character is not read"
        yield Finding(name, text, True, f"export {name}={given}")
        return
    numbers = [int(text) for text in value.split(",")]
    there = sorted(
        int(found[1]) for path in Path("/dev").glob("davinci*") if (found := re.fullmatch(r"davinci(\d+)", path.name))
    )
    missing = [number for number in numbers if there and number not in there]
    ascending = sorted({*numbers} - {*missing}) or there[:1]
    if numbers != ascending:
        why = (
            f"/dev/davinci{missing[0]} does not exist"
            if missing
            else "a device is named twice, and no device is visible"
            if len({*numbers}) < len(numbers)
            else "the numbers do not ascend, and no device is visible"
        )
        yield Finding(name, f"{value}: {why}", True, f"export {name}={','.join(map(str, ascending))}")


def _cann(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about variables that name different installations of CANN."""
    homes = {
        name: Path(environment[name]).resolve()
        for name in _DIRECTORIES[:2]
        if Path(environment.get(name) or "/nowhere").is_dir()
    }
    if len({*homes.values()}) > 1:
        first, second = homes.items()
        text = f"{first[0]} is {first[1]}, and {second[0]} is {second[1]}: two installations of CANN"
        yield Finding("CANN", text, True, f"source {first[1]}/set_env.sh  # in a new shell")
    home = next(iter(homes.values()), None)
    opp = environment.get("ASCEND_OPP_PATH", "")
    if home is not None and opp and Path(opp).is_dir() and not Path(opp).resolve().is_relative_to(home):
        real = (home / "opp").resolve()
        if real != Path(opp).resolve():
            text = f"{opp} is not of the CANN in {home}: operators and runtime are of two installations"
            yield Finding("ASCEND_OPP_PATH", text, True, f"export ASCEND_OPP_PATH={home / 'opp'}")
    libraries = [
        entry
        for entry in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        if entry and (Path(entry) / "libascendcl.so").exists()
    ]
    different = list(dict.fromkeys(Path(entry).resolve() for entry in libraries))
    if home is not None and (home / "lib64/libascendcl.so").exists() and not libraries:
        text = f"has no directory with libascendcl.so, and CANN is in {home}: torch_npu does not load"
        yield Finding("LD_LIBRARY_PATH", text, True, f"source {shlex.quote(f'{home}/set_env.sh')}")
    elif home is not None and different and not different[0].is_relative_to(home):
        text = f"{libraries[0]} comes first, and CANN is selected in {home}"
        yield Finding("LD_LIBRARY_PATH", text, True, f"source {shlex.quote(f'{home}/set_env.sh')}  # in a new shell")
    host = toolkit_directory().resolve()
    others = [path for path in different if not path.is_relative_to(host)]
    if others and len(others) < len(different):
        text = f"has the host runtime's libraries and those of CANN in {others[0]}"
        yield Finding("LD_LIBRARY_PATH", text, True, "start in a new shell: ascend-graph run sets what it needs itself")


def _slow(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield remarks about settings that are only for debugging or have notable effects."""
    if environment.get("ASCEND_LAUNCH_BLOCKING") == "1":
        text = "1: each operator is waited for, which is slow; for debugging alone"
        yield Finding("ASCEND_LAUNCH_BLOCKING", text, fix="unset ASCEND_LAUNCH_BLOCKING")
    if environment.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0":
        text = "0: import torch does not import torch_npu; a program that does not do so itself has no npu device"
        yield Finding("TORCH_DEVICE_BACKEND_AUTOLOAD", text, fix="unset TORCH_DEVICE_BACKEND_AUTOLOAD")

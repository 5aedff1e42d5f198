"""Headers of the kernel API: each has the guard of its place, is reached, and compiles on its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory
from ascend_graph.processors import KERNEL_ARCHITECTURES

from .standalone import SOURCES

INCLUDE = SOURCES / "include"
HEADERS = sorted(path.relative_to(INCLUDE) for path in (INCLUDE / "ascendc_host").rglob("*.h"))
#: Chapters of CANN's documentation of the API, and what they share.
CHAPTERS = {"basic_api", "adv_api", "reg_compute", "simt_api", "c_api", "utils", "internal"}


def included(path: Path) -> set[Path]:
    """Return the headers of ascendc_host that a header names."""
    return {Path(name) for name in re.findall(r'#include "(ascendc_host/[^"]+)"', path.read_text())}


def test_every_header_is_in_a_chapter() -> None:
    assert {header.parts[1] for header in HEADERS} == CHAPTERS
    assert all(len(header.parts) == (4 if header.parts[1] == "adv_api" else 3) for header in HEADERS)


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_a_guard_is_named_after_the_place_of_its_header(header: Path) -> None:
    guard = re.sub(r"\W", "_", str(header)).upper()
    assert f"#ifndef {guard}\n#define {guard}\n" in (INCLUDE / header).read_text()


def test_every_header_is_included() -> None:
    forwarded = (SOURCES / "CMakeLists.txt").read_text()
    reached = {Path(name) for name in re.findall(r"forward\((ascendc_host/[\w/.]+)", forwarded)}
    for path in [
        INCLUDE / "kernel_operator.h",
        *(INCLUDE / header for header in HEADERS),
        *INCLUDE.glob("tiling/**/*.h"),
    ]:
        reached |= included(path)
    assert set(HEADERS) - reached == set()


@pytest.mark.slow
@pytest.mark.parametrize("architecture", KERNEL_ARCHITECTURES)
@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_a_header_compiles_on_its_own(header: Path, architecture: str) -> None:
    if header.name == "simt_api.h" and architecture != "dav-3510":
        pytest.skip("threads are of dav-3510")
    include = toolkit_directory() / "include"
    before = [f"ascendc_host/internal/{name}.h" for name in ("qualifiers", "runtime")]
    options = ["-std=gnu++17", f"-D__NPU_ARCH__={architecture.removeprefix('dav-')}", f"-I{include}"]
    options += [part for name in before for part in ("-include", name)]
    done = subprocess.run(
        ["g++", "-fsyntax-only", "-x", "c++", *options, include / header], text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr

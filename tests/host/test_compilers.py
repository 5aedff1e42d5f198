"""Other compilers than the machine's own: the oldest and the newest of each kind build the libraries, and kernels run
on them.

And what is said of a machine that nothing can be built on.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory

from . import other_compilers
from .runtime.test_acl_programs import PROGRAM

KINDS = {"g++": range(9, 20), "clang++": range(14, 30)}


def others() -> list[str]:
    """The oldest and the newest compiler of each kind, without the one that built what is installed."""
    found = []
    for kind, majors in KINDS.items():
        present = [f"{kind}-{major}" for major in majors if shutil.which(f"{kind}-{major}")]
        found += dict.fromkeys([*present[:1], *present[-1:]])
    own = os.path.realpath(shutil.which("g++") or "")
    return [name for name in found if os.path.realpath(shutil.which(name) or "") != own]


@pytest.mark.slow
@pytest.mark.skipif(not others(), reason="no compiler but the machine's own (Debian: apt-get install g++-11 clang-14)")
@pytest.mark.parametrize("compiler", others())
def test_the_libraries_and_kernels(tmp_path: Path, compiler: str) -> None:
    toolkit = other_compilers.build_toolkit(tmp_path, compiler)
    assert other_compilers.run(toolkit, tmp_path, compiler, PROGRAM, "--flag") == "ok\n"
    other_compilers.build_kernel(toolkit, tmp_path, compiler)
    assert other_compilers.run(toolkit, tmp_path, compiler, other_compilers.KERNELS, libraries=("add",)) == "ok\n"
    # A kernel of one compiler on the runtime that another built, as it is with an installed wheel.
    assert (
        other_compilers.run(toolkit_directory(), tmp_path, compiler, other_compilers.KERNELS, libraries=("add",))
        == "ok\n"
    )


def test_options_of_the_environment_reach_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CMake reads ``CXX``, ``CXXFLAGS`` and ``LDFLAGS`` for pip: each file is compiled with them, and each
    library linked."""
    compiler = tmp_path / "chosen-g++"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("CXXFLAGS", "-DFROM_THE_ENVIRONMENT=1")
    monkeypatch.setenv("LDFLAGS", "-Wl,--hash-style=both")
    given = ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DPython_EXECUTABLE={sys.executable}", "-G", "Unix Makefiles"]
    made = tmp_path / "made"
    subprocess.run(
        [sys.executable, "-m", "cmake", "-S", other_compilers.TREE, "-B", made, *given], check=True, capture_output=True
    )
    commands = [entry["command"] for entry in json.loads((made / "compile_commands.json").read_text())]
    assert len(commands) > 30
    assert [c for c in commands if not c.startswith(f"{compiler} ") or " -DFROM_THE_ENVIRONMENT=1 " not in c] == []
    links = [path.read_text() for path in made.glob("CMakeFiles/*.dir/link.txt")]
    assert len(links) > 10
    assert [link for link in links if " -Wl,--hash-style=both " not in link] == []


HALVES = r"""
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include "ascendc_host/internal/half.h"
using ascendc_host::bits_as;
using Ours = ascendc_host::SoftwareHalf;
using Compilers = ascendc_host::Float16;
constexpr Ours kConstant = 1.5;
template <typename T>
bool same(T value) {
    if (std::isnan(value)) return std::isnan(float(Ours(value)));
    return bits_as<uint16_t>(Ours(value)) == bits_as<uint16_t>(static_cast<Compilers>(value));
}
int main() {
    long wrong = kConstant != 1.5f;
    for (uint32_t i = 0; i < 65536; ++i) {
        const float a = bits_as<Ours>(uint16_t(i)), b = bits_as<Compilers>(uint16_t(i));
        wrong += std::isnan(a) ? !std::isnan(b) : bits_as<uint32_t>(a) != bits_as<uint32_t>(b);
        // Every half, the middle to the next one, and the floats and doubles next to both.
        for (const float at : {b, (b + float(bits_as<Compilers>(uint16_t(i + 1)))) / 2})
            for (const float x : {at, std::nextafter(at, 1e9f), std::nextafter(at, -1e9f)}) {
                wrong += !same(x);
                for (const double y : {1e9, -1e9}) wrong += !same(std::nextafter(double(x), y));
            }
    }
    for (uint64_t i = 0; i < (1ull << 32); i += 99991) wrong += !same(bits_as<float>(uint32_t(i)));
    Ours sum = 1;
    sum += Ours(2) * 3 - 4;
    wrong += sum != 3 || int(sum) != 3 || !(Ours(1) < sum) || -sum != -3;
    std::printf("%ld\n", wrong);
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the compiler's own half is Linux's")
def test_the_half_of_compilers_that_have_none(tmp_path: Path) -> None:
    """Each of its values, and what is rounded to it, is bit for bit that of a compiler that has one."""
    (tmp_path / "halves.cpp").write_text(HALVES)
    command = [
        "g++",
        "-std=c++17",
        "-O1",
        f"-I{other_compilers.TREE}/csrc/ascendc/include",
        "halves.cpp",
        "-o",
        "halves",
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert subprocess.run([tmp_path / "halves"], capture_output=True, text=True, check=True).stdout == "0\n"


def configured(compiler: Path, *options: str) -> str:
    """What CMake says, in one line, before it refuses a compiler."""
    directory = compiler.parent
    compiler.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cmake",
            "-S",
            other_compilers.TREE,
            "-B",
            directory / "made",
            f"-DCMAKE_CXX_COMPILER={compiler}",
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return re.sub(r"\s+", " ", done.stderr)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="-m32 is x86_64's")
def test_no_system_of_32_bits(tmp_path: Path) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} -m32 "$@"\n')
    # Without a link, for which the machine may lack libraries of 32 bits.
    said = configured(compiler, "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY")
    assert "needs a 64-bit system, as torch_npu does: this compiler makes programs of 4-byte pointers" in said


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "features.h",
            (
                "ascend-graph's host runtime needs glibc, as torch_npu's wheels do: this C library (musl, "
                "perhaps) is another"
            ),
        ),
        ("filesystem", "lacks <filesystem> in C++17: set CXX to g++ 9 or newer, or clang++ 14 or newer"),
    ],
)
def test_what_nothing_can_be_built_on(tmp_path: Path, header: str, message: str) -> None:
    (tmp_path / header).write_text("#error none here\n" if header == "filesystem" else "")
    compiler = tmp_path / "g++"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} -I{tmp_path} "$@"\n')
    assert message in configured(compiler)

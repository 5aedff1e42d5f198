"""Build files that were written for another machine: CANN's other directories, its targets for kernels, and the ABI
of another torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.compilation import compiler
from ascend_graph.environment import toolkit_directory
from ascend_graph.processors import PROCESSORS

HOME = toolkit_directory()
KERNEL = """
#include "kernel_operator.h"
#include "scale.h"

extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, float factor, Sizes sizes)
{
    AscendC::GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x, sizes.length);
    out.SetGlobalBuffer((__gm__ float *)y, sizes.length);
    const uint32_t share = sizes.length / AscendC::GetBlockNum();
    for (uint32_t i = share * AscendC::GetBlockIdx(); i < share * (AscendC::GetBlockIdx() + 1); ++i) {
        out.SetValue(i, in.GetValue(i) * factor + sizes.offset);
    }
}
#ifndef ASCENDC_CPU_DEBUG
void scale_do(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, float factor, Sizes sizes)
{
    scale<<<blocks, nullptr, stream>>>(x, y, factor, sizes);
}
#endif
"""
SIZES = """
#pragma once
#include <cstdint>
struct Sizes { uint32_t length, offset; };
"""
PROGRAM = """
#include <cstdio>
#include "scale.h"
#ifdef ASCENDC_CPU_DEBUG
#include "tikicpulib.h"
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, float factor, Sizes sizes);
#else
#include "acl/acl.h"
extern void scale_do(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, float factor, Sizes sizes);
#endif

int main()
{
    const size_t bytes = 16 * sizeof(float);
#ifdef ASCENDC_CPU_DEBUG
    uint8_t *x = (uint8_t *)AscendC::GmAlloc(bytes);
    uint8_t *y = (uint8_t *)AscendC::GmAlloc(bytes);
#else
    void *x = nullptr, *y = nullptr;
    if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 2;
    if (aclrtMalloc(&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != 0
        || aclrtMalloc(&y, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 3;
#endif
    float host[16];
    for (int i = 0; i < 16; ++i) host[i] = (float)i;
#ifdef ASCENDC_CPU_DEBUG
    for (int i = 0; i < 16; ++i) ((float *)x)[i] = host[i];
    AscendC::SetKernelMode(KernelMode::AIV_MODE);
    ICPU_RUN_KF(scale, 4, x, y, 2.0f, Sizes{16, LENGTH_MORE});
    for (int i = 0; i < 16; ++i) host[i] = ((float *)y)[i];
    AscendC::GmFree(x);
    AscendC::GmFree(y);
#else
    if (aclrtMemcpy(x, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE) != 0) return 4;
    scale_do(4, nullptr, (uint8_t *)x, (uint8_t *)y, 2.0f, Sizes{16, LENGTH_MORE});
    if (aclrtSynchronizeStream(nullptr) != 0) return 5;
    if (aclrtMemcpy(host, bytes, y, bytes, ACL_MEMCPY_DEVICE_TO_HOST) != 0) return 6;
#endif
    std::printf("%g %g %g\\n", host[0], host[1], host[15]);
    return 0;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(scale)
set(RUN_MODE "npu" CACHE STRING "cpu/sim/npu")
set(SOC_VERSION "Ascend310P3" CACHE STRING "system on chip type")
if(RUN_MODE STREQUAL "cpu")
    find_package(tikicpulib REQUIRED)
    add_library(kernels_cpu SHARED scale.cpp)
    target_link_libraries(kernels_cpu PUBLIC tikicpulib::${SOC_VERSION})
    target_compile_options(kernels_cpu PRIVATE -g -O0 -std=c++17)
else()
    include(${ASCEND_CANN_PACKAGE_PATH}/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
    ascendc_library(kernels_${RUN_MODE} SHARED scale.cpp)
endif()
add_executable(demo main.cpp)
target_compile_options(demo PRIVATE -O0 -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=0 -Wall -Werror)
target_compile_definitions(demo PRIVATE LENGTH_MORE=1)
target_link_libraries(demo PRIVATE
    $<BUILD_INTERFACE:$<$<OR:$<STREQUAL:${RUN_MODE},npu>,$<STREQUAL:${RUN_MODE},sim>>:host_intf_pub>>
    $<BUILD_INTERFACE:$<$<STREQUAL:${RUN_MODE},cpu>:ascendcl>>
    kernels_${RUN_MODE})
"""


def on_host(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ASCEND_GRAPH_HOST_BRIDGE"}
    return subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", "--quiet", *map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def written(directory: Path, **files: str) -> Path:
    names = {"project": "CMakeLists.txt", "kernel": "scale.cpp", "sizes": "scale.h", "program": "main.cpp"}
    for name, text in files.items():
        (directory / names[name]).write_text(text)
    return directory


def configured(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    done = on_host("cmake", "-B", "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options, cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def built(directory: Path, *options: str) -> Path:
    configured(directory, *options)
    done = on_host("cmake", "--build", "build", cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory / "build"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("-DRUN_MODE=npu",), ("-DRUN_MODE=sim",), ("-DRUN_MODE=cpu", "-DSOC_VERSION=Ascend310P1")]
)
def test_a_project_runs_its_kernel_in_each_mode(tmp_path: Path, options: tuple[str, ...]) -> None:
    written(tmp_path, project=PROJECT, kernel=KERNEL, sizes=SIZES, program=PROGRAM)
    build = built(tmp_path, f"-DASCEND_CANN_PACKAGE_PATH={HOME}", *options)
    done = on_host(build / "demo", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 3 31\n"), done.stderr


@pytest.mark.slow
def test_a_fault_ends_a_program_for_cpu_debugging(tmp_path: Path) -> None:
    """The memory of GmAlloc has a size, and an access beyond it is a fault that names kernel and line."""
    beyond = KERNEL.replace("in.GetValue(i)", "in.GetValue(i + 4096)").replace("x, sizes.length", "x, 8192")
    written(tmp_path, project=PROJECT, kernel=beyond, sizes=SIZES, program=PROGRAM)
    done = on_host(built(tmp_path, "-DRUN_MODE=cpu") / "demo", cwd=tmp_path)
    assert done.returncode == 1
    assert "ICPU_RUN_KF" in done.stderr
    assert "scale" in done.stderr


@pytest.mark.slow
def test_kernels_of_cpu_debugging_have_code_for_each_kind_of_core(tmp_path: Path) -> None:
    """Where the kind of core is a constant, what a vector core runs is found by the kernel's launch function."""
    kernel = KERNEL.replace(
        "    AscendC::GlobalTensor<float> in, out;",
        "    constexpr int32_t kind = g_coreType;\n    if (kind != AscendC::AIV) return;\n"
        "    AscendC::GlobalTensor<float> in, out;",
    ).replace("GetBlockNum()", "GetBlockNum() / AscendC::GetSubBlockNum()")
    kernel = kernel.replace("constexpr int32_t kind = g_coreType;", "constexpr int32_t kind = Kind<>::value;").replace(
        'extern "C"',
        'template <int32_t core = g_coreType>\nstruct Kind { static constexpr int32_t value = core; };\nextern "C"',
    )
    written(tmp_path, project=PROJECT, kernel=kernel, sizes=SIZES, program=PROGRAM)
    done = on_host(built(tmp_path, "-DRUN_MODE=cpu") / "demo", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 3 31\n"), done.stderr


# ------------------------------------------------------------------------------------------------- CANN's directories

ACL_PROGRAM = """
#include "acl/acl.h"
#include "aclnn/acl_meta.h"
int main() { return aclInit(nullptr) || aclrtSetDevice(0) || aclrtResetDevice(0) || aclFinalize(); }
"""


@pytest.mark.parametrize(
    ("include", "library"),
    [
        ("runtime/include", "runtime/lib64"),
        ("{machine}/include", "{machine}/lib64"),
        ("{machine}/include", "{machine}/devlib"),
        ("compiler/include", "compiler/lib64"),
        ("acllib/include", "acllib/lib64/stub"),
        ("atc/include", "atc/lib64/stub"),
        ("fwkacllib/include", "fwkacllib/lib64"),
    ],
)
def test_headers_and_libraries_are_found_in_each_directory_of_a_toolkit(
    tmp_path: Path, include: str, library: str
) -> None:
    machine = f"{os.uname().machine}-linux"
    source = tmp_path / "main.cpp"
    source.write_text(ACL_PROGRAM)
    places = [f"-I{HOME}/{include.format(machine=machine)}", f"-L{HOME}/{library.format(machine=machine)}"]
    libraries = ["-Wl,--no-as-needed", "-lascendcl", "-lacl_op_compiler", "-lnnopbase", "-lruntime"]
    subprocess.run([*compiler(), "-O0", str(source), *places, *libraries, "-o", tmp_path / "demo"], check=True)
    done = on_host(tmp_path / "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_directories_of_libraries_do_not_disturb_the_loader(tmp_path: Path) -> None:
    """Scripts put them in front of LD_LIBRARY_PATH."""
    code = "import ctypes; ctypes.CDLL('libascendcl.so'); print('loaded')"
    places = ":".join(f"{HOME}/{place}" for place in ("runtime/lib64/stub", "runtime/lib64", "compiler/lib64"))
    done = on_host(
        "bash", "-c", f'LD_LIBRARY_PATH={places}:$LD_LIBRARY_PATH {sys.executable} -c "{code}"', cwd=tmp_path
    )
    assert done.stdout == "loaded\n", done.stderr


def test_a_processor_is_described(tmp_path: Path) -> None:
    """Scripts ask the runtime for its name, and CANN's files for the short one."""
    for name in PROCESSORS:
        text = (HOME / f"compiler/data/platform_config/{name}.ini").read_text()
        assert f"SoC_version={name}\n" in text
        assert "\nShort_SoC_version=Ascend" in text
    code = (
        "import ctypes; name = ctypes.create_string_buffer(64); "
        "print(ctypes.CDLL('libruntime.so').rtGetSocVersion(name, 64), name.value.decode())"
    )
    assert on_host("-c", code, cwd=tmp_path).stdout == "0 Ascend910B1\n"


OF_DEFAULT_PLACE = """
cmake_minimum_required(VERSION 3.5)
project(demo)
set(CANN "/usr/local/Ascend/ascend-toolkit/latest")
include_directories(${CANN}/runtime/include ${CANN}/atc/include ${CMAKE_CURRENT_SOURCE_DIR}/inc)
link_directories(${CANN}/acllib/lib64/stub/)
add_executable(demo main.cpp)
target_link_libraries(demo ascendcl nnopbase stdc++)
"""


@pytest.mark.skipif(Path("/usr/local/Ascend").exists(), reason="a CANN may be installed here")
def test_the_toolkit_stands_for_cann_at_its_default_place(tmp_path: Path) -> None:
    written(tmp_path, project=OF_DEFAULT_PLACE, program=ACL_PROGRAM)
    said = configured(tmp_path).stdout
    assert "target demo: the host toolkit stands for the CANN of INCLUDE_DIRECTORIES" in said
    commands = (tmp_path / "build/compile_commands.json").read_text()
    assert f"{HOME}/runtime/include" in commands
    assert f"{tmp_path}/inc" in commands
    done = on_host(built(tmp_path) / "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


# --------------------------------------------------------------------------------------------------- the ABI of torch

OF_ANOTHER_TORCH = """
cmake_minimum_required(VERSION 3.16)
project(extension)
{flags}
add_library(text STATIC main.cpp)
add_library(extension SHARED main.cpp)
add_library(apart SHARED main.cpp)
add_library(through SHARED main.cpp)
target_link_libraries(extension PRIVATE {torch})
target_link_libraries(through PRIVATE extension)
{options}
"""
TEXT = "#include <string>\nstd::string text(const std::string &given) { return given + given; }\n"


def _options(line: str) -> str:
    return "\n".join(line.format(target=target) for target in ("text", "extension", "apart", "through"))


@pytest.mark.parametrize(
    ("flags", "options", "torch"),
    [
        ("", _options("target_compile_options({target} PRIVATE -D_GLIBCXX_USE_CXX11_ABI=0)"), "torch_npu"),
        ("", _options("target_compile_definitions({target} PRIVATE _GLIBCXX_USE_CXX11_ABI=0)"), "c10 torch torch_cpu"),
        ('set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -D_GLIBCXX_USE_CXX11_ABI=0")', "", "/opt/lib/libtorch_python.so"),
        ("add_definitions(-D_GLIBCXX_USE_CXX11_ABI=0)", "", "-ltorch"),
    ],
)
def test_what_links_torch_is_compiled_with_its_abi(tmp_path: Path, flags: str, options: str, torch: str) -> None:
    """And is named with the line to change; what does not link torch stays as it is."""
    project = OF_ANOTHER_TORCH.format(flags=flags, options=options, torch=torch)
    said = configured(written(tmp_path, project=project, program=TEXT)).stderr
    line = 1 + next(n for n, text in enumerate(project.splitlines()) if "ABI" in text)
    for target in ("extension", "through"):
        assert f"target {target}: _GLIBCXX_USE_CXX11_ABI=0" in " ".join(said.split())
    assert f"{tmp_path}/CMakeLists.txt:{line}" in "".join(said.split())
    assert "target apart" not in said
    entries = json.loads((tmp_path / "build/compile_commands.json").read_text())
    mangled = {}
    for entry in entries:
        subprocess.run(entry["command"].split(), cwd=entry["directory"], check=True)
        symbols = subprocess.run(
            ["nm", entry["output"]], cwd=entry["directory"], capture_output=True, text=True, check=True
        )
        target = entry["output"].split("CMakeFiles/")[1].split(".dir")[0]
        mangled[target] = "__cxx11" in symbols.stdout
    assert mangled == {"text": False, "apart": False, "extension": True, "through": True}


def test_an_abi_that_is_that_of_torch_is_not_spoken_of(tmp_path: Path) -> None:
    options = _options("target_compile_definitions({target} PRIVATE _GLIBCXX_USE_CXX11_ABI=1)")
    project = OF_ANOTHER_TORCH.format(flags="", options=options, torch="torch_npu")
    said = configured(written(tmp_path, project=project, program=TEXT))
    assert "CXX11_ABI" not in said.stderr


# ------------------------------------------------------------------------------------------------------ CANN's programs


def test_the_model_compiler_says_that_there_is_none(tmp_path: Path) -> None:
    done = on_host("atc", "--singleop=add.json", "--output=models", cwd=tmp_path)
    assert done.returncode == 1
    assert "atc: the host runtime of ascend_graph does not compile models" in done.stderr


def test_nothing_is_said_of_targets_without_directories(tmp_path: Path) -> None:
    written(tmp_path, project=re.sub(r"(include|link)_directories.*", "", OF_DEFAULT_PLACE), program=ACL_PROGRAM)
    assert "stands for the CANN" not in configured(tmp_path).stdout


DEFAULT_PACKAGE_PATH = """
cmake_minimum_required(VERSION 3.16)
project(demo)
set(ASCEND_CANN_PACKAGE_PATH "/usr/local/Ascend/ascend-toolkit/latest" CACHE STRING "CANN")
include(${ASCEND_CANN_PACKAGE_PATH}/tools/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
add_executable(demo main.cpp)
"""


@pytest.mark.skipif(Path("/usr/local/Ascend").exists(), reason="a CANN may be installed here")
def test_the_toolkit_stands_for_a_default_path_of_cann(tmp_path: Path) -> None:
    written(tmp_path, project=DEFAULT_PACKAGE_PATH, program=ACL_PROGRAM)
    configured(tmp_path)

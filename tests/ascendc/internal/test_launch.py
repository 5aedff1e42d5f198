# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""Kernels compiled by the driver and launched in every form, over several blocks."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ascend_graph.environment import toolkit_directory

from ..conftest import Build, Toolkit, launch
from ..standalone import HERE

SIZE = 8 * 2048


@pytest.fixture(scope="module")
def add(build: Build) -> ctypes.CDLL:
    return build(HERE / "kernels/add.asc")


def _pair(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return (random.uniform(-100, 100, SIZE).astype(dtype), random.uniform(-100, 100, SIZE).astype(dtype))


@pytest.mark.parametrize("blocks", [1, 2, 3, 8, 16])
def test_launch_function(add: ctypes.CDLL, blocks: int) -> None:
    x, y = _pair(np.float16)
    length = SIZE // blocks // 128 * 128 * blocks
    z = np.zeros_like(x)
    assert launch(add, "add_half", blocks, x, y, z, length, 128) == 0
    np.testing.assert_array_equal(z[:length], (x + y)[:length])
    assert not z[length:].any()


@pytest.mark.parametrize(
    ("function", "dtype"), [("run_half", np.float16), ("run_float", np.float32), ("run_int", np.int32)]
)
def test_chevrons(add: ctypes.CDLL, tools: Toolkit, function: str, dtype: type) -> None:
    x, y = _pair(dtype)
    z = np.zeros_like(x)
    tools.seam.seam_clear()
    getattr(add, function)(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, z)), SIZE, 8)
    assert tools.message() == ""
    np.testing.assert_array_equal(z, x + y)


def test_zero_length_is_nothing(add: ctypes.CDLL) -> None:
    z = np.ones(16, np.float16)
    assert launch(add, "add_half", 8, z, z, z, 0, 128) == 0
    assert (z == 1).all()


@pytest.mark.parametrize("blocks", [0, 65536])
def test_no_blocks_and_too_many(add: ctypes.CDLL, tools: Toolkit, blocks: int) -> None:
    z = np.ones(16, np.float16)
    assert launch(add, "add_half", blocks, z, z, z, 16, 16) == 107000
    assert tools.message() == f"kernel add_half: {blocks} blocks; launch at least 1, and at most 65535"


def test_launch_after_fork(add: ctypes.CDLL) -> None:
    """The threads of blocks do not survive a fork; the child makes its own."""
    x, y = _pair(np.float16)
    z = np.zeros_like(x)
    assert launch(add, "add_half", 8, x, y, z, SIZE, 128) == 0
    child = os.fork()
    if child == 0:
        z[:] = 0
        ok = launch(add, "add_half", 8, x, y, z, SIZE, 128) == 0 and bool((z == x + y).all())
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_structure_argument(build: Build) -> None:
    """A tiling structure is passed by value to the kernel, and by address to its launch function."""
    library = build("""
#include "kernel_operator.h"
namespace demo {
struct Tiling { uint32_t length; float scale; int64_t offset[2]; };
extern "C" __global__ __aicore__ void store(GM_ADDR out, const Tiling tiling) {
    AscendC::GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)out, 4);
    gm.SetValue(0, tiling.length);
    gm.SetValue(1, tiling.scale);
    gm.SetValue(2, tiling.offset[1]);
}
}  // namespace demo
""")

    class Tiling(ctypes.Structure):
        _fields_ = (("length", ctypes.c_uint32), ("scale", ctypes.c_float), ("offset", ctypes.c_int64 * 2))

    out = np.zeros(4, np.float32)
    tiling = Tiling(7, 2.5, (ctypes.c_int64 * 2)(0, -3))
    library.aclrtlaunch_store(1, None, ctypes.c_void_p(out.ctypes.data), ctypes.byref(tiling))
    assert out.tolist() == [7, 2.5, -3, 0]


KERNEL_PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(Ascend_c)
set(SOC_VERSION "Ascend910B3" CACHE STRING "system on chip type")
set(ASCEND_CANN_PACKAGE_PATH "/usr/local/Ascend/ascend-toolkit/latest" CACHE PATH
    "ASCEND CANN package installation directory")
if(EXISTS ${ASCEND_CANN_PACKAGE_PATH}/compiler/tikcpp/ascendc_kernel_cmake)
    set(ASCENDC_CMAKE_DIR ${ASCEND_CANN_PACKAGE_PATH}/compiler/tikcpp/ascendc_kernel_cmake)
else()
    message(FATAL_ERROR "ascendc_kernel_cmake does not exist")
endif()
include(${ASCENDC_CMAKE_DIR}/ascendc.cmake)
ascendc_library(kernels %s scale.cpp)
ascendc_compile_definitions(kernels PRIVATE FACTOR=3 HAVE_FACTOR)
ascendc_include_directories(kernels PRIVATE inc)
add_library(caller SHARED caller.cpp)
target_link_libraries(caller PRIVATE kernels)
target_link_options(caller PRIVATE -Wl,-z,defs)
"""
KERNEL_SOURCE = """
#include "kernel_operator.h"
#include "scale_tiling.h"
#ifndef HAVE_FACTOR
#error "the definitions of the target are missing"
#endif
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, ScaleTiling tiling) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, tiling.length * sizeof(float));
    AscendC::GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float*)x, tiling.length);
    out.SetGlobalBuffer((__gm__ float*)y, tiling.length);
    auto local = buffer.Get<float>();
    AscendC::DataCopy(local, in, tiling.length);
    AscendC::Muls(local, local, (float)FACTOR, tiling.length);
    AscendC::DataCopy(out, local, tiling.length);
}
// Launched next to its definition, by a function that takes void* for every pointer.
extern "C" __global__ __aicore__ void add_to(__gm__ float* x, __gm__ const int32_t* much, float more) {
    AscendC::GlobalTensor<float> values;
    values.SetGlobalBuffer(x, 4);
    values.SetValue(AscendC::GetBlockIdx(), values.GetValue(AscendC::GetBlockIdx()) + much[0] + more);
}
extern "C" void launch_add_to(void* stream, void* x, void* much, float more) {
    add_to<<<2, nullptr, stream>>>(x, much, more);
}
"""
CALLER_SOURCE = """
#include "acl/acl.h"
#include "inc/scale_tiling.h"
#include "aclrtlaunch_scale.h"
extern "C" uint32_t devices() {
    uint32_t count = 0;
    aclrtGetDeviceCount(&count);
    return count;
}
extern "C" uint32_t call(void* x, void* y, uint32_t length) {
    ScaleTiling tiling{length};
    return ACLRT_LAUNCH_KERNEL(scale)(2, nullptr, x, y, &tiling);
}
extern "C" void launch_add_to(void* stream, void* x, void* much, float more);
extern "C" void call_add_to(void* x, void* much) { launch_add_to(nullptr, x, much, 0.5f); }
"""


@pytest.mark.parametrize("kind", ["STATIC", "SHARED"])
def test_ascendc_library(tools: Toolkit, tmp_path: Path, kind: str) -> None:
    """A kernel launch project: ascendc_library, the generated launch header, a library that links it, and ACL with it."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc/scale_tiling.h").write_text(
        "#pragma once\n#include <cstdint>\nstruct ScaleTiling { uint32_t length; };\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(KERNEL_PROJECT % kind)
    (tmp_path / "scale.cpp").write_text(KERNEL_SOURCE)
    (tmp_path / "caller.cpp").write_text(CALLER_SOURCE)
    build = tmp_path / "build"
    _run("cmake", "-S", tmp_path, "-B", build, f"-DASCEND_CANN_PACKAGE_PATH={tools.home}", "-DRUN_MODE=npu")
    _run("cmake", "--build", build)
    library = ctypes.CDLL(str(build / "libcaller.so"))
    assert library.devices() == 1
    x = np.arange(64, dtype=np.float32)
    y = np.zeros_like(x)
    assert library.call(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), 64) == 0
    np.testing.assert_array_equal(y, 3 * x)
    much = np.array([40], np.int32)
    library.call_add_to(ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(much.ctypes.data))
    assert y[:4].tolist() == [40.5, 43.5, 6, 9]


DEMO = """
#include <cstdio>
#include "kernel_operator.h"
#include "answer.h"
__global__ __vector__ void hello(GM_ADDR out) {
    AscendC::GlobalTensor<int32_t> gm;
    gm.SetGlobalBuffer((__gm__ int32_t*)out, AscendC::GetBlockNum());
    gm.SetValue(AscendC::GetBlockIdx(), ANSWER + AscendC::GetBlockIdx());
}
int other();
int main() {
    int32_t out[4] = {};
    hello<<<4, nullptr, nullptr>>>((uint8_t*)out);
    for (int i = 0; i < 4; ++i) std::printf("%d ", out[i]);
    std::printf("%d\\n", other());
}
"""


@pytest.mark.slow
def test_asc_language(tools: Toolkit, tmp_path: Path) -> None:
    """find_package(ASC) and project(… LANGUAGES ASC CXX): an executable of .asc and .cpp sources."""
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
set(CMAKE_ASC_ARCHITECTURES "dav-2201" CACHE STRING "NPU architecture")
find_package(ASC REQUIRED)
project(kernel_samples LANGUAGES ASC CXX)
add_executable(demo demo.asc other.cpp)
target_compile_options(demo PRIVATE $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${CMAKE_ASC_ARCHITECTURES}>)
""")
    (tmp_path / "demo.asc").write_text(DEMO)
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n")
    (tmp_path / "other.cpp").write_text("int other() { return 7; }\n")
    environment = {**os.environ, "ASCEND_HOME_PATH": str(tools.home), "CMAKE_PREFIX_PATH": f"{tools.home}/lib64/cmake"}
    _run("cmake", "-S", tmp_path, "-B", tmp_path / "build", env=environment)
    _run("cmake", "--build", tmp_path / "build", env=environment)
    assert _run(tmp_path / "build/demo").split() == ["42", "43", "44", "45", "7"]
    (tmp_path / "answer.h").write_text("#define ANSWER 50\n")
    os.utime(tmp_path / "answer.h", (2**31, 2**31))
    _run("cmake", "--build", tmp_path / "build", env=environment)
    assert _run(tmp_path / "build/demo").split()[0] == "50", "a changed header compiles its .asc again"


def test_environment_script(tools: Toolkit) -> None:
    output = _run("bash", "-c", f"source {tools.home}/set_env.sh; echo $ASCEND_HOME_PATH; command -v bisheng")
    assert output.split() == [str(tools.home), str(tools.home / "bin/bisheng")]


def _run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=env, timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_driver_reports(tools: Toolkit, tmp_path: Path) -> None:
    """Errors of the driver and of the compiler name the source and its line, and end with a status."""
    source = tmp_path / "bad.asc"
    source.write_text('#include "kernel_operator.h"\n\n__global__ __aicore__ void k() { AscendC::NoSuchApi(1); }\n')
    result = tools.bisheng("-x", "asc", "-c", source, "-o", tmp_path / "bad.o")
    assert result.returncode == 1
    assert "bad.asc:3" in result.stderr
    assert "NoSuchApi" in result.stderr

    source.write_text("void f() {\n  kernel<<<1, nullptr, nullptr(1);\n}\n")
    result = tools.bisheng("-x", "asc", "-c", source, "-o", tmp_path / "bad.o")
    assert result.returncode == 1
    assert "bad.asc:2: the launch of kernel needs its '>>>'" in result.stderr

    for arguments, expected in (
        (["-x", "asc", "-c", str(tmp_path / "none.asc")], "no such source"),
        (["-x", "asc", "-o"], "option -o needs a value"),
        ([], "no input files"),
    ):
        result = tools.bisheng(*arguments, cwd=tmp_path)
        assert (result.returncode, expected in result.stderr) == (1, True), result.stderr


def test_module_runs_as_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "ascend_graph.host.ascendc.driver"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (result.returncode, result.stderr) == (1, "error: bisheng: no input files; expected at least one source\n")


def test_libraries_may_stand_before_sources(tools: Toolkit, tmp_path: Path) -> None:
    """The device's linker takes them in any order, and needs each that is named, whether a symbol of it is used or
    not."""
    (tmp_path / "host.cpp").write_text("int host() { return 1; }\n")
    result = tools.bisheng("-###", "-shared", "-lz", "host.cpp", "-Wl,-z,now", "-o", "out.so", cwd=tmp_path)
    link = result.stderr.splitlines()[-1].split()
    (source,) = [one for one in link if one.endswith("-host.o")]
    order = [link.index(one) for one in ("-Wl,--no-as-needed", source, "-lz", "-Wl,-z,now")]
    assert order == sorted(order), link


def test_functions_of_host_and_device(tools: Toolkit, tmp_path: Path) -> None:
    source = """
    #define HOST_DEVICE __forceinline__ [host, aicore]
    struct Shape { HOST_DEVICE static int rank() { return 2; } [aicore] inline int size() { return 1; } };
    #if !defined(__CCE__) || __NPU_ARCH__ != 2201
    #error not a device compiler
    #endif
    int host() { return Shape::rank() + Shape().size(); }
    """
    (tmp_path / "both.asc").write_text(source)
    result = tools.bisheng("-c", "both.asc", "-o", "both.o", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_headers_by_their_other_names(tools: Toolkit, tmp_path: Path) -> None:
    """Kernels include parts of the API by the names that CANN has for them, and may do without shapes in tensors."""
    source = """
    #define K_MAX_SHAPE_DIM 0
    #include "kernel_operator_list_tensor_intf.h"
    #include "lib/matrix/matmul/matmul.h"
    #include "lib/matrix/matmul/tiling.h"
    #include "op_common/op_kernel/math_util.h"
    #include "securec.h"
    #include "tiling/tiling_api.h"
    static_assert(AscendC::BLOCK_CUBE == 16 && matmul_tiling::PlatformInfo().l1Size == 0);
    static_assert(sizeof(AscendC::ShapeInfo::shape) == 0);
    extern "C" int sums(int a) {
        using namespace AscendC;
        char text[8];
        if (memset_s(text, sizeof text, 0, 9) != ERANGE_AND_RESET || snprintf_s(text, 8, 7, "%d", a) != 1) return -1;
        return Ceil(uint64_t(a), uint64_t(4)) * 1000 + CeilDiv(a, 2) * 10 + Ops::Base::CeilAlign(a, 3) % 10;
    }
    // -1 where the host's side refuses rows of that length, otherwise what it says of them.
    extern "C" int topk(int inner, int k, bool small) {
        const auto* platform = platform_ascendc::PlatformAscendCManager::GetInstance();
        const auto mode = small ? AscendC::TopKMode::TOPK_NSMALL : AscendC::TopKMode::TOPK_NORMAL;
        uint32_t most = 0, least = 0;
        optiling::TopkTiling tiling;
        if (!AscendC::TopKTilingFunc(*platform, inner, 3, k, 4, true, mode, true, tiling)) return -1;
        if (!AscendC::GetTopKMaxMinTmpSize(*platform, inner, 3, false, true, mode, true, 4, most, least)) return -2;
        return least > 0 && least <= most ? tiling.get_allDataSize() : -3;
    }
    extern "C" int space(int type_size) {
        uint32_t most = 0, least = 0, tensors = 0, more = 0;
        AscendC::GetTanhMaxMinTmpSize(AscendC::TensorShape({8, 512}), type_size, false, most, least);
        AscendC::GetTanhTmpBufferFactorSize(type_size, tensors, more);
        return least == 256 * tensors && most == 4096 * type_size * tensors ? tensors : -1;
    }
    extern "C" int factors() {
        const auto* platform = platform_ascendc::PlatformAscendCManager::GetInstance();
        const AscendC::TensorShape shape({8, 512});
        uint32_t values[10] = {};
        AscendC::GetRoundMaxMinTmpSize(*platform, shape, 4, false, values[0], values[1]);
        AscendC::GetSinMaxMinTmpSize(AscendC::SinConfig{AscendC::SinAlgo::RADIAN_REDUCTION}, shape, 4, false, values[2],
            values[3]);
        AscendC::GetArangeMaxMinTmpSize(values[4], values[5]);
        for (int i = 0; i < 6; i += 2) {
            if (values[i + 1] == 0 || values[i] < values[i + 1]) return -1;
        }
        AscendC::GetPowerTmpBufferFactorSize(true, false, false, 4, values[6], values[7]);
        AscendC::GetAscendAntiQuantTmpBufferFactorSize(shape, shape, false, AscendC::TensorDataType::DT_INT8,
            AscendC::TensorDataType::DT_FLOAT16, values[8], values[9]);
        return values[6] > 0 && values[8] > 0 ? 0 : -2;
    }
    // Sizes that are -1 are those of SetOrgShape; what tilings use adds up to the larger.
    extern "C" int matmul_shapes(int32_t* sizes) {
        matmul_tiling::MultiCoreMatmulTiling api;
        api.SetDim(4);
        api.SetOrgShape(256, 512, 96);
        if (api.SetShape(0, -1, -1) != -1 || api.SetShape(-1, -1, 64) != 0) return -1;
        api.SetAlignSplit(64, -1, 0);
        api.SetMatmulConfigParams(matmul_tiling::MatmulConfigParams(1, false, matmul_tiling::ScheduleType::N_BUFFER_33,
            matmul_tiling::MatrixTraverse::FIRSTN));
        optiling::TCubeTiling tiling;
        int32_t cores, rows, columns;
        if (api.GetSingleShape(sizes[0], sizes[1], sizes[2]) != -1 || api.GetTiling(tiling) != 0) return -2;
        if (api.GetSingleShape(sizes[0], sizes[1], sizes[2]) != 0
            || api.GetCoreNum(cores, rows, columns) != 0) return -3;
        sizes[3] = cores;
        sizes[4] = tiling.iterateOrder;
        sizes[5] = tiling.stepKa;
        matmul_tiling::SysTilingTempBufSize used;
        used.l0cSize = 1 << 20;
        if (MultiCoreMatmulGetTmpBufSize(tiling, used) != 0 || used.l1Size != tiling.shareL1Size
            || used.l0cSize != 1 << 20) return -4;
        return rows * sizes[0] >= 256 && columns * sizes[1] >= 512 && cores == rows * columns ? 0 : -5;
    }
    extern "C" int spaces() {
        const auto* platform = platform_ascendc::PlatformAscendCManager::GetInstance();
        const AscendC::TensorShape shape({8, 512});
        uint32_t most = 0, least = 0, sorted = 0;
        optiling::SoftMaxTiling tiling;
        AscendC::GetSortMaxMinTmpSize(shape, ge::DT_FLOAT, ge::DT_UINT32, false, AscendC::SortConfig{}, sorted, least);
        if (least != sorted || sorted < 4096 * 8) return -1;
        using AscendC::TopKMode;
        const AscendC::TopKConfig selects = {AscendC::TopKAlgo::RADIX_SELECT, AscendC::TopKOrder::UNSET, false};
        if (AscendC::GetTopKMaxMinTmpSize(64, 1, 5, false, false, TopKMode::TOPK_NORMAL, true, ge::DT_INT64, selects,
            most, least)) return -5;  // of dav-3510 alone
        AscendC::GetSoftMaxFlashV3MaxMinTmpSize(shape, 2, 4, most, least, true);
        AscendC::SoftMaxFlashV3TilingFunc(shape, 2, 4, most, tiling, true);
        if (least == 0 || least > most || tiling.srcM != 8) return -2;
        const SoftMaxTiling listed = {8, 512u, 4096};  // the first fields, as kernels make one themselves
        if (listed.srcM != tiling.srcM || listed.srcK != 512 || listed.srcSize != 4096
            || listed.outMaxM != 0) return -3;
        using AscendC::DataFormat;
        const AscendC::TransDataConfig way = {DataFormat::NDC1HWC0, DataFormat::NCDHW},
            none = {DataFormat::ND, DataFormat::NCDHW};
        if (AscendC::GetTransDataMaxMinTmpSize(*platform, shape, shape, ge::DT_FLOAT16, none, most, least)) return -3;
        return AscendC::GetTransDataMaxMinTmpSize(*platform, shape, shape, ge::DT_FLOAT16, way, most, least) ? 0 : -4;
    }
    """
    (tmp_path / "sums.asc").write_text(source)
    result = tools.bisheng("-shared", "-fPIC", "sums.asc", "-o", "sums.so", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    library = ctypes.CDLL(str(tmp_path / "sums.so"))
    assert library.sums(5) == 2000 + 30 + 6
    asked = [(64, 5, False), (32, 32, True), (64, 5, True), (33, 5, False), (64, 65, False), (8192, 5, False)]
    assert [library.topk(*each) for each in asked] == [192, 96, -1, -1, -1, -1]
    assert (library.spaces(), library.factors(), library.space(2), library.space(4)) == (0, 0, 4, 1)
    sizes = (ctypes.c_int32 * 6)()
    assert library.matmul_shapes(sizes) == 0
    assert (sizes[0] % 64, sizes[2], *sizes[3:]) == (0, 64, 4, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["info"], "| 0     910B1"),
        (["info", "-l"], "NPU ID                         : 0"),
        (["info", "-t", "board", "-i", "0", "-c", "0"], "Chip Name                      : 910B1"),
        (["info", "-m"], "Ascend 910B1"),
    ],
)
def test_npu_smi_answers_build_scripts_and_says_what_it_is(arguments: list[str], expected: str) -> None:
    program = toolkit_directory() / "bin/npu-smi"
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    assert expected in result.stdout
    assert result.stderr == "npu-smi: the host runtime of ascend_graph has no NPU\n"
    refused = subprocess.run([program, "info", "-t", "topo"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "topo is not answered on the host" in refused.stderr) == (1, True)


def test_what_a_kernel_does_not_set_is_the_same_in_each_block_and_not_zero(build: Build, tools: Toolkit) -> None:
    """A member that a constructor leaves out, after other values were on the stack."""
    code = """
    #include "kernel_operator.h"
    struct Mapping {
        Mapping() : set(1) {}
        int32_t set, unset;
    };
    __attribute__((noinline)) void dirty(int32_t value) {
        volatile int32_t values[256];
        for (auto& one : values) one = value;
    }
    extern "C" __global__ __aicore__ void leave_out(GM_ADDR x, uint32_t) {
        dirty(static_cast<int32_t>(AscendC::GetBlockIdx() % 2));
        Mapping mapping;
        ((__gm__ int32_t*)x)[AscendC::GetBlockIdx()] = mapping.unset;
    }
    """
    x = np.zeros(8, np.int32)
    assert launch(build(code), "leave_out", 8, x, 0) == 0, tools.message()
    assert len(set(x.tolist())) == 1
    assert x[0] != 0

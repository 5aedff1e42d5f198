"""Sources that are compiled once for each kind of core, because the kind is a constant or a macro in them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ascend_graph.host.ascendc.cores import is_vector_code, names_macros, needs_constant

from ..conftest import Build, Toolkit, launch

#: Block i of the cube cores writes 10 + i, of the vector cores 100 + i.
KERNELS = """
#include "kernel_operator.h"
using namespace AscendC;

struct Operation {
    template <int32_t core = g_coreType>
    __aicore__ void operator()(__gm__ int32_t* to);
};
template <>
__aicore__ void Operation::operator()<AIC>(__gm__ int32_t* to) { to[GetBlockIdx()] = 10 + GetBlockIdx(); }
template <>
__aicore__ void Operation::operator()<AIV>(__gm__ int32_t* to) { to[8 + GetBlockIdx()] = 100 + GetBlockIdx(); }

template <class T>
struct InsideClass {
    template <int32_t core = g_coreType>
    __aicore__ inline void operator()(__gm__ T* to);
    template <>
    __aicore__ inline void operator()<AIC>(__gm__ T* to) { to[GetBlockIdx()] = 10 + GetBlockIdx(); }
    template <>
    __aicore__ inline void operator()<AIV>(__gm__ T* to) { to[8 + GetBlockIdx()] = 100 + GetBlockIdx(); }
};
extern "C" __global__ __aicore__ void inside_class(GM_ADDR to) {
    InsideClass<int32_t> operation;
    operation((__gm__ int32_t*)to);
}
extern "C" __global__ __aicore__ void by_constant(GM_ADDR to) {
    Operation operation;
    operation((__gm__ int32_t*)to);
}
extern "C" __global__ __aicore__ void by_macro(GM_ADDR to) {
#if defined(__DAV_C220_CUBE__)
    ((__gm__ int32_t*)to)[GetBlockIdx()] = 10 + GetBlockIdx();
#elif defined(__DAV_C220_VEC__)
    ((__gm__ int32_t*)to)[8 + GetBlockIdx()] = 100 + GetBlockIdx();
#endif
}
// What is for the other kind of core is not made: there is no such structure for it.
template <int32_t mode, int32_t core>
struct Only;
template <>
struct Only<1, AIV> {
    static constexpr int32_t value = 100;
};
template <int32_t mode>
__aicore__ inline int32_t OnlyForVectors() {
    return Only<mode, g_coreType>::value;
}
extern "C" __global__ __aicore__ void not_made(GM_ADDR to) {
    if ASCEND_IS_AIV {
        ((__gm__ int32_t*)to)[8 + GetBlockIdx()] = OnlyForVectors<1>() + GetBlockIdx();
    }
    if ASCEND_IS_NOT_AIV {
        ((__gm__ int32_t*)to)[GetBlockIdx()] = 10 + GetBlockIdx();
    }
}
extern "C" __global__ __aicore__ void one_vector_core(GM_ADDR to) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    Operation operation;
    operation((__gm__ int32_t*)to);
}
extern "C" __global__ __vector__ void vectors_alone(GM_ADDR to) {
    Operation operation;
    operation((__gm__ int32_t*)to);
}
extern "C" __global__ __cube__ void cubes_alone(GM_ADDR to) {
    Operation operation;
    operation((__gm__ int32_t*)to);
}

// A kernel's own functions may have names and forms that the compiler knows too.
namespace own {
template <class T, class U, std::enable_if_t<std::is_arithmetic<T>::value && std::is_arithmetic<U>::value>* = nullptr>
constexpr auto min(T const& a, U const& b) { return a < b ? 1000 + a : 1000 + b; }
}  // namespace own
extern "C" __global__ __cube__ void own_function(GM_ADDR to) {
    using namespace own;
    SetSyncBaseAddr(0);
    TBuffAddr address;
    address.logicPos = static_cast<uint8_t>(TPosition::A1);
    address.bufferAddr = 64;
    address.dataLen = 32;
    LocalTensor<int32_t> local;
    local.SetAddr(address);
    const LocalTensor<int32_t> same(TPosition::A1, 64, 8);
    same.SetValue(1, min(7, 9u));
    ((__gm__ int32_t*)to)[GetBlockIdx()] = local.GetValue(1) + max(1, 2u) + local.GetSize()
        + SizeOfBits<int4b_t>::value;
}

// A template that only this source sees, launched from a function that only this source sees.
namespace {
template <class T>
__global__ __aicore__ void adapter(GM_ADDR to) {
    T operation;
    operation((__gm__ int32_t*)to);
}
void run(uint8_t* to) { adapter<Operation><<<2, nullptr, nullptr>>>(to); }
}  // namespace
extern "C" void run_adapter(uint8_t* to) { run(to); }

// What a program does as it starts is done once.
int starts = 0;
static const int started = ++starts;
extern "C" int how_often_started() { return starts; }
"""
BOTH = [10, 11, 100, 101, 102, 103]


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(KERNELS)


def _written(to: np.ndarray) -> list[int]:
    return [int(value) for value in to if value != 0]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("by_constant", BOTH),
        ("inside_class", BOTH),
        ("by_macro", BOTH),
        ("not_made", BOTH),
        ("one_vector_core", [10, 11, 100, 101]),
        ("vectors_alone", [100, 101]),
        ("cubes_alone", [10, 11]),
        ("own_function", [1007 + 2 + 8 + 4] * 2),
    ],
)
def test_each_core_runs_its_own_code(library: ctypes.CDLL, kernel: str, expected: list[int]) -> None:
    to = np.zeros(16, np.int32)
    assert launch(library, kernel, 2, to) == 0
    assert _written(to) == expected


def test_a_template_without_linkage(library: ctypes.CDLL, tools: Toolkit) -> None:
    to = np.zeros(16, np.int32)
    tools.seam.seam_clear()
    library.run_adapter(ctypes.c_void_p(to.ctypes.data))
    assert tools.message() == ""
    assert _written(to) == BOTH


def test_static_objects_are_made_once(library: ctypes.CDLL) -> None:
    assert library.how_often_started() == 1


@pytest.mark.slow
def test_two_sources_of_one_program(tools: Toolkit, tmp_path: Path) -> None:
    """The same names in both: each has the code of its own vector cores."""
    for name, first in (("one", 1000), ("two", 2000)):
        (tmp_path / f"{name}.asc").write_text(f"""
#include "kernel_operator.h"
template <int32_t core = g_coreType>
__aicore__ inline int32_t first() {{ return core == AscendC::AIV ? {first} : {first} + 500; }}
static __global__ __aicore__ void numbers(__gm__ uint8_t* to) {{
    ((__gm__ int32_t*)to)[first() % 1000 / 500 * 8 + AscendC::GetBlockIdx()] = first() + AscendC::GetBlockIdx();
}}
static void run(uint8_t* to) {{ numbers<<<1, nullptr, nullptr>>>(to); }}
extern "C" void run_{name}(uint8_t* to) {{ run(to); }}
""")
        made = tools.bisheng("-O1", "-fPIC", "-c", f"{name}.asc", "-o", f"{name}.o", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
    made = tools.bisheng("-shared", "one.o", "two.o", "-o", "both.so", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    library = ctypes.CDLL(str(tmp_path / "both.so"), mode=ctypes.RTLD_LOCAL | os.RTLD_DEEPBIND)
    for name, first in (("one", 1000), ("two", 2000)):
        to = np.zeros(16, np.int32)
        getattr(library, f"run_{name}")(ctypes.c_void_p(to.ctypes.data))
        assert _written(to) == [first, first + 1, first + 500]


def test_what_needs_both(tmp_path: Path) -> None:
    assert needs_constant("call<AscendC::AIC, AscendC::g_coreType>();")
    assert not needs_constant("int32_t core = g_coreType;")
    toolkit = tmp_path / "toolkit"
    for directory, expected in (("toolkit", False), ("kernels", True)):
        header = tmp_path / directory / "a.h"
        header.parent.mkdir()
        header.write_text("#ifdef __DAV_C220_VEC__\n#endif\n")
        assert names_macros(f'# 1 "{header}" 1\n', toolkit) is expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # No reason to take a kernel for one of both kinds of core: this one says nothing, and has as many blocks as
        # asked.
        (
            "#if defined(__DAV_C220_CUBE__) && defined(__DAV_C220_VEC__)\n#error both\n#endif\nconstexpr int kind = 1;",
            [1, 1],
        ),
        (
            "#ifdef __DAV_C220_VEC__\nconstexpr int kind = 3;\n#else\nconstexpr int kind = 2;\n#endif",
            [2, 2, 3, 3, 3, 3],
        ),
    ],
    ids=["without effect", "with effect"],
)
def test_a_macro(build: Build, text: str, expected: list[int]) -> None:
    library = build(f"""
#include "kernel_operator.h"
{text}
extern "C" __global__ __aicore__ void plain(GM_ADDR to) {{
    ((__gm__ int32_t*)to)[kind / 3 * 8 + AscendC::GetBlockIdx()] = kind;
}}
""")
    to = np.zeros(16, np.int32)
    assert launch(library, "plain", 2, to) == 0
    assert _written(to) == expected


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("explicit specialization in non-namespace scope", "does not take a specialization inside a class"),
        ("internal compiler error: in tsubst", "breaks on this source"),
        ("no member named 'x'", ""),
    ],
)
def test_what_needs_another_compiler(tools: Toolkit, tmp_path: Path, said: str, why: str) -> None:
    """What g++ takes from version 14 on, or breaks on, or refuses: a clang++ on the path may take it, as the device's
    compiler is one.

    Without one the message says so where it is g++'s fault; where neither takes a source it is g++'s.
    """
    source = tmp_path / "inside.asc"
    source.write_text(
        "struct A { template <int n> int f(); template <> int f<1>() { return 1; } };\nint g() { return A().f<1>(); }\n"
    )
    g = tmp_path / "g++"
    g.write_text(
        f'#!/bin/sh\ncase "$*" in *" -c "*) echo "a.asc:1: error: {said}" >&2; exit 1;; esac\n'
        '[ "$1" = --version ] && exit\nfor last; do :; done\n: > "$last"\n'
    )
    g.chmod(0o755)
    for tool in ("sh", "dirname", "readlink", "env"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}" if Path(f"/usr/bin/{tool}").exists() else f"/bin/{tool}")
    environment = {
        "PATH": str(tmp_path),
        "ASCEND_GRAPH_PYTHON": sys.executable,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    command = [str(tools.home / "bin/bisheng"), "-fno-gnu-unique", "-c", str(source), "-o", str(tmp_path / "inside.o")]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)

    without = run()
    assert without.returncode == 1
    assert said in without.stderr
    assert why in without.stderr
    assert ("ASCENDC_HOST_CXX" in without.stderr) is bool(why)
    clang = tmp_path / "clang++-16"
    clang.write_text("#!/bin/sh\necho neither >&2; exit 1\n")
    clang.chmod(0o755)
    neither = run()
    assert (neither.returncode, "neither" in neither.stderr, said in neither.stderr) == (1, bool(why), not why)
    clang.write_text(
        '#!/bin/sh\ncase "$*" in *-fno-gnu-unique*) exit 1;; esac\n[ "$1" = --version ] && exit\nfor last; do :; done\necho compiled > "$last"\n'
    )
    clang.chmod(0o755)
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "inside.o").read_text() == "compiled\n"


@pytest.mark.slow
def test_a_template_found_by_its_arguments(tools: Toolkit, tmp_path: Path) -> None:
    """The device's compiler takes it in every version of C++, g++ from C++20 on; what is nowhere stays an error."""
    source = tmp_path / "sum.asc"
    text = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void sum(GM_ADDR x) {
    AscendC::LocalTensor<float> a;
    NAME<float>(a, a, a, 8);
}
"""
    for name, status in (("ReduceSum", 0), ("ReduceProduct", 1)):
        source.write_text(text.replace("NAME", name))
        made = tools.bisheng("-O0", "-std=c++17", "-c", source, "-o", tmp_path / "sum.o")
        assert made.returncode == status, made.stderr
    assert "ReduceProduct" in made.stderr


def test_a_name_whose_meaning_changes_in_a_class(tools: Toolkit, tmp_path: Path) -> None:
    """The device's compiler does not ask for the rule; what g++ says besides stays an error."""
    source = tmp_path / "meaning.asc"
    text = """
using X_DTYPE = int;
class Kernel {
    X_DTYPE first_ = 0;
    using X_DTYPE = float;
    REST
};
"""
    for rest, status in (("X_DTYPE second_ = 0;", 0), ("int* third_ = 3.5;", 1)):
        source.write_text(text.replace("REST", rest))
        made = tools.bisheng("-O0", "-std=c++17", "-c", source, "-o", tmp_path / "meaning.o")
        assert made.returncode == status, made.stderr
    assert "third_" in made.stderr


def test_macros_of_names_that_the_compiler_knows(tools: Toolkit, tmp_path: Path) -> None:
    """On the device they are no names of a header, so that a macro before it changes nothing of it."""
    source = tmp_path / "events.asc"
    source.write_text("""
#define EVENT_ID0 0
#define PIPE_S PIPE_V
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void waits() {
    set_flag(PIPE_S, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_V, EVENT_ID0);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
}
""")
    made = tools.bisheng("-O0", "-std=c++17", "-c", source, "-o", tmp_path / "events.o")
    assert made.returncode == 0, made.stderr


#: Blocks count those that ran, on cores of their kind.
ASKS = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void asks(GM_ADDR to) {
    GlobalTensor<int32_t> out;
    out.SetGlobalBuffer((__gm__ int32_t*)to, 8);
    %s
    if ASCEND_IS_AIV { out.SetValue(GetBlockIdx(), 10 * GetBlockNum() + GetBlockIdx()); }
}
"""


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ("", [40, 41, 42, 43, 0, 0, 0, 0]),
        ("const bool is_gemma = to == nullptr; GM_ADDR gammaDgm = to;", [40, 41, 42, 43, 0, 0, 0, 0]),
        ("if ASCEND_IS_AIC return;", [40, 41, 42, 43, 0, 0, 0, 0]),
        ("if (g_coreType == AIC) { return; }", [40, 41, 42, 43, 0, 0, 0, 0]),
        ("if ASCEND_IS_AIC { PipeBarrier<PIPE_ALL>(); }", [40, 41, 42, 43, 44, 45, 46, 47]),
    ],
    ids=["vector cores alone", "names with the API's in them", "cube cores leave", "by the constant", "groups"],
)
def test_question_for_vector_cores(build: Build, tools: Toolkit, more: str, written: list[int]) -> None:
    """Nothing of the source is for cube cores: blocks are vector cores, not groups of three."""
    out = np.zeros(8, np.int32)
    assert launch(build(ASKS % more), "asks", 4, out) == 0, tools.message()
    assert out.tolist() == written


@pytest.mark.parametrize(
    "own",
    [
        "Mmad(c, a, b, p);",
        "TBuf<TPosition::A1> b;",
        "if (g_coreType == AIC) go();",
        "if (ask_core() == Core::aic) { go(); return; }",
        "if (g_coreType != AIV) { go(); }",
        "CrossCoreSetFlag<2, PIPE_V>(1);",
        "matmul::Matmul<A, B, C> product;",
        "mad(c, a, b, 16, 16, 16, false);",
    ],
)
def test_traces_of_cube_code(own: str) -> None:
    inside = '# 1 "/toolkit/include/cube.h" 1\nMmad(c, a, b, p);\n# 2 "k.cpp" 2\n'
    assert is_vector_code(
        f"{inside}if (ask_core() == Core::aiv || g_coreType == AIV) Add(z, x, y, 8);", Path("/toolkit")
    )
    assert not is_vector_code(inside + own, Path("/toolkit"))


@pytest.mark.parametrize(
    "own",
    [
        "tiling->is_gemma",
        "GM_ADDR gammaDgm",
        "LoadDataOfRow(0)",
        "MadeOf",
        "CrossCoreSum()",
        "if (ask_core() == Core::aic) return;",
        "if (::ascendc_host::ask_core() != ::ascendc_host::Core::aic) { go(); }",
        "if (g_coreType != AscendC::AIV) {\n return;\n }",
    ],
)
def test_no_traces_of_cube_code(own: str) -> None:
    assert is_vector_code(f"if (ask_core() == Core::aiv) {own};", Path("/toolkit"))

"""The vector unit's instructions by the compiler's names, under the mask that is set."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import Case
from ..conftest import Build, Toolkit, launch

random = np.random.default_rng(11)
FLOATS = random.permutation(512).astype(np.float32) + 1
HALVES = (random.permutation(512) / 4 + 1).astype(np.float16)
SHORTS = random.integers(-32768, 32767, 512).astype(np.int16)
F, H, S = ("float",) * 3, ("half",) * 3, ("int16_t",) * 3


def _at(types: tuple[str, str, str], code: str) -> str:
    """``code`` on the addresses of the tensors: a, b and c are those of x, y and z."""
    names = zip("abc", "xyz", types, strict=True)
    return "".join(f"auto* {p} = (__ubuf__ {t}*){n}.GetPhyAddr(); (void){p}; " for p, n, t in names) + code


def _case(name: str, code: str, expected: object, types: tuple[str, str, str] = F, **more: object) -> Case:
    given = {"float": FLOATS, "half": HALVES, "int16_t": SHORTS, "int32_t": FLOATS.astype("i4")}
    x = given[types[0]]
    z = more.pop("z", np.zeros(512, cases_.CTYPES[types[2]]))
    return Case(name, _at(types, code), expected, x, x[::-1].copy(), z, types, **more)  # type: ignore[arg-type]


def _first(values: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.concatenate((values.astype(z.dtype), z[len(values) :]))


UNARY = {
    "vabs": np.abs,
    "vexp": lambda x: np.exp(x.astype("f8")).astype(x.dtype),
    "vln": lambda x: np.log(x.astype("f8")).astype(x.dtype),
    "vrec": lambda x: 1 / x,
    "vrelu": lambda x: np.maximum(x, 0),
    "vrsqrt": lambda x: (1 / np.sqrt(x.astype("f8"))).astype(x.dtype),
    "vsqrt": np.sqrt,
}
BINARY = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmul": np.multiply,
    "vdiv": np.divide,
    "vmax": np.maximum,
    "vmin": np.minimum,
    "vaddrelu": lambda x, y: np.maximum(x + y, 0),
    "vsubrelu": lambda x, y: np.maximum(x - y, 0),
}
SCALAR = {"vadds": np.add, "vmuls": np.multiply, "vmaxs": np.maximum, "vmins": np.minimum}
ROWS, PAIRS = FLOATS.reshape(8, 64), FLOATS.reshape(256, 2)

CASES = [
    *(
        _case(name, f"Adds(x, x, -256.0f, 512); {name}(c, a, 8, 1, 1, 8, 8);", lambda x, _y, _z, f=f: f(x - 256))
        for name, f in UNARY.items()
        if name in ("vabs", "vrelu")
    ),
    *(
        _case(
            name,
            f"Muls(x, x, 0.01f, 512); {name}(c, a, 8, 1, 1, 8, 8);",
            lambda x, _y, _z, f=f: f(x * np.float32(0.01)),
            rtol=1e-6,
        )
        for name, f in UNARY.items()
        if name not in ("vabs", "vrelu")
    ),
    *(
        _case(name, f"{name}(c, a, b, 8, 1, 1, 1, 8, 8, 8);", lambda x, y, _z, f=f: f(x, y))
        for name, f in BINARY.items()
    ),
    *(
        _case(name, f"{name}(c, a, b, 4, 1, 1, 1, 8, 8, 8);", lambda x, y, _z, f=f: _first(f(x, y)[:512], _z), S)
        for name, f in (("vor", np.bitwise_or), ("vand", np.bitwise_and))
    ),
    _case("vnot", "vnot(c, a, 4, 1, 1, 8, 8);", lambda x, _y, _z: ~x, S),
    *(
        _case(name, f"{name}(c, a, 3.0f, 8, 1, 1, 8, 8);", lambda x, _y, _z, f=f: f(x, np.float32(3)))
        for name, f in SCALAR.items()
    ),
    _case("vshl", "vshl(c, a, 2, 4, 1, 1, 8, 8);", lambda x, _y, _z: x << 2, S),
    _case("vshr", "vshr(c, a, 2, 4, 1, 1, 8, 8);", lambda x, _y, _z: x >> 2, S),
    _case(
        "vlrelu",
        "Adds(x, x, -256.0f, 512); vlrelu(c, a, 0.5f, 8, 1, 1, 8, 8);",
        lambda x, _y, _z: np.where(x < 256, (x - 256) * np.float32(0.5), x - 256),
    ),
    _case("vaxpy", "vaxpy(c, a, 2.0f, 8, 1, 1, 8, 8);", lambda x, _y, z: z + 2 * x, z=np.full(512, 5, "f4")),
    _case("vmla", "vmla(c, a, b, 8, 1, 1, 1, 8, 8, 8);", lambda x, y, z: z + x * y, z=np.full(512, 5, "f4")),
    _case("vmadd", "vmadd(c, a, b, 8, 1, 1, 1, 8, 8, 8);", lambda x, y, z: z * x + y, z=np.full(512, 5, "f4")),
    _case(
        "vector_dup",
        "set_vector_mask(0, 0xf); vector_dup(c, 7.0f, 2, 1, 0, 8, 0); ResetMask();",
        lambda _x, _y, z: np.where((np.arange(512) % 64 < 4) & (np.arange(512) < 128), 7, z).astype("f4"),
    ),
    _case(
        "a mask of a count",
        "set_mask_count(); set_vector_mask(0, 100); vadds(c, a, 1.0f, 1, 1, 1, 8, 8); set_mask_norm(); ResetMask();",
        lambda x, _y, z: _first(x[:100] + 1, z),
    ),
    _case(
        "a sum over repeats", "vadd(c, a, c, 8, 1, 1, 1, 0, 8, 0);", lambda x, _y, z: _first(x.reshape(8, 64).sum(0), z)
    ),
    # reductions
    _case("vcadd", "vcadd(c, a, 8, 1, 1, 8, false);", lambda _x, _y, z: _first(ROWS.sum(1), z)),
    _case(
        "vcadd in place",
        "vcadd(a, a, 8, 1, 1, 8); vadds(c, a, 0.0f, 1, 1, 1, 8, 8);",
        lambda x, _y, z: _first(np.concatenate((ROWS.sum(1), x[8:64])), z),
    ),
    _case(
        "vcadd of all repeats",
        "vcadd(nullptr, a, 8, 1, 1, 8, true); uint64_t sum = get_acc_val(); c[1] = *reinterpret_cast<float*>(&sum);",
        lambda x, _y, z: _first(np.array([0, x.sum()]), z),
    ),
    _case(
        "vcadd of all repeats of half",
        "set_mask_count(); set_vector_mask(0, 200); vcadd(nullptr, a, 1, 1, 1, 8, true); set_mask_norm(); ResetMask();"
        "int64_t sum = get_acc_val(); c[0] = *reinterpret_cast<half*>(&sum);",
        lambda x, _y, z: _first(np.array([x[:200].astype("f4").sum()]), z),
        H,
    ),
    _case("vcgadd", "vcgadd(c, a, 8, 1, 1, 8);", lambda x, _y, z: _first(x.reshape(64, 8).sum(1), z)),
    _case("vcgmax", "vcgmax(c, a, 8, 1, 1, 8);", lambda x, _y, z: _first(x.reshape(64, 8).max(1), z)),
    _case("vcgmin", "vcgmin(c, a, 8, 1, 1, 8);", lambda x, _y, z: _first(x.reshape(64, 8).min(1), z)),
    _case("vcpadd", "vcpadd(c, a, 8, 1, 1, 8);", lambda _x, _y, z: _first(PAIRS.sum(1), z)),
    _case("vcmax", "vcmax(c, a, 8, 1, 1, 8, Order_t::ONLY_VALUE);", lambda _x, _y, z: _first(ROWS.max(1), z)),
    _case(
        "vcmin and its register",
        "vcmin(c, a, 8, 1, 1, 8, Order_t::ONLY_VALUE); uint64_t both = get_max_min_cnt(); "
        "c[8] = *reinterpret_cast<float*>(&both); c[9] = both >> 32;",
        lambda x, _y, z: _first(np.concatenate((ROWS.min(1), [x.min(), x.argmin()])), z),
    ),
    # conversions
    _case(
        "vconv_f322f16r",
        "vconv_f322f16r(c, a, 8, 1, 1, 4, 8);",
        lambda x, _y, _z: x.astype("f2"),
        ("float", "float", "half"),
    ),
    _case(
        "vconv_f162f32",
        "vconv_f162f32(c, a, 8, 1, 1, 8, 4);",
        lambda x, _y, _z: x.astype("f4"),
        ("half", "half", "float"),
    ),
    _case(
        "vconv_f162s32f",
        "vconv_f162s32f(c, a, 8, 1, 1, 8, 4);",
        lambda x, _y, _z: np.floor(x).astype("i4"),
        ("half", "half", "int32_t"),
    ),
    _case(
        "vconv_s322f32",
        "vconv_s322f32(c, a, 8, 1, 1, 8, 8);",
        lambda x, _y, _z: x.astype("f4"),
        ("int32_t", "int32_t", "float"),
    ),
    # comparisons
    _case(
        "vcmpv_lt",
        "vcmpv_lt((__ubuf__ uint8_t*)c, a, b, 8, 1, 1, 1, 8, 8, 8);",
        lambda x, y, z: _first(np.packbits(x < y, bitorder="little").view("f4"), z),
    ),
    _case(
        "vcmpvs_ge",
        "vcmpvs_ge((__ubuf__ uint8_t*)c, a, 100.0f, 8, 1, 1, 8, 8);",
        lambda x, _y, z: _first(np.packbits(x >= 100, bitorder="little").view("f4"), z),
    ),
    # order
    _case(
        "copy_ubuf_to_ubuf",
        "copy_ubuf_to_ubuf(c, a, 0, 4, 2, 2, 0);",
        lambda x, _y, z: _first(x[:128].reshape(4, 32)[:, :16].ravel(), z),
    ),
    _case(
        "vtranspose",
        "vtranspose((__ubuf__ uint16_t*)c, (__ubuf__ uint16_t*)a);",
        lambda x, _y, z: _first(x[:256].reshape(16, 16).T.ravel(), z),
        S,
    ),
    _case(
        "vbrcb",
        "vbrcb((__ubuf__ uint32_t*)c, (__ubuf__ uint32_t*)a, 1, 8, 2);",
        lambda x, _y, z: _first(np.repeat(x[:16], 8), z),
    ),
    _case(
        "vgather",
        "auto* i = (__ubuf__ uint32_t*)t.GetPhyAddr(); for (int k = 0; k < 128; ++k) i[k] = 4 * (127 - k);"
        "vgather((__ubuf__ uint32_t*)c, i, (uint64_t)a, 8, 2);",
        lambda x, _y, z: _first(x[127::-1], z),
    ),
    _case(
        "scatter_vnchwconv_b16",
        "uint64_t to[16], from[16]; for (int i = 0; i < 16; ++i) { to[i] = (uint64_t)(c + i * 16); "
        "from[i] = (uint64_t)(a + i * 16); }"
        "set_va_reg_sb(VA0, to); set_va_reg_sb(VA1, to + 8); set_va_reg_sb(VA2, from); set_va_reg_sb(VA3, from + 8);"
        "scatter_vnchwconv_b16(VA0, VA2, 1, 0, 0);",
        lambda x, _y, z: _first(x[:256].reshape(16, 16).T.ravel(), z),
        S,
    ),
]

BROKEN = {
    "outside": ("vadds((__ubuf__ float*)0x40000, a, 1.0f, 1, 1, 1, 8, 8);", r"vadds: dst is not in the unified buffer"),
    "unaligned": ("vadd(c, a + 3, b, 1, 1, 1, 1, 8, 8, 8);", r"vadd: src0 is unaligned"),
    "overlap": ("vadds(a + 8, a, 1.0f, 1, 1, 1, 8, 8);", r"vadds: dst and src overlap, and within a repeat"),
    "later": ("vmul(a + 64, a, b, 2, 1, 1, 1, 8, 8, 8);", r"vmul: dst and src0 overlap, and a repeat reads what"),
    "no sum": ("vcadd(c, a, 2, 1, 1, 8); get_acc_val();", r"get_acc_val: no sum can be read"),
    "registers": ("scatter_vnchwconv_b16(VA0, VA7, 1, 0, 0);", r"scatter_vnchwconv_b16: VA7 is the last register"),
}
MOVES = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void moves(GM_ADDR x, GM_ADDR y, uint32_t) {
    __ubuf__ uint8_t* local = (__ubuf__ uint8_t*)get_imm(0);
    AscendC::SetPadValue<uint16_t>(9);
    copy_gm_to_ubuf_align_b16((__ubuf__ void*)local, (__gm__ void*)x, 0, 3, 10, 1, 2, 6, 1);
    pipe_barrier(PIPE_ALL);
    copy_ubuf_to_gm_align_b16((__gm__ void*)y, (__ubuf__ void*)local, 0, 3, 16, 0, 0, 1, 4);
}
extern "C" __global__ __aicore__ void flags(GM_ADDR x, GM_ADDR y, uint32_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::GlobalTensor<int32_t> from, to;
    from.SetGlobalBuffer((__gm__ int32_t*)x, 4);
    to.SetGlobalBuffer((__gm__ int32_t*)y, 8);
    to.SetValue(AscendC::GetBlockIdx(), from.GetValue(AscendC::GetBlockIdx()) + 1);
    ffts_cross_core_sync(PIPE_MTE3, AscendC::GetffstMsg(0, 5));
    wait_flag_dev(5);
    to.SetValue(4 + AscendC::GetBlockIdx(), to.GetValue(3 - AscendC::GetBlockIdx()));
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    broken = [_case(name, code, lambda x, _y, _z: x) for name, (code, _) in BROKEN.items()]
    return build(cases_.source([*CASES, *broken]) + MOVES.replace('#include "kernel_operator.h"', ""), "-O0")


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_values(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, CASES[index], tools.message)


@pytest.mark.parametrize("name", BROKEN)
def test_rules(library: ctypes.CDLL, tools: Toolkit, name: str) -> None:
    code, pattern = BROKEN[name]
    status, _ = cases_.run(library, len(CASES) + list(BROKEN).index(name), _case(name, code, lambda x, _y, _z: x))
    assert status == 507015
    assert re.search(pattern, tools.message()), tools.message()


def test_copies_pad_to_whole_blocks(library: ctypes.CDLL, tools: Toolkit) -> None:
    """Bursts of 5 elements with gaps of 3, one element before each and two after it."""
    x, y = np.arange(24, dtype=np.uint16), np.full(30, 99, np.uint16)
    assert launch(library, "moves", 1, x, y, 0) == 0, tools.message()
    rows = [[9, *x[8 * row : 8 * row + 5], 9, 9] for row in range(3)]
    assert y.tolist() == [*rows[0], 99, 99, *rows[1], 99, 99, *rows[2], *[99] * 2]


def test_blocks_wait_for_each_other(library: ctypes.CDLL, tools: Toolkit) -> None:
    x, y = np.arange(4, dtype=np.int32), np.zeros(8, np.int32)
    assert launch(library, "flags", 4, x, y, 0) == 0, tools.message()
    assert y.tolist() == [1, 2, 3, 4, 4, 3, 2, 1]

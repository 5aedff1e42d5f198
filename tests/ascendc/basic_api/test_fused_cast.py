# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Conversions of sums, differences and products, and by the scales of SetDeqScale, in their three forms, against
NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import CTYPES, Case
from ..conftest import Build, Toolkit, launch

random = np.random.default_rng(21)
ALL, ODD = np.ones(128, bool), np.arange(128) % 2 == 1
FORMS = {
    "": ("n", ALL),
    " with a mask": ("(uint64_t){first}, 2, {strides}", None),
    " with bits": ("bits, 2, {strides}", ODD),
}


def _to_b8(values: np.ndarray, kind: str) -> np.ndarray:
    info = np.iinfo(CTYPES[kind])
    return np.clip(np.rint(values.astype(np.float64)), info.min, info.max).astype(CTYPES[kind])


def _of_each_repeat(lanes: int, active: np.ndarray, function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """z where lanes are inactive, the results where they are active; repeats lie side by side."""

    def expected(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.where(np.resize(active[:lanes], z.shape), function(x, y), z)

    return expected


CASES: list[Case] = []
OPERATIONS = {
    "AddReluCast": (lambda x, y: np.maximum(x + y, 0), (("half", "int8_t"), ("int16_t", "int8_t"), ("float", "half"))),
    "SubReluCast": (lambda x, y: np.maximum(x - y, 0), (("half", "int8_t"), ("int16_t", "int8_t"), ("float", "half"))),
    "MulCast": (lambda x, y: x * y, (("half", "int8_t"), ("half", "uint8_t"))),
}
for name, (function, conversions) in OPERATIONS.items():
    for source, result in conversions:
        lanes = 256 // CTYPES[source].itemsize
        step = lanes * CTYPES[result].itemsize // 32
        values = [random.uniform(-90, 90, 2 * lanes).astype(CTYPES[source]) for _ in range(2)]
        if name == "MulCast":
            values = [(one / 8).astype(CTYPES[source]) for one in values]
        whole = (
            (lambda x, y, f=function, to=result: _to_b8(f(x, y), to))
            if result != "half"
            else (lambda x, y, f=function: f(x, y).astype("f2"))
        )
        for form, (arguments, active) in FORMS.items():
            first = lanes - 3
            masks = arguments.format(first=first, strides=f"{{1, 1, 1, {step}, 8, 8}}")
            lanes_on = np.arange(128) < first if active is None else active
            CASES.append(
                Case(
                    f"{name} to {result}{form}",
                    "uint64_t bits[2] = {0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa}; (void)bits;"
                    f"{name}(z, x, y, {masks});",
                    _of_each_repeat(lanes, lanes_on, whole),
                    *values,
                    np.full(2 * lanes, 7, CTYPES[result]),
                    (source, source, result),
                )
            )

numbers = random.integers(-3000, 3000, 128).astype(np.int32)
INTEGERS = ("int32_t", "int32_t", "half")
for form, (arguments, active) in FORMS.items():
    masks = arguments.format(first=61, strides="{1, 1, 1, 4, 8, 8}")
    lanes_on = np.arange(128) < 61 if active is None else active
    CASES.append(
        Case(
            f"AddDeqRelu{form}",
            "uint64_t bits[2] = {0xaaaaaaaaaaaaaaaa, 0}; (void)bits; SetDeqScale((half)0.125); "
            f"AddDeqRelu(z, x, y, {masks});",
            _of_each_repeat(64, lanes_on, lambda x, y: np.maximum((x + y) * np.float32(0.125), 0).astype("f2")),
            numbers,
            numbers[::-1].copy(),
            np.full(128, 7, "f2"),
            INTEGERS,
        )
    )
    masks = arguments.replace("(uint64_t)", "").format(first=61, strides="{1, 1, 4, 8}")
    for name in ("CastDequant", "CastDeq"):
        CASES.append(
            Case(
                f"{name} to half{form}",
                "uint64_t bits[2] = {0xaaaaaaaaaaaaaaaa, 0}; (void)bits; SetDeqScale((half)0.3);"
                f"{name}(z, x, {masks});",
                _of_each_repeat(64, lanes_on, lambda x, y: (x * np.float32(np.float16(0.3))).astype("f2")),
                numbers,
                None,
                np.full(128, 7, "f2"),
                INTEGERS,
            )
        )
CASES += [
    Case(
        "AddDeqRelu with types and the mask of the register",
        "SetDeqScale((half)2); SetVectorMask<half, MaskMode::NORMAL>(0, 0xff);"
        "AddDeqRelu<half, int32_t, false>(z, x, y, MASK_PLACEHOLDER, 1, {1, 1, 1, 4, 8, 8});"
        "AddDeqRelu<false>(z[64], x, y, MASK_PLACEHOLDER, 1, {1, 1, 1, 4, 8, 8}); ResetMask();",
        lambda x, y, z: np.where(np.arange(128) % 64 < 8, np.resize(np.maximum((x + y)[:64] * 2, 0), 128), z).astype(
            "f2"
        ),
        numbers,
        numbers[::-1].copy(),
        np.full(128, 7, "f2"),
        INTEGERS,
    ),
    Case(
        "Cast of int32_t to half, by a scale",
        "SetDeqScale((half)0.5); Cast(z, x, RoundMode::CAST_FLOOR, n); SetDeqScale((half)1);"
        "Cast(z[128], x, RoundMode::CAST_NONE, 64, 2, {1, 1, 4, 8});",
        lambda x, y, z: np.concatenate([(x * 0.5).astype("f2"), x.astype("f2")]),
        numbers * 7,
        None,
        np.zeros(256, "f2"),
        INTEGERS,
    ),
]


def _half_blocks(
    x: np.ndarray, z: np.ndarray, half: bool, scale: np.ndarray, offset: np.ndarray, active: np.ndarray
) -> np.ndarray:
    """Sixteen results for each block of x fill one half of a block of z."""
    result = z.reshape(-1, 2, 16).copy()
    values = x.reshape(-1, 16).astype(np.float64) * scale + offset
    info = np.iinfo(z.dtype)
    on = np.resize(active, values.shape)
    result[:, int(half)][on] = np.clip(values, info.min, info.max).astype(z.dtype)[on]
    return result.ravel()


SCALES = np.array([1, 2, 0.5, -1] * 4)
OFFSETS = np.array([3, -256, 255, 0] * 4)
even = (random.integers(-200, 200, 256) * 2).astype(np.int16)
ARRAYS = (
    "float scales[16]; int16_t offsets[16]; bool signs[16]; for (int i = 0; i < 16; "
    "++i) {{ const float s[] = {{1, 2, 0.5f, -1}};"
    "const int16_t o[] = {{3, -256, 255, 0}}; scales[i] = s[i % 4]; offsets[i] = o[i % 4]; signs[i] = {signed}; }}"
    "SetDeqScale(t.ReinterpretCast<uint64_t>(), VdeqInfo(scales, offsets, signs));"
)
for kind in ("int8_t", "uint8_t"):
    signed = "true" if kind == "int8_t" else "false"
    before, types = np.full(512, 7, CTYPES[kind]), ("int16_t", "int16_t", kind)
    for half in (True, False):
        word = str(half).lower()
        CASES += [
            Case(
                f"CastDequant by a word, half block {word}, {kind}",
                f"SetDeqScale(0.5f, -9, {signed}); CastDequant<{kind}, int16_t, false, {word}>(z, x, n);",
                lambda x, y, z, half=half: _half_blocks(x, z, half, np.array(0.5), np.array(-9), ALL),
                even,
                None,
                before,
                types,
            ),
            Case(
                f"CastDequant by words, half block {word}, {kind}",
                ARRAYS.format(signed=signed) + f"CastDequant<{kind}, int16_t, true, {word}>(z, x, n);",
                lambda x, y, z, half=half: _half_blocks(x, z, half, SCALES, OFFSETS, ALL),
                even,
                None,
                before,
                types,
            ),
        ]
    CASES += [
        Case(
            f"CastDequant with a mask, {kind}",
            ARRAYS.format(signed=signed) + f"CastDequant<{kind}, int16_t>(z, x, 100, 2, {{1, 1, 8, 8}});",
            lambda x, y, z: _half_blocks(x, z, True, SCALES, OFFSETS, np.arange(128) < 100),
            even,
            None,
            before,
            types,
        ),
        Case(
            f"CastDeq with bits, {kind}",
            "uint64_t bits[2] = {0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa};"
            f"SetDeqScale(2.0f, 1, {signed}); CastDeq<{kind}, int16_t, true, false, false>(z, x, bits, 2, {{1, 1, 8, "
            f"8}});",
            lambda x, y, z: _half_blocks(x, z, False, np.array(2), np.array(1), ODD),
            even,
            None,
            before,
            types,
        ),
    ]
CASES.append(
    Case(
        "CastDequant of part of a block ends there",
        "SetDeqScale(1.0f, 0, true); CastDequant<int8_t, int16_t, false>(z, x, 17);",
        lambda x, y, z: _half_blocks(x, z, True, np.array(1), np.array(0), np.arange(32) < 17),
        (even // 4)[:32],
        None,
        np.full(64, 7, "i1"),
        ("int16_t", "int16_t", "int8_t"),
    )
)

REFUSALS = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void refusals(uint32_t which) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 4096);
    auto x = buffer.Get<int16_t>();
    Duplicate(x, (int16_t)3, 16);
    auto z = x[512].ReinterpretCast<int8_t>();
    switch (which) {
        case 0: SetDeqScale(1.0f, 0, true); CastDequant(z, x, 16); break;
        case 1: SetDeqScale((half)1); CastDequant<int8_t, int16_t, false>(z, x, 16); break;
        case 2: SetDeqScale(0.5f, 0, true); CastDequant<int8_t, int16_t, false>(z, x, 16); break;
        case 3: SetDeqScale(0.1f, 0, true); CastDequant<int8_t, int16_t, false>(z, x, 16); break;
        case 4: SetDeqScale(1.0f, 0, false); CastDequant<int8_t, int16_t, false>(z, x, 16); break;
        case 5:
            SetDeqScale(1.0f, 0, true);
            Cast(z.ReinterpretCast<half>(), x.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, 8);
            break;
        default: Trap();
    }
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(cases_.source(CASES))


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_case(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, CASES[index], tools.message)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        (0, "CastDequant of int16_t with isVecDeq true; write SetDeqScale(vdeq, VdeqInfo)"),
        (1, "CastDequant of int16_t with isVecDeq false; write SetDeqScale(scale, offset, signMode)"),
        (2, "CastDequant: 3 * 0.5 + 0; valid on the host"),
        (3, "CastDequant: 3 * 0.100000001 + 0; valid on the host"),
        (4, "CastDequant to int8_t: SetDeqScale set signMode false"),
        (5, "Cast of int32_t to half: SetDeqScale set the parameters of 8 bits; write SetDeqScale(half)"),
    ],
)
def test_refusals(build: Build, tools: Toolkit, which: int, said: str) -> None:
    """What the register has is what the instruction takes; how a device rounds is not known."""
    assert launch(build(REFUSALS), "refusals", 1, which) != 0
    assert said in tools.message()


@pytest.mark.parametrize(
    ("declared", "call", "said"),
    [
        ("float", "MulCast(x, y, y, 8)", "MulCast is for half to int8_t and uint8_t"),
        ("int64_t", "AddReluCast(x, y, y, 8)", "AddReluCast is for half and int16_t to int8_t, float to half"),
        ("float", "AddDeqRelu(x, y, y, 8)", "AddDeqRelu is for int32_t to half"),
        ("float", "CastDequant(x, y, 8)", "CastDequant and CastDeq are for int32_t to half"),
        ("int32_t", "MulAddRelu(y, y, y, 8)", "MulAddRelu is for half, float on this SoC"),
        ("int32_t", "ClampMax(y, y, 1, 8)", "ClampMax is for half and float"),
        ("int32_t", "ReduceXorSum(y, y, y, 8)", "ReduceXorSum is for int16_t"),
        ("int32_t", "Digamma(y, y, 8)", "Digamma is for half and float"),
    ],
)
def test_types(tools: Toolkit, tmp_path: Path, declared: str, call: str, said: str) -> None:
    """Types that Atlas A2 does not take do not compile, and those it takes are named."""
    source = tmp_path / "types.asc"
    lines = (
        '#include "kernel_operator.h"',
        "__global__ __aicore__ void k() {",
        f"    AscendC::LocalTensor<float> x; AscendC::LocalTensor<{declared}> y;",
    )
    source.write_text("\n".join([*lines, f"    AscendC::{call};", "}", ""]))
    result = tools.bisheng("-x", "asc", "-c", source, "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert said in result.stderr, result.stderr

# ruff: noqa: E501, PLR0917, RUF100 - kernels are quoted as they are written
"""The vector registers of dav-3510, against NumPy: whole registers, masked lanes, layouts, and what is refused."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import CTYPES, Case
from ..conftest import Build, Toolkit, launch

ARCHITECTURE = "--npu-arch=dav-3510"
random = np.random.default_rng(5)
WIDTH = 256
KEPT = 0xA5
"""A register's bytes before anything is written."""


@pytest.fixture(autouse=True)
def _stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")


def _values(ctype: str, count: int) -> np.ndarray:
    dtype = CTYPES[ctype]
    if dtype.kind == "f":
        return random.uniform(0.25, 4, count).astype(dtype) * random.choice([-1, 1], count).astype(dtype)
    return random.integers(max(np.iinfo(dtype).min, -100), 100, count).astype(dtype)


def _case(
    name: str,
    code: str,
    expected: Callable[..., np.ndarray],
    types: str | tuple[str, str, str] = "float",
    *,
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
    z: np.ndarray | None = None,
    rtol: float = 0.0,
) -> Case:
    """``code`` sees the addresses a, b and c of x, y and z, their types A, B and C, and the namespace Reg."""
    three = (types,) * 3 if isinstance(types, str) else types
    lanes = [WIDTH // CTYPES[one].itemsize for one in three]
    prologue = "".join(
        f"using {name} = {ctype}; __ubuf__ {ctype}* {pointer} = (__ubuf__ {ctype}*){tensor}.GetPhyAddr(); "
        f"(void){pointer};\n    "
        for name, ctype, pointer, tensor in zip("ABC", three, "abc", "xyz", strict=True)
    )
    return Case(
        name,
        f"{prologue}__VEC_SCOPE__ {{ {code} }}",
        expected,
        _values(three[0], lanes[0]) if x is None else x,
        _values(three[1], lanes[1]) if y is None else y,
        np.zeros(lanes[2], CTYPES[three[2]]) if z is None else z,
        three,
        rtol=rtol,
    )


LOAD = "Reg::RegTensor<A> ra; Reg::RegTensor<B> rb; Reg::LoadAlign(ra, a); Reg::LoadAlign(rb, b);"
MASKED = "uint32_t count = n - 3; auto m = Reg::UpdateMask<A>(count);"
ALL = "auto m = Reg::CreateMask<C>();"
STORE = "auto every = Reg::CreateMask<C>(); Reg::StoreAlign(c, rc, every);"


def _first(result: np.ndarray, count: int) -> np.ndarray:
    return np.where(np.arange(result.size) < count, result, 0).astype(result.dtype)


def _arithmetic() -> Iterator[Case]:
    """The last three lanes are left out of a full mask, and are 0."""
    code = f"{LOAD} {MASKED} Reg::RegTensor<C> rc; "
    binary: dict[str, Callable[..., np.ndarray]] = {
        "Add": np.add,
        "Sub": np.subtract,
        "Mul": np.multiply,
        "Max": np.maximum,
        "Min": np.minimum,
        "AbsSub": lambda x, y: np.abs(x - y),
    }
    for ctype in ("float", "half", "int32_t", "int16_t", "int64_t"):
        for name, f in binary.items():
            yield _case(
                name,
                f"{code} Reg::{name}(rc, ra, rb, m); {STORE}",
                lambda x, y, z, f=f: _first(f(x, y), x.size - 3),
                ctype,
            )
    for name, f in {"Div": np.divide, "Prelu": lambda x, y: np.where(x > 0, x, x * y)}.items():
        yield _case(
            name, f"{code} Reg::{name}(rc, ra, rb, m); {STORE}", lambda x, y, z, f=f: _first(f(x, y), x.size - 3)
        )
    unary: dict[str, tuple[Callable[..., np.ndarray], float]] = {
        "Abs": (np.abs, 0),
        "Neg": (np.negative, 0),
        "Relu": (lambda x: np.maximum(x, 0), 0),
        "Exp": (np.exp, 1e-6),
    }
    for name, (f, rtol) in unary.items():
        yield _case(
            name, f"{code} Reg::{name}(rc, ra, m); {STORE}", lambda x, y, z, f=f: _first(f(x), x.size - 3), rtol=rtol
        )
    for name, f in {"Ln": np.log, "Log": np.log, "Log2": np.log2, "Log10": np.log10, "Sqrt": np.sqrt}.items():
        yield _case(
            name,
            f"{code} Reg::Abs(ra, ra, m); Reg::{name}(rc, ra, m); {STORE}",
            lambda x, y, z, f=f: _first(f(np.abs(x)), x.size - 3),
            rtol=1e-6,
        )
    yield _case(
        "Sqrt of a precision",
        "static constexpr Reg::SqrtSpecificMode exact = {Reg::MaskMergeMode::ZEROING, false, "
        f"SqrtAlgo::PRECISION_0ULP_FTZ_FALSE}}; {code} Reg::Abs(ra, ra, m); Reg::Sqrt<float, &exact>(rc, ra, m); {STORE}",
        lambda x, y, z: _first(np.sqrt(np.abs(x)), x.size - 3),
        rtol=1e-6,
    )
    scalar: dict[str, Callable[..., np.ndarray]] = {
        "Adds": lambda x: x + 2,
        "Muls": lambda x: x * 2,
        "Maxs": lambda x: np.maximum(x, 2),
        "Mins": lambda x: np.minimum(x, 2),
        "LeakyRelu": lambda x: np.where(x > 0, x, x * 2),
    }
    for name, f in scalar.items():
        yield _case(
            name,
            f"{code} Reg::{name}(rc, ra, A(2), m); {STORE}",
            lambda x, y, z, f=f: _first(f(x), x.size - 3).astype(x.dtype),
        )
    for ctype in ("int32_t", "uint32_t", "int16_t"):
        for name, f in {"ShiftLefts": np.left_shift, "ShiftRights": np.right_shift}.items():
            yield _case(
                name,
                f"{code} Reg::{name}(rc, ra, int16_t(3), m); {STORE}",
                lambda x, y, z, f=f: _first(f(x, x.dtype.type(3)), x.size - 3),
                ctype,
            )
            yield _case(
                name[:-1],
                f"{code} Reg::{name[:-1]}(rc, ra, rb, m); {STORE}",
                lambda x, y, z, f=f: _first(f(x, y), x.size - 3),
                ctype,
                y=random.integers(0, 8, WIDTH // CTYPES[ctype].itemsize).astype(CTYPES[ctype]),
            )
    for name, f in {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}.items():
        yield _case(
            name,
            f"{code} Reg::{name}(rc, ra, rb, m); {STORE}",
            lambda x, y, z, f=f: _first(f(x, y), x.size - 3),
            "int16_t",
        )
    yield _case("Not", f"{code} Reg::Not(rc, ra, m); {STORE}", lambda x, y, z: _first(~x, x.size - 3), "int32_t")


def _bytes_of(count: int, dtype: np.dtype) -> np.ndarray:
    return np.full(count * dtype.itemsize, KEPT, np.uint8).view(dtype)


def _fused() -> Iterator[Case]:
    begin = f"{LOAD} {ALL} Reg::RegTensor<C> rc; Reg::LoadAlign(rc, c);"
    z = _values("float", 64)
    wide = z.astype(np.float64)
    yield _case(
        "MulAddDst",
        f"{begin} Reg::MulAddDst(rc, ra, rb, m); {STORE}",
        lambda x, y, _: (x.astype(np.float64) * y + wide).astype(np.float32),
        z=z,
    )
    yield _case(
        "MulDstAdd",
        f"{begin} Reg::MulDstAdd(rc, ra, rb, m); {STORE}",
        lambda x, y, _: (wide * x + y).astype(np.float32),
        z=z,
    )
    yield _case(
        "the older names of both",
        f"{begin} Reg::Mula(rc, ra, rb, m); Reg::FusedMulDstAdd(rc, ra, rb, m); {STORE}",
        lambda x, y, _: ((x.astype(np.float64) * y + wide).astype(np.float32).astype(np.float64) * x + y).astype(
            np.float32
        ),
        z=z,
    )
    yield _case(
        "Axpy",
        f"{begin} Reg::Axpy(rc, ra, 1.5f, m); {STORE}",
        lambda x, y, _: (x.astype(np.float64) * 1.5 + wide).astype(np.float32),
        z=z,
    )
    yield _case("ExpSub", f"{begin} Reg::ExpSub(rc, ra, rb, m); {STORE}", lambda x, y, z: np.exp(x - y), rtol=1e-6)
    yield _case(
        "ExpSub-odd",
        f"{LOAD} auto m = Reg::CreateMask<half>(); Reg::RegTensor<C> rc; "
        f"Reg::ExpSub<float, half, Reg::RegLayout::ONE>(rc, ra, rb, m); {STORE}",
        lambda x, y, z: np.exp(x[1::2].astype(np.float32) - y[1::2].astype(np.float32)),
        ("half", "half", "float"),
        rtol=1e-6,
    )
    high = random.integers(-(2**31), 2**31, 64).astype(np.int32)
    yield _case(
        "Mull",
        f"{LOAD} {ALL} Reg::RegTensor<C> rc, rd; Reg::Mull(rc, rd, ra, rb, m); "
        f"{STORE} Reg::StoreAlign(c + 64, rd, every);",
        lambda x, y, z: np.concatenate(
            ((x.astype(np.int64) * y).astype(np.int32), (x.astype(np.int64) * y >> 32).astype(np.int32))
        ),
        "int32_t",
        x=high,
        y=high[::-1].copy(),
        z=np.zeros(128, np.int32),
    )
    wide_x, wide_y = (random.integers(-(2**62), 2**62, 64) for _ in range(2))
    halves = (
        "Reg::RegTensor<A> xl, xh, yl, yh, rc, rd; Reg::LoadAlign<A, Reg::LoadDist::DIST_DINTLV_B32>(xl, xh, a); "
        "Reg::LoadAlign<A, Reg::LoadDist::DIST_DINTLV_B32>(yl, yh, b);"
    )
    for name, carried, f in (("Add", "AddC", np.add), ("Sub", "SubC", np.subtract)):
        yield _case(
            carried,
            f"{halves} {ALL} Reg::MaskReg carry; Reg::{name}(carry, rc, xl, yl, m); "
            f"Reg::{carried}(carry, rd, xh, yh, carry, m);"
            "Reg::StoreAlign<C, Reg::StoreDist::DIST_INTLV_B32>(c, rc, rd, m);",
            lambda x, y, z, f=f: f(x.view(np.int64), y.view(np.int64)).view(np.int32),
            "int32_t",
            x=wide_x.view(np.int32),
            y=wide_y.view(np.int32),
            z=np.zeros(128, np.int32),
        )


def _masks() -> Iterator[Case]:
    """A mask is seen by what Select takes through it."""
    show = (
        "Reg::RegTensor<C> one, none, rc; Reg::Duplicate(one, C(1)); Reg::Duplicate(none, C(0)); "
        "Reg::Select(rc, one, none, m);" + STORE
    )
    lanes = np.arange(128)
    patterns = {
        "ALL": lanes >= 0,
        "VL1": lanes < 1,
        "VL2": lanes < 2,
        "VL3": lanes < 3,
        "VL4": lanes < 4,
        "VL8": lanes < 8,
        "VL16": lanes < 16,
        "VL32": lanes < 32,
        "VL64": lanes < 64,
        "VL128": lanes < 128,
        "M3": lanes % 3 == 0,
        "M4": lanes % 4 == 0,
        "H": lanes < 64,
        "Q": lanes < 32,
        "ALLF": lanes < 0,
    }
    for name, mask in patterns.items():
        yield _case(
            f"CreateMask-{name}",
            f"auto m = Reg::CreateMask<C, Reg::MaskPattern::{name}>(); {show}",
            lambda x, y, z, mask=mask: mask.astype(np.int16),
            "int16_t",
        )
    yield _case(
        "UpdateMask",
        "uint32_t left = 70;  auto m = Reg::UpdateMask<C>(left); if (left != 6) Trap(); m = Reg::UpdateMask<C>(left); "
        "if (left != 0) Trap();" + show,
        lambda x, y, z: (np.arange(64) < 6).astype(np.int32),
        "int32_t",
    )
    two = (
        "Reg::MaskReg m; auto p = Reg::CreateMask<C, Reg::MaskPattern::M3>(), q = Reg::CreateMask<C, "
        "Reg::MaskPattern::M4>(), w = Reg::CreateMask<C, Reg::MaskPattern::VL64>();"
    )
    third, fourth, within = patterns["M3"], patterns["M4"], patterns["VL64"]
    for names, call, mask in (
        (("And", "MaskAnd"), "(m, p, q, w)", third & fourth & within),
        (("Or", "MaskOr"), "(m, p, q, w)", (third | fourth) & within),
        (("Xor", "MaskXor"), "(m, p, q, w)", (third ^ fourth) & within),
        (("Not", "MaskNot"), "(m, p, w)", ~third & within),
        (("Move", "MaskMov"), "(m, p, w)", third & within),
        (("Select", "MaskSel"), "(m, p, q, w)", np.where(within, third, fourth)),
    ):
        for name in names:
            yield _case(
                name + "-mask",
                f"{two} Reg::{name}{call}; {show}",
                lambda x, y, z, mask=mask: mask.astype(np.int16),
                "int16_t",
            )
    for part, begin in (("LOWEST", 0), ("HIGHEST", 64)):
        for name in ("UnPack", "MaskUnPack"):
            yield _case(
                f"{name}-mask-{part}",
                f"Reg::MaskReg m; auto p = Reg::CreateMask<half, Reg::MaskPattern::M3>(); "
                f"Reg::{name}<Reg::HighLowPart::{part}>(m, p); {show}",
                lambda x, y, z, begin=begin: third[begin : begin + 64].astype(np.int32),
                "int32_t",
            )
        for name in ("Pack", "MaskPack"):
            yield _case(
                f"{name}-mask-{part}",
                f"Reg::MaskReg m; auto p = Reg::CreateMask<float, Reg::MaskPattern::M3>(); "
                f"Reg::{name}<Reg::HighLowPart::{part}>(m, p); {show}",
                lambda x, y, z, begin=begin: np.roll(np.where(np.arange(128) < 64, third, 0), begin).astype(np.int16),
                "int16_t",
            )
    for name in ("Interleave", "MaskInterleave", "DeInterleave", "MaskDeInterleave"):
        both = np.concatenate((third, fourth))
        order = np.stack((third, fourth), 1).ravel() if "DeI" not in name else np.concatenate((both[::2], both[1::2]))
        yield _case(
            name + "-mask",
            f"{two} Reg::MaskReg r; Reg::{name}<C>(m, r, p, q); {{ {show} }} m = r; Reg::RegTensor<C> one, none, rc; "
            f"Reg::Duplicate(one, C(1)); Reg::Duplicate(none, C(0));"
            "Reg::Select(rc, one, none, m); auto every = Reg::CreateMask<C>(); Reg::StoreAlign(c + 128, rc, every);",
            lambda x, y, z, order=order: order.astype(np.int16),
            "int16_t",
            z=np.zeros(256, np.int16),
        )
    bits = random.integers(0, 256, 256).astype(np.uint8)
    unpacked = np.unpackbits(bits, bitorder="little").astype(bool)
    yield _case(
        "MaskGenWithRegTensor",
        f"Reg::RegTensor<C> ra; Reg::LoadAlign(ra, (__ubuf__ C*)a); Reg::MaskReg m; "
        f"Reg::MaskGenWithRegTensor<C, 3>(m, ra); {show}",
        lambda x, y, z: unpacked[3 * 64 : 4 * 64].astype(np.int32),
        ("uint8_t", "uint8_t", "int32_t"),
        x=bits,
    )
    for dist, mask in (("NORM", unpacked[:256]), ("US", np.repeat(unpacked[:128], 2)), ("DS", unpacked[:512:2])):
        yield _case(
            f"LoadAlign-mask-{dist}",
            f"Reg::MaskReg m; Reg::LoadAlign<uint8_t, Reg::MaskDist::DIST_{dist}>(m, a); {show}",
            lambda x, y, z, mask=mask: mask.astype(np.uint8),
            "uint8_t",
            x=bits,
        )
    yield _case(
        "StoreAlign-mask",
        "auto m = Reg::CreateMask<half, Reg::MaskPattern::M3>(); "
        "Reg::StoreAlign<uint8_t, Reg::MaskDist::DIST_PACK>(c, m); Reg::StoreAlign(c + 32, m);",
        lambda x, y, z: np.concatenate(
            (
                np.packbits(third, bitorder="little"),
                np.zeros(16, np.uint8),
                np.packbits(np.stack((third, third * 0), 1).ravel(), bitorder="little"),
            )
        ),
        "uint8_t",
        z=np.zeros(64, np.uint8),
    )
    yield _case(
        "MoveMask",
        f"SetVectorMask<half>(uint64_t(5), uint64_t(3)); auto m = Reg::MoveMask<half>(); ResetMask(); {show}",
        lambda x, y, z: np.isin(np.arange(128), (0, 1, 64, 66)).astype(np.int16),
        "int16_t",
    )


def _merging() -> Iterator[Case]:
    begin = (
        "Reg::RegTensor<A> ra, rc; Reg::LoadAlign(ra, a); Reg::LoadAlign(rc, c); "
        "auto m = Reg::CreateMask<A, Reg::MaskPattern::M3>();"
    )
    third = np.arange(64) % 3 == 0
    z = _values("float", 64)
    for name, call, value in (
        ("Move", "Move(rc, ra, m)", lambda x: x),
        ("Copy", "Copy<A, Reg::MaskMergeMode::MERGING>(rc, ra, m)", lambda x: x),
        ("Duplicate", "Duplicate<A, Reg::MaskMergeMode::MERGING>(rc, A(7), m)", lambda x: np.float32(7)),
        ("Add", "Add<A, Reg::MaskMergeMode::MERGING>(rc, ra, ra, m)", lambda x: x + x),
    ):
        yield _case(
            f"{name}-merging", f"{begin} Reg::{call}; {STORE}", lambda x, y, z, f=value: np.where(third, f(x), z), z=z
        )
    yield _case(
        "never-written",
        f"Reg::RegTensor<A> ra, rc; Reg::LoadAlign(ra, a); auto m = Reg::CreateMask<A, Reg::MaskPattern::M3>(); "
        f"Reg::Move(rc, ra, m); {STORE}",
        lambda x, y, z: np.where(third, x, _bytes_of(64, x.dtype)),
    )


def _comparisons() -> Iterator[Case]:
    show = (
        "Reg::RegTensor<C> one, none, rc; Reg::Duplicate(one, C(1)); Reg::Duplicate(none, C(0)); "
        "Reg::Select(rc, one, none, r);" + STORE
    )
    operators = {
        "LT": np.less,
        "GT": np.greater,
        "EQ": np.equal,
        "LE": np.less_equal,
        "GE": np.greater_equal,
        "NE": np.not_equal,
    }
    y = _values("int32_t", 64)
    x = np.where(np.arange(64) % 2, y, y + np.arange(64) % 5 - 2).astype(np.int32)
    for mode, f in operators.items():
        yield _case(
            f"Compare-{mode}",
            f"{LOAD} {MASKED} Reg::MaskReg r; Reg::Compare<A, CMPMODE::{mode}>(r, ra, rb, m); {show}",
            lambda x, y, z, f=f: _first(f(x, y).astype(np.int32), 61),
            "int32_t",
            x=x,
            y=y,
        )
        for name in ("Compares", "CompareScalar"):
            yield _case(
                f"{name}-{mode}",
                f"{LOAD} {MASKED} Reg::MaskReg r; Reg::{name}<A, CMPMODE::{mode}>(r, ra, A(1), m); {show}",
                lambda x, y, z, f=f: _first(f(x, 1).astype(np.int32), 61),
                "int32_t",
                x=random.integers(0, 3, 64).astype(np.int32),
            )
    yield _case(
        "Select",
        f"{LOAD} auto m = Reg::CreateMask<A, Reg::MaskPattern::M3>(); Reg::RegTensor<C> rc; "
        f"Reg::Select(rc, ra, rb, m); {STORE}",
        lambda x, y, z: np.where(np.arange(64) % 3 == 0, x, y),
    )


def _copies() -> Iterator[Case]:
    begin = "Reg::RegTensor<A> ra, rd; auto every = Reg::CreateMask<A>();"
    whole = lambda ctype: _values(ctype, 4 * WIDTH // CTYPES[ctype].itemsize)  # noqa: E731
    zeros = lambda x: np.zeros_like(x)  # noqa: E731
    loads: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
        "NORM": ("float", lambda x: x[:64]),
        "BRC_B8": ("int8_t", lambda x: np.full(256, x[0])),
        "BRC_B16": ("half", lambda x: np.full(128, x[0])),
        "BRC_B32": ("float", lambda x: np.full(64, x[0])),
        "US_B8": ("int8_t", lambda x: np.repeat(x[:128], 2)),
        "US_B16": ("int16_t", lambda x: np.repeat(x[:64], 2)),
        "DS_B8": ("int8_t", lambda x: x[:512:2]),
        "DS_B16": ("half", lambda x: x[:256:2]),
        "UNPACK_B8": ("int8_t", lambda x: np.stack((x[:128], zeros(x[:128])), 1).ravel()),
        "UNPACK_B16": ("half", lambda x: np.stack((x[:64], zeros(x[:64])), 1).ravel()),
        "UNPACK_B32": ("int32_t", lambda x: np.stack((x[:32], zeros(x[:32])), 1).ravel()),
        "UNPACK4_B8": ("int8_t", lambda x: np.stack((x[:64], *[zeros(x[:64])] * 3), 1).ravel()),
        "BLK": ("float", lambda x: np.tile(x[:8], 8)),
        "E2B_B16": ("half", lambda x: np.repeat(x[:8], 16)),
        "E2B_B32": ("float", lambda x: np.repeat(x[:8], 8)),
    }
    for dist, (ctype, f) in loads.items():
        for name in ("LoadAlign", "DataCopy"):
            yield _case(
                f"{name}-{dist}",
                f"{begin} Reg::{name}<A, Reg::LoadDist::DIST_{dist}>(ra, a); Reg::StoreAlign(c, ra, every);",
                lambda x, y, z, f=f: f(x),
                ctype,
                x=whole(ctype),
            )
    for size, ctype in ((8, "int8_t"), (16, "half"), (32, "float")):
        yield _case(
            f"DINTLV-{size}",
            f"{begin} Reg::LoadAlign<A, Reg::LoadDist::DIST_DINTLV_B{size}>(ra, rd, a); "
            f"Reg::StoreAlign(c, ra, every); Reg::StoreAlign(c + {2048 // size}, rd, every);",
            lambda x, y, z: np.concatenate((x[: z.size : 2], x[1 : z.size : 2])),
            ctype,
            x=whole(ctype),
            z=np.zeros(4096 // size, CTYPES[ctype]),
        )
        yield _case(
            f"INTLV-{size}",
            f"{begin} Reg::LoadAlign(ra, a); Reg::LoadAlign(rd, a + {2048 // size}); "
            f"Reg::StoreAlign<A, Reg::StoreDist::DIST_INTLV_B{size}>(c, ra, rd, every);",
            lambda x, y, z: np.stack(np.split(x[: z.size], 2), 1).ravel(),
            ctype,
            x=whole(ctype),
            z=np.zeros(4096 // size, CTYPES[ctype]),
        )
    packs = {
        "PACK_B16": ("int16_t", 1),
        "PACK_B32": ("int32_t", 2),
        "PACK_B64": ("int64_t", 4),
        "PACK4_B32": ("uint32_t", 1),
    }
    for dist, (ctype, kept) in packs.items():
        yield _case(
            f"StoreAlign-{dist}",
            f"Reg::RegTensor<A> ra; Reg::LoadAlign(ra, a); {MASKED} Reg::StoreAlign<A, "
            f"Reg::StoreDist::DIST_{dist}>((__ubuf__ A*)c, ra, m);",
            lambda x, y, z, kept=kept: np.where(
                np.arange(z.size) < (x.size - 3) * kept,
                np.resize(x.view(np.uint8).reshape(x.size, -1)[:, :kept].ravel(), z.size),
                9,
            ).astype(np.uint8),
            (ctype, ctype, "uint8_t"),
            z=np.full(256, 9, np.uint8),
        )
    for size, ctype in ((8, "int8_t"), (16, "half"), (32, "float")):
        yield _case(
            f"FIRST-{size}",
            f"{begin} Reg::LoadAlign(ra, a); auto none = Reg::CreateMask<A, Reg::MaskPattern::ALLF>(); "
            f"Reg::StoreAlign<A, Reg::StoreDist::DIST_FIRST_ELEMENT_B{size}>(c + 3, ra, none);",
            lambda x, y, z: np.where(np.arange(z.size) == 3, x[0], 0).astype(x.dtype),
            ctype,
        )
    yield _case(
        "StoreAlign-masked",
        f"Reg::RegTensor<A> ra; Reg::LoadAlign(ra, a); {MASKED} Reg::StoreAlign<A, Reg::StoreDist::DIST_NORM_B32>(c, "
        f"ra, m);",
        lambda x, y, z: np.where(np.arange(64) < 61, x, z),
        z=_values("float", 64),
    )
    loop = "Reg::RegTensor<A> ra; auto every = Reg::CreateMask<A>(); __ubuf__ A* p = a; __ubuf__ C* q = c;"
    four = whole("float")
    yield _case(
        "post-update",
        f"{loop} for (uint16_t i = 0; i < 4; ++i) {{ Reg::LoadAlign<A, Reg::PostLiteral::POST_MODE_UPDATE>(ra, p, 64);"
        "Reg::StoreAlign<A, Reg::PostLiteral::POST_MODE_UPDATE>(q, ra, 64, every); "
        "} if (p != a + 256 || q != c + 256) Trap();",
        lambda x, y, z: x,
        x=four,
        z=np.zeros(256, np.float32),
    )
    yield _case(
        "CreateAddrReg",
        f"{loop} for (uint16_t i = 0; i < 2; ++i) for (uint16_t j = 0; j < 2; "
        f"++j) {{ Reg::AddrReg at = Reg::CreateAddrReg<A>(i, 128, j, 64);"
        "Reg::LoadAlign(ra, a, at); Reg::StoreAlign(c, ra, at, every); }",
        lambda x, y, z: x,
        x=four,
        z=np.zeros(256, np.float32),
    )
    block = "Reg::DataCopyMode::DATA_BLOCK_COPY"
    yield _case(
        "blocks",
        f"{loop} auto m = Reg::CreateMask<A, Reg::MaskPattern::VL32>(); Reg::LoadAlign<A, {block}>(ra, a, 2, m); "
        f"Reg::StoreAlign<A, {block}>(c, ra, 3, every);",
        lambda x, y, z: np.concatenate(
            [
                np.concatenate(
                    (x[i * 16 : i * 16 + 8] if i < 4 else np.zeros(8, np.float32), np.full(16, 9, np.float32))
                )
                for i in range(8)
            ]
        ),
        x=four,
        z=np.full(192, 9, np.float32),
    )
    yield _case(
        "blocks-update",
        f"{loop} for (uint16_t i = 0; i < 2; ++i) {{ Reg::LoadAlign<A, {block}, "
        f"Reg::PostLiteral::POST_MODE_UPDATE>(ra, p, 2, 1, every);"
        f"Reg::StoreAlign<A, {block}, Reg::PostLiteral::POST_MODE_UPDATE>(q, ra, 1, 8, every); }}",
        lambda x, y, z: np.concatenate([x[(2 * i + j) * 8 : (2 * i + j + 1) * 8] for j in range(2) for i in range(8)]),
        x=four,
        z=np.zeros(128, np.float32),
    )
    for load, pre, store, post in (
        ("LoadUnAlign", "LoadUnAlignPre", "StoreUnAlign", "StoreUnAlignPost"),
        ("DataCopyUnAlign", "DataCopyUnAlignPre", "DataCopyUnAlign", "DataCopyUnAlignPost"),
    ):
        yield _case(
            f"{load}-{store}",
            f"{loop} Reg::UnalignRegForLoad u; Reg::UnalignRegForStore v; p = a + 3; q = c + 5; Reg::{pre}(u, p);"
            f"for (uint16_t i = 0; i < 3; ++i) {{ Reg::{load}(ra, u, p, 64u); "
            f"Reg::{store}(q, ra, v, i == 2 ? 17u : 64u); }} Reg::{post}(q, v, 0);",
            lambda x, y, z: np.concatenate((z[:5], x[3 : 3 + 145], z[150:])),
            x=four,
            z=_values("float", 256),
        )
    yield _case(
        "unaligned-address",
        f"{loop} Reg::UnalignReg u, v; Reg::LoadUnAlignPre(u, a + 3); Reg::LoadUnAlign(ra, u, a + 3); "
        f"Reg::StoreUnAlign(q, ra, v, 64u); Reg::StoreUnAlignPost(q, v, 0);",
        lambda x, y, z: x[3:67],
        x=four,
    )
    yield _case(
        "Load-Store",
        f"{loop} Reg::Load(ra, a + 3); Reg::Store(c + 1, ra, 5);",
        lambda x, y, z: np.concatenate((z[:1], x[3:8], z[6:])),
        x=four,
        z=_values("float", 64),
    )
    index = random.permutation(64).astype(np.uint32)
    indexed = "Reg::RegTensor<A> ra; Reg::RegTensor<B> rb; Reg::LoadAlign(rb, b);"
    for name in ("Gather", "DataCopyGather"):
        yield _case(
            name,
            f"{indexed} {MASKED} Reg::{name}(ra, a, rb, m); auto every = Reg::CreateMask<A>(); "
            f"Reg::StoreAlign(c, ra, every);",
            lambda x, y, z: _first(x[y], 125),
            ("half", "uint16_t", "half"),
            x=_values("half", 128),
            y=random.integers(0, 128, 128).astype(np.uint16),
        )
    yield _case(
        "Gather-bytes",
        "Reg::RegTensor<C> rc; Reg::RegTensor<B> rb; Reg::LoadAlign(rb, b); auto m = Reg::CreateMask<C>(); "
        "Reg::Gather(rc, a, rb, m); Reg::StoreAlign(c, rc, m);",
        lambda x, y, z: x[y].view(np.uint8).astype(np.int16),
        ("int8_t", "uint16_t", "int16_t"),
        y=random.integers(0, 256, 128).astype(np.uint16),
    )
    for name in ("Scatter", "DataCopyScatter"):
        yield _case(
            name,
            f"{indexed} Reg::LoadAlign(ra, a); {MASKED} Reg::{name}(c, ra, rb, m);",
            lambda x, y, z: _scattered(x[:61], y[:61]),
            ("float", "uint32_t", "float"),
            y=index,
        )
    yield _case(
        "Scatter-bytes",
        f"{indexed} Reg::LoadAlign(ra, a); auto m = Reg::CreateMask<half>(); Reg::Scatter(c, ra, rb, m);",
        lambda x, y, z: np.concatenate((x[::2][np.argsort(y)], z[128:])),
        ("int8_t", "uint16_t", "int8_t"),
        y=random.permutation(128).astype(np.uint16),
    )
    for name in ("GatherB", "DataCopyGatherB"):
        yield _case(
            name,
            f"{indexed} auto m = Reg::CreateMask<A, Reg::MaskPattern::VL32>(); Reg::{name}(ra, a, rb, m); "
            f"auto every = Reg::CreateMask<A>(); Reg::StoreAlign(c, ra, every);",
            lambda x, y, z: np.concatenate((*(x[i // 4 : i // 4 + 8] for i in y[:4]), np.zeros(32, np.float32))),
            ("float", "uint32_t", "float"),
            y=(random.permutation(64) % 8 * 32).astype(np.uint32),
        )
    yield _case(
        "Gather-register",
        f"{indexed} Reg::RegTensor<A> rc; Reg::LoadAlign(ra, a); Reg::Gather(rc, ra, rb); "
        f"auto every = Reg::CreateMask<A>(); Reg::StoreAlign(c, rc, every);",
        lambda x, y, z: x[y],
        ("float", "uint32_t", "float"),
        y=random.integers(0, 64, 64).astype(np.uint32),
    )


def _scattered(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    result = np.zeros(64, values.dtype)
    result[index] = values
    return result


def _trait(layout: str = "UNKNOWN", saturation: str = "UNKNOWN", rounding: str = "UNKNOWN") -> str:
    return (
        f"static constexpr Reg::CastTrait trait = {{Reg::RegLayout::{layout}, Reg::SatMode::{saturation}, "
        f"Reg::MaskMergeMode::ZEROING, RoundMode::{rounding}}};"
    )


def _casts() -> Iterator[Case]:
    cast = (
        "Reg::RegTensor<A> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a); auto m = Reg::CreateMask<A>(); "
        "Reg::Cast<C, A, trait>(rc, ra, m);" + STORE
    )
    rounding: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "CAST_RINT": np.rint,
        "CAST_FLOOR": np.floor,
        "CAST_CEIL": np.ceil,
        "CAST_TRUNC": np.trunc,
        "CAST_ROUND": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    }
    halves = random.integers(-20, 20, 64).astype(np.float32) / 2
    for name, f in rounding.items():
        yield _case(
            f"Cast-{name}",
            _trait("UNKNOWN", "SAT", name) + cast,
            lambda x, y, z, f=f: f(x).astype(np.int32),
            ("float", "float", "int32_t"),
            x=halves,
        )
        yield _case(
            f"Truncate-{name}",
            f"{LOAD} {ALL} Reg::RegTensor<C> rc; Reg::Truncate<A, RoundMode::{name}>(rc, ra, m); {STORE}",
            lambda x, y, z, f=f: f(x),
            x=halves,
        )
    for place, layout in enumerate(("ZERO", "ONE", "TWO", "THREE")):
        if place < 2:
            yield _case(
                f"Cast-wide-{layout}",
                _trait(layout) + cast,
                lambda x, y, z, p=place: x[p::2].astype(np.float32),
                ("half", "half", "float"),
            )
            yield _case(
                f"Cast-narrow-{layout}",
                _trait(layout, "NO_SAT", "CAST_RINT") + cast,
                lambda x, y, z, p=place: _spread(x.astype(np.float16), 2, p),
                ("float", "float", "half"),
            )
            yield _case(
                f"Cast-int64-{layout}",
                _trait(layout) + cast,
                lambda x, y, z, p=place: x[p::2].astype(np.int64),
                ("int32_t", "int32_t", "int64_t"),
            )
        yield _case(
            f"Cast-bytes-{layout}",
            _trait(layout) + cast,
            lambda x, y, z, p=place: x[p::4].astype(np.int32),
            ("int8_t", "int8_t", "int32_t"),
        )
        yield _case(
            f"Cast-to-bytes-{layout}",
            _trait(layout, "SAT") + cast,
            lambda x, y, z, p=place: _spread(np.clip(x, 0, 255).astype(np.uint8), 4, p),
            ("int32_t", "int32_t", "uint8_t"),
            x=random.integers(-500, 500, 64).astype(np.int32),
        )
    beyond = np.array([257, 300, -3, 255, 70000, -70000, 5, 1] * 8, np.int32)
    yield _case(
        "Cast-truncates",
        _trait("ZERO", "NO_SAT") + cast,
        lambda x, y, z: _spread(x.astype(np.uint8), 4, 0),
        ("int32_t", "int32_t", "uint8_t"),
        x=beyond,
    )
    yield _case(
        "Cast-float-truncates",
        _trait("ZERO", "NO_SAT", "CAST_TRUNC") + cast,
        lambda x, y, z: _spread(x.astype(np.int32).astype(np.int16), 2, 0),
        ("float", "float", "int16_t"),
        x=beyond.astype(np.float32),
    )
    yield _case(
        "Cast-float-saturates",
        _trait("ZERO", "SAT", "CAST_TRUNC") + cast,
        lambda x, y, z: _spread(np.clip(x, -32768, 32767).astype(np.int16), 2, 0),
        ("float", "float", "int16_t"),
        x=beyond.astype(np.float32),
    )
    special = np.array([np.nan, np.inf, -np.inf, 1e9, -1e9, 1, 0, -1] * 8, np.float32)
    yield _case(
        "Cast-half-saturates",
        _trait("ZERO", "SAT", "CAST_RINT") + cast,
        lambda x, y, z: _spread(np.where(np.isnan(x), 0, np.clip(x, -65504, 65504)).astype(np.float16), 2, 0),
        ("float", "float", "half"),
        x=special,
    )
    yield _case(
        "Cast-half-overflows",
        _trait("ZERO", "NO_SAT", "CAST_RINT") + cast,
        lambda x, y, z: _spread(x.astype(np.float16), 2, 0),
        ("float", "float", "half"),
        x=special,
    )
    yield _case(
        "Cast-unsigned",
        _trait("ZERO") + cast,
        lambda x, y, z: np.maximum(x[::2], 0).astype(np.uint32),
        ("int16_t", "int16_t", "uint32_t"),
    )
    yield _case(
        "Cast-masked",
        _trait("ZERO") + "Reg::RegTensor<A> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a); uint32_t count = 11; "
        "auto m = Reg::UpdateMask<C>(count);"
        f"Reg::Cast<C, A, trait>(rc, ra, m); {STORE}",
        lambda x, y, z: _first(x[::2].astype(np.float32), 11),
        ("half", "half", "float"),
    )
    two = (
        "Reg::RegTensor<A, Reg::RegTraitNumTwo> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a); "
        "uint32_t count = 61; auto m = Reg::UpdateMask<A, Reg::RegTraitNumTwo>(count);"
    )
    yield _case(
        "Cast-two-registers",
        _trait("UNKNOWN", "UNKNOWN", "CAST_RINT") + f"{two} Reg::Cast<C, A, trait>(rc, ra, m); {STORE}",
        lambda x, y, z: _first(x.astype(np.float32), 61),
        ("int64_t", "int64_t", "float"),
        x=_values("int64_t", 64),
    )
    yield _case(
        "MulsCast",
        f"Reg::RegTensor<A> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a); auto m = Reg::CreateMask<A>(); "
        f"Reg::MulsCast(rc, ra, 0.5f, m); {STORE}",
        lambda x, y, z: _spread((x * np.float32(0.5)).astype(np.float16), 2, 0),
        ("float", "float", "half"),
        x=random.integers(-50, 50, 64).astype(np.float32),
    )


def _spread(values: np.ndarray, step: int, place: int) -> np.ndarray:
    result = np.zeros(values.size * step, values.dtype)
    result[place::step] = values
    return result


def _orders() -> Iterator[Case]:
    both = f"{LOAD} Reg::RegTensor<C> rc, rd; {{}} {STORE} Reg::StoreAlign(c + n, rd, every);"
    for ctype in ("half", "float", "int8_t"):
        z = np.zeros(2 * WIDTH // CTYPES[ctype].itemsize, CTYPES[ctype])
        yield _case(
            "Interleave",
            both.replace("{}", "Reg::Interleave(rc, rd, ra, rb);"),
            lambda x, y, z: np.stack((x, y), 1).ravel(),
            ctype,
            z=z,
        )
        yield _case(
            "DeInterleave",
            both.replace("{}", "Reg::DeInterleave(rc, rd, ra, rb);"),
            lambda x, y, z: np.concatenate((np.concatenate((x, y))[::2], np.concatenate((x, y))[1::2])),
            ctype,
            z=z,
        )
    yield _case(
        "Interleave-in-place",
        f"{LOAD} Reg::Interleave(ra, rb, ra, rb); auto m = Reg::CreateMask<C>(); Reg::StoreAlign(c, ra, m); "
        f"Reg::StoreAlign(c + n, rb, m);",
        lambda x, y, z: np.stack((x, y), 1).ravel(),
        z=np.zeros(128, np.float32),
    )
    single = "Reg::RegTensor<A> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a);"
    for begin, part in ((0, "LOWEST"), (64, "HIGHEST")):
        yield _case(
            f"Pack-{part}",
            f"{single} Reg::Pack<C, A, Reg::HighLowPart::{part}>(rc, ra); {STORE}",
            lambda x, y, z, b=begin: np.roll(np.concatenate((x.astype(np.uint16), np.zeros(64, np.uint16))), b),
            ("uint32_t", "uint32_t", "uint16_t"),
            x=random.integers(0, 2**32, 64).astype(np.uint32),
        )
        yield _case(
            f"UnPack-{part}",
            f"{single} Reg::UnPack<C, A, Reg::HighLowPart::{part}>(rc, ra); {STORE}",
            lambda x, y, z, b=begin: x[b : b + 64].astype(np.int32),
            ("int16_t", "int16_t", "int32_t"),
        )
    third = "auto m = Reg::CreateMask<A, Reg::MaskPattern::M3>();"
    for name in ("Squeeze", "GatherMask"):
        yield _case(
            name,
            f"{single} {third} Reg::{name}(rc, ra, m); {STORE}",
            lambda x, y, z: np.concatenate((x[::3], np.zeros(42, np.float32))),
        )
    yield _case(
        "Squeeze-stores",
        "Reg::RegTensor<A> ra, rc; Reg::UnalignRegForStore u; Reg::ClearSpr<SpecialPurposeReg::AR>();"
        + third
        + "for (uint16_t i = 0; i < 4; ++i) { Reg::LoadAlign(ra, a + i * 64); "
        "Reg::Squeeze<A, Reg::GatherMaskMode::STORE_REG>(rc, ra, m); Reg::StoreUnAlign(c, rc, u); }"
        "Reg::StoreUnAlignPost(c, u); if (Reg::GetSpr<SpecialPurposeReg::AR>() != 88 * 4) Trap();",
        lambda x, y, z: np.concatenate((x.reshape(4, 64)[:, ::3].ravel(), z[88:])),
        x=_values("float", 256),
        z=_values("float", 96),
    )
    yield _case(
        "Unsqueeze",
        f"{third} Reg::RegTensor<C> rc; Reg::Unsqueeze(rc, m); {STORE}",
        lambda x, y, z: ((np.arange(64) + 2) // 3).astype(np.int32),
        "int32_t",
    )
    yield _case(
        "Arange",
        f"Reg::RegTensor<C> rc; Reg::Arange(rc, C(120)); {STORE}",
        lambda x, y, z: (np.arange(256) + 120).astype(np.int8),
        "int8_t",
    )
    yield _case(
        "Arange-down",
        f"Reg::RegTensor<C> rc; Reg::Arange<C, Reg::IndexOrder::DECREASE_ORDER>(rc, C(2)); {STORE}",
        lambda x, y, z: np.arange(65, 1, -1).astype(np.float32),
    )
    yield _case(
        "Duplicate-first",
        f"{single} auto m = Reg::CreateMask<A>(); Reg::Duplicate(rc, ra, m); {STORE}",
        lambda x, y, z: np.full(64, x[0]),
    )


def _reductions() -> Iterator[Case]:
    single = f"Reg::RegTensor<A> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a); {MASKED}"
    for ctype in ("float", "int32_t", "half"):
        dtype = CTYPES[ctype]
        x = random.integers(-9, 9, WIDTH // dtype.itemsize).astype(dtype)
        for old in (False, True):
            name = "ReduceSum(" if old else "Reduce<ReduceType::SUM>("
            yield _case(
                name,
                f"{single} Reg::{name}rc, ra, m); {STORE}",
                lambda x, y, z: _spread_first(x[:-3].sum(keepdims=True, dtype=x.dtype)),
                ctype,
                x=x,
            )
            for word, where in (("Max", np.argmax), ("Min", np.argmin)):
                name = f"Reduce{word}(" if old else f"Reduce<ReduceType::{word.upper()}>("
                yield _case(
                    name,
                    f"{single} Reg::{name}rc, ra, m); {STORE}",
                    lambda x, y, z, f=where: _extreme(x, int(f(x[:-3]))),
                    ctype,
                    x=x,
                )
    yield _case(
        "Reduce-wide",
        f"{single} Reg::Reduce<ReduceType::SUM>(rc, ra, m); {STORE}",
        lambda x, y, z: _first(np.full(64, x[:-3].astype(np.int32).sum(), np.int32), 1),
        ("int16_t", "int16_t", "int32_t"),
    )
    for word, older, f in (
        ("SUM", "ReduceSumWithDataBlock", np.sum),
        ("MAX", "ReduceMaxWithDataBlock", np.max),
        ("MIN", "ReduceMinWithDataBlock", np.min),
    ):
        yield _case(
            f"ReduceDataBlock-{word}",
            f"Reg::RegTensor<A> ra, rc; Reg::LoadAlign(ra, a); "
            f"{ALL} Reg::ReduceDataBlock<ReduceType::{word}>(rc, ra, m); {STORE}",
            lambda x, y, z, f=f: np.concatenate((f(x.reshape(8, 8), 1), np.zeros(56, np.int32))).astype(np.int32),
            "int32_t",
        )
        yield _case(
            older,
            f"Reg::RegTensor<A> ra, rc; Reg::LoadAlign(ra, a); {ALL} Reg::{older}(rc, ra, m); {STORE}",
            lambda x, y, z, f=f: np.concatenate((f(x.reshape(8, 8), 1), np.zeros(56, np.int32))).astype(np.int32),
            "int32_t",
        )
    yield _case(
        "PairReduceElem",
        f"{single} Reg::PairReduceElem(rc, ra, m); {STORE}",
        lambda x, y, z: np.concatenate((_first(x, 61).reshape(-1, 2).sum(1), np.zeros(32, np.float32))).astype(
            np.float32
        ),
        x=random.integers(-9, 9, 64).astype(np.float32),
    )
    bytes_ = random.integers(0, 256, 256).astype(np.uint8)
    for bin_, begin in (("BIN0", 0), ("BIN1", 128)):
        for kind in ("FREQUENCY", "ACCUMULATE"):
            yield _case(
                f"Histograms-{bin_}-{kind}",
                "Reg::RegTensor<A> ra; Reg::RegTensor<C> rc; Reg::LoadAlign(ra, a); Reg::LoadAlign(rc, c);"
                + MASKED
                + f"Reg::Histograms<A, C, Reg::HistogramsBinType::{bin_}, Reg::HistogramsType::{kind}>(rc, ra, m); "
                f"{STORE}",
                lambda x, y, z, b=begin, k=kind: (z + _histogram(x[:-3], k)[b : b + 128]).astype(np.uint16),
                ("uint8_t", "uint8_t", "uint16_t"),
                x=bytes_,
                z=random.integers(0, 9, 128).astype(np.uint16),
            )


def _histogram(values: np.ndarray, kind: str) -> np.ndarray:
    counts = np.bincount(values, minlength=256)
    return counts if kind == "FREQUENCY" else np.cumsum(counts)


def _spread_first(value: np.ndarray) -> np.ndarray:
    return _first(np.full(WIDTH // value.itemsize, value[0]), 1)


def _extreme(x: np.ndarray, place: int) -> np.ndarray:
    result = np.zeros_like(x)
    result[0] = x[place]
    result.view(f"u{x.itemsize}")[1] = place
    return result


CASES = [
    *_arithmetic(),
    *_fused(),
    *_masks(),
    *_merging(),
    *_comparisons(),
    *_copies(),
    *_casts(),
    *_orders(),
    *_reductions(),
]


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(cases_.source(CASES), ARCHITECTURE)


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_case(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, CASES[index], tools.message)


BEGIN = (
    "__ubuf__ float* a = (__ubuf__ float*)x.GetPhyAddr(); Reg::RegTensor<float> r, s; "
    "Reg::MaskReg m = Reg::CreateMask<float>(); Reg::LoadAlign(r, a);"
)
BROKEN = {
    "unwritten source": ("Reg::Add(r, r, s, m);", r"Add: a source is a register that nothing was written to"),
    "unwritten stored": ("Reg::StoreAlign(a, s, m);", r"StoreAlign: srcReg is a register that nothing was written to"),
    "unwritten mask": (
        "Reg::MaskReg n; Reg::Add(r, r, r, n);",
        r"Add: the mask is a register that nothing was written to; use CreateMask",
    ),
    "unwritten address register": (
        "Reg::AddrReg at; Reg::LoadAlign(r, a, at);",
        r"LoadAlign: the AddrReg was never set; use CreateAddrReg",
    ),
    "unaligned load": (
        "Reg::LoadAlign(r, a + 1);",
        r"LoadAlign: unaligned: byte 4 .* not a multiple of 32; use LoadUnAlign",
    ),
    "unaligned store": ("Reg::DataCopy(a + 1, r, m);", r"DataCopy: unaligned: byte 4 "),
    "outside the buffer": (
        "Reg::LoadAlign(r, (__ubuf__ float*)gm.GetPhyAddr());",
        r"LoadAlign: the address is not in the unified buffer",
    ),
    "beyond the unified buffer": (
        "Reg::LoadAlign(r, a + 65536 - 32);",
        r"LoadAlign: bytes 262016 to 262272 of the unified buffer, which has 262144",
    ),
    "beyond its buffer": (
        "Reg::StoreAlign(a + 32, r, m);",
        r"StoreAlign: it writes 256 bytes where its buffer has 128; a mask",
    ),
    "unaligned without its block": (
        "Reg::UnalignReg u; Reg::LoadUnAlign(r, u, a + 1);",
        r"LoadUnAlign: its UnalignReg does not hold the block .* call LoadUnAlignPre",
    ),
    "kept for another place": (
        (
            "Reg::UnalignReg u; __ubuf__ float* p = a; Reg::StoreUnAlign(p, r, u, 5u); p = a + 16; "
            "Reg::StoreUnAlign(p, r, u, 5u);"
        ),
        r"StoreUnAlign: its UnalignReg keeps 20 bytes for another place; call StoreUnAlignPost",
    ),
    "squeezed twice": (
        (
            "Reg::Squeeze<float, Reg::GatherMaskMode::STORE_REG>(r, r, m); "
            "Reg::Squeeze<float, Reg::GatherMaskMode::STORE_REG>(r, r, m);"
        ),
        r"Squeeze: with STORE_REG each is followed by its StoreUnAlign",
    ),
    "gathered from outside": (
        "Reg::RegTensor<uint32_t> i; Reg::Duplicate(i, 70000u); Reg::Gather(r, a, i, m);",
        r"Gather: the address is not in the unified buffer",
    ),
    "negative shift": (
        "Reg::RegTensor<int32_t> i; Reg::Duplicate(i, 1); Reg::ShiftLefts(i, i, int16_t(-1), m);",
        r"ShiftLefts: it shifts by -1",
    ),
    "one register for two": ("Reg::Interleave(s, s, r, r);", r"Interleave: dstReg0 and dstReg1 are one register"),
    "too many elements": (
        "Reg::UnalignReg u; Reg::StoreUnAlign(a, r, u, 65u);",
        r"StoreUnAlign: 65 elements; a register has 64",
    ),
}


@pytest.fixture(scope="module")
def broken(build: Build) -> ctypes.CDLL:
    kernels = "".join(
        f"""
extern "C" __global__ __aicore__ void broken{index}(GM_ADDR z) {{
    TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 256); auto x = b.Get<float>(); GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)z, 64);
    {BEGIN}
    {code}
}}
"""
        for index, (code, _) in enumerate(BROKEN.values())
    )
    return build(f'#include "kernel_operator.h"\nusing namespace AscendC;\n{kernels}', ARCHITECTURE, "-O0")


@pytest.mark.parametrize("index", range(len(BROKEN)), ids=list(BROKEN))
def test_broken_rule(broken: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    assert launch(broken, f"broken{index}", 1, np.zeros(64, np.float32)) == 507015
    assert re.search(list(BROKEN.values())[index][1], tools.message()), tools.message()
    assert re.search(r"\[.*kernel\.asc:\d+\]$", tools.message()), "the message names the source line"


def test_a_vector_function_is_called(build: Build, tools: Toolkit) -> None:
    """By either name, with the address of a tensor; what it stores is there for what comes after."""
    library = build(
        """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T>
__simd_vf__ inline void Double(__ubuf__ T* to, __ubuf__ T* from, uint32_t count) {
    MicroAPI::RegTensor<T> r;
    for (uint16_t i = 0; i < 2; ++i) {
        MicroAPI::MaskReg mask = MicroAPI::UpdateMask<T>(count);
        MicroAPI::DataCopy(r, from + i * (GetVecLen() / sizeof(T)));
        MicroAPI::Add(r, r, r, mask);
        MicroAPI::DataCopy(to + i * (VECTOR_REG_WIDTH / sizeof(T)), r, mask);
        MicroAPI::LocalMemBar<MicroAPI::MemType::VEC_STORE, MicroAPI::MemType::VEC_LOAD>();
    }
}
extern "C" __global__ __aicore__ void twice(GM_ADDR z) {
    TPipe pipe; TBuf<> b; pipe.InitBuffer(b, 512);
    LocalTensor<float> x = b.Get<float>();
    GlobalTensor<float> gm; gm.SetGlobalBuffer((__gm__ float*)z, 128);
    DataCopy(x, gm, 128);
    __ubuf__ float* at = (__ubuf__ float*)x.GetPhyAddr();
    asc_vf_call<Double<float>>(at, at, 100u);
    VF_CALL<Double<float>>(at, at, 100u);
    DataCopy(gm, x, 128);
}
""",
        ARCHITECTURE,
    )
    x = _values("float", 128)
    z = x.copy()
    assert launch(library, "twice", 1, z) == 0, tools.message()
    np.testing.assert_array_equal(z, np.where(np.arange(128) < 100, 4 * x, x))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            (
                "Reg::RegTensor<half> h; Reg::RegTensor<float> f; auto m = Reg::CreateMask<half>(); "
                "Reg::Cast<float, half>(f, h, m);"
            ),
            "layoutMode says which of the smaller ones",
        ),
        (
            "Reg::RegTensor<half> h; auto m = Reg::CreateMask<half>(); Reg::Add<float>(h, h, h, m);",
            "the registers have elements of another size",
        ),
        (
            "Reg::RegTensor<half> h; Reg::LoadAlign<half, Reg::LoadDist::DIST_DINTLV_B16>(h, (half*)nullptr);",
            "DIST_DINTLV loads two registers",
        ),
        ("Reg::RegTensor<half, Reg::RegTraitNumTwo> h;", "only elements of 4 and 8 bytes may have two registers"),
    ],
)
def test_what_does_not_compile(tools: Toolkit, tmp_path, code: str, message: str) -> None:
    source = tmp_path / "k.asc"
    source.write_text(
        f'#include "kernel_operator.h"\nusing namespace AscendC;\n__global__ __aicore__ void k() {{ {code} }}\n'
    )
    result = tools.bisheng("-x", "asc", ARCHITECTURE, "-c", source, "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert message in result.stderr


def test_of_other_architectures(build: Build, tools: Toolkit, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registers are dav-3510's alone, and a kernel runs where the process stands for its architecture."""
    source = (
        '#include "kernel_operator.h"\n__global__ __aicore__ void k() {\n    AscendC::Reg::CreateMask<float>();\n}\n'
    )
    (tmp_path / "k.asc").write_text(source)
    result = tools.bisheng("-x", "asc", "--npu-arch=dav-2201", "-c", tmp_path / "k.asc", "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert "Reg" in result.stderr
    result = tools.bisheng("-x", "asc", "--npu-arch=dav-9999", "-c", tmp_path / "k.asc", "-o", tmp_path / "k.o")
    assert (
        "architecture 'dav-9999' does not exist on the host; valid: dav-2201 (Ascend910B, Ascend910_93); dav-3510"
        in result.stderr
    )

    architecture = build(
        """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void numbers(GM_ADDR z) {
    auto* at = (__gm__ int32_t*)z;
    at[0] = __NPU_ARCH__; at[1] = __CCE_AICORE__; at[2] = AscendC::GetUBSizeInBytes(); at[3] = AscendC::TOTAL_L0C_SIZE;
}
""",
        ARCHITECTURE,
    )
    z = np.zeros(4, np.int32)
    assert launch(architecture, "numbers", 1, z) == 0
    assert z.tolist() == [3510, 310, 248 * 1024, 256 * 1024]
    monkeypatch.delenv("ASCEND_GRAPH_HOST_SOC")
    assert launch(architecture, "numbers", 1, z) == 107000
    assert "kernel numbers is for dav-3510, and this process stands for dav-2201; start it with" in tools.message()

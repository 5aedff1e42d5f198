"""Source and destination in the same memory: what the API's pages allow, and what they do not."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import Case
from ..conftest import Build, Toolkit

RAMP = np.arange(512, dtype=np.float32)
HALVES = RAMP.astype(np.float16)
HALF = ("half", "half", "half")


def _allowed(name: str, code: str, expected: np.ndarray, types: tuple[str, str, str] = ("float",) * 3) -> Case:
    """``code`` works on x, and z is x after it; ``expected`` are its first elements."""
    given = RAMP if types[0] == "float" else HALVES
    copied = f"{code}\n    DataCopy(z, x.ReinterpretCast<{types[2]}>(), {len(expected)});"
    return Case(name, copied, lambda _x, _y, _z: expected, given, None, np.zeros_like(expected), types)


ALLOWED = [
    _allowed("a count in place", "Adds(x, x, 1.0f, 512);", RAMP + 1),
    _allowed("a count to the repeat before", "Adds(x, x[64], 0.0f, 256);", RAMP[64:320]),
    _allowed("repeats in place", "Adds(x, x, 1.0f, uint64_t(64), 8, {1, 1, 8, 8});", RAMP + 1),
    _allowed("repeats with gaps in place", "Adds(x, x, 1.0f, uint64_t(64), 4, {1, 1, 16, 16});", RAMP[:64] + 1),
    _allowed(
        "a sum over repeats",
        "Duplicate(x, 0.0f, 64); Add(x, x[64], x, uint64_t(64), 7, {1, 1, 1, 0, 8, 0});",
        RAMP.reshape(8, 64)[1:].sum(0),
    ),
    _allowed("two operands that are the result", "Mul(x, x, x, 64);", RAMP[:64] ** 2),
    _allowed("a product that is added to its factor", "MulAddDst(x, x, x, 64);", RAMP[:64] ** 2 + RAMP[:64]),
    _allowed(
        "a cast to a smaller type",
        "Cast(x.ReinterpretCast<half>(), x, RoundMode::CAST_RINT, 512);",
        HALVES,
        ("float", "float", "half"),
    ),
    _allowed(
        "a cast from the end of a buffer",
        "Adds(x[256], x, half(0), 256); Cast(x.ReinterpretCast<float>(), x[256], RoundMode::CAST_NONE, 256);",
        RAMP[:256],
        ("half", "half", "float"),
    ),
    _allowed("sums of repeats", "WholeReduceSum(x, x, 64, 8, 1, 1, 8);", RAMP.reshape(8, 64).sum(1)),
    _allowed("sums of blocks", "BlockReduceSum(x, x, 8, 64, 1, 1, 8);", RAMP.reshape(64, 8).sum(1)),
    _allowed(
        "what a mask keeps",
        "uint64_t kept; GatherMask(x, x, 1, false, 0, {1, 8, 8, 8}, kept);",
        RAMP[::2],
    ),
    _allowed(
        "an element of each block in its block",
        "auto i = t.ReinterpretCast<uint32_t>(); for (int b = 0; b < 16; ++b) Duplicate(i[b * 8], uint32_t(b * 32), 8);"
        "Gather(x, x, i, 0, 128);",
        np.repeat(RAMP[:128:8], 8),
    ),
    _allowed(
        "a row that becomes the first of many",
        "const uint32_t to[] = {4, 16}, from[] = {1, 16}; BroadCast<float, 2, 0>(x, x, to, from);",
        np.tile(RAMP[:16], 4),
    ),
    _allowed("Trunc, whose page allows it", "Trunc(x, x, 64);", RAMP[:64]),
    _allowed("lanes that the mask leaves out", "Adds(x, x[4 * 8], 0.0f, uint64_t(32), 1, {1, 1, 8, 8});", RAMP[32:64]),
]

LATE = r"a repeat reads what an earlier one wrote\. Give dst a tensor of its own"
PART = r"within a repeat they are the same memory or apart\. Give dst a tensor of its own"
APART = r"overlaps src, which the API does not support\. Give dst a tensor of its own"
IN_PLACE = (
    r"dst is src, which the API does not support\. Give dst a tensor of its own, or set ASCEND_GRAPH_KERNEL_IN_PLACE=1"
)
REFUSED = {
    "a count to the repeat after": ("Adds(x[64], x, 1.0f, 128);", rf"Adds: dst and src overlap, and {LATE}"),
    "a count by a block": ("Adds(x[8], x, 1.0f, 64);", rf"Adds: dst and src overlap, and {PART}"),
    "a count back by a block": ("Adds(x, x[8], 1.0f, 64);", rf"Adds: dst and src overlap, and {PART}"),
    "one source of two": ("Add(x, y, x[8], 64);", rf"Add: dst and a source overlap, and {PART}"),
    "repeats to the one after": (
        "Adds(x[64], x, 1.0f, uint64_t(64), 3, {1, 1, 8, 8});",
        rf"Adds: dst and src overlap, and {LATE}",
    ),
    "repeats by a block": (
        "Adds(x[8], x, 1.0f, uint64_t(64), 1, {1, 1, 8, 8});",
        rf"Adds: dst and src overlap, and {PART}",
    ),
    "repeats of one result": (
        "Adds(x, x, 1.0f, uint64_t(64), 2, {1, 1, 0, 0});",
        rf"Adds: dst and src overlap, and {LATE}",
    ),
    "a sum over repeats by the first source": (
        "Add(x, x, x[64], uint64_t(64), 7, {1, 1, 1, 0, 0, 8});",
        rf"Add: dst and src0 overlap, and {LATE}",
    ),
    "a quotient over repeats": (
        "Div(x, x[64], x, uint64_t(64), 7, {1, 1, 1, 0, 8, 0});",
        rf"Div: dst and src1 overlap, and {LATE}",
    ),
    "blocks in another order": (
        "Adds(x, x, 1.0f, uint64_t(64), 1, {1, 2, 8, 8});",
        rf"Adds: dst and src overlap, and {PART}",
    ),
    "a mask as bits": (
        "uint64_t m[2] = {~0ull, 0}; Muls(x[8], x, 2.0f, m, 1, {1, 1, 8, 8});",
        rf"Muls: dst and src overlap, and {PART}",
    ),
    "a cast to a larger type": (
        "Cast(x, x.ReinterpretCast<half>(), RoundMode::CAST_NONE, 256);",
        rf"Cast: dst and src overlap, and {LATE}",
    ),
    "a cast to a larger type, by repeats": (
        "Cast(x, x.ReinterpretCast<half>(), RoundMode::CAST_NONE, uint64_t(64), 4, {1, 1, 8, 4});",
        rf"Cast: dst and src overlap, and {LATE}",
    ),
    "a selection": (
        "Select(x[8], t, x, y, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);",
        rf"Select: dst and src0 overlap, and {PART}",
    ),
    "a comparison": (
        "Compare(x[64].ReinterpretCast<uint8_t>(), x, y, CMPMODE::LT, 128);",
        rf"Compare: dst and src0 overlap, and {LATE}",
    ),
    "a copy": ("Copy(x[8], x, 64, 1, {1, 1, 8, 8});", rf"Copy: dst and src overlap, and {PART}"),
    "Axpy": ("Axpy(x[8], x, 2.0f, 64);", rf"Axpy: dst and a source overlap, and {PART}"),
    "sums of repeats": (
        "WholeReduceSum(x[64], x, 64, 8, 1, 1, 8);",
        rf"WholeReduceSum: dst and src overlap, and {LATE}",
    ),
    "extremes of repeats": (
        "WholeReduceMax(x[64], x, 64, 8, 1, 1, 8);",
        rf"WholeReduceMax: dst and src overlap, and {LATE}",
    ),
    "a gather": (
        "auto i = t.ReinterpretCast<uint32_t>(); Duplicate(i, 0u, 128); Gather(x, x, i, 0, 128);",
        rf"Gather: dst and src overlap, and {LATE}",
    ),
    "a gather by a mask": (
        "uint64_t kept; GatherMask(x[64], x, 7, false, 0, {1, 8, 8, 8}, kept);",
        rf"GatherMask: dst and src0 overlap, and {LATE}",
    ),
    "blocks of elements": ("Brcb(x, x, 8, {1, 8});", rf"Brcb: dst and src overlap, and {LATE}"),
    "sorted groups": ("Sort32(x, x, t.ReinterpretCast<uint32_t>(), 4);", rf"Sort32: dst and src0 overlap, and {LATE}"),
    "merged lists": (
        (
            "const uint16_t lengths[4] = {32, 32, 0, 0};"
            "MrgSort(x, MrgSortSrcList<float>(x, x[64], y, y), MrgSort4Info(lengths, false, 3, 1));"
        ),
        r"MrgSort: dst is a source, which the API does not support",
    ),
    "Sigmoid": ("Sigmoid(x[8], x, 64);", rf"Sigmoid: dst {APART}"),
    "Sigmoid in place": ("Sigmoid(x, x, 64);", rf"Sigmoid: {IN_PLACE}"),
    "Sigmoid with its space in the source": (
        "Sigmoid(z, x, x[32].ReinterpretCast<uint8_t>(), 64);",
        r"Sigmoid: sharedTmpBuffer overlaps src",
    ),
    "Power": ("Power(x[8], y, x, 64);", r"Power: dst overlaps a source, which the API does not support"),
    "ClampMax": ("ClampMax(x[8], x, t, 1.0f, 64);", rf"ClampMax: dst {APART}"),
    "SwiGLU": ("SwiGLU(x[8], x, y, 1.0f, 64);", r"SwiGLU: dst overlaps a source, which the API does not support"),
    "columns that are repeated": (
        "const uint32_t to[] = {4, 16}, from[] = {4, 1}; BroadCast<float, 2, 1>(x, x, to, from);",
        r"BroadCast: dst is src, which the API does not support",
    ),
    "sums of rows": ("Sum(x[8], x, SumParams{1, 64, 64});", rf"Sum: dst {APART}"),
    "a reduction by a pattern": (
        "const uint32_t shape[] = {2, 64}; ReduceSum<float, Pattern::Reduce::AR>(x[8], x, t, shape, true);",
        rf"ReduceSum: dst {APART}",
    ),
    "the largest of rows": (
        (
            "TopKInfo info; info.inner = 32; info.n = 32;"
            "TopK(x, t.ReinterpretCast<int32_t>(), x, LocalTensor<int32_t>(), LocalTensor<bool>(), 8, 0, info);"
        ),
        r"TopK: dstValueLocal is srcLocal, which the API does not support",
    ),
}


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    refused = [Case(name, code, lambda x, _y, _z: x, RAMP) for name, (code, _) in REFUSED.items()]
    return build(cases_.source([*ALLOWED, *refused]), "-O0")


@pytest.mark.parametrize("index", range(len(ALLOWED)), ids=[case.name for case in ALLOWED])
def test_operands_that_may_share_memory(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    cases_.check(library, index, ALLOWED[index], tools.message)


@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_may_not(library: ctypes.CDLL, tools: Toolkit, name: str) -> None:
    code, pattern = REFUSED[name]
    index = len(ALLOWED) + list(REFUSED).index(name)
    status, _ = cases_.run(library, index, Case(name, code, lambda x, _y, _z: x, RAMP))
    message = tools.message()
    assert status == 507015, message
    assert re.search(pattern, message), message


def test_a_function_is_computed_in_place_on_request(
    library: ctypes.CDLL, tools: Toolkit, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """For kernels of others; a warning says once what a device does not promise."""
    monkeypatch.setenv("ASCEND_GRAPH_KERNEL_IN_PLACE", "1")
    for _ in range(2):
        status, _ = cases_.run(
            library, len(ALLOWED) + list(REFUSED).index("Sigmoid in place"), Case("", "", np.copy, RAMP)
        )
        assert status == 0, tools.message()
    said = capfd.readouterr().err
    assert said.count("Sigmoid: dst is src, which the API does not support: a device's values may differ") == 1, said

    status, _ = cases_.run(library, len(ALLOWED) + list(REFUSED).index("Sigmoid"), Case("", "", np.copy, RAMP))
    assert status == 507015, "an overlap in part stays refused"

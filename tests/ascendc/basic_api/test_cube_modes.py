# ruff: noqa: E501, PLR0917, RUF100 - kernels are quoted as they are written
"""Modes of Fixpipe by the elements that they take, bits of scales, and parts of the cube's memories nothing wrote."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

LOAD_A = "LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));"
LOAD_B = "LoadData(b2, b1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));"
LOAD = LOAD_A + LOAD_B + "PipeBarrier<PIPE_ALL>();"
MMAD = "Mmad(c1, a2, b2, MmadParams(16, 16, k, 0, false, true)); PipeBarrier<PIPE_ALL>();"
FIXPIPE = "Fixpipe(z, c1, FixpipeParamsV220(16, 16, 16, 16, false%s));"


def _kernel(name: str, code: str, of: str = "half", sums: str = "float", to: str = "float") -> str:
    return f"""
extern "C" __global__ __aicore__ __cube__ void {name}(GM_ADDR a, GM_ADDR b, GM_ADDR c) {{
    TPipe pipe;
    TBuf<TPosition::A1> ba1; TBuf<TPosition::B1> bb1; TBuf<TPosition::A2> ba2; TBuf<TPosition::B2> bb2;
    TBuf<TPosition::CO1> bc;
    pipe.InitBuffer(ba1, 4096); pipe.InitBuffer(bb1, 4096); pipe.InitBuffer(ba2, 4096); pipe.InitBuffer(bb2, 4096);
    pipe.InitBuffer(bc, 4096);
    constexpr uint16_t k = 32 / sizeof({of});
    GlobalTensor<{of}> x, y; GlobalTensor<{to}> z;
    x.SetGlobalBuffer((__gm__ {of}*)a); y.SetGlobalBuffer((__gm__ {of}*)b); z.SetGlobalBuffer((__gm__ {to}*)c);
    auto a1 = ba1.Get<{of}>(); auto b1 = bb1.Get<{of}>(); auto a2 = ba2.Get<{of}>(); auto b2 = bb2.Get<{of}>();
    auto c1 = bc.Get<{sums}>();
    DataCopy(a1, x, 16 * k); DataCopy(b1, y, 16 * k);  // one fractal of each, and B by its columns
    PipeBarrier<PIPE_ALL>();
    {code}
}}
"""


#: Elements of A and B, sums and results; the mode that is given; what the error says.
REFUSED = {
    "halves of float without a mode": ("half", "float", "half", "", "quantPre 0 makes the same elements"),
    "halves by the mode of bfloat16_t": ("half", "float", "half", ", F322BF16", "quantPre 2 makes bfloat16_t of float"),
    "floats by the mode of half": ("half", "float", "float", ", F322F16", "the mode of these is NoQuant"),
    "halves of float by that of int32_t": ("half", "float", "half", ", DEQF16, 0x3f800000", "of these is F322F16"),
    "bytes of int32_t by that of float": ("int8_t", "int32_t", "int8_t", ", QF322B8_PRE", "the mode of these is REQ8"),
    "a scale for each column": ("half", "float", "int8_t", ", VQF322B8_PRE", "a scale for each column is missing"),
    "a shift": ("int8_t", "int32_t", "int8_t", ", REQ8, int64_t(1) << 36 | 0x3f800000", "bit 36 of a scale shifts"),
}
#: What nothing wrote, and what the error says where pipes are checked.
UNSET = {
    "sums": (
        LOAD + MMAD.replace("true", "false") + FIXPIPE % "",
        "Mmad reads what dst has, bytes 0 to 1024 of the L0C buffer, which nothing wrote: a device has there what the "
        "last kernel left. Let the first Mmad set cmatrixInitVal",
    ),
    "B": (LOAD_A + "PipeBarrier<PIPE_ALL>();" + MMAD + FIXPIPE % "", "Mmad reads filter, bytes 0 to 512 of the L0B"),
    "L1": (LOAD.replace("a2, a1", "a2, a1[512]") + MMAD + FIXPIPE % "", "LoadData reads src, bytes 1024 to 1536 of"),
    "results": (LOAD + FIXPIPE % "", "Fixpipe reads src, bytes 0 to 64 of the L0C buffer, which nothing wrote"),
}
SIGNED, PLAIN = ", QF322B8_PRE, int64_t(1) << 46 | 0x3f000000", ", QF322B8_PRE, 0x3f000000"


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    kernels = [
        _kernel(f"refused{i}", LOAD + MMAD + FIXPIPE % mode, *kinds)
        for i, (*kinds, mode, _) in enumerate(REFUSED.values())
    ]
    kernels += [_kernel(f"unset{i}", code) for i, (code, _) in enumerate(UNSET.values())]
    kernels += [
        _kernel(f"{name}_{to}", LOAD + MMAD + FIXPIPE % mode, to=f"{to}_t")
        for name, mode in (("with_sign", SIGNED), ("plain", PLAIN))
        for to in ("int8", "uint8")
    ]
    kernels.append(_kernel("right", LOAD + MMAD + FIXPIPE % ""))
    return build('#include "kernel_operator.h"\nusing namespace AscendC;\n' + "".join(kernels))


@pytest.fixture
def _checked(tools: Toolkit) -> Iterator[None]:
    tools.seam.ascendcHostCheckPipes(2)
    yield
    tools.seam.ascendcHostCheckPipes(0)


def _operands(dtype: type = np.float16) -> tuple[np.ndarray, np.ndarray]:
    k = 32 // np.dtype(dtype).itemsize
    random = np.random.default_rng(3)
    return tuple(random.integers(-4, 5, (16, k)).astype(dtype) for _ in "xy")


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=REFUSED)
def test_modes_of_other_elements_are_refused(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    of, *_, message = list(REFUSED.values())[index]
    x, y = _operands(np.int8 if of == "int8_t" else np.float16)
    assert launch(library, f"refused{index}", 1, x, y, np.zeros(256, np.float32)) == 507015
    assert message in tools.message()


@pytest.mark.usefixtures("_checked")
@pytest.mark.parametrize("index", range(len(UNSET)), ids=UNSET)
def test_memory_that_nothing_wrote(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    assert launch(library, f"unset{index}", 1, *_operands(), np.zeros(256, np.float32)) == 507015
    assert list(UNSET.values())[index][1] in tools.message()


@pytest.mark.usefixtures("_checked")
def test_a_product_of_what_was_written(library: ctypes.CDLL, tools: Toolkit) -> None:
    (x, y), z = _operands(), np.zeros((16, 16), np.float32)
    assert launch(library, "right", 1, x, y, z) == 0, tools.message()
    np.testing.assert_array_equal(z, x.astype(np.float32) @ y.astype(np.float32).T)


@pytest.mark.parametrize("to", ["int8", "uint8"])
@pytest.mark.parametrize("name", ["with_sign", "plain"])
def test_a_bit_of_the_scale_says_whether_bytes_are_signed(library: ctypes.CDLL, name: str, to: str) -> None:
    (x, y), z = _operands(), np.zeros((16, 16), to)
    x[0], y[0] = 4, 100
    assert launch(library, f"{name}_{to}", 1, x, y, z) == 0
    scaled = np.rint((x.astype(np.float32) @ y.astype(np.float32).T) * np.float32(0.5))
    low, high, kind = (-128, 127, np.int8) if name == "with_sign" else (0, 255, np.uint8)
    np.testing.assert_array_equal(z, np.clip(np.clip(scaled, -256, 255), low, high).astype(kind).view(to))


@pytest.mark.parametrize(
    ("of", "sums", "to"), [("half", "half", "half"), ("half", "int32_t", "int32_t"), ("int8_t", "float", "float")]
)
def test_sums_of_other_elements_do_not_compile(tools: Toolkit, tmp_path: Path, of: str, sums: str, to: str) -> None:
    source = tmp_path / "sums.asc"
    code = _kernel("sums", LOAD + MMAD + FIXPIPE % "", of, sums, to)
    source.write_text('#include "kernel_operator.h"\nusing namespace AscendC;\n' + code)
    result = tools.bisheng("-x", "asc", "--npu-arch=dav-2201", "-std=c++17", "-c", source, "-o", tmp_path / "sums.o")
    assert result.returncode != 0
    assert "Mmad: fm and filter are both int8_t and dst int32_t, or both half, bfloat16_t or float" in result.stderr

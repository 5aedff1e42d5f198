# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Several products of Matmul at once: the layouts of their matrices, one matrix for several products, sums of
groups."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..conftest import Build, Toolkit

LAYOUTS = ["BSNGD", "SBNGD", "BNGS1S2", "NORMAL"]
#: Of each layout the order of (b, n, g, s, d) in memory.
ORDERS = {"BSNGD": (0, 3, 1, 2, 4), "SBNGD": (3, 0, 1, 2, 4), "BNGS1S2": (0, 1, 2, 3, 4), "NORMAL": (0, 1, 2, 3, 4)}
SOURCE = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "tiling/tiling_api.h"
using namespace AscendC;
constexpr MatmulConfig LOOPS = GetNormalConfig(false, true);
constexpr MatmulConfig shared() {
    MatmulConfig config = GetNormalConfig();
    config.isBiasBatch = false;
    return config;
}
constexpr MatmulConfig SHARED = shared();
constexpr MatmulConfig LARGE = GetNormalConfig(false, false, false, BatchMode::BATCH_LARGE_THAN_L1);
struct Call {
    uint32_t batch_a, batch_b, first_a, first_b, first_c, stride_a, stride_b;
    int32_t turn_a, turn_b, has_bias, how, atomic, m, size;
};
template <LayoutMode IN, LayoutMode OUT, const auto& CONFIG = CFG_NORM, CubeFormat FORMAT = CubeFormat::ND>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const TCubeTiling& tiling, const Call& call) {
    TPipe pipe;
    GlobalTensor<half> ag, bg;
    GlobalTensor<float> cg, biasg;
    ag.SetGlobalBuffer((__gm__ half*)a);
    bg.SetGlobalBuffer((__gm__ half*)b);
    biasg.SetGlobalBuffer((__gm__ float*)bias);
    cg.SetGlobalBuffer((__gm__ float*)c, call.size);
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half, false, IN>,
        MatmulType<TPosition::GM, CubeFormat::ND, half, false, IN>,
        MatmulType<TPosition::GM, FORMAT, float, false, OUT>,
        MatmulType<TPosition::GM, CubeFormat::ND, float>, CONFIG> mm;
    mm.Init(&tiling, &pipe);
    if (call.m != 0) {
        mm.SetOrgShape(call.m, tiling.N, tiling.Ka);
        mm.SetTail(call.m);
    }
    mm.SetTensorA(ag[call.first_a], call.turn_a);
    mm.SetTensorB(bg[call.first_b], call.turn_b);
    if (call.has_bias) mm.SetBias(biasg);
    if (call.how == 0) mm.IterateBatch(cg[call.first_c], call.batch_a, call.batch_b, false, call.stride_a,
        call.stride_b, 0, false, call.atomic);
    if (call.how == 1) {
        mm.template IterateBatch<false, true>(cg[call.first_c], call.batch_a, call.batch_b, false);
        mm.WaitIterateBatch();
    }
    if (call.how == 2 || call.how == 3) {
        TBuf<TPosition::VECIN> buffer;
        pipe.InitBuffer(buffer, call.size * sizeof(float));
        LocalTensor<float> local = buffer.Get<float>();
        Duplicate(local, 0.0f, call.size);
        mm.IterateBatch(local, call.batch_a, call.batch_b, call.how == 3);
        DataCopy(cg, local, call.size);
    }
    if (call.how == 4) mm.WaitIterateBatch();
    if (call.how == 5) mm.IterateBatch(cg, call.batch_a, call.batch_b, true);
    if (call.how == 6) mm.IterateBatch(cg, call.batch_a, call.batch_b, false, 0, 0, 0, true);
    if constexpr (CONFIG.isNBatch) {
        const uint32_t loops = call.stride_a;
        GlobalTensor<float> space;
        space.SetGlobalBuffer((__gm__ float*)bias, call.size);
        if (call.how == 7) {
            mm.SetWorkspace(cg);
            mm.IterateNBatch(loops, call.batch_a, call.batch_b, false);
        }
        if (call.how >= 8) {
            mm.SetWorkspace(space);
            mm.template IterateNBatch<false>(loops, call.batch_a, call.batch_b, false);
            const uint32_t piece = call.batch_a * tiling.singleCoreM * tiling.singleCoreN;
            TBuf<TPosition::VECIN> buffer;
            pipe.InitBuffer(buffer, call.size * sizeof(float));
            LocalTensor<float> local = buffer.Get<float>();
            for (uint32_t i = 0; i < loops + call.how - 8; ++i) {
                if (call.how == 8 && call.atomic == 0) {
                    GlobalTensor<float> part = mm.template GetBatchTensorC<false>(call.batch_a, call.batch_b);
                    DataCopy(local, part, piece);
                } else {
                    mm.template GetBatchC<false>(local, call.batch_a, call.batch_b);
                }
                DataCopy(cg[i * piece], local, piece);
            }
        }
    }
    mm.End();
}
#define KERNEL(name, ...) \\
    extern "C" __global__ __vector__ void name(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, TCubeTiling tiling, \\
        Call call) { \\
        Run<__VA_ARGS__>(a, b, bias, c, tiling, call); \\
    }
KERNEL(BSNGD, LayoutMode::BSNGD, LayoutMode::BSNGD)
KERNEL(SBNGD, LayoutMode::SBNGD, LayoutMode::SBNGD)
KERNEL(BNGS1S2, LayoutMode::BNGS1S2, LayoutMode::BNGS1S2)
KERNEL(NORMAL, LayoutMode::NORMAL, LayoutMode::NORMAL)
KERNEL(BSNGD_BNGS1S2, LayoutMode::BSNGD, LayoutMode::BNGS1S2)
KERNEL(SHARED_BIAS, LayoutMode::NORMAL, LayoutMode::NORMAL, SHARED)
KERNEL(BEYOND_L1, LayoutMode::NORMAL, LayoutMode::NORMAL, LARGE)
KERNEL(FRACTALS, LayoutMode::NORMAL, LayoutMode::NORMAL, CFG_NORM, CubeFormat::NZ)
KERNEL(ALIGNED, LayoutMode::BSNGD, LayoutMode::BSNGD, CFG_NORM, CubeFormat::ND_ALIGN)
KERNEL(LOOPS_BSNGD, LayoutMode::BSNGD, LayoutMode::BSNGD, LOOPS)
KERNEL(LOOPS_BNGS1S2, LayoutMode::BSNGD, LayoutMode::BNGS1S2, LOOPS)

// Sizes: m, n, k, the axes of A, B and C, the number of matrices of a call, whether C lies as NORMAL.
extern "C" int make_tiling(TCubeTiling* tiling, const int* size) {
    matmul_tiling::BatchMatmulTiling api;
    api.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    api.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    api.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    api.SetShape(size[0], size[1], size[2]);
    api.SetOrgShape(size[0], size[1], size[2]);
    const int* axes = size + 3;
    if (size[19]) {
        if (api.SetBatchInfoForNormal(axes[0], axes[5], size[0], size[1], size[2]) != 0) return -2;
    } else if (api.SetALayout(axes[0], axes[1], axes[2], axes[3], axes[4]) != 0 ||
               api.SetBLayout(axes[5], axes[6], axes[7], axes[8], axes[9]) != 0 ||
               api.SetCLayout(axes[10], axes[11], axes[12], axes[13], axes[14]) != 0) {
        return -2;
    }
    if (size[18] > 0) api.SetBatchNum(size[18]);
    return static_cast<int>(api.GetTiling(*tiling));
}
"""


@dataclass(frozen=True)
class Case:
    """Products of A [b, n, ga] and B [b, n, gb], of which one side may have one group for all of the other's."""

    layout: str
    m: int = 5
    n: int = 24
    k: int = 7
    b: int = 1
    heads: int = 2
    ga: int = 3
    gb: int = 3
    sums: bool = False
    turn_a: bool = False
    turn_b: bool = True
    seed: int = 0

    @property
    def g(self) -> int:
        return max(self.ga, self.gb)

    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B as [b, n, g, rows, columns] of the product, of small integers, whose products are exact."""
        random = np.random.default_rng(self.seed)
        shapes = (self.b, self.heads, self.ga, self.m, self.k), (self.b, self.heads, self.gb, self.k, self.n)
        a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in shapes)
        return a, b

    def product(self) -> np.ndarray:
        a, b = (x.astype(np.float32) for x in self.operands())
        c = np.matmul(a, b)
        return c.sum(2, keepdims=True) if self.sums else c

    def stored(self, x: np.ndarray, turned: bool) -> np.ndarray:
        x = x.swapaxes(-1, -2) if turned else x
        return np.ascontiguousarray(x.transpose(ORDERS[self.layout]))

    def sizes(self, batch: int) -> list[int]:
        a = (
            [self.b, self.k, self.heads, self.ga, self.m]
            if self.turn_a
            else [self.b, self.m, self.heads, self.ga, self.k]
        )
        b = (
            [self.b, self.n, self.heads, self.gb, self.k]
            if self.turn_b
            else [self.b, self.k, self.heads, self.gb, self.n]
        )
        c = [self.b, self.m, self.heads, 1 if self.sums else self.g, self.n]
        normal = self.layout == "NORMAL"
        if normal:
            a[0], b[0] = self.b * self.heads * self.ga, self.b * self.heads * self.gb
        return [self.m, self.n, self.k, *a, *b, *c, batch, int(normal)]


@dataclass
class Kernel:
    build: Build
    tools: Toolkit
    changed: dict[int, int] = field(default_factory=dict)  # fields of the tiling

    def tiling(self, case: Case, batch: int) -> Any:
        tiling = (ctypes.c_int32 * 50)()
        sizes = case.sizes(batch)
        assert self.build(SOURCE).make_tiling(tiling, (ctypes.c_int * len(sizes))(*sizes)) == 0
        for index, value in self.changed.items():
            tiling[index] = value
        return tiling

    def run(
        self,
        case: Case,
        c: np.ndarray,
        batches: tuple[int, int],
        *,
        kernel: str = "",
        bias: np.ndarray | None = None,
        first: tuple[int, int, int] = (0, 0, 0),
        how: int = 0,
        strides: tuple[int, int] = (0, 0),
        atomic: int = 0,
        m: int = 0,
        operands: tuple[np.ndarray, np.ndarray] | None = None,
        batch: int | None = None,
    ) -> int:
        if operands is None:
            a, b = case.operands()
            operands = case.stored(a, case.turn_a), case.stored(b, case.turn_b)
        call = (ctypes.c_int32 * 14)(
            *batches, *first, *strides, case.turn_a, case.turn_b, bias is not None and how < 7, how, atomic, m, c.size
        )
        tiling = self.tiling(case, max(batches) if batch is None else batch)
        pointers = [ctypes.c_void_p(x if x is None else x.ctypes.data) for x in (*operands, bias, c)]
        function = getattr(self.build(SOURCE), f"aclrtlaunch_{kernel or case.layout}")
        return function(1, None, *pointers, tiling, call)

    def refused(self, text: str, case: Case, batches: tuple[int, int], **options: Any) -> None:
        assert self.run(case, np.zeros(1 << 14, np.float32), batches, **options) != 0, "nothing was refused"
        assert text in self.tools.message()


@pytest.fixture
def kernel(build: Build, tools: Toolkit) -> Kernel:
    return Kernel(build, tools)


def _whole(on: Kernel, case: Case, **options: Any) -> np.ndarray:
    """All products of a case by one call for each b where rows alternate within b, else by one call."""
    product = case.product()
    c = np.zeros(case.stored(product, False).shape, np.float32)
    calls = case.b if case.layout == "BSNGD" else 1
    each = case.b // calls * case.heads
    for i in range(calls):
        size_a, size_b, size_c = (x.size // case.b for x in (*case.operands(), product))
        first = (i * size_a, i * size_b, i * size_c)
        status = on.run(case, c, (each * case.ga, each * case.gb), first=first, **options)
        assert status == 0, on.tools.message()
    return c


@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("groups", [(3, 3), (3, 1), (1, 3)], ids=["as many", "one B", "one A"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(kernel: Kernel, layout: str, groups: tuple[int, int], turn_a: bool, turn_b: bool) -> None:
    case = Case(layout, b=2, ga=groups[0], gb=groups[1], turn_a=turn_a, turn_b=turn_b)
    np.testing.assert_array_equal(_whole(kernel, case), case.stored(case.product(), False))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    case=st.builds(
        Case,
        st.sampled_from(LAYOUTS),
        *(st.integers(1, 40) for _ in range(3)),
        *(st.integers(1, 3) for _ in range(3)),
        st.just(1),
        st.just(False),
        st.booleans(),
        st.booleans(),
        st.integers(0, 99),
    )
)
def test_any_sizes(kernel: Kernel, case: Case) -> None:
    """Each matrix of C is the product of its own of A and B, however they lie."""
    np.testing.assert_array_equal(_whole(kernel, case), case.stored(case.product(), False))


@pytest.mark.parametrize("layout", ["BSNGD", "SBNGD", "BNGS1S2"])
def test_groups_are_added_to_what_is_there(kernel: Kernel, layout: str) -> None:
    case = Case(layout, b=2, sums=True)
    expected = case.stored(case.product(), False)
    np.testing.assert_array_equal(_whole(kernel, case), expected)
    one = replace(case, b=1)
    c = np.full(one.stored(one.product(), False).shape, 8, np.float32)
    assert kernel.run(one, c, (6, 6)) == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, one.stored(one.product(), False) + 8)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bias_of_each(kernel: Kernel, layout: str) -> None:
    case = Case(layout)
    bias = np.random.default_rng(1).integers(-9, 9, (case.heads * case.g, case.n)).astype(np.float32)
    expected = case.product() + bias.reshape(1, case.heads, case.g, 1, case.n)
    np.testing.assert_array_equal(_whole(kernel, case, bias=bias), case.stored(expected, False))


def test_bias_of_all(kernel: Kernel) -> None:
    case = Case("NORMAL")
    bias = np.arange(case.n, dtype=np.float32)
    np.testing.assert_array_equal(_whole(kernel, case, bias=bias, kernel="SHARED_BIAS"), case.product() + bias)


def test_layout_of_c_may_be_another(kernel: Kernel) -> None:
    case = Case("BSNGD")
    c = np.zeros(case.product().shape, np.float32)
    assert kernel.run(case, c, (6, 6), kernel="BSNGD_BNGS1S2") == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, case.product())


def test_parts_of_a_row_of_matrices(kernel: Kernel) -> None:
    """BSNGD by pieces of n * g: each begins d elements further on for every matrix before it."""
    case = Case("BSNGD")
    c = np.zeros(case.stored(case.product(), False).shape, np.float32)
    for i in range(3):
        first = (2 * i * case.k, 2 * i * case.k, 2 * i * case.n)
        assert kernel.run(case, c, (2, 2), first=first) == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, case.stored(case.product(), False))


def test_strides(kernel: Kernel) -> None:
    """Matrices with gaps between them."""
    case = Case("NORMAL", turn_b=False)
    a, b = (x.reshape(6, *x.shape[3:]) for x in case.operands())
    apart = np.zeros((6, 50), np.float16), np.zeros((6, 200), np.float16)
    for to, x in zip(apart, (a, b), strict=True):
        to[:, : x[0].size] = x.reshape(6, -1)
    c = np.zeros(case.product().shape, np.float32)
    assert kernel.run(case, c, (6, 6), strides=(50, 200), operands=apart) == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, case.product())


def test_tail(kernel: Kernel) -> None:
    """With fewer rows each product still has the place of a whole one in C."""
    case = Case("NORMAL")
    a, b = (x.reshape(6, *x.shape[3:]) for x in case.operands())
    operands = np.ascontiguousarray(a[:, :3]), case.stored(b[None, None], True)
    c = np.zeros((6, case.m, case.n), np.float32)
    assert kernel.run(case, c, (6, 6), m=3, operands=operands) == 0, kernel.tools.message()
    np.testing.assert_array_equal(c[:, :3], case.product().reshape(c.shape)[:, :3])
    assert not c[:, 3:].any()


def test_fractals(kernel: Kernel) -> None:
    case = Case("NORMAL", m=32, n=48, k=16)
    c = np.zeros(case.product().size, np.float32)
    assert kernel.run(case, c, (6, 6), kernel="FRACTALS") == 0, kernel.tools.message()
    blocks = case.product().reshape(6, case.m, case.n // 16, 16).swapaxes(1, 2)
    np.testing.assert_array_equal(c, blocks.ravel())
    kernel.refused("products of 5 x 48 in NZ", replace(case, m=5), (6, 6), kernel="FRACTALS")


def test_rows_of_whole_blocks(kernel: Kernel) -> None:
    case = Case("BSNGD", n=21)
    expected = np.pad(case.stored(case.product(), False), ((0, 0),) * 4 + ((0, 3),))
    c = np.zeros(expected.shape, np.float32)
    assert kernel.run(case, c, (6, 6), kernel="ALIGNED") == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("layout", "how"), [("BSNGD", 2), ("SBNGD", 2), ("BNGS1S2", 2), ("BNGS1S2", 3), ("NORMAL", 3)])
def test_to_local_memory(kernel: Kernel, layout: str, how: int) -> None:
    case = Case(layout)
    np.testing.assert_array_equal(_whole(kernel, case, how=how), case.stored(case.product(), False))


@pytest.mark.parametrize("mode", [1, 2, 3], ids=["add", "max", "min"])
def test_atomic(kernel: Kernel, mode: int) -> None:
    case = Case("NORMAL")
    c = np.full(case.product().shape, 5, np.float32)
    expected = [None, np.add, np.maximum, np.minimum][mode](case.product(), c)
    assert kernel.run(case, c, (6, 6), atomic=mode) == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, expected)


def test_without_waiting(kernel: Kernel) -> None:
    case = Case("NORMAL")
    np.testing.assert_array_equal(_whole(kernel, case, how=1), case.product())
    kernel.refused("WaitIterateBatch: nothing to wait for", case, (6, 6), how=4)


@pytest.mark.parametrize("b", [1, 2])
def test_loops(kernel: Kernel, b: int) -> None:
    """IterateNBatch goes on where the last batch ended, within a row of matrices and to the next b."""
    case = Case("BSNGD", b=b)
    c = np.zeros(case.stored(case.product(), False).shape, np.float32)
    assert kernel.run(case, c, (2, 2), how=7, strides=(3 * b, 0), kernel="LOOPS_BSNGD") == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, case.stored(case.product(), False))


@pytest.mark.parametrize("to_local", [0, 1], ids=["global", "local"])
def test_loops_one_by_one(kernel: Kernel, to_local: int) -> None:
    case = Case("BSNGD", m=8, b=2)
    c = np.zeros(case.product().shape, np.float32)
    space = np.zeros_like(c)
    status = kernel.run(case, c, (2, 2), how=8, strides=(6, 0), atomic=to_local, bias=space, kernel="LOOPS_BNGS1S2")
    assert status == 0, kernel.tools.message()
    np.testing.assert_array_equal(c, case.product())
    np.testing.assert_array_equal(space, case.product())
    kernel.refused(
        "GetBatchTensorC: 6 of 6 loops are taken",
        case,
        (2, 2),
        how=9,
        strides=(6, 0),
        bias=space,
        kernel="LOOPS_BNGS1S2",
    )


def test_a_piece_of_alternating_rows_is_none(kernel: Kernel) -> None:
    case = Case("BSNGD", m=8)
    space = np.zeros(1 << 14, np.float32)
    kernel.refused(
        "is not a piece of the workspace", case, (2, 2), how=8, strides=(3, 0), bias=space, kernel="LOOPS_BSNGD"
    )


def test_refused(kernel: Kernel) -> None:
    normal, rows = Case("NORMAL"), Case("BSNGD")
    kernel.refused("2 matrices of A and 3 of B; both are above 0, and one is a multiple", normal, (2, 3))
    kernel.refused("0 matrices of A and 3 of B", normal, (0, 3))
    kernel.refused("but the tiling's BatchNum is 2", normal, (6, 6), batch=2)
    kernel.refused("4 matrices of A and 4 of B, where BSNGD has n * g = 6 and 6", rows, (4, 4))
    kernel.refused("3 matrices of A with 3 groups and 3 of B with 1; their quotients", replace(rows, gb=1), (3, 3))
    kernel.refused("axis g is 4 of A and 2 of B", replace(rows, ga=4, gb=2), (8, 4))
    kernel.refused("enSequentialWrite = true; it is false", normal, (6, 6), how=5)
    kernel.refused("enPartialSum = true", normal, (6, 6), how=6)
    kernel.refused("rows of 21 elements of 4 bytes in local memory", replace(normal, n=21), (6, 6), how=3)
    kernel.refused("each base block is written where its matrix begins", replace(normal, m=200), (1, 1), how=3)
    kernel.refused("enAtomic = 4", normal, (6, 6), atomic=4)
    kernel.refused("products of groups are added up, enAtomic is 0 or 1", replace(rows, sums=True), (6, 6), atomic=2)
    kernel.refused("a bias where groups are added up", replace(rows, sums=True), (6, 6), bias=np.zeros(144, np.float32))


def test_what_l1_has_no_room_for(kernel: Kernel) -> None:
    """Two bytes of each element of A and B, in whole fractals of 16 x 16."""
    case = Case("NORMAL", m=1, n=8, k=4096, heads=1, ga=3, gb=3)
    kernel.refused(
        "3 matrices of A and 3 of B need 786432 bytes of L1, which has 524288; "
        "configure BatchMode::BATCH_LARGE_THAN_L1",
        case,
        (3, 3),
    )
    np.testing.assert_array_equal(_whole(kernel, case, kernel="BEYOND_L1"), case.product())
    kernel.refused("configure BatchMode::SINGLE_LARGE_THAN_L1", replace(case, k=1 << 14), (3, 3), kernel="BEYOND_L1")


def test_axes_that_are_not_those_of_the_product(kernel: Kernel) -> None:
    #: ALayoutInfoB to D are fields 33 to 37 of the tiling, CLayoutInfoB to S2 43 to 47.
    kernel.changed = {37: 9}
    kernel.refused(
        "A of a product has 5 rows of 7 elements in memory, its axes say s x d = 5 x 9", Case("BSNGD"), (6, 6)
    )
    kernel.changed = {33: 0}
    kernel.refused("the tiling has no axes of A, B and C; call SetALayout", Case("BSNGD"), (6, 6))
    kernel.changed = {45: 1}
    kernel.refused("axes b and n of A are 1 and 2, of B 1 and 2, of C 1 and 1", Case("BSNGD"), (6, 6))
    kernel.changed = {47: 8}
    kernel.refused("6 products of 5 x 24 do not fit C", Case("BSNGD"), (6, 6))


def test_tilings(build: Build) -> None:
    library = build(SOURCE)

    def make(case: Case, batch: int) -> int:
        sizes = case.sizes(batch)
        return library.make_tiling((ctypes.c_int32 * 50)(), (ctypes.c_int * len(sizes))(*sizes))

    assert make(Case("BSNGD"), 6) == 0
    assert make(Case("BSNGD", m=0), 6) == -2  # an axis of no elements
    assert make(Case("BSNGD", m=128, n=128, k=512), 2) == 0
    assert make(Case("BSNGD", m=128, n=128, k=512), 3) == -1  # L1 has no room for three
    assert make(Case("NORMAL", m=128, n=128, k=512), 3) == 0


@pytest.mark.parametrize(
    ("types", "config", "call", "text"),
    [
        (
            "LayoutMode::BSNGD, LayoutMode::SBNGD, LayoutMode::BSNGD",
            "CFG_NORM",
            "mm.IterateBatch(g, 1, 1, false)",
            "the MatmulType of A and B has the same layout",
        ),
        (
            "LayoutMode::NONE, LayoutMode::NONE, LayoutMode::NONE",
            "CFG_NORM",
            "mm.IterateBatch(g, 1, 1, false)",
            "the MatmulType of A and B has the same layout",
        ),
        (
            "LayoutMode::NORMAL, LayoutMode::NORMAL, LayoutMode::NORMAL",
            "CFG_MDL",
            "mm.IterateBatch(g, 1, 1, false)",
            "the configuration is one of GetNormalConfig",
        ),
        (
            "LayoutMode::BSNGD, LayoutMode::BSNGD, LayoutMode::BSNGD",
            "CFG_NORM",
            "mm.IterateNBatch(1, 1, 1, false)",
            "isNBatch = true",
        ),
        (
            "LayoutMode::BSNGD, LayoutMode::BSNGD, LayoutMode::BSNGD",
            "CFG_NORM",
            "mm.GetBatchTensorC(1, 1)",
            "sync is false",
        ),
    ],
    ids=["layouts", "none", "config", "loops", "sync"],
)
def test_what_does_not_compile(build: Build, types: str, config: str, call: str, text: str) -> None:
    a, b, c = types.split(", ")
    source = f"""
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
extern "C" __global__ __vector__ void f(TCubeTiling tiling, GM_ADDR x) {{
    GlobalTensor<float> g;
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half, false, {a}>,
        MatmulType<TPosition::GM, CubeFormat::ND, half, false, {b}>,
        MatmulType<TPosition::GM, CubeFormat::ND, float, false, {c}>,
        MatmulType<TPosition::GM, CubeFormat::ND, float>, {config}> mm;
    {call};
}}
"""
    with pytest.raises(AssertionError, match=text):
        build(source)


@pytest.mark.parametrize(
    ("definition", "name", "registration"),
    [
        ("#define ASCENDC_CUBE_ONLY", "Matmul", "REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);"),
        ("", "MatmulImpl", "mm.Init(&tiling, &pipe);"),
    ],
)
def test_on_a_cube_core(build: Build, tools: Toolkit, definition: str, name: str, registration: str) -> None:
    """There, and of MatmulImpl everywhere, the numbers of matrices are set before."""
    source = """
DEFINITION
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
extern "C" __global__ __cube__ void f(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling, int32_t batches) {
    TPipe pipe;
    GlobalTensor<half> ag, bg;
    GlobalTensor<float> cg;
    ag.SetGlobalBuffer((__gm__ half*)a);
    bg.SetGlobalBuffer((__gm__ half*)b);
    cg.SetGlobalBuffer((__gm__ float*)c);
    using In = MatmulType<TPosition::GM, CubeFormat::ND, half, false, LayoutMode::NORMAL>;
    NAME<In, In, MatmulType<TPosition::GM, CubeFormat::ND, float, false, LayoutMode::NORMAL>> mm;
    REGISTRATION
    mm.SetTensorA(ag);
    mm.SetTensorB(bg);
    if (batches > 0) mm.SetBatchNum(2 * batches, batches);
    mm.IterateBatch(cg, false, 0, false);
    mm.End();
}
extern "C" void make_tiling(TCubeTiling* tiling) {
    *tiling = {};
    tiling->usedCoreNum = 1;
    tiling->M = tiling->singleCoreM = 4;
    tiling->N = tiling->singleCoreN = 6;
    tiling->Ka = tiling->Kb = tiling->singleCoreK = 5;
    tiling->baseM = tiling->baseN = tiling->baseK = 16;
}
"""
    for word, text in (("DEFINITION", definition), ("NAME", name), ("REGISTRATION", registration)):
        source = source.replace(word, text)
    library = build(source)
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((4, 4, 5), (2, 5, 6)))
    c = np.zeros((4, 4, 6), np.float32)
    tiling = (ctypes.c_int32 * 50)()
    library.make_tiling(tiling)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)]
    assert library.aclrtlaunch_f(1, None, *pointers, tiling, 2) == 0, tools.message()
    np.testing.assert_array_equal(c, a.astype(np.float32) @ np.repeat(b, 2, 0).astype(np.float32))
    assert library.aclrtlaunch_f(1, None, *pointers, tiling, 0) != 0
    assert "0 matrices of A and 0 of B" in tools.message()

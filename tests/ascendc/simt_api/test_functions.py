"""Functions of numbers in threads of dav-3510, by their names in C and in `AscendC::Simt`, against PyTorch in double."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import special

from ..conftest import Build, Toolkit, launch

ARCHITECTURE = "--npu-arch=dav-3510"
INF, NAN = math.inf, math.nan
X = np.array(
    [
        *(0.0, -0.0, 1, -1, 0.5, -0.5, 0.25, -0.125, 1.5, -2.5, 2, 3.25, -4, 7.5, 11, -11, 0.9999, -0.9999, 1e-6, 30),
        *(1e-30, 3e38, -3e38, 90, -90, INF, -INF, NAN, 1e10, 0.75, 2.0**40, 99),
    ],
    np.float32,
)
"""First argument of each of 32 threads."""
Y = np.roll(X, 11)
COUNT = len(X)
F = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")


def _each(function: Callable[..., float]) -> F:
    """`function` of Python numbers, for each element."""
    return lambda x, y: torch.tensor([float(function(*pair)) for pair in zip(x.tolist(), y.tolist(), strict=True)])


def _of_pi(x: float, function: Callable[[float], float], zeros: float) -> float:
    """A function of pi * x, exact for multiples of one half."""
    if not math.isfinite(x):
        return NAN
    turn = math.fmod(x, 2)
    return 0.0 if math.fmod(turn - zeros, 1) == 0 else function(math.pi * turn)


def _norm(x: torch.Tensor, y: torch.Tensor, others: float = 0) -> torch.Tensor:
    root = (x**2 + y**2 + others).sqrt()
    return torch.where(x.isinf() | y.isinf(), torch.tensor(INF, dtype=x.dtype), root)


def _reciprocal(norm: torch.Tensor) -> torch.Tensor:
    """The reciprocal of a norm, which is 0 where the norm is beyond the numbers of float."""
    return torch.where(norm.float().isinf(), torch.zeros_like(norm), 1 / norm)


def _defined(function: F, where: Callable[[torch.Tensor], torch.Tensor]) -> F:
    return lambda x, y: torch.where(where(x), function(x, y), torch.tensor(NAN, dtype=x.dtype))


def _vanishing(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """A Bessel function, which is 0 at infinity; of large numbers PyTorch's has no digit that is right."""
    near = x.isnan() | (x.abs() < 1e6)
    return torch.where(near, function(x), torch.where(function(-torch.ones_like(x)).isnan() & (x < 0), NAN, 0.0))


def _integer(x: torch.Tensor, low: int, high: int) -> torch.Tensor:
    return x.nan_to_num(nan=0.0, posinf=2.0**70, neginf=-(2.0**70)).clamp(low, high)


def _away(x: torch.Tensor) -> torch.Tensor:
    return torch.copysign((x.abs() + 0.5).floor(), x)


def _remquo(x: float, y: float) -> float:
    if not math.isfinite(x) or math.isnan(y) or y == 0:
        return 100.0
    quotient = 0 if math.isinf(y) else round((x - math.remainder(x, y)) / y)
    return 100.0 if abs(quotient) > 2**50 else math.copysign(abs(quotient) % 8, quotient)


#: Name in C, name in AscendC::Simt, reference.
OF_ONE: list[tuple[str, str, F]] = [
    ("tanf", "Tan", lambda x, _: x.tan()),
    ("tanhf", "Tanh", lambda x, _: x.tanh()),
    ("tanpif", "Tanpi", _each(lambda x, _: _tan_of_pi(x))),
    ("atanf", "Atan", lambda x, _: x.atan()),
    ("atanhf", "Atanh", lambda x, _: x.atanh()),
    ("cosf", "Cos", lambda x, _: x.cos()),
    ("coshf", "Cosh", lambda x, _: x.cosh()),
    ("cospif", "Cospi", _each(lambda x, _: _of_pi(x, math.cos, 0.5))),
    ("asinf", "Asin", lambda x, _: x.asin()),
    ("acosf", "Acos", lambda x, _: x.acos()),
    ("acoshf", "Acosh", lambda x, _: x.acosh()),
    ("sinf", "Sin", lambda x, _: x.sin()),
    ("sinhf", "Sinh", lambda x, _: x.sinh()),
    ("sinpif", "Sinpi", _each(lambda x, _: _of_pi(x, math.sin, 0))),
    ("asinhf", "Asinh", lambda x, _: x.asinh()),
    ("expf", "Exp", lambda x, _: x.exp()),
    ("exp2f", "Exp2", lambda x, _: x.exp2()),
    ("exp10f", "Exp10", lambda x, _: 10.0**x),
    ("expm1f", "Expm1", lambda x, _: x.expm1()),
    ("sqrtf", "Sqrt", lambda x, _: x.sqrt()),
    ("rsqrtf", "Rsqrt", lambda x, _: 1 / x.sqrt()),
    ("logf", "Log", lambda x, _: x.log()),
    ("log2f", "Log2", lambda x, _: x.log2()),
    ("log10f", "Log10", lambda x, _: x.log10()),
    ("log1pf", "Log1p", lambda x, _: x.log1p()),
    ("logbf", "Logb", lambda x, _: torch.where(x.isnan(), x, x.abs().log2().floor())),
    ("cbrtf", "Cbrt", lambda x, _: torch.copysign(x.abs() ** (1 / 3), x)),
    ("rcbrtf", "Rcbrt", lambda x, _: 1 / torch.copysign(x.abs() ** (1 / 3), x)),
    ("erff", "Erf", lambda x, _: special.erf(x)),
    ("erfcf", "Erfc", lambda x, _: special.erfc(x)),
    ("erfinvf", "Erfinv", lambda x, _: special.erfinv(x)),
    ("erfcinvf", "Erfcinv", lambda x, _: -special.ndtri(x / 2) / math.sqrt(2)),
    ("erfcxf", "Erfcx", lambda x, _: special.erfcx(x)),
    ("tgammaf", "Tgamma", _each(lambda x, _: _gamma(x))),
    ("lgammaf", "Lgamma", lambda x, _: torch.where(x == -INF, -x, special.gammaln(x))),
    ("cyl_bessel_i0f", "CylBesselI0", lambda x, _: torch.where(x.isinf(), x.abs(), special.i0(x))),
    ("cyl_bessel_i1f", "CylBesselI1", lambda x, _: torch.where(x.isinf(), x, special.i1(x))),
    ("normcdff", "Normcdf", lambda x, _: special.erfc(-x / math.sqrt(2)) / 2),
    ("j0f", "J0", lambda x, _: _vanishing(special.bessel_j0, x)),
    ("j1f", "J1", lambda x, _: _vanishing(special.bessel_j1, x)),
    ("y0f", "Y0", lambda x, _: _vanishing(special.bessel_y0, x)),
    ("y1f", "Y1", lambda x, _: _vanishing(special.bessel_y1, x)),
    ("nearbyintf", "NearbyInt", lambda x, _: x.round()),
    ("fabsf", "Abs", lambda x, _: x.abs()),
    ("roundf", "Round", lambda x, _: _away(x)),
    ("rintf", "Rint", lambda x, _: x.round()),
    ("floorf", "Floor", lambda x, _: x.floor()),
    ("ceilf", "Ceil", lambda x, _: x.ceil()),
    ("truncf", "Trunc", lambda x, _: x.trunc()),
    ("isfinite", "IsFinite", lambda x, _: x.isfinite()),
    ("isnan", "IsNan", lambda x, _: x.isnan()),
    ("isinf", "IsInf", lambda x, _: x.isinf()),
]
OF_TWO: list[tuple[str, str, F]] = [
    ("atan2f", "Atan2", lambda x, y: torch.atan2(x, y)),
    ("powf", "Pow", lambda x, y: x**y),
    ("hypotf", "Hypot", _norm),
    ("rhypotf", "Rhypot", lambda x, y: _reciprocal(_norm(x, y))),
    (
        "fdimf",
        "Fdim",
        lambda x, y: torch.where(x.isnan() | y.isnan(), x + y, (x - y).nan_to_num(nan=0.0, posinf=INF).clamp(min=0)),
    ),
    ("fmodf", "Mod", lambda x, y: torch.where(y.isinf() & x.isfinite(), x, torch.fmod(x, y))),
    ("remainderf", "Remainder", _each(lambda x, y: NAN if not math.isfinite(x) or y == 0 else math.remainder(x, y))),
    ("copysignf", "CopySign", torch.copysign),
    ("nextafterf", "NextAfter", lambda x, y: torch.nextafter(x.float(), y.float())),
    ("fmaxf", "Max", torch.fmax),
    ("fminf", "Min", torch.fmin),
]


def _tan_of_pi(x: float) -> float:
    if not math.isfinite(x):
        return NAN
    if math.fmod(abs(x), 1) == 0.5:
        return INF if math.fmod(math.floor(x), 2) == 0 else -INF
    return _of_pi(x, math.tan, 0)


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(INF, x)
    try:
        return math.gamma(x)
    except (ValueError, OverflowError):
        return NAN if x < 0 else INF


#: Of other forms: the code of a thread, which sets r, and the reference.
OTHERS: dict[str, tuple[str, F]] = {
    "norm3df": ("r = norm3df(x, y, 2.0f);", lambda x, y: _norm(x, y, 4)),
    "Norm3d": ("r = Simt::Norm3d(x, y, 2.0f);", lambda x, y: _norm(x, y, 4)),
    "rnorm3df": ("r = rnorm3df(x, y, 2.0f);", lambda x, y: _reciprocal(_norm(x, y, 4))),
    "Rnorm3d": ("r = Simt::Rnorm3d(x, y, 2.0f);", lambda x, y: _reciprocal(_norm(x, y, 4))),
    "norm4df": ("r = norm4df(x, y, 2.0f, 1.0f);", lambda x, y: _norm(x, y, 5)),
    "Norm4d": ("r = Simt::Norm4d(x, y, 2.0f, 1.0f);", lambda x, y: _norm(x, y, 5)),
    "rnorm4df": ("r = rnorm4df(x, y, 2.0f, 1.0f);", lambda x, y: _reciprocal(_norm(x, y, 5))),
    "Rnorm4d": ("r = Simt::Rnorm4d(x, y, 2.0f, 1.0f);", lambda x, y: _reciprocal(_norm(x, y, 5))),
    "normf": ("float a[] = {x, y}; r = normf(2, a);", _norm),
    "Norm": ("float a[] = {x, y}; r = Simt::Norm(2, a);", _norm),
    "Norm of none": ("float a[] = {x, y}; r = Simt::Norm(0, a);", lambda x, _: x.abs()),
    "rnormf": ("float a[] = {x, y}; r = rnormf(2, a);", lambda x, y: _reciprocal(_norm(x, y))),
    "Rnorm": ("float a[] = {x, y}; r = Simt::Rnorm(2, a);", lambda x, y: _reciprocal(_norm(x, y))),
    "normcdfinvf": ("r = normcdfinvf(x);", lambda x, _: special.ndtri(x)),
    "sincosf": (
        "float s, c; sincosf(x, &s, &c); r = x < 0 ? s : c;",
        lambda x, _: torch.where(x < 0, x.sin(), x.cos()),
    ),
    "Sincos": (
        "float s, c; Simt::Sincos(x, s, c); r = x < 0 ? s : c;",
        lambda x, _: torch.where(x < 0, x.sin(), x.cos()),
    ),
    "sincospif": (
        "float s, c; sincospif(x, &s, &c); r = s * s + c * c;",
        lambda x, _: torch.ones_like(x) + 0 * (x - x),
    ),
    "Sincospi": (
        "float s, c; Simt::Sincospi(x, s, c); r = s * s + c * c;",
        lambda x, _: torch.ones_like(x) + 0 * (x - x),
    ),
    "jnf": ("r = jnf(1, x);", lambda x, _: _vanishing(special.bessel_j1, x)),
    "jnf of a negative order": ("r = jnf(-1, x);", lambda x, _: x * NAN),
    "Jn": ("r = Simt::Jn(0, x);", lambda x, _: _vanishing(special.bessel_j0, x)),
    "ynf": ("r = ynf(1, x);", lambda x, _: _vanishing(special.bessel_y1, x)),
    "Yn": ("r = Simt::Yn(-2, x);", lambda x, _: x * NAN),
    "ilogbf": (
        "r = ilogbf(fabsf(x) + 1);",
        lambda x, _: (
            _integer((x.abs() + 1).log2().floor() * torch.where(x.isnan(), -1, 1), 0, 2**31)
            + torch.where(x.isnan(), -(2.0**31), 0.0)
        ),
    ),
    "Ilogb": ("r = Simt::Ilogb(x) == ilogbf(x);", lambda x, _: torch.ones_like(x)),
    "Frexp": ("int e; const float m = Simt::Frexp(y, e); r = Simt::Ldexp(m, e);", lambda _, y: y),
    "ScaLbn": ("r = Simt::ScaLbn(x, int64_t(3));", lambda x, _: x * 8),
    "RemQuo": (
        "int q = 100; Simt::RemQuo(x, y, &q); r = fabsf(x) > 1e10f * fabsf(y) || !isfinite(x) || isnan(y) || y == 0 ? 100 : q;",
        lambda x, y: torch.where(x.abs() > 1e10 * y.abs(), 100.0, _each(_remquo)(x, y)),
    ),
    "remquof": (
        "int q = 100; r = remquof(x, y, &q); if (y == 0) r = 0;",
        _each(lambda x, y: 0.0 if y == 0 else NAN if not math.isfinite(x) else math.remainder(x, y)),
    ),
    "Fma": ("r = Simt::Fma(x, 3.0f, 1.0f);", lambda x, _: x * 3 + 1),
    "Fma of half": ("r = Simt::Fma(half(x), half(3.0f), half(1.0f));", lambda x, _: (x.half().double() * 3 + 1).half()),
    "lroundf": ("r = lroundf(x);", lambda x, _: _integer(_away(x), -(2**63), 2**63)),
    "llroundf": ("r = llroundf(x);", lambda x, _: _integer(_away(x), -(2**63), 2**63)),
    "lrintf": ("r = lrintf(x);", lambda x, _: _integer(x.round(), -(2**63), 2**63)),
    "llrintf": ("r = llrintf(x);", lambda x, _: _integer(x.round(), -(2**63), 2**63)),
    "Abs": (
        "r = Simt::Abs(int64_t(-7)) + Simt::Abs(-4) + float(Simt::Abs(half(-2.0f)));",
        lambda x, _: torch.full_like(x, 13),
    ),
    "Max Min": (
        "r = Simt::Max(int8_t(-7), int8_t(3)) + Simt::Min(uint64_t(1) << 40, uint64_t(5)) + float(Simt::Max(half(x), half(2.0f)));",
        lambda x, _: 8 + torch.fmax(x.half(), torch.tensor(2.0).half()).double(),
    ),
    "Cast": (
        "r = Simt::Cast<int32_t, float, RoundMode::CAST_RINT>(x) / 8.0f;",
        lambda x, _: _integer(x.round(), -(2**31), 2**31 - 1) / 8,
    ),
    "Cast to uint64_t": (
        "r = Simt::Cast<uint64_t, float, RoundMode::CAST_CEIL>(x);",
        lambda x, _: _integer(x.ceil(), 0, 2.0**64),
    ),
    "Cast to half": ("r = float(Simt::Cast<half, float, RoundMode::CAST_EVEN>(x));", lambda x, _: x.half()),
    "Cast saturating": (
        "r = float(Simt::Cast<half, float, RoundMode::CAST_RINT, Simt::SatMode::SAT>(x));",
        lambda x, _: x.float().nan_to_num(nan=0.0).clamp(-65504, 65504).half(),
    ),
    "Cast of half": ("r = Simt::Cast<float, half, RoundMode::CAST_NONE>(half(x));", lambda x, _: x.half()),
    "Cast of an integer": (
        "r = Simt::Cast<float, int32_t, RoundMode::CAST_ZERO>(16777219) - 16777216.0f;",
        lambda x, _: torch.full_like(x, 2),
    ),
    "Rint of bfloat16_t": ("r = Simt::Rint(bfloat16_t(x));", lambda x, _: x.bfloat16().round()),
    "bits": (
        "r = Simt::Popc(uint64_t(3) << 40) + 10 * Simt::Clz(int64_t(1) << 40) + 1000 * Simt::Ffs(int64_t(1) << 40);",
        lambda x, _: torch.full_like(x, 2 + 230 + 41000),
    ),
    "bits in C": (
        "r = __popc(3ull << 40) + 10 * __clz(1ll << 40) + 1000 * __ffs(1l << 40) + (__brev(1ull << 40) >> 20);",
        lambda x, _: torch.full_like(x, 2 + 230 + 41000 + 8),
    ),
    "Brev": ("r = Simt::Brev(1u) / 65536 + __brev(2u) / 65536;", lambda x, _: torch.full_like(x, 2**15 + 2**14)),
    "BytePerm": (
        "r = Simt::BytePerm(0x33221100u, 0x77665544u, 0x0716u) - 0x00771166u + __byte_perm(1u, 1u, 1u);",
        lambda x, _: torch.full_like(x, 16843008),
    ),
    "MulHi": ("r = Simt::MulHi(-0x40000000, 8) + Simt::MulHi(0x80000000u, 6u);", lambda x, _: torch.full_like(x, 1)),
    "24 bits": (
        "r = __mul24(0x5ffffff, 2) + __umul24(0x5ffffff, 2) / 2;",
        lambda x, _: torch.full_like(x, -2 + 0xFFFFFF),
    ),
    "means": (
        "r = __hadd(-3, 0) + 10 * __rhadd(-3, 0) + 100 * (__uhadd(~0u, ~0u - 3) == ~0u - 2) + 200 * (__urhadd(~0u, ~0u - 1) == ~0u);",
        lambda x, _: torch.full_like(x, -2 - 10 + 100 + 200),
    ),
    "distances": ("r = __sad(-5, 4, 1u) + __usad(4u, 9u, 2u);", lambda x, _: torch.full_like(x, 17)),
    "umax": (
        "r = umax(3u, 4u) + umin(3u, 4u) + llmax(-3, 4) + llmin(-3, 4) + ullmax(3, 4) + ullmin(3, 4);",
        lambda x, _: torch.full_like(x, 15),
    ),
    "warps": (
        "const int i = threadIdx.x; r = Simt::WarpAllSync(i < 32) + 2 * Simt::WarpAnySync(i == 7) + 4 * (Simt::WarpBallotSync(i < 3) == 7) "
        "+ 8 * (Simt::WarpActiveMask() == ~0u) + Simt::GetWarpSize();",
        lambda x, _: torch.full_like(x, 47),
    ),
    "shuffles": (
        "const int i = threadIdx.x; r = Simt::WarpShflSync(i, 5) + 100 * Simt::WarpShflUpSync(i, 1u) + 10000 * Simt::WarpShflDownSync(i, 1u) "
        "- Simt::WarpShflXorSync(i, 1);",
        lambda x, _: _lanes(),
    ),
    "reductions of warps": (
        "const int i = threadIdx.x; Simt::ThreadFence(); r = Simt::WarpReduceAddSync(i) + Simt::WarpReduceMaxSync(i) - Simt::WarpReduceMinSync(i + 1);",
        lambda x, _: torch.full_like(x, 496 + 31 - 1),
    ),
}


def _lanes() -> torch.Tensor:
    lane = torch.arange(COUNT)
    return 5 + 100 * (lane - 1).clamp(min=0) + 10000 * (lane + 1).clamp(max=31) - (lane ^ 1)


CASES: dict[str, tuple[str, F]] = (
    {c: (f"r = {c}(x);", f) for c, _, f in OF_ONE}
    | {simt: (f"r = Simt::{simt}(x);", f) for _, simt, f in OF_ONE}
    | {c: (f"r = {c}(x, y);", f) for c, _, f in OF_TWO}
    | {simt: (f"r = Simt::{simt}(x, y);", f) for _, simt, f in OF_TWO}
    | OTHERS
)


@pytest.fixture(scope="module")
def results(build: Build, tools: Toolkit) -> np.ndarray:
    """What each case makes of the numbers, from one launch."""
    bodies = "".join(
        f"    {{ float r; {code} z[{n * COUNT} + threadIdx.x] = r; }}\n" for n, (code, _) in enumerate(CASES.values())
    )
    library = build(
        f"""
#include "simt_api/asc_simt.h"
using namespace AscendC;
__simt_vf__ __launch_bounds__({COUNT}) inline void f(__gm__ float* xs, __gm__ float* ys, __gm__ float* z) {{
    const float x = xs[threadIdx.x], y = ys[threadIdx.x];
{bodies}}}
extern "C" __global__ __vector__ void functions(GM_ADDR x, GM_ADDR y, GM_ADDR z) {{
    asc_vf_call<f>(dim3({COUNT}), (__gm__ float*)x, (__gm__ float*)y, (__gm__ float*)z);
}}
""",
        ARCHITECTURE,
        "-O0",
    )
    z = np.zeros((len(CASES), COUNT), np.float32)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
        assert launch(library, "functions", 1, X, Y, z) == 0, tools.message()
    return z


@pytest.mark.parametrize("name", CASES)
def test_function(results: np.ndarray, name: str) -> None:
    index = list(CASES).index(name)
    x, y = torch.from_numpy(X).double(), torch.from_numpy(Y).double()
    expected = CASES[name][1](x, y).float().numpy()
    bessel = name[:2].lower() in {"j0", "j1", "jn", "y0", "y1", "yn"}
    np.testing.assert_allclose(results[index], expected, rtol=1e-6, atol=1e-5 if bessel else 1e-37, err_msg=name)


def test_other_types(tools: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "k.asc").write_text(
        """
#include "kernel_operator.h"
using namespace AscendC;
__simt_vf__ inline void f(__gm__ float* x) {
    x[0] = float(Simt::Sin(half(x[0])));
    x[1] = Simt::Cast<float, float, RoundMode::CAST_RINT>(x[1]);
    x[2] = Simt::Clz(int16_t(3));
}
"""
    )
    done = tools.bisheng("-x", "asc", ARCHITECTURE, "-O0", "-c", tmp_path / "k.asc", "-o", tmp_path / "k.o")
    assert done.returncode == 1
    for message in (
        "Simt::Sin: no such type of elements; valid: float",
        "Simt::Cast: no such conversion in this mode",
        "Simt::Clz: no such type of elements; valid: int32_t, int64_t, uint32_t, uint64_t",
    ):
        assert message in done.stderr

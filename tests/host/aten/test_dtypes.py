"""Dtypes that PyTorch's CPU kernels lack: widened where accelerators have them, refused elsewhere, never truncated."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

Tensor = torch.Tensor

#: Operators whose CPU kernels lack narrow floating dtypes that accelerators take: (call, shape, dtypes they lack).
NARROW: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "bilinear": (lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True), (1, 2, 6, 6)),
    "bicubic": (lambda x: F.interpolate(x, size=(3, 3), mode="bicubic", antialias=True), (1, 2, 6, 6)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (1, 1, 4, 4, 4)),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, torch.tensor([1, 0], device=x.device)), (2, 4)),
    "multilabel": (
        lambda x: F.multilabel_margin_loss(x, torch.tensor([[1, 0, -1, 0], [2, -1, 0, 0]], device=x.device)),
        (2, 4),
    ),
    "polygamma": (lambda x: torch.polygamma(1, x.abs() + 1), (3, 4)),
    "round": (lambda x: x.round(decimals=1), (3, 4)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_are_computed_in_wide_ones(name: str, dtype: torch.dtype) -> None:
    function, shape = NARROW[name]
    x = torch.linspace(-2, 2, torch.Size(shape).numel()).reshape(shape).to(dtype)
    wide, narrow = x.float().requires_grad_(), x.npu().requires_grad_()
    expected, result = function(wide), function(narrow)
    assert result.dtype is dtype
    torch.testing.assert_close(result.cpu(), expected.to(dtype), rtol=2e-2, atol=2e-2)
    expected.sum().backward()
    result.sum().backward()
    assert wide.grad is not None
    assert narrow.grad is not None
    torch.testing.assert_close(narrow.grad.cpu(), wide.grad.to(dtype), rtol=2e-2, atol=2e-2)


def test_noise_that_a_widened_operator_writes_is_kept() -> None:
    x, noise = torch.tensor([-1.0, 2.0, -3.0]).half().npu(), torch.zeros(3).half().npu()
    y = torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, True)
    assert y.dtype is torch.float16
    torch.testing.assert_close((x * noise).cpu(), y.cpu())
    assert noise.cpu()[1] == 1
    assert 0.1 <= noise.cpu()[0] <= 0.3


REFUSED: dict[str, Callable[[str], object]] = {
    "mse_loss": lambda d: F.mse_loss(torch.arange(4, device=d), torch.arange(4, device=d)),
    "softmax": lambda d: torch.arange(4, device=d).softmax(0),
    "rand": lambda d: torch.rand(3, dtype=torch.int64, device=d),
    "gelu": lambda d: F.gelu(torch.arange(4, device=d)),
    "layer_norm": lambda d: F.layer_norm(torch.arange(4, device=d), (4,)),
    "lerp": lambda d: torch.lerp(torch.tensor([2**53 + 1], device=d), torch.tensor([0], device=d), 0),
    "uniform_": lambda d: torch.zeros(3, dtype=torch.int32, device=d).uniform_(),
    "cholesky_half": lambda d: torch.ops.aten.linalg_cholesky_ex(torch.eye(3, device=d).half()),
    "airy_half": lambda d: torch.special.airy_ai(torch.ones(3, device=d).half()),
    "add_float8": lambda d: torch.add(*[torch.ones(2).to(d).to(torch.float8_e4m3fn)] * 2),
    "median_complex": lambda d: torch.ones(3, dtype=torch.complex64, device=d).median(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_dtypes_that_cpu_kernels_refuse_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError) as expected:
        REFUSED[name]("cpu")
    with pytest.raises(type(expected.value)) as raised:
        REFUSED[name]("npu")
    assert str(raised.value) == str(expected.value)


def test_indices_stay_integers_beside_widened_floats() -> None:
    x = torch.tensor([[0.5, 1.0, 0.25]]).half()
    target = torch.tensor([2**33 % 3])
    expected = F.multi_margin_loss(x.float(), target)
    result = F.multi_margin_loss(x.npu(), target.npu())
    torch.testing.assert_close(result.cpu().float(), expected, rtol=1e-3, atol=1e-3)
    with pytest.raises(RuntimeError, match="expected scalar type Long|inconsistent target"):
        F.multi_margin_loss(x.npu(), target.double().npu())


def test_a_refused_operator_has_written_nothing() -> None:
    x = torch.arange(3).npu()
    with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
        x.uniform_()
    assert x.cpu().tolist() == [0, 1, 2]


def test_the_documented_list_is_what_is_widened() -> None:
    root = Path(__file__).parents[3]
    words = {
        "kHalf": "float16",
        "kBFloat16": "bfloat16",
        "kContiguous": "tensors with gaps",
        "kIntegers": "integers",
        "kStatistics": "statistics in float32",
        "kGradients": "weights of another dtype",
        "kInOrder": "results in order",
        "kFromEnd": "negative indices",
    }
    source = (root / "csrc/host/bridge/adaptation.cpp").read_text()
    table = {
        name: {words[flag] for flag in flags.split(" | ")}
        for name, flags in re.findall(r'\{"aten::(\w+)", ([\w |]+)\}', source)
    }
    assert len(table) == source.count('{"aten::')
    section = (root / "docs/host-runtime.md").read_text().partition("## What is widened")[2].partition("\n## ")[0]
    documented = {
        name: set(what.split(", "))
        for names, what in re.findall(r"^\| (`.*`) \| (.*) \|$", section, re.M)
        for name in re.findall(r"`(\w+)`", names)
    }
    assert documented == table


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_histc_counts_integers(dtype: torch.dtype) -> None:
    """PyTorch's CPU kernel takes floats alone; models count the tokens of experts so."""
    x = torch.tensor([0, 3, 1, 3, 3, 2], dtype=dtype)
    assert torch.equal(torch.histc(x.npu(), 4, 0, 3).cpu(), torch.tensor([1, 1, 1, 3], dtype=dtype))
    out = torch.empty(0, dtype=dtype).npu()
    torch.histc(x.npu(), 4, out=out)
    assert out.tolist() == [1, 1, 1, 3]
    assert torch.histc(x.float().npu(), 4).cpu().dtype is torch.float32


def _norms(device: str, dtype: torch.dtype, weights: torch.dtype) -> dict[str, Callable[[], tuple[Tensor, ...]]]:
    """Norms and their gradients by the operators that graphs have."""
    torch.manual_seed(0)
    x = torch.randn(4, 8, 16).to(dtype).to(device)
    rows, channels = (torch.linspace(0.5, 2, n).to(weights).to(device) for n in (16, 8))
    mean, variance = torch.zeros(8, device=device), torch.ones(8, device=device)
    of_rows, of_groups = torch.zeros(4, 8, 1, device=device), torch.zeros(4, 4, dtype=dtype, device=device)
    aten = torch.ops.aten
    return {
        "layer": lambda: aten.native_layer_norm(x, [16], rows, rows, 1e-5),
        "layer backward": lambda: aten.native_layer_norm_backward(
            x, x, [16], of_rows, of_rows + 1, rows, rows, [True] * 3
        ),
        "batch": lambda: aten.native_batch_norm(x, channels, channels, mean, variance, True, 0.1, 1e-5),
        "batch legit": lambda: aten._native_batch_norm_legit(x, channels, channels, mean, variance, True, 0.1, 1e-5),
        "batch backward": lambda: aten.native_batch_norm_backward(
            x, x, channels, mean, variance, mean, variance, True, 1e-5, [True] * 3
        ),
        "group": lambda: aten.native_group_norm(x, channels, channels, 4, 8, 16, 4, 1e-5),
        "group backward": lambda: aten.native_group_norm_backward(
            x, x, of_groups, of_groups + 1, channels, 4, 8, 16, 4, [True] * 3
        ),
    }


NORMS = tuple(_norms("cpu", torch.float32, torch.float32))


@pytest.mark.parametrize("weights", ["the input's", "float32"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_narrow_floats_have_the_dtypes_of_their_meta_functions(
    name: str, dtype: torch.dtype, weights: str
) -> None:
    of_weights = dtype if weights == "the input's" else torch.float32
    result = _norms("npu", dtype, of_weights)[name]()
    with FakeTensorMode():
        fakes = _norms("npu", dtype, of_weights)[name]()
    # Meta functions that give what the operands are promoted to, or in torch 2.7 the input's dtype.
    wrong = {"group backward"} | ({"layer backward"} if torch.__version__ < (2, 8) else set())
    if name not in wrong:
        assert [t.dtype for t in result] == [t.dtype for t in fakes]
    assert result[0].dtype is dtype
    expected = _norms("cpu", torch.float32, torch.float32)[name]()
    for actual, wanted in zip(result, expected, strict=True):
        torch.testing.assert_close(actual.cpu().float(), wanted, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("statistics", ["float32", "the input's"])
def test_running_statistics_of_narrow_floats_are_updated(dtype: torch.dtype, statistics: str) -> None:
    def run(device: str, of_input: torch.dtype, of_statistics: torch.dtype) -> list[Tensor]:
        norm = torch.nn.BatchNorm1d(4).to(device).to(of_input)
        norm.running_mean, norm.running_var = (
            torch.full((4,), value, dtype=of_statistics, device=device) for value in (0.0, 1.0)
        )
        y = norm(torch.arange(12.0).reshape(3, 4).to(of_input).to(device))
        return [t.detach().cpu().float() for t in (y, norm.running_mean, norm.running_var)]

    wide = run("cpu", torch.float32, torch.float32)
    narrow = run("npu", dtype, torch.float32 if statistics == "float32" else dtype)
    for actual, expected in zip(narrow, wide, strict=True):
        torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)


def test_the_input_alone_is_not_narrow() -> None:
    """A float32 input with float16 weights is refused by the CPU's kernel, and so here."""
    x, weight = torch.ones(2, 4), torch.ones(4, dtype=torch.float16)
    for device in ("cpu", "npu"):
        with pytest.raises(RuntimeError, match="mixed dtype|expected scalar type"):
            F.layer_norm(x.to(device), (4,), weight.to(device), weight.to(device))

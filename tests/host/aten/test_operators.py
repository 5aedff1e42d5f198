"""ATen operators on npu tensors give what they give on the CPU, through autograd, out= and random generators."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

CASES = {
    "add": lambda x, y: x + y,
    "mul_scalar": lambda x, y: x * 3.5,
    "compare": lambda x, y: x > y,
    "where": lambda x, y: torch.where(x > 0, x, y),
    "matmul": lambda x, y: x @ y.t(),
    "sum_dim": lambda x, y: x.sum(1, keepdim=True),
    "max_dim": lambda x, y: x.max(dim=1),
    "sort": lambda x, y: x.sort(dim=-1),
    "index": lambda x, y: x[:, [2, 0]],
    "index_tensor": lambda x, y: x[torch.tensor([1, 0], device=x.device)],
    "boolean_mask": lambda x, y: x[x > 0],
    "cat": lambda x, y: torch.cat([x, y], dim=0),
    "split": lambda x, y: x.split(2, dim=1),
    "view_and_add": lambda x, y: x.view(-1)[1:].add(1),
    "softmax": lambda x, y: x.softmax(-1),
    "layer_norm": lambda x, y: F.layer_norm(x, (4,)),
    "gelu": lambda x, y: F.gelu(x),
    "cumsum": lambda x, y: x.cumsum(0),
    "topk": lambda x, y: x.topk(2),
    "std": lambda x, y: x.std(),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "pad": lambda x, y: F.pad(x, (1, 2)),
    "interpolate": lambda x, y: F.interpolate(x[None, None], scale_factor=2.0),
    "svd": lambda x, y: torch.linalg.svdvals(x),
    "foreach": lambda x, y: torch._foreach_add([x, y], 1.0),
    "type_promotion": lambda x, y: x + torch.ones(4, dtype=torch.int64, device=x.device),
    "cpu_scalar": lambda x, y: x + torch.tensor(2.0),
    "casts": lambda x, y: x.half().to(torch.bfloat16).double().to(torch.int64),
    "strides": lambda x, y: x.t().half().stride(),
    "complex": lambda x, y: torch.view_as_real(torch.complex(x, y)),
    "bernoulli_shape": lambda x, y: torch.bernoulli(torch.full_like(x, 0.5)).shape,
    "nonzero": lambda x, y: (x > 0).nonzero(),
    "unique": lambda x, y: (x > 0).int().unique(),
    "fft": lambda x, y: torch.fft.rfft(x).abs(),
}


def to_cpu(value):
    if isinstance(value, torch.Tensor):
        assert value.device.type == "npu"
        return value.cpu()
    if isinstance(value, tuple | list) and isinstance(value[0], torch.Tensor):
        return [to_cpu(v) for v in value]
    return value


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_cpu(name: str) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    expected = CASES[name](x, y)
    result = to_cpu(CASES[name](x.npu(), y.npu()))
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(result, expected)
    elif not isinstance(expected[0], torch.Tensor):
        assert result == expected  # a shape or strides
    else:
        torch.testing.assert_close(list(result), list(expected))


def test_in_place_and_views_write_device_memory() -> None:
    x = torch.zeros(3, 4, device="npu")
    x[1].add_(1)
    x[:, 0] = 7
    x.t()[2].mul_(5)
    expected = torch.zeros(3, 4)
    expected[1].add_(1)
    expected[:, 0] = 7
    expected.t()[2].mul_(5)
    assert torch.equal(x.cpu(), expected)


def test_inputs_are_read_before_memory_that_they_share_is_written() -> None:
    # torch_npu refuses dense tensors that overlap; of others the device reads its inputs first, and npugraph_ex makes
    # such calls of its own.
    x = torch.arange(24).reshape(2, 12).npu()
    x[:, 1:].sub_(x[:, :-1])
    assert x.cpu().tolist() == [[0, *[1] * 11], [12, *[1] * 11]]


def test_views_in_place_share_their_memory() -> None:
    x = torch.arange(6).reshape(2, 3).npu()
    flat = x.view(6)
    x.t_()
    assert (x.shape, x.stride()) == ((3, 2), (1, 3))
    flat[0] = 9
    assert x.unsqueeze_(0).as_strided_((2, 2), (1, 1)).cpu().tolist() == [[9, 1], [1, 2]]


@pytest.mark.parametrize(
    ("module", "size"),
    [(nn.BatchNorm2d(3).eval(), (2, 3, 4, 4)), (nn.MaxPool2d(3, 2, 1), (2, 3, 8, 8)), (nn.LayerNorm(8), (2, 8))],
    ids=lambda value: type(value).__name__,
)
def test_modules_in_a_captured_graph(module: nn.Module, size: tuple[int, ...]) -> None:
    x = torch.linspace(-2, 2, torch.Size(size).numel()).reshape(size)
    placed, graph = x.npu(), torch.npu.NPUGraph()
    with torch.no_grad():
        expected = module(x)
        module = module.npu()
        with torch.npu.graph(graph):
            result = module(placed)
        for scale in (1, 3):
            placed.copy_(x * scale)
            graph.replay()
            torch.testing.assert_close(result.cpu(), module.cpu()(x * scale) if scale > 1 else expected)
            module = module.npu()


@pytest.mark.filterwarnings("ignore")  # compiling warns of much that is not ours
def test_pooling_that_makes_its_result_a_view_in_place_compiles() -> None:
    x = torch.randn(2, 8, 16)
    compiled = torch.compile(
        lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 1), backend="npugraph_ex", dynamic=False
    )
    torch.testing.assert_close(compiled(x.npu()).cpu(), F.adaptive_avg_pool1d(x.transpose(1, 2), 1))


def test_strides_that_the_cpu_kernel_does_not_take() -> None:
    x, weight = torch.randn(2, 3, 3, 8).permute(0, 3, 1, 2), torch.randn(8)
    expected = torch.native_group_norm(x.contiguous(), weight, weight, 2, 8, 9, 2, 1e-5)
    results = torch.native_group_norm(x.transpose(2, 3).npu(), weight.npu(), weight.npu(), 2, 8, 9, 2, 1e-5)
    torch.testing.assert_close(results[0].transpose(2, 3).cpu(), expected[0])
    torch.testing.assert_close([r.cpu() for r in results[1:]], list(expected[1:]))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.mm(x[0, 0].npu().t(), x[0].reshape(8, 9).npu())


_IMAGES, _VOLUMES = torch.rand(2, 3, 6, 4), torch.rand(2, 3, 6, 4, 5)
_MEANS, _SCALES = torch.rand(2, 3), torch.rand(2, 3) + 0.5
_LABELS = torch.randint(0, 3, (2, 6, 4))

#: Backward passes of which PyTorch's CPU kernels read tensors as if they were contiguous, or refuse others; a device
#: takes their strides.
BACKWARD = {
    "native_group_norm_backward": (
        *(_IMAGES.square(), _IMAGES, _MEANS, _SCALES, torch.rand(3), 2, 3, 24, 3),
        [True, True, True],
    ),
    "adaptive_max_pool3d_backward": (
        *(torch.rand(2, 3, 2, 2, 3), _VOLUMES, F.adaptive_max_pool3d(_VOLUMES, (2, 2, 3), return_indices=True)[1]),
    ),
    "fractional_max_pool2d_backward": (
        *(torch.rand(2, 3, 3, 2), _IMAGES, [2, 2], [3, 2]),
        torch.ops.aten.fractional_max_pool2d(_IMAGES, [2, 2], [3, 2], torch.rand(2, 3, 2))[1],
    ),
    "fractional_max_pool3d_backward": (
        *(torch.rand(2, 3, 3, 2, 2), _VOLUMES, [2, 2, 2], [3, 2, 2]),
        torch.ops.aten.fractional_max_pool3d(_VOLUMES, [2, 2, 2], [3, 2, 2], torch.rand(2, 3, 3))[1],
    ),
    "nll_loss2d_backward": (*(torch.rand(2, 6, 4), _IMAGES, _LABELS, None, 0, -100, torch.tensor(48.0)),),
    "_pdist_backward": (torch.rand(6), torch.rand(4, 5), 2.0, torch.rand(6) + 0.5),
    "_pdist_forward": (torch.rand(4, 5), 2.0),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_strides_that_the_cpu_kernel_reads_wrongly(name: str) -> None:
    """Each tensor in turn, and all at once, with its first axis innermost in memory."""
    operator, arguments = getattr(torch.ops.aten, name), BACKWARD[name]
    expected = operator(*arguments)
    tensors = [n for n, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
    for chosen in ([], *([n] for n in tensors), tensors):
        given = [a.npu() if isinstance(a, torch.Tensor) else a for a in arguments]
        for n in chosen:
            given[n] = given[n].transpose(0, -1).contiguous().transpose(0, -1) if given[n].dim() > 1 else given[n]
        found = operator(*given)
        torch.testing.assert_close(found, expected, check_device=False, msg=lambda m, c=chosen: f"arguments {c}: {m}")


@pytest.mark.parametrize("way", ["eager", "out", "captured"])
def test_gather_counts_negative_indices_from_the_end(way: str) -> None:
    """Unlike PyTorch's CPU kernel, by CANN's document of aclnnGather."""
    x, index = torch.arange(6.0).view(2, 3), torch.tensor([[-1, 0], [-3, 2]])

    def captured(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            result = torch.gather(x, 1, index)
        graph.replay()
        return result

    gathered = {
        "eager": lambda: torch.gather(x.npu(), -1, index.npu()),
        "out": lambda: torch.gather(x.npu(), 1, index.npu(), out=torch.empty(2, 2).npu()),
        "captured": lambda: captured(x.npu(), index.npu()),
    }
    assert gathered[way]().tolist() == [[2, 0], [3, 5]]
    for outside in (-4, 3):
        with pytest.raises(RuntimeError, match="out of bounds"):
            torch.gather(x.npu(), 1, torch.full_like(index, outside).npu())


def test_out_arguments_are_resized() -> None:
    x = torch.arange(6.0, device="npu")
    out = torch.empty(0, device="npu")
    torch.add(x, x, out=out)
    assert out.shape == (6,)
    assert torch.equal(out.cpu(), torch.arange(6.0) * 2)


def test_generators_repeat_their_sequence() -> None:
    generator = torch.Generator("npu")
    generator.manual_seed(3)
    first = [torch.rand(4, generator=generator, device="npu") for _ in range(2)]
    generator.manual_seed(3)
    again = [torch.rand(4, generator=generator, device="npu") for _ in range(2)]
    assert torch.equal(torch.stack(first), torch.stack(again))
    assert not torch.equal(first[0], first[1])
    torch.npu.manual_seed(5)
    a = torch.randn(4, device="npu")
    torch.npu.manual_seed(5)
    assert torch.equal(a, torch.randn(4, device="npu"))


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 8),
        nn.LayerNorm(8),
        nn.GELU(),
    )


def test_training_step_agrees_with_cpu() -> None:
    data, target = torch.randn(2, 3, 8, 8), torch.tensor([1, 5])
    parameters = []
    for device in ("cpu", "npu"):
        model = network().to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(data.to(device)), target.to(device)).backward()
            optimizer.step()
        parameters.append([p.detach().cpu() for p in model.parameters()])
    torch.testing.assert_close(parameters[1], parameters[0], rtol=1e-4, atol=1e-5)


def test_attention_and_recurrent_layers_train() -> None:
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        lstm, gru = nn.LSTM(4, 5).to(device), nn.GRU(5, 3).to(device)
        attention = nn.MultiheadAttention(4, 2).to(device)
        x = torch.linspace(-1, 1, 24).reshape(3, 2, 4).to(device).requires_grad_()
        y, _ = attention(x, x, x)
        out, _ = gru(lstm(y)[0])
        out.square().mean().backward()
        gradients = [
            g.cpu() for g in (x.grad, lstm.weight_hh_l0.grad, gru.weight_ih_l0.grad, attention.in_proj_weight.grad)
        ]
        if device == "cpu":
            expected = gradients
    torch.testing.assert_close(gradients, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (4, 4, 2), (3, 3), (4, 4)])
def test_out_of_another_size_becomes_what_the_cpu_makes_of_it(shape: tuple[int, ...]) -> None:
    """The inverse is written column by column, also into memory that was larger."""
    matrix = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    here, there = torch.full(shape, 3.0), torch.full(shape, 3.0).npu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that such an out= is resized
        torch.linalg.inv(matrix, out=here)
        torch.linalg.inv(matrix.npu(), out=there)
    assert there.stride() == here.stride()
    assert torch.equal(there.cpu(), here)


def _smallest_by_minus_one(dtype: torch.dtype, strided: bool) -> tuple[torch.Tensor, torch.Tensor]:
    smallest = torch.full((40, 2), torch.iinfo(dtype).min, dtype=dtype).npu()
    divisor = torch.full((40, 2), -1, dtype=dtype).npu()
    return (smallest[:, 0], divisor[:, 1]) if strided else (smallest, divisor)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8], ids=str)
@pytest.mark.parametrize("strided", [True, False])
def test_the_smallest_integer_divided_by_minus_one_ends_no_process(dtype: torch.dtype, strided: bool) -> None:
    a, b = _smallest_by_minus_one(dtype, strided)
    limit = torch.iinfo(dtype).min
    wraps = {limit} if dtype in (torch.int64, torch.int32) else {limit, -limit - 1}
    for _ in range(2):
        assert set(torch.div(a, b, rounding_mode="trunc").flatten().tolist()) <= wraps
        assert set(torch.div(a, -1, rounding_mode="trunc").flatten().tolist()) <= wraps
        assert set(torch.div(a, b, rounding_mode="floor").flatten().tolist()) <= wraps
        assert (a % b).unique().tolist() == [0]
        assert torch.fmod(a, b).unique().tolist() == [0]


def test_integers_divided_by_zero_are_refused() -> None:
    a = torch.arange(5).npu()
    for divide in (torch.remainder, torch.fmod, torch.floor_divide):
        with pytest.raises(RuntimeError, match="ZeroDivisionError|divided by zero"):
            divide(a, a)


def test_memory_that_was_freed_under_a_tensor_is_refused() -> None:
    """As FSDP2 frees parameters: a device would read address 0."""
    x, y = torch.ones(4, device="npu"), torch.ones(4, device="npu")
    x.untyped_storage().resize_(0)
    for call in (lambda: x + y, lambda: y.copy_(x), lambda: torch._foreach_add_([y], [x]), x.zero_):
        with pytest.raises(RuntimeError, match=r"shape \[4\] whose memory was freed"):
            call()
    assert torch.empty_like(x).shape == x.detach().shape == (4,)
    x.untyped_storage().resize_(16)
    torch.testing.assert_close((x.fill_(2) + y).cpu(), torch.full((4,), 3.0))

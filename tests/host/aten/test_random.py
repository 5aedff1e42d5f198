"""Random numbers of device generators: seeds, offsets, states, and what a captured graph draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.utils.checkpoint

Draw = Callable[[], torch.Tensor]


def _ones(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes, device="npu")


DRAWS: dict[str, Draw] = {
    "rand": lambda: torch.rand(64, device="npu"),
    "randn": lambda: torch.randn(64, device="npu"),
    "rand_like": lambda: torch.rand_like(_ones(64)),
    "randn_like": lambda: torch.randn_like(_ones(64)),
    "randint": lambda: torch.randint(0, 1 << 30, (64,), device="npu"),
    "randint_like": lambda: torch.randint_like(_ones(64), 1 << 20),
    "randperm": lambda: torch.randperm(64, device="npu"),
    "random_": lambda: _ones(64).random_(0, 1 << 20),
    "uniform_": lambda: _ones(64).uniform_(-1, 1),
    "normal_": lambda: _ones(64).normal_(),
    "normal": lambda: torch.normal(_ones(64), _ones(64)),
    "log_normal_": lambda: _ones(64).log_normal_(),
    "exponential_": lambda: _ones(64).exponential_(),
    "cauchy_": lambda: _ones(64).cauchy_(),
    "geometric_": lambda: _ones(64).geometric_(0.01),
    "bernoulli": lambda: torch.bernoulli(_ones(64) / 2),
    "bernoulli_": lambda: _ones(64).bernoulli_(0.5),
    "multinomial": lambda: _ones(64).multinomial(16),
    "poisson": lambda: torch.poisson(100 * _ones(64)),
    "standard_gamma": lambda: torch._standard_gamma(_ones(64)),
    "dirichlet": lambda: torch._sample_dirichlet(_ones(64)),
    "binomial": lambda: torch.binomial(100 * _ones(64), _ones(64) / 2),
    "dropout": lambda: torch.nn.functional.dropout(_ones(64)),
    "dropout_": lambda: torch.nn.functional.dropout(_ones(64), inplace=True),
    "native_dropout": lambda: torch.native_dropout(_ones(64), 0.5, True)[1],
    "alpha_dropout": lambda: torch.nn.functional.alpha_dropout(_ones(64), training=True),
    "feature_dropout": lambda: torch.nn.functional.dropout2d(_ones(64, 1, 1, 1)),
    "rrelu": lambda: torch.nn.functional.rrelu(-_ones(64), training=True),
    "attention": lambda: torch.nn.functional.scaled_dot_product_attention(
        *(torch.arange(256, device="npu").reshape(1, 1, 16, 16) / 256 for _ in range(3)), dropout_p=0.5
    ),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    with torch.random.fork_rng(device_type="npu"):
        yield


@every_draw
def test_the_same_seed_gives_the_same_numbers(draw: Draw) -> None:
    host = torch.get_rng_state()
    torch.npu.manual_seed(1)
    first, second = draw(), draw()
    torch.npu.manual_seed(1)
    assert torch.equal(draw(), first)
    assert torch.equal(draw(), second)
    assert not torch.equal(first, second)
    torch.npu.manual_seed(2)
    assert not torch.equal(draw(), first)
    assert torch.equal(torch.get_rng_state(), host)  # the CPU's generator is another one


@every_draw
def test_a_saved_state_repeats_in_the_middle_of_a_sequence(draw: Draw) -> None:
    draw()
    state = torch.npu.get_rng_state()
    first = draw()
    draw()
    torch.npu.set_rng_state(state)
    assert torch.equal(draw(), first)


#: What a device cannot capture: torch_npu's kernels take a seed from the host, or there is none and the CPU computes
#: it.
SEEDED = {
    *("randperm", "normal", "exponential_", "bernoulli", "bernoulli_", "alpha_dropout", "feature_dropout", "rrelu"),
}
ON_CPU = {"log_normal_", "cauchy_", "geometric_", "poisson", "standard_gamma", "dirichlet", "binomial"}


@pytest.mark.parametrize("name", sorted(SEEDED | ON_CPU))
def test_what_a_device_cannot_draw_in_a_capture_is_refused(name: str) -> None:
    graph, stream = torch.npu.NPUGraph(), torch.npu.Stream()
    why = "torch_npu's kernel takes seed and offset from the host" if name in SEEDED else "torch_npu has no kernel"
    before = torch.npu.get_rng_state()
    with torch.npu.stream(stream):
        graph.capture_begin()
        with pytest.raises(RuntimeError, match=rf"aten::\S+ cannot be captured: {why}"):
            DRAWS[name]()
        graph.capture_end()
    assert torch.equal(torch.npu.get_rng_state(), before)


@pytest.mark.parametrize("draw", [DRAWS[name] for name in DRAWS if name not in SEEDED | ON_CPU])
def test_each_replay_draws_anew_and_repeats_after_a_seed(draw: Draw) -> None:
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        captured = [draw(), draw()]

    def replay() -> list[torch.Tensor]:
        graph.replay()
        return [x.clone() for x in captured]

    torch.npu.manual_seed(3)
    replays = [replay(), replay()]
    after = torch.rand(8, device="npu")
    torch.npu.manual_seed(3)
    for numbers in replays:
        for x, y in zip(replay(), numbers, strict=True):
            assert torch.equal(x, y)
    assert torch.equal(torch.rand(8, device="npu"), after)
    torch.npu.manual_seed(3)
    eager = [[draw(), draw()], [draw(), draw()]]  # a replay draws what the same calls would
    for numbers, expected in zip(replays, eager, strict=True):
        for x, y in zip(numbers, expected, strict=True):
            assert torch.equal(x, y)
    assert len({tuple(x.flatten().tolist()) for numbers in replays for x in numbers}) == 4


def test_seed_and_offset_are_the_whole_state() -> None:
    generator = torch.Generator("npu").manual_seed(5)
    assert generator.initial_seed() == 5
    assert generator.get_offset() == 0
    first = torch.rand(4, device="npu", generator=generator)
    offset = generator.get_offset()
    assert offset > 0
    second = torch.rand(4, device="npu", generator=generator)
    generator.set_offset(offset)
    assert torch.equal(torch.rand(4, device="npu", generator=generator), second)
    generator.set_offset(0)
    assert torch.equal(torch.rand(4, device="npu", generator=generator), first)
    assert generator.seed() == generator.initial_seed() != 5


def test_generators_are_independent() -> None:
    torch.npu.manual_seed(1)
    default = torch.rand(4, device="npu")
    torch.npu.manual_seed(1)
    own = torch.Generator("npu").manual_seed(1)
    for _ in range(3):
        torch.rand(4, device="npu", generator=own)
    assert torch.equal(torch.rand(4, device="npu"), default)
    assert torch.equal(torch.rand(4, device="npu", generator=own.manual_seed(1)), default)


def test_every_way_to_seed_all_devices() -> None:
    numbers = []
    for seed in (torch.manual_seed, torch.npu.manual_seed, torch.npu.manual_seed_all):
        host = torch.get_rng_state()
        try:
            seed(11)
        finally:
            torch.set_rng_state(host)
        assert torch.npu.initial_seed() == 11
        numbers.append(torch.rand(4, device="npu"))
    assert torch.equal(numbers[0], numbers[1])
    assert torch.equal(numbers[0], numbers[2])


def test_fork_rng_leaves_no_trace() -> None:
    torch.npu.manual_seed(1)
    expected = [torch.rand(4, device="npu"), torch.rand(4, device="npu")]
    torch.npu.manual_seed(1)
    assert torch.equal(torch.rand(4, device="npu"), expected[0])
    with torch.random.fork_rng(device_type="npu"):
        torch.rand(4, device="npu")
    assert torch.equal(torch.rand(4, device="npu"), expected[1])


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpointed_dropout_has_the_gradient_of_its_own_mask(use_reentrant: bool) -> None:
    def layer(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.nn.functional.dropout(x) * 3)

    x = torch.rand(256, device="npu", requires_grad=True)
    torch.npu.manual_seed(1)
    plain = layer(x)
    plain.sum().backward()
    expected, x.grad = x.grad, None
    torch.npu.manual_seed(1)
    y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=use_reentrant)
    assert torch.equal(y, plain)
    torch.rand(4, device="npu")
    y.sum().backward()
    assert torch.equal(x.grad, expected)


def test_a_generator_of_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'npu' device type for generator but found 'cpu'"):
        torch.ones(4, device="npu").uniform_(generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'npu'"):
        torch.ones(4).uniform_(generator=torch.Generator("npu"))


def test_successive_calls_are_independent() -> None:
    # Calls of one number each are as good a sample as one call, and neighboring seeds and offsets do not correlate.
    torch.npu.manual_seed(0)
    rows = []
    for seed in range(64):
        torch.npu.manual_seed(seed)
        rows.append(torch.stack([torch.rand(1, device="npu") for _ in range(64)]).flatten().cpu())
    x = torch.stack(rows)
    assert abs(x.mean().item() - 0.5) < 4 / (12 * x.numel()) ** 0.5
    z = (x - 0.5) * 12**0.5
    for shifted in (z[1:] * z[:-1], z[:, 1:] * z[:, :-1], z[1:, 1:] * z[:-1, :-1]):
        assert abs(shifted.sum().item()) < 4 * shifted.numel() ** 0.5
    assert x.unique().numel() > x.numel() - 8  # of 2^24 floats


@pytest.mark.parametrize("shape", [(), (16,), (5, 30)])
def test_a_dropout_mask_has_a_bit_for_each_element(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, device="npu", dtype=torch.float16)
    with torch.no_grad():
        y, mask = torch.native_dropout(x, 0.25, True)
    assert (mask.dtype, mask.shape) == (torch.uint8, (-(-x.numel() // 128) * 16,))
    assert torch.equal(torch.ops.aten.native_dropout_backward(x, mask, 1 / 0.75), y)


def test_dropout_is_differentiated_twice() -> None:
    x = torch.full((16,), 3.0, device="npu", requires_grad=True)
    y = torch.nn.functional.dropout(x**2)
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert torch.equal(second, y.detach() * 2 / 9)


def test_dropout_in_place_draws_what_dropout_draws() -> None:
    x = torch.ones(64, device="npu", requires_grad=True)
    torch.manual_seed(3)
    expected = torch.nn.functional.dropout(x)
    torch.manual_seed(3)
    result = torch.nn.functional.dropout(x * 1, inplace=True)
    assert torch.equal(result, expected)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(gradient, result)
    assert torch.nn.functional.dropout(x, training=False, inplace=True) is x  # a leaf, not written

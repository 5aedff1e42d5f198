"""Registered operators that write, with tensors for whose dtypes Inductor makes no code, and with parts of such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves
from writing_operators import MODES, captured

import ascend_graph
from ascend_graph.host.kernels import host_kernel

T = torch.Tensor
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]

HEADER = """
REG_OP(WrittenParts)
    .INPUT(x, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .INPUT(y, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .OUTPUT(x, TensorType({DT_FLOAT, DT_COMPLEX64}))
    .OP_END_FACTORY_REG(WrittenParts)
"""


@host_kernel("WrittenParts", writes=("x",))
def _parts(x: T, y: T) -> T:
    return x.mul_(2).add_(y)


def _turn(q: T, angles: T) -> None:
    q.copy_(torch.view_as_real(torch.view_as_complex(q) * angles))


def _put(cache: T, x: T) -> None:
    cache.copy_(x.to(cache.dtype))


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("written_dtypes", "DEF")
    library.define("parts(Tensor(a!) x, Tensor y) -> ()")
    library.define("turn(Tensor(a!) q, Tensor angles) -> ()")
    library.define("put(Tensor(a!) cache, Tensor x) -> ()")
    library.define("pair(Tensor(a!) x, Tensor(b!) y) -> ()")
    for key in ("CPU", "PrivateUse1"):
        library.impl("parts", lambda x, y: (_parts(x, y), None)[1], key)
        library.impl("turn", _turn, key)
        library.impl("put", _put, key)
        library.impl("pair", lambda x, y: (x.add_(1), y.mul_(3), None)[2], key)
    found = torch.ops.written_dtypes
    registered = [
        ascend_graph.register_op("WrittenParts", eager=found.parts.default),
        ascend_graph.register_kernel(eager=found.turn, shape="->"),
        ascend_graph.register_kernel(eager=found.put, shape="->"),
        ascend_graph.register_kernel(eager=found.pair, shape="->"),
    ]
    yield SimpleNamespace(parts=found.parts, turn=found.turn, put=found.put, pair=found.pair)
    for registration in registered:
        registration.unregister()
    library._destroy()


CAPTURES = MODES[2:]
OLD = torch.__version__.startswith("2.7.")
OLD_REASON = f"torch {torch.__version__} has no rule for such arguments of operators that write"


def numbers(n: int) -> T:
    return torch.arange(1.0, n + 1) * (1 + 2j)


def assert_same(
    program: Callable[..., Any], compiled: Callable[..., Any], *calls: Callable[[str], tuple[T, ...]]
) -> None:
    """Compare results and arguments after each call, whose arguments are made on a device, with the CPU's."""
    for call in calls:
        memory, on_device = call("cpu"), call("npu")
        expected, found = program(*memory), compiled(*on_device)
        for right, value in zip(tree_leaves((expected, memory)), tree_leaves((found, on_device)), strict=True):
            torch.testing.assert_close(value.cpu().resolve_conj(), right.resolve_conj())


#: Views of complex numbers whose memory is that of the numbers.
PARTS: dict[str, Callable[[T], T]] = {
    "real": lambda z: z.real,
    "imaginary": lambda z: z.imag,
    "pairs": lambda z: torch.view_as_real(z)[..., 1],
    "of a slice": lambda z: z[1:].imag,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("computed", [False, True])
def test_a_part_of_complex_numbers_is_written(ops: SimpleNamespace, part: str, computed: bool, mode: Any) -> None:
    def program(z: T, y: T) -> T:
        z = z * 2 if computed else z
        ops.parts(PARTS[part](z), y)
        return z + 0

    calls = [lambda d, n=n: (numbers(n).to(d), torch.ones(PARTS[part](numbers(n)).shape, device=d)) for n in (3, 5)]
    assert_same(program, mode(program), *calls)


@pytest.mark.parametrize("mode", MODES)
def test_both_parts_are_written_by_two_calls_and_read(ops: SimpleNamespace, mode: Any) -> None:
    def program(z: T) -> T:
        ops.parts(z.real, z.imag * 1)
        ops.parts(z.imag, z.real)
        return z * 1

    assert_same(program, mode(program), lambda d: (numbers(3).to(d),), lambda d: (numbers(4).to(d),))


@pytest.mark.skipif(OLD, reason=OLD_REASON)
@pytest.mark.parametrize("mode", MODES)
def test_conjugated_inputs_are_written(ops: SimpleNamespace, mode: Any) -> None:
    def program(x: T, y: T) -> T:
        ops.parts(x, y)
        return x + 0

    assert_same(
        program,
        mode(program),
        lambda d: (numbers(3).to(d).conj(), numbers(3).to(d)),
        lambda d: (numbers(3).to(d).conj(), numbers(3).to(d).conj()),
        lambda d: (numbers(3).to(d), numbers(3).to(d).conj()),
    )


@pytest.mark.parametrize("mode", CAPTURES)
def test_a_part_is_conjugated_inside(ops: SimpleNamespace, mode: Any) -> None:
    """TorchAir has no converter of ``conj`` for GE, and says so."""

    def program(x: T, y: T) -> T:
        ops.parts(x[1:].conj(), y)
        ops.parts(x.conj().imag, x.real)
        return x + 0

    assert_same(program, mode(program), lambda d: (numbers(3).to(d), numbers(2).to(d)))


@pytest.mark.parametrize("mode", CAPTURES)
def test_complex_numbers_are_read(ops: SimpleNamespace, mode: Any) -> None:
    def program(q: T, k: T, angles: T) -> T:
        ops.turn(q, angles)
        ops.turn(k[1:], angles[1:])
        return q + k

    calls = [lambda d, n=n: (torch.ones(n, 2, device=d), torch.ones(n, 2, device=d), numbers(n).to(d)) for n in (3, 4)]
    assert_same(program, mode(program), *calls)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float8_e4m3fn,
        torch.float8_e5m2,
        pytest.param(torch.float8_e8m0fnu, marks=pytest.mark.skipif(OLD, reason=OLD_REASON)),
        torch.complex64,
    ],
)
def test_caches_of_any_dtype_are_written_in_captures(ops: SimpleNamespace, dtype: torch.dtype) -> None:
    def program(cache: T, x: T) -> T:
        ops.put(cache[1:3], x)
        return x + 1

    cache, x = torch.ones(4, 2).to(dtype).npu(), torch.full((2, 2), 2.0).npu()
    captured(program)(cache, x)
    as_float = cache.cpu().to(torch.complex64).real
    torch.testing.assert_close(as_float, torch.tensor([[1.0, 1.0], [2.0, 2.0], [2.0, 2.0], [1.0, 1.0]]))


@pytest.mark.parametrize("mode", CAPTURES)
def test_two_parts_are_written_by_one_call(ops: SimpleNamespace, mode: Any) -> None:
    def program(z: T) -> T:
        ops.pair(z.real, z.imag)
        part = z[1:].imag
        ops.pair(part, part)
        return z * 1

    assert_same(program, mode(program), lambda d: (numbers(3).to(d),))


#: Written arguments that share elements, of complex numbers.
OVERLAPS: dict[str, Callable[[T], tuple[T, T]]] = {
    "a part twice": lambda z: (z.imag, z.imag),
    "numbers and a part": lambda z: (z, z.real),
}


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_parts_that_overlap_are_refused(ops: SimpleNamespace, overlap: str) -> None:
    def program(z: T) -> T:
        ops.pair(*OVERLAPS[overlap](z))
        return z * 1

    with pytest.raises(Exception, match="writes two arguments that may share memory.*Pass a clone"):
        captured(program)(numbers(3).npu())


#: Values of another dtype than an argument has, in its memory.
BITS: dict[str, Callable[[T], T]] = {
    "same width": lambda x: x.view(torch.int32)[:, ::2],
    "halves": lambda x: x.view(torch.float16)[:, 1::2],
    "of a value": lambda x: x.mul_(2).view(torch.int32)[:, ::2],
}


@pytest.mark.parametrize("mode", MODES[2:])
@pytest.mark.parametrize("bits", BITS)
def test_layers_of_a_cache_are_written_in_another_dtype(ops: SimpleNamespace, bits: str, mode: Any) -> None:
    def program(x: T) -> T:
        ops.put(BITS[bits](x), BITS[bits](x) + 1)
        return x * 1

    compiled, cache = mode(program), torch.arange(72.0).reshape(3, 4, 6)
    on_device = cache.npu()
    for layer in (2, 0, 1):
        right, found = program(cache[layer]), compiled(on_device[layer])
        torch.testing.assert_close(on_device.cpu(), cache)
        torch.testing.assert_close(found.cpu(), right)

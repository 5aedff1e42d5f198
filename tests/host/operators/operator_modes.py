"""Run an operator of torch_npu in every mode, and compare with a reference on the CPU."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import torch_npu
import torchair

from ascend_graph.compilation import cache_directory, locked
from ascend_graph.environment import toolkit_directory

T = torch.Tensor

#: Relative and absolute tolerances by the dtype of a result.
TOLERANCES = {
    torch.float32: (1e-4, 1e-5),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
    torch.complex64: (1e-4, 1e-5),
    torch.int8: (0, 1),  # a tie of rounding
}


#: What the documents have for a series of processors alone is tested in a process that stands for one.
ASCEND_950 = pytest.mark.processor("Ascend950PR_9589")
ATLAS_A3 = pytest.mark.processor("Ascend910_9391")
ATLAS_INFERENCE = pytest.mark.processor("Ascend310P3")


@dataclass(frozen=True)
class InBlocks:
    """An argument that the device keeps in a format of blocks; tests with one allow them (``torch.npu.config``)."""

    tensor: T
    format: int = 29  # FRACTAL_NZ


def tree_map(function: Callable[[T], Any], value: Any) -> Any:
    if isinstance(value, T):
        return function(value)
    if isinstance(value, InBlocks):
        kept = torch_npu.npu_format_cast(function(value.tensor), value.format)
        assert torch_npu.get_npu_format(kept) == value.format
        return kept
    return type(value)(tree_map(function, item) for item in value) if isinstance(value, (list, tuple)) else value


def to_npu(value: Any) -> Any:
    """The same with every tensor on the device, in memory of its own."""
    return tree_map(lambda t: t.clone().npu(), value)


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _wide(x: T) -> T:
    return (torch.view_as_real(x) if x.is_complex() else x).double()


def assert_equal(results: Any, expected: Any, mode: str) -> None:
    actual, wanted = listed(results), listed(expected)
    assert len(actual) == len(wanted), f"{mode}: {len(actual)} results, expected {len(wanted)}"
    for number, (a, b) in enumerate(zip(actual, wanted, strict=True)):
        if b is None:  # not determined
            continue
        got = a.cpu()
        if got.dtype is torch.float8_e8m0fnu and b.dtype is torch.uint8:  # torch_npu's bytes, GE's dtype
            got = got.view(torch.uint8)
        assert got.shape == b.shape, f"{mode}, result {number}: shape {tuple(got.shape)}, expected {tuple(b.shape)}"
        assert got.dtype == b.dtype, f"{mode}, result {number}: {got.dtype}, expected {b.dtype}"
        rtol, atol = TOLERANCES.get(b.dtype, (0, 0))
        message = f"{mode}, result {number}"
        torch.testing.assert_close(
            _wide(got), _wide(b), rtol=rtol, atol=atol, equal_nan=True, msg=lambda text, m=message: f"{m}: {text}"
        )


#: How an older wheel says that it has no such operator, no meta function of it, or no converter, or one of another
#: signature.
_LACKING = (
    r"('npu' object|module 'torch_npu') has no attribute '\w+'",
    r"unsupported operator: npu\.\w+",
    r"Unknown keyword argument \\?'\w+\\?' for operator \\?'npu::\w+",
    (
        r"Failed to converter npu\.[\w.]+ to AscendIR: (can not find registered AscendIR|this op has scalar input, "
        r"can not auto generate)"
    ),
    r"\bconv\w*\(\) got an unexpected keyword argument '\w+'",
    # a schema's own default: bool[2] mask=[]
    r"Tried to convert a List with 0 elements to a fixed-size array of size \d+",
    # Converters and meta functions that stumble over what may be absent, or over dtypes.
    r"Value cannot be None\.",
    r"'str' object has no attribute 'pop'",
    r"npu_\w+\(\) missing \d+ required positional arguments: [^\n]*",
    r"When input's dtype is int32, output_dtype must be float16, but output_dtype is torch\.bfloat16",
    r"dequant_dtype only supports .* for now, but it is torch\.uint8",
)


def lacking(error: BaseException) -> str | None:
    """What the wheel lacks, where that is what an error of an older one says."""
    found = (re.search(pattern, str(error)) for pattern in _LACKING)
    return next((match[0] for match in found if match), None) if is_before_2_13() else None


@contextmanager
def naming_what_is_lacking() -> Iterator[None]:
    """Skip a test that an older wheel cannot run, by the name of what it lacks."""
    try:
        yield
    except (AttributeError, RuntimeError) as error:
        if lack := lacking(error):
            pytest.skip(f"torch_npu {torch_npu.__version__}: {lack}")
        raise


def check(
    function: Callable[..., Any], args: Sequence[Any], expected: Any, modes: str = "eager captured ge npugraph_ex"
) -> None:
    """Compare in every mode.

    Args:
        function: of the arguments; what it returns is compared, so an operator that writes returns what it wrote to.
        args: CPU tensors and other values.
        expected: CPU tensors; None for a result that is not determined.
        modes: names with spaces between; ``ge``, ``ge_dynamic`` and ``npugraph_ex`` need a converter and a
            meta function in the wheel.
    """
    lacked = []
    for mode in modes.split():
        try:
            results = run(mode, function, args)
        except (AttributeError, RuntimeError) as error:
            lack = lacking(error)
            if lack is None:
                raise
            lacked.append(f"{mode}: {lack}")
            if isinstance(error, AttributeError):
                break  # there is no such operator, in any mode
            continue
        assert_equal(results, expected, mode)
    if lacked:
        pytest.skip(f"torch_npu {torch_npu.__version__}, {'; '.join(lacked)}")  # the other modes are as expected


def is_before_2_13() -> bool:
    """Whether the wheel is older than the one whose modes the tests list."""
    return tuple(map(int, torch_npu.__version__.split(".")[:2])) < (2, 13)


def run(mode: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What the function returns in one of the modes."""
    return _MODES[mode](function, args)


def _eager(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    return function(*to_npu(args))


def _captured(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Captured while the arguments are zeros, and replayed with what belongs there."""
    static = tree_map(lambda t: torch.zeros_like(t, device="npu"), list(args))
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        results = function(*static)
    _fill(static, list(args))
    graph.replay()
    return tree_map(lambda t: t.cpu(), results)


def _fill(targets: Any, sources: Any) -> None:
    for target, source in zip(targets, sources, strict=True):
        if isinstance(target, T):
            target.copy_(source.tensor if isinstance(source, InBlocks) else source)
        elif isinstance(target, (list, tuple)):
            _fill(target, source)


def _ge(function: Callable[..., Any], args: Sequence[Any], *, dynamic: bool = False) -> Any:
    _compile_custom_operators()
    torch._dynamo.reset()
    return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=dynamic, fullgraph=True)(*to_npu(args))


def _ge_dynamic(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    return _ge(function, args, dynamic=True)


@cache
def _compile_custom_operators() -> None:
    """Let TorchAir compile at once what it would compile for each graph: C++ of the operators that it has no
    converter for."""
    if importlib.util.find_spec("torchair._ge_concrete_graph.custom_op_compiler") is None:
        return  # a wheel that compiles none
    from torchair._ge_concrete_graph import custom_op_compiler, custom_op_pre_scan

    text = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    names = sorted(set(re.findall(r"npu\.(\w+)", text)))
    packets = [getattr(torch.ops.npu, name, None) for name in names]
    graph = torch.fx.Graph()
    for packet in (one for one in packets if isinstance(one, torch._ops.OpOverloadPacket)):
        for overload in (getattr(packet, name) for name in packet.overloads()):
            if _is_for_graphs(overload):
                graph.call_function(overload)
    with mock.patch.object(custom_op_compiler, "subprocess", _Compiler):
        custom_op_pre_scan.prescan_and_compile_custom_ops(graph, "_of_the_tests")


#: All of PyTorch's headers, which take longer to compile than 211 operators do, and what the operators use of them.
_ALL_HEADERS = "#include <torch/torch.h>"
_USED_HEADERS = "#include <torch/library.h>\nnamespace torch { using c10::Dispatcher; }"


class _Compiler:
    """Takes as long as it takes, and only once for the same source and headers: TorchAir allows two minutes for each
    process, which
    is not enough where much else runs."""

    @staticmethod
    def run(command: list[str], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
        del timeout
        command = ["-O0" if part == "-O2" else part for part in command]  # a third of the time
        source, library = Path(command[-1]), Path(command[command.index("-o") + 1])
        source.write_text(source.read_text().replace(_ALL_HEADERS, _USED_HEADERS))
        headers = toolkit_directory() / "include"
        parts = [" ".join(command[: command.index("-o")]), source.read_text(), torch.__version__, torch_npu.__version__]
        parts += [path.read_text() for path in sorted(headers.rglob("*.h"))]
        kept = cache_directory() / f"npu_tests-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}.so"
        with locked(kept.with_suffix(".lock")):
            if not kept.exists():
                result = subprocess.run(command, **options)  # noqa: PLW1510
                if result.returncode:
                    return result
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, part := kept.with_suffix(".part"))
                part.rename(kept)
        shutil.copy(kept, library)
        return subprocess.CompletedProcess(command, 0, "", "")


def _is_for_graphs(overload: torch._ops.OpOverload) -> bool:
    """Whether TorchAir can write C++ for it, and C++ that compiles: not with ``out=``."""
    from torchair._ge_concrete_graph.custom_op_codegen_common import extract_schema_info

    try:
        extract_schema_info(overload)
    except RuntimeError:
        return False
    return not any(argument.is_out for argument in overload._schema.arguments)


def _npugraph_ex(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="npugraph_ex", dynamic=False, fullgraph=True)(*to_npu(args))


_MODES = {
    "eager": _eager,
    "captured": _captured,
    "ge": _ge,
    "ge_dynamic": _ge_dynamic,
    "npugraph_ex": _npugraph_ex,
}

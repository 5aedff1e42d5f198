"""Operator projects: the author's definition, tiling functions and kernels as an operator package, in every way a
caller has."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import preloaded
import pytest
from click.testing import CliRunner

from ascend_graph import AscendGraphError
from ascend_graph.cli import main
from ascend_graph.compilation import BuildError, CppLibrary
from ascend_graph.host import OperatorPackageError
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.describe import describe
from ascend_graph.host.projects.discover import discover
from ascend_graph.host.projects.kernels import kernel_macros
from ascend_graph.host.projects.repository import Repository
from ascend_graph.prototypes import DataType, parse_file, parse_text
from ascend_graph.prototypes.loading import read_all

PROJECT = Path(__file__).parent / "project"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("opp") / "vendor"
    result = CliRunner().invoke(main, ["build", str(PROJECT), "-o", str(target)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"operator package: {target}\n"
    return target


def run(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has the package installed."""
    return preloaded.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )


PRELUDE = """
import ctypes, json, os, torch, torch_npu, torchair, ascend_graph
lib = ctypes.CDLL(f"{os.environ['ASCEND_CUSTOM_OPP_PATH']}/op_api/lib/libcust_opapi.so")
api, acl = ctypes.CDLL("libopapi.so"), ctypes.CDLL("libascendcl.so")
api.aclCreateTensor.restype = api.aclCreateFloatArray.restype = ctypes.c_void_p
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p

def tensor(t):
    ints = lambda v: (ctypes.c_int64 * len(v))(*v)
    dtype = {torch.float32: 0, torch.float16: 1, torch.int32: 3}[t.dtype]
    return ctypes.c_void_p(api.aclCreateTensor(
        ints(t.shape), ctypes.c_uint64(t.dim()), dtype, ints(t.stride()), ctypes.c_int64(t.storage_offset()), 2,
        ints([t.numel()]), ctypes.c_uint64(1), ctypes.c_void_p(t.untyped_storage().data_ptr())))

def floats(values):
    values = list(values)
    array = (ctypes.c_float * len(values))(*values)
    return ctypes.c_void_p(api.aclCreateFloatArray(array, ctypes.c_uint64(len(values))))

def first_half(op, *args):
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    return getattr(lib, f"aclnn{op}GetWorkspaceSize")(*args, ctypes.byref(size), ctypes.byref(executor)), size, executor

def outcome(error):
    # As on a device, a kernel's failure is reported by the synchronization after its launch.
    error = error or acl.aclrtSynchronizeDevice()
    return f"{error}: {acl.aclGetRecentErrMsg().decode()}" if error else "0"

def faulty(way, x=torch.ones(4), y=torch.zeros(4), workspace=None):
    x, y = x.npu(), y.npu()
    error, size, executor = first_half("Faulty", tensor(x), way.encode(), tensor(y))
    return outcome(error or lib.aclnnFaulty(workspace, ctypes.c_uint64(0), executor, None))
"""


def test_the_prototypes_are_those_of_the_definitions(package: Path) -> None:
    """What the compiled definitions say is what reading their text says, where that can be read."""
    built = {p.op_type: p for p in parse_file(package / "op_proto/inc/op_proto.h").prototypes}
    read = {p.op_type: p for p in read_all([PROJECT / "op_host/faulty.cpp"]).prototypes}
    assert set(read) == {"Faulty", "AccumulateCustom", "Untiled"}
    assert {name: built[name] for name in read} == read
    everything = built["Everything"]
    assert [d.name for d in everything.inputs[2].dtypes] == ["FLOAT16", "FLOAT"]  # by a variable, and by Follow
    assert [a.default for a in everything.attrs] == [None, 0.1, "abc", (10, -20), (0.5,), True]
    assert (package / "op_impl/host/kernels/everything_1.so").exists()


EVERYTHING = """
    def check(y, facts, x, scale, more, key):
        expected = x.double() + (0 if scale is None else scale[0].double()) + sum(m.double() for m in more)
        torch.testing.assert_close(y.cpu().double(), expected, rtol=2e-3, atol=1e-2)
        found = facts.cpu().flatten().tolist()
        columns = more[-1].shape[-1] if more else 0
        expected = [0.25, 6.5 + 1, 2 + 3 - 4, 3 if scale is not None else -3, 1000, len(more), columns, key * 8, 0, key]
        assert found == expected + [2.5, 2.5], (found, expected)

    def cases():
        for dtype, key in ((torch.float16, 2), (torch.float32, 4)):
            for with_scale, items in ((False, 1), (True, 2)):
                x = torch.rand(3, 7).to(dtype)
                yield x, torch.rand(2) if with_scale else None, [torch.rand(3, 7).to(dtype) for _ in range(items)], key

    npu = lambda v: None if v is None else [t.npu() for t in v] if isinstance(v, list) else v.npu()
    attrs = dict(n=6, alpha=0.25, mode="xy", axes=[3, -4], factors=[1.5], flag=False)
"""


def test_eager_reaches_tiling_and_kernel_with_every_kind_of_parameter(package: Path) -> None:
    result = run(
        package,
        EVERYTHING
        + """
    relation = "x[*s], scale[t], more[i][*s] -> y[*s], facts[n, 2]: float32"
    op = ascend_graph.register_op("Everything", shape=relation)
    for x, scale, more, key in cases():
        y, facts = op(npu(x), npu(scale), npu(more), **attrs)
        check(y, facts, x, scale, more, key)
    print("ok")
    """,
    )
    assert result.stdout == "ok\n", result.stderr


def test_graphs_take_shapes_and_dtypes_from_the_authors_functions(package: Path) -> None:
    """No relation anywhere in the package: InferShape gives the shapes, the combinations of dtypes the dtypes."""
    assert json.loads((package / "op_impl/host/kernels.json").read_text())["Everything"]["relation"] is None
    result = run(
        package,
        EVERYTHING
        + """
    relation = "x[*s], scale[t], more[i][*s] -> y[*s], facts[n, 2]: float32"
    ascend_graph.register_op("Everything", shape=relation)
    op = torch.ops.ascend.everything
    for backend in (torchair.get_npu_backend(), "npugraph_ex"):
        for x, scale, more, key in cases():
            torch._dynamo.reset()
            model = torch.compile(lambda *a: op(*a, **attrs), backend=backend, dynamic=False, fullgraph=True)
            for _ in range(2):  # capture, then replay
                y, facts = model(npu(x), npu(scale), npu(more))
                check(y, facts, x, scale, more, key)
    print("ok")
    """,
    )
    assert result.stdout == "ok\n", result.stderr


def test_in_place_strided_and_empty(package: Path) -> None:
    result = run(
        package,
        """
        acc = torch.zeros(4, 2).npu().t()
        for _ in range(2):
            error, size, executor = first_half("AccumulateCustom", tensor(acc), floats(range(8)))
            print(outcome(error or lib.aclnnAccumulateCustom(None, ctypes.c_uint64(0), executor, None)), acc.tolist())
        # Its tiling function reads the first value of x, which must not be negative.
        print(outcome(first_half("AccumulateCustom", tensor(acc), floats([-1.0]))[0]))
        print(faulty("status", torch.ones(0), torch.ones(0)))  # nothing to compute: not even tiled
        """,
    )
    first, second, negative, empty = result.stdout.splitlines()
    assert first == "0 [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]", result.stderr
    assert second == "0 [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0]]"
    assert (
        negative
        == "561002: AccumulateCustom: the tiling function returned GRAPH_FAILED; it logged no reason: add OP_LOGE to it"
    )
    assert empty == "0"


def test_integers_of_four_bits(package: Path) -> None:
    """Two lie in a byte, the first in its lower half; sizes count them one by one."""
    result = run(
        package,
        """
        def halves(t, sizes, strides, offset=0):
            ints = lambda v: (ctypes.c_int64 * len(v))(*v)
            return ctypes.c_void_p(api.aclCreateTensor(
                ints(sizes), ctypes.c_uint64(len(sizes)), 29, ints(strides), ctypes.c_int64(offset), 2,
                ints([2 * t.numel()]),
                ctypes.c_uint64(1), ctypes.c_void_p(t.data_ptr())))
        x = torch.tensor([0x21, 0x83, 0xf7], dtype=torch.uint8).npu()
        y, negated = torch.zeros(3, 2, dtype=torch.float16).npu(), torch.zeros(3, dtype=torch.uint8).npu()
        arguments = halves(x, [3, 2], [2, 1]), None, tensor(y), halves(negated, [3, 2], [2, 1])
        error, size, executor = first_half("Nibbles", *arguments)
        error = error or lib.aclnnNibbles(None, ctypes.c_uint64(0), executor, None)
        print(outcome(error), y.flatten().tolist(), negated.tolist())
        error, size, executor = first_half(
            "Nibbles", halves(x, [2, 3], [1, 2]), None, tensor(y), halves(negated, [3, 2], [2, 1])
        )
        print(outcome(error or lib.aclnnNibbles(None, ctypes.c_uint64(0), executor, None)))
        negated.zero_()
        error, size, executor = first_half(
            "Nibbles", halves(x, [2, 2], [2, 1], 2), None, tensor(y[:2]), halves(negated, [2, 2], [2, 1], 2)
        )
        error = error or lib.aclnnNibbles(None, ctypes.c_uint64(0), executor, None)
        print(outcome(error), y[:2].flatten().tolist(), negated.tolist())
        error, *_ = first_half(
            "Nibbles", halves(x, [2, 2], [2, 1], 1), None, tensor(y[:2]), halves(negated, [2, 2], [2, 1])
        )
        print(outcome(error))
        """,
    )
    whole, view, later, odd = result.stdout.splitlines()
    assert whole == "0 [1.0, 2.0, 3.0, -8.0, 7.0, -1.0] [239, 125, 25]", result.stderr
    assert "parameter x, whose elements are less than a byte, is a view" in view
    assert later == "0 [3.0, -8.0, 7.0, -1.0] [0, 125, 25]"
    assert (
        odd == "161002: aclnnNibbles: a tensor of aclDataType 29 has the storage offset 1; "
        "two elements lie in a byte, so that the offset must be even"
    )


def test_inputs_of_which_the_function_takes_the_values(package: Path) -> None:
    """Scalars, lists of them and values, of any dtype: the kernel has the definition's; in graphs they are tensors."""
    header = (package / "op_api/include/aclnn_numbers_custom.h").read_text()
    for parameter in ("aclScalar* scale", "aclScalarList* weights", "aclScalar* shiftOptional", "aclIntArray* steps"):
        assert f"const {parameter}," in header
    result = run(
        package,
        """
        op = ascend_graph.register_op("NumbersCustom", shape="x[*s] -> y[*s]")
        print(op.overload._schema)
        call = torch.ops.ascend.numbers_custom
        for dtype in (torch.float32, torch.float16):
            x = torch.arange(4.0).to(dtype).npu()
            print(x.dtype, call(x, 2, [1, 0.5], None, [3, 4]).tolist(), call(x, 0.5, [True], 7, [1]).tolist())
            for options in ({}, {"mode": "reduce-overhead"}):
                config = torchair.CompilerConfig()
                config.mode = options.get("mode", "max-autotune")
                torch._dynamo.reset()
                backend = torchair.get_npu_backend(compiler_config=config)
                compiled = torch.compile(lambda x: call(x, 0.5, [1, 0.5], 7, [3]), backend=backend)
                print(compiled(x).tolist())
        ones = tensor(torch.ones(4).npu()), tensor(torch.ones(4).npu())
        error, *_ = first_half("NumbersCustom", ones[0], None, None, None, None, ones[1])
        print(outcome(error))
        """,
    )
    lines = result.stdout.splitlines()
    assert (
        lines[0]
        == "ascend::numbers_custom(Tensor x, Scalar scale, Scalar[] weights, Scalar? shift, int[] steps) -> Tensor y"
    ), result.stderr
    for dtype, (eager, *compiled) in zip(("torch.float32", "torch.float16"), (lines[1:4], lines[4:7]), strict=True):
        # x * scale + the sum of the weights + shift + the last of the steps
        assert eager == f"{dtype} [5.5, 7.5, 9.5, 11.5] [9.0, 9.5, 10.0, 10.5]", result.stderr
        assert compiled == ["[11.5, 12.0, 12.5, 13.0]"] * 2, result.stderr
    assert lines[7] == "161001: aclnnNumbersCustom: required parameter 'scale' is null"


FAILURES = {
    "status": "561002: Faulty: the tiling function returned GRAPH_FAILED; it logged: [OP_TILING]way status of 2",
    "throws": "561000: Faulty: thrown by the author",
    "null": (
        "561002: Faulty: the tiling function accesses memory through a null or bad pointer; "
        "an input, attr or shape that is not there is null"
    ),
    "values": (
        "561002: Faulty: the tiling function accesses memory through a null or bad pointer; "
        "the values of input x are on the device: write ValueDepend(OPTIONAL) at it in the definition"
    ),
    "wrong attr": "561002: Faulty: the tiling function accesses memory through a null",
    "zero": "561002: Faulty: the tiling function divides by zero",
    "no blocks": "561002: Faulty: the tiling function set no number of blocks (SetBlockDim)",
    "too much": "561002: Faulty: the tiling function made 100 bytes of tiling data; their buffer has 8",
    "too little": (
        "507015: kernel faulty, block 0 of 1: GET_TILING_DATA: the tiling structure has 8 bytes, its memory 4;"
    ),
    "key": "507015: kernel faulty, block 0 of 1: tiling key 7 is not one of the kernel's; it asks for 0, 1",
    "unaligned": "507015: kernel faulty, block 0 of 1: DataCopy: unaligned copy: 3 elements of 4 bytes are 12 bytes",
    "beyond": "507015: kernel faulty, block 0 of 1: GetValue: out of bounds: bytes 16 to 20 of the tensor",
    "workspace": "161002: Faulty: a workspace of 0 bytes is given, its tiling asked for 4096",
}


def test_what_goes_wrong_is_an_error_of_the_call(package: Path) -> None:
    result = run(
        package,
        f"""
        for way in {list(FAILURES)}:
            print(faulty(way, torch.ones(2) if way == "zero" else torch.ones(4)))
            assert faulty("") == "0"  # the process and the device live on
        print(faulty("", torch.ones(4, dtype=torch.int32)))
        x = torch.ones(4).npu()
        print(outcome(first_half("Untiled", tensor(x), tensor(x))[0]))
        print(outcome(first_half("Untiled", None, tensor(x))[0]))
        """,
    )
    assert result.returncode == 0, result.stderr
    *ways, dtype, untiled, null = result.stdout.splitlines()
    for way, line in zip(FAILURES, ways, strict=True):
        assert line.startswith(FAILURES[way]), (way, line)
    assert dtype == "561003: Faulty: no kernel takes x: int32, y: float32; the definition has x: float32, y: float32"
    assert untiled.startswith("561002: Untiled: it has no tiling function; name it with AICore().SetTiling(...)")
    assert null == "161001: aclnnUntiled: required parameter 'x' is null"


def test_a_kernel_library_that_is_gone_is_named(package: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(package, tmp_path / "damaged")
    for library in (damaged / "op_impl/host/kernels").glob("faulty_*.so"):
        library.unlink()
    result = run(damaged, 'print(faulty(""))')
    stem = damaged / "op_impl/host/kernels/faulty_0"
    message = f"561003: Faulty: the library of its kernel is missing: there is neither {stem}.so nor {stem}_"
    assert result.stdout.startswith(message), result.stdout + result.stderr


def test_the_tiling_function_picks_the_instance_of_a_template(package: Path) -> None:
    result = run(
        package,
        """
        op = ascend_graph.register_op("Pick", shape="x[*s] -> y[*s]")
        for dtype in (torch.float16, torch.float32):
            x = torch.arange(8.0).to(dtype)
            for factor in (3, 10, -3):
                assert torch.equal(op(x.npu(), factor=factor).cpu(), x * factor)
        for factor in (5, 7):
            try:
                op(x.npu(), factor=factor)
                torch.npu.synchronize()
            except RuntimeError as error:
                print(str(error).replace("\\n", " "))
        """,
    )
    undeclared, unselected = result.stdout.splitlines()
    assert "Pick: 5 is not a declared value of the template parameter factor" in undeclared, result.stderr
    assert "kernel pick: tiling key" in unselected
    assert "selects none of the instances" in unselected


@pytest.mark.slow
def test_a_kernel_may_select_its_instances_itself(tmp_path: Path) -> None:
    """Its header does, and op_host includes only what declares the parameters."""
    whole = tmp_path / "whole"
    for file in PROJECT.glob("op_*/pick*"):
        (whole / file.relative_to(PROJECT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, whole / file.relative_to(PROJECT))
    split = project = shutil.copytree(whole, tmp_path / "split")
    header = project / "op_kernel/pick_tiling_key.h"
    declared, selects, selected = header.read_text().partition("ASCENDC_TPL_SEL(")
    header.write_text(declared)
    (project / "op_kernel/pick_instances.h").write_text(f'#include "pick_tiling_key.h"\n{selects}{selected}')
    kernel = project / "op_kernel/pick.cpp"
    kernel.write_text(kernel.read_text().replace("pick_tiling_key.h", "pick_instances.h"))
    # What a tiling function of another architecture declares, with more instances, is for another kernel.
    (project / "op_host/pick_arch35.cpp").write_text('#include "../op_kernel/arch35/pick_key.h"')
    (project / "op_kernel/arch35").mkdir()
    (project / "op_kernel/arch35/pick_key.h").write_text(
        '#include "ascendc/host_api/tiling/template_argument.h"\n'
        "ASCENDC_TPL_ARGS_DECL(Pick, ASCENDC_TPL_UINT_DECL(mode, 8, ASCENDC_TPL_UI_RANGE, 1, 0, 99));\n"
        "ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_UINT_SEL(mode, ASCENDC_TPL_UI_RANGE, 1, 0, 99)));\n"
    )
    projects = [discover(Repository.around(one)) for one in (whole, split)]
    described = [describe(one, tmp_path / f"described_{one.directory.name}") for one in projects]
    instances = [operator.instances for one in described for operator in one.operators]
    assert len(instances[0]) == 8
    assert sorted(instances[0]) == sorted(instances[1])


def test_a_bank_of_tuned_tilings_has_no_records(package: Path) -> None:
    """What registers for a bank and asks it gets no such key, and its own classes and keys back."""
    result = run(
        package,
        """
        op = ascend_graph.register_op("Tuned", shape="x[*s] -> facts[7]: int32")
        print(op(torch.ones(3, 5).npu()).tolist())
        """,
    )
    assert result.stdout == "[1, 1, 15, 1, 2, 1, 907]\n", result.stderr


def test_a_kernel_that_asks_the_preprocessor_is_compiled_for_each_tiling_key(package: Path) -> None:
    """For those that it names, of these dtypes: any other that the tiling function sets has no kernel."""
    built = sorted(path.name for path in (package / "op_impl/host/kernels").glob("keyed_*.so"))
    assert built == ["keyed_0_2.so", "keyed_0_3.so", "keyed_1_2.so"]
    result = run(
        package,
        """
        op = ascend_graph.register_op("Keyed", shape="x[*s] -> y[*s]")
        x = torch.tensor([1.0, -2.0, 4.0]).npu()
        print(op(x, key=2).tolist(), op(x, key=3).tolist(), op(x, key=2).tolist(), op(x.int(), key=2).tolist())
        try:
            op(x.int(), key=3)
            torch.npu.synchronize()
        except RuntimeError as error:
            print(str(error))
        """,
    )
    values, refused = result.stdout.split("\n", 1)
    assert values == "[2.0, -4.0, 8.0] [3.0, -6.0, 12.0] [2.0, -4.0, 8.0] [2, -4, 8]", result.stderr
    assert "Keyed: its kernel is compiled for no tiling key 3 of these dtypes, which the tiling function set" in refused


def test_failures_reach_pytorch_and_graphs(package: Path) -> None:
    result = run(
        package,
        """
        op = ascend_graph.register_op("Faulty", shape="x[*s] -> y[*s]")
        x = torch.ones(4).npu()
        for backend in (None, torchair.get_npu_backend()):
            for way in ("status", "unaligned"):
                model = torch.compile(lambda x: torch.ops.ascend.faulty(x, way=way), backend=backend) if backend else op
                torch._dynamo.reset()
                try:
                    model(x) if backend else op(x, way=way)
                    torch.npu.synchronize()
                except RuntimeError as error:
                    text = str(error)
                    parts = "GRAPH_FAILED", "unaligned copy", "neither a shape relation nor an InferShape"
                    print(*(part in text for part in parts))
        """,
    )
    assert result.stdout.splitlines() == [
        "True False False",
        "False True False",
        "False False True",  # the graph engine asks for the shape first
        "False False True",
    ], result.stderr


def test_kernels_in_graphs_write_whole_blocks_and_no_more(package: Path) -> None:
    """As a device's memory, a graph's goes on behind a tensor to the end of its last block, and not much further."""
    result = run(
        package,
        """
        ascend_graph.register_op("WholeBlocks")
        op = torch.ops.ascend.whole_blocks

        def model(x, place=0):
            inner = x * 1
            return op(inner, place=place), inner, op(x[1:], place=place)

        compiled = torch.compile(model, backend=torchair.get_npu_backend(), dynamic=False)
        for _ in range(500):
            for found in compiled(torch.ones(5).npu()):
                assert found.tolist() in ([7.0] * 5, [7.0] * 4), found
        for call in (lambda: op(torch.ones(5).npu(), place=2**22), lambda: compiled(torch.ones(5).npu(), 2**22)):
            try:
                call()
                torch.npu.synchronize()
            except RuntimeError as error:
                print("DataCopy: out of bounds: bytes 16777216 to 16777248 of dst" in str(error))
        """,
    )
    assert result.stdout.splitlines() == ["True", "True"], result.stderr


# ---------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "name", [rb"(?<=7LaidOutIJLm)\d", rb"(?<=ascendgraphRegisterKernelOfLayout)\d"], ids=["blocks", "arguments"]
)
def test_a_package_for_another_runtime_is_refused(package: Path, tmp_path: Path, name: bytes) -> None:
    """It asks for what that runtime says of how blocks, or calls, are laid out; the process does not end by it."""
    other = tmp_path / "vendor"
    shutil.copytree(package, other)
    libraries = [path for path in other.rglob("*.so") if re.search(name, path.read_bytes())]
    assert libraries
    for library in libraries:
        library.write_bytes(re.sub(name, lambda d: b"8" if d[0] == b"9" else b"9", library.read_bytes()))
    code = """
    import torch, torch_npu, ascend_graph
    from ascend_graph.host.packages.load import installed_packages
    try:
        installed_packages()
    except ascend_graph.AscendGraphError as error:
        print(error)
    """
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(other)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = preloaded.run(command, capture_output=True, text=True, check=False, env=environment, timeout=900)
    assert "does not load: it was built by another version of ascend_graph; build it again" in done.stdout, done.stderr


def changed(tmp_path: Path, *changes: tuple[str, str, str]) -> Path:
    """A copy of the operators of one source with some text replaced."""
    project = tmp_path / "project"
    for file in ("op_host/faulty.cpp", "op_kernel/faulty.cpp", "op_kernel/others.cpp"):
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / file, project / file)
    for file, old, new in changes:
        path = project / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    return project


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [("op_kernel/others.cpp", "void untiled(", "void until(")],
            (
                r'Untiled: no source in .*/op_kernel defines its kernel; write a function extern "C" __global__ __aicore__ '
                r"void "
                r"untiled"
            ),
        ),
        (
            [("op_kernel/others.cpp", "untiled(GM_ADDR x, ", "untiled(")],
            "untiled takes 3 parameters; Untiled calls it with 4: x, y, workspace, tiling",
        ),
        (
            [
                (
                    "op_kernel/others.cpp",
                    'extern "C" __global__ __aicore__ void untiled',
                    "template <int n> __global__ __aicore__ void untiled",
                )
            ],
            "untiled is a template, and nothing in op_host declares its instances",
        ),
        (
            [
                (
                    "op_host/faulty.cpp",
                    'Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT})',
                    'Input("x").DataType({ge::DT_FLOAT, ge::DT_INT8})',
                )
            ],
            "Faulty: y has 1 dtypes, the parameters before it 2",
        ),
        (
            [("op_host/faulty.cpp", ".ValueDepend(OPTIONAL)", '.Scalar().To("nowhere")')],
            "AccumulateCustom: x follows nowhere, which there is not",
        ),
        (
            [("op_host/faulty.cpp", 'this->Attr("way").String()', 'this->Attr("way").ListListInt()')],
            "Faulty: attr 'way' has type ListListInt, which aclnn functions do not take",
        ),
        (
            [
                (
                    "op_host/faulty.cpp",
                    'Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT})',
                    (
                        'Output("y").DataType({ge::DT_FLOAT, ge::DT_FLOAT}).InitValue({{ScalarType::FLOAT32, 1}, '
                        "{ScalarType::FLOAT32, 2}})"
                    ),
                )
            ],
            "y: InitValue has two values for one dtype",
        ),
        (
            [("op_host/faulty.cpp", 'Output("y").ParamType(REQUIRED)', 'Output("y").InitValue(5).ParamType(REQUIRED)')],
            "y: InitValue takes 0, or a number with its ScalarType",
        ),
        (
            [
                (
                    "op_host/faulty.cpp",
                    'Output("y").ParamType(REQUIRED)',
                    'Output("y").OutputShapeDependOnCompute().ParamType(REQUIRED)',
                )
            ],
            (
                r"Faulty: its kernel writes the shape of y \(OutputShapeDependOnCompute\), "
                r"which the host runtime does not read"
            ),
        ),
        (
            [("op_host/faulty.cpp", "OP_ADD(", "(void)sizeof(")],
            "compiling libdefinitions failed",
        ),
        (
            [
                (
                    "op_host/faulty.cpp",
                    "explicit Untiled(const char* name) : OpDef(name) {",
                    "explicit Untiled(const char* name) : OpDef(name) { __builtin_trap();",
                )
            ],
            "the definitions ended by signal",
        ),
    ],
)
def test_bad_projects_are_refused_whole(tmp_path: Path, changes: list[tuple[str, str, str]], message: str) -> None:
    target = tmp_path / "out" / "vendor"
    with pytest.raises(AscendGraphError, match=message):
        build_project_package(target, changed(tmp_path, *changes))
    assert not list(target.parent.iterdir())


def test_directories_that_are_no_project(tmp_path: Path) -> None:
    with pytest.raises(OperatorPackageError, match="nowhere is not a directory"):
        build_project_package(tmp_path / "opp", tmp_path / "nowhere")
    (tmp_path / "repository").mkdir()
    changed(tmp_path / "repository")
    with pytest.raises(OperatorPackageError, match="is not an operator project: .*; projects lie in project"):
        build_project_package(tmp_path / "opp", tmp_path / "repository")
    with pytest.raises(AscendGraphError, match="relation for 'Nothing': .* defines no such operator; it defines Acc"):
        build_project_package(tmp_path / "opp", PROJECT, relations={"Nothing": "x[n] -> y[n]"})


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["build", str(PROJECT)])
    assert result.exit_code == 2
    assert "write -o DIRECTORY" in result.output
    result = CliRunner().invoke(main, ["build", str(tmp_path), "-o", str(tmp_path / "opp")])
    assert result.exit_code == 1
    assert "is not an operator project" in result.output


def test_a_compiler_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "kernel.asc"
    source.touch()
    library = CppLibrary(name="slow", sources=(source,), kernel_compiler=("sh", "-c", "sleep 60"))
    started = time.monotonic()
    with pytest.raises(BuildError, match=r"compiling slow took more than 0.5 seconds"):
        library.build(time_limit=0.5)
    assert time.monotonic() - started < 50
    assert not list((tmp_path / "cache").rglob("*.so")), "what did not end is not a library"
    fixed = replace(library, kernel_compiler=("g++", "-x", "c++"))
    assert fixed.build(time_limit=60).is_file()


def test_kernels_see_the_names_that_cann_gives_to_elements() -> None:
    text = (
        "REG_OP(Move).INPUT(x, TensorType({DT_COMPLEX64})).OUTPUT(y, "
        "TensorType({DT_COMPLEX64})).OP_END_FACTORY_REG(Move)"
    )
    prototype = parse_text(text).prototypes[0]
    macros = dict(kernel_macros(prototype, [DataType.COMPLEX64, DataType.COMPLEX64], [2, 2]))
    assert macros["DTYPE_X"] == "complex64"
    assert macros["ORIG_DTYPE_Y"] == "DT_COMPLEX64"

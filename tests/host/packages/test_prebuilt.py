"""Packages that CANN built: their libraries load, and their InferShape functions are asked, in CANN's layout."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascend_graph.compilation.toolchain import compiler
from ascend_graph.environment import toolkit_directory
from ascend_graph.host.packages import author_shapes
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.packages.prebuilt import prototype_library, registered_functions
from ascend_graph.prototypes import DataType, OpPrototype, parse_file
from ascend_graph.shapes.functions import InferredOutput, InputSpec, ShapeFunctionError

HEADER = """
REG_OP(Sample)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(b, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .REQUIRED_ATTR(by, Int)
    .ATTR(more, ListInt, {})
    .OP_END_FACTORY_REG(Sample)
"""
X = InputSpec((5,), DataType.FLOAT16)


def make_package(directory: Path, *options: str) -> Path:
    library = directory / "op_proto/lib/linux" / platform.machine() / "libcust_opsproto_rt2.0.so"
    library.parent.mkdir(parents=True)
    (directory / "op_proto/inc").mkdir()
    (directory / "op_proto/inc/op_proto.h").write_text(HEADER)
    source = Path(__file__).with_name("prebuilt_library.cpp")
    command = [*compiler(), "-std=c++17", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", *options, str(source)]
    links = [f"-L{toolkit_directory()}/lib64", "-lexe_graph", "-lregister", "-Wl,--allow-shlib-undefined,-z,now"]
    subprocess.run([*command, "-o", str(library), *links], check=True)
    return directory


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_package(tmp_path_factory.mktemp("prebuilt") / "vendor")


@pytest.fixture
def prototype(package: Path, monkeypatch: pytest.MonkeyPatch) -> OpPrototype:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    (found,) = parse_file(package / "op_proto/inc/op_proto.h").prototypes
    return found


@pytest.fixture
def infer(prototype: OpPrototype) -> Callable[..., Any]:
    function = author_shapes.author_function(prototype)
    assert function is not None
    return function.call


@pytest.fixture
def library(package: Path) -> ctypes.CDLL:
    path = prototype_library(package)
    assert path is not None
    registered_functions(path)
    return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)


def test_a_library_tells_the_functions_that_it_registers(package: Path) -> None:
    path = prototype_library(package)
    assert path is not None
    functions = registered_functions(path)["Sample"]
    assert None not in (functions.infer_shape, functions.infer_dtype, functions.tiling)
    assert (functions.data_inputs, functions.outputs_by_kernel) == ((1,), ())


def test_infer_shape_reads_inputs_and_attrs_where_it_expects_them(infer: Callable[..., Any]) -> None:
    assert infer([X, None], {"by": 2, "more": [3, 4]}) == [InferredOutput((7, 7), DataType.FLOAT16)]
    given = [InputSpec((6,), DataType.FLOAT), InputSpec((2, 2), DataType.FLOAT)]
    assert infer(given, {"by": -1}) == [InferredOutput((5, 1), DataType.FLOAT)]


def test_infer_shape_that_refuses_a_call_is_named(infer: Callable[..., Any]) -> None:
    with pytest.raises(ShapeFunctionError, match="Sample: the InferShape function returned GRAPH_FAILED") as refused:
        infer([InputSpec((2, 2), DataType.FLOAT), None], {"by": 1})
    assert not refused.value.crashed


def test_infer_shape_that_faults_does_not_end_the_process(infer: Callable[..., Any]) -> None:
    with pytest.raises(ShapeFunctionError, match="Sample: the InferShape function") as faulted:
        infer([X, None], {"by": 99})
    assert faulted.value.crashed


def test_an_attr_without_a_value_is_refused(infer: Callable[..., Any]) -> None:
    with pytest.raises(ShapeFunctionError, match="Sample: attr 0 has no value"):
        infer([X, None], {})


def test_a_table_of_another_layout_is_refused(tmp_path: Path) -> None:
    library = prototype_library(make_package(tmp_path / "vendor", "-DTABLE_VERSION=3"))
    assert library is not None
    with pytest.raises(OperatorPackageError, match="version 3; expected 4304 bytes and version 2"):
        registered_functions(library)


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.so").write_bytes(b"\x7fELF")
    with pytest.raises(OperatorPackageError, match=r"broken.so: does not load as a library of operators"):
        registered_functions(tmp_path / "broken.so")


def test_a_registered_operator_describes_itself(library: ctypes.CDLL) -> None:
    sink = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char, ctypes.c_char_p, ctypes.c_char_p)
    told: list[tuple[bytes, ...]] = []
    describe = ctypes.CDLL(str(toolkit_directory() / "lib64/libgraph.so")).ascendgraphDescribeRegistered
    describe.restype = ctypes.c_bool
    assert describe(b"Sample", None, sink(lambda _, *words: told.append(words)))
    assert told == [
        (b"i", b"x", b"required"),
        (b"i", b"b", b"optional"),
        (b"o", b"y", b"required"),
        (b"a", b"by", b"VT_INT"),
        (b"a", b"scale", b"VT_INT"),
    ]
    assert not describe(b"Other", None, sink(lambda *_: None))


def test_tiling_data_are_padded_and_never_written_beyond_their_buffer(library: ctypes.CDLL) -> None:
    buffer = (ctypes.c_uint8 * 16)(*[1] * 16)
    library.tiling_bytes.restype = ctypes.c_size_t
    assert library.tiling_bytes(buffer, ctypes.c_size_t(15)) == 16
    assert bytes(buffer) == b"\1" * 16  # no room: nothing is written
    assert library.tiling_bytes(buffer, ctypes.c_size_t(16)) == 16
    assert bytes(buffer) == b"\5" + b"\0" * 7 + b"\6" + b"\0" * 7


def test_a_processor_is_described_as_the_tables_have_it(library: ctypes.CDLL) -> None:
    library.describe.restype = ctypes.c_bool
    cores, local = ctypes.c_uint32(), ctypes.c_uint64()
    assert library.describe(b"Ascend910B1", ctypes.byref(cores), ctypes.byref(local))
    assert (cores.value, local.value) == (48, 192 * 1024)
    assert library.describe(b"Ascend310P3", ctypes.byref(cores), ctypes.byref(local))
    assert cores.value == 8  # of AI cores, which have the vector units
    assert not library.describe(b"Ascend000", ctypes.byref(cores), ctypes.byref(local))
    library.described.restype = ctypes.c_char_p
    for label, key, value in (
        (b"SoCInfo", b"core_type_list", b"CubeCore,VectorCore"),
        (b"AICoreintrinsicDtypeMap", b"Intrinsic_fix_pipe_l0c2out", b"f32,s32,f16"),
    ):
        assert library.described(b"Ascend910B1", label, key) == value
        assert library.described(b"Ascend310P3", label, key) == b""  # it has neither


def test_values_of_any_type_are_copied_and_moved_by_their_own_operations(library: ctypes.CDLL) -> None:
    library.values_move.restype = ctypes.c_bool
    assert library.values_move()

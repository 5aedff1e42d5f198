"""aclnn functions of operator packages that CANN built: their calls run a kernel of the host, or are refused by name."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from ctypes import c_bool, c_char_p, c_double, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import pytest

from ascend_graph.compilation.toolchain import compiler
from ascend_graph.environment import toolkit_directory

FLOAT, DOUBLE, ND = 0, 11, 2
ASCEND910B, ASCEND310P = 2, 5


class Program:
    """The compiled program, with the host's libopapi.so and libascendcl.so."""

    def __init__(self, path: Path) -> None:
        libraries = toolkit_directory() / "lib64"
        self.acl, self.opapi = (ctypes.CDLL(str(libraries / name)) for name in ("libascendcl.so", "libopapi.so"))
        self.acl.aclGetRecentErrMsg.restype = c_char_p
        for name in ("aclCreateTensor", "aclCreateIntArray"):
            getattr(self.opapi, name).restype = c_void_p
        self.own = ctypes.CDLL(str(path))
        self.alive: list[Any] = []

    def error(self) -> str:
        message: bytes = self.acl.aclGetRecentErrMsg() or b""
        return message.decode()

    def tensor(self, values: Sequence[float], dtype: int = FLOAT) -> tuple[c_void_p, Any]:
        memory = ((ctypes.c_float if dtype == FLOAT else c_double) * len(values))(*values)
        sizes, strides = (c_int64 * 1)(len(values)), (c_int64 * 1)(1)
        created = self.opapi.aclCreateTensor(
            sizes, c_uint64(1), dtype, strides, c_int64(0), ND, sizes, c_uint64(1), memory
        )
        self.alive += [memory, sizes, strides]
        return c_void_p(created), memory

    def scale(
        self,
        x: c_void_p,
        y: c_void_p,
        *,
        bias: c_void_p | None = None,
        ints: Sequence[int] | None = None,
        mode: bytes | None = None,
        soc: int = ASCEND910B,
    ) -> tuple[int, c_void_p]:
        array = None
        if ints is not None:
            array = c_void_p(self.opapi.aclCreateIntArray((c_int64 * len(ints))(*ints), c_uint64(len(ints))))
        size, executor = c_uint64(7), c_void_p()
        places = ctypes.byref(size), ctypes.byref(executor)
        arguments = (x, bias, c_double(0.5), c_bool(True), array, mode, y, c_uint32(soc), *places)
        status: int = self.own.scale_workspace(*arguments)
        return status, executor


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("nnopbase") / "libprogram.so"
    toolkit, source = toolkit_directory(), Path(__file__).with_name("nnopbase_program.cpp")
    options = ["-std=c++17", "-shared", "-fPIC", "-I", toolkit / "include", f"-L{toolkit}/lib64", "-o", path, source]
    subprocess.run([*compiler(), *map(str, options), "-Wl,--no-as-needed", "-lnnopbase", "-Wl,-z,now"], check=True)
    return Program(path)


def test_a_call_is_refused_until_a_kernel_for_the_host_is_registered(program: Program) -> None:
    (x, _), (y, result) = program.tensor([2, 4]), program.tensor([0, 0])
    status, _ = program.scale(x, y)
    assert status == 561003
    error = program.error()  # reading it clears it
    assert "NnopScale: a kernel for the host was not found" in error
    assert "ascend-graph build" in error
    program.own.register_kernel()
    status, executor = program.scale(x, y)
    assert (status, program.own.scale_run(executor, None)) == (0, 0)
    assert list(result) == [1, 2]


def test_arguments_arrive_in_the_prototypes_order(program: Program) -> None:
    program.own.register_kernel()
    (x, _), (bias, _), (y, result) = program.tensor([2, 4]), program.tensor([10, 20]), program.tensor([0, 0])
    status, executor = program.scale(x, y, bias=bias, ints=[100, 200])
    assert (status, program.own.scale_run(executor, None)) == (0, 0)
    assert list(result) == [2 * 0.5 + 10 + 300, 4 * 0.5 + 20 + 300]
    status, executor = program.scale(x, y, mode=b"negative")
    assert (status, program.own.scale_run(executor, None)) == (0, 0)
    assert list(result) == [-1, -1]


def test_a_call_waits_for_its_stream(program: Program) -> None:
    program.own.register_kernel()
    stream = c_void_p()
    assert program.acl.aclrtSetDevice(0) == program.acl.aclrtCreateStream(ctypes.byref(stream)) == 0
    (x, _), (y, result) = program.tensor([2, 4]), program.tensor([0, 0])
    for _ in range(20):
        status, executor = program.scale(x, y, ints=[1])
        assert (status, program.own.scale_run(executor, stream)) == (0, 0)
    assert program.acl.aclrtSynchronizeStream(stream) == 0
    assert list(result) == [2, 3]
    assert program.acl.aclrtDestroyStream(stream) == 0


def test_dtypes_that_the_package_does_not_list_are_refused(program: Program) -> None:
    program.own.register_kernel()
    (x, _), (y, _) = program.tensor([2, 4], DOUBLE), program.tensor([0, 0])
    status, executor = program.scale(x, y)
    assert status == 161002
    assert "NnopScale: inputs of aclDataType (11) with outputs of (0) are not supported; expected" in program.error()
    assert program.own.scale_run(executor, None) == 561000
    assert "call GetWorkspaceSize again" in program.error()


def test_a_package_for_another_soc_is_refused(program: Program) -> None:
    program.own.register_kernel()
    (x, _), (y, _) = program.tensor([2, 4]), program.tensor([0, 0])
    status, executor = program.scale(x, y, soc=ASCEND310P)
    assert status == 161002
    assert "the operator package does not support Ascend910B1; expected a package for it" in program.error()
    # Who destroys the executor of a call that was refused destroys it once.
    assert program.opapi.aclDestroyAclOpExecutor(executor) == 0
    assert program.scale(x, y)[0] == 0


def test_an_argument_beyond_the_prototype_is_refused(program: Program) -> None:
    x, _ = program.tensor([1])
    assert program.own.add_beyond(x) == 161002
    assert "NnopScale: input 1 was added; expected an index below 1" in program.error()


@pytest.mark.parametrize(
    ("length", "kind", "status"), [(1, 0, 0), (8, 0, 161002), (4, 1, 0), (8, 1, 0), (2, 1, 161002)]
)
def test_attrs_have_the_length_of_their_type(program: Program, length: int, kind: int, status: int) -> None:
    assert program.own.add_attr_of(c_uint64(length), c_uint32(kind)) == status


def test_an_executor_of_another_call_is_refused(program: Program) -> None:
    program.own.register_kernel()
    (x, _), (y, _) = program.tensor([2]), program.tensor([0])
    status, executor = program.scale(x, y)
    assert status == 0
    assert program.opapi.NnopbaseAddInput(executor, x, 0) == 161001
    assert "returned last on this thread" in program.error()
    assert program.own.scale_run(executor, None) == 0


def test_libmmpa_and_the_log_answer_as_documented(tmp_path: Path) -> None:
    libraries = toolkit_directory() / "lib64"
    mmpa = ctypes.CDLL(str(libraries / "libmmpa.so"), use_errno=True)
    place = ctypes.create_string_buffer(4096)
    (tmp_path / "link").symlink_to(tmp_path)
    assert mmpa.mmRealPath(str(tmp_path / "link").encode(), place, 4096) == 0
    assert place.value.decode() == str(tmp_path.resolve())
    assert mmpa.mmRealPath(str(tmp_path / "absent").encode(), place, 4096) == -1
    assert mmpa.mmRealPath(str(tmp_path).encode(), place, 100) == -2
    mmpa.mmGetErrorFormatMessage.restype = c_char_p
    assert mmpa.mmGetErrorFormatMessage(2, place, c_uint64(4096)) == b"No such file or directory"
    assert mmpa.mmGetErrorFormatMessage(2, None, c_uint64(4096)) is None
    assert mmpa.mmDladdr(None, place) == -2
    assert mmpa.mmDladdr(mmpa.mmDladdr, place) == 0
    log = ctypes.CDLL(str(libraries / "libunified_dlog.so"))
    assert [log.CheckLogLevel(63, level) for level in (0, 1, 2, 3)] == [0, 0, 0, 0]  # nothing is printed

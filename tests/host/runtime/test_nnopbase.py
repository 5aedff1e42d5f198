"""aclnn functions of operator packages that CANN built: calls run a kernel of the host, or are refused by name."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from ctypes import c_bool, c_char_p, c_double, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import pytest

from ascend_graph.compilation.toolchain import compiler
from ascend_graph.environment import toolkit_directory
from tests import preloaded

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
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nnopbase") / "libprogram.so"
    toolkit, source = toolkit_directory(), Path(__file__).with_name("nnopbase_program.cpp")
    options = ["-std=c++17", "-shared", "-fPIC", "-I", toolkit / "include", f"-L{toolkit}/lib64", "-o", path, source]
    subprocess.run([*compiler(), *map(str, options), "-Wl,--no-as-needed", "-lnnopbase", "-Wl,-z,now"], check=True)
    return path


@pytest.fixture(scope="module")
def program(library: Path) -> Program:
    return Program(library)


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
    assert [log.CheckLogLevel(63, level) for level in (0, 1, 2, 3)] == [
        0,
        0,
        0,
        1,
    ]  # errors are kept, nothing is printed
    # The same as functions of C++, which libraries link weakly, and call unasked.
    assert [log._Z13CheckLogLevelii(63, level) for level in (2, 3)] == [0, 1]
    log.ascendgraphTakeLoggedErrors.restype = c_char_p
    log.ascendgraphTakeLoggedErrors()
    log._Z10DlogRecordiiPKcz(63, 3, b"%s is %d", b"rank", 3)
    assert b"rank is 3" in log.ascendgraphTakeLoggedErrors()


#: Calls of libraries that were linked with CANN's, whose C++ strings are of the first ABI.
REPORTS = """
#include <map>
#include <string>
#include <vector>
class ErrorManager {
  public:
    static ErrorManager& GetInstance();
    const std::string& GetLogHeader();
    int ReportInterErrMessage(const std::string code, const std::string& text);
    void ATCReportErrMessage(const std::string code, const std::vector<std::string>& keys,
                             const std::vector<std::string>& values);
};
extern "C" int report() {
    auto& manager = ErrorManager::GetInstance();
    manager.ATCReportErrMessage("E50001", {"name", "value", "more"}, {"axis", "7"});
    return manager.GetLogHeader().empty() ? manager.ReportInterErrMessage("EZ9999", "no such stream") : -1;
}
"""


def test_errors_that_linked_libraries_report_are_kept(tmp_path: Path) -> None:
    source, library, directory = tmp_path / "reports.cpp", tmp_path / "reports.so", toolkit_directory() / "lib64"
    source.write_text(REPORTS)
    link = [f"-L{directory}", "-lerror_manager", f"-Wl,-rpath,{directory}", f"-Wl,-rpath-link,{directory}"]
    options = ["-std=c++17", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", "-Wl,-z,defs"]
    subprocess.run([*compiler(), *options, source, "-o", library, *link], check=True)
    reports, log = ctypes.CDLL(str(library)), ctypes.CDLL(str(directory / "libunified_dlog.so"))
    log.ascendgraphTakeLoggedErrors.restype = c_char_p
    log.ascendgraphTakeLoggedErrors()
    assert reports.report() == 0
    kept = log.ascendgraphTakeLoggedErrors()
    assert b"E50001: name=axis, value=7" in kept
    assert b"EZ9999: no such stream" in kept


PROTOTYPE = """
REG_OP(NnopScale)
    .INPUT(x, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_FLOAT16}))
    .REQUIRED_ATTR(scale, Float)
    .REQUIRED_ATTR(use_bias, Bool)
    .ATTR(ints, ListInt, {})
    .ATTR(mode, String, "plain")
    .OP_END_FACTORY_REG(NnopScale)
"""
HEADER = """
aclnnStatus aclnnNnopScaleGetWorkspaceSize(const aclTensor *x, const aclTensor *biasOptional, double scale,
    bool useBias, const aclIntArray *intsOptional, char *modeOptional, const aclTensor *out, uint64_t *workspaceSize,
    aclOpExecutor **executor);
aclnnStatus aclnnNnopScale(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""
KERNEL = """
def scale_kernel(x, bias, *, scale, use_bias, ints, mode):
    return x * scale + (bias if use_bias and bias is not None else 0) + sum(ints)
"""
#: A program that calls the operator of the package: eager and captured, and with a dtype that only its prototype has.
PROGRAM = """
import sys
import torch, torch_npu
import ascend_graph
from ascend_graph.host import build_operator_package
from scale_kernel import scale_kernel

package, kernels = sys.argv[1:]
ascend_graph.load_aclnn(f"{package}/op_api/include")  # each package declares the function
ascend_graph.register_package(package, shapes={"NnopScale": "x[*s], bias -> y[*s]"})
op = torch.ops.ascend.nnop_scale
x, bias = torch.randn(4), torch.randn(4)
call = lambda a, b: op(a, b, scale=0.5, use_bias=True, ints=[1, 2])
torch.testing.assert_close(call(x.npu(), bias.npu()).cpu(), x * 0.5 + bias + 3)
torch.testing.assert_close(op(x.npu(), scale=2.0, use_bias=False).cpu(), x * 2)
captured = torch.compile(call, backend="npugraph_ex")
torch.testing.assert_close(captured(x.npu(), bias.npu()).cpu(), x * 0.5 + bias + 3)
try:
    call(x.half().npu(), bias.half().npu())
except RuntimeError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_package_that_cann_built_runs_with_kernels_of_another(library: Path, tmp_path: Path) -> None:
    package = tmp_path / "vendor"
    for part, name, content in (
        ("op_proto/inc", "op_proto.h", PROTOTYPE),
        ("op_api/include", "aclnn_nnop_scale.h", HEADER),
    ):
        (package / part).mkdir(parents=True)
        (package / part / name).write_text(content)
    (package / "op_api/lib").mkdir()
    shutil.copy(library, package / "op_api/lib/libcust_opapi.so")
    (tmp_path / "scale_kernel.py").write_text(KERNEL)
    (tmp_path / "op_proto.h").write_text(PROTOTYPE)
    (tmp_path / "program.py").write_text(PROGRAM)
    build = (
        "from ascend_graph.host import build_operator_package; from scale_kernel import scale_kernel; "
        "build_operator_package('kernels', 'op_proto.h', {'NnopScale': scale_kernel})"
    )
    (tmp_path / "build.py").write_text(build)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for command in (["build.py"], ["program.py", str(package), "kernels"]):
        done = preloaded.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        environment["ASCEND_CUSTOM_OPP_PATH"] = f"{package}:{tmp_path}/kernels"
    # The function of the package that CANN built is what was called: its list lacks a dtype that the prototype has.
    assert "inputs of aclDataType (1, 1) with outputs of (1) are not supported" in done.stdout

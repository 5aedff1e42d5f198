"""aclnn functions that a project's authors wrote: compiled in, exported as their headers declare, called from torch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import preloaded
import pytest

from ascend_graph.aclnn import parse_file
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.survey import SurveyState, survey

PROJECT = Path(__file__).parent / "handwritten"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_project_package(tmp_path_factory.mktemp("opp") / "vendor", PROJECT)


Runner = Callable[..., "subprocess.CompletedProcess[str]"]


def run(package: Path, code: str, prelude: str | None = None, runner: Runner = preloaded.run) -> str:
    """What code prints in a process that has the package installed."""
    done = runner(
        [sys.executable, "-c", (PRELUDE if prelude is None else prelude) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


PRELUDE = """
import torch, torch_npu, ascend_graph
op = ascend_graph.register_aclnn(
    "aclnnScaleAdd", name="hand::scale_add", shape=lambda self, other=None, *, alpha, negative, perm:
    torch.empty([self.shape[p] for p in perm] if perm else self.shape, dtype=self.dtype, device=self.device))

def expected(x, other, alpha, negative, perm):
    y = x.float() * alpha + (0 if other is None else other.float())
    y = -y if negative else y
    return (y.permute(perm) if perm else y).to(x.dtype)

def check(x, other=None, alpha=2.0, negative=False, perm=None):
    found = op(x.npu(), None if other is None else other.npu(), alpha=alpha, negative=negative, perm=perm or [])
    torch.testing.assert_close(found.cpu(), expected(x, other, alpha, negative, perm))

def refused(x, other, alpha):
    try:
        op(x.npu(), other, alpha=alpha, negative=False, perm=[])
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    else:
        raise AssertionError("taken")
"""


def test_the_headers_are_the_authors(package: Path) -> None:
    functions = {f.name: f for f in parse_file(package / "op_api/include/aclnn_scale_add.h").functions}
    assert [p.name for p in functions["aclnnScaleAdd"].parameters][:3] == ["self", "otherOptional", "alpha"]
    inner = parse_file(package / "op_api/include/aclnnInner_scale_add.h").functions
    assert [f.name for f in inner] == ["aclnnInnerScaleAdd"]


def test_they_stand_before_functions_of_cann(package: Path) -> None:
    """The loader looks in the order of the libraries, and CANN's may have a function of the same name."""
    library = package / "op_api/lib/libcust_opapi.so"
    said = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", said)
    assert needed[0].startswith("libcust_aclnn_")
    assert "libopapi.so" in needed[1:]


def test_values(package: Path) -> None:
    """Casts, copies of what has gaps, the package's operator with its InferShape, and those of the graph engine."""
    run(
        package,
        """
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x, other = torch.randn(3, 5).to(dtype), torch.randn(3, 5).to(dtype)
            check(x)
            check(x, other, 0.5)
            check(x, other[:1, 0], 0.5)
            check(x, other, 3.0, True)
            check(x, other, 1.0, True, [1, 0])
            check(x.t(), other.t(), 2.0)
            check(torch.randn(7, 9).to(dtype)[1:6:2, 2:8:3], None, 1.5, True)
        check(torch.empty(0, 4))
        """,
    )


def test_captured(package: Path) -> None:
    """A graph keeps the call: the caller's tensors of the first half are gone when it runs."""
    run(
        package,
        """
        x, other = torch.randn(4, 4).half().npu(), torch.randn(4, 4).half().npu()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            y = op(x.t(), other, alpha=2.0, negative=True, perm=[1, 0])
        for _ in range(2):
            x.copy_(torch.randn(4, 4)); other.copy_(torch.randn(4, 4))
            graph.replay()
            torch.npu.synchronize()
            torch.testing.assert_close(y.cpu(), expected(x.cpu().t(), other.cpu(), 2.0, True, [1, 0]))
        """,
    )


def test_refusals(package: Path) -> None:
    """The author's checks, and the tiling function's, come back from the first half with their texts."""
    printed = run(
        package,
        """
        refused(torch.ones(2).to(torch.int8), None, 1.0)
        refused(torch.ones(2), torch.ones(3).npu(), 1.0)
        refused(torch.ones(2), None, -1.0)
        refused(torch.ones([1] * 9), None, 1.0)
        """,
    )
    dtype, shape, tiling, rank = printed.splitlines()
    assert "self is DT_INT8; it can be DT_FLOAT, " in dtype.replace("[", "")
    assert "161002" in dtype
    assert "otherOptional has shape [3]; it must be [2]" in shape
    assert "self has shape [1, 1, 1, 1, 1, 1, 1, 1, 1]; it must have at most 8 dimensions" in rank
    assert "ScaleAdd: the tiling function returned GRAPH_FAILED" in tiling


def test_memory_with_gaps_is_not_launched_on(package: Path) -> None:
    """A device's kernel would read it as if it had none."""
    printed = run(
        package,
        """
        raw = ascend_graph.register_aclnn("aclnnScaleAddRaw", name="hand::raw", shape="self[*s] -> out[*s]")
        torch.testing.assert_close(raw(torch.arange(5.0).npu()).cpu(), torch.arange(5.0) * 3)
        try:
            raw(torch.ones(3, 4).npu().t())
        except RuntimeError as error:
            print(error)
        """,
    )
    assert "ScaleAdd: parameter x has gaps in its memory; call l0op::Contiguous before" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("l0op::Neg(y, unique.get())", "l0op::Nog(y)"), "is not a member of"),
        pytest.param(
            ("const aclTensor* Neg(", "static const aclTensor* Other("),
            "undefined symbol: l0op::Neg(",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["does not compile", "does not link"],
)
def test_what_cannot_be_built_is_left_out(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    """The package is built without, with the generated function; the log and a survey say why."""
    project = shutil.copytree(PROJECT, tmp_path / "project")
    for source in (project / "op_api").glob("*.cpp"):
        source.write_text(source.read_text().replace(*change))
    (one,) = survey(project, tmp_path / "work").results
    assert one.state is SurveyState.LOADED, one.error
    assert said in one.left_out
    log = Path(one.log)
    assert "project: its own aclnn functions are left out" in log.read_text()
    functions = parse_file(log.parent / "package/op_api/include/aclnn_scale_add.h").functions
    assert [p.name for p in functions[0].parameters][:3] == ["x", "otherOptional", "factor"]


CALLER_HEADER = """
#include "aclnn/aclnn_base.h"
extern "C" {
aclnnStatus aclnnScaleThriceGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
                                             aclOpExecutor** executor);
aclnnStatus aclnnScaleThrice(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);
}
"""
CALLER = """
#include "aclnn_scale_thrice.h"

#include "opdev/op_log.h"
#include "log/log.h"

#include "aclnnInner_scale_add.h"

extern "C" void NnopbaseSetUserHandle(void* executor, void* handle);
extern "C" void* NnopbaseGetUserHandle(void* executor);
extern "C" aclnnStatus aclnnScaleThriceGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
                                                        aclOpExecutor** executor) {
    OP_CHECK(self != out, OP_LOGE(ACLNN_ERR_PARAM_INVALID, "out is self"), return ACLNN_ERR_PARAM_INVALID);
    const aclnnStatus status = aclnnInnerScaleAddGetWorkspaceSize(self, nullptr, 3.0, out, workspaceSize, executor);
    if (status == OK) NnopbaseSetUserHandle(*executor, out);
    return status;
}
extern "C" aclnnStatus aclnnScaleThrice(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                        aclrtStream stream) {
    if (NnopbaseGetUserHandle(executor) == nullptr) return ACLNN_ERR_INNER;
    return aclnnInnerScaleAdd(workspace, workspaceSize, executor, stream);
}
"""


@pytest.mark.slow
def test_generated_functions_of_other_operators_are_called(package: Path, tmp_path: Path) -> None:
    """They find the operator in whatever package has it. And functions whose build says so have opdev's log."""
    shutil.copytree(PROJECT, tmp_path / "ops/scale_add")
    caller = tmp_path / "ops/call_scale"
    for directory in ("op_host", "op_kernel"):
        for source in (PROJECT / directory).iterdir():
            target = caller / directory / source.name.replace("scale_add", "call_scale")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text().replace("ScaleAdd", "CallScale").replace("scale_add", "call_scale"))
    (caller / "op_api").mkdir()
    (caller / "op_api/aclnn_scale_thrice.h").write_text(CALLER_HEADER)
    (caller / "op_api/aclnn_scale_thrice.cpp").write_text(CALLER)
    (tmp_path / "CMakeLists.txt").write_text("target_compile_options(opapi PRIVATE -DOP_LOG_LIBOPAPI_ONLY)")
    built = build_project_package(tmp_path / "vendor", caller)
    call = """
        import torch, torch_npu, ascend_graph
        thrice = ascend_graph.register_aclnn("aclnnScaleThrice", name="hand::thrice", shape="self[*s] -> out[*s]")
        try:
            torch.testing.assert_close(thrice(torch.arange(5.0).npu()).cpu(), torch.arange(5.0) * 3)
        except RuntimeError as error:
            print(error)
    """
    assert "ScaleAdd: no operator package that is loaded has it" in run(built, call, prelude="")
    # torch_npu loads all packages while it is imported.
    assert not run(Path(f"{built}:{package}"), call, prelude="", runner=subprocess.run)

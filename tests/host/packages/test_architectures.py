# ruff: noqa: E501, RUF100 - sources are quoted as they are written
"""Packages for dav-3510: what is chosen for them, what their tiling functions see, and where they run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
from click.testing import CliRunner

from ascend_graph.cli import main
from ascend_graph.environment import PROCESSOR_VARIABLE
from ascend_graph.host.architecture import DAV_2201, DAV_3510, ArchitectureError, architecture, processor_with
from ascend_graph.host.projects.discover import discover
from ascend_graph.host.projects.model import BuildOptions
from ascend_graph.host.projects.repository import Repository

DEFINITION = """
#include "register/op_def_registry.h"
namespace ops {
class TwiceCustom : public OpDef {
  public:
    explicit TwiceCustom(const char* name) : OpDef(name) {
        this->Input("x").DataType({ge::DT_FLOAT});
        this->Output("y").DataType({ge::DT_FLOAT});
        this->AICore().AddConfig("ascend910b");
        OpAICoreConfig config;
        config.Input("x").DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
        config.Output("y").DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
        config.ExtendCfgInfo("opFile.value", "twice_custom_apt");
        this->AICore().AddConfig("ascend950", config);
    }
};
OP_ADD(TwiceCustom);
}  // namespace ops
"""
TILING = """
#include "register/op_impl_registry.h"
#include "platform/platform_ascendc.h"
struct TwiceTiling { uint32_t count; };
static ge::graphStatus Tile(gert::TilingContext* context) {
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    uint64_t ub = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ub);
    const bool is_950 = platform.GetSocVersion() == platform_ascendc::SocVersion::ASCEND950 &&
        platform.GetCurNpuArch() == NpuArch::DAV_3510;
    if (!is_950 || ub != 253952 || platform.GetCoreNumAiv() != 64) return ge::GRAPH_FAILED;
    context->GetTilingData<TwiceTiling>()->count = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(TwiceCustom).Tiling(Tile);
"""
KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
struct TwiceTiling { uint32_t count; };
template <typename T>
__simd_vf__ inline void Twice(__ubuf__ T* x, uint32_t count) {
    Reg::RegTensor<T> r;
    const uint16_t times = CeilDivision(count, VECTOR_REG_WIDTH / sizeof(T));
    for (uint16_t i = 0; i < times; ++i) {
        Reg::MaskReg mask = Reg::UpdateMask<T>(count);
        Reg::LoadAlign(r, x);
        Reg::Add(r, r, r, mask);
        Reg::StoreAlign<T, Reg::PostLiteral::POST_MODE_UPDATE>(x, r, VECTOR_REG_WIDTH / sizeof(T), mask);
    }
}
extern "C" __global__ __aicore__ void twice_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(TwiceTiling);
    GET_TILING_DATA_WITH_STRUCT(TwiceTiling, data, tiling);
    TPipe pipe;
    TBuf<> buffer;
    const uint32_t bytes = data.count * sizeof(DTYPE_X);
    pipe.InitBuffer(buffer, (bytes + 31) / 32 * 32);
    LocalTensor<DTYPE_X> local = buffer.Get<DTYPE_X>();
    GlobalTensor<DTYPE_X> from, to;
    from.SetGlobalBuffer((__gm__ DTYPE_X*)x, data.count);
    to.SetGlobalBuffer((__gm__ DTYPE_X*)y, data.count);
    DataCopyPad(local, from, DataCopyExtParams{1, bytes, 0, 0, 0}, DataCopyPadExtParams<DTYPE_X>{});
    asc_vf_call<Twice<DTYPE_X>>((__ubuf__ DTYPE_X*)local.GetPhyAddr(), data.count);
    DataCopyPad(to, local, DataCopyExtParams{1, bytes, 0, 0, 0});
}
"""
CALL = """
import torch, torch_npu, ascend_graph
ascend_graph.register_op("TwiceCustom", shape="x[*s] -> y[*s]")
for dtype in (torch.float32, torch.float16):
    x = torch.randn(333, dtype=dtype)
    assert torch.equal(torch.ops.ascend.twice_custom(x.npu()).cpu(), 2 * x), dtype
print("equal on", torch_npu.npu.get_device_name())
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name, text in {
        "op_host/twice_custom_def.cpp": DEFINITION,
        "op_host/arch22/twice_custom_tiling.cpp": "#error for dav-2201\n",
        "op_host/arch35/twice_custom_tiling.cpp": TILING,
        "op_kernel/twice_custom.cpp": '#error for dav-2201\nextern "C" __global__ __aicore__ void twice_custom() {}\n',
        "op_kernel/twice_custom_apt.cpp": KERNEL,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture(scope="module")
def package(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("opp") / "vendor"
    options = ["build", str(project), "-o", str(target), "--npu-arch", "Ascend950"]
    result = CliRunner().invoke(main, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return target


def run(package: Path, processor: str) -> subprocess.CompletedProcess[str]:
    variables = {"ASCEND_CUSTOM_OPP_PATH": str(package), PROCESSOR_VARIABLE: processor}
    return preloaded.run(
        [sys.executable, "-c", CALL],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, **variables},
    )


@pytest.mark.slow
def test_a_package_runs_where_the_process_stands_for_its_architecture(package: Path) -> None:
    done = run(package, processor_with(DAV_3510, {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "equal on Ascend950PR_9589"


@pytest.mark.slow
def test_a_package_is_refused_where_the_process_stands_for_another(package: Path) -> None:
    done = run(package, "Ascend910_9391")
    assert done.returncode != 0
    assert "kernel twice_custom is for dav-3510, and this process stands for dav-2201" in done.stderr
    assert "python -m ascend_graph.host --npu-arch dav-3510" in done.stderr


def test_the_directories_of_the_architecture_are_chosen(project: Path) -> None:
    def directories(options: BuildOptions) -> set[str]:
        return {path.parent.name for path in discover(Repository.around(project, options)).host_sources}

    assert directories(BuildOptions(architecture=DAV_3510)) == {"op_host", "arch35"}
    assert directories(BuildOptions()) == {"op_host", "arch22"}


def test_names(project: Path, tmp_path: Path) -> None:
    assert architecture("dav-2201") is architecture("ascend910b") is architecture("Ascend910_9391") is DAV_2201
    assert architecture("dav-3510") is architecture("Ascend950PR_9599") is architecture("Ascend910_95") is DAV_3510
    with pytest.raises(
        ArchitectureError,
        match=r"architecture 'Ascend310P3' does not exist on the host; valid: dav-2201 \(Ascend910B, ",
    ):
        architecture("Ascend310P3")
    result = CliRunner().invoke(main, ["build", str(project), "-o", str(tmp_path / "opp"), "--npu-arch", "arch35"])
    assert result.exit_code == 2
    assert "architecture 'arch35' does not exist on the host" in " ".join(result.output.replace("│", "").split())
    host = [sys.executable, "-m", "ascend_graph.host", "--npu-arch", "dav-1", "-c", "pass"]
    done = subprocess.run(host, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "architecture 'dav-1' does not exist on the host" in done.stderr

"""The program ``msopgen``: a project from a description, with the files that CANN's makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ascend_graph.codegen.msopgen_project import generate_msopgen_project, main, soc_config
from ascend_graph.codegen.rendering import GenerationError

DESCRIPTION = [
    {
        "op": "ShiftCustom",
        "input_desc": [{"name": "x", "param_type": "required", "format": ["ND", "ND"], "type": ["float", "int32"]}],
        "output_desc": [{"name": "y", "param_type": "required", "format": ["ND", "ND"], "type": ["float", "int32"]}],
        "attr": [{"name": "much", "param_type": "optional", "type": "int", "default_value": "2"}],
    }
]
FILES = [
    "CMakeLists.txt",
    "CMakePresets.json",
    "build.sh",
    "op_host/CMakeLists.txt",
    "op_host/shift_custom.cpp",
    "op_host/shift_custom_tiling.h",
    "op_kernel/CMakeLists.txt",
    "op_kernel/shift_custom.cpp",
]


@pytest.fixture
def description(tmp_path: Path) -> Path:
    path = tmp_path / "shift.json"
    path.write_text(json.dumps(DESCRIPTION))
    return path


def test_the_files_of_a_project(description: Path, tmp_path: Path) -> None:
    made = generate_msopgen_project(description, tmp_path / "project", ["ai_core-Ascend910B1", "ai_core-Ascend310P3"])
    found = sorted(path.relative_to(made.directory).as_posix() for path in made.directory.rglob("*") if path.is_file())
    assert found == FILES
    host = (made.directory / "op_host/shift_custom.cpp").read_text()
    assert "{ge::DT_FLOAT, ge::DT_INT32}" in host
    assert 'this->Attr("much").AttrType(OPTIONAL).Int(2);' in host
    assert [line.split('"')[1] for line in host.splitlines() if "AddConfig" in line] == ["ascend910b", "ascend310p"]
    assert os.access(made.directory / "build.sh", os.X_OK)
    assert [path.as_posix() for path in made.drafts] == [name for name in FILES if "shift_custom" in name]


def test_what_an_author_wrote_is_kept(description: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "project/op_kernel/shift_custom.cpp"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("// mine\n")
    made = generate_msopgen_project(description, tmp_path / "project", ["ai_core-Ascend910B1"])
    assert kernel.read_text() == "// mine\n"
    assert made.kept == (Path("op_kernel/shift_custom.cpp"),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "ai_core-Ascend910B1"], "-lan py: kernels in TBE are not supported; expected cpp"),
        (["-c", "ai_core-Turing", "-lan", "cpp"], "-c ai_core-Turing: not a compute unit; expected ai_core-<chip>"),
        (["-c", "ai_core-Ascend910B1", "-lan", "cpp", "-f", "jax"], "-f jax: not a framework with operator projects"),
        (["-c", "ai_core-Ascend910B1", "-lan", "cpp", "-op", "Other"], "it has no operator Other"),
    ],
)
def test_what_no_project_is_made_of(
    description: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["gen", "-i", str(description), "-out", str(description.parent / "made"), *arguments]) == 1
    assert f"msopgen: {message}" in capsys.readouterr().err.replace(f"{description}: ", "")
    assert not (description.parent / "made").exists()


def test_a_description_that_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "op.json").write_text('[{"op": "x); import os"}]')
    with pytest.raises(GenerationError, match="needs a name that is an identifier"):
        generate_msopgen_project(tmp_path / "op.json", tmp_path / "made", ["ai_core-Ascend910B1"])
    with pytest.raises(GenerationError, match="file not found"):
        generate_msopgen_project(tmp_path / "none.json", tmp_path / "made", ["ai_core-Ascend910B1"])


def test_a_chip_of_the_first_ascend_910_is_not_an_atlas_a2() -> None:
    assert soc_config("ai_core-Ascend910B") == "ascend910"
    assert soc_config("ai_core-ascend910b") == "ascend910b"


KERNEL = """
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void shift_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    const uint32_t share = data.size / AscendC::GetBlockNum();
    AscendC::GlobalTensor<DTYPE_X> in, out;
    in.SetGlobalBuffer((__gm__ DTYPE_X *)x, data.size);
    out.SetGlobalBuffer((__gm__ DTYPE_Y *)y, data.size);
    for (uint32_t i = share * AscendC::GetBlockIdx(); i < share * (AscendC::GetBlockIdx() + 1); ++i) {
        out.SetValue(i, in.GetValue(i) + 2);
    }
}
"""
CHECK = """
import ctypes, sys
from pathlib import Path
import torch, torch_npu, ascend_graph
operator = ascend_graph.register_op("ShiftCustom", shape="x[*s] -> y[*s]")
for dtype in (torch.float32, torch.int32):
    x = torch.arange(64, dtype=dtype)
    torch.testing.assert_close(torch.ops.ascend.shift_custom(x.npu()).cpu(), x + 2)
print("equal")
"""


@pytest.mark.slow
def test_a_project_with_the_authors_sources_is_built_by_its_own_command(description: Path, tmp_path: Path) -> None:
    """As scripts do it: msopgen, the author's files over the drafts, build.sh, the installer."""
    host = [sys.executable, "-m", "ascend_graph.host", "--quiet"]
    gen = "msopgen gen -i shift.json -c ai_core-Ascend910B1 -lan cpp -out made"
    subprocess.run([*host, *gen.split()], cwd=tmp_path, check=True)
    (tmp_path / "made/op_kernel/shift_custom.cpp").write_text(KERNEL)
    environment = {**os.environ, "CXXFLAGS": "-O0"}
    subprocess.run([*host, "bash", "made/build.sh"], cwd=tmp_path, env=environment, check=True)
    (installer,) = (tmp_path / "made/build_out").glob("custom_opp_*.run")
    subprocess.run([installer, f"--install-path={tmp_path}/opp"], check=True)
    package = str(tmp_path / "opp/vendors/customize")
    done = subprocess.run([*host, "--opp", package, "-c", CHECK], capture_output=True, text=True, check=False)
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.slow
def test_a_library_of_functions_lies_where_programs_link_it(description: Path, tmp_path: Path) -> None:
    made = generate_msopgen_project(description, tmp_path / "made", ["ai_core-Ascend910B1"], framework="aclnn")
    (made.directory / "op_kernel/shift_custom.cpp").write_text(KERNEL)
    host = [sys.executable, "-m", "ascend_graph.host", "--quiet"]
    environment = {**os.environ, "CXXFLAGS": "-O0"}
    subprocess.run([*host, "bash", "build.sh"], cwd=made.directory, env=environment, check=True)
    assert (made.directory / "build_out/op_api/lib/libcust_opapi.so").is_file()
    assert (made.directory / "build_out/op_api/include/aclnn_shift_custom.h").is_file()

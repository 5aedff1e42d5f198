"""Operator projects built by their own command: CANN's CMake functions, msOpGen's template, the installer, and what
is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory
from ascend_graph.host import OperatorPackageError
from ascend_graph.host.architecture import DAV_2201, DAV_3510
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.build_files import ManifestError, read_manifest

FORMS = Path(__file__).parent / "build_flow"


def project(form: str, directory: Path) -> Path:
    """A project of a form: its build files next to the sources that both have."""
    shutil.copytree(FORMS / "sources", directory)
    shutil.copytree(FORMS / form, directory, dirs_exist_ok=True)
    return directory


def on_host(command: list[str], directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", "--quiet", *command],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def built(made: Path) -> Path:
    done = on_host(["bash", "build.sh"], made, CXXFLAGS="-O0")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


CALLS = """
import torch, torch_npu, torchair, ascend_graph
ascend_graph.register_op("ScaleCustom", shape="x[*s] -> y[*s]")
scale = torch.ops.ascend.scale_custom
x = torch.rand(2, 5)
expected = 3 * x + 3  # the factor of the kernel's own options, the blocks of a definition
torch.testing.assert_close(scale(x.npu()).cpu(), expected)
graph = torch.compile(lambda x: scale(x) + 1, backend=torchair.get_npu_backend(), fullgraph=True)
torch.testing.assert_close(graph(x.npu()).cpu(), expected + 1)
print("equal")
"""


@pytest.mark.slow
def test_the_functions_of_cann_make_an_installer_whose_package_runs(tmp_path: Path) -> None:
    made = project("functions", tmp_path / "project")
    # Here a directory of headers is known by the build files alone.
    change(made / "op_host/scale_custom.cpp", '"../shared/blocks.h"', '"blocks.h"')
    (installer,) = (built(made) / "build_out").glob("custom_opp_*.run")
    assert sorted(path.name for path in (made / "build_out/autogen").glob("aclnn_*")) == [
        "aclnn_scale_custom.cpp",
        "aclnn_scale_custom.h",
    ]
    opp = tmp_path / "opp"
    done = subprocess.run([installer, f"--install-path={opp}"], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("SUCCESS\n")
    package = opp / "vendors/scale"
    assert (package / "op_impl/ai_core/tbe/scale_impl/dynamic/scale_custom.cpp").is_file()

    (tmp_path / "calls.py").write_text(CALLS)
    (tmp_path / "run.sh").write_text(
        f"source {package}/bin/set_env.bash\n{sys.executable} -m ascend_graph.host calls.py\n"
    )
    run = subprocess.run(["bash", "run.sh"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert run.stdout == "equal\n", run.stderr


def test_an_installer_installs_where_it_is_told_and_refuses_the_rest(tmp_path: Path) -> None:
    staged, installer = tmp_path / "staged", tmp_path / "custom_opp.run"
    package = staged / "packages/vendors/scale"
    package.mkdir(parents=True)
    (package / "new").write_text("new")
    script = toolkit_directory() / "compiler/tikcpp/ascendc_kernel_cmake/operator_package/installer.cmake"
    values = {
        "TEMPORARY_DIRECTORY": staged,
        "PACKAGE_DIRECTORY": tmp_path,
        "PACKAGE_FILE_NAME": installer.name,
        "ASCEND_GRAPH_VENDOR": "scale",
    }
    subprocess.run(["cmake", *(f"-DCPACK_{name}={value}" for name, value in values.items()), "-P", script], check=True)

    def install(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ASCEND_")}
        return subprocess.run(
            [installer, *options], env={**clean, **environment}, capture_output=True, text=True, check=False
        )

    assert install("--check").stdout.endswith("is whole\n")
    assert "packages/vendors/scale/new" in install("--list").stdout.splitlines()
    opp = tmp_path / "opp"
    (opp / "vendors/scale").mkdir(parents=True)
    (opp / "vendors/scale/old").touch()  # of an earlier version, which had more
    assert install(f"--install-path={opp}").stdout.endswith("SUCCESS\n")
    assert sorted(path.name for path in (opp / "vendors/scale").iterdir()) == ["bin", "new"]
    sourced = f"source '{opp}/vendors/scale/bin/set_env.bash'; echo $ASCEND_CUSTOM_OPP_PATH"
    assert subprocess.check_output(["bash", "-c", sourced], text=True).startswith(f"{opp}/vendors/scale:")
    other = tmp_path / "cann_opp"
    (other / "vendors/old").mkdir(parents=True)
    (other / "vendors/config.ini").write_text("load_priority=old,scale\n")
    assert install("--quiet", ASCEND_OPP_PATH=str(other)).stdout == ""
    assert (other / "vendors/config.ini").read_text() == "load_priority=scale,old\n"
    assert (other / "vendors/scale/new").is_file()
    assert "ASCEND_OPP_PATH is not set" in install().stderr
    assert "not an absolute path" in install("--install-path=here").stderr
    assert "names several directories" in install(ASCEND_CUSTOM_OPP_PATH="/a:/b").stderr
    assert "--upgrade is not an option" in install("--upgrade").stderr
    installer.write_bytes(installer.read_bytes()[:-1])
    assert "is damaged" in install("--check").stderr


def test_the_template_configures_with_the_functions_of_the_host(tmp_path: Path) -> None:
    """Its own functions around opbuild end in an error here; the CANN of its presets is not on this machine."""
    made = project("template", tmp_path / "project")
    done = on_host(["cmake", "--preset", "default"], made, CXXFLAGS="-O0")
    assert done.returncode == 0, done.stderr
    assert "the host toolkit stands for ASCEND_CANN_PACKAGE_PATH=/usr/local/Ascend" in done.stdout
    assert "ascend_graph, in CANN's place: ScaleCustom" in done.stdout
    assert "aclnnScaleCustomGetWorkspaceSize" in (made / "build_out/autogen/aclnn_scale_custom.h").read_text()
    lines = (made / "build_out/ascend_graph/ascend_graph_package-CXX.txt").read_text().splitlines()
    assert "definition\tMOST_BLOCKS=3" in lines
    assert "kernel_option\tScaleCustom\tascend910b\t-DFACTOR=3" in lines


@pytest.mark.slow
def test_the_template_of_msopgen_builds_the_same_package(tmp_path: Path) -> None:
    """What it installs itself is replaced where it is empty."""
    made = built(project("template", tmp_path / "project"))
    package = made / "build_out/packages/vendors/scale"
    assert (made / "build_out/op_host/libcust_opapi.so").resolve().parents[2] == made / "build_out/ascend_graph/scale"
    (tmp_path / "calls.py").write_text(CALLS)
    run = on_host(["--opp", str(package), "calls.py"], tmp_path)
    assert run.stdout == "equal\n", run.stderr


@pytest.mark.slow
def test_a_program_links_the_package_as_a_library(tmp_path: Path) -> None:
    made = project("functions", tmp_path / "project")
    change(made / "CMakeLists.txt", "TYPE RUN", "TYPE STATIC")
    change(made / "CMakeLists.txt", "${CMAKE_BINARY_DIR}", "${CMAKE_BINARY_DIR}/installed")
    change(made / "build.sh", "package", "install")
    done = on_host(["bash", "build.sh"], made)
    assert done.returncode == 0, done.stdout + done.stderr
    installed = made / "build_out/installed"
    assert "archives are not built on the host: scale::scale links" in done.stdout
    program = tmp_path / "program"
    shutil.copytree(FORMS / "program", program)
    (program / "run.sh").write_text(
        f"set -e\ncmake -S . -B build -DCMAKE_PREFIX_PATH={installed} > log\ncmake --build build > log\nbuild/program\n"
    )
    run = on_host(["run.sh"], program)
    assert run.stdout == "6 9 12 15\n", run.stderr


def failing(made: Path) -> str:
    done = on_host(["cmake", "--preset", "default"], made, CXXFLAGS="-O0")
    assert done.returncode != 0, done.stdout
    return " ".join(done.stderr.split())


def test_an_error_of_the_source_is_shown_where_cmake_configures(tmp_path: Path) -> None:
    made = project("functions", tmp_path / "project")
    change(made / "op_host/scale_custom.cpp", "*context->GetTilingData", "context->NotThere")
    message = failing(made)
    assert "error:" in message
    assert "NotThere" in message
    assert f"the definitions of {made} do not build, for the reason above" in message


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("CMakeLists.txt", "TYPE RUN", "TYPE ZIP", "npu_op_package(scale): TYPE ZIP; valid: RUN, SHARED, STATIC"),
        (
            "CMakeLists.txt",
            "ENABLE_SOURCE_PACKAGE",
            "SOURCES",
            "npu_op_package(scale): CONFIG SOURCES; valid: ENABLE_SOURCE",
        ),
        (
            "CMakePresets.json",
            "ascend910b;ascend310b",
            "ascend950",
            "ASCEND_COMPUTE_UNIT is ascend950; the host stands for",
        ),
        (
            "op_host/CMakeLists.txt",
            "PACKAGE ${vendor_name}",
            "PACKAGE other",
            "unknown package other; expected one of: scale. Write",
        ),
        ("op_host/CMakeLists.txt", "${CMAKE_SOURCE_DIR}/shared/blocks.cpp)", "gone.cpp)", "gone.cpp does not exist"),
        (
            "op_host/CMakeLists.txt",
            "npu_op_code_gen(",
            "npu_op_package_add(scale LIBRARY cust_tilings)\nnpu_op_code_gen(",
            "LIBRARY cust_tilings): unknown library",
        ),
        (
            "op_host/CMakeLists.txt",
            "npu_op_code_gen(",
            "npu_op_kernel_sources(kernels OP_TYPE ScaleCustom)\nnpu_op_code_gen(",
            "OP_TYPE and KERNEL_FILE go together",
        ),
    ],
)
def test_what_build_files_must_not_say_is_refused_with_what_to_write(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    made = project("functions", tmp_path / "project")
    change(made / file, old, new)
    assert message in failing(made)


def manifest(directory: Path, *lines: str) -> Path:
    path = directory / "manifest.txt"
    path.write_text("".join(f"{line}\n" for line in (f"project\t{directory}", *lines)))
    return path


def test_a_manifest_is_read_for_an_architecture(tmp_path: Path) -> None:
    for name in ("kernels/a", "kernels/b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "kernels/b/special.cpp").touch()
    path = manifest(
        tmp_path,
        "units\tascend910b,ascend950",
        f"source\t{tmp_path}/x.cpp",
        "definition\tN=1",
        "definition\t_GLIBCXX_USE_CXX11_ABI=0",
        "option\t-std=c++11",
        "option\t-ffast-math",
        f"kernels\t{tmp_path}/kernels",
        "kernel\tALL\t\ta\t",
        "kernel\tSpecial\tascend910b\tb\tspecial.cpp",
        "kernel\tSpecial\tascend950\ta\tspecial.cpp",
        "kernel_option\tALL\t\t-DALL",
        "kernel_option\tSpecial\tAscend910B2\t-DTWO",
        "kernel_option\tSpecial\tascend950\t-DFIVE",
        "kernel_option\tSpecial\t\t--tiling_key=1,2",
    )
    _, listed = read_manifest(path, DAV_2201)
    assert listed.host_options == ("-DN=1", "-ffast-math")
    assert listed.common_kernel_options == ("-DALL",)
    assert listed.kernel_options == {"Special": ("-DTWO",)}
    assert listed.kernel_file("Special", "special") == tmp_path / "kernels/b/special.cpp"
    with pytest.raises(
        OperatorPackageError, match=r"Other: expected the source of its kernel as \S+/kernels/a/other.cpp"
    ):
        listed.kernel_file("Other", "other")
    assert read_manifest(path, DAV_3510)[1].kernel_options == {"Special": ("-DFIVE",)}
    with pytest.raises(OperatorPackageError, match="add ascend910_93, or start the build with --npu-arch dav-3510"):
        read_manifest(manifest(tmp_path, "units\tascend950"), DAV_2201)
    with pytest.raises(ManifestError, match=r"'kernel\\tall' is not a line of a manifest"):
        read_manifest(manifest(tmp_path, "kernel\tall"), DAV_2201)


@pytest.mark.slow
def test_an_operator_for_other_chips_than_the_package_is_refused(tmp_path: Path) -> None:
    made = project("functions", tmp_path / "project")
    listed = read_manifest(
        manifest(
            made, "units\tascend910_93", f"source\t{made}/op_host/scale_custom.cpp", f"source\t{made}/shared/blocks.cpp"
        ),
        DAV_2201,
    )[1]
    with pytest.raises(
        OperatorPackageError,
        match=r"ScaleCustom: AddConfig names ascend910b alone, and the package is built for ascend910_93",
    ):
        build_project_package(tmp_path / "opp", made, listed=listed)


def test_opbuild_by_itself_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text('"$ASCEND_HOME_PATH/toolkit/tools/opbuild/op_build" all.so out\n')
    done = on_host(["build.sh"], tmp_path)
    assert done.returncode == 1
    assert "write ascend-graph build PROJECT -o OPP" in done.stderr

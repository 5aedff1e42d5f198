"""Repositories of operator projects: where their files are, and what a survey says of them."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ascend_graph.codegen.operator_package import TilingField, TilingStructure
from click.testing import CliRunner

from ascend_graph.cli import main
from ascend_graph.compilation import CppLibrary, compiler
from ascend_graph.environment import toolkit_directory
from ascend_graph.host import OperatorPackageError
from ascend_graph.host.architecture import architecture
from ascend_graph.host.projects.describe import ComputeUnitWarning, describe
from ascend_graph.host.projects.discover import discover, locate_kernels
from ascend_graph.host.projects.includes import find_includes
from ascend_graph.host.projects.kernels import kernel_libraries
from ascend_graph.host.projects.libraries import host_include_directories, host_library, undefined_functions
from ascend_graph.host.projects.model import NO_OPTIONS, BuildOptions, OperatorProject, ProjectOperator
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.survey import ProjectKind, SurveyError, SurveyState, survey
from ascend_graph.prototypes import OpPrototype, parse_file

PROJECT = Path(__file__).parent / "project"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def parts_of_project(target: Path, *stems: str) -> Path:
    """The operators of some sources alone."""
    for file in (file for stem in stems for file in PROJECT.glob(f"op_*/{stem}*")):
        copied = target / file.relative_to(PROJECT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)
    return target


def discovered(directory: Path, options: BuildOptions = NO_OPTIONS) -> OperatorProject:
    return discover(Repository.around(directory, options))


def kernels(
    directory: Path, operator: ProjectOperator, work: Path, tilings: tuple[TilingStructure, ...] = ()
) -> tuple[CppLibrary, ...]:
    repository = Repository.around(directory)
    project = locate_kernels(discover(repository), [operator], repository)
    return kernel_libraries(project, operator, tilings, work)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write(
        tmp_path / "repository",
        {
            "CMakeLists.txt": 'target_compile_definitions(host PRIVATE SUB_MODULE="TILING" OTHER="${X}" UNUSED=1)',
            "common/inc/shared/helper.h": (
                '#include "shared/deep.h"\n'
                "inline const char* module_name() { return SUB_MODULE; }\n#ifdef OTHER\n"
                "#endif"
            ),
            "common/inc/shared/deep.h": "",
            # What a source defines serves itself alone; the other sources still lack it.
            "common/src/helper.cpp": '#include "missing/header.h"\n#define SUB_MODULE "HELPER"\n#define UNUSED UNUSED',
            "common/stub/shared/helper.h": "",
            "tests/ut/shared/helper.h": "",
            "math/CMakeLists.txt": "",
            "math/add/op_host/add_def.cpp": '#include "shared/helper.h"\n// #include "no/such.h"\n#include <vector>',
            "math/add/op_host/arch22/add_tiling.cpp": "",
            "math/add/op_host/arch35/add_tiling.cpp": "",
            "math/add/op_host/op_api/aclnn_add.cpp": "",
            "math/add/op_kernel/add.cpp": '#include "../sub/sub_base.h"\n__global__',
            "math/add/op_kernel/arch35/add.cpp": "__global__",
            "math/sub/op_host/sub_def.cpp": 'this->AICore().AddConfig("ascend950");',
            "math/sub/op_kernel/sub.cpp": "__global__",
            "math/sub/op_kernel/sub_base.h": "",
        },
    )


def test_files_of_a_repository_are_found_from_what_includes_name(repository: Path) -> None:
    sources = discovered(repository / "math/add")
    assert sources.root == repository
    assert [str(p.relative_to(repository)) for p in sources.host_sources] == [
        "math/add/op_host/add_def.cpp",
        "math/add/op_host/arch22/add_tiling.cpp",
        "common/src/helper.cpp",
    ]
    assert [str(p.relative_to(repository)) for p in sources.kernel_sources] == ["math/add/op_kernel/add.cpp"]
    # The stand-in and the test's file are not taken for the header.
    assert sources.includes.directories == (repository / "common/inc",)
    assert sources.includes.missing == (("missing/header.h", repository / "common/src/helper.cpp"),)
    assert sources.host_definitions == ('-DSUB_MODULE="TILING"',)


def test_functions_that_operators_share_are_found_where_they_are_registered(repository: Path) -> None:
    """Tiling and shapes of several operators stand in the sources of one; what a project registers itself comes
    first."""
    register = "IMPL_OP_OPTILING({0}).Tiling(f);\nIMPL_OP_INFERSHAPE({0}).InferShape(g);"
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": "OP_ADD(Add);",
            "math/add/op_host/add_infershape.cpp": "IMPL_OP_INFERSHAPE(Add).InferShape(g);",
            "math/sub/op_host/sub_tiling.cpp": "IMPL_OP_OPTILING(Sub).Tiling(f);\nIMPL_OP_OPTILING(Add).Tiling(f);",
            "math/sub/op_host/sub_infershape.cpp": register.format("Add"),
            "math/sub/op_host/sub_detail.cpp": "what the tiling calls",
            "math/sub/op_host/sub_def.cpp": "class Sub : public OpDef {};",
            "math/sub/op_host/arch35/sub_tiling.cpp": register.format("Add"),
            "math/sub/op_host/whole_def.cpp": "OP_ADD(Whole);" + register.format("Add"),
            "math/sub/tests/op_host/sub_tiling.cpp": register.format("Add"),
            "math/sub/op_host/op_api/sub_tiling.cpp": register.format("Add"),
            "common/tiling/all_tiling.cpp": register.format("Add") + register.format("Mul"),
        },
    )
    around = Repository.around(repository / "math/add")
    own = [repository / "math/add/op_host/add_infershape.cpp"]
    found = around.registrations(["Add"], own)
    assert [path.name for path in found] == ["sub_detail.cpp", "sub_tiling.cpp"]
    assert {path.parent for path in found} == {repository / "math/sub/op_host"}
    assert around.registrations(["Sub", "Add"], [*own, repository / "math/sub/op_host/sub_tiling.cpp"]) == ()
    # What no project registers is found next to them.
    assert around.registrations(["Mul"], own) == ()
    assert around.registrations(["Mul"], []) == (repository / "common/tiling/all_tiling.cpp",)
    hosts = [str(p.relative_to(repository)) for p in discovered(repository / "math/add").host_sources]
    assert set(hosts) > {"math/add/op_host/add_def.cpp", "math/add/op_host/add_infershape.cpp"}
    assert "math/sub/op_host/sub_tiling.cpp" in hosts


def test_functions_that_nobody_defines_are_found_in_other_projects(repository: Path) -> None:
    calls = (
        "namespace host { int shared(int); int alone(int); }\nint add(int x) { return host::shared(host::alone(x)); }"
    )
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": calls,
            "math/sub/op_host/sub_tiling.cpp": (
                "namespace host {\nint shared(int x) {\n    return x; } }\n// int alone(int x) { }"
            ),
            "math/sub/op_host/arch35/other.cpp": "namespace host { int alone(int x) { return x; } }",
            "tests/ut/shared.cpp": "int shared(int x) { return x; }",
        },
    )
    source = repository / "math/add/op_host/add_def.cpp"
    library = repository / "libcalls.so"
    subprocess.run([*compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    assert sorted(undefined_functions(library)) == ["host::alone", "host::shared"]
    found = Repository.around(repository / "math/add").defining(undefined_functions(library), [source])
    # The host code of another architecture serves where nothing else does.
    assert set(found) == {
        repository / "math/sub/op_host/sub_tiling.cpp",
        repository / "math/sub/op_host/arch35/other.cpp",
    }
    sources = discover(Repository.around(repository / "math/add"), more=found)
    assert all(sources.host_sources.count(one) == 1 for one in found)


def test_virtual_functions_that_nobody_defines_are_found(repository: Path) -> None:
    """The linker names the class alone; any method of it outside the class shows where they are."""
    kind = "namespace tiling { struct Kind { virtual int Do(int) const; int alone; }; }\n"
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": f"{kind}tiling::Kind *made() {{ return new tiling::Kind; }}",
            "math/sub/op_host/user.cpp": f"{kind}int use() {{ return 0; }}",
            "math/sub/op_host/arch35/kind.cpp": f"{kind}namespace tiling {{\nint Kind::Do(int x) const\n{{ return x; }} }}",
        },
    )
    source, library = repository / "math/add/op_host/add_def.cpp", repository / "libmade.so"
    subprocess.run([*compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    assert undefined_functions(library) == ("tiling::Kind::",)
    found = Repository.around(repository / "math/add").defining(undefined_functions(library), [source])
    assert found == (repository / "math/sub/op_host/arch35/kind.cpp",)


def test_functions_are_found_in_a_checkout_of_cann(repository: Path, tmp_path: Path) -> None:
    """Where the repository has none: that of the method's class, not the first of its name; no kernel, no test."""
    cann = tmp_path / "cann"
    method = "int {}::DoTiling(int x) const {{ return x; }}"
    write(
        cann,
        {
            "src/a_tiling.cpp": method.format("First"),
            "src/b_tiling.cpp": method.format("Second"),
            "src/op_kernel/b_kernel.cpp": method.format("Second"),
            "tests/b_test.cpp": method.format("Second"),
        },
    )
    around = Repository.around(repository / "math/add", BuildOptions(cann=(cann,)))
    assert around.defining(["Ops::Second::DoTiling"], []) == (cann / "src/b_tiling.cpp",)
    assert around.defining(["DoTiling"], []) == (cann / "src/a_tiling.cpp",)
    assert around.defining(["Ops::Second::DoTiling"], [cann / "src/a_tiling.cpp", cann / "src/b_tiling.cpp"]) == ()
    # A method of the same name of another class is not it, wherever it is.
    write(repository, {"math/sub/op_host/sub_tiling.cpp": method.format("Third")})
    around = Repository.around(repository / "math/add", BuildOptions(cann=(cann,)))
    assert around.defining(["Ops::Second::DoTiling"], []) == (cann / "src/b_tiling.cpp",)
    assert around.defining(["Ops::Third::DoTiling"], []) == (repository / "math/sub/op_host/sub_tiling.cpp",)


def test_a_project_that_defines_no_operator_is_for_all(repository: Path) -> None:
    """Shared directories are built like projects; what an operator has for itself comes after them."""
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": '#include "op_host/tools.h"\nthis->AICore();',
            "math/sub/op_host/sub_def.cpp": "this->AICore();",
            "math/sub/op_host/tools.h": "",
            "math/shared/op_host/tools.h": "",
            "math/shared/op_host/tools.cpp": "namespace host { int tool(int x) { return x; } }",
            "math/sub/op_host/tools.cpp": "namespace host { int tool(int x) { return x; } }",
            "math/shared/op_kernel/tools.h": "",
        },
    )
    assert discovered(repository / "math/add").includes.directories == (repository / "math/shared",)
    around = Repository.around(repository / "math/add")
    assert around.defining(["host::tool"], []) == (repository / "math/shared/op_host/tools.cpp",)


def test_trials_of_a_repository_come_last(repository: Path) -> None:
    tool = "namespace host { int tool(int x) { return x; } }"
    trials = {f"math/{name}/op_host/tools.cpp": tool for name in ("examples/a", "experimental/b", "sub")}
    write(repository, trials)
    around = Repository.around(repository / "math/add")
    assert around.defining(["host::tool"], []) == (repository / "math/sub/op_host/tools.cpp",)
    (repository / "math/sub/op_host/tools.cpp").unlink()
    around = Repository.around(repository / "math/add")
    assert around.defining(["host::tool"], []) == (repository / "math/examples/a/op_host/tools.cpp",)


def test_stand_ins_of_a_repository_come_after_the_toolkit(repository: Path) -> None:
    """A header that only a directory of stand-ins has is found there; one that CANN has too is CANN's."""
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": '#include "only/here.h"\n#include "register/op_def.h"',
            "stub/only/here.h": "",
            "stub/register/op_def.h": "#error a stand-in",
        },
    )
    sources = discovered(repository / "math/add")
    includes = sources.includes
    assert includes.stand_ins == (repository / "stub",)
    assert repository / "stub" not in includes.directories
    source = repository / "math/add/op_host/add_def.cpp"
    toolkit = host_include_directories()
    flags = [f"-I{one}" for one in toolkit] + [*sources.late_includes]
    subprocess.run([*compiler(), "-fsyntax-only", *flags, str(source)], check=True)


def test_names_of_definitions(tmp_path: Path) -> None:
    """The headers have CANN's names of the standard library in ge, and no `half` next to one that sources declare."""
    source = tmp_path / "tiling.cpp"
    source.write_text("""
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
#include "util/bfloat16.h"
#include "util/fp16.h"
using Lock = std::unique_lock<std::mutex>;
using platform_ascendc::SocVersion;
static_assert(SocVersion::KIRINX90 != SocVersion::ASCEND910_93 && SocVersion::ASCEND950 == SocVersion::ASCEND910_95, "");
namespace Ops::Base { struct half {}; struct bfloat16_t {}; }
using namespace ge;
using namespace Ops::Base;
vector<half> halves(const shared_ptr<string>&, function<bfloat16_t()>);
static_assert(sizeof(bfloat16) == 2 && sizeof(fp16_t) == 2, "bits alone");
static const optiling::OpCheckFuncHelper helper(FUNC_CHECK_SUPPORTED, "Op", ops::OpDef("Op").AICore().GetCheckSupport());
int main() { return static_cast<float>(bfloat16(1.00390625f)) == 1.0f && bfloat16(-2.5f).value == 0xc020 ? 0 : 1; }
""")
    flags = [
        f"-I{one}" for one in (*host_include_directories(), *(one / "op_common" for one in host_include_directories()))
    ]
    flags += [f"-I{one}/op_common/op_host" for one in host_include_directories()]
    subprocess.run([*compiler(), "-std=c++17", *flags, str(source), "-o", str(tmp_path / "a")], check=True)
    subprocess.run([str(tmp_path / "a")], check=True)


def test_copies_of_the_toolkit_s_headers_are_not_read(repository: Path) -> None:
    """The toolkit's comes first, whether the copy is next to a file or in a known directory; others are read."""
    copy = "#ifndef __INC_REGISTER_TUNING_TILING_REGISTRY_HEADER__\n#define __INC_REGISTER_TUNING_TILING_REGISTRY_HEADER__\n#error a copy\n#endif"
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": '#include "old/tiling/cache.h"\n#include "register/other.h"\n'
            "Leftover rest;",
            "common/old/tiling/cache.h": '#include "register/tuning_tiling_registry.h"\n'
            "using tuningtiling::TilingItem;",
            "common/old/tiling/register/tuning_tiling_registry.h": copy,
            "common/register/tuning_tiling_registry.h": copy,
            "common/register/other.h": "#pragma once\nstruct Leftover {};",
        },
    )
    sources = discovered(repository / "math/add")
    flags = [f"-I{one}" for one in (*sources.includes.directories, *host_include_directories())]
    source = repository / "math/add/op_host/add_def.cpp"
    subprocess.run([*compiler(), "-fsyntax-only", *sources.late_includes, *flags, str(source)], check=True)


def test_macros_that_build_files_define_without_a_value(tmp_path: Path) -> None:
    """Comments and longer names define nothing."""
    write(
        tmp_path,
        {
            "CMakeLists.txt": "target_compile_options(op_api PRIVATE -DFIRST)\n# add_compile_definitions(THIRD)\n",
            "cmake/options.cmake": "target_compile_definitions(op_api PRIVATE\n  NAME=1\n  SECOND  # not -DFOURTH\n)",
        },
    )
    repository = Repository.around(tmp_path)
    names = ("FIRST", "SECOND", "THIRD", "FOURTH", "FIRS", "NAME")
    assert [name for name in names if repository.mentions(name)] == ["FIRST", "SECOND", "NAME"]


def test_macros_that_a_variable_of_build_files_switches_on(repository: Path) -> None:
    build = """
    if(BUILD_WITH_PACKAGE)
        set(ENABLE_OLDER ON)
    endif()
    target_compile_definitions(tiling PRIVATE $<$<BOOL:${ENABLE_TEST}>:UNIT_TEST> $<$<BOOL:${ENABLE_OLDER}>:WITH_OLDER>)
    """
    source = "#ifdef WITH_OLDER\n#endif\n#ifdef UNIT_TEST\n#endif"
    write(repository, {"cmake/functions.cmake": build, "math/add/op_host/add_def.cpp": source})
    assert discovered(repository / "math/add").host_definitions == ("-DWITH_OLDER=1",)


def test_names_that_only_selections_of_instances_have(repository: Path) -> None:
    """CANN takes the numbers of a selection's text, so a name that nothing defines is none; others mean what they say."""
    key = """
    #define KNOWN 2
    enum Mode { OTHER_MODE };
    ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(
        ASCENDC_TPL_UINT_SEL(mode, ASCENDC_TPL_UI_LIST, KNOWN, OTHER_MODE, TPL_FLOOR, 3),
        ASCENDC_TPL_UINT_SEL(form, ASCENDC_TPL_UI_LIST, FORMAT_ND)));
    """
    write(repository, {"math/add/op_host/add_def.cpp": '#include "key.h"', "math/add/op_host/key.h": key})
    assert discovered(repository / "math/add").host_definitions == ("-DTPL_FLOOR=ASCENDC_TPL_NO_NUMBER",)


def test_an_include_that_names_another_architecture_is_followed(repository: Path) -> None:
    """A tiling function that serves several architectures reads the structures of all of them."""
    write(
        repository,
        {
            "math/add/op_host/add_def.cpp": '#include "math/add/op_kernel/arch35/data.h"',
            "math/add/op_kernel/arch35/data.h": '#include "shared/deep.h"',
        },
    )
    sources = discovered(repository / "math/add")
    assert {repository, repository / "common/inc"} <= set(sources.includes.directories)
    assert sources.includes.missing == ()


def test_helpers_of_a_common_directory_count_wherever_they_lie_in_it(repository: Path) -> None:
    """An op_host that belongs to no operator holds helpers."""
    (repository / "common/src/helper.cpp").unlink()
    write(repository, {"common/src/op_host/helper.cpp": ""})
    hosts = discovered(repository / "math/add").host_sources
    assert repository / "common/src/op_host/helper.cpp" in hosts


def test_functions_for_the_graph_engine_alone_are_left_out(repository: Path) -> None:
    execute = '#include "exe_graph/runtime/op_execute_context.h"\nIMPL_OP(Add).OpExecuteFunc(f);'
    write(
        repository, {"math/add/op_host/fallback.cpp": execute, "math/add/op_host/both.cpp": f"{execute}\nOP_ADD(Add);"}
    )
    names = {path.name for path in discovered(repository / "math/add").host_sources}
    assert "both.cpp" in names
    assert "fallback.cpp" not in names


@pytest.fixture
def strange(tmp_path: Path) -> tuple[Path, Path]:
    """A project that builds with a header of CANN that the host toolkit lacks, and a checkout that has it."""
    project = parts_of_project(tmp_path / "repository/strange", "pick")
    source = project / "op_host/pick.cpp"
    source.write_text('#include "strange/thing.h"\nstatic_assert(THING == 5 && GIVEN == 3);\n' + source.read_text())
    cann = write(
        tmp_path / "cann",
        {
            "include/strange/thing.h": (
                '#include "deep/down.h"\n#include "beside.h"\n#include "graph/types.h"\n#include <vector>'
            ),
            "include/strange/beside.h": '#include "own/last.h"',
            "pkg_inc/deep/down.h": "#define THING 5",
            "pkg_inc/own/last.h": "",
            "include/graph/types.h": "#error the host toolkit's own comes first",
            "tests/strange/thing.h": "#error a test's",
        },
    )
    return project, cann


def test_headers_of_cann_are_found_after_all_others(strange: tuple[Path, Path]) -> None:
    project, cann = strange
    sources = discovered(project, BuildOptions(cann=(cann,)))
    assert sources.late_includes == (f"-idirafter{cann / 'include'}", f"-idirafter{cann / 'pkg_inc'}")
    assert discovered(project).includes.missing == (("strange/thing.h", project / "op_host/pick.cpp"),)
    source = toolkit_directory() / "include/op_host/ascend_graph/describe.cpp"
    library = host_library(sources, "libdefinitions", source, cann)
    assert set(sources.late_includes) <= set(library.flags)


@pytest.mark.slow
def test_a_build_takes_directories_macros_and_cann(strange: tuple[Path, Path], tmp_path: Path) -> None:
    """Without them the project does not build; what they name is refused where it is nothing."""
    project, cann = strange
    write(tmp_path, {"more/own_more.h": "#define MORE 4"})
    source = project / "op_host/pick.cpp"
    source.write_text('#include "own_more.h"\nstatic_assert(MORE == 4);\n' + source.read_text())
    options = ["-I", str(tmp_path / "more"), "-D", "GIVEN=3", "--cann", str(cann)]
    arguments = ["build", str(project), "-o", str(tmp_path / "opp")]
    failed = CliRunner().invoke(main, [*arguments, *options[2:]])
    assert failed.exit_code == 1
    assert "own_more.h: No such file" in failed.output
    result = CliRunner().invoke(main, [*arguments, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = CliRunner().invoke(main, [*arguments, "--cann", str(empty)])
    assert refused.exit_code == 2
    assert "has no headers" in refused.output


def test_operators_are_found_side_by_side_as_they_are_installed(repository: Path) -> None:
    around = Repository.around(repository / "math/add")
    includes = find_includes(around, [repository / "math/add/op_kernel/add.cpp"], [], [])
    assert includes.siblings == (("sub", repository / "math/sub/op_kernel"),)
    assert includes.missing == ()


def test_headers_that_select_instances_are_compiled_side_by_side(repository: Path, tmp_path: Path) -> None:
    """A kernel's header of instances is compiled with op_host, which may not include it, in the installed layout."""
    key = '#include "../../common/arch22/key.h"\nASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL());'
    write(
        repository,
        {
            "math/add/op_kernel/add.cpp": '#include "arch22/add_key.h"\n__global__',
            "math/add/op_kernel/arch22/add_key.h": key,
            "math/common/op_kernel/arch22/key.h": "",
        },
    )
    project = discovered(repository / "math/add")
    assert project.instance_headers == (repository / "math/add/op_kernel/arch22/add_key.h",)
    library = host_library(project, "libdefinitions", tmp_path / "describe.cpp", tmp_path / "work")
    assert any((one / "../../common/arch22/key.h").is_file() for one in library.include_directories)


def test_projects_of_a_repository(repository: Path) -> None:
    write(repository, {"math/shared/op_host/shared.h": "", "math/shared/op_kernel/shared.h": ""})
    assert Repository.around(repository).projects() == (repository / "math/add", repository / "math/sub")
    assert Repository.around(repository / "math/sub").root == repository


@pytest.mark.parametrize("mark", [".git/HEAD", "build.sh"])
def test_a_project_may_lie_deep_in_its_repository(tmp_path: Path, mark: str) -> None:
    """Below a git checkout, or below the next build files; what has none lies alone."""
    deep = "lib/ops/ascendc/family/forward/scan"
    write(tmp_path / "all", {mark: "", f"{deep}/op_host/scan_def.cpp": "", f"{deep}/CMakeLists.txt": ""})
    assert Repository.around(tmp_path / "all" / deep).root == tmp_path / "all"
    write(tmp_path / "alone", {f"{deep}/op_host/scan_def.cpp": ""})
    assert Repository.around(tmp_path / "alone" / deep).root == tmp_path / "alone" / deep


def test_an_operator_of_another_device_is_refused_before_it_is_compiled(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(
        OperatorPackageError,
        match="AddConfig names ascend950 alone; the host stands for dav-2201 .* --npu-arch dav-3510",
    ):
        describe(discovered(repository / "math/sub"), tmp_path)


def test_kernels_of_another_architecture_alone_are_refused(repository: Path) -> None:
    (repository / "math/add/op_kernel/add.cpp").unlink()
    with pytest.raises(
        OperatorPackageError, match="its kernels are for arch35 alone; build it for that: the host stands for dav-2201 "
    ):
        discovered(repository / "math/add")


def test_definitions_of_another_architecture_alone_are_refused(repository: Path) -> None:
    host = repository / "math/add/op_host"
    (host / "add_def.cpp").unlink()
    (host / "arch22/add_tiling.cpp").unlink()
    with pytest.raises(
        OperatorPackageError,
        match="its definitions are for arch35 alone; build it for that: the host stands for dav-2201 ",
    ):
        discovered(repository / "math/add")


def test_a_kernel_may_lie_in_another_project(repository: Path, tmp_path: Path) -> None:
    """Builds put the kernels of all projects into one directory."""
    code = 'extern "C" __global__ void add_grad(GM_ADDR workspace, GM_ADDR tiling) {}'
    write(
        repository,
        {"grads/add_grad/op_kernel/add_grad.cpp": code, "grads/add_grad/op_kernel/arch35/add_grad.cpp": code},
    )
    operator = ProjectOperator(OpPrototype("AddGrad", (), (), (), file=""), ((),), ((),), False, "")
    (library,) = kernels(repository / "math/add", operator, tmp_path)
    assert str(repository / "grads/add_grad/op_kernel/add_grad.cpp") in library.sources[0].read_text()
    write(repository, {"more/op_kernel/add_grad.cpp": code})
    with pytest.raises(OperatorPackageError, match="its kernel add_grad is defined by .*; keep one of them"):
        kernels(repository / "math/add", operator, tmp_path)


def test_a_kernel_is_compiled_with_the_macros_of_its_build_file(repository: Path, tmp_path: Path) -> None:
    says = """
    # add_ops_compile_options(OP_NAME Add OPTIONS -DNOT_THIS)
    add_ops_compile_options(
        OP_NAME Add
        OPTIONS --cce-auto-sync=off -DWITH_GROUPS
            -DARCH=2201  # a comment
            -I${SOMEWHERE} -DOF=${A_VARIABLE}
    )
    add_ops_compile_options(OP_NAME Add COMPUTE_UNIT Ascend950PR_9599 OPTIONS -DFOR_ANOTHER_CHIP)
    add_ops_compile_options(OP_NAME Add COMPUTE_UNIT Ascend910B1 OPTIONS -DFOR_THIS_CHIP)
    add_ops_compile_options(OP_NAME Other OPTIONS -DOF_ANOTHER)
    add_ops_compile_options(ALL OPTIONS -DOF_ALL)
    """
    kernel = 'extern "C" __global__ void add(GM_ADDR workspace, GM_ADDR tiling) {}'
    write(repository, {"math/add/op_host/CMakeLists.txt": says, "math/add/op_kernel/add.cpp": kernel})
    operator = ProjectOperator(OpPrototype("Add", (), (), (), file=""), ((),), ((),), False, "")
    (library,) = kernels(repository / "math/add", operator, tmp_path)
    own = [flag for flag in library.flags if flag.startswith("-D")]
    assert own == ["-DWITH_GROUPS", "-DARCH=2201", "-DFOR_THIS_CHIP", "-DOF_ALL"]


@pytest.mark.parametrize("own", [True, False])
def test_a_structure_is_declared_once(repository: Path, tmp_path: Path, own: bool) -> None:
    """A kernel that names its structure with REGISTER_TILING_DEFAULT has declared it; others get what op_host
    registers."""
    says = "REGISTER_TILING_DEFAULT(space::AddTiling);" if own else ""
    code = f'#include "add_data.h"\nextern "C" __global__ void add(GM_ADDR workspace, GM_ADDR tiling) {{ {says} }}'
    structure = "namespace space {\nstruct AddTiling {\n    int size;\n};\n}"
    write(repository, {"math/add/op_kernel/add.cpp": code, "math/add/op_kernel/add_data.h": structure})
    tilings = (TilingStructure(("Add",), "AddTiling", 8, (TilingField("int32_t", "size", 0),)),)
    operator = ProjectOperator(OpPrototype("Add", (), (), (), file=""), ((),), ((),), False, "")
    (library,) = kernels(repository / "math/add", operator, tmp_path, tilings)
    assert ("struct alignas(8) AddTiling" in library.sources[0].read_text()) == (not own)


def test_a_survey_names_what_stops_each_project(repository: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    before = sorted(repository.rglob("*"))
    arguments = ["survey", str(repository), "-o", str(work), "--format", "json", "--kind", "operator", "-j", "2"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["found"], found["built"], found["ran"]) == (2, 0, 0)
    add, sub = found["projects"]
    assert (add["path"], add["kind"], add["state"]) == ("math/add", "operator project", "failed")
    assert (add["cause"], add["missing"], add["step"]) == ("header missing/header.h", "missing/header.h", "build")
    assert "common/src/helper.cpp:1" in add["error"]
    assert "missing/header.h: No such file" in Path(add["log"]).read_text()
    assert (sub["state"], sub["cause"]) == ("other device", "for other devices")
    assert found["causes"] == {"header missing/header.h": 1, "for other devices": 1}
    assert sorted(repository.rglob("*")) == before


def test_what_does_not_end_is_ended(tmp_path: Path) -> None:
    setup = "# NpuExtension\nimport time\ntime.sleep(600)\n"
    root = write(tmp_path / "repository", {"pkg/setup.py": setup, "README.md": "", "build.sh": ""})
    found = survey(root, tmp_path / "work", kinds=[ProjectKind.EXTENSION], time_limit=4)
    (one,) = found.results
    assert (one.path, one.state, one.error) == ("pkg", SurveyState.FAILED, "did not end in 4 seconds")
    assert one.seconds < 60


@pytest.mark.slow
def test_a_survey_runs_the_tests_of_an_extension(tmp_path: Path) -> None:
    """All of its own tests must pass; a repository may be the extension itself."""
    for name, code, state in (("good", "", SurveyState.RAN), ("bad", "raise ValueError('no')", SurveyState.BUILT)):
        root = write(tmp_path / name, {"setup.py": "# NpuExtension", "test/test_a.py": "", "test/b_test.py": code})
        found = survey(root, tmp_path / f"work_{name}", kinds=[ProjectKind.EXTENSION])
        (one,) = found.results
        assert (one.path, one.state, found.ran) == (".", state, int(state is SurveyState.RAN)), one
        assert one.error == ("ValueError: no" if code else "")
        assert one.step == ("run" if code else "")


def test_a_survey_makes_the_sources_of_an_extension_as_its_document_says(tmp_path: Path) -> None:
    files = {
        "setup.py": "# NpuExtension\nassert open('made').read() == 'operators.yaml'",
        "README.md": "First\n\n```bash\nbash gen.sh operators.yaml\npython setup.py build\n```\n",
        "gen.sh": "python -c \"open('made', 'w').write('$1')\"",
    }
    (one,) = survey(write(tmp_path / "pkg", files), tmp_path / "work", kinds=[ProjectKind.EXTENSION]).results
    assert (one.state, one.error) == (SurveyState.BUILT, "")


def test_what_is_for_all_operators_comes_before_what_another_has_for_itself(repository: Path) -> None:
    write(repository, {"math/sub/shared/helper.h": ""})
    sources = discovered(repository / "math/add")
    assert sources.includes.directories == (repository / "common/inc",)


def test_helpers_are_not_taken_from_other_operators(repository: Path) -> None:
    write(repository, {"math/sub/op_host/deep.cpp": "", "math/add/op_host/sub_def.h": '#include "shared/deep.h"'})
    sources = discovered(repository / "math/add")
    assert not [path for path in sources.host_sources if "sub" in path.parts]


_SAMPLE = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.16)
set(CMAKE_ASC_ARCHITECTURES "dav-2201" CACHE STRING "dav-2201 ALSO")
find_package(ASC REQUIRED)
project(sample LANGUAGES ASC CXX)
add_executable(demo sample.asc)
target_compile_options(demo PRIVATE $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${CMAKE_ASC_ARCHITECTURES}>)
""",
    "sample.asc": """
#include "acl/acl.h"
#include "kernel_operator.h"
#include <cstdio>
__global__ __aicore__ void architecture(GM_ADDR z) { *(__gm__ int32_t*)z = __NPU_ARCH__; }
int main() {
    aclInit(nullptr);
    aclrtSetDevice(0);
    void* z;
    aclrtMalloc(&z, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    architecture<<<1, nullptr, nullptr>>>((uint8_t*)z);
    const int status = aclrtSynchronizeDevice();
    std::printf("kernel of %d on %s\\n", *(int*)z, aclrtGetSocName());
    return status;
}
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(("also", "state"), [("dav-3510", SurveyState.RAN), ("alone", SurveyState.OTHER_DEVICE)])
def test_a_survey_builds_samples_for_its_architecture(tmp_path: Path, also: str, state: SurveyState) -> None:
    """Build files that know it are told; what they build otherwise is for another device."""
    files = {name: text.replace("ALSO", also) for name, text in _SAMPLE.items()}
    options = BuildOptions(architecture=architecture("dav-3510"))
    (one,) = survey(
        write(tmp_path / "samples", files), tmp_path / "work", kinds=[ProjectKind.SAMPLE], options=options
    ).results
    log = Path(one.log).read_text()
    assert one.state is state, log
    assert ("kernel of 3510 on Ascend950" in log) == (state is SurveyState.RAN), log


def test_a_survey_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="no operator project, extension, sample"):
        survey(tmp_path, tmp_path / "work")


@pytest.mark.slow
def test_projects_of_a_repository_become_one_package(repository: Path, tmp_path: Path) -> None:
    """What builds is in the package, what does not is named, and the exit status says so."""
    parts_of_project(repository / "math/good", "everything", "pick")
    target = tmp_path / "opp"
    result = CliRunner().invoke(main, ["build", str(repository), "-o", str(target)], catch_exceptions=False)
    assert result.exit_code == 1, result.output
    assert "1 of 3 projects built" in result.stdout
    assert "missing/header.h" in result.stdout
    assert {p.op_type for p in parse_file(target / "op_proto/inc/op_proto.h").prototypes} == {"Everything", "Pick"}
    # The functions are found through the one library, and their kernels next to it.
    library = ctypes.CDLL(str(target / "op_api/lib/libcust_opapi.so"))
    assert library.aclnnEverythingGetWorkspaceSize
    assert (target / "op_impl/host/kernels/everything_0.so").exists()
    assert not list(target.glob("parts*"))


def test_projects_are_chosen_by_the_names_of_their_directories(repository: Path, tmp_path: Path) -> None:
    arguments = ["build", str(repository), "-o", str(tmp_path / "opp")]
    result = CliRunner().invoke(main, [*arguments, "--ops", "add,mul"])
    assert result.exit_code == 1
    assert "has no project called mul; there are: add, sub" in result.output
    result = CliRunner().invoke(main, [*arguments, "--ops", "sub"])
    assert "all 1 projects fail to build" in result.output
    assert "AddConfig names ascend950 alone" in result.output
    assert not (tmp_path / "opp").exists()


_MISSPELLED = """
#include "register/op_def_registry.h"
namespace ops {
class First : public OpDef {
  public:
    explicit First(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().AddConfig("ascend910b").AddConfig("ascend910b3");
    }
};
class Second : public OpDef {
  public:
    explicit Second(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().AddConfig("ascend91Ob");
    }
};
OP_ADD(First);
OP_ADD(Second);
}  // namespace ops
"""


def test_processors_that_cann_does_not_have_are_named(tmp_path: Path) -> None:
    """One among others is warned of; where there is no other, a device's package would have no kernel."""
    kernel = "// no kernel is compiled here\n"
    files = {"op_host/all.cpp": _MISSPELLED, "op_kernel/first.cpp": kernel, "op_kernel/second.cpp": kernel}
    write(tmp_path / "project", files)
    with (
        pytest.warns(ComputeUnitWarning, match=r'First: AddConfig\("ascend910b3"\) names no processor'),
        pytest.raises(
            OperatorPackageError, match=r'Second: AddConfig\("ascend91Ob"\) .* write AddConfig\("ascend910b"\)'
        ),
    ):
        describe(discovered(tmp_path / "project"), tmp_path / "work")

"""``ascend-graph doctor``: a line for each thing, the line that fixes it, and a status that says whether something
has to be done."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import preloaded
import pytest
from click.testing import CliRunner, Result

from ascend_graph.cli import main
from ascend_graph.compilation import compiler
from ascend_graph.doctor import Finding, examine, examine_operators
from ascend_graph.doctor.known_variables import KNOWN, nearly
from ascend_graph.doctor.libraries import read_library
from ascend_graph.doctor.operators import torch_symbols
from ascend_graph.doctor.packages import packages
from ascend_graph.doctor.variables import OWN, variables
from ascend_graph.environment import toolkit_directory
from ascend_graph.sources.installed import cann_version
from ascend_graph.versions import Installed


def doctor(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments], env=environment)


def wrong(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.subject, finding.fix) for finding in findings if finding.is_wrong]


def library(path: Path, code: str) -> Path:
    """A shared library of C++."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".cpp")
    source.write_text(code)
    subprocess.run([*compiler(), "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    source.unlink()
    return path


DECLARED = """
#include "aclnn/acl_meta.h"
aclnnStatus {name}GetWorkspaceSize(const aclTensor *x, {more}const aclTensor *out, uint64_t *workspaceSize,
    aclOpExecutor **executor);
aclnnStatus {name}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""


def package(directory: Path, *functions: str, declared: Sequence[str] = (), more: str = "", version: str = "") -> Path:
    """An operator package with these functions, and headers that declare these."""
    phases = "".join(
        f'extern "C" int {f}() {{ return 0; }} extern "C" int {f}GetWorkspaceSize() {{ return 0; }}\n'
        for f in functions
    )
    library(directory / "op_api/lib/libcust_opapi.so", phases)
    (directory / "op_api/include").mkdir()
    for name in declared:
        (directory / f"op_api/include/{name}.h").write_text(DECLARED.format(name=name, more=more))
    if version:
        (directory / "version.info").write_text(f"custom_opp_compiler_version={version}\n")
    return directory


# ----------------------------------------------------------------------------------------------------------
# installation


def test_what_is_installed_here() -> None:
    result = doctor()
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if not line.startswith("    ")]
    assert all(line.startswith("ok  ") for line in lines)
    found = [re.split(r"  +", line[4:], maxsplit=1) for line in lines]
    assert list(dict.fromkeys(subject for subject, _ in found)) == [
        "Python",
        "torch",
        "torch_npu",
        "C++ for torch",
        "torch and torch_npu",
        "C++ library",
        "C++ compiler",
        "ninja",
        "host runtime",
        "CANN",
        "cache",
        "operator packages",
    ]
    assert dict(found)["host runtime"] == str(toolkit_directory())


def test_what_is_wrong_is_a_line_the_line_that_mends_it_and_the_status() -> None:
    result = doctor(CXX="no-such-compiler")
    assert result.exit_code == 1
    assert "!!  C++ compiler         no C++ compiler: looked for no-such-compiler on PATH" in result.stdout
    assert "→ apt-get install g++" in result.stdout
    found = json.loads(doctor("--format", "json", CXX="no-such-compiler").stdout)
    assert found["is_wrong"]
    assert [f["fix"] for f in found["findings"] if f["is_wrong"]] == ["apt-get install g++  # or: export CXX=COMMAND"]


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        ("libc_ver", ("", ""), "a C library that is not glibc"),  # musl, as Python says it
        ("machine", "i686", "i686"),
        ("machine", "riscv64", "riscv64"),
    ],
)
def test_systems_that_torch_npu_has_no_wheels_for(
    function: str, value: object, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"platform.{function}", lambda *arguments, **named: value)
    (python,) = (f for f in examine(os.environ) if f.subject == "Python")
    assert python.is_wrong
    assert text in python.text
    assert python.text.endswith("torch_npu's wheels are for glibc on 64-bit x86_64 and aarch64")


def test_an_installed_cann_and_its_version(tmp_path: Path) -> None:
    home = tmp_path / "its home"
    (home / "aarch64-linux").mkdir(parents=True)
    (home / "aarch64-linux/ascend_toolkit_install.info").write_text("package_name=Ascend\nversion=8.3.RC1\n")
    named = dict.fromkeys(["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"], str(home))
    found = {f.subject: f for f in examine({**os.environ, **named})}
    assert found["CANN"].text == f"ASCEND_HOME_PATH={home}, version 8.3.RC1"


@pytest.mark.parametrize(
    ("text", "version"), [("Version=8.5.0\n", "8.5.0"), ("version=[8.0.RC2]\n", "8.0.RC2"), ("", None)]
)
def test_the_version_of_a_cann(tmp_path: Path, text: str, version: str | None) -> None:
    (tmp_path / "compiler").mkdir()
    (tmp_path / "compiler/version.info").write_text(text)
    assert cann_version(tmp_path) == version


def test_a_cpp_library_that_is_too_old_is_told(tmp_path: Path) -> None:
    """Its newest interface is what counts: one that has but GLIBCXX_3.4 serves no torch."""
    old = tmp_path / "libstdc++.so.6"
    (tmp_path / "map").write_text("GLIBCXX_3.4 { f; };\nCXXABI_1.3 { g; };\n")
    (tmp_path / "old.c").write_text("int f(void) { return 0; }\nint g(void) { return 0; }\n")
    options = [
        "-shared",
        "-fPIC",
        "-x",
        "c",
        str(tmp_path / "old.c"),
        f"-Wl,--version-script={tmp_path}/map",
        "-o",
        str(old),
    ]
    subprocess.run([*compiler(), *options], check=True)
    found = [f for f in examine({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}) if f.subject == "C++ library"]
    assert found[0].is_wrong
    assert f"{old}: " in found[0].text
    assert "needs GLIBCXX_3.4." in found[0].text
    assert "LD_LIBRARY_PATH" in found[0].fix


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\0" * 58, b"\x7fELF\x02\x01" + b"\xff" * 100]
)
def test_a_file_that_is_no_library_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    found = read_library(path)
    assert found is None or not found.defined


def test_a_damaged_library_is_read_or_is_none(tmp_path: Path) -> None:
    whole = library(tmp_path / "whole.so", "int f() { return 0; }").read_bytes()
    randomness = random.Random(0)
    path = tmp_path / "damaged.so"
    for _ in range(300):
        data = bytearray(whole[: randomness.choice([len(whole), randomness.randrange(64, len(whole))])])
        for _ in range(randomness.randrange(1, 40)):
            data[randomness.randrange(6, len(data))] = randomness.randrange(256)
        path.write_bytes(data)
        read_library(path)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = doctor(ASCEND_GRAPH_CACHE=str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "cannot be written: nothing can be compiled" in result.stdout


def test_the_cache_says_for_which_versions_its_libraries_were_made(tmp_path: Path) -> None:
    entry = {
        "directory": "x",
        "size": 5_000_000,
        "read": [],
        "made_for": ["torch=2.1.0 abc", "torch_npu=2.1.0 def", "cp311"],
    }
    (tmp_path / "ascend_graph_host_bridge-0011.json").write_text(json.dumps([entry]))
    (tmp_path / "damaged-0022.json").write_text("[1, 2")
    output = doctor(ASCEND_GRAPH_CACHE=str(tmp_path)).stdout
    assert f"{tmp_path}: 1 libraries, 5 MB, 1 of them the host runtime's bridge" in output
    assert "1 for torch 2.1.0, torch_npu 2.1.0: others than the installed ones; they are not used" in output


# ------------------------------------------------------------------------------------------------------ operator
# packages


def test_packages_are_searched_in_their_order_and_hide_each_other(tmp_path: Path) -> None:
    first = package(tmp_path / "first", "aclnnOne", declared=["aclnnOne"])
    second = package(tmp_path / "second", "aclnnOne", "aclnnTwo", declared=["aclnnOne", "aclnnTwo"])
    third = package(tmp_path / "opp/vendors/third", "aclnnTwo", declared=["aclnnTwo"], more="int64_t axis, ")
    (tmp_path / "opp/vendors/config.ini").write_text("load_priority=third\n")
    environment = {"ASCEND_CUSTOM_OPP_PATH": f"{first}:{second}", "ASCEND_OPP_PATH": str(tmp_path / "opp")}
    found = list(packages(environment))
    assert [f.text.partition(" ")[0] for f in found if f.subject == "operator package"] == [
        str(p) for p in (first, second, third)
    ]
    hidden = [f for f in found if f.subject == "hidden"]
    assert [f.text for f in hidden if not f.is_wrong] == [f"aclnnOne of {first} hides that of {second}"]
    (differs,) = [f for f in hidden if f.is_wrong]
    assert differs.text.startswith(
        f"aclnnTwo of {second} hides that of {third}, which takes other parameters: aclnnTwo("
    )
    assert differs.fix.startswith(f"export ASCEND_CUSTOM_OPP_PATH={third}:")


def test_prototypes_that_are_hidden_by_others(tmp_path: Path) -> None:
    for name, dtype in (("first", "DT_FLOAT"), ("second", "DT_INT32")):
        package(tmp_path / name, "aclnnThing")
        (tmp_path / name / "op_proto/inc").mkdir(parents=True)
        text = (
            f"REG_OP(Thing).INPUT(x, TensorType({{{dtype}}})).OUTPUT(y, "
            f"TensorType({{{dtype}}})).OP_END_FACTORY_REG(Thing)"
        )
        (tmp_path / name / "op_proto/inc/op_proto.h").write_text(text)
    found = list(packages({"ASCEND_CUSTOM_OPP_PATH": f"{tmp_path}/first:{tmp_path}/second"}))
    (hidden,) = [f.text for f in found if f.is_wrong]
    assert (
        hidden == f"REG_OP(Thing) of {tmp_path}/first/op_proto/inc/op_proto.h:1 hides another definition, "
        f"{tmp_path}/second/op_proto/inc/op_proto.h:1"
    )


def test_what_is_wrong_with_the_paths_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = package(tmp_path / "opp/vendors/real", "aclnnOne")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)

    def fixes(value: str) -> list[tuple[str, str]]:
        return wrong(list(packages({"ASCEND_CUSTOM_OPP_PATH": value})))

    variable = "ASCEND_CUSTOM_OPP_PATH"
    assert fixes(str(real)) == []
    assert fixes(str(tmp_path / "opp")) == [(variable, f"export {variable}={real}")]
    assert fixes("opp/vendors/real") == [(variable, f"export {variable}={real}")]
    assert fixes(f"{real},{tmp_path}/empty") == [(variable, f"export {variable}={real}:{tmp_path}/empty")]
    assert fixes(str(tmp_path / "nowhere")) == [
        (variable, f"export {variable}=PACKAGE  # with op_api/lib/libcust_opapi.so in it")
    ]
    assert fixes(str(tmp_path / "empty"))[0][1].startswith("ascend-graph build PROJECT -o ")


def test_vendors_that_are_not_searched_and_names_without_a_package(tmp_path: Path) -> None:
    package(tmp_path / "my opp/vendors/mine", "aclnnOne")
    environment = {"ASCEND_OPP_PATH": str(tmp_path / "my opp")}
    config = tmp_path / "my opp/vendors/config.ini"
    assert wrong(list(packages(environment))) == [("vendors", f"echo load_priority=mine > '{config}'")]
    config.write_text("load_priority=gone\n")
    fix = f"sed -i 's/^load_priority.*/load_priority=mine/' '{config}'"
    assert wrong(list(packages(environment))) == [("vendors", fix), ("vendors", fix)]
    subprocess.run(fix, shell=True, check=True)
    assert wrong(list(packages(environment))) == []


def test_headers_and_library_of_different_builds_and_another_cann(tmp_path: Path) -> None:
    made = package(tmp_path / "made", "aclnnOne", declared=["aclnnOne", "aclnnNew"], version="8.0.RC3")
    (tmp_path / "cann/compiler").mkdir(parents=True)
    (tmp_path / "cann/compiler/version.info").write_text("Version=8.5.0\n")
    found = [
        f
        for f in packages({"ASCEND_CUSTOM_OPP_PATH": str(made), "ASCEND_HOME_PATH": str(tmp_path / "cann")})
        if f.is_wrong
    ]
    assert "declares aclnnNew, and" in found[0].text
    assert found[1].text == f"{made} was made with CANN 8.0.RC3, and CANN 8.5.0 is selected"


def test_a_package_for_another_machine(tmp_path: Path) -> None:
    path = package(tmp_path / "other", "aclnnOne") / "op_api/lib/libcust_opapi.so"
    data = bytearray(path.read_bytes())
    data[18:20] = (183 if data[18] == 62 else 62).to_bytes(2, "little")
    path.write_bytes(data)
    found = [f.text for f in packages({"ASCEND_CUSTOM_OPP_PATH": str(tmp_path / "other")}) if f.is_wrong]
    assert len(found) == 1
    assert re.match(rf"{path} is for (aarch64|x86_64); this machine is ", found[0])


# ----------------------------------------------------------------------------------------------------------------
# variables


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("ASCEND_GRAPH_CASHE", "/tmp", "unset ASCEND_GRAPH_CASHE; export ASCEND_GRAPH_CACHE=/tmp"),
        ("ASCEND_CUSTOM_OP_PATH", "/opp a", "unset ASCEND_CUSTOM_OP_PATH; export ASCEND_CUSTOM_OPP_PATH='/opp a'"),
        ("ASCEND_OPP_PTH", "/opp", "unset ASCEND_OPP_PTH; export ASCEND_OPP_PATH=/opp"),
        ("ascend_home_path", "/home", "unset ascend_home_path; export ASCEND_HOME_PATH=/home"),
        ("TASK_QUEUE_ENABEL", "1", "unset TASK_QUEUE_ENABEL; export TASK_QUEUE_ENABLE=1"),
        ("PYTORCH_NPU_ALLOC_CONFIG", "a:b", "unset PYTORCH_NPU_ALLOC_CONFIG; export PYTORCH_NPU_ALLOC_CONF=a:b"),
        ("HCCL_BUFSIZE", "200", "unset HCCL_BUFSIZE; export HCCL_BUFFSIZE=200"),
        ("ASCEND_OPP_PATH", "/nowhere", "unset ASCEND_OPP_PATH  # then source CANN's set_env.sh"),
        ("TASK_QUEUE_ENABLE", "3", "export TASK_QUEUE_ENABLE=2"),
        ("ASCEND_GRAPH_KERNEL_PIPES", "yes", "export ASCEND_GRAPH_KERNEL_PIPES=1"),
        ("ASCEND_GRAPH_HOST_DEVICES", "two", "unset ASCEND_GRAPH_HOST_DEVICES"),
        ("ASCEND_GRAPH_HOST_MEMORY", "8GB", "unset ASCEND_GRAPH_HOST_MEMORY"),
        ("ASCEND_GRAPH_KERNEL_TIMEOUT", "soon", "unset ASCEND_GRAPH_KERNEL_TIMEOUT"),
        ("ASCEND_GRAPH_STRICT", "yes", "unset ASCEND_GRAPH_STRICT"),
        ("LD_PRELOAD", "/nowhere/libgomp.so.1", "unset LD_PRELOAD"),
        ("ASCEND_RT_VISIBLE_DEVICES", "npu:0", "export ASCEND_RT_VISIBLE_DEVICES=0"),
        ("ASCEND_RT_VISIBLE_DEVICES", "0,1,1", "export ASCEND_RT_VISIBLE_DEVICES=0,1"),
        ("ASCEND_RT_VISIBLE_DEVICES", "1,0", "export ASCEND_RT_VISIBLE_DEVICES=0,1"),
        ("ASCEND_RT_VISIBLE_DEVICES", "0, 1", "export ASCEND_RT_VISIBLE_DEVICES=0,1"),
    ],
)
def test_variables_that_are_set_and_wrong(name: str, value: str, fix: str) -> None:
    assert wrong(list(variables({name: value}))) == [(name, fix)]


def test_the_variable_that_is_meant_may_be_set_already() -> None:
    found = wrong(list(variables({"ASCEND_CUSTOM_OP_PATH": "/a", "ASCEND_CUSTOM_OPP_PATH": "/b"})))
    assert found == [("ASCEND_CUSTOM_OP_PATH", "unset ASCEND_CUSTOM_OP_PATH")]


@pytest.mark.parametrize(
    "name", ["NCCL_BUFFSIZE", "TORCH_NCCL_BLOCKING_WAIT", "PYTORCH_CUDA_ALLOC_CONF", "ASCEND_OF_MINE"]
)
def test_variables_of_others_pass(name: str) -> None:
    assert wrong(list(variables({name: "1"}))) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RANK_TABEL", None),
        ("WORLDSIZE_", None),  # two letters off, of ten
        ("WORLD_SIZ", "WORLD_SIZE"),
        ("MASTERPORTS", None),
        ("HCCL_BUFSIZ", None),  # of eleven
        ("HCCL_BUFSISE", "HCCL_BUFFSIZE"),  # of twelve
    ],
)
def test_a_long_name_may_be_two_letters_off_and_a_short_one_one(name: str, meant: str | None) -> None:
    assert nearly(name, KNOWN) == meant


def test_every_variable_that_is_read_is_known() -> None:
    """Those that our own sources read: a check that does not know one would call it misspelt."""
    root = Path(__file__).parents[2]
    files = [*(root / "ascend_graph").rglob("*.py"), *(root / "csrc").rglob("*.cpp"), *(root / "csrc").rglob("*.h")]
    asked = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[|environment\.get\()\s*["']([A-Z][A-Z_0-9]+)["']""")
    read = {name for file in files for name in asked.findall(file.read_text(errors="replace"))}
    known = {name for name in read if name.startswith(("ASCEND_", "HCCL_", "ACL"))}
    assert known - {*OWN, *KNOWN} == set()


def test_variables_that_are_set_and_right() -> None:
    assert wrong(list(variables(os.environ))) == []
    assert (
        wrong(
            list(variables({"ASCEND_RT_VISIBLE_DEVICES": "0,1", "ASCEND_GRAPH_STRICT": "1", "TASK_QUEUE_ENABLE": ""}))
        )
        == []
    )


def test_two_installations_of_cann(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "lib64").mkdir(parents=True)
        (tmp_path / name / "opp").mkdir()
        (tmp_path / name / "lib64/libascendcl.so").touch()
    a, b = tmp_path / "a", tmp_path / "b"
    assert wrong(list(variables({"ASCEND_HOME_PATH": f"{a}"}))) == [("LD_LIBRARY_PATH", f"source {a}/set_env.sh")]
    right = {"ASCEND_HOME_PATH": f"{a}", "LD_LIBRARY_PATH": f"{a}/lib64", "ASCEND_OPP_PATH": f"{a}/opp"}
    assert wrong(list(variables(right))) == []
    assert [s for s, _ in wrong(list(variables({**right, "LD_LIBRARY_PATH": f"{b}/lib64:{a}/lib64"})))] == [
        "LD_LIBRARY_PATH"
    ]
    assert [s for s, _ in wrong(list(variables({**right, "ASCEND_OPP_PATH": f"{b}/opp"})))] == ["ASCEND_OPP_PATH"]
    assert [s for s, _ in wrong(list(variables({**right, "ASCEND_TOOLKIT_HOME": f"{b}"})))] == ["CANN"]


# ----------------------------------------------------------------------------------------------------------------
# operators


def test_function_header_and_library_of_an_operator(tmp_path: Path) -> None:
    made = package(tmp_path / "made", "aclnnServed", declared=["aclnnServed"], version="8.5.0")
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(made)}
    found = list(examine_operators([], ["Served"], environment))
    assert [f.text for f in found] == [
        "no installed operator package defines REG_OP(Served)",
        f"aclnnServed is in {made}/op_api/lib/libcust_opapi.so, version 8.5.0",
        f"declared at {made}/op_api/include/aclnnServed.h:3",
    ]


def test_a_header_of_another_package_than_the_library(tmp_path: Path) -> None:
    """The first package has the header and no function; the second one's library takes something else."""
    first = package(tmp_path / "first", "aclnnOther", declared=["aclnnServed"])
    second = package(tmp_path / "second", "aclnnServed", declared=["aclnnServed"], more="int64_t axis, ")
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": f"{first}:{second}"}
    from ascend_graph.aclnn.catalog import read_functions
    from ascend_graph.doctor.operators import function

    declared = read_functions(first / "op_api/include/aclnnServed.h").functions[0]
    (found,) = [f for f in function("aclnnServed", environment, declared) if f.is_wrong]
    assert found.text.startswith(f"callers go by {first}/op_api/include/aclnnServed.h:3: ")
    assert str(second / "op_api/include/aclnnServed.h") in found.fix


def test_a_function_in_a_package_that_nobody_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = package(tmp_path / "site/ops/vendors/made", "aclnnLost")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASCEND_CUSTOM_OPP_PATH", raising=False)
    (found,) = [f for f in examine_operators([], ["aclnnLost"], os.environ) if f.is_wrong]
    assert f"It is in {made}/op_api/lib/libcust_opapi.so, which is not selected" in found.text
    assert found.fix.startswith(f"export ASCEND_CUSTOM_OPP_PATH={made}  ")


def moved_function(tmp_path: Path, torch_npu: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What is said of a function that a later CANN has in a part of libopapi.so, with a torch_npu whose library has
    these texts."""
    cann = tmp_path / "cann"
    (cann / "compiler").mkdir(parents=True)
    (cann / "compiler/version.info").write_text("Version=8.5.0\n")
    for name, function in (("libopapi.so", "aclnnKeptV2"), ("libopapi_nn.so", "aclnnMoved")):
        phases = "".join(f'extern "C" int {function}{phase}() {{ return 0; }}\n' for phase in ("", "GetWorkspaceSize"))
        library(cann / "lib64" / name, phases)
    wheel = Installed("torch_npu", tmp_path / "torch_npu", "2.7.1", ("2.7.1",))
    (wheel.directory / "lib").mkdir(parents=True)
    (wheel.directory / "lib/libtorch_npu.so").write_bytes(torch_npu)
    for module in ("packages", "operators"):
        monkeypatch.setattr(sys.modules[f"ascend_graph.doctor.{module}"], "installed", {"torch_npu": wheel}.get)
    environment = {"ASCEND_HOME_PATH": str(cann)}
    return list(examine_operators([], ["aclnnMoved", "aclnnKept"], environment))


def test_a_function_that_a_later_cann_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = moved_function(tmp_path, b"libopapi.so\0libopapi_\0", monkeypatch)
    assert found[0].text == f"aclnnMoved is in {tmp_path}/cann/lib64/libopapi_nn.so, version 8.5.0"
    assert found[-1].is_wrong
    assert found[-1].text.endswith("What is installed has aclnnKeptV2, with parameters of their own")


def test_a_function_that_a_later_cann_moved_where_torch_npu_does_not_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = moved_function(tmp_path, b"libopapi.so\0", monkeypatch)
    assert found[0].is_wrong
    assert found[0].text.endswith(
        f"CANN 8.5.0 has it in {tmp_path}/cann/lib64/libopapi_nn.so, where torch_npu 2.7.1 does not look"
    )
    assert found[0].fix == "install a later torch_npu, or the CANN that this one was made for"


def test_an_operator_that_another_cann_defines_otherwise(tmp_path: Path) -> None:
    definition = (
        "REG_OP(DoctoredOnce).INPUT({}, TensorType({{DT_FLOAT}})).OUTPUT(y, "
        "TensorType({{DT_FLOAT}})).OP_END_FACTORY_REG(DoctoredOnce)\n"
    )
    made = package(tmp_path / "made", "aclnnDoctoredOnce", version="8.5.0")
    (made / "op_proto/inc").mkdir(parents=True)
    (made / "op_proto/inc/op_proto.h").write_text(definition.format("x1"))
    (tmp_path / "op_proto.h").write_text(definition.format("x"))
    (tmp_path / "module.py").write_text(f"""
import torch, torch_npu, ascend_graph
ascend_graph.load_prototypes({str(tmp_path / "op_proto.h")!r})
library = torch.library.Library("doctored", "DEF")
library.define("once(Tensor x) -> Tensor")
library.impl("once", lambda x: x + 1, "PrivateUse1")
ascend_graph.register_op("DoctoredOnce", eager=torch.ops.doctored.once, shape="x[*s] -> y[*s]")
""")
    command = [sys.executable, "-m", "ascend_graph.cli", "doctor", str(tmp_path / "module.py"), "--format", "json"]
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(made)}
    result = preloaded.run(command, capture_output=True, text=True, check=False, env=environment)
    bad = [f for f in json.loads(result.stdout)["findings"] if f["subject"] == "doctored::once" and f["is_wrong"]]
    assert [f["text"] for f in bad] == [
        (
            f"REG_OP(DoctoredOnce) is bound by {tmp_path}/op_proto.h:1, and installed is "
            f"{made}/op_proto/inc/op_proto.h:1 "
            f"(CANN 8.5.0): "
            "input x is gone; required input x1 is new"
        )
    ]


def test_an_extension_that_was_compiled_against_another_torch(tmp_path: Path) -> None:
    """The constructor of torch::Library as it is with the strings of the old ABI, which no tested torch has."""
    symbol = "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj"
    path = library(tmp_path / "ext.so", f'extern "C" void f() __asm__("{symbol}");\nvoid g() {{ f(); }}\n')
    result = doctor(str(path))
    assert result.exit_code == 1
    assert (
        f"lacks 1 of 1 symbols that it needs, {symbol} among them: it was compiled with the old ABI of strings"
        in result.stdout
    )
    assert "→ pip install --no-build-isolation" in result.stdout
    fine = library(tmp_path / "fine.so", "int g() { return 0; }")
    assert doctor(str(fine)).exit_code == 0


def test_a_function_that_torch_npu_declares_and_does_not_export(tmp_path: Path) -> None:
    symbol = "_ZN6at_npu6native13OpPreparation24convert_to_acl_data_typeERKN3c1010ScalarTypeE"
    if symbol in torch_symbols():
        pytest.skip("this torch_npu exports it")
    path = library(tmp_path / "ext.so", f'extern "C" void f() __asm__("{symbol}");\nvoid g() {{ f(); }}\n')
    result = doctor(str(path))
    assert result.exit_code == 1
    declared = "OpPreparation.h declares at_npu::native::OpPreparation::convert_to_acl_data_type, and no library"
    assert f"{declared} of torch_npu exports it, so that compiling it again changes nothing" in result.stdout
    assert "→ write the extension without it" in result.stdout
    assert "→ pip install" not in result.stdout


def test_operators_that_a_module_registers(tmp_path: Path) -> None:
    """In a process of its own: what is bound, its meta function, and what nobody can find."""
    (tmp_path / "doctored.py").write_text('''
import torch, torch_npu, ascend_graph
ascend_graph.load_prototypes("""
REG_OP(DoctoredTwice).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(DoctoredTwice)
""")
library = torch.library.Library("doctored", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "PrivateUse1")
library.define("bare(Tensor x) -> Tensor")
library.impl("bare", lambda x: x * 2, "PrivateUse1")
ascend_graph.register_op("DoctoredTwice", eager=torch.ops.doctored.twice, shape="x[*s] -> y[*s]")
print("modules may print")
''')
    command = [sys.executable, "-m", "ascend_graph.cli", "doctor", str(tmp_path / "doctored.py"), "--format", "json"]
    names = ["--op", "doctored::bare", "--op", "doctored::twice", "--op", "doctored::none"]
    result = preloaded.run([*command, *names], capture_output=True, text=True, check=False)
    found = [Finding(**f) for f in json.loads(result.stdout)["findings"]]
    assert result.returncode == 1
    texts = {subject: [f.text for f in found if f.subject == subject] for subject in {f.subject for f in found}}
    assert "has no meta function: graphs cannot have it" in texts["doctored::bare"]
    assert any(text.startswith("REG_OP(DoctoredTwice) at ") for text in texts["doctored::twice"])
    assert any(text.startswith("kernel for PrivateUse1, registered at ") for text in texts["doctored::twice"])
    assert texts["doctored::none"] == ["no operator doctored::none is defined; import its extension with --import"]


def test_a_module_that_cannot_be_imported_is_explained(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "raise ImportError('libatb.so: cannot open shared object file: No such file or directory')"
    )
    (found,) = examine_operators([str(tmp_path / "broken.py")], [], os.environ)
    assert found.is_wrong
    assert "ATB (of CANN's package nnal) is not there" in found.text
    assert found.fix.startswith("source ")


def test_message_and_operators_are_two_questions() -> None:
    assert doctor("module", "--message", "text").exit_code == 2


def test_a_variant_with_a_first_phase_alone_is_no_false_alarm(tmp_path: Path) -> None:
    made = package(tmp_path / "made", "aclnnOne", declared=["aclnnOne"])
    header = made / "op_api/include/aclnnOne.h"
    variant = DECLARED.format(name="aclnnOneTensor", more="").split("aclnnStatus aclnnOneTensor(")[0]
    header.write_text(header.read_text() + variant.replace('#include "aclnn/acl_meta.h"', ""))
    source = 'extern "C" int {0}() {{ return 0; }}\n'
    both = ("aclnnOne", "aclnnOneGetWorkspaceSize", "aclnnOneTensorGetWorkspaceSize")
    library(made / "op_api/lib/libcust_opapi.so", "".join(map(source.format, both)))
    environment = {"ASCEND_CUSTOM_OPP_PATH": str(made)}
    assert wrong(list(packages(environment))) == []
    library(made / "op_api/lib/libcust_opapi.so", "".join(map(source.format, both[:2])))
    (found,) = (finding for finding in packages(environment) if finding.is_wrong)
    assert "declares aclnnOneTensor, and" in found.text


def test_a_package_whose_library_does_not_load_is_named(tmp_path: Path) -> None:
    made = package(tmp_path / "made", "aclnnOne", declared=["aclnnOne"])
    source = """
        namespace op { int nothing_has_this(int); }
        extern "C" int aclnnOneGetWorkspaceSize() { return 0; }
        extern "C" int aclnnOne() { return op::nothing_has_this(1); }
    """
    library(made / "op_api/lib/libcust_opapi.so", source)
    (found,) = (f for f in packages({"ASCEND_CUSTOM_OPP_PATH": str(made)}) if f.is_wrong)
    assert (
        "does not load on the host runtime: 1 symbols or libraries are missing, such as op::nothing_has_this"
        in found.text
    )
    assert found.fix.startswith("ascend-graph survey WHEEL")


def test_a_directory_of_sources_is_read_for_types_that_calls_pass(tmp_path: Path) -> None:
    header = tmp_path / "home/include/aclnnop/aclnn_turn.h"
    header.parent.mkdir(parents=True)
    header.write_text(
        "aclnnStatus aclnnTurnGetWorkspaceSize(const aclTensor *x, double eps, aclTensor *out, uint64_t *workspaceSize,"
        " aclOpExecutor **executor);\n"
    )
    source = tmp_path / "csrc/ops.cpp"
    source.parent.mkdir()
    text = (
        "void turn(const at::Tensor &x, float eps, at::Tensor &out)\n{\n    EXEC_NPU_CMD(aclnnTurn, x, eps, out);\n}\n"
    )
    source.write_text(text)
    found = doctor(str(source.parent), ASCEND_HOME_PATH=str(tmp_path / "home"))
    assert found.exit_code == 1
    assert "!!  ops.cpp:3  aclnnTurn: EXEC_NPU_CMD passes eps as float; expected double for eps" in found.output
    assert "declare double eps_value = eps; and pass that" in found.output
    source.write_text(text.replace("float", "double"))
    found = doctor(str(source.parent), ASCEND_HOME_PATH=str(tmp_path / "home"))
    assert (found.exit_code, "1 aclnn function(s) get the types that are declared" in found.output) == (0, True)

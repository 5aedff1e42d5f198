"""Survey of wheels: small wheels are made here, with libraries that a C compiler makes in a moment."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from ascend_graph.cli import main
from ascend_graph.compilation.toolchain import compiler
from ascend_graph.doctor.libraries import read_library
from ascend_graph.doctor.wheels import (
    AvailableSymbols,
    WheelError,
    archive,
    opened,
    readable,
    survey_wheel,
    try_imports,
)
from ascend_graph.doctor.wheels.needs import string_abi
from ascend_graph.environment import toolkit_directory

METADATA = {
    "sample-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\nRequires-Dist: torch\n",
    "sample-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    "sample-1.0.dist-info/entry_points.txt": "[console_scripts]\nSample = sample:main\n",
}
PROTOTYPE = """
REG_OP(SampleAdd)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(SampleAdd)
"""


def library(path: Path, source: str, *options: str) -> bytes:
    path.with_suffix(".cpp").write_text(source)
    command = [*compiler(), "-shared", "-fPIC", "-nostartfiles", "-o", str(path), str(path.with_suffix(".cpp"))]
    subprocess.run([*command, *options], check=True)
    return path.read_bytes()


def make_wheel(path: Path, files: Mapping[str, str | bytes]) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in {**METADATA, **files}.items():
            wheel.writestr(name, content)
    return str(path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A wheel with an operator package whose library misses one symbol, and has others."""
    place = tmp_path_factory.mktemp("wheel")
    own = library(place / "libown.so", 'extern "C" int own_function() { return 1; }')
    source = """
        #include <cstdlib>
        extern "C" int aclrtSynchronizeDevice();
        extern "C" int aclNothingHasThis();
        extern "C" int own_function();
        namespace fe { int ask(const char*, int); }
        extern "C" int aclnnSampleAddGetWorkspaceSize() { return aclrtSynchronizeDevice() + aclNothingHasThis(); }
        extern "C" int aclnnSampleAdd() { return own_function() + fe::ask(getenv("A"), 1); }
        extern "C" int aclnnHalfGetWorkspaceSize() { return 0; }
    """
    functions = library(place / "libcust_opapi.so", source, f"-L{place}", "-lown", "-Wl,--allow-shlib-undefined")
    package = "sample/opp/vendors/one"
    kernels = f"{package}/op_impl/ai_core/tbe"
    return make_wheel(
        place / "sample-1.0-py3-none-any.whl",
        {
            "sample/__init__.py": "def main(): ...\n",
            "sample/lib/libown.so": own,
            f"{package}/op_api/lib/libcust_opapi.so": functions,
            f"{package}/op_proto/inc/op_proto.h": PROTOTYPE,
            f"{kernels}/config/ascend910b/aic-ascend910b-ops-info.json": json.dumps({"SampleAdd": {}}),
            f"{kernels}/kernel/ascend910b/sample_add/SampleAdd_1.o": b"binary",
            f"{kernels}/one_impl/dynamic/sample_add.cpp": "// a kernel",
        },
    )


def test_a_wheel_is_described_without_executing_it(wheel: str) -> None:
    with opened(wheel) as files:
        found = survey_wheel(files)
    assert (found.name, found.version, found.modules) == ("sample", "1.0", ("sample",))
    assert found.entry_points == (("console_scripts", "Sample", "sample:main"),)
    assert found.requires == ("torch",)
    functions = next(one for one in found.libraries if one.path.endswith("libcust_opapi.so"))
    # The host runtime has the first function that it calls, the wheel the second, the C library getenv.
    assert functions.missing == ("_ZN2fe3askEPKci", "aclNothingHasThis")
    assert functions.role == "aclnn functions"
    assert not functions.loads
    assert found.missing == {"_ZN2fe3askEPKci": 1, "aclNothingHasThis": 1}


def test_an_operator_package_is_described_by_its_parts(wheel: str) -> None:
    with opened(wheel) as files:
        (package,) = survey_wheel(files).packages
    assert package.path == "sample/opp/vendors/one"
    assert package.functions == ("aclnnSampleAdd",)  # a function with one phase cannot be called
    assert package.prototypes == ("SampleAdd",)
    assert package.operators == {"ascend910b": ("SampleAdd",)}
    assert package.binaries == {"ascend910b": 1}
    assert package.sources == ("op_impl/ai_core/tbe/one_impl/dynamic/sample_add.cpp",)
    assert package.kernels == "both"


def test_an_unpacked_wheel_says_the_same_as_its_archive(wheel: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "unpacked")
    with opened(wheel) as files, opened(str(tmp_path / "unpacked")) as unpacked:
        one, other = survey_wheel(files).as_json(), survey_wheel(unpacked).as_json()
    assert {**one, "wheel": ""} == {**other, "wheel": ""}


def test_an_installed_distribution_is_found_by_its_name() -> None:
    with opened("click") as files:
        found = survey_wheel(files)
    assert (found.name, found.modules, found.libraries) == ("click", ("click",), ())


def test_a_wheel_without_native_libraries_or_operators_is_described_in_a_line(tmp_path: Path) -> None:
    """Headers of a kit in a directory that is named as a package's are not an operator package."""
    made = make_wheel(tmp_path / "plain-1.0-py3-none-any.whl", {"plain/include/op_proto/base.h": "#pragma once\n"})
    shown = CliRunner().invoke(main, ["survey", made])
    assert shown.output.startswith("sample 1.0: it has no native libraries\n")
    assert "operator packages" not in shown.output


def test_a_library_that_is_absent_is_named(tmp_path: Path) -> None:
    absent = library(tmp_path / "libabsent.so", "int there() { return 1; }")
    assert absent
    linked = library(tmp_path / "libuser.so", "int there(); int f() { return there(); }", f"-L{tmp_path}", "-labsent")
    with opened(make_wheel(tmp_path / "sample.whl", {"sample/libuser.so": linked})) as files:
        (found,) = survey_wheel(files).libraries
    assert found.missing_libraries == ("libabsent.so",)
    assert found.missing == ("_Z5therev",)


def test_libraries_of_another_machine_python_or_standard_library_are_told(tmp_path: Path) -> None:
    own = bytearray(library(tmp_path / "libone.so", "int one() { return 1; }"))
    own[18:20] = (183 if own[18] == 62 else 62).to_bytes(2, "little")  # e_machine
    source = """
        namespace std { inline namespace __1 { struct string; void print(string&); } }
        void f(std::string& s) { print(s); }
    """
    llvm = library(tmp_path / "libllvm.so", source)
    files: dict[str, str | bytes] = {
        "sample/libone.so": bytes(own),
        "sample/libllvm.so": llvm,
        "sample-1.0.dist-info/WHEEL": "Tag: cp27-cp27mu-manylinux1_x86_64\n",
    }
    with opened(make_wheel(tmp_path / "sample.whl", files)) as wheel:
        found = survey_wheel(wheel)
    by_name = {Path(one.path).name: one for one in found.libraries}
    assert "compiled for " in by_name["libone.so"].abi[0]
    assert "libc++" in by_name["libllvm.so"].abi[0]
    assert by_name["libllvm.so"].missing == ()
    assert found.python == (f"made for Python 2.7; this is Python {sys.version_info[0]}.{sys.version_info[1]}",)


def test_old_strings_are_refused_in_libraries_for_pytorch_alone(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {}
    for name in ("c10", "fe"):
        source = f"""
            #include <string>
            namespace {name} {{ void take(const std::string&); }}
            void f(const std::string& s) {{ {name}::take(s); }}
        """
        compiled = library(tmp_path / f"lib{name}.so", source, "-D_GLIBCXX_USE_CXX11_ABI=0")
        files[f"sample/lib{name}.so"] = compiled
    with opened(make_wheel(tmp_path / "sample.whl", files)) as wheel:
        found = {Path(one.path).name: one for one in survey_wheel(wheel).libraries}
    assert found["libc10.so"].strings == found["libfe.so"].strings == "old"
    assert "_GLIBCXX_USE_CXX11_ABI=0" in found["libc10.so"].abi[0]
    assert found["libfe.so"].abi == ()  # CANN's own ABI
    assert found["libc10.so"].missing_torch == ("_ZN3c104takeERKSs",)


@pytest.mark.parametrize(
    ("symbol", "name", "abi"),
    [
        ("_ZN2fe13PlatFormInfos13GetLocalMemBwERKNS_12LocalMemTypeERm", "fe::PlatFormInfos::GetLocalMemBw", ""),
        ("_ZNK2ge12AscendString4HashEv", "ge::AscendString::Hash", ""),
        ("_ZN3ops5OpDefC1EPKc", "ops::OpDef::constructor", ""),
        ("_ZN3ops5OpDefD1Ev", "ops::OpDef::destructor", ""),
        ("_ZN2op8ToStringERKSs", "op::ToString", "old"),
        ("_Z14NnopbaseOpLogEiPKc", "NnopbaseOpLogE", ""),
        ("_ZN2at4NameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "at::Name", "cxx11"),
        ("memcpy_s", "memcpy_s", ""),
        ("_ZN99999999999f", "_ZN99999999999f", ""),
        ("_Z", "_Z", ""),
    ],
)
def test_mangled_names_are_read(symbol: str, name: str, abi: str) -> None:
    assert (readable(symbol), string_abi(symbol)) == (name, abi)


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "a/../../outside.py", "a\\..\\outside.py"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = make_wheel(tmp_path / "sample.whl", {name: "bad"})
    with pytest.raises(WheelError, match="leads out of the wheel; expected a relative path"), opened(path):
        pass
    assert not (tmp_path.parent / "outside.py").exists()


def test_a_link_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("sample/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "sample.whl", "w") as wheel:
        wheel.writestr(link, "/etc/passwd")
    with (
        pytest.raises(WheelError, match="is a link or a device; a wheel must have regular files"),
        opened(str(tmp_path / "sample.whl")),
    ):
        pass


def test_an_archive_over_the_limits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_wheel(tmp_path / "sample.whl", {"sample/zeros.bin": bytes(8 << 20)})
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    with pytest.raises(WheelError, match=r"unpacked, at sample/zeros\.bin; expected less"), opened(path):
        pass
    monkeypatch.setattr(archive, "MAX_FILES", 2)
    with pytest.raises(WheelError, match="4 files; expected at most 2"), opened(path):
        pass


def test_a_link_out_of_an_unpacked_wheel_is_not_followed(wheel: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "unpacked")
    (tmp_path / "secret.py").write_text("")
    (tmp_path / "unpacked/secret.py").symlink_to(tmp_path / "secret.py")
    with opened(str(tmp_path / "unpacked")) as files:
        assert survey_wheel(files).modules == ("sample",)


@pytest.mark.parametrize("at", [30, 200, -60])
def test_a_damaged_archive_is_refused_in_one_sentence(wheel: str, tmp_path: Path, at: int) -> None:
    damaged = bytearray(Path(wheel).read_bytes())
    damaged[at : at + 24] = b"\xff" * 24
    path = tmp_path / "damaged.whl"
    path.write_bytes(damaged)
    with pytest.raises(WheelError, match="expected"), opened(str(path)) as files:
        survey_wheel(files)


def test_damaged_libraries_are_left_out(wheel: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        whole = packed.read("sample/lib/libown.so")
    libraries: dict[str, str | bytes] = {f"sample/lib{n}.so": whole[: len(whole) * n // 10] for n in range(10)}
    with opened(make_wheel(tmp_path / "sample.whl", libraries)) as files:
        assert survey_wheel(files).libraries == ()


def test_what_is_not_a_wheel_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as plain:
        plain.writestr("a.txt", "")
    with pytest.raises(WheelError, match="METADATA was not found"), opened(str(tmp_path / "plain.zip")) as files:
        survey_wheel(files)
    with (
        pytest.raises(WheelError, match="neither a file, a directory nor an installed distribution"),
        opened("no_such"),
    ):
        pass


def test_imports_run_in_processes_that_may_die(tmp_path: Path) -> None:
    files = {
        "good/__init__.py": "def main(): ...\n",
        "bad/__init__.py": "raise ValueError('first line\\nsecond line')\n",
        "dead/__init__.py": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        "slow/__init__.py": "import time\ntime.sleep(60)\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    targets = ["good", "good:main", "good:absent", "bad", "dead"]
    found = {one.target: (one.state, one.error) for one in try_imports(tmp_path, targets, time_limit=60)}
    assert found["good"] == found["good:main"] == ("imported", "")
    assert found["good:absent"] == ("failed", "AttributeError: module 'good' has no attribute 'absent'")
    assert found["bad"] == ("failed", "ValueError: first line")
    assert found["dead"] == ("died", "ended the process by SIGSEGV")
    (slow,) = try_imports(tmp_path, ["slow"], time_limit=0.5)
    assert (slow.state, slow.error) == ("died", "did not end within 0.5 s")


def test_the_command_prints_tables_and_json(wheel: str, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["survey", wheel])
    assert shown.exit_code == 0, shown.output
    assert "sample 1.0: 1 of 2 libraries have all they need, 2 symbols missing" in " ".join(shown.output.split())
    assert "fe::ask" in shown.output
    (found,) = json.loads(CliRunner().invoke(main, ["survey", wheel, "--format", "json"]).stdout)
    assert found["loadable"] == 1
    assert found["packages"][0]["kernels"] == "both"
    assert "imports" not in found
    mixed = CliRunner().invoke(main, ["survey", wheel, "-o", str(tmp_path)])
    assert mixed.exit_code == 2
    assert "are for a checkout DIR" in mixed.output


def test_the_host_runtime_has_what_its_own_libraries_need() -> None:
    machine = AvailableSymbols()
    own = read_library(toolkit_directory() / "lib64/libopapi.so")
    assert own is not None
    assert own.defined <= machine.host
    assert machine.system >= {"getenv", "_ZdlPv", "_ZNSs6appendERKSs"}

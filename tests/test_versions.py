"""What is said of an installation of torch and torch_npu: which go on, which are refused, and how C++ is compiled
for them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch._library.simple_registry import singleton

from ascend_graph.versions import TESTED, UNTESTED_VARIABLE, USUAL, cxx_flags, fake_kernels, register_fake

CHECK = "import os; from ascend_graph.versions import check; print(check(os.environ))"


def install(site: Path, name: str, version: str, *, files: str | None = None, cuda: str | None = None) -> None:
    """What an installed package is looked at for."""
    (site / name).mkdir(parents=True, exist_ok=True)
    (site / name / "__init__.py").touch()
    text = f"__version__ = '{files or version}'\ncuda: Optional[str] = {cuda!r}\n"
    (site / name / "version.py").write_text(text)
    information = site / f"{name}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def checked(site: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if name != UNTESTED_VARIABLE}
    variables = {**ours, "PYTHONPATH": str(site), **environment}
    return subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=False, env=variables)


def test_a_tested_pair_is_said_nothing_of(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.13.0+cpu")
    install(tmp_path, "torch_npu", "2.13.0")
    assert checked(tmp_path).stdout == "None\n"


def test_another_post_release_is_a_remark(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.13.0+cpu")
    install(tmp_path, "torch_npu", "2.13.0.post1")
    said = checked(tmp_path).stdout
    assert said.startswith("torch_npu 2.13.0.post1 was not tested; tested are torch_npu 2.14.0, ")


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (
            [("torch", "2.13.0", None, "13.0"), ("torch_npu", "2.13.0", None, None)],
            (
                "torch is built for CUDA 13.0; torch_npu loads only with PyTorch's CPU build. Install that: "
                "pip install --force-reinstall torch==2.13.0+cpu"
            ),
        ),
        (
            [("torch", "2.14.0+cpu", None, None), ("torch_npu", "2.13.0", None, None)],
            (
                "torch_npu 2.13.0 is made for torch 2.13.0, and torch 2.14.0+cpu is installed; "
                "install that: pip install torch==2.13.0"
            ),
        ),
        (
            [("torch", "2.13.0+cpu", "2.14.0", None), ("torch_npu", "2.13.0", None, None)],
            "torch 2.13.0+cpu installed over each other, and files of 2.14.0: remove it until pip finds none",
        ),
        (
            [("torch", "2.1.0", None, None), ("torch_npu", "2.1.0.post17", None, None)],
            "torch_npu 2.1.0.post17 was not tested and is older than what the host runtime has libraries for: ",
        ),
        (
            [("torch", "2.15.0", None, None), ("torch_npu", "2.15.0", None, None)],
            "torch_npu 2.15.0 was not tested; tested are torch_npu 2.14.0, ",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    tmp_path: Path, packages: list[tuple[str, str, str | None, str | None]], message: str
) -> None:
    for name, version, files, cuda in packages:
        install(tmp_path, name, version, files=files, cuda=cuda)
    result = checked(tmp_path)
    assert result.returncode == 1
    assert message in result.stderr


def test_two_versions_of_one_package(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.14.0")
    install(tmp_path, "torch", "2.13.0")
    install(tmp_path, "torch_npu", "2.13.0")
    assert re.search(r"has torch 2\.1[34]\.0 and 2\.1[34]\.0 installed over each other", checked(tmp_path).stderr)


def test_an_untested_version_can_be_tried(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.1.0")
    install(tmp_path, "torch_npu", "2.1.0.post17")
    assert "set ASCEND_GRAPH_UNTESTED=1" in checked(tmp_path).stderr
    tried = checked(tmp_path, ASCEND_GRAPH_UNTESTED="1").stdout
    assert tried.startswith("torch_npu 2.1.0.post17 was not tested and may not work (ASCEND_GRAPH_UNTESTED=1)")


def test_the_launcher_says_it(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.12.0")
    install(tmp_path, "torch_npu", "2.13.0")
    result = subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", "--force", "-c", "pass"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("ascend_graph.host: torch_npu 2.13.0 is made for torch 2.13.0")


@pytest.mark.parametrize(
    ("extensions", "library", "flags"),
    [
        ("cflags += ['-std=c++20']", b"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112", ("-std=c++20", "1")),
        (
            ">>> args={'cxx': ['-std=c++20']}\ncommon_cflags += ['-std=c++17']",
            b"\0_ZN3c105ErrorC2ENS_14SourceLocationESs\0",
            ("-std=c++17", "0"),
        ),
        (None, None, ("-std=c++17", "1")),
    ],
)
def test_how_cpp_is_compiled(
    tmp_path: Path, extensions: str | None, library: bytes | None, flags: tuple[str, str]
) -> None:
    for directory in ("utils", "lib"):
        (tmp_path / directory).mkdir()
    if extensions is not None:
        (tmp_path / "utils/cpp_extension.py").write_text(extensions)
    if library is not None:
        (tmp_path / "lib/libc10.so").write_bytes(library)
    assert cxx_flags(tmp_path) == (flags[0], f"-D_GLIBCXX_USE_CXX11_ABI={flags[1]}")


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (
            "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1016__",
            ('-DPYBIND11_COMPILER_TYPE="_gcc"', '-DPYBIND11_STDLIB="_libstdcpp"', '-DPYBIND11_BUILD_ABI="_cxxabi1016"'),
        ),
        (
            "__pybind11_internals_v5_clang_libcpp_cxxabi1002__",
            ('-DPYBIND11_COMPILER_TYPE="_clang"', '-DPYBIND11_STDLIB="_libcpp"', '-DPYBIND11_BUILD_ABI="_cxxabi1002"'),
        ),
        ("__pybind11_internals_v11_system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_1__", ()),
    ],
)
def test_modules_share_classes_with_a_torch_of_another_compiler(
    tmp_path: Path, name: str, flags: tuple[str, ...]
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libtorch_python.so").write_bytes(b"\0x\0" + name.encode() + b"\0y")
    assert cxx_flags(tmp_path)[2:] == flags


def test_the_installed_torch_says_the_same() -> None:
    flags = cxx_flags(Path(torch.__file__).parent)
    assert flags[1] == f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    # torch says this itself as long as its pybind11 asks for it.
    parts = ((p, getattr(torch._C, f"_PYBIND11_{p}", None)) for p in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"))
    assert flags[2:] == tuple(f'-DPYBIND11_{part}="{said}"' for part, said in parts if said)


def test_meta_functions_are_stacked_where_torch_holds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch before 2.8: an entry has one function, and a library's impl refuses a second."""

    class Before28:
        """What is used of torch.library.Library."""

        def __init__(self) -> None:
            self.ns, self.m, self._registration_handles = "t", self, []
            self.kernels: list[str] = []

        def impl(self, name: str, key: str, function: object, with_keyset: bool) -> None:
            self.kernels.append(f"{name} {key}")

        def _register_fake(self, name: str, function: object, _stacklevel: int = 1) -> None:
            raise RuntimeError("there is one already")

    def first() -> None: ...
    def second() -> None: ...

    entry = SimpleNamespace(kernel=None)
    monkeypatch.setattr(singleton, "find", lambda name: SimpleNamespace(fake_impl=entry))
    assert fake_kernels(entry) == []
    libraries = [Before28(), Before28()]
    for library, function in zip(libraries, (first, second), strict=True):
        register_fake(library, "op", function)
        assert library.kernels == ["t::op Meta"]
    assert [k.func for k in fake_kernels(entry)] == [first, second]
    assert entry.kernel.func is second
    assert __file__ in entry.kernel.source
    libraries[0]._registration_handles[0].destroy()
    assert (entry.kernel.func, len(fake_kernels(entry))) == (second, 1)
    libraries[1]._registration_handles[0].destroy()
    assert (entry.kernel, fake_kernels(entry)) == (None, [])


def test_generated_projects_name_the_version_that_the_tests_run_with() -> None:
    required = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert {*re.findall(r'"torch(?:_npu)?==([^"]+)"', required)} == {USUAL}
    assert USUAL in TESTED

"""Operators of installed wheels are loaded with PyTorch, and a broken wheel leaves PyTorch as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ascend_graph.dispatch.calls import on_missing
from ascend_graph.packages import autoload, missing
from ascend_graph.packages.autoload import OperatorsWarning, load_operators

HEADER = """
REG_OP(WheelAdd)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(WheelAdd)
"""


def make_wheel(site: Path, module: str, source: str, entry: str) -> Path:
    """Install a distribution with one entry point of operators, as its wheel would be."""
    (site / module).mkdir(parents=True)
    (site / module / "__init__.py").write_text(textwrap.dedent(source))
    info = site / f"{module}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.2\n")
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n")
    (info / "entry_points.txt").write_text(f"[ascend_graph.operators]\n{module} = {entry}\n")
    return site


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    monkeypatch.setattr(autoload, "_done", {})
    monkeypatch.setattr(autoload, "postponed", set())
    monkeypatch.setattr(missing, "postponed", autoload.postponed)
    monkeypatch.setattr(missing, "_told", set())
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(module: str, source: str, entry: str) -> None:
        monkeypatch.delitem(sys.modules, module, raising=False)
        make_wheel(tmp_path, module, source, entry)

    return install


def test_a_module_is_imported_and_a_function_is_called(
    install: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = types.SimpleNamespace(names=[])
    monkeypatch.setitem(sys.modules, "ascend_seen", seen)  # type: ignore[arg-type]
    install("wheel_module", "import ascend_seen; ascend_seen.names.append('module')", "wheel_module")
    install(
        "wheel_function",
        "def register():\n    import ascend_seen; ascend_seen.names.append('function')",
        "wheel_function:register",
    )
    found = load_operators()
    assert set(found.values()) == {""}
    assert sorted(seen.names) == ["function", "module"]
    load_operators()
    assert len(seen.names) == 2


@pytest.mark.parametrize(
    "source", ["raise ValueError('no good')", "import no_such_thing", "raise SystemExit(3)", "x ="]
)
def test_a_broken_wheel_is_one_warning_that_names_it(install: Callable[[str, str, str], None], source: str) -> None:
    install("wheel_broken", source, "wheel_broken")
    with pytest.warns(
        OperatorsWarning, match=r"wheel-broken 1\.2: its operators are not loaded.*wheel_broken"
    ) as caught:
        load_operators()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_operators()["wheel_broken = wheel_broken"]


def test_a_warning_that_is_an_error_does_not_end_the_import(
    install: Callable[[str, str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("wheel_strict", "raise ValueError('no good')", "wheel_strict")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        autoload.autoload()
    assert "wheel-strict 1.2: its operators are not loaded" in capsys.readouterr().err


def test_autoload_is_switched_off(install: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    install("wheel_off", "raise ValueError", "wheel_off")
    monkeypatch.setenv("ASCEND_GRAPH_AUTOLOAD", "0")
    autoload.autoload()
    assert autoload._done == {}


def test_a_module_whose_import_imports_torch_is_loaded_later(install: Callable[[str, str, str], None]) -> None:
    install("wheel_circular", "", "wheel_circular:register")
    half = types.ModuleType("wheel_circular")
    half.__spec__ = types.SimpleNamespace(_initializing=True)  # type: ignore[assignment]
    sys.modules["wheel_circular"] = half
    assert load_operators() == {}
    assert autoload.postponed
    library = torch.library.Library("wheel_circular", "DEF")
    half.register = lambda: library.define("late(Tensor x) -> Tensor") and None  # type: ignore[attr-defined]
    half.__spec__._initializing = False  # type: ignore[union-attr]
    missing.explain_missing_operators()
    assert torch.ops.wheel_circular.late.default is not None
    del sys.modules["wheel_circular"]
    library._destroy()


def test_a_missing_operator_is_said_to_be_in_an_installed_package(
    install: Callable[[str, str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "vendors" / "mine"
    (package / "op_proto/inc").mkdir(parents=True)
    (package / "op_proto/inc/op_proto.h").write_text(HEADER)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    missing.explain_missing_operators()
    assert len(on_missing) == 1
    with pytest.warns(OperatorsWarning, match="ascend::wheel_add is not registered") as caught:  # noqa: SIM117
        with pytest.raises(
            AttributeError, match=rf"{package} has WheelAdd. Write: ascend_graph.register_package\('{package}'\)"
        ):
            torch.ops.ascend.wheel_add  # noqa: B018
    assert len(caught) == 1
    assert not hasattr(torch.ops.ascend, "wheel_add")
    assert not hasattr(torch.ops.ascend, "wheel_sub")


def test_a_missing_operator_names_the_entry_point_that_failed(install: Callable[[str, str, str], None]) -> None:
    install("wheel_failing", "raise ValueError('the reason')", "wheel_failing")
    with pytest.warns(OperatorsWarning):
        load_operators()
    missing.explain_missing_operators()
    with pytest.warns(OperatorsWarning), pytest.raises(AttributeError, match="failed with ValueError: the reason"):
        torch.ops.wheel_failing.one  # noqa: B018


@pytest.mark.slow
def test_a_fresh_process_has_the_operators_and_a_broken_wheel_does_not_stop_torch(tmp_path: Path) -> None:
    package = tmp_path / "wheel_whole" / "opp" / "vendors" / "mine"
    make_wheel(
        tmp_path,
        "wheel_whole",
        """
        import torch, ascend_graph
        ascend_graph.register_package("wheel_whole", namespace="wheel_whole")
        """,
        "wheel_whole",
    )
    make_wheel(tmp_path, "wheel_bad", "raise ValueError('bad wheel')", "wheel_bad")
    (package / "op_proto/inc").mkdir(parents=True)
    (package / "op_proto/inc/op_proto.h").write_text(HEADER)
    (package / "relations.ini").write_text("[WheelAdd]\nshape = x[*s] -> y[*s]\n")
    code = f"""
        import sys; sys.path.insert(0, {str(tmp_path)!r})
        import torch
        names = [s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("wheel_whole::")]
        print(names, torch.ops.wheel_whole.wheel_add(torch.empty(3, device="meta")).shape)
    """

    def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)

    done = run(code)
    assert done.stdout == "['wheel_whole::wheel_add'] torch.Size([3])\n", done.stderr
    assert done.stderr.count("wheel-bad 1.2: its operators are not loaded") == 1
    # The wheel's own import, which imports torch, comes first.
    done = run(code.replace("import torch\n", "import wheel_whole, torch\n"))
    assert done.stdout == "['wheel_whole::wheel_add'] torch.Size([3])\n", done.stderr
    # Or a name of ascend_graph, whose import imports torch.
    for first in ("import ascend_graph; ascend_graph.register_op", "from ascend_graph.registration import register_op"):
        done = run(code.replace("import torch\n", f"{first}; import torch\n"))
        assert "wheel-whole" not in done.stderr
        assert done.stdout.endswith(" torch.Size([3])\n"), done.stderr
    done = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "AttributeError" in done.stderr


BUILDS = {
    "setup.py": ["setup.py", "--quiet", "build"],
    "a front end": ["-c", "import setuptools.build_meta as b; b.get_requires_for_build_wheel()"],
}


@pytest.mark.parametrize("command", BUILDS.values(), ids=list(BUILDS))
def test_a_build_does_not_load_what_it_builds(tmp_path: Path, command: list[str]) -> None:
    make_wheel(tmp_path, "wheel_sources", "raise ImportError('not compiled yet')", "wheel_sources")
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nimport torch\nsetup(name='wheel-sources', packages=['wheel_sources'])\n"
    )
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": "."},
    )
    assert "wheel-sources" not in done.stderr

"""An operator package for the tests of eager calls: its kernels record, fail or do nothing."""

from __future__ import annotations

import ctypes
import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch_npu  # noqa: F401 - before a package is selected, which torch_npu itself would not see then
from ascend_graph.codegen.eager_project import generate_project

from ascend_graph import registered_ops
from ascend_graph.compilation import torch_library
from ascend_graph.eager import EagerOperator, define_operator
from ascend_graph.eager.library import sanitized
from ascend_graph.host.package import build_operator_package
from ascend_graph.prototypes import parse_text

sys.path.insert(0, str(Path(__file__).parent))
from eager_package import GRADIENTS, KERNELS, PROTOTYPES, SHAPES, WRITING, prototype


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's directory, selected for the session."""
    directory = tmp_path_factory.mktemp("eager")
    recorder = prototype("Recorder")
    names = [p.name for p in (*recorder.inputs, *recorder.attrs, *recorder.outputs)]
    record = "\n".join(f'    recorded += "\\"{name}\\":" + text(a.{name}) + ",";' for name in names)
    (directory / "kernels.cpp").write_text(KERNELS.replace("@RECORD@", record))
    prototypes = [p for p in parse_text(PROTOTYPES).prototypes if p.op_type != "Nowhere"]
    kernels = {p.op_type: directory / "kernels.cpp" for p in prototypes}
    return build_operator_package(
        directory / "opp",
        prototypes,
        kernels,
        relations={"AddCustom": SHAPES["AddCustom"], "CastTo": SHAPES["CastTo"], **WRITING},
    )


@pytest.fixture(autouse=True)
def _selected(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))


@pytest.fixture
def recorded(package: Path) -> Callable[[], dict[str, Any]]:
    """What the last call of aclnnRecorder received, by parameter; floats as their bits, strings as bytes."""
    function = ctypes.CDLL(str(package / "op_api/lib/libcust_opapi.so")).recorded_arguments
    function.restype = ctypes.c_char_p

    def read() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(function())
        return found

    return read


@pytest.fixture
def define() -> Iterator[Callable[..., EagerOperator]]:
    """``define(op_type, relation)``: an operator of the namespace ``eager_tests`` that goes with the test."""
    defined: list[EagerOperator] = []

    def one(op_type: str, shape: Any = None, **options: Any) -> EagerOperator:
        defined.append(define_operator(prototype(op_type), shape, namespace="eager_tests", **options))
        return defined[-1]

    yield one
    for operator in reversed(defined):
        operator.remove()


@pytest.fixture(scope="session")
def library(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The package generated from all operators, imported; compiled once per state of the sources."""
    root = tmp_path_factory.mktemp("generated")
    (root / "op_proto.h").write_text(PROTOTYPES)
    project = generate_project(
        root / "generated_ops", root / "op_proto.h", bindings="both", shapes=SHAPES, gradients=GRADIENTS
    )
    assert "gradient of AddCustom: AddCustomGrad" in project.proposed
    sources = project.directory / "csrc/generated"
    module = torch_library(
        "_C", sorted(sources.glob("*.cpp")), headers=sorted(sources.rglob("*.h")), include_directories=[sources]
    )
    shutil.copy(sanitized(module).build(), project.directory / "generated_ops/_C.so")
    sys.path.insert(0, str(project.directory))
    try:
        yield importlib.import_module("generated_ops")
    finally:
        sys.path.remove(str(project.directory))
        for registered in registered_ops():
            if registered.overload.namespace == "generated_ops":
                registered.unregister()

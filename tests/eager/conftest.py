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
import torch
import torch_npu  # noqa: F401 - before a package is selected, which torch_npu itself would not see then
from ascend_graph.codegen.eager_library.project import generate_project

import ascend_graph
from ascend_graph import registered_ops
from ascend_graph.eager import EagerOperator, define_operator
from ascend_graph.eager.library import sanitized
from ascend_graph.host import build_operator_package
from ascend_graph.prototypes import parse_text

sys.path.insert(0, str(Path(__file__).parent))
from eager_package import ARGUMENTS, GRADIENTS, KERNELS, PROTOTYPES, SCHEMAS, SHAPES, WRITING, prototype
from generated_library import generated_library


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
        relations={name: SHAPES[name] for name in ("AddCustom", "CastTo", "Mix", "MixGrad", *WRITING)},
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
    with pytest.MonkeyPatch.context() as patch:
        # Set up before the fixture of each test selects the package: its headers are read.
        patch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
        project = generate_project(
            root / "generated_ops",
            root / "op_proto.h",
            bindings="both",
            shapes=SHAPES,
            gradients=GRADIENTS,
            schemas=SCHEMAS,
            arguments=ARGUMENTS,
        )
    assert "gradient of AddCustom: AddCustomGrad" in project.proposed
    module = generated_library("_C", project.directory)
    shutil.copy(sanitized(module).build(), project.directory / "generated_ops/_C.so")
    sys.path.insert(0, str(project.directory))
    try:
        yield importlib.import_module("generated_ops")
    finally:
        sys.path.remove(str(project.directory))
        for registered in registered_ops():
            if registered.overload.namespace in ("generated_ops", "public_ops"):
                registered.unregister()


Operators = Callable[[str], Any]
NAMES = {
    "Blend": "blend",
    "Parts": "parts",
    "Square": "square",
    "SquareGrad": "square_grad",
    "AddTo": "add_to",
    "Twice": "twice",
}


@pytest.fixture(scope="module")
def made_without_cpp(package: Path) -> Iterator[dict[str, Any]]:
    """The operators with gradients, and some without, registered from their prototypes."""
    ascend_graph.load_prototypes(PROTOTYPES)
    # A gradient before what it is the gradient of.
    order = ("BlendGrad", "PartsGrad", "SquareGradGrad", "SquareGrad", "Blend", "Parts", "Square", "AddTo", "Twice")
    registered = [ascend_graph.register_op(name, shape=SHAPES[name], backward=GRADIENTS.get(name)) for name in order]
    yield {op.op_type: op.overload for op in registered}
    for op in registered:
        op.unregister()


@pytest.fixture(params=["prototype", "generated"])
def operators(request: pytest.FixtureRequest) -> Operators:
    """``operators(op_type)``: the overload, made without C++ and by a generated library."""
    if request.param == "prototype":
        made = request.getfixturevalue("made_without_cpp")
        return lambda op_type: made[op_type]
    request.getfixturevalue("library")
    return lambda op_type: getattr(torch.ops.generated_ops, NAMES[op_type]).default

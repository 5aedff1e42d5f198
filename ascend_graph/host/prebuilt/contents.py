"""Files of an operator package that CANN built, as far as a call of one of its operators needs them."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.environment import toolkit_directory
from ascend_graph.host.packages.format import OperatorPackageError, package_prototype
from ascend_graph.host.packages.prebuilt import prototype_library
from ascend_graph.prototypes import DataType, OpPrototype

#: Directory of an operator package with its kernels and tiling functions.
_TBE = Path("op_impl/ai_core/tbe")
_INSTEAD = "Build the kernel's sources with ascend-graph build, or give register_op a function as eager="
_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(?:(include)[ \t]*"([^"]+)"|(if|ifdef|endif)\b)', re.MULTILINE)
_DTYPES = {dtype.name.lower(): dtype for dtype in DataType} | {
    "float32": DataType.FLOAT, "float64": DataType.DOUBLE, "bfloat16": DataType.BF16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrebuiltParameter:
    """Input or output of an operator, as the package's configuration describes it."""

    name: str
    #: ``required``, ``optional`` or ``dynamic``.
    kind: str
    #: Dtype and format of each combination that the package has a kernel for.
    dtypes: tuple[DataType, ...]
    formats: tuple[str, ...]
    #: True if the aclnn function may take its values instead of a tensor.
    by_value: bool = False


@dataclass(frozen=True, slots=True)
class PrebuiltOperator:
    """Operator of a package that CANN built, for one SoC."""

    package: Path
    prototype: OpPrototype
    #: Name of the SoC in the package's configuration: ``ascend910b``.
    soc: str
    inputs: tuple[PrebuiltParameter, ...]
    outputs: tuple[PrebuiltParameter, ...]
    #: Source of its kernel, and the directory with all that the source includes.
    kernel: Path
    sources: Path
    #: Name of the kernel function.
    interface: str
    #: Library with its tiling function, and the one with its InferShape function.
    tiling_library: Path
    shape_library: Path | None
    #: Bytes of tiling data that its binary kernels take; 0 if no description of them says so.
    tiling_bytes: int


def find_operator(package: Path, op_type: str, soc: str) -> PrebuiltOperator:
    """Return an operator of a package.

    Args:
        package: The package's directory.
        op_type: The operator.
        soc: The SoC in the configuration's spelling, ``ascend910b``.

    Raises:
        OperatorPackageError: The package is for other SoCs or another machine, lacks the operator, or has its kernel as a
            binary alone.
    """
    found = _configuration(package, op_type, soc)
    stem = str(found.get("opFile", {}).get("value") or "")
    kernel, sources = _kernel_source(package, op_type, stem)
    return PrebuiltOperator(
        package,
        package_prototype(package, op_type),
        soc,
        _parameters(found, "input"),
        _parameters(found, "output"),
        kernel,
        sources,
        str(found.get("opInterface", {}).get("value") or stem),
        _tiling_library(package, op_type),
        prototype_library(package),
        _tiling_bytes(package, op_type, soc),
    )


def check_includes(operator: PrebuiltOperator) -> tuple[Path, ...]:
    """Return the files of the kernel's source: the source itself and the package's files that it includes.

    Raises:
        OperatorPackageError: The source includes files that neither the package nor the toolkit has; the message names them.
    """
    seen, left, missing = [operator.kernel], [operator.kernel], set()
    while left:
        path = left.pop()
        for name, is_certain in _includes(path.read_text(errors="replace")):
            included = _included(operator, path, name)
            if included is None and (name.startswith("../") or (is_certain and not _is_in_toolkit(name))):
                missing.add(name)
            elif included is not None and included not in seen:
                seen.append(included)
                left.append(included)
    if missing:
        raise OperatorPackageError(
            f"{operator.prototype.op_type}: the source of its kernel includes {', '.join(sorted(missing))}, which neither "
            f"{operator.package} nor the toolkit has, and its binaries are for a device. {_INSTEAD}"
        )
    return tuple(seen)


def _includes(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the included names of a source, each with True if no #if or #ifdef decides about it."""
    depth = 0
    for include, name, conditional in _DIRECTIVE.findall(text):
        if include:
            yield name, depth <= 0
        else:
            depth += -1 if conditional == "endif" else 1


def _included(operator: PrebuiltOperator, path: Path, name: str) -> Path | None:
    """Return the package's file that an #include in a file of the kernel means."""
    for directory in (path.parent, operator.kernel.parent, operator.sources):
        included = Path(os.path.normpath(directory / name))
        if included.is_file() and included.is_relative_to(operator.sources):
            return included
    return None


def _is_in_toolkit(name: str) -> bool:
    """Return True for a header of the toolkit."""
    return any((toolkit_directory() / place / name).is_file() for place in ("include", "compiler/tikcpp/tikcfw"))


def _configuration(package: Path, op_type: str, soc: str) -> Mapping[str, Any]:
    """Return what the package's configuration for a SoC says of an operator."""
    root = package / _TBE / "config"
    files = sorted((root / soc).glob("*ops-info.json"))
    if not files:
        known = ", ".join(sorted(path.name for path in root.glob("*") if path.is_dir())) or "no SoC"
        raise OperatorPackageError(
            f"{op_type}: {package} has no kernels for {soc}; it has them for {known}. Install the package for {soc}, or select "
            f"another SoC with ASCEND_GRAPH_HOST_SOC"
        )
    operators: dict[str, Any] = {}
    for file in files:
        try:
            operators |= json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise OperatorPackageError(
                f"{file}: is not readable as a description of operators: {error}. Install the package again"
            ) from error
    if op_type not in operators:
        raise OperatorPackageError(
            f"{op_type}: {package} does not list it for {soc}; expected one of {', '.join(sorted(operators))}"
        )
    found: Mapping[str, Any] = operators[op_type]
    return found


def _parameters(found: Mapping[str, Any], side: str) -> tuple[PrebuiltParameter, ...]:
    parameters: list[PrebuiltParameter] = []
    while (one := found.get(f"{side}{len(parameters)}")) is not None:
        try:
            dtypes = tuple(_DTYPES[text.strip()] for text in one["dtype"].split(","))
        except KeyError as error:
            raise OperatorPackageError(
                f"{one.get('name')}: the dtype {error} in the package's configuration is not known; expected one of "
                f"{', '.join(sorted(_DTYPES))}"
            ) from None
        formats = tuple(text.strip() for text in one.get("format", "").split(",") if text.strip())
        kind = "dynamic" if one["paramType"] == "dynamic" else one["paramType"]
        parameters.append(PrebuiltParameter(one["name"], kind, dtypes, formats, "valueDepend" in one))
    return tuple(parameters)


def _kernel_source(package: Path, op_type: str, stem: str) -> tuple[Path, Path]:
    """Return the source of an operator's kernel, and the directory of all sources."""
    for sources in sorted((package / _TBE).glob("*_impl")):
        found = sorted(sources.rglob(f"{stem}.cpp"), key=lambda path: (len(path.parts), path))
        if found:
            return found[0], sources
    binaries = sum(1 for _ in (package / _TBE / "kernel").rglob("*.o"))
    raise OperatorPackageError(
        f"{op_type}: {package} does not carry the source of its kernel ({_TBE}/*_impl/…/{stem}.cpp)"
        + (f", only {binaries} binaries for a device, which cannot run on the host" if binaries else "")
        + f". {_INSTEAD}"
    )


def _tiling_library(package: Path, op_type: str) -> Path:
    """Return the library of tiling functions for this machine."""
    directory = package / _TBE / "op_tiling"
    libraries = sorted((directory / "lib/linux" / platform.machine()).glob("*.so"))
    libraries += [path for path in (directory / "liboptiling.so",) if path.is_file()]
    if libraries:
        return libraries[0]
    others = ", ".join(sorted(path.name for path in (directory / "lib/linux").glob("*")))
    raise OperatorPackageError(
        f"{op_type}: {package} has no library of tiling functions for {platform.machine()}"
        + (
            f"; it has one for {others}. Install the package for this machine"
            if others
            else "; build it for this machine"
        )
    )


def _tiling_bytes(package: Path, op_type: str, soc: str) -> int:
    """Return how many bytes of tiling data the descriptions of an operator's binaries name at most."""
    most = 0
    for file in (package / _TBE / "kernel" / soc).rglob(f"{op_type}_*.json"):
        try:
            size = json.loads(file.read_text()).get("opParaSize")
        except (OSError, ValueError):
            continue
        most = max(most, size) if isinstance(size, int) else most
    return most

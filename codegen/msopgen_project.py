"""Program ``msopgen``: an operator project from a description in JSON, with the files and names of CANN's msOpGen.

``op_host/<op>.cpp`` (definition, tiling and shapes), ``op_host/<op>_tiling.h`` and ``op_kernel/<op>.cpp`` are drafts:
an author writes them, or copies finished ones over them. The build files call the CMake functions of CANN.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.dtype_combinations import listed_combinations
from ascend_graph.codegen.op_project import presets
from ascend_graph.codegen.rendering import GenerationError, identifier, render, write_if_different

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype
from ascend_graph.prototypes.msopgen import parse_msopgen
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.prototypes.writer import default_text
from ascend_graph.sources.text import read_source

#: Framework of each option. Plugins for its models are drafts that a device's tools build; operators do not need them.
_FRAMEWORKS = {
    "tf": "tensorflow", "tensorflow": "tensorflow", "caffe": "caffe", "onnx": "onnx", "pytorch": "", "aclnn": "",
}  # fmt: skip
#: Names in AddConfig of the SoCs whose names begin so, the longest first.
_CONFIGS = (
    ("ascend910_95", "ascend950"), ("ascend910_93", "ascend910_93"), ("ascend910b", "ascend910b"), ("ascend310p", "ascend310p"),
    ("ascend310b", "ascend310b"), ("ascend950", "ascend950"), ("ascend910", "ascend910"), ("ascend310", "ascend310"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MsopgenProject:
    """Project made by :func:`generate_msopgen_project`.

    Attributes:
        directory: The project.
        operators: Its operators, by their op types.
        drafts: Files that the author has to write.
        kept: Existing files of an author, which were left as they are.
    """

    directory: Path
    operators: tuple[str, ...]
    drafts: tuple[Path, ...]
    kept: tuple[Path, ...]


def soc_config(unit: str) -> str:
    """Return AddConfig's name of the SoC of a compute unit.

    >>> soc_config("ai_core-Ascend910B1"), soc_config("ai_core-ascend310p"), soc_config("ai_core-Ascend910A")
    ('ascend910b', 'ascend310p', 'ascend910')

    Raises:
        GenerationError: It is not the name of an SoC.
    """
    name = unit.removeprefix("ai_core-").lower()
    # Ascend910B without a number is a chip of the first Ascend 910, but ascend910b what AddConfig calls an Atlas A2.
    if unit.endswith("-Ascend910B"):
        return "ascend910"
    for beginning, config in _CONFIGS:
        if name.startswith(beginning):
            return config
    raise GenerationError(f"-c {unit}: not a compute unit; expected ai_core-<chip>. Write ai_core-Ascend910B1")


def generate_msopgen_project(
    description: Path, directory: Path, units: Sequence[str], *, framework: str = "", operator: str = ""
) -> MsopgenProject:
    """Write an operator project with the operators of a description; existing files of an author are kept.

    Args:
        description: JSON with ``op``, ``input_desc``, ``output_desc`` and ``attr``.
        directory: The project, created if needed.
        units: Compute units, ``ai_core-Ascend910B1``.
        framework: With ``aclnn`` the build makes a library instead of an installer.
        operator: The only operator of the description to take; all by default.

    Raises:
        GenerationError: The description is malformed, or has a part that no project can have.
    """
    if framework and framework not in _FRAMEWORKS:
        raise GenerationError(
            f"-f {framework}: not a framework with operator projects in C++; expected {', '.join(_FRAMEWORKS)}"
        )
    socs = list(dict.fromkeys(map(soc_config, units)))
    prototypes = [one for one in _read(description) if not operator or one.op_type == operator]
    if not prototypes:
        raise GenerationError(
            f'{description}: it has no operator {operator or "at all"}; expected a list of {{"op": …}}'
        )
    is_library = framework == "aclnn"
    generated = {
        "CMakeLists.txt": render("msopgen_project/CMakeLists.txt.jinja", is_library=is_library),
        "CMakePresets.json": presets(socs, "customize"),
        "build.sh": render("msopgen_project/build.sh.jinja", is_library=is_library),
        "op_host/CMakeLists.txt": render("op_project/op_host.txt.jinja"),
        "op_kernel/CMakeLists.txt": render("op_project/op_kernel.txt.jinja", operators=list(map(_kernel, prototypes))),
    }
    drafts = {path: text for one in prototypes for path, text in _drafts(one, socs).items()}
    kept = tuple(Path(path) for path in drafts if (directory / path).exists())
    new = tuple(Path(path) for path in drafts if Path(path) not in kept)
    for path, text in {**generated, **drafts}.items():
        if Path(path) not in kept:
            write_if_different(directory / path, text)
    (directory / "build.sh").chmod(0o755)
    if plugin := _FRAMEWORKS.get(framework):
        print(f"msopgen: framework plugins ({plugin}) are left out: ascend_graph does not read models", file=sys.stderr)
    return MsopgenProject(directory, tuple(one.op_type for one in prototypes), new, kept)


def _read(description: Path) -> tuple[OpPrototype, ...]:
    if not description.is_file():
        raise GenerationError(f"-i {description}: file not found; expected the JSON of an operator")
    found = parse_msopgen(read_source(description))
    errors = [str(error) for error in found.errors]
    if errors:
        raise GenerationError("\n".join(errors))
    return found.prototypes


def _kernel(prototype: OpPrototype) -> dict[str, str]:
    return {"op_type": identifier(prototype.op_type), "name": snake_case(prototype.op_type), "kernel_file": ""}


def _drafts(prototype: OpPrototype, socs: Sequence[str]) -> dict[str, str]:
    """Return the author's files of one operator."""
    rows = listed_combinations(prototype)
    sides = [("Input", p) for p in prototype.inputs] + [("Output", p) for p in prototype.outputs]
    name = snake_case(prototype.op_type)
    inputs = {p.name for p in prototype.inputs}
    values: dict[str, Any] = {
        "op": prototype,
        "name": name,
        "socs": socs,
        "formats": ", ".join(["ge::FORMAT_ND"] * len(rows)),
        "parameters": [
            (side, identifier(p.name), p.kind.name, ", ".join(f"ge::{row[index].ge_name}" for row in rows))
            for index, (side, p) in enumerate(sides)
        ],
        "attrs": [
            (
                identifier(a.name),
                "REQUIRED" if a.required else "OPTIONAL",
                a.type.value,
                "" if a.required else default_text(a),
            )
            for a in prototype.attrs
        ],
        "arguments": [f"{p.name}_out" if side == "Output" and p.name in inputs else p.name for side, p in sides],
    }
    files = {
        f"op_host/{name}.cpp": "op_host.cpp",
        f"op_host/{name}_tiling.h": "tiling.h",
        f"op_kernel/{name}.cpp": "kernel.cpp",
    }
    return {path: render(f"msopgen_project/{template}.jinja", **values) for path, template in files.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program ``msopgen``; return its status."""
    parser = argparse.ArgumentParser(prog="msopgen", description="Make an operator project of a description in JSON.")
    generate = parser.add_subparsers(dest="command", required=True).add_parser(
        "gen", help="make a project", allow_abbrev=False
    )
    generate.add_argument("-i", "--input", required=True, type=Path, help="the description")
    generate.add_argument("-f", "--framework", default="", help=f"one of {', '.join(_FRAMEWORKS)}")
    generate.add_argument("-c", "--compute_unit", required=True, help="ai_core-Ascend910B1, several with commas")
    generate.add_argument("-lan", "--language", default="py", help="cpp: kernels in Ascend C")
    generate.add_argument("-out", "--output", type=Path, default=Path(), help="the project's directory (.)")
    generate.add_argument("-m", "--mode", choices=("0", "1"), default="0", help="1 adds an operator to a project")
    generate.add_argument("-op", "--operator", default="", help="the one operator of the description to take")
    options = parser.parse_args(arguments)
    try:
        if options.language != "cpp":
            raise GenerationError(
                f"-lan {options.language}: kernels in TBE are not supported; expected cpp. Write -lan cpp"
            )
        units = [unit for unit in re.split(r"[,;]", options.compute_unit) if unit]
        made = generate_msopgen_project(
            options.input, options.output, units, framework=options.framework.lower(), operator=options.operator
        )
    except AscendGraphError as error:
        print(f"msopgen: {error}", file=sys.stderr)
        return 1
    kept = f"; kept as they are: {', '.join(map(str, made.kept))}" if made.kept else ""
    drafts = f"; yours to write: {', '.join(map(str, made.drafts))}" if made.drafts else ""
    print(f"msopgen (ascend_graph): {made.directory}: {', '.join(made.operators)}{kept}{drafts}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

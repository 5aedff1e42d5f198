"""The table of the Ascend C API that the headers define, generated from the headers.

``python -m ascend_graph.host.ascendc.coverage`` prints it; docs/ascendc.md holds it between two marks, and
``--write docs/ascendc.md`` renews it there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.toolkit import toolkit_directory

BEGIN = "<!-- begin of the generated table -->"
END = "<!-- end of the generated table -->"


class CoverageError(AscendGraphError):
    """A document has no place for the table."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the API: a function with its number of overloads, a class, or a macro."""

    name: str
    kind: str
    header: str
    forms: int


_GROUPS = {
    "antiquantization.h": "Dequantisation of integers by groups",
    "arithmetic.h": "Vector arithmetic, moves and fills",
    "beneath.h": "Beneath the API: functions on plain addresses",
    "broadcast.h": "Broadcast to shapes that are known as the kernel runs (dav-3510)",
    "cast.h": "Type conversion",
    "compare.h": "Comparison and selection",
    "copy.h": "Copies between memories",
    "copy_dimensions.h": "Copies along several dimensions (dav-3510)",
    "copy_pad.h": "Copies of any number of bytes, and loops around them",
    "cube.h": "Cube unit",
    "debug.h": "Output and assertions",
    "dropout.h": "Dropout",
    "elements.h": "What numbers are, logic, bits and limits (dav-3510)",
    "feature_map.h": "Convolutions",
    "fused_cast.h": "Conversions of sums and products, and by a scale",
    "lanes.h": "Masks and repeats",
    "list.h": "Lists of tensors",
    "math.h": "Mathematics and activations",
    "matmul_config.h": "Configurations of Matmul",
    "matmul_intf.h": "Matmul object",
    "normalization.h": "Normalisations and running sums",
    "pad.h": "Padding",
    "patterns.h": "Reductions by a pattern of dimensions",
    "pipe.h": "Pipes, queues and buffers",
    "quantization.h": "Dequantisation",
    "reduce.h": "Reductions",
    "reshape.h": "Gather, scatter and transposition",
    "scalar.h": "Scalars and global memory",
    "softmax.h": "Softmax",
    "sort.h": "Sorting",
    "sparse.h": "Products with half of a matrix",
    "sync.h": "Blocks and synchronisation",
    "copies.h": "Registers: aligned copies (`AscendC::Reg`, dav-3510)",
    "scattered.h": "Registers: unaligned copies, and copies by indices",
    "masks.h": "Registers: masks",
    "calculate.h": "Registers: arithmetic, logic, comparison, selection",
    "rearrange.h": "Registers: filling, conversion, order, reductions",
    "functions.h": "Registers: vector functions",
    "threads.h": "Threads: their launch, places and barriers (dav-3510)",
    "warps.h": "Threads: warps",
    "memory.h": "Threads: atomic operations, loads and stores",
    "tensor.h": "Tensors",
    "tiling.h": "Tiling data in kernels",
    "tilingdef.h": "Tiling structures",
    "welford.h": "Mean and variance of blocks (Welford)",
}
# Parameter structures and enumerations come with the functions that take them.
_CLASSES = frozenset(
    {
        "LocalTensor",
        "GlobalTensor",
        "ShapeInfo",
        "TensorDesc",
        "ListTensorDesc",
        "TPipe",
        "TQue",
        "TQueBind",
        "TBuf",
        "TBufPool",
        "LocalMemAllocator",
        "TQueSync",
        "Mutex",
        "MatmulImpl",
    }
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"^(?:[A-Za-z_][\w:<>,\s*&]*?[\s*&])(?P<name>[A-Z]\w*|printf|asc_\w+|laneid)\(", re.MULTILINE)
_FAMILY = re.compile(r"^ASCENDC_(?P<family>\w+)\((?P<arguments>[^)]*)\)", re.MULTILINE)
_FAMILY_BODY = re.compile(
    r"^#define ASCENDC_(?P<family>\w+)\((?P<parameters>[^)]*)\).*?(?P<body>(?:\\\n.*?)*)$", re.MULTILINE
)
_MACRO = re.compile(r"^#define (?P<name>[A-Z][A-Z_]+|ascendc_assert)(?:\(| )", re.MULTILINE)


def _public(text: str) -> str:
    """``text`` without comments, preprocessor lines, and what lies in ``namespace detail`` or inside braces."""
    kept: list[str] = []
    depth = 0
    hidden: int | None = None
    for line in _COMMENT.sub("", text).splitlines():
        opens = line.count("{") - line.count("}")
        namespace = re.match(r"namespace (\w+)", line)
        if namespace is not None and namespace[1] in ("detail", "ascendc_host") and hidden is None:
            hidden = depth
        inside = depth > 0 if namespace is None else False
        if hidden is None and not inside and not line.startswith(("#", " ")):
            kept.append(line)
        if namespace is None or (namespace is not None and hidden is not None):
            depth += opens
        if hidden is not None and depth <= hidden:
            hidden = None
            depth = max(depth, 0)
        depth = max(depth, 0)
    return "\n".join(kept)


def entries(root: Path | None = None) -> list[Entry]:
    """All names of the API in the headers below ``root``, by header and name."""
    include = root or toolkit_directory() / "include"
    found: dict[tuple[str, str], Entry] = {}
    paths = [
        *sorted((include / "ascendc_host").glob("*.h")),
        *sorted((include / "ascendc_host/reg").glob("*.h")),
        *sorted((include / "ascendc_host/simt").glob("*.h")),
        include / "lib/matmul_intf.h",
        include / "register/tilingdef.h",
    ]

    def add(name: str, kind: str, header: str, forms: int = 1) -> None:
        key = (header, name)
        before = found[key].forms if key in found else 0
        found[key] = Entry(name, kind, header, before + forms)

    for path in paths:
        if path.name not in _GROUPS:
            continue
        text = path.read_text(encoding="utf-8")
        families: dict[str, list[int]] = {}
        for body in _FAMILY_BODY.finditer(text):
            parameters = body["parameters"].split(",")
            families[body["family"]] = [
                len(re.findall(rf"(?<=[\w>])(?<!return) {parameter.strip()}\(", body["body"]))
                for parameter in parameters
            ]
            if not any(families[body["family"]]):  # a family of masks: the functions are named in its body
                used = len(re.findall(rf"^ASCENDC_{body['family']}\(", text, re.MULTILINE))
                for name in re.findall(r"\bvoid ([A-Z]\w*)\(", body["body"]):
                    add(name, "function", path.name, used)
        for use in _FAMILY.finditer(text):
            for name, forms in zip(use["arguments"].split(","), families.get(use["family"], []), strict=False):
                if forms > 0 and name.strip().isidentifier():
                    add(name.strip(), "function", path.name, forms)
        public = _public(text)
        for function in _FUNCTION.finditer(public):
            add(function["name"], "function", path.name)
        for name in re.findall(r"^class (\w+)|^struct (ShapeInfo)\b", _COMMENT.sub("", text), re.MULTILINE):
            if (chosen := name[0] or name[1]) in _CLASSES and (path.name, chosen) not in found:
                add(chosen, "class", path.name)
        for macro in _MACRO.finditer(text):
            if not macro["name"].startswith(("ASCENDC_HOST", "LIB_", "ASCENDC_")) or macro["name"] == "ASCENDC_ASSERT":
                add(macro["name"], "macro", path.name)
    return sorted(found.values(), key=lambda entry: (list(_GROUPS).index(entry.header), entry.name.lower()))


def tested(names: Iterable[str], sources: Iterable[Path]) -> set[str]:
    """Those of ``names`` that appear in the kernels of ``sources``."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", text))
    return {name for name in names if name in words}


def table(all_entries: Iterable[Entry]) -> str:
    """The entries as one Markdown table for each group."""
    lines: list[str] = []
    group = None
    for entry in all_entries:
        if entry.header != group:
            group = entry.header
            lines += ["", f"### {_GROUPS[group]}", "", "| name | kind | forms |", "|---|---|---|"]
        lines.append(f"| `{entry.name}` | {entry.kind} | {entry.forms} |")
    return "\n".join(lines).strip() + "\n"


def renew(document: Path) -> bool:
    """Writes the table between the marks of ``document``; returns whether that changed it.

    Raises CoverageError when the marks are missing.
    """
    text = document.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise CoverageError(f"{document}: no place for the table; it needs the lines {BEGIN!r} and {END!r}")
    new = f"{text[: begin + len(BEGIN)]}\n\n{table(entries())}\n{text[end:]}"
    if new == text:
        return False
    document.write_text(new, encoding="utf-8")
    return True


def main(arguments: list[str]) -> None:
    """Prints the table, or renews it in a document with ``--write DOCUMENT``."""
    if arguments[:1] == ["--write"] and len(arguments) == 2:
        renew(Path(arguments[1]))
    else:
        print(table(entries()), end="")


if __name__ == "__main__":
    main(sys.argv[1:])

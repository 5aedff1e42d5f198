"""Tables of the Ascend C API, generated from the headers that define it.

The pages docs/ascendc/api-*.md contain them between two marks: ``python -m benchmarks._kernel_api --write`` updates them there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ascend_graph.environment import toolkit_directory
from ascend_graph.errors import AscendGraphError

BEGIN = "<!-- begin of the generated table -->"
END = "<!-- end of the generated table -->"
DOCUMENTS = Path(__file__).resolve().parents[1] / "docs/ascendc"
#: Directories of headers by the page that lists their names.
PAGES = {
    "api-basic.md": ("basic_api/",),
    "api-advanced.md": ("adv_api/",),
    "api-registers.md": ("reg_compute/", "simt_api/"),
    "api-support.md": ("utils/", "internal/", "register/"),
}
_COLUMNS = 3


class CoverageError(AscendGraphError):
    """Document without the marks for the table."""


@dataclass(frozen=True, slots=True)
class ApiEntry:
    """Name in the API: a function with its number of overloads, a class, or a macro."""

    name: str
    kind: str
    header: str
    forms: int


#: Title of each header's table, in the order of the document.
_GROUPS = {
    "basic_api/arithmetic.h": "Vector arithmetic, moves and fills",
    "basic_api/atomic.h": "Atomic operations of scalars (dav-3510)",
    "basic_api/cast.h": "Type conversion",
    "basic_api/fused_cast.h": "Conversions of sums and products, and by a scale",
    "basic_api/compare.h": "Comparison and selection",
    "basic_api/copy.h": "Copies between memories",
    "basic_api/copy_dimensions.h": "Copies along several dimensions (dav-3510)",
    "basic_api/copy_pad.h": "Copies of any number of bytes, and loops around them",
    "basic_api/cube.h": "Cube unit",
    "basic_api/cube_dav3510.h": "Cube unit of dav-3510",
    "basic_api/feature_map.h": "Convolutions",
    "basic_api/sparse.h": "Matmul with half of a matrix",
    "basic_api/limits.h": "Limits of types",
    "basic_api/list.h": "Lists of tensors",
    "basic_api/mask.h": "Masks and repeats",
    "basic_api/pipe.h": "Pipes, queues and buffers",
    "basic_api/reduce.h": "Reductions",
    "basic_api/reshape.h": "Gather, scatter and transposition",
    "basic_api/scalar.h": "Scalars and global memory",
    "basic_api/sort.h": "Sorting of 32 elements, and merges",
    "basic_api/sync.h": "Blocks and synchronization",
    "basic_api/tensor.h": "Tensors",
    "basic_api/tiling.h": "Tiling data in kernels",
    "adv_api/activation/activation.h": "Activations",
    "adv_api/activation/softmax.h": "Softmax",
    "adv_api/filter/dropout.h": "Dropout",
    "adv_api/index/arithprogression.h": "Arithmetic progressions",
    "adv_api/math/math.h": "Mathematics",
    "adv_api/math/cumsum.h": "Running sums",
    "adv_api/math/elements.h": "Number classes, logic, bits and limits (dav-3510)",
    "adv_api/matmul/config.h": "Configurations of Matmul",
    "adv_api/matmul/matmul_impl.h": "Matmul object",
    "adv_api/matmul/client.h": "Matmul object of kernels with vector cores: several matrices at once",
    "adv_api/matmul/matmul.h": "Registration of Matmul objects",
    "adv_api/normalization/normalization.h": "Normalizations",
    "adv_api/normalization/welford.h": "Mean and variance of blocks (Welford)",
    "adv_api/pad/broadcast.h": "Broadcast",
    "adv_api/pad/pad.h": "Padding",
    "adv_api/quantization/antiquantization.h": "Dequantization of integers by groups",
    "adv_api/quantization/quantization.h": "Dequantization",
    "adv_api/reduce/reduce.h": "Reductions of rows",
    "adv_api/reduce/reduce_pattern.h": "Reductions by a pattern of dimensions",
    "adv_api/select/select.h": "Selection by bytes",
    "adv_api/sort/sort.h": "Sorting",
    "adv_api/transpose/confusion_transpose.h": "Transposition by a tiling",
    "reg_compute/load_store.h": "Registers: aligned copies (`AscendC::Reg`, dav-3510)",
    "reg_compute/scattered.h": "Registers: unaligned copies, and copies by indices",
    "reg_compute/masks.h": "Registers: masks",
    "reg_compute/calculate.h": "Registers: arithmetic, logic, comparison, selection",
    "reg_compute/rearrange.h": "Registers: filling, conversion, order, reductions",
    "reg_compute/functions.h": "Registers: vector functions",
    "simt_api/threads.h": "Threads: their launch, places and barriers (dav-3510)",
    "simt_api/warps.h": "Threads: warps",
    "simt_api/memory.h": "Threads: atomic operations, loads and stores",
    "simt_api/older_names.h": "Threads: functions of numbers and of warps by their older names (`AscendC::Simt`)",
    "utils/debug.h": "Output and assertions",
    "internal/impl_functions.h": "Functions on plain addresses, under the API",
    "register/tilingdef.h": "Tiling structures",
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
        "NumericLimits",
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
    """Return ``text`` without comments, preprocessor lines, ``namespace detail`` and code inside braces."""
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


def _families(text: str) -> dict[str, list[int]]:
    """Return for each macro that makes overloads the number of functions that each of its parameters names."""
    return {
        body["family"]: [
            len(re.findall(rf"(?<=[\w>])(?<!return) {parameter.strip()}\(", body["body"]))
            for parameter in body["parameters"].split(",")
        ]
        for body in _FAMILY_BODY.finditer(text)
    }


def entries(root: Path | None = None) -> list[ApiEntry]:
    """Return all names of the API in the headers under ``root``, by header and name."""
    include = root or toolkit_directory() / "include"
    found: dict[tuple[str, str], ApiEntry] = {}
    headers = {header: include / "ascendc_host" / header for header in _GROUPS}
    headers["register/tilingdef.h"] = include / "register/tilingdef.h"
    texts = {header: path.read_text(encoding="utf-8") for header, path in headers.items() if path.is_file()}
    unary = include / "ascendc_host/internal/unary.h"
    shared = _families(unary.read_text(encoding="utf-8")) if unary.is_file() else {}

    def add(name: str, kind: str, header: str, forms: int = 1) -> None:
        key = (header, name)
        before = found[key].forms if key in found else 0
        found[key] = ApiEntry(name, kind, header, before + forms)

    for header, text in texts.items():
        families = shared | _families(text)
        for body in _FAMILY_BODY.finditer(text):
            if not any(families[body["family"]]):  # a family of masks: the functions are named in its body
                used = len(re.findall(rf"^ASCENDC_{body['family']}\(", text, re.MULTILINE))
                for name in re.findall(r"\bvoid ([A-Z]\w*)\(", body["body"]):
                    add(name, "function", header, used)
        for use in _FAMILY.finditer(text):
            for name, forms in zip(use["arguments"].split(","), families.get(use["family"], []), strict=False):
                if forms > 0 and name.strip().isidentifier():
                    add(name.strip(), "function", header, forms)
        public = _public(text)
        for function in _FUNCTION.finditer(public):
            add(function["name"], "function", header)
        for name in re.findall(
            r"^class (\w+)|^struct (ShapeInfo|NumericLimits)\b", _COMMENT.sub("", text), re.MULTILINE
        ):
            if (chosen := name[0] or name[1]) in _CLASSES and (header, chosen) not in found:
                add(chosen, "class", header)
        for macro in _MACRO.finditer(text):
            if not macro["name"].startswith(("ASCENDC_HOST", "LIB_", "ASCENDC_")) or macro["name"] == "ASCENDC_ASSERT":
                add(macro["name"], "macro", header)
    return sorted(found.values(), key=lambda entry: (list(_GROUPS).index(entry.header), entry.name.lower()))


def tested(names: Iterable[str], sources: Iterable[Path]) -> set[str]:
    """Return the ``names`` that appear in the kernels of ``sources``."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", text))
    return {name for name in names if name in words}


def table(all_entries: Iterable[ApiEntry]) -> str:
    """Return the entries as one Markdown table for each group, with three names in a row."""
    lines: list[str] = []
    for header, group in groupby(all_entries, key=lambda entry: entry.header):
        cells = [f"`{one.name}` | {one.forms if one.kind == 'function' else one.kind}" for one in group]
        lines += ["", f"## {_GROUPS[header]}", "", f"Header: `{header}`", ""]
        lines += ["| name | overloads " * _COLUMNS + "|", "|---|---" * _COLUMNS + "|"]
        for first in range(0, len(cells), _COLUMNS):
            row = cells[first : first + _COLUMNS]
            lines.append(f"| {' | '.join([*row, *[' | '] * (_COLUMNS - len(row))])} |")
    return "\n".join(lines).strip() + "\n"


def renew(document: Path) -> bool:
    """Write the table between the marks of ``document``; return whether that changed it.

    Raises CoverageError if the marks are missing.
    """
    text = document.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise CoverageError(f"{document}: no place for the table; it needs the lines {BEGIN!r} and {END!r}")
    kept = [entry for entry in entries() if entry.header.startswith(PAGES[document.name])]
    new = f"{text[: begin + len(BEGIN)]}\n\n{table(kept)}\n{text[end:]}"
    if new == text:
        return False
    document.write_text(new, encoding="utf-8")
    return True


def main(arguments: list[str]) -> None:
    """Print the table, or update the pages with ``--write``."""
    if arguments == ["--write"]:
        for name in PAGES:
            renew(DOCUMENTS / name)
    else:
        print(table(entries()), end="")


if __name__ == "__main__":
    main(sys.argv[1:])

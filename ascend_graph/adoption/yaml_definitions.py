"""Operators that op-plugin's YAML files define: ``- func:``, with what their generated kernels allocate and call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ascend_graph.adoption.cpp.functions import CppFunction, CppParameter, split
from ascend_graph.adoption.model import Definition, Findings, Implementation, SourcePlace, relative
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema

#: Namespace of torch_npu's own operators.
_NAMESPACE = "npu"
_USEFUL = re.compile(rb"^\s*-\s*func\s*:", re.MULTILINE)
#: Files of gradients, which the generated library registers.
_BACKWARD = re.compile(rb"^backward\s*:", re.MULTILINE)
_DIFFERENTIATED = re.compile(r"\s*-\s*name\s*:\s*['\"]?(\w+)(?:\.\w+)?\(")
_FUNC = re.compile(r"(?P<indent>\s*)-\s*func\s*:\s*(?P<text>.*?)\s*\Z")
_KEY = re.compile(r"(?P<indent>\s*)(?P<key>[\w ,]+?)\s*:(?:\s+(?P<value>.*?))?\s*\Z")
_SECTION = re.compile(r"(\w+)\s*:\s*\Z")
#: op-plugin's generator registers an argument of this name as ``input``, unless it has a default.
_SELF = re.compile(r"\bself\b(?=[,)])")
#: Name of a kernel that is made of ``gen_opapi``.
_STRUCTURED = "gen_opapi"
_MAX_BYTES = 4 << 20

Entry = dict[str, "str | Entry"]


def read_yaml(paths: Iterable[Path], root: Path, findings: Findings) -> None:
    """Read the operators of YAML files into ``findings``; report schemas that cannot be read."""
    stated: set[str] = set()
    for path in paths:
        if path.suffix not in (".yaml", ".yml"):
            continue
        try:
            data = path.read_bytes()
        except OSError as error:
            findings.report(
                SourcePlace(relative(path, root), 1),
                f"cannot be read: {error.strerror or error}; make the file readable, or leave it out",
            )
            continue
        if len(data) <= _MAX_BYTES and _USEFUL.search(data) and b"op_api" in data:
            for line, text, entry in _entries(data.decode("utf-8", "replace").splitlines()):
                stated.add(_define(SourcePlace(relative(path, root), line), text, entry, findings))
        elif len(data) <= _MAX_BYTES and _BACKWARD.search(data):
            for line, text in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                if (found := _DIFFERENTIATED.match(text)) is not None:
                    place = SourcePlace(relative(path, root), line)
                    findings.gradients.setdefault(f"{_NAMESPACE}::{found[1]}", place)
    _leave_out_generated(stated, findings)


def _leave_out_generated(stated: set[str], findings: Findings) -> None:
    """Leave out what op-plugin's generator made of YAML files that are here: its C++, and its copies of the YAML."""
    found = [one for one in findings.implementations if _is_yaml(one.place) and one.function is not None]
    defined = {one.schema.qualified_name for one in findings.definitions if _is_yaml(one.place)}
    kernels = {one.name for one in found} | (stated - defined)
    structured = {one.name: one.place for one in found if one.written == _STRUCTURED}
    schemas = {
        one.schema.qualified_name: one.schema.arguments
        for one in findings.definitions
        if one.place == structured.get(one.schema.qualified_name)
    }

    def is_source(one: Definition) -> bool:
        name = one.schema.qualified_name
        if name not in stated or one.place == structured.get(name):
            return True
        return _is_yaml(one.place) and schemas.get(name) != one.schema.arguments

    findings.definitions[:] = [one for one in findings.definitions if is_source(one)]
    findings.implementations[:] = [
        one
        for one in findings.implementations
        if one.key != "PrivateUse1"
        or one.name not in kernels
        or (_is_yaml(one.place) and (one.written == _STRUCTURED or one.name not in structured))
    ]


def _is_yaml(place: SourcePlace) -> bool:
    return place.file.endswith((".yaml", ".yml"))


def _entries(lines: list[str]) -> Iterator[tuple[int, str, Entry]]:
    """Yield line, schema and keys of each operator of the section ``custom``."""
    section = ""
    number = 0
    while number < len(lines):
        line = _without_comment(lines[number])
        number += 1
        found = _SECTION.match(line)
        section = found[1] if found else section
        start = _FUNC.match(line)
        if start is None or section != "custom":
            continue
        first, indent = number, len(start["indent"])
        inner = []
        while number < len(lines):
            following = _without_comment(lines[number])
            if following.strip() and len(following) - len(following.lstrip()) <= indent:
                break
            inner.append(following)
            number += 1
        yield first, _plain(start["text"]), _read_keys(inner)


def _without_comment(line: str) -> str:
    return re.sub(r"(?:^|\s)#.*", "", line).rstrip()


def _plain(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _read_keys(lines: list[str]) -> Entry:
    """Return nested keys; what is neither a key nor a value is left out."""
    result: Entry = {}
    stack: list[tuple[int, Entry]] = [(-1, result)]
    for line in lines:
        match = _KEY.match(line)
        if match is None:
            continue
        indent = len(match["indent"])
        while stack[-1][0] >= indent:
            stack.pop()
        if match["value"]:
            stack[-1][1][match["key"]] = _plain(match["value"])
        else:
            inner: Entry = {}
            stack[-1][1][match["key"]] = inner
            stack.append((indent, inner))
    return result


def _define(place: SourcePlace, text: str, entry: Entry, findings: Findings) -> str:
    """Add an operator of the section ``custom``, and return its name; nothing is added for an ``out`` overload."""
    try:
        kernel, schema = parse_schema(text, _NAMESPACE), parse_schema(_SELF.sub("input", text), _NAMESPACE)
    except SchemaTextError as error:
        findings.report(place, str(error), text.partition("(")[0].strip())
        return ""
    if schema.name.partition("::")[0] != _NAMESPACE or schema.name.endswith("_out") or schema.overload == "out":
        if schema.overload:
            findings.more_overloads.add(schema.name)
        return schema.qualified_name
    findings.definitions.append(Definition(schema.name, schema, place))
    structured = entry.get(_STRUCTURED)
    function = None
    if isinstance(structured, dict):
        function = _generated(kernel, structured, place)
    if function is None:
        function = findings.function(f"op_api::{schema.name.partition('::')[2]}", "", len(schema.arguments))
    written = "" if function is None else function.name
    findings.implementations.append(Implementation(schema.qualified_name, "PrivateUse1", function, written, place))
    return schema.qualified_name


def _generated(schema: OpSchema, entry: Entry, place: SourcePlace) -> CppFunction | None:
    """Return the kernel that is generated of ``gen_opapi``, as C++; None if it inherits or is not understood."""
    executed, made_first = entry.get("exec"), entry.get("new_params", {})
    outputs = {name: one for name, one in entry.items() if name not in ("exec", "new_params")}
    returned = [one.alias_of for one in schema.returns if one.alias_of is not None] or [*outputs]
    if not isinstance(executed, str) or not isinstance(made_first, dict) or len(returned) != len(schema.returns):
        return None
    names = {one.name for one in schema.arguments}
    tensors = {one.name for one in schema.arguments if one.is_tensor}
    lines = [f"auto {name} = {value};" for name, value in made_first.items()]
    for name, one in outputs.items():
        if not isinstance(one, dict) or name not in returned or one.keys() - {"size", "dtype", "name"}:
            return None
        size, dtype = one.get("size"), one.get("dtype", one.get("size"))
        source = next((a.name for a in schema.arguments if a.is_tensor and not a.optional), "")
        if not isinstance(size, str) or not isinstance(dtype, str) or not source or name in names:
            return None
        shape = f"{size}.sizes()" if size in tensors else size
        kind = f"{dtype}.scalar_type()" if dtype in tensors else dtype
        lines.append(f"auto {name} = at::empty({shape}, {source}.options().dtype({kind}));")
    function, *given = split(executed)
    passed = given or [*(a.name for a in schema.arguments), *outputs]
    lines.append(f"EXEC_NPU_CMD({function}, {', '.join(passed)});")
    lines.append(f"return std::tie({', '.join(returned)});" if len(returned) > 1 else f"return {''.join(returned)};")
    parameters = tuple(CppParameter("const at::Tensor &" if a.is_tensor else "auto", a.name) for a in schema.arguments)
    return CppFunction(_STRUCTURED, "auto", parameters, "\n".join(lines), place.file, place.line, place.line)

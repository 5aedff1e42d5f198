"""Graphs that TorchAir dumps (``config.debug.graph_dump``), read as text without torch or protobuf."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ascend_graph.pictures.model import Graph, Node, PictureError, ordered, unique

#: Message in protobuf's text format: its fields, each with all its values.
Message = dict[str, list[Any]]

#: Suffixes of readable dumps.
SUFFIXES = (".pbtxt", ".txt")

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[\w.+-]+)|(?P<mark>[{}<>\[\]:,;])""", re.S
)
_META = re.compile(r"Tensor\(dtype=torch\.(\w+), shape=torch\.Size\(\[(.*?)\]\)")
_DTYPES = {"DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_BF16": "bfloat16"}


def read_message(text: str, what: str = "text") -> Message:
    """Parse a message in protobuf's text format.

    Raises:
        PictureError: The text does not have that format.
    """
    top: Message = {}
    stack, name, is_list = [top], "", False
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        value: Any
        if found["text"] is not None:
            value = _unescaped(found["text"])
        elif found["word"] is not None and (name or is_list):
            value = found["word"]
        elif found["word"] is not None:
            name = found["word"]
            continue
        else:
            mark = found["mark"]
            if mark in ("{", "<"):
                inner: Message = {}
                stack[-1].setdefault(name, []).append(inner)
                stack.append(inner)
                name = ""
            elif mark in ("}", ">"):
                if len(stack) == 1 or name:
                    wrong = "a name without a value" if name else f"a {mark} too many"
                    raise PictureError(
                        f"{what} is not protobuf text, which is expected: {wrong} at character {found.start()}"
                    )
                stack.pop()
                name = ""
            elif mark in ("[", "]"):
                is_list = mark == "["
                name = name if is_list else ""
            continue
        if not name:
            raise PictureError(
                f"{what} is not protobuf text, which is expected: a value without a name at character {found.start()}"
            )
        stack[-1].setdefault(name, []).append(value)
        name = name if is_list else ""
    if end != len(text) or len(stack) > 1 or name:
        raise PictureError(f"{what} is not protobuf text, which is expected, from character {end} on")
    return top


def _unescaped(token: str) -> str:
    try:
        return str(ast.literal_eval(token))
    except (SyntaxError, ValueError):
        return token[1:-1]


def read_dump(path: Path) -> Graph:
    """Read the GE graph from a TorchAir dump of type ``pbtxt`` or ``txt``.

    Raises:
        PictureError: The file cannot be read, or contains no graph.
    """
    try:
        message = read_message(path.read_text(encoding="utf-8", errors="replace"), str(path))
    except OSError as error:
        raise PictureError(f"{path} cannot be read: {error.strerror or error}. Name a readable dump") from None
    if "node" in message:
        nodes = [_of_pbtxt(node) for node in _messages(message, "node")]
    else:
        nodes = [_of_graph(op) for op in _messages(message, "op")]
    if not nodes:
        raise PictureError(
            f"{path} holds no graph: expected what config.debug.graph_dump.type = 'pbtxt' or 'txt' writes"
        )
    return Graph(ordered(unique(nodes)))


def dump_files(paths: Iterable[Path]) -> list[Path]:
    """Return the dump files among the given files and in the given directories, in order.

    Raises:
        PictureError: A path does not exist, or a directory has none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise PictureError(f"{path} does not exist: name a dump, a directory of dumps, or MODULE:NAME")
        inside = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise PictureError(f"{path} has no dump in it: expected a file that ends in {' or '.join(SUFFIXES)}")
        found += inside
    return found


def _messages(message: Message, name: str) -> Iterator[Message]:
    return (value for value in message.get(name, ()) if isinstance(value, dict))


def _first(message: Message, name: str, default: str = "") -> str:
    value = message.get(name, [default])[0]
    return value if isinstance(value, str) else default


def _attrs(message: Message) -> dict[str, Message]:
    return {_first(attr, "key"): next(_messages(attr, "value"), {}) for attr in _messages(message, "attr")}


def _of_pbtxt(node: Message) -> Node:
    """Convert a node of TensorBoard's format, in which tensor descriptions are protobuf texts in attrs."""
    attrs = _attrs(node)
    outputs = [read_message(_first(value, "s"), "an output") for key, value in attrs.items() if key.startswith("[o]")]
    return _node(_first(node, "name"), _first(node, "op"), node, outputs)


def _of_graph(op: Message) -> Node:
    """Convert a node of GE's own GraphDef."""
    return _node(_first(op, "name"), _first(op, "type"), op, list(_messages(op, "output_desc")))


def _node(name: str, type_: str, message: Message, outputs: list[Message]) -> Node:
    edges = [edge for edge in message.get("input", ()) if isinstance(edge, str) and edge]
    inputs = tuple(dict.fromkeys(edge.lstrip("^").rpartition(":")[0] or edge.lstrip("^") for edge in edges))
    made_from = next((text for description in outputs if (text := _text(description, "_fx_tensor_name"))), "")
    return Node(name, type_, inputs, tuple(map(_described, outputs)), made_from=_fx_node(made_from))


def _text(description: Message, name: str) -> str:
    return _first(_attrs(description).get(name, {}), "s")


def _fx_node(tensor: str) -> str:
    """Return the FX node of a tensor's name: ``relu`` for ``relu-aten.relu.default.OUTPUT.0``."""
    return tensor.partition("-")[0]


def _described(description: Message) -> str:
    meta = _META.search(_text(description, "_meta"))
    if meta is not None:
        return f"{meta[1]}[{meta[2]}]"
    dtype = _first(description, "dtype")
    name = _DTYPES.get(dtype, dtype.removeprefix("DT_").lower())
    shape = next(_messages(description, "shape"), None)
    return name if shape is None else f"{name}[{', '.join(map(str, shape.get('dim', ())))}]"

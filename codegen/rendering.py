"""Common parts of all generators: the Jinja2 environment, checks of names, literals, and writing files.

Names and texts in a prototype come from untrusted files. So a generator passes every name through ``identifier`` and
every other text through ``python_literal``, ``python_docstring`` or ``cpp_string``. The generated source then has only
names and literals, whatever the file contained.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.writer import quote

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class GenerationError(AscendGraphError):
    """Error of a request that cannot be generated; nothing was written."""


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Return the environment of all templates: undefined names are errors, blocks leave no blank lines."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, **values: Any) -> str:
    """Fill a template of codegen/templates."""
    return environment().get_template(template).render(**values)


def template(name: str) -> Path:
    """Return the file of a template."""
    return Path(__file__).parent / "templates" / name


def identifier(name: str) -> str:
    """Return ``name`` itself if it is an ASCII identifier.

    >>> identifier("AddCustom")
    'AddCustom'
    >>> identifier("x); import os")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    GenerationError: 'x); import os' is not an identifier: it may have ASCII letters, digits and _, and no digit first

    Raises:
        GenerationError: It is not an identifier.
    """
    if not _IDENTIFIER.match(name):
        raise GenerationError(
            f"{name!r} is not an identifier: it may have ASCII letters, digits and _, and no digit first"
        )
    return name


def cpp_name(prefix: str, name: str) -> str:
    """Return a C++ variable for a name of any language; the prefix sets it apart from keywords and a template's names.

    In a name that C++ would not take, all characters but ASCII letters and digits are written as code points. Different
    names give different variables.

    >>> cpp_name("input", "default"), cpp_name("dim", "größe"), cpp_name("attr", "a__b")
    ('input_default', 'dim_gr_u0000f6_u0000dfe', 'attr_a_u00005f_u00005fb')
    """
    plain = re.fullmatch(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*", name) and not re.search("_u[0-9a-f]{6}", f"_{name}")
    return f"{prefix}_{name if plain else re.sub(r'[^A-Za-z0-9]', lambda m: f'_u{ord(m.group()):06x}', name)}"


def python_literal(value: Any, data_type: str = "DataType") -> str:
    """Return an attr's default as a Python expression; ``data_type`` is the name of GE's dtype class there.

    >>> python_literal((1, 2.5, "a'b")), python_literal(DataType.BF16), python_literal(float("-inf"))
    ('(1, 2.5, "a\\'b")', 'DataType.DT_BF16', "float('-inf')")
    """
    if isinstance(value, DataType):
        return f"{data_type}.{value.ge_name}"
    if isinstance(value, tuple):
        items = ", ".join(python_literal(item, data_type) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124 - NaN
        return f"float({str(value)!r})"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    raise GenerationError(
        f"{value!r} is not a value of an attr; expected a number, a bool, a string, or a list of them"
    )


def python_docstring(text: str, indent: str = "    ") -> str:
    """Return a docstring literal with ``text`` as its value, apart from the indentation."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\r", "")
    if not escaped.replace("\n", "").isprintable():
        escaped = "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in escaped)
    if escaped.endswith('"'):
        escaped = f'{escaped[:-1]}\\"'
    lines = escaped.split("\n")
    body = "\n".join([lines[0], *(f"{indent}{line}".rstrip() for line in lines[1:])])
    return f'"""{body}\n{indent}"""' if len(lines) > 1 else f'"""{body}"""'


def cpp_string(text: str) -> str:
    """Return a C++ string literal."""
    return quote(text)


def write_if_different(path: Path, text: str | bytes) -> bool:
    """Write a generated file unless it already has that content, and return whether it was written.

    An unchanged file keeps its time stamp, so nothing that depends on it is rebuilt. The file is replaced atomically: a
    reader never sees half of it.
    """
    data = text.encode() if isinstance(text, str) else text
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise GenerationError(
            f"{path}: cannot be written: {error.strerror or error}. Give another directory, or make it writable"
        ) from error
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

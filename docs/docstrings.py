"""Docstrings as the site shows them: roles such as :func:`~package.name` become code, and so do examples."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:py:)?[a-z]+:`~?([^`]+)`")
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Markdown(griffe.Extension):
    """Rewrites the docstring of every object that is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """``:func:`x``` is ```x```; lines from ``>>>`` to the next empty one are a block."""
        if obj.docstring is not None:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = _EXAMPLE.sub(r"```python\n\g<0>\n```", text)

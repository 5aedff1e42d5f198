"""Arrays of integers that C++ declares, as Python syntax trees."""

from __future__ import annotations

import ast
import re

from ascend_graph.adoption.cpp.expressions import ARRAY, expression, unknown

#: Types of the items of an array that is followed.
_INTEGER = re.compile(
    r"(?:(?:static|const|constexpr|unsigned|signed|long|short|std\s*::\s*)\s*)*(?:u?int(?:\d+_t)?|long|short|size_t)?\s*"
)


def array_of(kind: str, text: str) -> ast.expr:
    """Return the value of ``int64_t n[2] = {1, 2}``, of what stands behind the first bracket."""
    match = re.fullmatch(r"(?P<count>[^\[\]]*)\]\s*(?:=\s*)?(?P<items>\{.*\})?\s*", text, re.DOTALL)
    if match is None or not _INTEGER.fullmatch(kind.strip()):
        return unknown()
    count = expression(match["count"]) if match["count"].strip() else ast.Constant(None)
    items = expression(match["items"]) if match["items"] else ast.Constant(None)
    return ast.Call(ast.Name(ARRAY), [count, items], [])

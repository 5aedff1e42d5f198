"""Types of schemas that the annotations of Python functions state, as torch reads them."""

from __future__ import annotations

import ast

_ANNOTATIONS = {
    "torch.Tensor": "Tensor", "Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "torch.dtype": "ScalarType", "torch.device": "Device", "torch.types.Number": "Scalar", "Number": "Scalar",
}  # fmt: skip


def annotation(node: ast.expr | None) -> str | None:
    """Return the schema's type of an annotation, or None."""
    if node is None:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [one for one in (node.left, node.right) if not is_none(one)]
        inner = annotation(sides[0]) if len(sides) == 1 else None
        return f"{inner}?" if inner and not inner.endswith("?") else None
    if isinstance(node, ast.Subscript):
        outer = last_name(node.value)
        if outer == "Optional":
            inner = annotation(node.slice)
            return f"{inner}?" if inner and not inner.endswith("?") else None
        if outer in ("List", "list", "Sequence"):
            inner = annotation(node.slice)
            return f"{inner}[]" if inner and not inner.endswith("[]") else None
        if outer == "Union" and isinstance(node.slice, ast.Tuple):
            some = [one for one in node.slice.elts if not is_none(one)]
            inner = annotation(some[0]) if len(some) == 1 and len(node.slice.elts) == 2 else None
            return f"{inner}?" if inner else None
        return None
    return _ANNOTATIONS.get(ast.unparse(node))


def returned(node: ast.expr | None) -> str | None:
    """Return the schema's returns of a return annotation, or None."""
    if node is None:
        return None
    if is_none(node):
        return "()"
    if isinstance(node, ast.Subscript) and last_name(node.value) in ("Tuple", "tuple"):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kinds = [annotation(one) for one in items]
        return None if None in kinds else f"({', '.join(kind or '' for kind in kinds)})"
    return annotation(node)


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_none(node: ast.expr) -> bool:
    """Return whether an expression is the literal None."""
    return isinstance(node, ast.Constant) and node.value is None

"""Types of schemas that the annotations of Python functions state, as torch reads them."""

from __future__ import annotations

import ast

_ANNOTATIONS = {
    "torch.Tensor": "Tensor", "Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "torch.dtype": "ScalarType", "torch.device": "Device", "torch.types.Number": "Scalar", "Number": "Scalar",
}  # fmt: skip


class AnnotationError(Exception):
    """Part of a function's declaration that torch makes no schema of; ``node`` is its place."""

    def __init__(self, node: ast.AST, message: str) -> None:
        super().__init__(message)
        self.node = node


def schema_text(name: str, node: ast.FunctionDef, mutates: ast.expr | None) -> str:
    """Return the schema that torch makes from a function's annotations.

    Args:
        name: The operator.
        node: The function.
        mutates: The expression of ``mutates_args``.

    Raises:
        AnnotationError: Torch makes none, or the sources do not tell it.
    """
    try:
        written = frozenset(ast.literal_eval(mutates)) if mutates is not None else frozenset()
    except (ValueError, TypeError, SyntaxError):
        raise AnnotationError(node, "mutates_args is computed; expected names") from None
    parts = []
    positional = [*node.args.posonlyargs, *node.args.args]
    required: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    pairs = list(zip(positional, [*required, *node.args.defaults], strict=True))
    keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    for number, (argument, default) in enumerate([*pairs, *keywords]):
        if number == len(pairs):
            parts.append("*")
        kind = annotation(argument.annotation)
        if kind is None:
            raise AnnotationError(
                argument,
                f"the type of {argument.arg} is not one that torch makes a schema of; write a type that "
                "torch.library.custom_op takes",
            )
        if argument.arg in written:
            # The optional mark follows the alias: Tensor(a0!)?.
            kind = kind.replace("Tensor", f"Tensor(a{number}!)", 1)
        try:
            value = "" if default is None else f"={ast.literal_eval(default)!r}"
        except (ValueError, SyntaxError):
            raise AnnotationError(argument, f"the default of {argument.arg} is computed; write a literal") from None
        parts.append(f"{kind} {argument.arg}{value}")
    returns = returned(node.returns)
    if returns is None:
        raise AnnotationError(
            node,
            "its return type is not one that torch makes a schema of; write a type that torch.library.custom_op takes",
        )
    return f"{name}({', '.join(parts)}) -> {returns}"


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

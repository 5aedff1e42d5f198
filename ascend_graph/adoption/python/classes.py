"""Operators that classes state: a method returns the schema, and the class or a base of it defines what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.python.sources import PythonSources

#: Maximum number of bases that are followed.
_MAX_BASES = 8


@dataclass(frozen=True, slots=True)
class PythonClass:
    """A class of the repository and its bases, as far as the repository has them, each with its module's file."""

    chain: tuple[tuple[str, ast.ClassDef], ...]
    sources: PythonSources

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.chain[0][1].name

    def schemas(self) -> Iterator[tuple[str, str, ast.AST]]:
        """Yield namespace, text and place of each schema that a method of the class itself returns and that is defined."""
        spaces = {space for file, node in self.chain for space in self._defines(file, node)}
        if len(spaces) != 1:
            return
        asked = {name for _, node in self.chain for name in _own_calls(node)}
        for method in _methods(self.chain[0][1]).values():
            if method.name not in asked:
                continue
            values = [one.value for one in ast.walk(method) if isinstance(one, ast.Return) and one.value is not None]
            items = [item for one in values for item in (one.elts if isinstance(one, ast.List | ast.Tuple) else [one])]
            texts = [self.text(item, {}) for item in items]
            if len(values) == 1 and all(text is not None and "(" in text and "->" in text for text in texts):
                yield from ((next(iter(spaces)), text or "", item) for text, item in zip(texts, items, strict=True))

    def attribute(self, name: str, given: Sequence[ast.expr] = ()) -> str | None:
        """Return the string that an attribute of an instance holds, or None.

        Args:
            name: The attribute.
            given: The positional arguments that the instance is made with.
        """
        for _, node in self.chain:
            for one in node.body:
                if isinstance(one, ast.Assign) and name in [ast.unparse(target) for target in one.targets]:
                    return self.text(one.value, {})
        return self._initialized(name, 0, [self.text(one, {}) for one in given])

    def text(self, node: ast.expr, known: Mapping[str, str | None]) -> str | None:
        """Return the string that an expression in a method is, or None; ``known`` has the parameters."""
        match node:
            case ast.Constant(str(value)):
                return value
            case ast.Name(name):
                return known.get(name)
            case ast.Attribute(ast.Name("self"), name):
                return self.attribute(name)
            case ast.BinOp(left, ast.Add(), right):
                parts = [self.text(left, known), self.text(right, known)]
            case ast.JoinedStr(values):
                parts = [self.text(one.value if isinstance(one, ast.FormattedValue) else one, known) for one in values]
            case _:
                return None
        return None if None in parts else "".join(part or "" for part in parts)

    def _initialized(self, name: str, start: int, given: Sequence[str | None]) -> str | None:
        """Return the string that ``__init__`` of the class, or of a base from ``start`` on, assigns to an attribute."""
        for number in range(start, len(self.chain)):
            made = _methods(self.chain[number][1]).get("__init__")
            if made is None:
                continue
            known = dict(zip([one.arg for one in made.args.args[1:]], given, strict=False))
            found: list[str | None] = []
            for one in ast.walk(made):
                if isinstance(one, ast.Assign) and f"self.{name}" in [ast.unparse(target) for target in one.targets]:
                    found.append(self.text(one.value, known))
                elif isinstance(one, ast.Call) and ast.unparse(one.func) == "super().__init__":
                    found.append(self._initialized(name, number + 1, [self.text(a, known) for a in one.args]))
            stated = {one for one in found if one is not None}
            return stated.pop() if len(stated) == 1 else None
        return None

    def _defines(self, file: str, node: ast.ClassDef) -> Iterator[str]:
        """Yield the namespaces of the libraries that methods of a class define operators in."""
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "define":
                space = self.sources.library(one.func.value, file)
                if space is not None:
                    yield space


def read_class(node: ast.ClassDef, file: str, sources: PythonSources) -> PythonClass:
    """Return a class of a file with its bases."""
    chain = [(file, node)]
    while len(chain) < _MAX_BASES:
        here, last = chain[-1]
        found = next((one for base in last.bases if (one := sources.named(last_name(base), here, ast.ClassDef))), None)
        if found is None or any(found[1] is held for _, held in chain):
            break
        chain.append((found[0], found[1]))
    return PythonClass(tuple(chain), sources)


def _methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}


def _own_calls(node: ast.ClassDef) -> Iterator[str]:
    """Yield the methods that a class calls on itself without arguments."""
    for one in ast.walk(node):
        match one:
            case ast.Call(ast.Attribute(ast.Name("self"), name), []):
                yield name

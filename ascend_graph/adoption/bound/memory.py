"""Memory of parameters: which of them each variable and value of a C++ function may be."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ascend_graph.adoption.bound.signatures import bound_type
from ascend_graph.adoption.bound.tensor_functions import FRESH_METHODS, PASSED_ON, READERS, VIEWS, is_check
from ascend_graph.adoption.cpp.expressions import APPEND_RANGE, FORGET, LAMBDA, SET_ITEM, unread_text
from ascend_graph.adoption.cpp.functions import CppFunction, lambda_of
from ascend_graph.adoption.interpreter.calls import called_name

if TYPE_CHECKING:
    from ascend_graph.adoption.bound.writes import Writes

WRITING_NAME = re.compile(r"[a-z]\w*(?:_out|_outf|(?<!_)_)\Z")
_POINTERS = frozenset({"data_ptr", "mutable_data_ptr", "const_data_ptr", "data", "unsafeGetTensorImpl"})
#: Methods whose result may be the memory of what they are called of, and not that of arguments.
_OF_OWNER = VIEWS - {"value_or_else", "get"} | {"index"}
_CONTAINER = re.compile(r"\b(?:vector|\w*Vector|array|map|unordered_map|tuple|List)\b")


class MemoryWalker(ABC):
    """Reader of a function that follows the memory of its parameters; variables hold it whatever the order of statements."""

    def __init__(self, function: CppFunction) -> None:
        self.function = function
        #: Lambdas that variables name: their parameters, and what they mention. Their bodies are read with the function's.
        self.lambdas: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}
        self.held: dict[str, set[int]] = {
            one.name: {number} if may_hold_memory(one.type) else set() for number, one in enumerate(function.parameters)
        }

    @abstractmethod
    def helper(self, call: ast.Call) -> Writes | None:
        """Return what the functions of the repository do that a call means, or None if they are not found."""

    def find_lambdas(self, nodes: Iterable[ast.stmt]) -> None:
        """Find the variables that name a lambda."""
        for one in nodes:
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                value = one.value
                made = (
                    isinstance(value, ast.Call)
                    and called_name(value) == LAMBDA
                    and isinstance(value.args[0], ast.Constant)
                )
                text = str(value.args[0].value).strip() if made else unread_text(value)  # type: ignore[attr-defined]
                found = lambda_of(text, "", 0) if text.startswith("[") else None
                if found is not None:
                    names = frozenset(re.findall(r"(?<![\w.>:])[A-Za-z_]\w*", text))
                    self.lambdas[one.targets[0].id] = (tuple(p.name for p in found.parameters), names)

    def pass_on(self, one: ast.stmt) -> None:
        """Let the variables that a statement assigns hold what its value may be."""
        if isinstance(one, ast.Assign):
            held = self.memory(one.value)
            for target in one.targets:
                for name in ast.walk(target):
                    stored = isinstance(target, ast.Starred) and not self.takes_memory(getattr(name, "id", ""))
                    if isinstance(name, ast.Name) and not stored:
                        self.held.setdefault(name.id, set()).update(held)
        for call in (one.value,) if isinstance(one, ast.Expr | ast.Assign | ast.Return) else ():
            if isinstance(call, ast.Call):
                self.pass_to_call(call)

    def pass_to_call(self, call: ast.Call) -> None:
        """Let the variables that a call may assign hold what it may give them."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in PASSED_ON:
            self.hold(call.func.value, union(map(self.memory, call.args)))
        elif isinstance(call.func, ast.Name) and call.func.id == SET_ITEM:
            if self.takes_memory(root_of(call.args[0]) or ""):
                self.hold(call.args[0], self.memory(call.args[2]))
        elif isinstance(call.func, ast.Name) and call.func.id in self.lambdas:
            for name, one in zip(self.lambdas[call.func.id][0], call.args, strict=False):
                self.held.setdefault(name, set()).update(self.memory(one))
        elif isinstance(call.func, ast.Name) and call.func.id == APPEND_RANGE:
            for one in call.args[3:]:
                assert isinstance(one, ast.Tuple)
                self.hold(one.elts[0], self.memory(one.elts[1]))
        elif isinstance(call.func, ast.Name) and (helper := self.helper(call)) is not None:
            for number, one in enumerate(call.args):
                kept = helper.kept.get(helper.position(number), set())
                self.hold(one, union(self.memory(a) for n, a in enumerate(call.args) if helper.position(n) in kept))

    def hold(self, node: ast.expr, held: set[int]) -> None:
        """Let the variable at the beginning of an expression hold memory as well."""
        root = root_of(node)
        if root is not None:
            self.held.setdefault(root, set()).update(held)

    def memory(self, node: ast.expr) -> set[int]:
        """Return the parameters whose memory a value may be."""
        if isinstance(node, ast.Name):
            return self.held.get(node.id, set())
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            return self.memory(node.value)
        if isinstance(node, ast.IfExp):
            return self.memory(node.body) | self.memory(node.orelse)
        if isinstance(node, ast.List | ast.Tuple):
            return union(map(self.memory, node.elts))
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right) if self.is_pointer(node) else ()
            return union(self.memory(one) for one in sides if self.is_pointer(one))
        return self.result_memory(node) if isinstance(node, ast.Call) else set()

    def is_pointer(self, node: ast.expr) -> bool:
        """Return whether a value is a pointer: a sum with it points into the same memory."""
        if isinstance(node, ast.BinOp):
            moved = isinstance(node.op, ast.Add | ast.Sub)
            return moved and (self.is_pointer(node.left) or self.is_pointer(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in _POINTERS
        if isinstance(node, ast.Call):
            return any(map(self.is_pointer, node.args))
        if not isinstance(node, ast.Name):
            return False
        kind = self.declared_type(node.id)
        return "*" in kind or "GM_ADDR" in kind or (kind == "auto" and "Tensor" not in kind)

    def declared_type(self, name: str) -> str:
        """Return the type of a parameter or variable as written; empty if it is not found."""
        for one in self.function.parameters:
            if one.name == name:
                return one.type
        found = re.search(
            rf"(?:\A|[;{{}}(])\s*(?:(?:static|const|constexpr)\s+)*([A-Za-z_][\w:]*(?:\s*<[^;=]*?>)?(?:\s+const)?[\s*&]+)"
            rf"{re.escape(name)}\s*(?:[=({{;:\[]|\Z)",
            self.function.body,
        )
        return "" if found is None else found[1].strip()

    def takes_memory(self, name: str) -> bool:
        """Return whether what is stored through a name may be memory, and not numbers that are copied into a tensor."""
        kind = self.declared_type(name)
        if kind.strip("&* ").removesuffix("const").strip() == "auto":
            return (
                re.search(rf"\b{re.escape(name)}\s*=[^;]*(?:\bdata_ptr\b|_cast\s*<|accessor)", self.function.body)
                is None
            )
        return not re.fullmatch(
            r"(?:const\s+)?(?:at::|torch::)?Tensor\s*&?|(?:[\w:]+(?:\s*<\w+>)?|unsigned \w+)\s*\*", kind
        )

    def is_container(self, name: str) -> bool:
        """Return whether a variable is a vector, whose items are set, and not a tensor, whose values are written."""
        return _CONTAINER.search(self.declared_type(name)) is not None

    def result_memory(self, node: ast.Call) -> set[int]:
        name = called_name(node)
        last = name.rpartition("::")[2]
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in FRESH_METHODS:
                return set()
            if node.func.attr in _OF_OWNER:
                return self.memory(node.func.value)
            return union((self.memory(node.func.value), *map(self.memory, node.args)))
        if last in READERS or is_check(last) or name == FORGET:
            return set()
        if name.startswith(("at::", "torch::")) and last not in VIEWS and not WRITING_NAME.match(last):
            return set() if last[:1].islower() else union(map(self.memory, node.args))
        if name in self.lambdas:
            captured = union(self.held.get(one, set()) for one in self.lambdas[name][1])
            return union((captured, *map(self.memory, node.args)))
        helper = self.helper(node)
        if helper is not None and not helper.opaque:
            return union(self.memory(one) for n, one in enumerate(node.args) if helper.position(n) in helper.returned)
        return union(map(self.memory, node.args))


def may_hold_memory(kind: str) -> bool:
    """Return whether a parameter of a type may be a tensor, point into one, or have one in it.

    >>> [may_hold_memory(kind) for kind in ("at::Tensor &", "Args &&...", "Params &", "const std::string &", "void *", "int64_t")]
    [True, True, True, False, True, False]
    """
    plain = re.sub(r"\bconst\b|&", " ", kind).strip()
    known = bound_type(kind)
    if known is not None:
        return "Tensor" in known or ("*" in kind and known != "str")
    return re.fullmatch(r"(?:\w+::)*(?:\w*[sS]tream(?:_t)?|TensorOptions|SmallVector<\s*int64_t[^<>]*>)", plain) is None


def union(sets: Iterable[set[int]]) -> set[int]:
    """Return the union of any number of sets."""
    return set().union(*sets)


def root_of(node: ast.expr) -> str | None:
    """Return the variable at the beginning of a chain of members, items and calls, or None."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None

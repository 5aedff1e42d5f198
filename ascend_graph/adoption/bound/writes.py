"""Arguments that a C++ function writes, as far as its body states it; anything that may write and is not known is a problem.

Each variable holds the parameters whose memory it may be. Assignments, views and containers pass them on, whatever the
order of the statements. What takes one of them and is not known to only read it may write it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ascend_graph.adoption.bound.kernels import kernel_writes
from ascend_graph.adoption.bound.tensor_functions import (
    FRESH_METHODS,
    HARMLESS,
    PASSED_ON,
    READERS,
    RESHAPING,
    VIEWS,
    is_check,
)
from ascend_graph.adoption.cann_functions import roles_of
from ascend_graph.adoption.cpp.calls import launch_arguments, launches_of
from ascend_graph.adoption.cpp.expressions import FORGET, SET_ITEM, expression
from ascend_graph.adoption.cpp.functions import CppFunction, close_of
from ascend_graph.adoption.cpp.statements import statements
from ascend_graph.adoption.evidence import called_function, watched_function
from ascend_graph.adoption.ge_binding import NoBindingError
from ascend_graph.adoption.interpreter.calls import called_name
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings
from ascend_graph.sources.kernels import LITERAL

#: Maximum nesting of helper functions that are followed.
_MAX_DEPTH = 4
#: End of the reason why a function cannot run on an NPU.
NOT_FOR_NPU = "nothing is registered for the NPU"
#: Calls that write, as they stand in a text: in-place methods, functions with outputs, stores through pointers.
_WRITING_CALL = re.compile(LITERAL + r"|(?:\.|->|::)\s*(?P<name>[a-z]\w*(?:_out|_outf|(?<!_)_))\s*\(")
_WRITING_NAME = re.compile(r"[a-z]\w*(?:_out|_outf|(?<!_)_)\Z")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*(?:mutable\b\s*)?(?:->\s*[\w:<>,&* ]+?)?\s*\{")
_TENSOR = re.compile(r"\bTensor(?:List)?\b")


@dataclass(slots=True)
class Writes:
    """Parameters that a function writes and returns, with what is open about them."""

    #: Positions of the parameters that it writes.
    written: set[int] = field(default_factory=set)
    #: Positions of the parameters whose memory it may return.
    returned: set[int] = field(default_factory=set)
    #: Reasons why ``written`` may lack some, with the parameters that they are about; none for all.
    problems: dict[str, set[int]] = field(default_factory=dict)
    #: aclnn functions that it calls.
    called: set[str] = field(default_factory=set)
    #: True if it returns a pointer, whose memory may be that of any argument.
    opaque: bool = False


def writes_of(function: CppFunction, findings: Findings, known: Known, depth: int = 1) -> Writes:
    """Return which parameters a function writes, and which it may return."""
    walker = _Walker(function, findings, known, depth)
    walker.run()
    return walker.result


class _Walker:
    def __init__(self, function: CppFunction, findings: Findings, known: Known, depth: int) -> None:
        self.function, self.findings, self.known, self.depth = function, findings, known, depth
        self.held: dict[str, set[int]] = {
            one.name: {number} if _may_hold_memory(one.type) else set()
            for number, one in enumerate(function.parameters)
        }
        self.result = Writes(opaque="*" in function.returns or function.returns.split()[-1:] in (["T"], ["auto"]))
        self.launched = launches_of(function)
        self.helpers: dict[tuple[str, int], Writes | None] = {}

    def run(self) -> None:
        # What a lambda does is done with the variables that it captures.
        inner = [one for text in _lambda_bodies(self.function.body) for one in statements(text)]
        tree = ast.Module([*statements(self.function.body), *inner], [])
        nodes = [one for one in ast.walk(tree) if isinstance(one, ast.stmt)]
        before = None
        while before != self.held:
            before = {name: set(held) for name, held in self.held.items()}
            for one in nodes:
                self.pass_on(one)
        self.result.problems.clear()
        for call in ast.walk(tree):
            if isinstance(call, ast.Call):
                self.call(call)
        for one in nodes:
            if isinstance(one, ast.Return) and one.value is not None:
                self.result.returned |= self.memory(one.value)
        self.launches()
        self.check_text(tree)

    def problem(self, text: str, about: Iterable[int] = ()) -> None:
        self.result.problems.setdefault(text, set()).update(about)

    # --------------------------------------------------------------------------------------------------------- memory

    def pass_on(self, one: ast.stmt) -> None:
        """Let the variables that a statement assigns hold what its value may be."""
        if isinstance(one, ast.Assign):
            held = self.memory(one.value)
            for target in one.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self.held.setdefault(name.id, set()).update(held)
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            call = one.value
            if isinstance(call.func, ast.Attribute) and call.func.attr in PASSED_ON:
                root = _root(call.func.value)
                if root is not None:
                    self.held.setdefault(root, set()).update(*map(self.memory, call.args))
            elif isinstance(call.func, ast.Name) and call.func.id == SET_ITEM:
                root = _root(call.args[0])
                if root is not None:
                    self.held.setdefault(root, set()).update(self.memory(call.args[2]))

    def memory(self, node: ast.expr) -> set[int]:
        """Return the parameters whose memory a value may be."""
        if isinstance(node, ast.Name):
            return self.held.get(node.id, set())
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            return self.memory(node.value)
        if isinstance(node, ast.IfExp):
            return self.memory(node.body) | self.memory(node.orelse)
        if isinstance(node, ast.List | ast.Tuple):
            return _union(map(self.memory, node.elts))
        return self.result_memory(node) if isinstance(node, ast.Call) else set()

    def result_memory(self, node: ast.Call) -> set[int]:
        name = called_name(node)
        last = name.rpartition("::")[2]
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in FRESH_METHODS:
                return set()
            return _union((self.memory(node.func.value), *map(self.memory, node.args)))
        if last in READERS or is_check(last) or name == FORGET:
            return set()
        if name.startswith(("at::", "torch::")) and last not in VIEWS and not _WRITING_NAME.match(last):
            return set() if last[:1].islower() else _union(map(self.memory, node.args))
        helper = self.helper(name, len(node.args))
        if helper is not None and not helper.opaque:
            return _union(self.memory(node.args[n]) for n in helper.returned if n < len(node.args))
        return _union(map(self.memory, node.args))

    def helper(self, name: str, count: int) -> Writes | None:
        """Return what a function of the repository does, or None if it is not found."""
        if (name, count) not in self.helpers:
            self.helpers[name, count] = None
            if self.depth < _MAX_DEPTH:
                found = called_function(name, self.function.file, count, self.findings)
                if found is not None and found != self.function:
                    self.helpers[name, count] = writes_of(found, self.findings, self.known, self.depth + 1)
        return self.helpers[name, count]

    # ---------------------------------------------------------------------------------------------------------- calls

    def call(self, node: ast.Call) -> None:
        """Note what a call writes."""
        name = called_name(node)
        last = name.rpartition("::")[2]
        watched = watched_function(name, node)
        if watched is not None:
            self.aclnn(watched, node.args[1:])
        elif isinstance(node.func, ast.Attribute):
            self.method(node, node.func)
        elif name == SET_ITEM:
            root = _root(node.args[0])
            if root is not None and not self.is_container(root):
                self.write(node.args[0])
        elif _WRITING_NAME.match(last) and self.helper(name, len(node.args)) is None:
            if last.endswith("_outf"):
                self.problem(f"it calls {name}, whose outputs come last")
            for one in node.args[:1]:
                self.write(one)
        elif not self.only_reads(name, last):
            self.unknown_call(name, node)

    def only_reads(self, name: str, last: str) -> bool:
        if last.removeprefix("aclrtlaunch_") in self.launched or re.fullmatch(r"[A-Z]\w*KERNEL\w*", last):
            return True  # what the kernel writes is read from its source
        if last in READERS or last in HARMLESS or is_check(last):
            return True
        return name.startswith(("at::", "torch::", "std::", "c10::", "at_npu::", "torch_npu::", "c10_npu::", "<"))

    def unknown_call(self, name: str, node: ast.Call) -> None:
        helper = self.helper(name, len(node.args))
        if helper is not None:
            self.result.called |= helper.called
            for position in helper.written:
                if position < len(node.args):
                    self.write(node.args[position])
            for text, about in helper.problems.items():
                held = [self.memory(one) for n, one in enumerate(node.args) if not about or n in about]
                if any(held):
                    self.problem(text, _union(held) if about else ())
            return
        taken = sorted(_union(map(self.memory, node.args)))
        if taken:
            names = ", ".join(self.function.parameters[n].name for n in taken[:3])
            key = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
            if key in self.findings.dispatch_keys:
                self.problem(f"{name} calls what is registered as {key}, and {NOT_FOR_NPU}", taken)
                return
            self.problem(f"it passes {names} to {name or 'a value'}, which is not known here", taken)

    def method(self, node: ast.Call, function: ast.Attribute) -> None:
        owner = self.memory(function.value)
        if owner and function.attr in RESHAPING:
            self.problem(f"it changes the shape of an argument with {function.attr}", owner)
        elif owner and _WRITING_NAME.match(function.attr) and function.attr not in FRESH_METHODS:
            self.write(function.value)
        elif function.attr == "Output":
            for one in node.args[:1]:
                self.write(one)
        elif not owner and not _WRITING_NAME.match(function.attr):
            known = function.attr in PASSED_ON or function.attr in FRESH_METHODS or function.attr in VIEWS
            taken = _union(map(self.memory, node.args))
            if not known and taken:
                self.problem(f"it passes an argument to {function.attr}, which is not known here", taken)

    def aclnn(self, name: str, arguments: list[ast.expr]) -> None:
        self.result.called.add(name)
        try:
            roles = roles_of(name, self.known)
        except NoBindingError as reason:
            self.problem(str(reason))
            return
        if len(roles) != len(arguments):
            self.problem(f"it passes {len(arguments)} arguments to {name}, which has {len(roles)}")
            return
        for one, role in zip(arguments, roles, strict=True):
            if role in "wx":
                self.write(one)
            elif role == "." and self.memory(one) and not isinstance(one, ast.Attribute | ast.Call):
                self.problem(f"it passes a tensor to {name} where that takes a value", self.memory(one))

    def write(self, node: ast.expr) -> None:
        self.result.written |= self.memory(node)

    def is_container(self, name: str) -> bool:
        """Return whether a variable is a vector, whose items are set, and not a tensor, whose values are written."""
        number = next((n for n, p in enumerate(self.function.parameters) if p.name == name), None)
        if number is not None:
            return re.search(r"\bvector\b|\barray\b", self.function.parameters[number].type) is not None
        return re.search(rf"\b(?:vector|Vector|array)\s*<[^;]*>\s*{re.escape(name)}\b", self.function.body) is not None

    def launches(self) -> None:
        """Note what the launched kernels write."""
        launched = launch_arguments(self.function)
        missed = self.launched - {name for name, _ in launched}
        for name, given in [*launched, *((one, None) for one in sorted(missed))]:
            taken = [self.memory(expression(one)) for one in given or ()]
            kernel = kernel_writes(name, self.findings.kernel_files) if given is not None else None
            if kernel is None or kernel.count != len(taken):
                self.problem(f"it launches {name}, and nothing here tells what that kernel writes")
                continue
            for number, held in enumerate(taken):
                if number in kernel.written:
                    self.result.written |= held
                elif held and number in kernel.unknown:
                    names = ", ".join(self.function.parameters[n].name for n in sorted(held))
                    self.problem(f"it launches {name}, and what that kernel does with {names} is not understood", held)

    def check_text(self, tree: ast.Module) -> None:
        """Add a problem if the text has more writing calls than the tree: a part of it is not understood."""
        body = self.function.body
        written = Counter(match["name"] for match in _WRITING_CALL.finditer(body) if match["name"])
        called: Counter[str] = Counter()
        for one in ast.walk(tree):
            if isinstance(one, ast.Call):
                called[called_name(one).rpartition("::")[2].rpartition(".")[2]] += 1
        for name, count in written.items():
            if called[name] < count:
                self.problem(f"a call of {name} stands in a part that is not understood, at {self.function.place}")
        aclnn = {
            *re.findall(
                r"\b(aclnn(?!Status\b)[A-Z0-9]\w*?)(?:GetWorkspaceSize)?\b(?!\s*\.)", re.sub(LITERAL, '""', body)
            )
        }
        missed = aclnn - self.result.called - set(called)
        if missed:
            self.problem(f"the call of {min(missed)} is not one that is understood, at {self.function.place}")


def _may_hold_memory(kind: str) -> bool:
    """Return whether a parameter of a type may be a tensor, or point into one."""
    pointer = ("*" in kind and re.search(r"\bchar\b", kind) is None) or "GM_ADDR" in kind
    return _TENSOR.search(kind) is not None or pointer or kind == "auto"


def _lambda_bodies(body: str) -> Iterator[str]:
    """Yield the bodies of the lambdas of a function."""
    for match in _LAMBDA.finditer(body):
        close = close_of(body, match.end() - 1)
        if close > 0:
            yield body[match.end() : close]


def _union(sets: Iterable[set[int]]) -> set[int]:
    return set().union(*sets)


def _root(node: ast.expr) -> str | None:
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

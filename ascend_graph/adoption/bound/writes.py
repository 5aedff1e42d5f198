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

from ascend_graph.adoption.bound.function_pointers import FunctionPointers, Functions, Pointers
from ascend_graph.adoption.bound.kernels import kernel_writes
from ascend_graph.adoption.bound.memory import WRITING_NAME, MemoryWalker, root_of, union
from ascend_graph.adoption.bound.tensor_functions import (
    FRESH_METHODS,
    HARMLESS,
    PASSED_ON,
    READERS,
    READING_METHODS,
    RESHAPING,
    VIEWS,
    WRITING_FIRST,
    is_check,
    reads_alone,
)
from ascend_graph.adoption.cann_functions import roles_of
from ascend_graph.adoption.cpp.calls import launch_arguments, launches_of
from ascend_graph.adoption.cpp.expressions import SET_ITEM, expression, unread_text
from ascend_graph.adoption.cpp.functions import CppFunction, close_of
from ascend_graph.adoption.cpp.statements import statements
from ascend_graph.adoption.evidence import called_function, watched_function
from ascend_graph.adoption.ge_binding import NoBindingError
from ascend_graph.adoption.interpreter.calls import called_name
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.sources.kernels import LITERAL

#: Maximum nesting of helper functions that are followed.
_MAX_DEPTH = 6
#: End of the reason why a function cannot run on an NPU.
NOT_FOR_NPU = "nothing is registered for the NPU"
#: Calls that write, as they stand in a text: in-place methods, functions with outputs, stores through pointers.
_WRITING_CALL = re.compile(LITERAL + r"|(?:\.|->|::)\s*(?P<name>[a-z]\w*(?:_out|_outf|(?<!_)_))\s*\(")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*(?:mutable\b\s*)?(?:->\s*[\w:<>,&* ]+?)?\s*\{")
#: Handles of values, which are copied into them.
_VALUES = re.compile(r"\bacl(?:Scalar|IntArray|FloatArray|BoolArray)\s*\*")
#: Types of variables through which an assignment gives another variable its value, and of those that point into memory.
_REBOUND = re.compile(r"Tensor\s*\*|\boptional\b|AutogradContext|\bTensorList\b")
_STORED = re.compile(r"Tensor|\*|\bauto\b|Accessor")
#: Lookup of an operator in torch's dispatcher: its name and its overload.
_LOOKED_UP = r"\bfindSchemaOrThrow\s*\(\s*[\"']([^\"']+)[\"']\s*,\s*[\"']([^\"']*)[\"']"
_MENTIONED = re.compile(r"(?<![\w.:>])([A-Za-z_]\w*)\b(?!\s*::)(?:\s*(?:\.|->)\s*(\w+)\s*\()?")


@dataclass(slots=True)
class Writes:
    """Parameters that a function writes and returns, with what is open about them."""

    #: Number of parameters, the last of which may be a pack.
    count: int = 0
    is_variadic: bool = False
    #: Positions of the parameters that it writes.
    written: set[int] = field(default_factory=set)
    #: Positions of the parameters whose memory it may return.
    returned: set[int] = field(default_factory=set)
    #: Reasons why ``written`` may lack some, with the parameters that they are about; none for all.
    problems: dict[str, set[int]] = field(default_factory=dict)
    #: Parameters whose memory a parameter, a reference or pointer, may be afterwards.
    kept: dict[int, set[int]] = field(default_factory=dict)
    #: aclnn functions that it calls.
    called: set[str] = field(default_factory=set)
    #: True if it returns a pointer, whose memory may be that of any argument.
    opaque: bool = False

    def position(self, number: int) -> int:
        """Return the parameter that an argument is, by position: all that follow a pack are in it."""
        return min(number, self.count - 1) if self.is_variadic else number


def writes_of(
    function: CppFunction, findings: Findings, known: Known, depth: int = 1, given: Pointers | None = None
) -> Writes:
    """Return which parameters a function writes, and which it may return; ``given`` are parameters that are functions."""
    walker = _Walker(function, findings, known, depth)
    walker.run(given or {})
    return walker.result


def merged(several: list[Writes]) -> Writes:
    """Return what one of several functions with the same parameters may do."""
    first, *others = several
    if not others:
        return first
    result = Writes(first.count, any(one.is_variadic for one in several), opaque=any(one.opaque for one in several))
    for one in several:
        result.written |= one.written
        result.returned |= one.returned
        result.called |= one.called
        for text, about in one.problems.items():
            result.problems.setdefault(text, set()).update(about)
        for number, kept in one.kept.items():
            result.kept.setdefault(number, set()).update(kept)
    return result


class _Walker(MemoryWalker):
    def __init__(self, function: CppFunction, findings: Findings, known: Known, depth: int) -> None:
        super().__init__(function)
        self.findings, self.known, self.depth = findings, known, depth
        self.result = Writes(
            len(function.parameters),
            function.is_variadic,
            opaque="*" in _VALUES.sub("", function.returns) or function.returns.split()[-1:] in (["T"], ["auto"]),
        )
        #: Values that statements give to variables.
        self.assigned: dict[str, list[ast.expr]] = {}
        self.launched = launches_of(function)
        self.pointers = FunctionPointers(function, (), {}, findings)
        self.helpers: dict[tuple[str, str, int, frozenset[tuple[int, Functions]]], Writes | None] = {}

    def run(self, given: Pointers) -> None:
        # What a lambda does is done with the variables that it captures.
        inner = [one for text in _lambda_bodies(self.function.body) for one in statements(text)]
        tree = ast.Module([*statements(self.function.body), *inner], [])
        nodes = [one for one in ast.walk(tree) if isinstance(one, ast.stmt)]
        self.find_lambdas(nodes)
        for stored in (one for one in nodes if isinstance(one, ast.Assign)):
            for target in stored.targets:
                if isinstance(target, ast.Name):
                    self.assigned.setdefault(target.id, []).append(stored.value)
        self.pointers = FunctionPointers(self.function, ast.walk(tree), given, self.findings)
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
            elif isinstance(one, ast.Assign):
                self.stores(one)
        for number, parameter in enumerate(self.function.parameters):
            if re.search(r"[&*]", parameter.type) and not re.match(r"const\b", parameter.type):
                self.result.kept[number] = self.held[parameter.name] - {number}
        self.launches()
        self.check_unread(tree)
        self.check_text(tree)

    def problem(self, text: str, about: Iterable[int] = ()) -> None:
        self.result.problems.setdefault(text, set()).update(about)

    # ---------------------------------------------------------------------------------------------------------- calls

    def helper(self, call: ast.Call) -> Writes | None:
        found = [self.function_writes(name, file, call.args) for name, file in sorted(self.pointers.called(call))]
        known = [one for one in found if one is not None]
        return merged(known) if known and len(known) == len(found) else None

    def function_writes(self, name: str, file: str, arguments: list[ast.expr]) -> Writes | None:
        """Return what a function of the repository does with arguments, some of which may be functions."""
        count, function = len(arguments), self.function
        given = {n: self.pointers.of(one) for n, one in enumerate(arguments)}
        passed = frozenset((n, functions) for n, functions in given.items() if functions)
        key = name, file, count, passed
        if key not in self.helpers:
            self.helpers[key] = None
            found = called_function(name, file, count, self.findings) if self.depth < _MAX_DEPTH else None
            if found is not None and found != function:
                pointers = {found.parameters[n].name: one for n, one in passed if n < len(found.parameters)}
                self.helpers[key] = writes_of(found, self.findings, self.known, self.depth + 1, pointers)
        return self.helpers[key]

    def call(self, node: ast.Call) -> None:
        """Note what a call writes."""
        name = called_name(node)
        last = name.rpartition("::")[2]
        watched = watched_function(name, node)
        if watched is not None:
            self.aclnn(watched, node.args[1:])
        elif isinstance(node.func, ast.Attribute):
            self.method(node, node.func)
        elif not isinstance(node.func, ast.Name | ast.Subscript):
            inner = called_name(node.func) if isinstance(node.func, ast.Call) else ""
            if not re.fullmatch(r"[A-Z]\w*KERNEL\w*", inner):
                self.unknown_call("", node)
        elif name == SET_ITEM:
            root = root_of(node.args[0])
            if root is not None and not self.is_container(root):
                self.write(node.args[0])
        elif last in WRITING_FIRST and self.helper(node) is None:
            if any(map(self.is_stored_address, node.args[:1])):
                self.problem(f"{name} writes to an address that a tensor holds", self.memory(node.args[0]))
            self.write(node.args[0])
        elif WRITING_NAME.match(last) and self.helper(node) is None:
            if last.endswith("_outf"):
                self.problem(f"it calls {name}, whose outputs come last")
            for one in node.args[:1]:
                self.write(one)
        elif not self.only_reads(name, last):
            self.unknown_call(name, node)

    def only_reads(self, name: str, last: str) -> bool:
        if (
            last.removeprefix("aclrtlaunch_") in self.launched
            or last in self.lambdas
            or re.fullmatch(r"[A-Z]\w*KERNEL\w*", last)
        ):
            return True  # what the kernel writes is read from its source
        return last in READERS or last in HARMLESS or is_check(last) or reads_alone(name)

    def unknown_call(self, name: str, node: ast.Call) -> None:
        helper = self.helper(node)
        if helper is not None:
            self.result.called |= helper.called
            for number, one in enumerate(node.args):
                if helper.position(number) in helper.written:
                    self.write(one)
            for text, about in helper.problems.items():
                held = [self.memory(one) for n, one in enumerate(node.args) if not about or helper.position(n) in about]
                if any(held):
                    self.problem(text, union(held) if about else ())
            return
        taken = sorted(union(map(self.memory, node.args)))
        if taken:
            names = self.named(taken)
            key = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
            if key in self.findings.dispatch_keys:
                self.problem(f"{name} calls what is registered as {key}, and {NOT_FOR_NPU}", taken)
                return
            self.problem(f"it passes {names} to {name or 'a value'}, which is not known here", taken)

    def dispatched(self, node: ast.expr) -> OpSchema | None:
        """Return the schema of an operator that is looked up in torch's dispatcher, in place or as a variable's value."""
        assigned = rf"\b{re.escape(node.id)}\s*=[^;]*?" if isinstance(node, ast.Name) else ""
        text = self.function.body if isinstance(node, ast.Name) else ast.unparse(node)
        found = {(one[1], one[2]) for one in re.finditer(assigned + _LOOKED_UP, text)}
        schemas = [one.schema for one in self.findings.definitions if found == {(one.name, one.schema.overload)}]
        return schemas[0] if len(schemas) == 1 else None

    def method(self, node: ast.Call, function: ast.Attribute) -> None:
        owner = self.memory(function.value)
        schema = self.dispatched(function.value) if function.attr == "call" else None
        if schema is not None and len(schema.arguments) == len(node.args):
            for one, argument in zip(node.args, schema.arguments, strict=True):
                if argument.mutated:
                    self.write(one)
        elif owner and function.attr in RESHAPING:
            self.problem(f"it changes the shape of an argument with {function.attr}", owner)
        elif owner and WRITING_NAME.match(function.attr) and function.attr not in FRESH_METHODS:
            self.write(function.value)
        elif function.attr == "Output":
            for one in node.args[:1]:
                self.write(one)
        elif not owner and not WRITING_NAME.match(function.attr):
            known = function.attr in PASSED_ON or function.attr in FRESH_METHODS or function.attr in VIEWS
            taken = union(map(self.memory, node.args))
            if not known and taken:
                self.problem(f"it passes an argument to {function.attr}, which is not known here", taken)
        elif owner and function.attr not in READING_METHODS:
            # Methods of tensors that write have names that end in _; those of other classes may do anything.
            kind = self.declared_type(root_of(function.value) or "")
            if not re.search(r"Tensor|Scalar|ArrayRef", kind):
                self.problem(f"it calls {function.attr} of what may be {self.named(owner)}", owner)

    def aclnn(self, name: str, arguments: list[ast.expr]) -> None:
        self.result.called.add(name)
        try:
            roles = roles_of(name, self.known, self.findings.kernel_files)
        except NoBindingError as reason:
            self.problem(str(reason))
            return
        if len(roles) != len(arguments):
            self.problem(f"it passes {len(arguments)} arguments to {name}, which has {len(roles)}")
            return
        for one, role in zip(arguments, roles, strict=True):
            if role in "wx":
                self.write(one)
            elif role not in "rwxh" and self.memory(one) and not isinstance(one, ast.Attribute | ast.Call):
                self.problem(f"it passes a tensor to {name} where that takes a value", self.memory(one))

    def is_stored_address(self, node: ast.expr, depth: int = 0) -> bool:
        """Return whether a pointer is an item of memory, which points elsewhere; ``&p[n]`` reads the same here."""
        if isinstance(node, ast.Name):
            return depth < _MAX_DEPTH and any(
                self.is_stored_address(one, depth + 1) for one in self.assigned.get(node.id, ())
            )
        if isinstance(node, ast.Subscript):
            return self.is_pointer(node.value)
        inner = node.args if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute) else ()
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) and self.is_pointer(node) else ()
        return any(self.is_stored_address(one, depth) for one in (*inner, *sides))

    def write(self, node: ast.expr) -> None:
        self.result.written |= self.memory(node)

    def stores(self, one: ast.Assign) -> None:
        """Note what an assignment writes through a name: ``*p = n``, ``x += n``, ``x[i][j] = n``."""
        targets = [inner for outer in one.targets for inner in ast.walk(outer) if isinstance(inner, ast.Starred)]
        for target in targets:
            assert isinstance(target.value, ast.Name)
            name = target.value.id
            kind, held = self.declared_type(name), self.memory(target.value)
            augmented = isinstance(one.value, ast.BinOp)
            if _REBOUND.search(kind) or (augmented and "*" in kind):
                continue  # it gives a variable another value
            if held and ("Tensor" not in kind if augmented else not _STORED.search(kind)):
                self.problem(f"it changes {name} in place, which may be {self.named(held)}", held)
            else:
                self.write(target.value)

    def check_unread(self, tree: ast.Module) -> None:
        """Add a problem for each part that is not understood and mentions memory; lambdas are read apart."""
        for one in ast.walk(tree):
            text = unread_text(one)
            if not text or text.startswith("[") or re.fullmatch(r"\w+\s*(?:\+\+|--)|(?:\+\+|--)\s*\w+", text):
                continue
            mentioned = [
                match[1]
                for match in _MENTIONED.finditer(re.sub(LITERAL, '""', text))
                if match[1] and match[2] not in FRESH_METHODS
            ]
            held = union(self.held.get(name, set()) for name in mentioned)
            if held and re.search(r"[(=]|\+\+|--", text):
                self.problem(
                    f"it is not understood what `{' '.join(text.split())[:80]}` does with {self.named(held)}, "
                    f"at {self.function.place}",
                    held,
                )

    def named(self, held: Iterable[int]) -> str:
        """Return the names of parameters for a message."""
        return ", ".join(self.function.parameters[n].name for n in sorted(held)[:3])

    def launches(self) -> None:
        """Note what the launched kernels write."""
        launched = launch_arguments(self.function)
        missed = self.launched - {name for name, _ in launched}
        for name, given in [*launched, *((one, None) for one in sorted(missed))]:
            taken = [self.memory(expression(one)) for one in given or ()]
            caller = self.known.extensions.root / self.function.file
            kernel = kernel_writes(name, self.findings.kernel_files, caller) if given is not None else None
            if kernel is None or kernel.count != len(taken):
                self.problem(f"it launches {name}, and nothing here tells what that kernel writes")
                continue
            for number, held in enumerate(taken):
                if number in kernel.written:
                    self.result.written |= held
                elif held and number in kernel.unknown:
                    does = f"what that kernel does with {self.named(held)} is not understood"
                    self.problem(f"it launches {name}, and {does}", held)

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


def _lambda_bodies(body: str) -> Iterator[str]:
    """Yield the bodies of the lambdas of a function."""
    for match in _LAMBDA.finditer(body):
        close = close_of(body, match.end() - 1)
        if close > 0:
            yield body[match.end() : close]

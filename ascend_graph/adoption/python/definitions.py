"""Operators that Python defines and implements: torch.library, direct_register_custom_op, converters of TorchAir."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ascend_graph.adoption.annotations import AnnotationError, is_none, last_name, schema_text
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.model import (
    Definition,
    Findings,
    Implementation,
    PythonFunction,
    SourcePlace,
    operator_key,
    relative,
)
from ascend_graph.adoption.python.classes import PythonClass, read_class
from ascend_graph.adoption.python.converters import converter_of, operator_name
from ascend_graph.adoption.python.decorators import FAKES, MAKERS, fake_wrappers, is_maker, maker_call, makes_fake
from ascend_graph.adoption.python.sources import PythonSources
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema

#: Maximum size of a Python file that is read.
MAX_BYTES = 4 << 20
#: Library of ``direct_register_custom_op`` where none is given, as vLLM documents it.
_DEFAULT_LIBRARY = "vllm"
_USEFUL = re.compile(
    rb"torch\.library|\bLibrary\b|direct_register_custom_op|register_fx_node_ge_converter|custom_op|register_fake"
)


def read_python(paths: list[Path], root: Path, findings: Findings) -> None:
    """Read the definitions and implementations of Python files into ``findings``; report what cannot be read."""
    sources = PythonSources(paths, root)
    findings.python_function = sources.called
    files = [path for path in paths if path.suffix == ".py"]
    makers: set[str] = set()
    read = {path: _read_file(path, _USEFUL, root, findings, sources, makers) for path in files}
    if makers:
        useful = re.compile(rb"\b(?:" + b"|".join(sorted(name.encode() for name in makers)) + rb")\b")
        for path in files:
            if not read[path]:
                _read_file(path, useful, root, findings, sources, makers)
    for place, owner in sources.computed:
        if owner not in sources.defining:
            findings.report(place, "define: the schema is computed; expected string literals")


def _read_file(
    path: Path,
    useful: re.Pattern[bytes],
    root: Path,
    findings: Findings,
    sources: PythonSources,
    makers: set[str],
) -> bool:
    """Read a file if something in it is useful, and return whether there is; add decorators that make operators."""
    place = SourcePlace(relative(path, root), 1)
    try:
        data = path.read_bytes()
        if not useful.search(data.replace(b"\0", b"")):
            return False
        if len(data) > MAX_BYTES:
            findings.report(place, f"{len(data):,} bytes are not a source; the limit is {MAX_BYTES:,}")
            return True
        tree = ast.parse(data, str(path))
    except OSError as error:
        findings.report(place, f"cannot be read: {error.strerror or error}; leave it out")
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        findings.report(
            SourcePlace(place.file, line),
            f"is not Python: {getattr(error, 'msg', None) or error}. Correct it, or leave it out",
        )
        return True
    makers |= {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and is_maker(one)}
    makers.update(fake_wrappers(tree))
    _Reader(tree, place.file, findings, sources).read()
    return True


class _Reader:
    """Reader of one module."""

    def __init__(self, tree: ast.Module, file: str, findings: Findings, sources: PythonSources) -> None:
        self.tree, self.file, self.findings, self.sources = tree, file, findings, sources
        self.module: dict[str, ast.AST] = {}
        #: Imports by the name that they give, with the name in the other file.
        self.imports: dict[str, tuple[ast.ImportFrom, str]] = {}
        self.libraries: dict[str, str] = {}
        #: Dispatch keys of libraries that are made for one.
        self.keys: dict[str, str] = {}
        #: Names that calls are assigned to, by the call.
        self.held: dict[int, str] = {}
        #: Names of operators that ``custom_op`` made, by the function's name.
        self.made: dict[str, str] = {}
        #: Classes by each node in them, and the class and arguments of each instance that the module makes.
        self.within: dict[int, PythonClass] = {}
        wrappers = fake_wrappers(tree)
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name in wrappers]
        #: Nodes of functions that register meta functions for their callers.
        self.followed = {id(node) for one in functions for node in ast.walk(one)}
        self.instances: dict[str, tuple[PythonClass, list[ast.expr]]] = {}

    def place(self, node: ast.AST) -> SourcePlace:
        return SourcePlace(self.file, getattr(node, "lineno", 1))

    def read(self) -> None:
        self.read_classes()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                self.module.setdefault(node.name, node)
            elif isinstance(node, ast.ImportFrom):
                self.imports |= {one.asname or one.name: (node, one.name) for one in node.names}
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.assigned(node.targets[0].id, node.value)
                self.held[id(node.value)] = node.targets[0].id
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    self.decorated(node, decorator)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self.call(node)

    def read_classes(self) -> None:
        """Read the operators that classes of the module state, and the instances that it makes."""
        classes = {
            one.name: read_class(one, self.file, self.sources)
            for one in self.tree.body
            if isinstance(one, ast.ClassDef)
        }
        for one in classes.values():
            self.within |= {id(node): one for node in ast.walk(one.chain[0][1])}
            for namespace, text, node in one.schemas():
                self.sources.defining |= {(file, base.name) for file, base in one.chain}
                self.findings.libraries.add(namespace)
                name = text.partition("(")[0].strip().partition(".")[0]
                self.defined(name if "::" in name else f"{namespace}::{name}", text, node, namespace=namespace)
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                made = classes.get(last_name(node.value.func))
                if made is not None:
                    held = made, node.value.args
                    self.instances |= {one.id: held for one in node.targets if isinstance(one, ast.Name)}

    def assigned(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Constant):
            self.module.setdefault(name, value)
        elif isinstance(value, ast.Call) and last_name(value.func) == "Library" and value.args:
            namespace = self.text(value.args[0])
            if namespace is not None:
                self.libraries[name] = namespace
                self.keys[name] = (self.text(value.args[2]) or "") if len(value.args) > 2 else ""
                self.findings.libraries.add(namespace)

    def text(self, node: ast.expr | None) -> str | None:
        """Return the value of an expression that is a string: literals, constants of the module, their sums."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            held = self.module.get(node.id)
            return self.text(held) if isinstance(held, ast.Constant) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            made, given = self.instances.get(node.value.id, (None, []))
            made = self.within.get(id(node)) if node.value.id == "self" else made
            return None if made is None else made.attribute(node.attr, given)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.text(node.left), self.text(node.right)
            return None if left is None or right is None else left + right
        if isinstance(node, ast.JoinedStr):
            parts = [self.text(one.value if isinstance(one, ast.FormattedValue) else one) for one in node.values]
            return None if None in parts else "".join(part or "" for part in parts)
        return None

    def library(self, node: ast.expr) -> str | None:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.Call) and last_name(node.func) == "Library" and node.args:
            return self.text(node.args[0])
        return self.sources.library(node, self.file) if isinstance(node, ast.Call) else self.libraries.get(name)

    def key_of(self, node: ast.expr) -> str:
        """Return the dispatch key that a library is made for; empty if it is made for none."""
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        return self.keys.get(name, "")

    def function(self, node: ast.expr | ast.FunctionDef | None) -> PythonFunction | None:
        if isinstance(node, ast.Name):
            held = self.module.get(node.id)
            if held is None and node.id in self.imports:
                taken, name = self.imports[node.id]
                return self.sources.function(taken, name, self.file)
            node = held if isinstance(held, ast.FunctionDef) else None
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            name = node.name if isinstance(node, ast.FunctionDef) else "lambda"
            return PythonFunction(name, node, self.place(node), self.module)
        return None

    # ---------------------------------------------------------------------------------------------------- decorators

    def decorated(self, node: ast.FunctionDef, decorator: ast.expr) -> None:
        call = decorator if isinstance(decorator, ast.Call) else None
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = last_name(target)
        function = self.function(node)
        owner = target.value.id if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else ""
        if owner in self.made and name in FAKES:
            self.implemented(self.made[owner], "Meta", function, node.name, node)
        elif owner in self.made and name == "register_kernel" and call is not None and call.args:
            self.implemented(self.made[owner], _key(self.text(call.args[0]) or ""), function, node.name, node)
        elif call is not None and name == "register_kernel" and len(call.args) > 1:
            full = self.qualified(call.args[0], call)
            if full is not None:
                self.implemented(full, _key(self.text(call.args[1]) or ""), function, node.name, node)
        elif call is not None and name in MAKERS and call.args:
            self.custom_op(call, function)
        elif call is not None and (maker := maker_call(self.function(call.func), call)) is not None:
            self.custom_op(maker, function)
            full = self.made.get(node.name)
            if full is not None and makes_fake(self.function(call.func)):
                self.implemented(full, "Meta", None, name, call)
        elif call is not None and name in FAKES and call.args:
            full = self.qualified(call.args[0], call)
            if full is not None:
                self.implemented(full, "Meta", function, node.name, node)
        elif call is not None and (fake := self.sources.fake_of(call, self.file)) is not None:
            full = self.qualified(fake[0], call)
            if full is not None:
                self.implemented(full, "Meta", function if fake[1] else None, node.name, node)
        elif call is not None and name == "impl" and call.args:
            self.impl(call, function, node.name)
        elif call is not None and name == "register_fx_node_ge_converter" and call.args:
            self.converter(call, node)

    def qualified(self, node: ast.expr, call: ast.Call) -> str | None:
        """Return the name of an operator that a call means: a string, or ``torch.ops.ns.name``."""
        text = self.text(node)
        if text is not None:
            library = next((self.library(k.value) for k in call.keywords if k.arg == "lib"), None)
            text = operator_key(text if "::" in text or library is None else f"{library}::{text}")
            return text if "::" in text else None
        return operator_name(node)

    def custom_op(self, call: ast.Call, function: PythonFunction | None, variable: str = "") -> None:
        """Read ``custom_op(name, …)`` of a function, as a decorator or a call; ``variable`` holds what a call makes."""
        name = self.text(call.args[0])
        if name is None or "::" not in name:
            self.findings.report(
                self.place(call), f"{last_name(call.func)}: the name is computed; expected a string literal"
            )
            return
        node = None if function is None else function.node
        if function is None or not isinstance(node, ast.FunctionDef):
            self.findings.report(self.place(call), f"{name}: its function is not one of this repository", name)
            return
        given = {k.arg: k.value for k in call.keywords}
        schema = self.text(given.get("schema"))
        if not schema and "schema" in given and not is_none(given["schema"]):
            self.findings.report(self.place(call), f"{name}: the schema is computed; expected string literals", name)
            return
        text = f"{name}{schema.strip()}" if schema else self.inferred(name, node, given.get("mutates_args"))
        if text is not None:
            self.defined(name, text, node, inferred=not schema)
            self.made[variable or node.name] = name
            devices = self.text(given.get("device_types"))
            self.implemented(name, _key(devices) if devices else "", function, node.name, node)

    def impl(self, call: ast.Call, function: PythonFunction | None, written: str) -> None:
        library = self.library(call.args[0])
        if library is None and isinstance(call.func, ast.Attribute):
            owner = self.library(call.func.value)
            name = self.text(call.args[0])
            key = (
                self.text(call.args[2])
                if len(call.args) > 2
                else self.text(call.args[1])
                if len(call.args) > 1
                else None
            )
            if owner is not None:
                if name is not None:
                    full = name if "::" in name else f"{owner}::{name}"
                    key = key or self.key_of(call.func.value)
                    self.implemented(operator_key(full), _key(key), function, written, call)
                return
        if library is not None and len(call.args) > 1:
            name = self.text(call.args[1])
            key = self.text(call.args[2]) if len(call.args) > 2 else self.key_of(call.args[0])
            name = name and f"{library}::{name}"
        else:
            name = self.text(call.args[0])
            key = self.text(call.args[1]) if len(call.args) > 1 else ""
        if name is not None and "::" in name:
            self.implemented(operator_key(name), _key(key or ""), function, written, call)

    def converter(self, call: ast.Call, node: ast.FunctionDef) -> None:
        name = operator_name(call.args[0])
        if name is None:
            self.findings.report(
                self.place(call), "register_fx_node_ge_converter: expected torch.ops.namespace.name.overload"
            )
        else:
            self.findings.converters.append(converter_of(name, node, self.place(node), self.text))

    # --------------------------------------------------------------------------------------------------------- calls

    def call(self, node: ast.Call) -> None:
        name = last_name(node.func)
        if name == "direct_register_custom_op":
            self.direct(node)
        elif isinstance(node.func, ast.Call) and last_name(node.func.func) in MAKERS and node.func.args:
            if self.text(node.func.args[0]) is not None and len(node.args) == 1:
                self.custom_op(node.func, self.function(node.args[0]), self.held.get(id(node), ""))
            elif self.text(node.func.args[0]) is None and not isinstance(node.func.args[0], ast.Name):
                self.findings.report(
                    self.place(node), "custom_op: the name is computed, so that its operators are not counted; "
                    "expected a string literal. Write @torch.library.custom_op at each function",
                )  # fmt: skip
        elif name in MAKERS and len(node.args) > 1 and (self.text(node.args[0]) or "").count("::") == 1:
            self.custom_op(node, self.function(node.args[1]), self.held.get(id(node), ""))
        elif name == "define" and isinstance(node.func, ast.Attribute) and node.args:
            self.define(node, node.func)
        elif name == "impl" and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
            library = self.library(node.func.value)
            stated = self.text(node.args[0]) or ""
            if library is not None:
                self.impl_call(node, library, self.kernel(node.args[1]))
            elif last_name(node.func.value) == "library" and len(node.args) == 3 and "::" in stated:
                key, written = self.text(node.args[1]) or "", ast.unparse(node.args[2])[:60]
                self.implemented(operator_key(stated), _key(key), self.kernel(node.args[2]), written, node)
        elif name == "register_autograd" and isinstance(node.func, ast.Attribute) and node.args:
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            full = self.made.get(owner) or self.qualified(node.args[0], node)
            if full is not None:
                self.findings.gradients.setdefault(full, self.place(node))
        elif name in FAKES and len(node.args) >= 2:
            full = self.qualified(node.args[0], node)
            if full is not None:
                written = ast.unparse(node.args[1])
                self.implemented(full, "Meta", self.function(node.args[1]), written, node)

    def kernel(self, node: ast.expr) -> PythonFunction | CppFunction | None:
        """Return the function that implements an operator: one of Python, or one that pybind11 binds."""
        bound = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "torch"
        return self.findings.bound(node.attr) if bound and isinstance(node, ast.Attribute) else self.function(node)

    def impl_call(self, node: ast.Call, library: str, function: PythonFunction | CppFunction | None) -> None:
        name = self.text(node.args[0]) or operator_name(node.args[0])
        if name is None:
            if id(node) not in self.followed:
                self.findings.report(self.place(node), "impl: the name is computed; expected a string literal")
            return
        key = self.text(node.args[2]) if len(node.args) > 2 else ""
        if isinstance(node.func, ast.Attribute):
            key = key or self.key_of(node.func.value)
        full = name if "::" in name else f"{library}::{name}"
        self.implemented(operator_key(full), _key(key or ""), function, ast.unparse(node.args[1])[:60], node)

    def define(self, node: ast.Call, target: ast.Attribute) -> None:
        library = self.library(target.value)
        first = self.text(node.args[0])
        second = self.text(node.args[1]) if len(node.args) > 1 else None
        is_function = last_name(target.value) == "library"  # torch.library.define("ns::name", "(…) -> …")
        if library is None and not is_function:
            return
        text = f"{first}{second}" if is_function and first and second else first
        if text is None or "(" not in text:
            owner = self.within.get(id(node))
            self.sources.computed.append((self.place(node), None if owner is None else (self.file, owner.name)))
            return
        space = library or ""
        name = text.partition("(")[0].strip().partition(".")[0]
        self.defined(name if "::" in name else f"{space}::{name}", text, node, namespace=space)

    def direct(self, node: ast.Call) -> None:
        given = {k.arg: k.value for k in node.keywords}
        for position, key in enumerate(
            ("op_name", "op_func", "mutates_args", "fake_impl", "target_lib", "dispatch_key")
        ):
            if position < len(node.args):
                given.setdefault(key, node.args[position])
        name, function = self.text(given.get("op_name")), self.function(given.get("op_func"))
        if name is None:
            self.findings.report(
                self.place(node), "direct_register_custom_op: op_name is computed; expected a string literal"
            )
            return
        library = _DEFAULT_LIBRARY
        if "target_lib" in given and not is_none(given["target_lib"]):
            found = self.library(given["target_lib"])
            if found is None:
                self.findings.report(
                    self.place(node),
                    f"{name}: the library is not one that this module makes; make it there with torch.library.Library",
                    name,
                )
                return
            library = found
        if function is None or not isinstance(function.node, ast.FunctionDef):
            self.findings.report(self.place(node), f"{name}: its function is not one of this repository", name)
            return
        full = f"{library}::{name}"
        text = self.inferred(full, function.node, given.get("mutates_args"))
        if text is None:
            return
        self.defined(full, text, node, inferred=True)
        key = self.text(given.get("dispatch_key")) or "PrivateUse1"
        self.implemented(full, key, function, function.name, node)
        fake = given.get("fake_impl")
        if fake is not None and not is_none(fake):
            self.implemented(full, "Meta", self.function(fake), ast.unparse(fake)[:60], fake)

    def inferred(self, name: str, node: ast.FunctionDef, mutates: ast.expr | None) -> str | None:
        """Return the schema that torch makes from a function's annotations."""
        try:
            return schema_text(name, node, mutates)
        except AnnotationError as error:
            self.findings.report(self.place(error.node), f"{name}: {error}", name)
            return None

    def defined(self, name: str, text: str, node: ast.AST, *, namespace: str = "", inferred: bool = False) -> None:
        place = self.place(node)
        try:
            schema = parse_schema(text, namespace)
        except SchemaTextError as error:
            self.findings.report(place, str(error), name)
            return
        self.findings.definitions.append(Definition(schema.name, schema, place, (), inferred))

    def implemented(
        self, name: str, key: str, function: PythonFunction | CppFunction | None, written: str, node: ast.AST
    ) -> None:
        self.findings.implementations.append(Implementation(name, key, function, written, self.place(node)))


def _key(text: str) -> str:
    return {"npu": "PrivateUse1", "cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": ""}.get(text.lower(), text)

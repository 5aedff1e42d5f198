"""Reader of MLIR's generic form, in which every operation of every dialect is written alike."""

from __future__ import annotations

import re
from typing import Any

from ascend_graph.host.triton.ir import Bits, Block, Dense, IrOperation, IrRegion, Module, TritonProgramError, Type

_SPACE = re.compile(r"(?:\s|//[^\n]*)*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULT = re.compile(r"(%[\w$.-]+)(?::(\d+))?")
_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")
_NAME = re.compile(r"[A-Za-z_][\w$.-]*")
_DIMENSIONS = re.compile(r"(?:\d+x)*")
_LOCATION_ENTRY = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class _Reader:
    """Recursive descent over the text of a module."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.module = Module(locations=dict(_LOCATION_ENTRY.findall(text)))
        self.at = text.index('"builtin.module"')

    # --- characters

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def takes(self, word: str) -> bool:
        self.skip()
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def sees(self, word: str) -> bool:
        self.skip()
        return self.text.startswith(word, self.at)

    def expect(self, word: str) -> None:
        if not self.takes(word):
            line = self.text.count("\n", 0, self.at) + 1
            raise TritonProgramError(
                f"line {line} of the IR: expected {word!r} at {self.text[self.at : self.at + 40]!r}"
            )

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.skip()
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def balanced(self) -> str:
        """Take a bracketed piece of text, and return what is inside."""
        begin, depth = self.at, 0
        while True:
            c = self.text[self.at]
            if c == '"' and (found := _STRING.match(self.text, self.at)):
                self.at = found.end()
                continue
            if self.text.startswith("->", self.at):
                self.at += 2
                continue
            depth += (c in "([{<") - (c in ")]}>")
            self.at += 1
            if depth == 0:
                return self.text[begin + 1 : self.at - 1]

    # --- types

    def type(self) -> Type:
        if self.takes("tensor<"):
            dimensions = self.match(_DIMENSIONS)
            shape = tuple(int(d) for d in (dimensions.group() if dimensions else "").split("x") if d)
            element = self.type()
            if self.takes(","):  # an encoding
                while not self.sees(">"):
                    self.at += 1
            self.expect(">")
            return Type(shape, element.element, element.pointee)
        if self.takes("!tt.ptr<"):
            pointee = self.type()
            if self.takes(","):
                self.match(_NUMBER)
            self.expect(">")
            return Type((), "ptr", pointee)
        if self.takes("!"):
            name = self.match(_NAME)
            inside = self.balanced() if self.text.startswith("<", self.at) else ""
            return Type((), f"!{name.group() if name else ''}<{inside}>")
        if self.sees("("):
            return Type((), f"({self.balanced_here()})")
        name = self.match(_NAME)
        if name is None:
            self.expect("a type")
            raise AssertionError
        inside = f"<{self.balanced()}>" if self.text.startswith("<", self.at) else ""
        return Type((), name.group() + inside)

    def balanced_here(self) -> str:
        self.skip()
        return self.balanced()

    def types(self) -> tuple[Type, ...]:
        """Take a list of types in parentheses, or one type without."""
        if not self.takes("("):
            return (self.type(),)
        found: list[Type] = []
        while not self.takes(")"):
            found.append(self.type())
            self.takes(",")
        return tuple(found)

    # --- attributes

    def attribute(self) -> Any:
        if found := self.match(_STRING):
            return found.group(1)
        if self.sees("["):
            self.expect("[")
            items = []
            while not self.takes("]"):
                items.append(self.attribute())
                self.takes(",")
            return tuple(items)
        if self.sees("{"):
            return self.dictionary("{", "}")
        if self.sees("("):
            inputs = self.types()
            self.expect("->")
            return (inputs, self.types())
        if found := self.match(_NUMBER):
            type_ = self.type() if self.takes(":") else None
            return _number(found.group(), type_)
        if self.takes("@"):
            name = self.match(_NAME) or self.match(_STRING)
            return name.group() if name else ""
        return self.named_attribute()

    def named_attribute(self) -> Any:
        if self.takes("dense<"):
            self.at -= 1
            inside = self.balanced()
            self.expect(":")
            return Dense(inside.strip(), self.type())
        if self.takes("array<"):
            self.at -= 1
            _, _, items = self.balanced().partition(":")
            return tuple(_number(item.strip(), None) for item in items.split(",") if item.strip())
        hashed = "#" if self.takes("#") else ""
        name = self.match(_NAME)
        word = name.group() if name else ""
        if word in ("true", "false"):
            return word == "true"
        inside = f"<{self.balanced()}>" if self.text.startswith("<", self.at) else ""
        return hashed + word + inside

    def dictionary(self, opening: str, closing: str) -> dict[str, Any]:
        self.expect(opening)
        found: dict[str, Any] = {}
        while not self.takes(closing):
            name = self.match(_NAME) or self.match(_STRING)
            key = name.group().strip('"') if name else ""
            found[key] = self.attribute() if self.takes("=") else True
            if not key:
                self.expect(closing)
            self.takes(",")
        return found

    # --- operations

    def location(self) -> str:
        if not self.takes("loc("):
            return ""
        self.at -= 1
        return self.balanced()

    def operation(self) -> IrOperation:
        results: list[str] = []
        while (found := self.match(_RESULT)) is not None:
            name, count = found.group(1), found.group(2)
            results += [name] if count is None else [f"{name}#{i}" for i in range(int(count))]
            if not self.takes(","):
                self.expect("=")
                break
        name_ = self.match(_STRING)
        if name_ is None:
            self.expect("an operation")
            raise AssertionError
        operation = IrOperation(name_.group(1), self.values(), results, module=self.module)
        if self.takes("["):
            while not self.takes("]"):
                operation.successors.append(self.successor())
                self.takes(",")
        attributes = self.dictionary("<{", "}>") if self.sees("<{") else {}
        if self.sees("({"):
            self.expect("(")
            while not self.takes(")"):
                operation.regions.append(self.region())
                self.takes(",")
        if self.sees("{"):
            attributes |= self.dictionary("{", "}")
        operation.attributes = attributes
        self.expect(":")
        operation.operand_types = self.types()
        self.expect("->")
        operation.result_types = self.types()
        operation.location_text = self.location()
        return operation

    def values(self) -> list[str]:
        self.expect("(")
        found: list[str] = []
        while not self.takes(")"):
            value = self.match(_VALUE)
            if value is None:
                self.expect("a value")
                break
            found.append(value.group())
            self.takes(",")
        return found

    def successor(self) -> tuple[str, list[str]]:
        self.expect("^")
        label = self.match(_NAME)
        arguments: list[str] = []
        if self.takes("("):
            while (value := self.match(_VALUE)) is not None:
                arguments.append(value.group())
                self.takes(",")
            self.expect(":")
            while not self.takes(")"):
                self.type()
                self.takes(",")
        return (label.group() if label else "", arguments)

    def region(self) -> IrRegion:
        self.expect("{")
        region = IrRegion()
        block = Block()
        while not self.takes("}"):
            if self.takes("^"):
                label = self.match(_NAME)
                block = Block()
                region.labels[label.group() if label else ""] = len(region.blocks)
                region.blocks.append(block)
                self.block_arguments(block)
                continue
            if not region.blocks:
                region.blocks.append(block)
            block.operations.append(self.operation())
        return region

    def block_arguments(self, block: Block) -> None:
        if self.takes("("):
            while not self.takes(")"):
                value = self.match(_VALUE)
                block.arguments.append(value.group() if value else "")
                self.expect(":")
                self.type()
                self.location()
                self.takes(",")
        self.expect(":")


def _number(text: str, type_: Type | None) -> Any:
    """Return a number; the bits of a float are written in hexadecimal digits."""
    if type_ is not None and type_.element[0] in "fb" and text.lstrip("-").startswith("0x"):
        return Bits(int(text, 16))
    if text.lstrip("-").startswith("0x"):
        return int(text, 16)
    return float(text) if re.search(r"[.eE]", text) else int(text)


def parse(text: str) -> Module:
    """Parse a module in MLIR's generic form.

    Raises:
        TritonProgramError: the text is something else.

    >>> module = parse('"builtin.module"() ({ "tt.func"() <{sym_name = "k"}> ({ "tt.return"() : () -> () }) : () -> () }) : () -> ()')
    >>> module.kernel.attributes["sym_name"]
    'k'
    """
    if '"builtin.module"' not in text:
        raise TritonProgramError(f"expected a module in MLIR's generic form: {text[:40]!r}")
    reader = _Reader(text)
    root = reader.operation()
    for operation in root.regions[0].blocks[0].operations:
        if operation.name == "tt.func":
            reader.module.functions[str(operation.attributes["sym_name"])] = operation
    return reader.module

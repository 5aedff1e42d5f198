"""Reader of one aclnn declaration: its parameters and their types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ascend_graph.aclnn.model import AclnnFunction, AclnnParameter, CType
from ascend_graph.aclnn.roles import directions, documented_optional, is_optional
from ascend_graph.sources import SourceText

FIRST_PHASE = "GetWorkspaceSize"


_PREFIX = "aclnn"


#: Maximum length of a declaration; CANN's longest has under 10,000 characters.
MAX_DECLARATION = 64 * 1024


#: Maximum number of parameters. C compilers need not accept more than 127; CANN's longest function has under 60.
MAX_PARAMETERS = 256


MAX_PARAMETER = 4096


#: Maximum length of the text before the name: attributes, macros and the return type.
_MAX_HEAD = 2000


_LAST = ("uint64_t *", "aclOpExecutor **")


_QUOTED = r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""


_BRACKET = re.compile(rf"[()\[\]{{}};]{_QUOTED}")


_SEPARATOR = re.compile(rf"[(){{}}\[\]<>,=]|->{_QUOTED}")


_ARRAY = re.compile(r"\s*\[[^\]]*\]")


_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|::|.)", re.DOTALL)


ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]", re.DOTALL)


#: A template or a reference: not a C type, and not a type that we can call with.
_CPP_TYPE = re.compile(r"\s*((?:const\s+)?[\w:\s]+(?:<[^()]*>\s*[&*\s]*|&+))\s*(\w+)?\s*\Z")


_COMMENTED_NAME = re.compile(r"/\*\s*([A-Za-z_]\w*)\s*\*/")


_QUALIFIERS = frozenset(
    {"const", "volatile", "restrict", "__restrict", "__restrict__", "struct", "enum", "class", "register", "typename"}
)


_ARITHMETIC = frozenset({"unsigned", "signed", "short", "long", "int", "char", "double", "float"})


class ProblemError(Exception):
    """Error that stops the reading of one declaration, at ``offset``."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def declaration_head(code: str, begin: int) -> str:
    """Return the text between the end of the preceding declaration and a name."""
    start = max(0, begin - _MAX_HEAD)
    return code[max(start, *(code.rfind(mark, start, begin) + 1 for mark in ";{}")) : begin]


class DeclarationReader:
    """Reader of one first phase."""

    def __init__(self, source: SourceText, name: str, begin: int, start: int, following: int) -> None:
        self.source, self.code, self.name = source, source.code, name
        self.begin, self.start = begin, start
        self.limit = min(len(self.code), start + MAX_DECLARATION, following if following >= 0 else len(self.code))

    def read(self) -> AclnnFunction | None:
        """Return the function, or None for another function with a similar name."""
        source, begin = self.source, self.begin
        end = self.closing()
        read = list(self.parameters(end))
        last = tuple(str(parameter.type) for parameter in read[-2:])
        if last != _LAST:
            if not self.name.startswith(_PREFIX):
                return None
            shown = ", ".join(map(str, read[-2:])) or "nothing"
            raise self.problem(begin, f"ends in ({shown}); aclnn functions end in (uint64_t *, aclOpExecutor **)")
        own = read[:-2]
        names: set[str] = set()
        for parameter in own:
            if parameter.name in names:
                raise self.problem(begin, f"two parameters are called {parameter.name}; rename one")
            names.add(parameter.name)
        comment = source.comment_before(begin - len(declaration_head(self.code, begin).lstrip()))
        optional = documented_optional(comment)
        written = directions(self.name, own, f"{comment}\n{source.comments_between(self.start, end)}")
        parameters = tuple(
            replace(
                parameter,
                direction=direction,
                optional=bool(parameter.default) or is_optional(parameter.name) or parameter.name in optional,
            )
            for parameter, direction in zip(own, written, strict=True)
        )
        return AclnnFunction(self.name, parameters, True, comment, source.file, source.line_of(begin))

    def problem(self, offset: int, message: str) -> ProblemError:
        return ProblemError(offset, f"{self.name}{FIRST_PHASE} {message}")

    def closing(self) -> int:
        depth = 1
        for match in _BRACKET.finditer(self.code, self.start, self.limit):
            bracket = match.group()
            if bracket == "(":
                depth += 1
            elif bracket == ")":
                depth -= 1
                if depth == 0:
                    return match.start()
            elif bracket == ";":
                break
        raise self.problem(self.begin, "is not closed: add the ')' that ends its parameters")

    def parameters(self, end: int) -> Iterator[AclnnParameter]:
        """Yield all parameters; a macro may stand for several."""
        number = 0
        for start, stop in split_parameters(self.code, self.start, end):
            raw = self.code[start:stop]
            text = self.source.expanded(raw, start, constants_too=False)
            place = start + len(raw) - len(raw.lstrip())
            for a, b in list(split_parameters(text, 0, len(text))) or [(0, len(text))]:
                number += 1
                if number > MAX_PARAMETERS:
                    raise self.problem(
                        place,
                        f"has more than {MAX_PARAMETERS} parameters; expected the declaration of an aclnn function",
                    )
                if b - a > MAX_PARAMETER:
                    raise self.problem(
                        place, f"parameter {number}: {b - a:,} characters; the limit is {MAX_PARAMETER:,}"
                    )
                try:
                    parameter = read_parameter(text[a:b].strip())
                except ValueError as error:
                    raise self.problem(place, f"parameter {number}: {error}") from None
                name = parameter.name or self.commented_name(start, stop) or f"arg{number}"
                yield parameter if parameter.name else replace(parameter, name=name)

    def commented_name(self, start: int, end: int) -> str:
        """Return a parameter's name from its comment, as in ``const aclTensor * /* self */``; empty without one."""
        match = _COMMENTED_NAME.search(self.source.text, self.source.origin(start), self.source.origin(end))
        return match[1] if match else ""


def split_parameters(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each parameter between two brackets."""
    if not code[start:end].strip() or code[start:end].strip() == "void":
        return
    depth, begin, is_default = 0, start, False
    for match in _SEPARATOR.finditer(code, start, end):
        token = match.group()
        if token in "<>" and is_default:
            continue  # a comparison, as far as that can be told
        if token in "({[<":
            depth += 1
        elif token in ")}]>":
            depth -= 1
        elif token == "=":
            is_default = True
        elif token == "," and depth <= 0:
            yield begin, match.start()
            begin, is_default = match.end(), False
    yield begin, end


def _arithmetic(words: list[str]) -> str:
    """Return the canonical spelling of an arithmetic type.

    >>> _arithmetic(["long", "unsigned", "int"]), _arithmetic(["signed"]), _arithmetic(["signed", "char"])
    ('unsigned long', 'int', 'signed char')
    """
    size = [word for word in words if word in ("short", "long", "char", "double", "float")]
    sign = ["unsigned"] if "unsigned" in words else ["signed"] if "signed" in words and "char" in words else []
    return " ".join([*sign, *(size or ["int"])])


@lru_cache(maxsize=4096)
def read_parameter(text: str) -> AclnnParameter:
    """Read one parameter; an unnamed one gets an empty name.

    Raises:
        ValueError: the text is not a C parameter.
    """
    declared, equals, default = text.partition("=")
    declared = ATTRIBUTE.sub(" ", declared)
    if "<" in declared or "&" in declared:
        declared = " ".join(declared.split())
        if (template := _CPP_TYPE.match(declared)) is not None:
            return AclnnParameter(template[2] or "", CType(template[1].strip()), default=default.strip())
    pointers = 0
    if "[" in declared:
        declared, arrays = _ARRAY.subn("", declared)
        pointers = arrays
    words: list[str] = []
    const = False
    for match in _TOKEN.finditer(declared.strip()):
        token = match[1]
        if token == "*":
            pointers += 1
        elif token == "const":
            const |= pointers == 0
        elif token in _QUALIFIERS:
            continue
        elif token == "::" or (words and words[-1].endswith("::")):
            words[-1:] = [words[-1] + token] if words else [token]
        elif token[0].isalpha() or token[0] == "_":
            words.append(token)
        else:
            shown = " ".join(text.split())
            raise ValueError(
                f"'{shown[:60]}' is not a parameter of C; expected a type and a name, such as const aclTensor *self"
            )
    name = ""
    if len(words) > 1 and words[-1] not in _ARITHMETIC:
        name = words.pop()
    words = ["bool" if word == "_Bool" else word for word in words]
    if not words or (len(words) > 1 and not all(word in _ARITHMETIC for word in words)):
        shown = " ".join(text.split())
        raise ValueError(
            f"'{shown[:60]}' has {'more than one type' if words else 'no type'}; expected one and a name, such as int64_t dim"
        )
    base = _arithmetic(words) if words[0] in _ARITHMETIC else words[0]
    type_ = CType(base, pointers, const and pointers > 0)
    return AclnnParameter(name, type_, default=default.strip() if equals else "")

"""C headers → aclnn functions.

A function is found by its first phase, a declaration whose name ends in ``GetWorkspaceSize`` and whose last parameters are
``uint64_t *`` and ``aclOpExecutor **``; calls of such functions are none. Its second phase is looked for beside it.

Sources: the headers of CANN below include/aclnnop, those that msOpGen generates, and the op_api headers of public operator
repositories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ascend_graph.aclnn.model import AclnnFunction, AclnnParameter, CType
from ascend_graph.aclnn.roles import directions, documented_optional, is_optional
from ascend_graph.sources import Diagnostic, Severity, SourceText, read_source

FIRST_PHASE = "GetWorkspaceSize"
_PREFIX = "aclnn"
#: No declaration is longer; CANN's longest has under 10,000 characters.
MAX_DECLARATION = 64 * 1024
#: C compilers need not take more parameters than 127; CANN's longest function has under 60.
MAX_PARAMETERS = 256
MAX_PARAMETER = 4096
_MAX_NAME = 256
#: All headers of CANN together have 3 MB; reading more takes seconds and memory for something else.
MAX_BYTES = 16 * 1024 * 1024
#: CANN 8.1 has 769 functions in all its headers together.
MAX_FUNCTIONS = 10_000
#: What stands before the name is looked at this far back: attributes, macros and the return type.
_MAX_HEAD = 2000

_SECOND = ("void *", "uint64_t", "aclOpExecutor *", "aclrtStream")
#: aclrtStream is ``void *``.
_STREAMS = ("aclrtStream", "void *")
_LAST = ("uint64_t *", "aclOpExecutor **")
_OPENING = re.compile(r"\s*\(")
_PHASE = re.compile(r"\b(\w+)\s*\(([^();{}]*)\)")
_QUOTED = r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
_BRACKET = re.compile(rf"[()\[\]{{}};]{_QUOTED}")
_SEPARATOR = re.compile(rf"[(){{}}\[\]<>,=]|->{_QUOTED}")
_ARRAY = re.compile(r"\s*\[[^\]]*\]")
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|::|.)", re.DOTALL)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]", re.DOTALL)
#: A template or a reference: no type of C, and none that a call is made with here.
_CPP_TYPE = re.compile(r"\s*((?:const\s+)?[\w:\s]+(?:<[^()]*>\s*[&*\s]*|&+))\s*(\w+)?\s*\Z")
_COMMENTED_NAME = re.compile(r"/\*\s*([A-Za-z_]\w*)\s*\*/")

#: What may not stand where a declaration has its return type: behind it comes a call.
_STATEMENTS = frozenset(
    {"return", "else", "do", "case", "goto", "throw", "new", "delete", "sizeof", "co_return", "and", "or", "not"}
)
_QUALIFIERS = frozenset(
    {"const", "volatile", "restrict", "__restrict", "__restrict__", "struct", "enum", "class", "register", "typename"}
)
_ARITHMETIC = frozenset({"unsigned", "signed", "short", "long", "int", "char", "double", "float"})


@dataclass(frozen=True, slots=True)
class AclnnResult:
    """The functions of a source in its order, and the remarks on it."""

    functions: tuple[AclnnFunction, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The remarks that mean something was lost."""
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR)


class _ProblemError(Exception):
    """What stops the reading of one declaration; ``offset`` is where."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def parse_text(text: str, file: str = "") -> AclnnResult:
    """Read every aclnn function of a text.

    ``file`` is the name that diagnostics and functions carry. Nothing is raised for what the text contains: problems are in
    ``AclnnResult.diagnostics``.

    >>> result = parse_text('''
    ... ACLNN_API aclnnStatus aclnnAddsGetWorkspaceSize(const aclTensor* self, const aclScalar* other,
    ...     const aclScalar* alpha, aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);
    ... ACLNN_API aclnnStatus aclnnAdds(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);
    ... ''')
    >>> print(result.functions[0])
    aclnnAdds(const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out)
    >>> [parameter.direction.value for parameter in result.functions[0].parameters]
    ['in', 'in', 'in', 'out']
    """
    if len(text) > MAX_BYTES:
        return AclnnResult(diagnostics=(Diagnostic(Severity.ERROR, _too_large(len(text)), file, 1, 1),))
    return parse_source(SourceText(text, file))


def parse_file(path: str | Path) -> AclnnResult:
    """Read every aclnn function of a file.

    Raises:
        SourceError: the file cannot be read as text, or is larger than ``MAX_BYTES``.
    """
    return parse_source(read_source(Path(path), MAX_BYTES))


def parse_source(source: SourceText) -> AclnnResult:
    """Read every aclnn function of a source."""
    code = source.code
    if len(code) > MAX_BYTES and FIRST_PHASE in code:
        source.report(Severity.ERROR, 0, _too_large(len(source.text)))
        return AclnnResult(diagnostics=tuple(source.diagnostics))
    found: list[AclnnFunction] = []
    places: list[int] = []
    position = code.find(FIRST_PHASE)
    seconds: dict[str, tuple[int, str]] | None = None
    while position >= 0:
        after = position + len(FIRST_PHASE)
        following = code.find(FIRST_PHASE, after)
        if source.full:
            source.report(Severity.ERROR, position, "too many problems: the rest was not read")
            break
        if len(found) == MAX_FUNCTIONS:
            message = f"more than {MAX_FUNCTIONS:,} functions are no header's: the rest was not read"
            source.report(Severity.ERROR, position, message)
            break
        declaration = _declared(code, position, following if following >= 0 else len(code))
        position = following
        if declaration is None or source.is_string(declaration[1]):
            continue
        name, begin, start = declaration
        try:
            function = _Declaration(source, name, begin, start, following).read()
            if function is None:
                continue
            seconds = _second_phases(code) if seconds is None else seconds
            if name in seconds:
                _check_second_phase(name, *seconds[name])
            else:
                message = f"{name}{FIRST_PHASE} is declared, but no {name}(void *workspace, …) in this file"
                source.report(Severity.WARNING, begin, message, name)
                function = replace(function, has_second_phase=False)
        except _ProblemError as problem:
            source.report(Severity.ERROR, problem.offset, str(problem), name)
            continue
        found.append(function)
        places.append(begin)
    functions = _without_repetitions(source, found, places)
    diagnostics = sorted(source.diagnostics, key=lambda diagnostic: (diagnostic.line, diagnostic.column))
    return AclnnResult(tuple(functions), tuple(diagnostics))


def _too_large(size: int) -> str:
    return f"{size:,} characters are no aclnn header: no function was read; the limit is {MAX_BYTES:,}"


def merge_results(results: Iterable[AclnnResult]) -> AclnnResult:
    """One result of several, in their order."""
    functions: list[AclnnFunction] = []
    diagnostics: list[Diagnostic] = []
    for result in results:
        functions += result.functions
        diagnostics += result.diagnostics
    return AclnnResult(tuple(functions), tuple(diagnostics))


def _declared(code: str, suffix: int, limit: int) -> tuple[str, int, int] | None:
    """Name, begin and first parameter's place of the declaration whose name ends at a suffix; None if it is none."""
    opening = _OPENING.match(code, suffix + len(FIRST_PHASE), limit)
    begin = _word_begin(code, suffix)
    if opening is None or begin == suffix or code[begin].isdigit():
        return None
    # A declaration has its return type before the name; between the two there may be attributes.
    head = _head(code, begin).rstrip()
    if head.endswith((")", "]")):
        head = _ATTRIBUTE.sub("", head).rstrip()
    word = head[_word_begin(head, len(head)) :]
    if not word or word[0].isdigit() or word in _STATEMENTS:
        return None
    return code[begin:suffix], begin, opening.end()


def _word_begin(code: str, end: int) -> int:
    """Where the name begins that ends at a place; the place itself if none does, or one that is no name's length."""
    begin = end
    while begin and (code[begin - 1].isalnum() or code[begin - 1] == "_"):
        begin -= 1
        if end - begin > _MAX_NAME:
            return end
    return begin


def _head(code: str, begin: int) -> str:
    """What stands between the end of what comes before and a name."""
    start = max(0, begin - _MAX_HEAD)
    return code[max(start, *(code.rfind(mark, start, begin) + 1 for mark in ";{}")) : begin]


class _Declaration:
    """The reading of one first phase."""

    def __init__(self, source: SourceText, name: str, begin: int, start: int, following: int) -> None:
        self.source, self.code, self.name = source, source.code, name
        self.begin, self.start = begin, start
        self.limit = min(len(self.code), start + MAX_DECLARATION, following if following >= 0 else len(self.code))

    def read(self) -> AclnnFunction | None:
        """The function; None if it is another one of such a name."""
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
                raise self.problem(begin, f"two parameters are called {parameter.name}")
            names.add(parameter.name)
        comment = source.comment_before(begin - len(_head(self.code, begin).lstrip()))
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

    def problem(self, offset: int, message: str) -> _ProblemError:
        return _ProblemError(offset, f"{self.name}{FIRST_PHASE} {message}")

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
        raise self.problem(self.begin, "is not closed: no ')' ends its parameters")

    def parameters(self, end: int) -> Iterator[AclnnParameter]:
        """All parameters; a macro may stand for several."""
        number = 0
        for start, stop in _split(self.code, self.start, end):
            raw = self.code[start:stop]
            text = self.source.expanded(raw, start, constants_too=False)
            place = start + len(raw) - len(raw.lstrip())
            for a, b in list(_split(text, 0, len(text))) or [(0, len(text))]:
                number += 1
                if number > MAX_PARAMETERS:
                    raise self.problem(place, f"has more than {MAX_PARAMETERS} parameters: that is no aclnn function")
                if b - a > MAX_PARAMETER:
                    raise self.problem(
                        place, f"parameter {number}: {b - a:,} characters; the limit is {MAX_PARAMETER:,}"
                    )
                try:
                    parameter = _read_parameter(text[a:b].strip())
                except ValueError as error:
                    raise self.problem(place, f"parameter {number}: {error}") from None
                name = parameter.name or self.commented_name(start, stop) or f"arg{number}"
                yield parameter if parameter.name else replace(parameter, name=name)

    def commented_name(self, start: int, end: int) -> str:
        """The name of a parameter that has it in a comment, ``const aclTensor * /* self */``."""
        match = _COMMENTED_NAME.search(self.source.text, self.source.origin(start), self.source.origin(end))
        return match[1] if match else ""


def _split(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parameters between two brackets."""
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
    """One way of writing a type of numbers.

    >>> _arithmetic(["long", "unsigned", "int"]), _arithmetic(["signed"]), _arithmetic(["signed", "char"])
    ('unsigned long', 'int', 'signed char')
    """
    size = [word for word in words if word in ("short", "long", "char", "double", "float")]
    sign = ["unsigned"] if "unsigned" in words else ["signed"] if "signed" in words and "char" in words else []
    return " ".join([*sign, *(size or ["int"])])


@lru_cache(maxsize=4096)
def _read_parameter(text: str) -> AclnnParameter:
    """One parameter; without a name its name is empty.

    Raises:
        ValueError: it is none.
    """
    declared, equals, default = text.partition("=")
    declared = _ATTRIBUTE.sub(" ", declared)
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
            raise ValueError(f"'{shown[:60]}' is no parameter of C")
    name = ""
    if len(words) > 1 and words[-1] not in _ARITHMETIC:
        name = words.pop()
    words = ["bool" if word == "_Bool" else word for word in words]
    if not words or (len(words) > 1 and not all(word in _ARITHMETIC for word in words)):
        shown = " ".join(text.split())
        raise ValueError(f"'{shown[:60]}' has {'more than one type' if words else 'no type'}")
    base = _arithmetic(words) if words[0] in _ARITHMETIC else words[0]
    type_ = CType(base, pointers, const and pointers > 0)
    return AclnnParameter(name, type_, default=default.strip() if equals else "")


def _second_phases(code: str) -> dict[str, tuple[int, str]]:
    """By name, place and parameters of what may be second phases."""
    found: dict[str, tuple[int, str]] = {}
    for match in _PHASE.finditer(code):
        if "aclOpExecutor" in match[2] and not match[1].endswith(FIRST_PHASE):
            found.setdefault(match[1], (match.start(), match[2]))
    return found


def _check_second_phase(name: str, offset: int, text: str) -> None:
    try:
        types = _types(text)
    except ValueError as error:
        raise _ProblemError(offset, f"{name}: {error}") from None
    if types[:3] != _SECOND[:3] or len(types) != 4 or types[3] not in _STREAMS:
        raise _ProblemError(offset, f"{name} takes ({', '.join(types)}); second phases take ({', '.join(_SECOND)})")


@lru_cache(maxsize=256)
def _types(text: str) -> tuple[str, ...]:
    """The types of a list of parameters."""
    return tuple(str(_read_parameter(text[a:b].strip()).type) for a, b in _split(text, 0, len(text)))


def _without_repetitions(source: SourceText, functions: list[AclnnFunction], places: list[int]) -> list[AclnnFunction]:
    """Each declaration once; a function that is declared in two ways stays twice, and is remarked."""
    seen: dict[str, list[AclnnFunction]] = {}
    kept = []
    for function, place in zip(functions, places, strict=True):
        earlier = seen.setdefault(function.name, [])
        if function in earlier:
            continue
        if earlier and not source.full:
            message = f"{function.name} is declared differently in line {earlier[0].line}"
            source.report(Severity.WARNING, place, message, function.name)
        earlier.append(function)
        kept.append(function)
    return kept

"""Parser of aclnn functions in C headers.

The parser finds a function by its first phase: a declaration (not a call) whose name ends in ``GetWorkspaceSize`` and
whose last parameters are ``uint64_t *`` and ``aclOpExecutor **``. It searches the second phase in the same source.

Sources: CANN's headers under include/aclnnop, the headers that msOpGen generates, and the op_api headers of public
operator repositories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ascend_graph.aclnn.declaration import (
    ATTRIBUTE,
    FIRST_PHASE,
    DeclarationReader,
    ProblemError,
    declaration_head,
    read_parameter,
    split_parameters,
)
from ascend_graph.aclnn.model import AclnnFunction
from ascend_graph.sources import Diagnosed, Diagnostic, Severity, SourceText, read_source

_MAX_NAME = 256
#: Maximum size of a source. All headers of CANN have 3 MB in total; a larger source is something else.
MAX_BYTES = 16 * 1024 * 1024
#: Maximum number of functions in a source; all headers of CANN 8.1 together have 769.
MAX_FUNCTIONS = 10_000

_SECOND = ("void *", "uint64_t", "aclOpExecutor *", "aclrtStream")
#: Types of the stream parameter: aclrtStream is ``void *``.
_STREAMS = ("aclrtStream", "void *")
_OPENING = re.compile(r"\s*\(")
_PHASE = re.compile(r"\b(\w+)\s*\(([^();{}]*)\)")

#: Words that precede a call, where a declaration has its return type.
_STATEMENTS = frozenset(
    {"return", "else", "do", "case", "goto", "throw", "new", "delete", "sizeof", "co_return", "and", "or", "not"}
)


@dataclass(frozen=True, slots=True)
class AclnnResult(Diagnosed):
    """The functions of a source in its order, and the diagnostics about it."""

    functions: tuple[AclnnFunction, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def parse_text(text: str, file: str = "") -> AclnnResult:
    """Read every aclnn function of a text.

    ``file`` is the file name in diagnostics and functions. The contents of the text never raise: problems are in
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
            source.report(Severity.ERROR, position, "too many problems: the rest was not read; fix these first")
            break
        if len(found) == MAX_FUNCTIONS:
            message = f"more than {MAX_FUNCTIONS:,} functions in one header: the rest was not read"
            source.report(Severity.ERROR, position, message)
            break
        declaration = _declared(code, position, following if following >= 0 else len(code))
        position = following
        if declaration is None or source.is_string(declaration[1]):
            continue
        name, begin, start = declaration
        try:
            function = DeclarationReader(source, name, begin, start, following).read()
            if function is None:
                continue
            seconds = _second_phases(code) if seconds is None else seconds
            if name in seconds:
                _check_second_phase(name, *seconds[name])
            else:
                message = f"{name}{FIRST_PHASE} is declared, but no {name}(void *workspace, …) in this file"
                source.report(Severity.WARNING, begin, message, name)
                function = replace(function, has_second_phase=False)
        except ProblemError as problem:
            source.report(Severity.ERROR, problem.offset, str(problem), name)
            continue
        found.append(function)
        places.append(begin)
    functions = _without_repetitions(source, found, places)
    diagnostics = sorted(source.diagnostics, key=lambda diagnostic: (diagnostic.line, diagnostic.column))
    return AclnnResult(tuple(functions), tuple(diagnostics))


def _too_large(size: int) -> str:
    return f"{size:,} characters are too many for an aclnn header: no function was read; the limit is {MAX_BYTES:,}"


def merge_results(results: Iterable[AclnnResult]) -> AclnnResult:
    """Merge several results into one, in order."""
    functions: list[AclnnFunction] = []
    diagnostics: list[Diagnostic] = []
    for result in results:
        functions += result.functions
        diagnostics += result.diagnostics
    return AclnnResult(tuple(functions), tuple(diagnostics))


def _declared(code: str, suffix: int, limit: int) -> tuple[str, int, int] | None:
    """Return name, begin and first parameter's offset of the declaration whose name ends at ``suffix``.

    Return None if the text there is not a declaration.
    """
    opening = _OPENING.match(code, suffix + len(FIRST_PHASE), limit)
    begin = _word_begin(code, suffix)
    if opening is None or begin == suffix or code[begin].isdigit():
        return None
    # A declaration has its return type before the name; between the two there may be attributes.
    head = declaration_head(code, begin).rstrip()
    if head.endswith((")", "]")):
        head = ATTRIBUTE.sub("", head).rstrip()
    word = head[_word_begin(head, len(head)) :]
    if not word or word[0].isdigit() or word in _STATEMENTS:
        return None
    return code[begin:suffix], begin, opening.end()


def _word_begin(code: str, end: int) -> int:
    """Return the start of the word that ends at ``end``; ``end`` itself if there is none, or it is too long."""
    begin = end
    while begin and (code[begin - 1].isalnum() or code[begin - 1] == "_"):
        begin -= 1
        if end - begin > _MAX_NAME:
            return end
    return begin


def _second_phases(code: str) -> dict[str, tuple[int, str]]:
    """Return offset and parameters of each possible second phase, by name."""
    found: dict[str, tuple[int, str]] = {}
    for match in _PHASE.finditer(code):
        if "aclOpExecutor" in match[2] and not match[1].endswith(FIRST_PHASE):
            found.setdefault(match[1], (match.start(), match[2]))
    return found


def _check_second_phase(name: str, offset: int, text: str) -> None:
    try:
        types = _types(text)
    except ValueError as error:
        raise ProblemError(offset, f"{name}: {error}") from None
    if types[:3] != _SECOND[:3] or len(types) != 4 or types[3] not in _STREAMS:
        raise ProblemError(offset, f"{name} takes ({', '.join(types)}); second phases take ({', '.join(_SECOND)})")


@lru_cache(maxsize=256)
def _types(text: str) -> tuple[str, ...]:
    """Return the types of a parameter list."""
    return tuple(str(read_parameter(text[a:b].strip()).type) for a, b in split_parameters(text, 0, len(text)))


def _without_repetitions(source: SourceText, functions: list[AclnnFunction], places: list[int]) -> list[AclnnFunction]:
    """Return each distinct declaration once; report a function that is declared in two ways."""
    seen: dict[str, list[AclnnFunction]] = {}
    kept = []
    for function, place in zip(functions, places, strict=True):
        earlier = seen.setdefault(function.name, [])
        if function in earlier:
            continue
        if earlier and not source.full:
            message = f"{function.name} is declared differently in line {earlier[0].line}; keep one of both"
            source.report(Severity.WARNING, place, message, function.name)
        earlier.append(function)
        kept.append(function)
    return kept

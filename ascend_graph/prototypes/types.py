"""Reader of the type argument of INPUT, OUTPUT and DATATYPE: the dtypes that it means.

The real macros only turn this argument into a string, so headers contain text there that is not valid C++. The reader
understands as much as possible. The rest is in ``TypeFacts.unknown`` and in a problem; nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache

from ascend_graph.prototypes.dtypes import DTYPE_BY_GE_NAME, DTYPE_SYNONYMS, NAMED_SETS, DataType


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """The facts that one type argument states."""

    dtypes: tuple[DataType, ...] = ()
    #: A string or a lone name that is not a dtype: a DATATYPE symbol, if the op declares it.
    symbol: str | None = None
    promote: tuple[str, ...] = ()
    list_type: bool = False
    #: Each unknown name with its offset in the text.
    unknown: tuple[tuple[str, int], ...] = ()
    #: Each problem with its offset in the text.
    problems: tuple[tuple[int, str], ...] = ()


#: Maximum length of a type or default of an op.
MAX_ARGUMENT = 65536
#: Maximum number of problems listed for one type; the rest is only counted.
_MOST_PROBLEMS = 16
#: Maximum length of a text whose facts are cached.
_LONGEST_CACHED = 1024

_TOKEN = re.compile(r'[A-Za-z_]\w*|"[^"]*"?|::|[^\s]')
_CLOSES = {"(": ")", "{": "}"}
_CONSTRUCTORS = ("TensorType", "ListTensorType", "Promote")
_QUALIFIERS = ("ge", "TensorType", "std", "domi")


def read_type(text: str) -> TypeFacts:
    """Read one type argument, e.g. ``TensorType({DT_FLOAT16, NumberType()})``.

    >>> read_type("TensorType({DT_FLOAT16, DT_FLOAT})").dtypes
    (<DataType.FLOAT16: 1>, <DataType.FLOAT: 0>)
    >>> read_type('"T"').symbol
    'T'
    """
    return _read_cached(text) if len(text) <= _LONGEST_CACHED else _TypeReader(text).read()


@lru_cache(maxsize=4096)
def _read_cached(text: str) -> TypeFacts:
    return _TypeReader(text).read()


class _TypeReader:
    def __init__(self, text: str) -> None:
        self.tokens = [(match.group(), match.start()) for match in _TOKEN.finditer(text)]
        self.dtypes: dict[DataType, None] = {}  # a set that keeps the order
        self.promote: list[str] = []
        self.unknown: list[tuple[str, int]] = []
        self.problems: list[tuple[int, str]] = []
        self.unsaid = 0
        self.list_type = False

    def _check_end(self, open_brackets: list[tuple[str, int]]) -> None:
        """Report brackets that are never closed, and the number of unlisted problems."""
        if open_brackets:
            bracket, offset = open_brackets[-1]
            self._problem(offset, f"{bracket!r} is never closed; add its {_CLOSES[bracket]!r}")
        if self.unsaid:
            self.problems.append((0, f"{self.unsaid:,} more problems of this type are not listed"))

    def _lone_symbol(self) -> TypeFacts | None:
        """Return the facts of a type that is one symbol, declared or not; None for any other type."""
        if len(self.tokens) != 1:
            return None
        lone, offset = self.tokens[0]
        if lone[0] == '"':
            return TypeFacts(symbol=lone.strip('"').strip())
        if lone not in DTYPE_BY_GE_NAME and lone not in DTYPE_SYNONYMS and lone.isidentifier():
            return TypeFacts(symbol=lone, unknown=((lone, offset),))
        return None

    def read(self) -> TypeFacts:
        tokens = self.tokens
        if (lone := self._lone_symbol()) is not None:
            return lone
        open_brackets: list[tuple[str, int]] = []
        in_promote = False
        item_before = False  # whether a comma has to come before the next item
        index = 0
        while index < len(tokens):
            token, offset = tokens[index]
            following = tokens[index + 1][0] if index + 1 < len(tokens) else ""
            index += 1
            if token in "({":
                open_brackets.append((token, offset))
                item_before = False
            elif token in ")}":
                if open_brackets and _CLOSES[open_brackets[-1][0]] == token:
                    open_brackets.pop()
                else:
                    self._problem(offset, f"{token!r} closes nothing; leave it out")
                item_before = True
            elif token == ",":
                item_before = False
            elif token[0] == '"':
                if in_promote:
                    self.promote.append(token.strip('"').strip())
                else:
                    self._unknown(token, offset, f"the string {token} names a type only when it stands alone")
                item_before = True
            elif token.isidentifier():
                if following in ("::", ":"):
                    self._qualifier(token, offset, tokens[index])
                    index += 1
                    if index < len(tokens) and tokens[index][0] in "({":
                        self._problem(offset, f"'{token}{following}' stands before a bracket; write '{token}('")
                    continue
                if item_before:
                    self._problem(offset, f"a comma is missing before {token}; write ', {token}'")
                item_before = True
                if following and following in "({" and token in _CONSTRUCTORS:
                    self.list_type |= token == "ListTensorType"
                    in_promote |= token == "Promote"
                elif following == "(" and token in NAMED_SETS and index + 1 < len(tokens):
                    self.dtypes.update(dict.fromkeys(NAMED_SETS[token]))
                    if tokens[index + 1][0] == ")":
                        index += 2
                else:
                    self._name(token, offset, following)
            else:
                self._problem(offset, f"{token!r} was not understood; write a list of dtypes such as DT_FLOAT")
        self._check_end(open_brackets)
        return TypeFacts(
            tuple(self.dtypes),
            None,
            tuple(self.promote),
            self.list_type,
            tuple(self.unknown),
            tuple(self.problems),
        )

    def _problem(self, offset: int, message: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append((offset, message))
        else:
            self.unsaid += 1

    def _unknown(self, name: str, offset: int, message: str) -> None:
        self.unknown.append((name.strip('"'), offset))
        self._problem(offset, message)

    def _qualifier(self, name: str, offset: int, colons: tuple[str, int]) -> None:
        if colons[0] == ":":
            self._problem(colons[1], f"':' stands where '::' is meant; write {name}::")
        if name not in _QUALIFIERS:
            self._problem(offset, f"{name} is not a type; write TensorType")

    def _name(self, name: str, offset: int, following: str) -> None:
        dtype = DTYPE_BY_GE_NAME.get(name)
        if dtype is not None:
            self.dtypes[dtype] = None
        elif name in DTYPE_SYNONYMS:
            dtype = DTYPE_SYNONYMS[name]
            self.dtypes[dtype] = None
            self._problem(offset, f"ge::DataType has no {name}; write {dtype.ge_name}, as it is read")
        elif name in NAMED_SETS and name not in ("ALL", "FLOAT"):
            self.dtypes.update(dict.fromkeys(NAMED_SETS[name]))
            self._problem(offset, f"{name} is a function; write {name}()")
        elif len(self.problems) >= _MOST_PROBLEMS:
            self._unknown(name, offset, "")
        elif following and following in "({" and difflib.get_close_matches(name, _CONSTRUCTORS, 1, 0.75):
            self._problem(offset, f"{name} is not a type; write TensorType, as it is read")
        else:
            known = [*DTYPE_BY_GE_NAME, *NAMED_SETS]
            close = difflib.get_close_matches(name, known, 2, 0.7)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            self._unknown(name, offset, f"{name} is neither a dtype nor a set of dtypes{hint}")

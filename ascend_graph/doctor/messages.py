"""Command ``doctor --message``: frequent error messages with causes and fixes, and checks of this machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.installation import standard_library
from ascend_graph.doctor.operators import extension, function, seen, torch_symbols, why_missing
from ascend_graph.environment import real_cann, toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.tables import read_table
from ascend_graph.versions import check as check_versions

#: Function that checks this machine for the subject of a message.
_Examination = Callable[[re.Match[str], Mapping[str, str]], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """Known error message. Its texts may name the groups of its pattern: ``{function}``."""

    name: str
    pattern: str
    cause: str
    #: Command that shows whether this is the cause.
    check: str
    #: Line that fixes it.
    fix: str
    #: Check of this machine for the subject of the message.
    here: _Examination | None = None
    #: True for a message that only reports a failure, while other messages next to it give the cause.
    is_general: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Known message found in a text."""

    name: str
    line: str
    cause: str
    check: str
    fix: str
    here: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON-compatible values."""
        return {
            "name": self.name,
            "line": self.line,
            "cause": self.cause,
            "check": self.check,
            "fix": self.fix,
            "here": [finding.as_dict() for finding in self.here],
        }

    def __str__(self) -> str:
        lines = [self.line, f"  cause: {self.cause}"]
        for finding in self.here:
            lines.append(f"  here:  {finding.text}")
            if finding.is_wrong and finding.fix:
                lines.append(f"         → {finding.fix}")
        return "\n".join([*lines, f"  check: {self.check}", f"  fix:   {self.fix}"])


def _function_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    yield from function(found["function"], environment)


def _symbol_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    symbols = torch_symbols()
    path = Path(found["library"])
    if path.is_file():
        yield from extension(path)
    elif symbols:
        is_there = found["symbol"] in symbols
        text = (
            f"the torch that is installed here has {found['symbol']}"
            if is_there
            else why_missing(found["symbol"], symbols)
        )
        yield Finding("torch", text)
    try:
        check_versions(environment)
    except AscendGraphError as error:
        yield Finding("torch and torch_npu", str(error), True)


def _cann_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    if not found["library"]:
        return
    cann = real_cann(environment)
    library = f"{found['library']}.so"
    if cann:
        yield Finding(
            "CANN", f"a CANN is installed: {cann}", True, "source its set_env.sh in the shell that starts python"
        )
    elif (toolkit_directory() / "lib64" / library).exists():
        yield Finding(
            "CANN",
            "CANN is not installed on this machine; the host runtime has the library",
            True,
            "ascend-graph run script.py",
        )


def _standard_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    library = standard_library(environment)
    if library is not None and found["interface"] in library.interfaces:
        version = ".".join(map(str, library.interfaces[found["interface"]]))
        yield Finding(
            "C++ library", f"a process started here loads {library.path}, which has {found['interface']}_{version}"
        )


#: Pattern of CANN's library names.
_OF_CANN = (
    r"lib(?:hccl|hcomm|ascendcl|ascend_|acl_|aclnn|ge_|graph|opapi|nnopbase|platform|runtime|msprof|profapi|ascendalog|"
    r"unified_dlog|tiling|register|error_manager|cust_|lowering|exe_graph|metadef|mmpa|slog|c_sec|tsdclient|datatransfer)\w*"
)
#: Pattern of mangled C++ names of PyTorch or torch_npu.
_TORCH_NAME = r"_Z\w*?(?:2at|3c10|5torch|6caffe2|6at_npu|7c10_npu|9torch_npu)\w*"

_HERE: dict[str, _Examination] = {
    "function": _function_here,
    "symbol": _symbol_here,
    "cann": _cann_here,
    "standard": _standard_here,
}


@cache
def known_messages() -> tuple[KnownMessage, ...]:
    """Return the known messages from ``messages.toml``, the specific before the general."""
    table = read_table(Path(__file__).with_name("messages.toml"))
    return tuple(
        KnownMessage(
            entry["name"],
            entry["pattern"].replace("{OF_CANN}", _OF_CANN).replace("{TORCH_NAME}", _TORCH_NAME),
            entry["cause"],
            entry["check"],
            entry["fix"],
            _HERE[entry["here"]] if "here" in entry else None,
            entry.get("general", False),
        )
        for entry in table["message"]
    )


#: Maximum number of diagnoses of one log; more would be repetition.
_MOST = 5
#: Maximum number of characters of a line that are read.
_LONGEST = 4_000


class _Words(dict[str, str]):
    """Groups of a match, with words in place of a group that did not match."""

    def __missing__(self, key: str) -> str:
        return f"the {key}"


def diagnose(text: str, environment: Mapping[str, str]) -> list[Diagnosis]:
    """Return the known messages in a text, in order; general ones only if no specific one is found.

    Args:
        text: A message, a traceback, or a log.
        environment: The environment of this machine, for the checks of the messages' subjects.
    """
    text = _plain(text)
    found: dict[int, tuple[KnownMessage, re.Match[str]]] = {}
    for known in known_messages():
        match = re.search(known.pattern, text)
        # Of two entries for one place in the text the first is the particular one.
        if match is not None and not any(_overlap(match, other) for _, other in found.values()):
            found.setdefault(match.end(), (known, match))
    if any(not known.is_general for known, _ in found.values()):
        found = {at: (known, match) for at, (known, match) in found.items() if not known.is_general}
    return [_diagnosis(*found[at], text, environment) for at in sorted(found)][:_MOST]


def _plain(text: str) -> str:
    """Return a text without terminal colors and with lines cut to the maximum length."""
    return "\n".join(line[:_LONGEST] for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines())


def _overlap(a: re.Match[str], b: re.Match[str]) -> bool:
    return a.start() < b.end() and b.start() < a.end()


def _diagnosis(known: KnownMessage, match: re.Match[str], text: str, environment: Mapping[str, str]) -> Diagnosis:
    # An operator may be named by one of several groups: operator, operator2, …
    words = _Words()
    for name, value in match.groupdict().items():
        if value:
            words.setdefault(name.rstrip("0123456789"), value)
    try:
        here = tuple(known.here(match, environment)) if known.here is not None else ()
    except (AscendGraphError, OSError) as error:  # what this machine lacks is no reason not to answer
        here = (Finding("here", str(error)),)
    # The end of the match is where the message is: a pattern may begin with what stands before it on the line.
    line = text[text.rfind("\n", 0, match.end()) + 1 :].partition("\n")[0].strip()
    cause, command, fix = (part.format_map(words) for part in (known.cause, known.check, known.fix))
    return Diagnosis(known.name, line if len(line) <= 300 else f"{line[:297]}…", cause, command, fix, here)


def last_error(text: str) -> str:
    """Return the line of a text that most likely names the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b[A-Z]\w*(?:Error|Exception)\b|\berror\b", line)]
    return (errors or lines or [""])[-1]


def without_answer(text: str) -> str:
    """Return advice for an unknown message."""
    return (
        f"not known: {last_error(text) or 'an empty text'}\n"
        "  This message is not among the known ones. The first error of the log is the one to give, not the last; "
        "`ascend-graph doctor` looks at the installation, `ascend-graph doctor MODULE` at its operators."
    )


def hint(error: BaseException) -> str | None:
    """Return cause and fix of a known error, or None for an unknown one."""
    found = diagnose(f"{type(error).__name__}: {error}", seen({}))
    return f"{found[0].cause}\n  → {found[0].fix}" if found else None

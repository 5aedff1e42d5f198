"""Reports of operator checks: as text, as data and as JUnit XML for continuous integration."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ascend_graph.checks.advice import advice_on
from ascend_graph.errors import AscendGraphError

if TYPE_CHECKING:
    from rich.console import RenderResult


@dataclass(frozen=True, slots=True)
class AttrCoverage:
    """Values of one attr that the calls of a report covered."""

    name: str
    #: Values with which a call ran.
    tried: tuple[Any, ...]
    #: Values that the operator refuses, with its message.
    refused: tuple[tuple[Any, str], ...] = ()
    #: Known values without a call: no call with them was found that fits the relation.
    untried: tuple[Any, ...] = ()
    remark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the coverage as JSON-compatible values."""
        return {
            "name": self.name,
            "tried": [_plain(value) for value in self.tried],
            "refused": [{"value": _plain(value), "message": why} for value, why in self.refused],
            "untried": [_plain(value) for value in self.untried],
            "remark": self.remark,
        }

    def __str__(self) -> str:
        parts = [f"tried {_listed(self.tried)}" if self.tried else "no value was tried"]
        parts += [f"refused {_listed([value for value, _ in self.refused])}"] if self.refused else []
        parts += [f"not tried {_listed(self.untried)}"] if self.untried else []
        return f"{self.name}: {'; '.join(parts)}{f' ({self.remark})' if self.remark else ''}"


#: Maximum number of values that are listed.
_MOST = 16


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(
        value if isinstance(value, str) and value.startswith("torch.") else repr(value) for value in values[:_MOST]
    )
    return f"{shown}, and {len(values) - _MOST} more" if len(values) > _MOST else shown


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list | None) else str(value)


class CheckError(AscendGraphError, AssertionError):
    """Failed check of an operator; the message has the violation and the call."""


class CheckState(enum.Enum):
    """Outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check of one operator."""

    check: str
    state: CheckState
    #: Number of calls that passed.
    calls: int = 0
    #: Violation, or reason why there was nothing to check.
    message: str = ""
    #: Smallest call that shows the violation.
    sample: str = ""
    seconds: float = 0.0
    #: True if the check ``repeats`` of the same report failed: no value of the operator's can be compared.
    unsteady: bool = False

    @property
    def advice(self) -> str:
        """The most frequent cause of a failure of this check, and what to write; empty if it did not fail."""
        return advice_on(self.check, self.message, self.unsteady) if self.state is CheckState.FAILED else ""


@dataclass(frozen=True)
class CheckReport:
    """Report of all checks of one operator, for printing or as data."""

    operator: str
    outcomes: tuple[CheckResult, ...]
    #: Remarks that are not failures: calls that the operator refused.
    notes: tuple[str, ...] = ()
    #: Coverage of each attr's values by the calls.
    attrs: tuple[AttrCoverage, ...] = ()

    def __post_init__(self) -> None:
        if any(o.check == "repeats" and o.state is CheckState.FAILED for o in self.outcomes):
            object.__setattr__(self, "outcomes", tuple(replace(o, unsteady=True) for o in self.outcomes))

    @property
    def ok(self) -> bool:
        """True if no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """Checks that failed."""
        return tuple(o for o in self.outcomes if o.state is CheckState.FAILED)

    @property
    def seconds(self) -> float:
        """Duration of all checks in seconds."""
        return sum(o.seconds for o in self.outcomes)

    def raise_on_failure(self) -> None:
        """Raise if anything failed.

        Raises:
            CheckError: A check failed; the message has one line for each failure, attr and note.
        """
        __tracebackhide__ = True
        if self.failures:
            rest = [*(f"attr {one}" for one in self.attrs), *(f"note: {note}" for note in self.notes)]
            lines = [*map(_line, self.failures), *(f"  {line}" for line in rest)]
            raise CheckError("\n".join([self.operator, *lines]))

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible values."""
        return {
            "operator": self.operator,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "attrs": [one.as_dict() for one in self.attrs],
            "checks": [
                {
                    "check": o.check,
                    "state": o.state.value,
                    "calls": o.calls,
                    "message": o.message,
                    "sample": o.sample,
                    "advice": o.advice,
                    "seconds": round(o.seconds, 3),
                }
                for o in self.outcomes
            ],
        }

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=120, no_color=True, legacy_windows=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __rich_console__(self, *_: Any) -> RenderResult:
        from rich.markup import escape
        from rich.table import Table
        from rich.text import Text

        yield Text(self.operator, style="bold")
        table = Table(box=None, padding=(0, 2, 0, 2), show_edge=False, show_header=False)
        styles = {CheckState.PASSED: "green", CheckState.FAILED: "bold red", CheckState.SKIPPED: "dim"}
        for outcome in self.outcomes:
            said = f"{outcome.calls} calls" if outcome.state is CheckState.PASSED else escape(outcome.message)
            state = Text(outcome.state.value, style=styles[outcome.state])
            table.add_row(outcome.check, state, said)
            if outcome.sample:
                table.add_row("", "", escape(f"with {outcome.sample}"))
            if outcome.advice:
                table.add_row("", "", Text(f"often: {outcome.advice}", style="yellow"))
        yield table
        for one in self.attrs:
            yield Text(f"  attr {one}", style="yellow" if one.untried or one.remark else "")
        for note in self.notes:
            yield Text(f"  note: {note}", style="yellow")


def _line(outcome: CheckResult) -> str:
    lines = [f"  {outcome.check}: {outcome.message}"]
    lines += [f"    with {outcome.sample}"] if outcome.sample else []
    lines += [f"    often: {outcome.advice}"] if outcome.advice else []
    return "\n".join(lines)


def as_text(reports: Sequence[CheckReport]) -> str:
    """Return reports as readable text, with the summary last."""
    failed = sum(not report.ok for report in reports)
    return "\n\n".join([*map(str, reports), f"{len(reports)} operators checked, {failed} failed"])


def junit(reports: Sequence[CheckReport]) -> str:
    """Return reports as JUnit XML: a suite for each operator, a case for each check."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        states = [o.state for o in report.outcomes]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.operator,
            tests=str(len(states)),
            failures=str(states.count(CheckState.FAILED)),
            skipped=str(states.count(CheckState.SKIPPED)),
            time=f"{report.seconds:.3f}",
        )
        for case in _cases(report):
            suite.append(case)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _cases(report: CheckReport) -> Iterator[ElementTree.Element]:
    for outcome in report.outcomes:
        case = ElementTree.Element(
            "testcase", classname=report.operator, name=outcome.check, time=f"{outcome.seconds:.3f}"
        )
        if outcome.state is CheckState.FAILED:
            ElementTree.SubElement(case, "failure", message=_printable(outcome.message)).text = _printable(
                _line(outcome)
            )
        elif outcome.state is CheckState.SKIPPED:
            ElementTree.SubElement(case, "skipped", message=_printable(outcome.message))
        yield case


def _printable(text: str) -> str:
    """Replace the characters that XML cannot contain by question marks."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)

"""What a check of an operator found: for people, for tools, for continuous integration."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ascend_graph.errors import AscendGraphError

if TYPE_CHECKING:
    from rich.console import RenderResult


class CheckError(AscendGraphError, AssertionError):
    """An operator does what no operator may do; the message says what, and with which call."""


class State(enum.Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check of one operator."""

    check: str
    state: State
    #: How many calls it held for.
    calls: int = 0
    #: What is wrong, or why there was nothing to check.
    message: str = ""
    #: The smallest call that shows it.
    sample: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """All checks of one operator; print it, or take it as data."""

    operator: str
    outcomes: tuple[Outcome, ...]
    #: What is worth knowing and no failure: calls that the operator refused.
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The checks that failed."""
        return tuple(o for o in self.outcomes if o.state is State.FAILED)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(o.seconds for o in self.outcomes)

    def raise_on_failure(self) -> None:
        """Raise if anything failed.

        Raises:
            CheckError: With one line for each failure.
        """
        if self.failures:
            raise CheckError(f"{self.operator}\n" + "\n".join(_line(o) for o in self.failures))

    def as_dict(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        return {
            "operator": self.operator,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "checks": [
                {
                    "check": o.check,
                    "state": o.state.value,
                    "calls": o.calls,
                    "message": o.message,
                    "sample": o.sample,
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
        styles = {State.PASSED: "green", State.FAILED: "bold red", State.SKIPPED: "dim"}
        for outcome in self.outcomes:
            said = f"{outcome.calls} calls" if outcome.state is State.PASSED else escape(outcome.message)
            state = Text(outcome.state.value, style=styles[outcome.state])
            table.add_row(outcome.check, state, said)
            if outcome.sample:
                table.add_row("", "", escape(f"with {outcome.sample}"))
        yield table
        for note in self.notes:
            yield Text(f"  note: {note}", style="yellow")


def _line(outcome: Outcome) -> str:
    return f"  {outcome.check}: {outcome.message}" + (f"\n    with {outcome.sample}" if outcome.sample else "")


def as_text(reports: Sequence[Report]) -> str:
    """Reports for people, the summary last."""
    failed = sum(not report.ok for report in reports)
    return "\n\n".join([*map(str, reports), f"{len(reports)} operators checked, {failed} failed"])


def junit(reports: Sequence[Report]) -> str:
    """Reports as JUnit's XML: a suite for each operator, a case for each check."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        states = [o.state for o in report.outcomes]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.operator,
            tests=str(len(states)),
            failures=str(states.count(State.FAILED)),
            skipped=str(states.count(State.SKIPPED)),
            time=f"{report.seconds:.3f}",
        )
        for case in _cases(report):
            suite.append(case)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _cases(report: Report) -> Iterator[ElementTree.Element]:
    for outcome in report.outcomes:
        case = ElementTree.Element(
            "testcase", classname=report.operator, name=outcome.check, time=f"{outcome.seconds:.3f}"
        )
        if outcome.state is State.FAILED:
            ElementTree.SubElement(case, "failure", message=_printable(outcome.message)).text = _printable(
                _line(outcome)
            )
        elif outcome.state is State.SKIPPED:
            ElementTree.SubElement(case, "skipped", message=_printable(outcome.message))
        yield case


def _printable(text: str) -> str:
    """Without what XML cannot have."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)

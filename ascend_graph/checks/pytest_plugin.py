"""Checks of ``opcheck`` as pytest tests, one for each operator and check.

``pytest -p ascend_graph.checks.pytest_plugin --check-operators my_ops``; or ``pytest_plugins = ["ascend_graph.checks.pytest_plugin"]``
in a conftest.py. It does not load itself: pytest would rewrite the asserts of the whole package in every run.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--check-operators``; it may be repeated."""
    parser.getgroup("ascend-graph").addoption(
        "--check-operators",
        action="append",
        default=[],
        metavar="MODULE",
        help="collect a test for each check of each operator that MODULE registers with ascend_graph",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Import torch before a test does: an import that failed fails again with another message."""
    if config.getoption("--check-operators"):
        with _sentence_without_cann():
            importlib.import_module("torch")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the checks of the modules after the collected tests."""
    for module in config.getoption("--check-operators"):
        with _sentence_without_cann():
            items += _checks(session, module)


@contextmanager
def _sentence_without_cann() -> Iterator[None]:
    from ascend_graph.environment import without_cann

    try:
        yield
    except (ImportError, RuntimeError) as error:
        if (sentence := without_cann(error)) is None:
            raise
        raise pytest.UsageError(sentence) from error


def _checks(session: pytest.Session, module: str) -> Iterator[pytest.Item]:
    from ascend_graph.checks.opcheck import ALONE, CHECKS
    from ascend_graph.registration.registered import registered_by

    _, operators = registered_by(lambda: importlib.import_module(module))
    if not operators:
        raise pytest.UsageError(
            f"--check-operators {module}: the module registers no operator with ascend_graph; name one that does"
        )
    for operator in operators:
        for check in (*CHECKS, *ALONE):
            yield OperatorCheck.from_parent(
                session, name=f"{module}::{operator.overload}[{check}]", operator=operator, check=check
            )


class OperatorCheck(pytest.Item):
    """Test of one check of one operator."""

    def __init__(self, *, operator: Any, check: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.operator, self.check = operator, check

    def runtest(self) -> None:
        """Run the check; skip the test if there is nothing to check."""
        from ascend_graph.checks.opcheck import opcheck
        from ascend_graph.checks.report import CheckState

        report = opcheck(self.operator, checks=[self.check], raise_exception=False)
        # A kernel that fails is in every report; the test of "runs" says so.
        report = replace(report, outcomes=tuple(o for o in report.outcomes if o.check == self.check))
        report.raise_on_failure()
        skipped: Iterable[Any] = [o for o in report.outcomes if o.state is CheckState.SKIPPED]
        for outcome in skipped:
            pytest.skip(outcome.message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return one sentence and the call; a traceback would be from this package, not from the operator."""
        from ascend_graph.checks.report import CheckError

        if isinstance(excinfo.value, CheckError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, None, str]:
        """Return the location and the name that pytest shows."""
        return self.path, None, self.name

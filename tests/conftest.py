"""What all tests share: temporary operator packages, and a clear word when the suite is started without the host
runtime."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import preloaded
import pytest
import torch
import torch._functorch.config

from ascend_graph.environment import TIMEOUT_VARIABLE, is_active
from benchmarks.suite import UNKNOWN_SECONDS, share


def pytest_configure(config: pytest.Config) -> None:
    if not is_active():
        raise pytest.UsageError(
            "the tests run on the host runtime: make test, or python -m ascend_graph.host -m pytest …"
        )
    if config.option.share and not re.fullmatch(r"[1-9]\d*/[1-9]\d*", config.option.share):
        raise pytest.UsageError(f"--share {config.option.share}: expected K/N, such as 1/3")
    # No example has a time limit of its own: other work on the machine would fail it.
    # On CI the same examples are drawn in every run, elsewhere new ones: what they find is not a fault of the change that
    # CI judges.
    hypothesis.settings.register_profile("suite", deadline=None, print_blob=True, derandomize="CI" in os.environ)
    hypothesis.settings.load_profile("suite")
    # PyTorch forbids operators whose results are their arguments where the variable CI is set, and warns elsewhere:
    # here always.
    if hasattr(torch._functorch.config, "error_on_custom_op_aliasing"):  # from torch 2.11 on
        torch._functorch.config.error_on_custom_op_aliasing = True
    os.environ.setdefault(TIMEOUT_VARIABLE, "120")  # a kernel that never ends fails its test, not the suite
    os.environ.setdefault("CXXFLAGS", "-O0")  # what tests compile runs for less time than its optimization takes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share", metavar="K/N", help="run the K-th of N parts of the tests, which take about as long each"
    )


@pytest.hookimpl(trylast=True)  # of the tests that -m and -k have left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one share of the tests, and put the longest first, so that no process is alone with one at the end."""
    suite = "test-slow" if config.option.markexpr == "slow" else "test"
    seconds = json.loads(Path(__file__).with_name("durations.json").read_text())[suite]
    files = {item.location[0] for item in items}
    longest = sorted(files, key=lambda file: (-seconds.get(file, UNKNOWN_SECONDS), file))
    if config.option.share:
        number, count = map(int, config.option.share.split("/"))
        try:
            kept = share(longest, seconds, number, count)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        places: Counter[str] = Counter()
        here, other = [], []
        for item in items:
            file = item.location[0]
            here_too = any(piece.file == file and piece.holds(places[file]) for piece in kept)
            (here if here_too else other).append(item)
            places[file] += 1
        config.hook.pytest_deselected(items=other)
        items[:] = here
    if hasattr(config, "workerinput"):
        order = {file: place for place, file in enumerate(longest)}
        items.sort(key=lambda item: order[item.location[0]])


@pytest.fixture(autouse=True)
def _numbers_of_its_own() -> None:
    """What a test draws does not depend on which tests ran before it in its process."""
    random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _ge_first(request: pytest.FixtureRequest) -> None:
    """A graph for GE before any for npugraph_ex: the wheel cannot register what GE's graphs need after the other has.

    The order of the whole suite is such; of the files that one of several processes is given it may not be.
    """
    if hasattr(request.config, "workerinput"):
        from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once

        compile_for_ge_once()
        preloaded.leave_guards_unmeasured()
        preloaded.collect_less_often()


def pytest_unconfigure() -> None:
    # Some tests let exceptions reach sys.excepthook; torch_npu would end the process with a line about the last of
    # them, behind the suite's summary.
    handler = getattr(sys.modules.get("torch_npu.utils._error_code"), "_except_handler", None)
    if handler is not None:
        handler.exception = None

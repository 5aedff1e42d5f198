"""What all tests share: temporary operator packages, and a clear word when the suite is started without the host runtime."""

from __future__ import annotations

import os

import hypothesis
import pytest

from ascend_graph.host.toolkit import TIMEOUT_VARIABLE, is_active


def pytest_configure(config: pytest.Config) -> None:
    if not is_active():
        raise pytest.UsageError(
            "the tests run on the host runtime: make test, or python -m ascend_graph.host -m pytest …"
        )
    # No example has a time limit of its own: other work on the machine would fail it.
    hypothesis.settings.register_profile("suite", deadline=None, print_blob=True)
    hypothesis.settings.load_profile("suite")
    os.environ.setdefault(TIMEOUT_VARIABLE, "120")  # a kernel that never ends fails its test, not the suite

"""Device-generic tests are run for the device, and each outcome is counted once, a death too."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.device_tests import main

TESTS = """
import os
import unittest

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase


class TestToy(TestCase):
    def test_adds(self, device):
        self.assertEqual((torch.ones(2, device=device) + 1).device.type, "npu")

    def test_fails(self, device):
        self.assertEqual(torch.ones(2, device=device), torch.zeros(2, device=device))

    def test_dies(self, device):
        os.abort()

    @unittest.expectedFailure
    def test_expected(self, device):
        raise ValueError

    @unittest.skip("not here")
    def test_skipped(self, device):
        raise ValueError


instantiate_device_type_tests(TestToy, globals(), only_for="privateuse1")
"""


@pytest.mark.slow
def test_every_outcome_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "test_toy.py"
    file.write_text(TESTS)
    summary = main([str(file)])
    counts = {word: summary.get(word) for word in ("passed", "failed", "died", "xfail", "skipped")}
    assert counts == dict.fromkeys(counts, 1)
    assert (summary["tests"], summary["rate"]) == (5, 0.5)
    listed = tmp_path / "disabled.json"
    listed.write_text('{"test_fails_npu (__main__.TestToyPRIVATEUSE1)": ["", [""]]}')
    summary = main([str(file), "--disabled", str(listed)])
    assert (summary["disabled for devices"], summary.get("failed"), summary["died"]) == (1, None, 1)


@pytest.mark.slow
def test_every_test_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "test_plain.py"
    file.write_text("def test_passes():\n    pass\n\n\ndef test_fails():\n    raise ValueError\n")
    assert main([str(file)])["tests"] == 1, "not collected"
    summary = main(["--all", str(file)])
    assert (summary["passed"], summary["failed"], summary["tests"]) == (1, 1, 2)


@pytest.mark.slow
def test_a_conftest_of_another_pytest_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("def pytest_pycollect_makemodule(module_path, path, parent):\n    pass\n")
    file = tmp_path / "test_plain.py"
    file.write_text("def test_passes():\n    pass\n")
    assert main(["--all", str(file)])["passed"] == 1

"""The runner of PyTorch's device-generic tests: each test has its word, also where one ends the process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
import os
import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, run_tests

class TestSums(TestCase):
    def test_a_right(self, device):
        self.assertEqual((torch.ones(3, device=device) + 1).sum().item(), 6)
        assert device.startswith("npu")

    def test_b_dies(self, device):
        os.abort()

    def test_c_wrong(self, device):
        self.assertEqual(torch.ones(3, device=device).sum().item(), 4)

    def test_d_skipped(self, device):
        self.skipTest("no reason")

instantiate_device_type_tests(TestSums, globals())
"""


@pytest.mark.slow
def test_every_test_of_a_file_has_its_word(tmp_path: Path) -> None:
    file = tmp_path / "test_sums.py"
    file.write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "benchmarks/device_tests.py", str(file)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
        timeout=1500,
    )
    *lines, last = done.stdout.splitlines()
    summary = json.loads(last)
    assert {word: summary[word] for word in ("passed", "failed", "died", "skipped")} == dict.fromkeys(
        ("passed", "failed", "died", "skipped"), 1
    )
    assert summary["rate"] == round(1 / 3, 4)
    assert [line.partition(":")[0] for line in lines] == ["died", "failed"]

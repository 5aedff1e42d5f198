"""TorchAir is imported once, here: its imports warn of deprecations, which are errors in tests. Numbers are the same in every run."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu.dynamo.torchair  # noqa: F401


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)

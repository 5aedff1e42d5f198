"""What the tests of one directory share is found by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    """Programs that are compiled in a test know nothing of those of other tests."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()

"""TorchAir's compiler module loaded twice, as ``import torchair.npu_fx_compiler`` does where it is the first import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import warnings

warnings.simplefilter("ignore")
import torch
import torch_npu
import torchair.npu_fx_compiler as second

import torchair
import writing_operators as writing

first = torchair.get_npu_backend.__globals__
assert first is not vars(second), "torch_npu loads it once by now: this test and _copies in graph_passes can go"
for copy in (first, vars(second)):
    assert hasattr(copy["add_npu_patch"], "__wrapped__"), "without the host's lock"

library = torch.library.Library("loaded_twice", "DEF")
ops = writing.define(library, registered=True)


def run(cache, start):
    ops.total(cache[start], cache[0] * 0)
    return cache[start:]


for copy in (first, vars(second)):
    torch._dynamo.reset()
    compiled = torch.compile(run, backend=copy["get_npu_backend"](), dynamic=True, fullgraph=True)
    for start in range(4):
        cache = writing.numbers(4, 3).npu()
        torch.testing.assert_close(compiled(cache.clone(), start), run(cache, start))
print("compared")
"""


@pytest.mark.slow
def test_both_copies_of_the_compiler_prepare_graphs() -> None:
    # Not in a fork of the preloaded server, which has imported torchair.
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=600, check=False
    )
    assert result.stdout.splitlines()[-1:] == ["compared"], result.stderr[-2000:]

"""Operators of packages and the formats in which a device keeps tensors: what kernel and tiling see, and what is
refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import preloaded
import pytest

from ascend_graph.host.projects.build import build_project_package

PROGRAM = """
import torch, torch_npu, torchair, ascend_graph
torch.npu.config.allow_internal_format = True
w = torch.arange(32 * 48).remainder(500).half().reshape(32, 48)
blocks = w.reshape(2, 16, 3, 16).permute(2, 0, 1, 3).flatten()
shape = "w[m, n] -> y[m * n + 3]"
for name in ("Kept", "KeptNz"):
    ascend_graph.register_op(name, shape=shape)
kept, kept_nz = torch.ops.ascend.kept, torch.ops.ascend.kept_nz
plain, nz = w.npu(), torch_npu.npu_format_cast(w.npu(), 29)

def shows(y, numbers, *rest):
    y = y.cpu()
    assert torch.equal(y[:-3], numbers), y
    assert y[-3:].tolist() == list(rest), y[-3:]

def refused(text, call):
    try:
        call()
        torch.npu.synchronize()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)

shows(kept(plain), w.flatten(), 2, 2, 2)
shows(kept(nz), blocks, 2, 29, 29)
shows(kept_nz(nz), blocks, 2, 29, 29)
refused("no kernel takes w: float16, y: float16; the definition has w: float16 in FRACTAL_NZ", lambda: kept_nz(plain))
refused("parameter w is a view of a tensor in float16 in FRACTAL_NZ", lambda: kept(nz.t()))

static = torch_npu.npu_format_cast(torch.zeros_like(plain), 29)
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    result = kept(static)
static.copy_(plain)
graph.replay()
shows(result, blocks, 2, 29, 29)

# GE has a tensor in the format that an operator takes.
for dynamic in (False, True):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: (kept(x), kept_nz(x)), backend=torchair.get_npu_backend(), dynamic=dynamic)
    for x in (plain, nz):
        torch._dynamo.reset()
        first, second = compiled(x)
        shows(first, w.flatten(), 2, 2, 2)
        shows(second, blocks, 2, 29, 29)
print("all of it")
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("formats") / "vendor"
    build_project_package(target, Path(__file__).parent / "formats")
    return target


@pytest.mark.slow
def test_kernels_see_what_memory_holds_by_every_way(package: Path) -> None:
    done = preloaded.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )
    assert done.stdout.endswith("all of it\n"), done.stderr[-3000:]

"""The modules of moved clients are what adopt writes, and ``check.py`` tells a wrong relation from a right one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest

from ascend_graph.adoption import adopt
from ascend_graph.adoption.module import code_lines, read_module

from .conftest import EXAMPLES

MIGRATION = EXAMPLES / "migration"
CLIENT = """
#include <torch/library.h>
at::Tensor rows(const at::Tensor &x, int64_t by)
{
    return at::empty({x.size(0), by}, x.options());
}
TORCH_LIBRARY(migration_client, m) { m.def("rows(Tensor x, int by) -> Tensor"); }
TORCH_LIBRARY_IMPL(migration_client, PrivateUse1, m) { m.impl("rows", &rows); }
"""
META = """
import torch


@torch.library.register_fake("migration_client::rows")
def rows(x, by):
    return x.new_empty((x.shape[0], by))
"""


def check(*arguments: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.run([sys.executable, MIGRATION / "check.py", *arguments], cwd=EXAMPLES, timeout=600)


@pytest.mark.parametrize("name", ["vllm_ascend", "sgl_kernel_npu"])
def test_a_module_is_one_that_adopt_wrote_and_nobody_changed(name: str) -> None:
    path = MIGRATION / f"{name}_operators.py"
    existing = read_module(path)
    assert len(existing.regions) > 30
    assert not [one.name for one in existing.regions if one.is_edited]
    assert f"`{path.name}` ({code_lines(path.read_text())}" in (MIGRATION / "README.md").read_text().replace(
        " lines of code", ""
    )


def test_a_wrong_relation_is_told_from_a_right_one(tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.mkdir()
    (client / "ops.cpp").write_text(CLIENT)
    (client / "meta.py").write_text(META)
    module = tmp_path / "client_operators.py"
    adopt(client, module, tests=False)
    right = check(client, module)
    assert right.returncode == 0, right.stdout + right.stderr
    found = json.loads(right.stdout.splitlines()[-1])
    assert (found["metas_equal"], found["wrong"], found["drifted"]) == (1, 0, False)
    text = module.read_text()
    assert "y[x0, by]" in text
    module.write_text(text.replace("y[x0, by]", "y[by, x0]"))
    wrong = check(client, module)
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert "wrong: migration_client::rows" in wrong.stdout


def test_a_checkout_without_a_module_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.returncode == 2
    assert "vllm_ascend_operators.py" in done.stderr

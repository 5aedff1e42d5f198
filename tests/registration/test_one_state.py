"""Installed packages are looked at once in a registration, and anew in the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_graph.aclnn import catalog as functions
from ascend_graph.prototypes import catalog as prototypes
from ascend_graph.sources.installed import once_a_state, one_state


@pytest.mark.parametrize("module", [functions, prototypes])
def test_directories_are_looked_up_once_in_a_state(
    module: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = module._modified_directories  # type: ignore[attr-defined]
    for part in ("op_api/include", "op_proto/inc"):
        (tmp_path / "late" / part).mkdir(parents=True)
    with one_state():
        before = once_a_state(find)
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "late"))
        with one_state():
            assert once_a_state(find) is before
        assert once_a_state(find) is before
    assert any(tmp_path in one.parents for one in once_a_state(find))

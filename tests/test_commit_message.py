"""The commit-msg hook holds a message to one short subject in the imperative."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

HOOK = Path(__file__).resolve().parent.parent / ".ci/commit_message.py"

pytestmark = pytest.mark.skipif(not HOOK.exists(), reason="the sdist has no .ci")


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("commit_message", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "message",
    [
        "Add a test of messages\n\nIt collects 1,690 texts.\n",
        "Fix the size of a batch",
        "Merge docstrings of checks; and the command",
        "Name the dtype in the error\n# Please enter the commit message\n",
    ],
)
def test_a_good_message_passes(hook: ModuleType, message: str) -> None:
    assert hook.faults(message) == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("", "the subject is empty"),
        ("Add " + "x" * 80, "has 84 characters; expected at most 72"),
        ("Add a test.", "ends with a period"),
        ("Add a test; fix a message", "names several things"),
        ("Added a test", "begins with 'Added'"),
        ("add a test", "begins with 'add'"),
        ("The test of messages", "begins with 'The'"),
        ("Add a test\nIt fails", "the second line is not empty"),
    ],
)
def test_a_fault_is_named(hook: ModuleType, message: str, fault: str) -> None:
    (found,) = hook.faults(message)
    assert fault in found


def test_the_hook_fails_with_its_faults(hook: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("Added a test\n")
    assert hook.main([str(message)]) == 1
    assert "commit message: the subject begins with 'Added'" in capsys.readouterr().err

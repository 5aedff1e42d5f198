"""Messages that the product raises, warns with or reports name a subject and a value, and never say "is no"."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import _messages
from benchmarks._messages import Message, cpp_messages, messages, python_messages


def test_every_message_has_the_form() -> None:
    found = [f"{one.place}: {fault}: {one.text}" for one in messages() for fault in one.faults()]
    assert found == [], (
        "write <subject>: <what is wrong, with the value>; expected <valid set>. <what to write instead>"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{} is no dtype", "says 'is no'"),
        ("{} is none of {}", "says 'is none'"),
        ("there are no files in {}", "says 'are no'"),
        ("{} has none of {}", "says 'has none of'"),
        ("something went wrong", "names neither a subject nor a value"),
        ("{} is no longer than {}", None),
        ("attr epsilon must be one of {}, got {}", None),
        ("x1_scale is required", None),
    ],
)
def test_a_fault_of_form_is_named(text: str, fault: str | None) -> None:
    assert Message("here", text, raised=True).faults() == ([] if fault is None else [fault])


def test_python_texts_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        '"""A docstring is no message."""\n'
        "def f(name, known):\n"
        '    raise ValueError(f"{name!r} is "\n'
        '                     "no name; " + "expected " + ", ".join(known))\n'
    )
    monkeypatch.setattr(_messages, "ROOT", tmp_path)
    raised = [one for one in python_messages(source) if one.raised]
    assert [(one.place, one.text, one.faults()) for one in raised] == [
        ("module.py:3", "{} is no name; expected {}", ["says 'is no'"])
    ]


def test_cpp_texts_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "csrc" / "host" / "entry.cpp"
    source.parent.mkdir(parents=True)
    source.write_text(
        '// "there is no message in a comment"\n'
        "void f(int size) {\n"
        '    throw std::runtime_error("size " + std::to_string(size) + " is "\n'
        '                             "no multiple of 8");\n'
        "}\n"
    )
    monkeypatch.setattr(_messages, "ROOT", tmp_path)
    (one,) = cpp_messages(source)
    assert (one.place, one.text) == ("csrc/host/entry.cpp:3", "size {} is no multiple of 8")
    assert one.faults() == ["says 'is no'"]

"""Messages that the product raises, warns with or reports name a subject and a value, and never say "is no"."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks import _messages
from benchmarks._messages import Message, cpp_messages, messages, python_messages


@cache
def all_messages() -> tuple[Message, ...]:
    return tuple(messages())


def test_every_message_has_the_form() -> None:
    found = [f"{one.place}: {fault}: {one.text}" for one in all_messages() for fault in one.faults()]
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


def test_messages_say_what_to_write() -> None:
    left = [one for one in all_messages() if one.raised and not one.only_relays() and not one.says_what_to_write()]
    assert [f"{one.place}: {one.text}" for one in left] == []


def test_every_explained_text_is_still_there() -> None:
    assert {one.explanation for one in all_messages() if one.raised} >= _messages.EXPLAINED.keys()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mode {} is not supported; expected {}", True),
        ("x of shape {} is not supported on the host", False),
        ("mode {} is not supported; 0 and 1 are", True),
        ("reduction {} is not one of {}", True),
        ("{} is mapped to an address; call aclrtUnmapMem first", True),
        ("two attrs are named {}; rename one", True),
        ("nothing to generate from {}", False),
        ("attr {} has no type of {}; read as Int", False),
        ("{} and {} have no common dtype", False),
    ],
)
def test_what_to_write_is_recognized(text: str, says: bool) -> None:
    assert Message("here", text, raised=True).says_what_to_write() is says


def test_a_text_that_only_names_a_subject_relays_another() -> None:
    assert [Message("here", text, raised=True).only_relays() for text in ("{}: {}", "node {}: {}", "{} fails")] == [
        True,
        True,
        False,
    ]


def test_a_function_may_add_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        "def f(text):\n"
        "    def refuse(what):\n"
        "        return ValueError(f'{text}: {what}; write NAME')\n"
        "    raise refuse(f'{text!r} names nothing')\n"
    )
    monkeypatch.setattr(_messages, "ROOT", tmp_path)
    assert [one.says_what_to_write() for one in python_messages(source) if one.raised] == [True]


def test_names_that_are_assigned_once_are_part_of_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        "_INSTEAD = 'write NAME'\n"
        "def f(near, known):\n"
        "    hint = f'did you mean {near}?' if near else f'expected {known}'\n"
        "    changed = 'write x'\n"
        "    changed = 'nothing'\n"
        "    raise ValueError(f'a_b: {hint} {_INSTEAD}')\n"
        "def g():\n"
        "    raise ValueError(f'a_b: {hint} {changed}')\n"
    )
    monkeypatch.setattr(_messages, "ROOT", tmp_path)
    assert [one.text for one in python_messages(source) if one.raised] == [
        "a_b: did you mean {}? write NAME",
        "a_b: expected {} write NAME",
        "a_b: {} {}",
    ]


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
        '    throw std::runtime_error("size " +\n'
        "                                                                                      std::to_string(size) +\n"
        '                                                                                      " is "\n'
        '                             "no multiple of 8");\n'
        "}\n"
    )
    monkeypatch.setattr(_messages, "ROOT", tmp_path)
    (one,) = cpp_messages(source)
    assert (one.place, one.text) == ("csrc/host/entry.cpp:3", "size {} is no multiple of 8")
    assert one.faults() == ["says 'is no'"]


def test_cpp_texts_have_their_constants_and_one_of_two_alternatives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "csrc" / "host" / "entry.cpp"
    source.parent.mkdir(parents=True)
    source.write_text(
        'constexpr const char* kReport =\n    "; report "\n    "it";\n'
        "int f(int end) {\n"
        '    return fail(std::string("its ") + (end == 0 ? "source" : "destination") + " is null" + kReport);\n'
        "}\n"
        'int g() { return refuse(std::string("g_a: ") + error()); }\n'
    )
    monkeypatch.setattr(_messages, "ROOT", tmp_path)
    _messages._constants.cache_clear()
    found = [one.text for one in cpp_messages(source) if one.raised]
    _messages._constants.cache_clear()
    assert found == ["its source is null; report it", "g_a: {}"]

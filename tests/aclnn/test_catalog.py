"""Installed headers are found, read when they are asked for, and refused where they contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_graph.aclnn import AclnnCatalog, AclnnWarning, ConflictingDeclarationsError, UnknownFunctionError

SECOND = "(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);\n"


def declared(name: str, parameters: str = "const aclTensor *self, aclTensor *out") -> str:
    first = f"aclnnStatus {name}GetWorkspaceSize({parameters}, uint64_t *workspaceSize, aclOpExecutor **executor);\n"
    return f"{first}aclnnStatus {name}{SECOND}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolkit with many headers, a vendor's package, and one that ASCEND_CUSTOM_OPP_PATH names."""
    toolkit = tmp_path / "toolkit" / "include" / "aclnnop"
    (toolkit / "level2").mkdir(parents=True)
    for n in range(1000):
        (toolkit / f"aclnn_filler_{n}.h").write_text(declared(f"aclnnFiller{n}"))
    (toolkit / "aclnn_add.h").write_text("".join(map(declared, ("aclnnAdd", "aclnnAdds", "aclnnInplaceAdd"))))
    (toolkit / "level2" / "aclnn_deep.h").write_text(declared("aclnnDeep"))
    (toolkit / "aclnn_other_name.h").write_text(declared("aclnnHiddenAway"))
    vendor = tmp_path / "toolkit" / "opp" / "vendors" / "customize" / "op_api" / "include"
    vendor.mkdir(parents=True)
    (vendor / "aclnn_foo_bar.h").write_text(declared("aclnnFooBar"))
    custom = tmp_path / "package" / "op_api" / "include"
    custom.mkdir(parents=True)
    (custom / "aclnn_my_op.h").write_text(declared("aclnnMyOp"))
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "toolkit"))
    monkeypatch.delenv("ASCEND_OPP_PATH", raising=False)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "package"))
    return tmp_path


@pytest.mark.parametrize("name", ["Add", "Adds", "InplaceAdd", "Deep", "FooBar", "MyOp", "Filler7"])
def test_one_function_reads_few_headers(installed: Path, name: str) -> None:
    catalog = AclnnCatalog()
    assert catalog.find(f"aclnn{name}").name == f"aclnn{name}"
    assert len(tuple(catalog._read)) <= 3
    read = tuple(catalog._read)
    catalog.find(f"aclnn{name}")
    assert tuple(catalog._read) == read


def test_a_header_whose_name_says_nothing_is_found(installed: Path) -> None:
    catalog = AclnnCatalog()
    assert catalog.find("aclnnHiddenAway").file.endswith("aclnn_other_name.h")
    assert len(tuple(catalog._read)) == 1  # the others were searched for the name, not read as C


def test_unknown_functions(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = AclnnCatalog()
    assert catalog.get("aclnnMyOpp") is None
    with pytest.raises(UnknownFunctionError, match=r"no header declares aclnnMyOpp among the 1005 .*aclnn_my_op\.h"):
        catalog.find("aclnnMyOpp")
    for variable in ("ASCEND_HOME_PATH", "ASCEND_CUSTOM_OPP_PATH"):
        monkeypatch.delenv(variable)
    with pytest.raises(UnknownFunctionError, match="no header is installed"):
        catalog.find("aclnnMyOp")  # the environment says something else now


def test_two_headers_that_differ_are_both_shown(installed: Path) -> None:
    other = installed / "package" / "op_api" / "include" / "aclnn_add.h"
    other.write_text(declared("aclnnAdd", "const aclTensor *self, const aclScalar *alpha, aclTensor *out"))
    catalog = AclnnCatalog()
    with pytest.raises(ConflictingDeclarationsError) as caught:
        catalog.find("aclnnAdd")
    message = str(caught.value)
    assert f"{other}:1: aclnnAdd(const aclTensor *self, const aclScalar *alpha, aclTensor *out)" in message
    assert "toolkit/include/aclnnop/aclnn_add.h:1: aclnnAdd(const aclTensor *self, aclTensor *out)" in message
    assert catalog.find("aclnnAdds").name == "aclnnAdds"
    catalog.load(other)  # what is said explicitly goes before what is installed
    assert len(catalog.find("aclnnAdd").parameters) == 3


def test_loaded_headers_that_differ_are_refused_too(tmp_path: Path) -> None:
    catalog = AclnnCatalog()
    first, second = tmp_path / "a.h", tmp_path / "b.h"
    first.write_text(declared("aclnnOne"))
    second.write_text(declared("aclnnOne", "const aclTensor *self, int64_t dim, aclTensor *out"))
    catalog.load(first)
    catalog.load(second)
    with pytest.raises(ConflictingDeclarationsError, match=r"a\.h:1: .*\n.*b\.h:1: "):
        catalog.find("aclnnOne")
    first.write_text(second.read_text())
    catalog.load(first)  # replaces what was read from it
    assert len(catalog.find("aclnnOne").parameters) == 3


def test_a_directory_of_which_one_function_conflicts_gives_the_others(tmp_path: Path) -> None:
    catalog = AclnnCatalog()
    wider = declared("aclnnOne", "const aclTensor *self, int64_t dim, aclTensor *out")
    (tmp_path / "a.h").write_text(declared("aclnnOne"))
    (tmp_path / "b.h").write_text(wider + declared("aclnnTwo"))
    with pytest.warns(AclnnWarning, match=r"aclnnOne is declared in two ways.*\n.*a\.h:1: .*\n.*b\.h:1: "):
        catalog.load(tmp_path)
    assert catalog.find("aclnnTwo").name == "aclnnTwo"
    with pytest.raises(ConflictingDeclarationsError, match="aclnnOne is declared in two ways"):
        catalog.find("aclnnOne")
    catalog.load(tmp_path / "b.h")
    (tmp_path / "b.h").write_text(wider + declared("aclnnOne"))
    with pytest.raises(ConflictingDeclarationsError):
        catalog.load(tmp_path / "b.h")


def test_case_underscores_and_const_make_no_difference(tmp_path: Path) -> None:
    catalog = AclnnCatalog()
    (tmp_path / "a.h").write_text(declared("aclnnOne", "const aclTensor *self, bool equalNan, aclTensor *out"))
    (tmp_path / "b.h").write_text(declared("aclnnOne", "const aclTensor *self, bool equal_nan, const aclTensor *out"))
    catalog.load(tmp_path)
    assert catalog.find("aclnnOne").file.endswith("a.h")


def test_a_damaged_header_is_named(installed: Path) -> None:
    path = installed / "package" / "op_api" / "include" / "aclnn_broken.h"
    path.write_text(declared("aclnnBroken", "const aclTensor *self, 5 x"))
    with pytest.raises(UnknownFunctionError, match=r"could not be read:\n.*aclnn_broken\.h:1:"):
        AclnnCatalog().find("aclnnBroken")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"no header in it or below it.*include/aclnnop"),
        ({"notes.md": "aclnn"}, r"no header in it"),
        ({"other.h": "int f(int);\n"}, r"declares no aclnn function.*in its headers"),
    ],
)
def test_a_directory_that_declares_nothing_is_told_of(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.warns(AclnnWarning, match=message):
        assert AclnnCatalog().load(tmp_path).functions == ()


def test_a_text_that_declares_nothing_and_a_lost_declaration_are_told_of(tmp_path: Path) -> None:
    catalog = AclnnCatalog()
    with pytest.warns(AclnnWarning, match="the text declares no aclnn function"):
        catalog.load("int f(int);\n")
    header = tmp_path / "aclnn_two.h"
    header.write_text(declared("aclnnGood") + declared("aclnnBad", "const aclTensor *self, struct { int a; } x[2"))
    with pytest.warns(AclnnWarning, match="aclnnBad|aclnn_two.h"):
        catalog.load(header)
    assert catalog.find("aclnnGood").name == "aclnnGood"

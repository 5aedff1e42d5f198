"""What a process knows: loading, precedence, installed packages, lookups from many threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import (
    Catalog,
    PrototypeSyntaxError,
    PrototypeWarning,
    UnknownPrototypeError,
    find_prototype,
    load_prototypes,
    package_directories,
    process_catalog,
)


def op(name: str, dtype: str = "DT_FLOAT") -> str:
    return f"REG_OP({name})\n    .INPUT(x, TensorType({{{dtype}}}))\n    .OP_END_FACTORY_REG({name})\n"


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in ("ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH", "ASCEND_HOME_PATH"):
        monkeypatch.delenv(variable, raising=False)
    process_catalog.clear()
    yield
    process_catalog.clear()


def install(directory: Path, text: str) -> Path:
    include = directory / "op_proto" / "inc"
    include.mkdir(parents=True)
    (include / "op_proto.h").write_text(text)
    return directory


def dtype_of(catalog: Catalog, name: str) -> str:
    return catalog.find(name).inputs[0].dtypes[0].ge_name


def test_text_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.hpp").write_text(op("B"))
    (tmp_path / "a.h").write_text(op("A"))
    (tmp_path / "notes.txt").write_text(op("Ignored"))
    assert [p.op_type for p in load_prototypes(tmp_path).prototypes] == ["A", "B"]
    load_prototypes(op("C"))
    load_prototypes(str(tmp_path / "notes.txt"))  # a file named directly may have any name
    assert [p.op_type for p in process_catalog] == ["A", "B", "C", "Ignored"]
    assert find_prototype("B").file.endswith("b.hpp")


def test_an_unknown_op_names_those_like_it() -> None:
    load_prototypes(op("AddCustom") + op("MatmulCustom"))
    with pytest.raises(UnknownPrototypeError, match="did you mean 'AddCustom'"):
        find_prototype("add_custom")
    with pytest.raises(UnknownPrototypeError, match="known: AddCustom, MatmulCustom"):
        find_prototype("Zzz")
    load_prototypes("".join(map(op, "ABCDEFGH")))
    with pytest.raises(UnknownPrototypeError, match="among the 10 known"):
        find_prototype("Zzz")
    assert issubclass(UnknownPrototypeError, AscendGraphError)


def test_without_packages_the_error_says_what_was_looked_for() -> None:
    with pytest.raises(UnknownPrototypeError, match="ASCEND_CUSTOM_OPP_PATH"):
        find_prototype("AddCustom")


def test_an_op_that_could_not_be_read_says_so_when_it_is_wanted() -> None:
    with pytest.warns(PrototypeWarning, match="no call .INPT"):
        load_prototypes(op("Good") + op("Bad").replace("INPUT", "INPT"))
    find_prototype("Good")
    with pytest.raises(UnknownPrototypeError, match=r"(?s)'Bad' could not be read.*did you mean .INPUT"):
        find_prototype("Bad")


@pytest.mark.parametrize("strict", [False, True])
def test_a_source_of_which_nothing_can_be_used_is_an_error(strict: bool) -> None:
    with pytest.raises(PrototypeSyntaxError, match="2:6: error"):
        load_prototypes(op("Bad").replace("INPUT", "INPT"), strict=strict)
    assert len(process_catalog) == 0


def test_strict_loads_all_or_nothing() -> None:
    with pytest.raises(PrototypeSyntaxError):
        load_prototypes(op("Good") + op("Bad").replace("INPUT", "INPT"), strict=True)
    assert "Good" not in process_catalog


def test_equal_definitions_are_one_and_different_ones_are_reported() -> None:
    catalog = Catalog()
    assert catalog.load(op("A") + op("A").replace("TensorType({DT_FLOAT})", "TensorType(DT_FLOAT)")).diagnostics == ()
    with pytest.warns(PrototypeWarning, match="defined differently") as caught:
        catalog.load(op("B", "DT_INT8") + op("B", "DT_INT16"))
    assert "<text>:1 and <text>:4" in str(caught[0].message)
    assert dtype_of(catalog, "B") == "DT_INT8"  # within one load the first
    with pytest.warns(PrototypeWarning, match="was loaded later and wins"):
        catalog.load(op("B", "DT_INT32"))
    assert dtype_of(catalog, "B") == "DT_INT32"


def test_packages_are_found_in_the_order_of_cann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["Everywhere", "NotCustom", "NotVendor"]
    custom = install(tmp_path / "custom", op("Everywhere", "DT_INT8"))
    opp = tmp_path / "opp"
    second = install(opp / "vendors" / "second", op("Everywhere", "DT_INT16") + op("NotCustom", "DT_INT16"))
    first = install(opp / "vendors" / "first", op("NotCustom", "DT_INT32"))
    install(opp / "vendors" / "unlisted", op("Unlisted"))
    (opp / "vendors" / "config.ini").write_text("load_priority=second,first\n")
    built_in = install(opp / "built-in", "".join(map(op, names)))
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{custom}:/no/such/place:")
    monkeypatch.setenv("ASCEND_OPP_PATH", str(opp))
    inside = Path("op_proto", "inc")
    assert package_directories() == tuple(path / inside for path in (custom, second, first, built_in))
    catalog = Catalog()
    assert [dtype_of(catalog, name) for name in names] == ["DT_INT8", "DT_INT16", "DT_FLOAT"]
    assert "Unlisted" not in catalog  # CANN does not load it either
    assert len(catalog.diagnostics) == 4
    # What the program loads itself wins over what is installed.
    catalog.load(op("Everywhere", "DT_BF16"))
    assert dtype_of(catalog, "Everywhere") == "DT_BF16"


def test_home_path_and_a_change_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog()
    assert "Built" not in catalog
    install(tmp_path / "opp" / "built-in", op("Built"))
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert "Built" in catalog
    monkeypatch.delenv("ASCEND_HOME_PATH")
    assert "Built" not in catalog


def test_threads_see_whole_prototypes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"Op{index}" for index in range(200)]
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(install(tmp_path, "".join(map(op, names)))))
    catalog = Catalog()
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for name in names:
                assert catalog.find(name).op_type == name
                catalog.load(op(f"{name}T{number}"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(catalog) == 200 * 9


@pytest.mark.parametrize(
    ("files", "named", "message"),
    [
        ({}, "", r"has no header with prototypes in it or below it: .*name a header, or the op_proto directory"),
        ({"a.cpp": "int a;"}, "", "has no header with prototypes"),
        ({"a.h": "int a;"}, "", r"defines no op: no REG_OP\(…\) and no OpDef class in its headers"),
        ({"a.h": "int a;"}, "a.h", r"a\.h defines no op: no REG_OP\(…\) and no OpDef class in it"),
    ],
)
def test_a_source_without_prototypes_says_so(tmp_path: Path, files: dict[str, str], named: str, message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.warns(PrototypeWarning, match=message):
        assert Catalog().load(tmp_path / named).prototypes == ()
    with pytest.warns(PrototypeWarning, match="the text defines no op"):
        Catalog().load("int a;\n")


def test_packages_of_functions_alone_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vendor/op_api/include").mkdir(parents=True)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "vendor"))
    text = r'vendor has headers of aclnn .*register_aclnn\("aclnnPick", …\)'
    with pytest.raises(UnknownPrototypeError, match=text):
        find_prototype("Pick")

# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""The table of the API is what the headers define, is in the documents, and every entry of it is tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import _kernel_api

from .standalone import HERE


def test_every_entry_is_tested() -> None:
    names = {entry.name for entry in _kernel_api.entries()}
    assert len(names) > 240
    # This file names none of them, so that it cannot count as a test.
    sources = [path for path in HERE.rglob("*") if path.suffix in (".py", ".asc") and path != Path(__file__)]
    assert names - _kernel_api.tested(names, sources) == set()


@pytest.mark.parametrize("name", _kernel_api.PAGES)
def test_document_is_current(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    copy.write_text((_kernel_api.DOCUMENTS / name).read_text())
    assert not _kernel_api.renew(copy), "renew it: python -m benchmarks._kernel_api --write"


def test_every_header_has_a_page() -> None:
    listed = tuple(directory for page in _kernel_api.PAGES.values() for directory in page)
    assert [entry for entry in _kernel_api.entries() if not entry.header.startswith(listed)] == []


def test_entries_of_a_header(tmp_path: Path) -> None:
    """Functions, families of overloads, classes and macros are found; what is internal is not."""
    for directory in ("ascendc_host/basic_api", "register"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "register/tilingdef.h").write_text("#define BEGIN_IT(Class) class Class {\n")
    (tmp_path / "ascendc_host/basic_api/arithmetic.h").write_text("""
namespace AscendC {
namespace detail {
struct op {};
template <typename T>
void Hidden(T) {}
}  // namespace detail
// void Commented(int)
#define ASCENDC_PAIR(Name) \\
    template <typename T>  \\
    void Name(T) {}        \\
    void Name(int, int) {}
ASCENDC_PAIR(First)
ASCENDC_PAIR(Second)
template <typename T>
void Third(const LocalTensor<T>& a,
           int b) {
    Inner(a);
}
template <int n>
int64_t Fourth() {
    return n;
}
inline void Fourth(int) {}
}  // namespace AscendC
""")
    found = {(entry.name, entry.kind, entry.forms) for entry in _kernel_api.entries(tmp_path)}
    assert found == {
        ("First", "function", 2),
        ("Second", "function", 2),
        ("Third", "function", 1),
        ("Fourth", "function", 2),
        ("BEGIN_IT", "macro", 1),
    }


def test_document_without_a_place(tmp_path: Path) -> None:
    document = tmp_path / "empty.md"
    document.write_text("nothing\n")
    with pytest.raises(_kernel_api.CoverageError, match="no place for the table"):
        _kernel_api.renew(document)

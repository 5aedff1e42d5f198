"""Links of the documents lead somewhere, and pages show code; what counts them reads pages as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import words


def test_links_lead_to_pages_and_headings() -> None:
    assert words.broken_links(words.documents()) == []


def test_pages_show_code() -> None:
    assert words.without_code(words.documents()) == [], "begin the page with a command, or with a few lines of code"


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A `page` of two words\n\n"
        "[here](#a-page-of-two-words), [there](other.md), [elsewhere](https://example.org), [gone](#gone)\n\n"
        "```\n[code](nothing.md)\n```\n"
    )
    assert words.broken_links([page]) == ["page.md: other.md", "page.md: #gone"]


def test_words_of_cells_are_counted() -> None:
    assert words.longest_cell("| a b | c |\n|---|---|\n| one two three | `x` |\n") == 3

"""Links from a term's first use on a page of the site to its row of the glossary.

The table of ``docs/glossary.md`` is the only list of terms. Pages in Chinese are linked by the second column.
"""

from __future__ import annotations

import html
import os
import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

GLOSSARY = "glossary.md"
#: Pages whose words are not explained: the glossary itself, and lists that programs wrote.
_UNLINKED = (GLOSSARY, "status.md", "changelog.md", "examples.md", "reference/")
_ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<chinese>[^|]+) \| (?P<meaning>[^|]+) \|$", re.MULTILINE)
#: Terms that pages use in their everyday sense, too.
_EVERYDAY = {"block", "reference", "sample"}
#: Parts of a page's text in which no word becomes a link: code, headings, tables' headings, links, tags.
_VERBATIM = re.compile(
    r"^```.*?^```$|^#.*?$|^\|.*\|\n(?=\|[-|: ]+\|$)|`+[^`]*`+|!?\[[^\]]*\]\([^)]*\)|<[^>]*>", re.MULTILINE | re.DOTALL
)


class Term(NamedTuple):
    """Row of the glossary: its anchor, its names in both languages and its meaning."""

    anchor: str
    names: tuple[str, ...]
    chinese: tuple[str, ...]
    meaning: str


def read_terms(text: str) -> list[Term]:
    """Return the rows of a glossary's tables.

    >>> read_terms("| operator package (OPP) | 自定义算子包 | A directory with `kernels`. |")
    [Term(anchor='operator-package', names=('operator package', 'OPP'), chinese=('自定义算子包',), meaning='A directory with kernels.')]
    """
    terms = []
    for row in _ROW.finditer(text):
        if row["term"] == "term" or not row["term"].strip("-"):
            continue
        names = tuple(name.strip() for name in re.split(r",|\(|\)", row["term"]) if name.strip())
        chinese = tuple(name.strip() for name in re.split(r"[\u3001\uff08\uff09]", row["chinese"]) if name.strip())
        anchor = re.sub(r"\W+", "-", names[0].lower())
        terms.append(Term(anchor, names, chinese, row["meaning"].replace("`", "")))
    return terms


def link_terms(markdown: str, terms: list[Term], glossary: str, *, chinese: bool = False) -> str:
    """Return a page's text with a link at the first use of each term; ``glossary`` is the glossary as the page sees it.

    >>> terms = read_terms("| raw op | GE 原生算子接口 | Adds a GE node. |")
    >>> link_terms("`raw op`: Raw ops and a raw op.", terms, "glossary.md")
    '`raw op`: [Raw ops](glossary.md#raw-op "Adds a GE node."){ .term } and a raw op.'
    """
    named = {
        name: term
        for term in terms
        if term.anchor not in _EVERYDAY
        for name in (term.chinese if chinese else term.names)
    }
    if not named:
        return markdown
    longest = sorted(named, key=len, reverse=True)
    spelled = "|".join(rf"(?P<n{i}>{_spelling(name, chinese=chinese)})" for i, name in enumerate(longest))
    pattern = re.compile(f"(?P<verbatim>{_VERBATIM.pattern})|{spelled}", re.MULTILINE | re.DOTALL)
    linked: set[str] = set()

    def link(match: re.Match[str]) -> str:
        if match["verbatim"] is not None:
            return match[0]
        assert match.lastgroup is not None
        term = named[longest[int(match.lastgroup[1:])]]
        if term.anchor in linked:
            return match[0]
        linked.add(term.anchor)
        return f'[{match[0]}]({glossary}#{term.anchor} "{html.escape(term.meaning)}"){{ .term }}'

    return pattern.sub(link, markdown)


def _spelling(name: str, *, chinese: bool) -> str:
    """Return the pattern of a term in running text: a capital at a sentence's begin, and the plural."""
    if chinese:
        ends = r"(?<![A-Za-z_])", r"(?![A-Za-z_])"
        return (ends[0] if name[0].isascii() else "") + re.escape(name) + (ends[1] if name[-1].isascii() else "")
    first = f"[{name[0].lower()}{name[0].upper()}]" if name[0].islower() else re.escape(name[0])
    return rf"(?<![\w.:/-]){first}{re.escape(name[1:])}s?(?![\w(:/-]|\.\w)"


@cache
def _terms() -> list[Term]:
    return read_terms(Path(__file__).with_name(GLOSSARY).read_text(encoding="utf-8"))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the terms of a page; give the rows of the glossary their anchors."""
    uri = page.file.src_uri
    if uri == GLOSSARY:
        anchors = iter(_terms())

        def anchored(row: re.Match[str]) -> str:
            if row["term"] == "term" or not row["term"].strip("-"):
                return row[0]
            return row[0].replace("| ", f'| <a id="{next(anchors).anchor}"></a>', 1)

        return _ROW.sub(anchored, markdown)
    if uri.startswith(_UNLINKED):
        return markdown
    glossary = os.path.relpath(GLOSSARY, PurePosixPath(uri).parent)
    return link_terms(markdown, _terms(), glossary, chinese=uri.startswith("zh/"))

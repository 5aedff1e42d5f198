"""Pages in two languages say the same: the same headings, the same code, links to each other. The README stays
short."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from .pages import DOCS, blocks

ROOT = DOCS.parent
ENGLISH = [DOCS / f"{name}.md" for name in ("index", "tutorial", "tutorial-wheel", "routes")]
ENGLISH += sorted((DOCS / "howto").glob("*.md"))
TWINS = [(ROOT / "README.md", ROOT / "README.zh.md"), *((p, DOCS / "zh" / p.relative_to(DOCS)) for p in ENGLISH)]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def target(page: Path, link: str) -> Path:
    return (page.parent / link.partition("#")[0]).resolve()


@pytest.mark.parametrize(("english", "chinese"), TWINS, ids=lambda path: path.stem)
def test_twins_have_the_same_headings_and_code(english: Path, chinese: Path) -> None:
    levels = [[len(m) for m in re.findall(r"^(#+) ", prose(page), re.MULTILINE)] for page in (english, chinese)]
    assert levels[0] == levels[1]
    code = [[(b.language, b.title, b.text) for b in blocks(page)] for page in (english, chinese)]
    assert code[0] == code[1]
    rows = [len(re.findall(r"^\|", prose(page), re.MULTILINE)) for page in (english, chinese)]
    assert rows[0] == rows[1], "rows of tables"


@pytest.mark.parametrize(("english", "chinese"), TWINS, ids=lambda path: path.stem)
def test_twins_link_to_each_other(english: Path, chinese: Path) -> None:
    for page, other, name in ((english, chinese, "中文"), (chinese, english, "English")):
        (link,) = re.findall(rf"^\[{name}\]\((\S+)\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert target(page, link) == other


def test_every_translated_page_has_an_original() -> None:
    assert {chinese for _, chinese in TWINS if chinese.is_relative_to(DOCS)} == set((DOCS / "zh").rglob("*.md"))


DOCUMENTS = [
    *(p for pair in TWINS[:1] for p in pair),
    *(ROOT / n for n in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
    ROOT / "benchmarks/README.md",
]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    titles = [
        re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", t) for t in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_of_the_tree_lead_somewhere(page: Path) -> None:
    """As they are read next to the sources; those of the site are checked when it is built."""
    for link in _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"https?:", link):
            continue
        path = page if link.startswith("#") else target(page, link)
        assert path.exists(), f"{link} leads nowhere"
        if "#" in link and path.suffix == ".md":
            assert link.partition("#")[2] in anchors(path), f"{link}: there are {sorted(anchors(path))}"


@pytest.mark.parametrize("readme", TWINS[0], ids=lambda path: path.name)
def test_the_readme_is_short(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    cells = [cell for line in prose(readme).splitlines() if line.startswith("|") for cell in line.split("|")]
    assert max(len(cell.split()) for cell in cells) <= 20


def test_the_picture_of_the_readme_is_the_demo_s_table() -> None:
    """`make demo ARGS="--svg docs/images/demo.svg"` draws it; nothing is loaded from elsewhere."""
    picture = html.unescape((DOCS / "images/demo.svg").read_text(encoding="utf-8")).replace("\xa0", " ")
    source = (ROOT / "examples/add_custom/demo.py").read_text(encoding="utf-8")
    modes = re.findall(r'^        "(eager|GE graph.*|aclgraph.*)": \(', source, re.MULTILINE)
    assert len(modes) == 4
    assert [picture.count(mode) for mode in modes] == [3, 3, 3, 3]
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", picture)

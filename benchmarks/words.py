"""Words of the project: docstrings, messages, the README's size, lengths of sentences, links, pages without code.

Sentences are those of prose: code, tables, headings and lists of links are left out. The grade is Flesch-Kincaid's, with the
syllables of pyphen's hyphenation.

    python -m ascend_graph.host benchmarks/words.py [--list MEASURE]

Prints a JSON object as the last line.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from benchmarks._messages import messages  # noqa: E402

#: First words that leave a clause without a head; articles, where a function's first line should be an imperative.
HEADLESS = frozenset(
    ["What", "Whether", "Where", "Of", "Whose", "Those", "That", "As", "By", "Which", "How", "When", "Who"]
)
ARTICLES = frozenset(["The", "A", "An", "All", "Each", "Every"])
#: Pages that explain, list or lead on, and need no code.
WITHOUT_CODE = frozenset(
    [
        "docs/index.md",
        "docs/zh/index.md",
        "docs/architecture.md",
        "docs/glossary.md",
        "docs/reference",
        "docs/routes.md",
        "docs/zh/routes.md",
        "docs/wheel-faults.md",
    ]
)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.*)$", re.MULTILINE)


def documents() -> list[Path]:
    """Return the English and Chinese documents of the tree."""
    return [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def first_lines(path: Path) -> Iterator[tuple[int, bool, str]]:
    """Yield the line, whether it is a function's, and the first word of each docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            is_function = isinstance(node, ast.FunctionDef) and not any(
                "property" in ast.unparse(decorator) for decorator in node.decorator_list
            )
            yield getattr(node, "lineno", 1), is_function, text.split()[0].strip(",:;.")


def headless_docstrings(package: str) -> list[str]:
    """Return the places of docstrings whose first line has no head, or begins a function's with an article."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, is_function, word in first_lines(path)
        if word in HEADLESS or (is_function and word in ARTICLES)
    ]


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a document's prose.

    Example:
        >>> sentences("# Title\\n\\nOne `x.y` is. Two\\nlines are [it](a.md).\\n\\n```\\ncode\\n```\\n\\n| a | b |\\n")
        ['One x.y is.', 'Two lines are it.']
    """
    found = []
    for block in re.split(r"\n\s*\n", _FENCE.sub("", markdown)):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|<|!\[|:::|>>>|\.\.\.)", line)]
        for part in re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines)):
            text = re.sub(r"^\s*(?:[-*]|\d+\.) +", "", part)
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
            text = re.sub(r"[`*]", "", " ".join(text.split()))
            found += [s for s in re.split(r"(?<=[.!?:;])\s+(?=[A-Z(\d])", text) if len(s.split()) > 2]
    return found


def longest_cell(markdown: str) -> int:
    """Return the number of words in the longest cell of the document's tables."""
    rows = (line for line in _FENCE.sub("", markdown).splitlines() if line.startswith("|"))
    return max((len(cell.split()) for row in rows for cell in row.strip("|").split("|")), default=0)


def _anchors(markdown: str) -> set[str]:
    headings = _HEADING.findall(_FENCE.sub("", markdown))
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h).lower()).replace(" ", "-") for h in headings
    }


def broken_links(pages: Iterable[Path]) -> list[str]:
    """Return the links to files that do not exist, and to headings that a page does not have."""
    found = []
    for page in pages:
        for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            if re.match(r"\w+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists() or (
                anchor and path.suffix == ".md" and anchor not in _anchors(path.read_text(encoding="utf-8"))
            ):
                found.append(f"{page.relative_to(ROOT)}: {target}")
    return found


def without_code(pages: Iterable[Path]) -> list[str]:
    """Return the documents, other than explanations and lists, that show no code and no command."""
    names = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages}
    return [
        name
        for name, text in names.items()
        if not re.search(r"^(```|    \S|>>> )", text, re.MULTILINE)
        and not WITHOUT_CODE & {name, name.rpartition("/")[0]}
    ]


def _lengths(texts: Iterable[str]) -> dict[str, float]:
    """Return the median and the 95th percentile of words per sentence, and the grade."""
    import pyphen

    hyphenated = pyphen.Pyphen(lang="en_US")
    found = [sentence.split() for text in texts for sentence in sentences(text)]
    words = [word for sentence in found for word in sentence]
    syllables = sum(len(hyphenated.positions(word)) + 1 for word in words)
    lengths = [len(sentence) for sentence in found]
    return {
        "sentence_median": statistics.median(lengths),
        "sentence_p95": round(statistics.quantiles(lengths, n=20)[-1], 1),
        "grade": round(0.39 * len(words) / len(found) + 11.8 * syllables / len(words) - 15.59, 1),
    }


def main() -> None:
    """Print the figures, and with ``--list`` the entries of one of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", metavar="MEASURE", help="print the entries of one figure")
    wanted = parser.parse_args().list
    pages = documents()
    english = [page for page in pages if "zh" not in page.relative_to(ROOT).as_posix().replace(".", "/").split("/")]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    collected = list(messages())
    lists = {
        "headless_docstrings": [*headless_docstrings("ascend_graph"), *headless_docstrings("codegen")],
        "faulty_messages": [f"{one.place}: {fault}: {one.text}" for one in collected for fault in one.faults()],
        "messages_without_remedy": [
            f"{one.place}: {one.text}"
            for one in collected
            if one.raised and not one.only_relays() and not one.says_what_to_write()
        ],
        "broken_links": broken_links(pages),
        "pages_without_code": without_code(pages),
        "pages_over_300_lines": [
            f"{n} {page.relative_to(ROOT)}" for page in pages if (n := len(page.read_text().splitlines())) > 300
        ],
    }
    if wanted is not None:
        if wanted not in lists:
            raise SystemExit(f"--list {wanted}: expected one of {', '.join(lists)}")
        print("\n".join(lists[wanted]))
    prose = {
        "readme": _lengths([readme]),
        "docs": _lengths(page.read_text(encoding="utf-8") for page in english if page.name != "README.md"),
    }
    figures = {
        "readme_lines": len(readme.splitlines()),
        "readme_longest_cell": longest_cell(readme),
        "messages": sum(one.raised for one in collected),
        **{name: len(found) for name, found in lists.items()},
        **{f"{place}_{name}": value for place, found in prose.items() for name, value in found.items()},
    }
    for name, value in figures.items():
        print(f"{name:28} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

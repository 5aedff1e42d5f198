"""Pages of the site that lie elsewhere in the tree than docs/, and links between the two.

In the tree a link names a file, ``../benchmarks/README.md``; on the site the page that is made of it. A link to a file that is no
page becomes its name.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
#: Pages of the site by the file of the tree that they are made of.
PAGES = {
    ROOT / "README.md": "readme.md",
    ROOT / "README.zh.md": "zh/readme.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "SECURITY.md": "security.md",
    ROOT / "benchmarks/README.md": "benchmarks.md",
    **{path: f"examples/{path.parent.name}.md" for path in EXAMPLES},
}
_LINK = re.compile(r"\[([^\]\n]*(?:\n[^\]\n]+)?)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
#: Columns from which a table is shown as cards on a phone, and from which its cells are padded less.
_CARDS, _WIDE = 3, 7
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Link to the repository that the tree was cloned from, if it has an address that a browser opens."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    try:
        origin = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # no git
        origin = ""
    config.repo_url = web_address(origin.strip()) or config.repo_url
    if config.repo_url:
        config.repo_name = config.repo_url.rpartition("/")[2]
    return config


def web_address(remote: str) -> str | None:
    """Return the page of a git remote; None for a directory.

    >>> web_address("git@example.org:group/project.git"), web_address("https://me:key@example.org/group/project")
    ('https://example.org/group/project', 'https://example.org/group/project')
    >>> web_address("/srv/project.git")
    """
    match = re.fullmatch(
        r"(?:https?://(?:[^@/]+@)?|ssh://(?:[^@/]+@)?|[\w.-]+@)(?P<host>[\w.-]+)(?::\d+)?[/:](?P<path>\S+?)(?:\.git)?/?",
        remote,
    )
    return f"https://{match['host']}/{match['path']}" if match else None


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of other files, and one that lists the examples."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, content=path.read_text(encoding="utf-8")))
    lines = []
    for path in EXAMPLES:
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}](examples/{path.parent.name}.md): `examples/{path.parent.name}`\n")
    files.append(File.generated(config, "examples.md", content="# Examples\n\n" + "".join(lines)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make the links of the tree those of the site, outside of code."""
    source = {uri: path for path, uri in PAGES.items()}.get(page.file.src_uri, ROOT / "docs" / page.file.src_uri)
    markdown = markdown.replace("<!-- commands -->", commands()).replace("<!-- other names -->", other_names())
    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else links(part, source, page.file.src_uri) for part in parts)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write its heading beside each cell of a table, for phones, which show a row as lines: assets/site.css."""
    return _TABLE.sub(lambda table: cards(table.group()), html)


def cards(table: str) -> str:
    """Return a table with the attributes that assets/site.css lays it out by.

    >>> cards("<table><tr><th>a</th><th>b</th><th>c</th></tr><tr><td>1</td><td>2</td><td>3</td></tr></table>")
    '<table data-cards><tr><th>a</th><th>b</th><th>c</th></tr><tr><td>1</td><td data-heading="b">2</td><td data-heading="c">3</td></tr></table>'
    """
    headings = [
        re.sub(r"<[^>]+>", "", heading).strip() for heading in re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)
    ]
    if len(headings) < _CARDS:
        return table

    def row(match: re.Match[str]) -> str:
        column = itertools.count()

        def cell(_: re.Match[str]) -> str:
            heading = dict(enumerate(headings)).get(n := next(column), "")
            return f'<td data-heading="{heading.replace(chr(34), "&quot;")}"' if n and heading else "<td"

        return re.sub(r"<td\b", cell, match.group())

    marks = " data-cards" + " data-wide" * (len(headings) >= _WIDE)
    return re.sub(r"<tr\b.*?</tr>", row, table.replace("<table", f"<table{marks}", 1), flags=re.DOTALL)


def other_names() -> str:
    """Return the reference of public names that no page of it mentions."""
    import ascend_graph

    said = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    modules = {"raw_ops"}  # GE's operators, made when they are asked for
    unsaid = [
        n for n in ascend_graph.__all__ if n not in modules and not re.search(rf"^::: ascend_graph\.{n}$", said, re.M)
    ]
    return "\n".join(f"::: ascend_graph.{name}" for name in unsaid)


def commands() -> str:
    """Return the help of every command, as sections."""
    from ascend_graph.cli import main

    def sections(command: click.Command, name: str) -> list[str]:
        context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
        if isinstance(command, click.Group):
            return [
                text for sub in sorted(command.commands) for text in sections(command.commands[sub], f"{name} {sub}")
            ]
        return [f"## {name.partition(' ')[2]}\n\n```text\n{command.get_help(context)}\n```\n"]

    return "\n".join(sections(main, "ascend-graph"))


def links(text: str, source: Path, uri: str) -> str:
    """Return the text of the file ``source``, which is the page ``uri``, with its links as the site has them."""

    def replaced(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        if re.match(r"\w+:|/", target):
            return match[0]
        path = Path(os.path.normpath(source.parent / target))
        to = page_of(path)
        if path.suffix == ".svg" and path.is_relative_to(ROOT / "docs"):
            return f"[{label}]({os.path.relpath(path.relative_to(ROOT / 'docs'), Path(uri).parent)})"
        if to is not None:
            return f"[{label}]({os.path.relpath(to, Path(uri).parent)}{anchor})"
        return f"{label} (`{path.relative_to(ROOT)}`)" if path.exists() else match[0]

    return _LINK.sub(replaced, text)


def page_of(path: Path) -> str | None:
    """Return the page that a file or directory of the tree is on the site."""
    if path.is_dir():
        indices = {ROOT / "docs": "index.md", ROOT / "examples": "examples.md"}
        return indices.get(path) or PAGES.get(path / "README.md")
    if path in PAGES:
        return PAGES[path]
    is_page = path.suffix == ".md" and path.is_relative_to(ROOT / "docs")
    return str(path.relative_to(ROOT / "docs")) if is_page else None

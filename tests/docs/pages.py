"""A page of the documentation as a program: the files that it shows, the commands of its shell blocks, what they print.

A fenced block with ``title="name"`` is a file, one in ``sh`` is run, one in ``text`` right behind it is what it prints;
``...``
there stands for anything. All commands of a page run in one shell, in order, in a directory that is empty at first.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(?P<language>\w*)(?P<attributes>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    page: str
    #: The file that it is; empty where it is none.
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        title = _TITLE.search(match["attributes"])
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match["language"], page.name, title[1] if title else "", match["text"], line))
    return found


def environment(packages: Path) -> dict[str, str]:
    """What a user's shell has once a page's requirements are installed: no host runtime, and pip installs into
    ``packages``."""
    ours = (
        "PYTEST",
        "COV_",
        "ASCEND",
        "LD_LIBRARY_PATH",
        "CPLUS_INCLUDE_PATH",
        "CMAKE_PREFIX_PATH",
        "TASK_QUEUE",
        "OMP_",
        "TORCH_",
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(packages),
        "PIP_TARGET": str(packages),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_QUIET": "1",
        "MAX_JOBS": "2",
        "COLUMNS": "120",
    }


def run(pages: Sequence[Path], directory: Path, variables: dict[str, str]) -> list[str]:
    """Do what pages say in a directory, one after the other; in words where an output differs, or a command fails."""
    directory.mkdir()
    shown = [block for page in pages for block in blocks(page)]
    script = ["set -eu"]
    commands: list[Block] = []
    for number, block in enumerate(shown):
        if block.title:
            content = directory / f".block{number}"
            content.write_text(block.text)
            folder = f"mkdir -p '{Path(block.title).parent}'; " if "/" in block.title else ""
            script.append(f"{folder}cp .block{number} '{block.title}'")
        elif block.language == "sh":
            # The same shell goes on: what a command exports is there for the next.
            script += [f"exec > .output{len(commands)}", block.text.rstrip()]
            commands.append(block)
    result = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=directory, env=variables, stderr=subprocess.PIPE, text=True, check=False
    )
    wrong = []
    for number, block in enumerate(commands):
        output = directory / f".output{number}"
        if not output.exists():
            break
        following = shown[shown.index(block) + 1 :]
        expected = following[0].text if following and following[0].language == "text" else None
        said = output.read_text()
        if expected is not None and not doctest.OutputChecker().check_output(expected, said, _OPTIONS):
            wrong.append(f"{block.page}:{block.line}: {block.text}prints\n{said}\nand the page says\n{expected}")
    if result.returncode:
        wrong.append(f"{pages[0].name}: the commands end with {result.returncode}:\n{said}\n{result.stderr[-3000:]}")
    return wrong

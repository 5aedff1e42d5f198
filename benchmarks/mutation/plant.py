"""Choose faults over all packages and write them into a copy of the tree, each guarded by its number."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.mutation import cpp_sites, sites

#: Faults by number, in the copy's root.
LIST = "planted_faults.json"
MODULE = '''"""Asks whether a planted fault is switched on."""

import mmap
import os

_notes = None


def planted_fault(number):
    global _notes
    path = os.environ.get("AG_REACHED")
    if path:
        if _notes is None or _notes[0] != path:
            try:
                with open(path, "r+b") as file:
                    _notes = path, mmap.mmap(file.fileno(), 4096)
            except OSError:
                return False
        _notes[1][number] = 1
        return False
    return os.environ.get("AG_FAULT") == str(number)


planted_fault._dynamo_marked_constant = True
'''
IMPORT = f"from ascend_graph._planted import planted_fault as {sites.ASK}\n"


def choose(root: Path, count: int, seed: int, share_of_cpp: float = 1 / 3) -> dict[Path, dict[int, sites.Site]]:
    """Return numbered faults by file: a third in C++, and of each language as many as a directory's code asks.

    Args:
        root: The tree.
        count: Number of faults; the numbers begin at 1.
        seed: Of the draw: one seed, one tree, the same faults.
        share_of_cpp: Part of the faults that C++ gets.
    """
    drawn = random.Random(seed)
    python = [path for part in ("ascend_graph", "codegen") for path in sorted((root / part).rglob("*.py"))]
    cpp = [path for path in sorted((root / "csrc").rglob("*")) if path.suffix in {".h", ".cpp"}]
    chosen: dict[Path, dict[int, sites.Site]] = defaultdict(dict)
    number = 0
    for files, find, wanted in (
        (python, sites.sites, count - round(count * share_of_cpp)),
        (cpp, cpp_sites.sites, round(count * share_of_cpp)),
    ):
        rooms: dict[Path, list[tuple[Path, sites.Site]]] = defaultdict(list)
        for file in files:
            room = file.relative_to(root).parent
            rooms[Path(*room.parts[:3])] += [(file, site) for site in find(file.read_text(encoding="utf-8"))]
        for faults in rooms.values():
            drawn.shuffle(faults)
        weights = {room: len(faults) ** 0.5 for room, faults in rooms.items() if faults}
        for room, weight in sorted(weights.items()):
            portion = weight * wanted / sum(weights.values())
            take = int(portion) + (drawn.random() < portion % 1)
            for file, site in rooms[room]:
                if take and all(site.end <= one.start or one.end <= site.start for one in chosen[file].values()):
                    take -= 1
                    number += 1
                    chosen[file][number] = site
    return {file: numbered for file, numbered in chosen.items() if numbered}


def plant(root: Path, count: int, seed: int, without: frozenset[int] = frozenset()) -> dict[int, dict[str, Any]]:
    """Write the faults into a tree, which is changed, and their list beside it; return the list.

    Args:
        root: A copy of the tree.
        count: As of ``choose``.
        seed: As of ``choose``.
        without: Numbers that are not written, for what does not compile.
    """
    listed: dict[int, dict[str, Any]] = {}
    for file, numbered in choose(root, count, seed).items():
        kept = {number: site for number, site in numbered.items() if number not in without}
        text = file.read_text(encoding="utf-8")
        if kept:
            is_python = file.suffix == ".py"
            changed = sites.planted(text, kept, IMPORT) if is_python else cpp_sites.planted(text, kept)
            file.write_text(changed, encoding="utf-8")
        for number, site in kept.items():
            listed[number] = {
                "file": str(file.relative_to(root)), "line": site.line, "kind": site.kind,
                "right": site.right, "wrong": site.wrong,
            }  # fmt: skip
    (root / "ascend_graph" / "_planted.py").write_text(MODULE, encoding="utf-8")
    (root / LIST).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    return listed

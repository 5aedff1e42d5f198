"""Check of the cache of compiled libraries: its size, and the versions of torch and torch_npu they are for."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ascend_graph.compilation import cache_directory
from ascend_graph.compilation.cache import entries
from ascend_graph.doctor.finding import Finding
from ascend_graph.versions import installed

#: Size in megabytes above which emptying the cache is proposed.
_LARGE = 4_000


def caches() -> Iterator[Finding]:
    """Yield findings about the cache: whether it is writable, and its contents."""
    directory = cache_directory()
    above = next(path for path in (directory, *directory.parents) if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        text = f"{directory} cannot be written: nothing can be compiled"
        yield Finding("cache", text, True, "export ASCEND_GRAPH_CACHE=DIRECTORY")
        return
    sizes, made = _contents(directory)
    if not sizes:
        yield Finding("cache", f"{directory}, empty: the host runtime is compiled on first use (about a minute)")
        return
    bridges = sum(name == "ascend_graph_host_bridge" for name, _ in sizes)
    megabytes = sum(size for _, size in sizes) / 1e6
    yield Finding(
        "cache",
        f"{directory}: {len(sizes)} libraries, {megabytes:.0f} MB, {bridges} of them the host runtime's bridge",
        fix=f"rm -r {shlex.quote(str(directory))}  # all is compiled again when it is needed"
        if megabytes > _LARGE
        else "",
    )
    now = {name: package.version for name in ("torch", "torch_npu") if (package := installed(name))}
    for versions, count in sorted(made.items()):
        matches = dict(version.split("=", 1) for version in versions) == now
        state = "the installed ones" if matches else "others than the installed ones; they are not used"
        yield Finding("cache", f"{count} for {', '.join(v.replace('=', ' ') for v in versions)}: {state}")


def _contents(directory: Path) -> tuple[list[tuple[str, int]], Counter[tuple[str, ...]]]:
    """Return name and size of each library, and the number of libraries by versions of torch and torch_npu."""
    sizes: list[tuple[str, int]] = []
    made: Counter[tuple[str, ...]] = Counter()
    for manifest in sorted(directory.glob("*.json")):
        for entry in entries(manifest):
            sizes.append((manifest.stem.rpartition("-")[0], entry.size))
            versions = tuple(
                text.partition(" ")[0] for text in entry.made_for if text.startswith(("torch=", "torch_npu="))
            )
            if versions:
                made[versions] += 1
    return sizes, made

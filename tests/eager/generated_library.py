"""The C++ of a generated project as one library, compiled as one file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ascend_graph.compilation import CppLibrary, torch_library


def generated_library(name: str, project: Path) -> CppLibrary:
    """Return the library of a generated project's sources.

    Reading PyTorch's headers takes most of the time, so one file includes the sources. The slow suite builds projects
    file by file, as their authors do.
    """
    directory = project / "csrc/generated"
    sources = sorted(directory.glob("*.cpp"))
    whole = project / "whole.cpp"
    whole.write_text("".join(f'#include "{source.name}"\n' for source in sources))
    library = torch_library(
        name, [whole], headers=[*sources, *sorted(directory.rglob("*.h"))], include_directories=[directory]
    )
    return replace(library, flags=(*library.flags, "-O0", "-g0"))

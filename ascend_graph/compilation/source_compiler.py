"""Program that compiles a C++ source for ninja: the compiler's own command line, cached, with precompiled headers.

``python -m ascend_graph.compilation.source_compiler DIRECTORY:DIRECTORY g++ -- -O2 -c source.cpp -o source.o``, with the
directories of stable headers first. Whatever goes wrong, the compiler runs on the source as it was told, so that only
it says what is wrong with a source.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ascend_graph.compilation.objects import ObjectCache, object_key
from ascend_graph.compilation.precompiled import PrecompiledHeaders, for_preprocessed, is_gcc, split


def command(directories: Sequence[Path]) -> list[str]:
    """Return the words to write before the compiler's own, which ``--`` must separate from its options.

    Args:
        directories: Directories of headers that change seldom; they are precompiled where a source begins with them.
    """
    places = os.pathsep.join(str(path.resolve()) for path in directories)
    return [sys.executable, "-m", __name__, places]


def compile_source(directories: Sequence[str], compiler: Sequence[str], arguments: Sequence[str]) -> int:
    """Compile one source, and return the compiler's status.

    Args:
        directories: Directories of stable headers.
        compiler: The compiler's command.
        arguments: Its arguments, with ``-c SOURCE -o OBJECT`` at the end.
    """
    try:
        if _compiled(directories, compiler, arguments):
            return 0
    except (OSError, ValueError):
        pass
    return subprocess.run([*compiler, *arguments], check=False).returncode


def _compiled(directories: Sequence[str], compiler: Sequence[str], arguments: Sequence[str]) -> bool:
    """Compile by the preprocessed text; return False if the compiler must run on the source itself."""
    *options, compile_only, source, to, target = arguments
    version = subprocess.run([*compiler, "--version"], check=False, capture_output=True, text=True).stdout
    if (compile_only, to) != ("-c", "-o") or not is_gcc(version):
        return False
    with tempfile.TemporaryDirectory(prefix="source-compiler-") as directory:
        preprocessed = Path(directory) / "source.ii"
        done = subprocess.run(
            [*compiler, *options, "-E", source, "-o", str(preprocessed)], check=False, capture_output=True
        )
        if done.returncode != 0:
            return False
        text = preprocessed.read_text(encoding="utf-8", errors="surrogateescape")
        parts = split(text, [f"{path}/" for path in directories])
        kept = for_preprocessed(options)
        objects, key = ObjectCache(), object_key(parts, kept, [*compiler, version])
        if objects.restore(key, Path(target)):
            return True
        headers = PrecompiledHeaders(compiler, version)
        tried = headers.compile(parts, kept, Path(target), Path(directory), lambda text: text)
        if tried is None:
            whole = [*compiler, *kept, "-x", "c++-cpp-output", "-c", str(preprocessed), "-o", target]
            done = subprocess.run(whole, check=False, capture_output=True)
            tried = done.returncode == 0, done.stderr.decode(errors="replace")
        succeeded, said = tried
        if not succeeded:
            return False
        sys.stderr.write(said)
        if not said:
            objects.keep(key, Path(target))
        return True


def main() -> None:
    """Compile the source of this process's arguments, and exit with the compiler's status."""
    places, *words = sys.argv[1:]
    end = words.index("--")
    raise SystemExit(compile_source(places.split(os.pathsep), words[:end], words[end + 1 :]))


if __name__ == "__main__":
    main()

"""Commands of a README: blocks of shell code in order, with the directory and the variables that earlier ones set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

_FENCE = re.compile(r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_SHELL = frozenset({"bash", "sh", "shell"})
_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
#: Change to the reader's own clone: ``cd ${git_clone_path}/samples/operator/…``.
_CLONE = re.compile(r"cd\s+(?:\$\{?\w*(?:clone|path)\w*\}?|\[[\w ]+\]|<[\w ]+>)/?(\S*)")
#: Installation of CANN, wherever its reader has it.
_HOME = re.compile(
    r"(?:(?:/usr/local|/home/\w+|\$\{?HOME\}?)/Ascend|\$\{?install_path\}?(?:/Ascend)?)/(?:ascend-toolkit/latest|latest|cann)\b"
)
#: Preparation that is already done here, or that a reader does once, before all samples.
_PREPARATION = re.compile(
    r"git\s+(?:clone|checkout|submodule)|pip3?\s+install\s+torch|^\s*(?:unzip|wget|vim?)\b", re.MULTILINE
)
_LISTED = re.compile(r"^│ {3}[├└]── (\w+)(?=\s|$)", re.MULTILINE)
#: Statement in one sample's README that ``-v`` is only for simulations.
_CHIP_FOR_SIM = re.compile(r"SOC_VERSION[：:][^\n]*只支持在RUN_MODE为sim时配置")
_MODES = re.compile(r"\[RUN_MODE\][^\n]*|RUN_MODE[：:][^\n]*支持参数为\[([^\]]*)\]")
_ONLY_SETTINGS = re.compile(r"(?:export|source|cd|echo)\b")
_REMARK = re.compile(r"\s*[(（][^()（）]*[\u4e00-\u9fff][^()（）]*[)）]")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=")
#: Variables of a shell's environment, or set by CANN's set_env.sh.
_KNOWN = re.compile(r"ASCEND_\w+|(?:LD_LIBRARY_|CMAKE_PREFIX_|PYTHON)?PATH|HOME|PWD|USER")
_SCRIPT = re.compile(r"(?:bash|sh|python3?)\s+(\S+\.(?:sh|py))|\./(\S+\.sh)")
_DOES = re.compile(r"\bcmake\s+(?!--version)\S|\.(?:sh|run)\b|\bpython3?\s+\S+\.py\b|\./")
_LEFT_OPEN = re.compile(r"\[[A-Z_]+\]|<[a-z ]+>")


@dataclass(frozen=True, slots=True)
class Commands:
    """Block of commands in a README.

    Attributes:
        directory: Its directory, relative to the checkout.
        settings: Variables that earlier blocks exported, as lines of shell.
        script: Its own lines.
    """

    directory: PurePosixPath
    settings: tuple[str, ...]
    script: str

    @property
    def does_something(self) -> bool:
        """True if it builds or runs; false for ``cmake --version`` and installations of tools."""
        return _DOES.search(self.script) is not None


def modes(text: str) -> list[str]:
    """Return the run modes that a README lists.

    >>> modes("- RUN_MODE：编译方式。支持参数为[cpu /sim / npu]")
    ['cpu', 'sim', 'npu']
    """
    listed = (re.split(r"[/\s]+", found[1].strip()) for found in _MODES.finditer(text) if found[1])
    return next(listed, [])


def listed_directories(text: str) -> list[str]:
    """Return the directories that a README's tree shows directly under the sample: names without an extension.

    >>> listed_directories("├── Sample\\n│   ├── output   // results\\n│   └── run.sh\\n")
    ['output']
    """
    return _LISTED.findall(text)


def blocks(
    text: str, here: PurePosixPath, root: Path, values: Mapping[str, str], wanted: Sequence[str]
) -> Iterator[Commands]:
    """Yield the blocks that do something, once for each run mode that they leave open.

    Args:
        text: The README.
        here: Its directory, relative to the checkout.
        root: The checkout.
        values: A value for each placeholder: ``SOC_VERSION``, and ``CANN`` for where CANN is installed.
        wanted: The run modes to try; of these, those that the README lists.
    """
    directory, settings = here, tuple[str, ...]()
    listed = modes(text)
    for language, block in _FENCE.findall(text):
        if language not in _SHELL or _PREPARATION.search(block):
            continue
        script = _filled(_REMARK.sub("", _COMMENT.sub("", block)), values)
        lines = [line.strip() for line in script.splitlines() if line.strip()]
        if lines and (entered := _CLONE.match(lines[0])):
            directory = _below(root, entered[1], here)
            lines = lines[1:]
        if all(_ONLY_SETTINGS.match(line) for line in lines):
            settings += tuple(line for line in lines if line.startswith("export"))
            continue
        if _is_excerpt("\n".join((*settings, *lines))):
            continue
        made = Commands(_with_script(root, directory, lines), tuple(dict.fromkeys(settings)), "\n".join(lines))
        if "[RUN_MODE]" not in made.script:
            yield made
        for mode in (mode for mode in wanted if "[RUN_MODE]" in made.script and mode in (listed or wanted)):
            filled = made.script.replace("[RUN_MODE]", mode)
            if mode != "sim" and _CHIP_FOR_SIM.search(text):
                filled = filled.replace(f" -v {values['SOC_VERSION']}", "")
            yield replace(made, script=filled)


def open_places(script: str) -> list[str]:
    """Return the placeholders that a block still leaves to its reader.

    >>> open_places("bash run.sh -v [SOC_VERSION]")
    ['[SOC_VERSION]']
    """
    return _LEFT_OPEN.findall(script)


def _filled(script: str, values: Mapping[str, str]) -> str:
    script = _HOME.sub(values["CANN"], script).replace("[ASCEND_INSTALL_PATH]", values["CANN"])
    script = re.sub(r"\[SOC_VERSION\]|\bAscend[xy]+[A-Z]?\d?\b", values["SOC_VERSION"], script)
    # Parts of file names that depend on the machine.
    return re.sub(r"<[a-z ]+>_<[a-z ]+>|cp\d+-cp\d+-linux_\w+", "*", script)


def _below(root: Path, path: str, otherwise: PurePosixPath) -> PurePosixPath:
    """Return the longest tail of a path that the checkout has as a directory."""
    parts = PurePosixPath(path).parts
    tails = (PurePosixPath(*parts[index:]) for index in range(len(parts)))
    return next((tail for tail in tails if (root / tail).is_dir()), otherwise)


def _is_excerpt(script: str) -> bool:
    """Return whether lines read variables that are never set: a part of a script that a README explains."""
    used = (name for name in _VARIABLE.findall(script) if not _KNOWN.fullmatch(name))
    return not set(used) <= set(_ASSIGNED.findall(script))


def _with_script(root: Path, directory: PurePosixPath, lines: Sequence[str]) -> PurePosixPath:
    """Return the directory, or the nearest one above it that has the script that starts first."""
    found = _SCRIPT.match(lines[0])
    name = found and (found[1] or found[2])
    near = (directory, *directory.parents) if name else ()
    return next((place for place in near if (root / place / str(name)).is_file()), directory)

"""What is handed out: the sdist has every file that building, testing and reading need, and the wheel made of it alone
works
next to the torch and torch_npu that are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from ascend_graph.doctor.libraries import read_library

TREE = Path(__file__).resolve().parents[1]
#: What makes and runs installations; they are no host processes.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("ASCEND_", "PYTHONPATH", "LD_LIBRARY_PATH"))
}


def make(*arguments: str, cwd: Path = TREE, **environment: str) -> str:
    """What make prints, where .venv is taken as it is."""
    command = ["make", "-s", *arguments, "-o", ".venv/bin/pip", "-o", ".venv/installed"]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=ENVIRONMENT | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel of ``make dist``; the sdist is unpacked and built below a directory with a space."""
    make("dist", f"BIN={Path(sys.executable).parent}", TMPDIR=str(tmp_path_factory.mktemp("with a space")))
    ((sdist,), (wheel,)) = (list((TREE / "build/dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    return sdist, wheel


@pytest.mark.slow
@pytest.mark.skipif(not (TREE / ".git").exists(), reason="this tree is not a checkout")
def test_the_sdist_is_the_tree(handed_out: tuple[Path, Path]) -> None:
    with tarfile.open(handed_out[0]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=TREE, check=True, capture_output=True, text=True).stdout
    assert {f for f in listed.splitlines() if not f.startswith(".ci/")} - packed == set()


@pytest.mark.slow
def test_the_tag_of_the_wheel_is_true(handed_out: tuple[Path, Path], tmp_path: Path) -> None:
    """No library needs a newer C library than the tag says, or one that is neither in the wheel nor everywhere."""
    found = re.fullmatch(r"ascend_graph-[\d.]+-py3-none-manylinux_(\d+)_(\d+)_(\w+)\.whl", handed_out[1].name)
    assert found is not None
    with zipfile.ZipFile(handed_out[1]) as archive:
        archive.extractall(tmp_path)
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"ascend_graph"}  # nothing foreign
    libraries = [library for path in tmp_path.rglob("*.so") if (library := read_library(path)) is not None]
    assert len(libraries) > 15
    own = {library.path.name for library in libraries}
    everywhere = re.compile(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so\.\d+|ld-linux.*")
    for library in libraries:
        assert library.machine == found[3]
        assert library.interfaces.get("GLIBC", (2,)) <= (int(found[1]), int(found[2]))
        assert [name for name in library.needed if name not in own and not everywhere.fullmatch(name)] == []


@pytest.mark.slow
def test_the_wheel_is_installed_beside_the_torch_that_is_there(handed_out: tuple[Path, Path], tmp_path: Path) -> None:
    """An environment with torch and torch_npu, and no other trace of this tree: pip leaves both, and the demo runs."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / ".venv"], check=True, env=ENVIRONMENT)
    (site,) = (tmp_path / ".venv/lib").glob("python*/site-packages")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "ascend_graph" not in path.name:
            (theirs / path.name).symlink_to(path)
    (site / "theirs.pth").write_text(f"{theirs}\n")
    python = tmp_path / ".venv/bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    # A new environment of Python before 3.12 has an old setuptools of its own, which would hide the other.
    subprocess.run([*pip, "-q", "uninstall", "-y", "setuptools"], check=True, capture_output=True, env=ENVIRONMENT)
    said = subprocess.run(
        [*pip, "install", "--no-index", f"{handed_out[1]}[torch]"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert said.returncode == 0, said.stderr
    assert re.findall("^Successfully installed (.*)$", said.stdout, re.MULTILINE) == ["ascend-graph-0.1.0"]
    where = subprocess.run(
        [python, "-c", "import ascend_graph; print(ascend_graph.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
        cwd=tmp_path,
    ).stdout
    assert where.strip() == str(site / "ascend_graph/__init__.py")
    shutil.copy(TREE / "Makefile", tmp_path)
    shutil.copytree(TREE / "examples/add_custom", tmp_path / "examples/add_custom")
    rows = re.findall(r"│ *(yes|no)\b", make("demo", cwd=tmp_path))
    assert rows == ["yes"] * 12

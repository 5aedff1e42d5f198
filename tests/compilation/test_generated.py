"""Copies of generated sources: at one place for one set of names and contents."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ascend_graph.compilation import BuildError, generated, lasting_copies


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set an empty cache."""
    place = tmp_path / "cache"
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(place))
    return place


def files(directory: Path, **texts: str) -> list[Path]:
    """Write files ``<name>.h``."""
    directory.mkdir(exist_ok=True)
    for name, text in texts.items():
        (directory / f"{name}.h").write_text(text)
    return [directory / f"{name}.h" for name in texts]


def test_the_place_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    """The directory of the originals and their order make no difference."""
    first = lasting_copies(files(tmp_path / "one", a="1", b="2"))
    assert {path.name: path.read_text() for path in first.iterdir()} == {"a.h": "1", "b.h": "2"}
    assert lasting_copies(files(tmp_path / "two", b="2", a="1")) == first
    others = [
        lasting_copies(files(tmp_path / "three", **texts)) for texts in ({"a": "2", "b": "1"}, {"a": "1"}, {"a": "12"})
    ]
    assert len({first, *others}) == 4


def test_damaged_copies_are_written_again(tmp_path: Path) -> None:
    """A file that is changed or removed is there again at the next call."""
    place = lasting_copies(files(tmp_path / "one", a="1", b="2"))
    (place / "a.h").write_text("else")
    (place / "b.h").unlink()
    assert lasting_copies(files(tmp_path / "one", a="1", b="2")) == place
    assert ((place / "a.h").read_text(), (place / "b.h").read_text()) == ("1", "2")
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_those_used_last_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, the copies that were not used for longest go."""
    monkeypatch.setattr(generated, "_MOST", 2)
    places = [lasting_copies(files(tmp_path / "one", a=str(number))) for number in range(2)]
    os.utime(places[1], (0, 0))
    newest = lasting_copies(files(tmp_path / "one", a="2"))
    assert sorted(newest.parent.iterdir()) == sorted([places[0], newest])


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that are there are used all the same."""
    originals = files(tmp_path / "one", a="1")
    place = lasting_copies(originals)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(cache))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert lasting_copies(originals) == place
    (place / "a.h").unlink()
    with pytest.raises(BuildError, match=r"cannot be written: Read-only file system; set ASCEND_GRAPH_CACHE"):
        lasting_copies(originals)
    assert [path.name for path in place.parent.iterdir()] == [place.name]

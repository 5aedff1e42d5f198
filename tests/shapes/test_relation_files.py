"""Files of relations: what is written is read again, and a line that cannot be read is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_graph.shapes import RelationError, parse_relation
from ascend_graph.shapes.relation_files import (
    RelationFileWarning,
    load_relations,
    loaded_relation,
    read_relations,
    relation_file,
)


def test_a_written_file_is_read_again(tmp_path: Path) -> None:
    relations = {"FileAdd": parse_relation("x[...], y[...] -> z[...]"), "FileHalf": parse_relation("x[n] -> y[n // 2]")}
    path = tmp_path / "relations.ini"
    path.write_text(relation_file(relations, {"FileAdd": ["from InferShape"], "FileOdd": ["reads values\nof axes"]}))
    found, problems = read_relations(path)
    assert not problems
    assert {name: one.relation for name, one in found.items()} == relations
    assert "# FileOdd: no relation\n# reads values\n# of axes\n" in path.read_text()


def test_lines_that_cannot_be_read_are_told_and_the_others_loaded(tmp_path: Path) -> None:
    path = tmp_path / "relations.ini"
    path.write_text("[FileBad]\nshape = x[n -> y\n\n[FileGood]\nshape = x[n] -> y[n]\nshape = x[n] -> y[1]\nnoise\n")
    with pytest.warns(RelationFileWarning) as caught:
        assert load_relations(path) == ("FileGood",)
    messages = [str(one.message) for one in caught]
    assert messages[0].startswith(f"{path}:2: FileBad: ")
    assert messages[1].startswith(f"{path}:6: FileGood has a relation already")
    assert messages[2] == f"{path}:7: 'noise' cannot be read; expected [OpType], or shape = RELATION under one"
    loaded = loaded_relation("FileGood")
    assert loaded is not None
    assert loaded.place == f"{path}:5"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelationError, match="absent.ini: cannot be read: No such file"):
        load_relations(tmp_path / "absent.ini")

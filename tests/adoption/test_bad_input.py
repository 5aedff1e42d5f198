"""A file that cannot be read is reported, the rest is adopted, and nothing of an author is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascend_graph.adoption import AdoptedModuleError, AdoptionError, adopt

from .conftest import Adopt, Write, decision

SOURCE = """
at::Tensor twice(const at::Tensor &x) { at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnTwice, x, y); return y; }
TORCH_LIBRARY(mine, m) { m.def("twice(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("twice", &twice); }
"""


def test_what_hides_the_rest_of_a_file_is_reported(adopted: Adopt) -> None:
    files = {
        "comment.cpp": f"at::Tensor x; /*\n{SOURCE}",
        "endif.cpp": f"at::Tensor x;\n#if 0\n{SOURCE}",
        "ops.cpp": SOURCE,
    }
    report = adopted(files)
    assert decision(report, "mine::twice").registers
    assert [(one.file, one.line) for one in report.diagnostics] == [("comment.cpp", 1), ("endif.cpp", 2)]


def test_texts_in_utf_16_are_read_or_reported(repository: Write, tmp_path: Path) -> None:
    root = repository({"ops.cpp": ""})
    (root / "ops.cpp").write_text(SOURCE, encoding="utf-16")
    (root / "ops.py").write_text("import torch.library\n", encoding="utf-16")
    report = adopt(root, tmp_path / "operators.py")
    assert decision(report, "mine::twice").registers
    (found,) = report.diagnostics
    assert found.file == "ops.py"
    assert "is not Python" in found.message


def test_pipes_are_not_read_and_links_to_the_outside_are_named(repository: Write, tmp_path: Path) -> None:
    root = repository({"ops.cpp": SOURCE, "inner/other.h": ""})
    for name in ("pipe.cpp", "pipe.py", "pipe.yaml", "CMakeLists.txt"):
        os.mkfifo(root / name)
    (tmp_path / "shared").mkdir()
    (root / "csrc").symlink_to(tmp_path / "shared")
    (root / "inner/up").symlink_to("..")
    (root / "inner/same.cpp").symlink_to("../ops.cpp")
    (root / "self.cpp").symlink_to("self.cpp")
    report = adopt(root, tmp_path / "operators.py")
    assert decision(report, "mine::twice").registers
    (found,) = report.diagnostics
    assert found.file == "csrc"
    assert found.message.startswith(f"is a link to {tmp_path / 'shared'}, outside of the directory, and was not read")


def test_a_header_of_any_name_is_loaded(adopted: Adopt) -> None:
    prototype = "REG_OP(Twice).INPUT(x, TensorType::ALL()).OUTPUT(y, TensorType::ALL()).OP_END_FACTORY_REG(Twice)\n"
    report = adopted({"ops.cpp": SOURCE, 'twice (copy) "2".h': prototype})
    assert 'register_op("Twice"' in report.text
    compile(report.text, "operators.py", "exec")


def test_a_computed_schema_of_a_custom_op_is_not_guessed(adopted: Adopt) -> None:
    source = """
import torch
SCHEMAS = {"a": "(Tensor(a!) x) -> Tensor"}
@torch.library.custom_op("mine::a", mutates_args=(), schema=SCHEMAS["a"])
def a(x: torch.Tensor) -> torch.Tensor:
    return x + 1
"""
    report = adopted({"ops.py": source})
    assert not report.decisions
    assert [str(one) for one in report.diagnostics] == [
        "ops.py:4:1: error: mine::a: the schema is computed; expected string literals"
    ]


def test_a_module_that_lost_or_doubled_a_part_is_not_written_over(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    text = adopt(root, path).text
    start = text.index("# adopt: mine::twice")
    cut = text[: text.index("ascend_graph.register_kernel")]
    doubled = f"{text[:start]}{text[start:].partition('# adopt: end')[0]}MINE = 1\n\n{text[start:]}"
    for broken, said in ((cut, "ends within the region of mine::twice"), (doubled, "has another region in line 12")):
        path.write_text(broken)
        for write in (True, False):
            with pytest.raises(AdoptedModuleError, match=said):
                adopt(root, path, write=write)
        assert path.read_text() == broken


def test_a_link_to_the_module_stays_a_link(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    (tmp_path / "real").mkdir()
    path.symlink_to("real/operators.py")
    report = adopt(root, path)
    assert path.is_symlink()
    assert (tmp_path / "real/operators.py").read_text() == report.text


def test_names_that_cannot_be_imported_and_tests_of_others_are_refused(repository: Write, tmp_path: Path) -> None:
    root = repository({"ops.cpp": SOURCE})
    with pytest.raises(AdoptionError, match=r"class\.py: no module's name"):
        adopt(root, tmp_path / "class.py")
    (tmp_path / "test_operators.py").write_text("def test_mine(): pass\n")
    with pytest.raises(AdoptedModuleError, match=r"write no tests \(--no-tests\)"):
        adopt(root, tmp_path / "operators.py")
    assert adopt(root, tmp_path / "operators.py", tests=False).decisions

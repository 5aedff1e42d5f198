"""The written module imports, is kept where its author changed it, and drifts where the sources do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

from ascend_graph.adoption import AdoptedModuleError, AdoptionError, adopt
from ascend_graph.adoption.module import read_module
from ascend_graph.cli import main

from .conftest import Write

SOURCE = """
at::Tensor twice(const at::Tensor &x) { return at::empty_like(x); }
at::Tensor rows(const at::Tensor &x) { return x.select(0, 0); }
TORCH_LIBRARY(mine, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("rows(Tensor x) -> Tensor");
#ifdef MORE
  m.def("put(Tensor(a!) x) -> ()");
#endif
}
TORCH_LIBRARY_IMPL(mine, PrivateUse1, m) { m.impl("twice", &twice); m.impl("rows", &rows); }
"""


def test_the_module_has_a_call_each_and_a_line_to_complete(repository: Write, tmp_path: Path) -> None:
    report = adopt(repository({"ops.cpp": SOURCE}), tmp_path / "operators.py")
    text = (tmp_path / "operators.py").read_text()
    assert text == report.text
    ast.parse(text)
    assert 'ascend_graph.register_kernel(eager=torch.ops.mine.twice, shape="x[*s] -> y like x")\n' in text
    assert '# ascend_graph.register_kernel(eager=torch.ops.mine.rows, shape="…")\n' in text
    assert 'if hasattr(torch.ops.mine, "put"):\n    ascend_graph.register_kernel(' in text
    assert "# schema: ops.cpp:5\n" in text
    assert report.as_json()["undecided"][0]["name"] == "mine::rows"
    ast.parse((tmp_path / "test_operators.py").read_text())


def test_a_second_run_keeps_what_the_author_changed(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    first = adopt(root, path).text
    assert not adopt(root, path, write=False).drifted
    assert adopt(root, path).text == first

    completed = 'ascend_graph.register_kernel(eager=torch.ops.mine.rows, shape="x[n, *s] -> y[*s]")'
    edited = first.replace('# ascend_graph.register_kernel(eager=torch.ops.mine.rows, shape="…")', completed)
    edited = edited.replace("# adopt: mine::twice", "# adopt: end\nMY_OWN = 1\n\n# adopt: mine::twice")
    path.write_text(edited)
    second = adopt(root, path)
    assert completed in second.text
    assert "MY_OWN = 1" in second.text
    assert second.merged.kept == ["mine::rows"]
    assert not second.undecided
    assert not adopt(root, path, write=False).drifted


def test_a_region_that_was_removed_stays_removed(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    text = adopt(root, path).text
    start = text.index("# adopt: mine::rows")
    path.write_text(text[:start] + text[text.index("# adopt: mine::twice") :])
    report = adopt(root, path)
    assert report.merged.removed == ["mine::rows"]
    assert "mine.rows" not in report.text
    assert adopt(root, path).merged.removed == ["mine::rows"]


def test_check_says_what_drifted(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    run = CliRunner()
    options = ["adopt", str(root), "-o", str(path)]
    assert run.invoke(main, [*options, "--check"]).exit_code == 1
    assert not path.exists()
    assert run.invoke(main, options).exit_code == 0
    assert run.invoke(main, [*options, "--check"]).exit_code == 0

    # Other lines alone are no drift.
    (root / "ops.cpp").write_text("\n\n" + SOURCE)
    assert run.invoke(main, [*options, "--check"]).exit_code == 0
    (root / "ops.cpp").write_text(
        SOURCE.replace("at::empty_like(x)", "at::empty(x.sizes(), x.options().dtype(at::kInt))")
    )
    result = run.invoke(main, [*options, "--check"])
    assert result.exit_code == 1
    assert "changed: mine::twice" in result.output


def test_an_operator_that_is_gone_leaves_unless_it_was_changed(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    text = adopt(root, path).text
    path.write_text(text.replace('shape="x[*s] -> y like x")', 'shape="x[*s] -> y[*s]")'))
    (root / "ops.cpp").write_text("")
    report = adopt(root, path)
    assert sorted(report.merged.gone) == ["mine::put", "mine::rows", "mine::twice"]
    assert "torch.ops.mine.twice" in report.text
    assert "torch.ops.mine.rows" not in report.text


def test_files_of_others_are_not_written_over(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    for text in ("import os\n", "def broken(:\n"):
        path.write_text(text)
        with pytest.raises(AdoptedModuleError):
            adopt(root, path)
        assert path.read_text() == text
    with pytest.raises(AdoptionError):
        adopt(root, tmp_path / "not-a-name.py")
    with pytest.raises(AdoptionError):
        adopt(tmp_path / "nowhere", tmp_path / "other.py")


def test_names_of_others_stay_text(repository: Write, tmp_path: Path) -> None:
    source = (
        'TORCH_LIBRARY(mine, m) {\n#if X\n  m.def("lambda(Tensor x, str s=\\"a\\\\nimport os\\") -> ()");\n#endif\n}\n'
    )
    report = adopt(repository({"ops.cpp": source}), tmp_path / "operators.py")
    ast.parse(report.text)
    assert "getattr(torch.ops.mine, 'lambda')" in report.text
    assert "\nimport os" not in report.text


def test_the_tests_name_the_references_of_the_repository(repository: Write, tmp_path: Path) -> None:
    root = repository(
        {
            "ops.cpp": SOURCE,
            "tests/test_twice.py": "import torch\ndef twice_golden(x):\n    return x + x\n\ndef test_twice():\n    torch.ops.mine.twice(1)\n",
        }
    )
    adopt(root, tmp_path / "operators.py")
    text = (tmp_path / "test_operators.py").read_text()
    assert "'mine::twice': the function at tests/test_twice.py:2 twice_golden" in text
    assert "opcheck(op, SAMPLES.get(name), reference=REFERENCES.get(name))" in text
    assert read_module(tmp_path / "test_operators.py").regions


def test_a_repository_without_operators_is_told_what_registers_what_it_has(repository: Write, tmp_path: Path) -> None:
    root = repository(
        {"op_proto/mine.h": "REG_OP(Mine)\n    .INPUT(x, TensorType({DT_FLOAT}))\n    .OP_END_FACTORY_REG(Mine)\n"}
    )
    done = CliRunner().invoke(main, ["adopt", str(root), "--output", str(tmp_path / "operators.py")])
    assert done.exit_code == 0
    assert (
        "defines no operator; expected TORCH_LIBRARY, torch.library, functions of tensors in PYBIND11_MODULE, or"
        in " ".join(done.output.split())
    )
    assert "It has 1 prototype: build the package, and write ascend_graph.register_package" in " ".join(
        done.output.split()
    )


def test_a_schema_that_changed_is_drift_of_a_region_that_was_edited(repository: Write, tmp_path: Path) -> None:
    source = SOURCE.replace("twice(const at::Tensor &x)", "twice(const at::Tensor &x, double by)")
    source = source.replace("twice(Tensor x)", "twice(Tensor x, float by=1.0)")
    root, path = repository({"ops.cpp": source}), tmp_path / "operators.py"
    text = adopt(root, path).text
    assert 'shape="x[*s] -> y like x")' in text
    path.write_text(text.replace('shape="x[*s] -> y like x")', 'shape="x[*s] -> y[*s]", batch=("*s",))'))
    (root / "ops.cpp").write_text(source.replace("float by=1.0", "float  by=1.0"))
    assert not adopt(root, path, write=False).drifted

    (root / "ops.cpp").write_text(source.replace("float by=1.0", "float factor=1.0"))
    done = CliRunner().invoke(main, ["adopt", str(root), "-o", str(path), "--check"])
    assert done.exit_code == 1
    assert "kept, though the sources now say something else: compare it with what follows: mine::twice" in done.output
    assert 'eager=torch.ops.mine.twice, shape="x[*s] -> y like x")' in done.output
    assert 'batch=("*s",)' in adopt(root, path).text
    assert not adopt(root, path, write=False).drifted


def test_code_after_the_last_mark_stays_and_the_file_does_not_grow(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    path.write_text(adopt(root, path).text + "MINE = 1\n")
    text = adopt(root, path).text
    assert text.count("MINE = 1") == 1
    assert adopt(root, path).text == text
    # An operator that left, unedited, and came back is written again: nobody removed it.
    (root / "ops.cpp").write_text(SOURCE.replace('m.def("twice(Tensor x) -> Tensor");', ""))
    assert adopt(root, path).merged.gone == ["mine::twice"]
    (root / "ops.cpp").write_text(SOURCE)
    assert adopt(root, path).merged.changed == ["mine::twice"]


def test_a_region_without_its_operator_is_deleted_by_its_author(repository: Write, tmp_path: Path) -> None:
    root, path = repository({"ops.cpp": SOURCE}), tmp_path / "operators.py"
    text = adopt(root, path).text
    path.write_text(text.replace('shape="x[*s] -> y like x")', 'shape="x[*s] -> y[*s]")'))
    (root / "ops.cpp").write_text(SOURCE.replace('m.def("twice(Tensor x) -> Tensor");', ""))
    run = CliRunner()
    assert run.invoke(main, ["adopt", str(root), "-o", str(path)]).exit_code == 0
    done = run.invoke(main, ["adopt", str(root), "-o", str(path), "--check"])
    assert done.exit_code == 1
    assert "and kept, as you changed it: delete its region: mine::twice" in done.output
    assert "drifted: delete what is no longer in the sources" in done.output


def test_a_kernel_with_more_parameters_than_its_schema_is_named(repository: Write, tmp_path: Path) -> None:
    source = SOURCE.replace("twice(const at::Tensor &x)", "twice(const at::Tensor &x, double by)")
    report = adopt(repository({"ops.cpp": source}), tmp_path / "operators.py", write=False)
    (found,) = (one for one in report.undecided if one.name == "mine::twice")
    assert found.reason.startswith("its kernel at ops.cpp:2 has 2 parameters where its schema has 1;")

"""Pictures of graphs: what they say is so, and what names a node is never taken for markup."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import preloaded
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.cli import main
from ascend_graph.pictures import Graph, Node, Pair, Picture, PictureError, read_dump
from ascend_graph.pictures.dumps import read_message
from ascend_graph.pictures.model import ordered
from ascend_graph.pictures.tracing import picture

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

#: A dump as TorchAir writes it, shortened.
DUMP = r"""
node {
    name: "arg0_1"
    op: "Data"
    attr { key: "[o]y" value { s: 'name: "y"\ndtype: DT_FLOAT\nshape {\n  dim: 3\n  dim: 4\n}\n' } }
}
node { name: "Const" op: "Const" attr { key: "value" value { s: 't {\n  data: "\\000\\000\\200?"\n}\n' } }
       attr { key: "[o]" value { s: 'dtype: DT_BF16\nshape {\n}\n' } } }
node {
    name: "Add"
    op: "Add"
    input: "arg0_1:0"
    input: "Const:0"
    input: ""
    input: "^arg0_1"
    attr { key: "[o]y" value { s: 'dtype: DT_FLOAT\nattr {\n  key: "_meta"\n  value {\n    s: "Tensor(dtype=torch.float32, shape=torch.Size([s33, 4])"\n  }\n}\nattr {\n  key: "_fx_tensor_name"\n  value {\n    s: "add-aten.add.Tensor.OUTPUT.0"\n  }\n}\n' } }
}
node { name: "NetOutput" op: "NetOutput" input: "Add:0" }
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return preloaded.run(
        [sys.executable, "-m", "ascend_graph.cli", *arguments], capture_output=True, text=True, check=False
    )


# --------------------------------------------------------------------------------------------------------------
# functions


def test_a_function_with_its_shapes_times_and_source_lines() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(x) @ y
        return hidden.softmax(-1)  # the line

    found = picture(model, torch.ones(3, 4, device="npu"), torch.ones(4, 5, device="npu"))
    (pair,) = found.pairs
    assert (pair.title, found.missing, found.error) == ("forward", {}, "")
    softmax = next(row for row in pair.rows() if row.fx is not None and row.fx.type == "aten._softmax.default")
    assert softmax.fx is not None
    assert softmax.fx.source == "return hidden.softmax(-1)  # the line"
    assert softmax.fx.place == f"{__file__}:{model.__code__.co_firstlineno + 2}"
    assert softmax.fx.outputs == ("float32[3, 5]",)
    assert [node.type for node in softmax.ge] == ["SoftmaxV2"]
    assert softmax.ge[0].outputs == ("float32[3, 5]",)
    assert softmax.ge[0].microseconds is not None
    assert softmax.ge[0].microseconds > 0
    text = str(found)
    assert re.search(
        r"mm = aten\.mm\.default\(relu, arg1_1\) +float32\[3, 5\] +MatMul\(Relu, arg1_1\) +float32\[3, 5\] +\d+", text
    )


def test_forward_and_backward_and_symbols() -> None:
    layer = torch.nn.Linear(4, 2).npu()
    found = picture(layer, torch.ones(3, 4, device="npu"), dynamic=True)
    assert [pair.title for pair in found.pairs] == ["forward", "backward"]
    assert re.search(r"float32\[s\d+, 2\]", str(found))
    timed = [[node for node in pair.ge.nodes if node.microseconds is not None] for pair in found.pairs]
    assert all(timed), "both graphs were run"
    assert all(parameter.grad is None for parameter in layer.parameters()), "gradients of the caller are left alone"


def test_operators_without_a_kernel_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph does not run, and is pictured all the same, with what it lacks."""
    from ascend_graph import host
    from ascend_graph.host.runtime.engine import compiler, operators, structure

    find = operators.find_kernel
    for module in (host, compiler, operators, structure):
        monkeypatch.setattr(module, "find_kernel", lambda type_: None if type_ == "Erf" else find(type_))
    found = picture(lambda x: torch.erf(x) + 1, torch.ones(3, device="npu"))
    assert found.missing == {"Erf": ["Erf"]}
    assert "the host runtime has no kernel for GE operator Erf" in found.error
    assert "Erf(arg0_1)  !! no kernel on the host" in str(found)
    assert 'class="ge missing"' in found.svg()


def test_what_becomes_no_graph_is_refused() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(PictureError, match=r"breaks cannot be captured as a graph: "):
        picture(breaks, torch.ones(3, device="npu"))


# ------------------------------------------------------------------------------------------------------------------
# dumps


def test_a_dump_of_torchair(tmp_path: Path) -> None:
    (tmp_path / "graph.pbtxt").write_text(DUMP)
    graph = read_dump(tmp_path / "graph.pbtxt")
    assert [(n.name, n.type, n.inputs, n.outputs, n.made_from) for n in graph.nodes] == [
        ("arg0_1", "Data", (), ("float32[3, 4]",), ""),
        ("Const", "Const", (), ("bfloat16[]",), ""),
        ("Add", "Add", ("arg0_1", "Const"), ("float32[s33, 4]",), "add"),
        ("NetOutput", "NetOutput", ("Add",), (), ""),
    ]


@pytest.mark.parametrize("form", ["pbtxt", "txt"])
def test_the_dumps_of_the_installed_torchair_and_the_command(tmp_path: Path, form: str) -> None:
    """Both of its text formats hold the same graph; reading them imports no torch."""
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = form
    config.debug.graph_dump.path = str(tmp_path)
    compiled = torch.compile(lambda x: torch.relu(x) * 2, backend=torchair.get_npu_backend(compiler_config=config))
    compiled(torch.ones(3, device="npu"))
    result = run("picture", str(tmp_path), "--format", "json")
    assert result.returncode == 0, result.stderr
    graphs = [page["graphs"][0]["ge"] for page in json.loads(result.stdout)]
    assert len(graphs) == 2  # before TorchAir's own passes, and after them
    for nodes in graphs:
        assert {"Relu", "Mul"} <= {node["type"] for node in nodes}
        assert {node["made_from"] for node in nodes} >= {"relu", "mul"}
    code = (
        f"import sys\nfrom ascend_graph.pictures import read_dump\nfrom pathlib import Path\n"
        f"read_dump(next(Path({str(tmp_path)!r}).iterdir())).nodes\nprint('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("text", ["", "node {", "}", "hello", "a: 1", "node { name: }", "\0", "op: 3", '"x"'])
def test_what_is_no_dump_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "graph.pbtxt").write_text(text)
    result = CliRunner().invoke(main, ["picture", str(tmp_path / "graph.pbtxt")])
    assert result.exit_code == 1
    assert "graph.pbtxt" in result.output


def test_what_cannot_be_pictured_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "graph.pbtxt").write_text(DUMP)
    for arguments, said in {
        (str(tmp_path / "none"),): "does not exist",
        (str(tmp_path / "empty"),): "has no dump in it",
        (
            str(tmp_path / "graph.pbtxt"),
            "-o",
            str(tmp_path / "x.png"),
        ): "expected a file that ends in .html, .svg, .txt, .json",
        (str(tmp_path / "graph.pbtxt"), "-o", str(tmp_path / "no/x.svg")): "cannot be written",
    }.items():
        result = CliRunner().invoke(main, ["picture", *arguments])
        assert (result.exit_code, said in result.output) == (1, True), result.output


values = st.recursive(
    st.text(st.characters(codec="ascii"), max_size=8),
    lambda v: st.dictionaries(st.sampled_from("abc"), st.lists(v, min_size=1, max_size=3), max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abc"), st.lists(values, min_size=1, max_size=3), max_size=3))
def test_messages_are_read_as_they_are_written(message: dict[str, list[object]]) -> None:
    def written(fields: object) -> str:
        assert isinstance(fields, dict)
        return " ".join(
            f"{name}: {json.dumps(value)}" if isinstance(value, str) else f"{name} {{ {written(value)} }}"
            for name, all_values in fields.items()
            for value in all_values
        )

    assert read_message(written(message)) == message


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(PictureError):
        read_message(text)


# -------------------------------------------------------------------------------------------------------------------
# pages

HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="x',
    "]]>&lt;",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31m\x00\x07",
    "[bold]x[/bold]",
    "\ud800",
    "\u202ex",
    "n" * 10_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_texts_and_nothing_else(tmp_path: Path, name: str) -> None:
    fx = Graph((Node(name, name, (), (name,), name, name), Node("output", "output", (name,))))
    ge = Graph((Node(name, name, (name,), (name,), made_from=name, is_missing=True),))
    page = Picture(name, (Pair(name, fx, ge),), name)
    root = ElementTree.fromstring(page.svg())
    allowed = {"svg", "title", "style", "rect", "text", "g", "path"}
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= allowed
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]
    html = page.html()
    assert html.count("<script>") == 1, "the page's own"
    assert "\x1b" not in html + str(page)
    for suffix in ("html", "svg", "txt", "json"):
        assert page.save(tmp_path / f"x.{suffix}").stat().st_size
    assert "default-src 'none'" in html
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)


def test_the_order_of_nodes_is_one_in_which_they_can_run() -> None:
    names = [f"n{i}" for i in range(3_000)]
    chain = [Node(name, "Op", (names[i - 1],) if i else ()) for i, name in enumerate(names)]
    assert [n.name for n in ordered(chain[::-1])] == names
    cycle = (Node("a", "Op", ("b",)), Node("b", "Op", ("a", "nowhere")))
    assert {n.name for n in ordered(cycle)} == {"a", "b"}
    assert ElementTree.fromstring(Picture("x", (Pair("x", Graph(), Graph(tuple(chain))),)).svg()) is not None


def test_a_function_of_a_file_from_the_shell(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch, torch_npu\ndef example():\n    return torch.relu, (torch.ones(3, device='npu'),)\ndef wrong():\n"
        "    return 3\n"
    )
    output = tmp_path / "model.html"
    result = run("picture", f"{tmp_path}/model.py:example", "-o", str(output))
    assert result.returncode == 0, result.stderr
    assert "aten.relu.default" in output.read_text()
    result = CliRunner().invoke(main, ["picture", f"{tmp_path}/model.py:wrong"])
    assert "returned 3: expected what to compile, and a tuple of its arguments" in result.output
    result = CliRunner().invoke(main, ["picture", f"{tmp_path}/model.py:none"])
    assert "has no function 'none'; it has: example, wrong" in result.output
    assert os.environ["ASCEND_GRAPH_HOST"]

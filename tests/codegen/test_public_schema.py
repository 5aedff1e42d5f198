"""Public names and schemas of generated projects: what differs from the prototype, what is proposed, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ascend_graph.codegen.eager_library.project import generate_project
from ascend_graph.codegen.rendering import GenerationError
from click.testing import CliRunner

from ascend_graph.cli import main

ANY = "TensorType::ALL()"
ADD = f"REG_OP(AddCustom).INPUT(x, {ANY}).INPUT(y, {ANY}).OUTPUT(z, {ANY}).OP_END_FACTORY_REG(AddCustom)\n"
PICK = (
    f"REG_OP(Pick).INPUT(x, {ANY}).DYNAMIC_INPUT(others, {ANY}).OPTIONAL_INPUT(bias, {ANY}).INPUT(cache, {ANY})"
    f".OUTPUT(y, {ANY}).OUTPUT(count, {ANY}).OUTPUT(cache, {ANY}).REQUIRED_ATTR(axes, ListInt)"
    '.ATTR(epsilon, Float, 1e-5).ATTR(mode, String, "sum").OP_END_FACTORY_REG(Pick)\n'
)
PICK_SHAPE = "x[n], others[i][n], bias[n], cache[n] -> y[n], count[n], cache"
GENERATED = (
    "pick(Tensor x, Tensor[] others, Tensor? bias, Tensor(a!) cache, *, int[] axes, "
    'float epsilon=1e-05, str mode="sum") -> (Tensor y, Tensor count)'
)


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "op_proto.h"
    path.write_text(ADD)
    return path


def test_the_schema_of_the_documents(tmp_path: Path, header: Path) -> None:
    """``other`` can only be ``y``; the pair is proposed, and a second run keeps it."""
    project = tmp_path / "my_ops"
    arguments = ["new", str(project), "--from", str(header), "--shape", "AddCustom=x[*s], y[*s] -> z[*s]"]
    result = CliRunner().invoke(main, [*arguments, "--schema", "myops::my_op(Tensor self, Tensor other) -> Tensor"])
    assert result.exit_code == 0, result.output
    assert "proposed, check operators.ini: arguments of AddCustom: self: x, other: y" in result.output
    ini = (project / "my_ops/operators.ini").read_text()
    assert "schema = myops::my_op(Tensor self, Tensor other) -> Tensor\narguments = self: x, other: y\n" in ini
    cpp = (project / "csrc/generated/operators.cpp").read_text()
    assert 'TORCH_LIBRARY_FRAGMENT(myops, m) {\n    m.def("my_op(Tensor self, Tensor other) -> Tensor"' in cpp
    assert "TORCH_LIBRARY_IMPL(myops, PrivateUse1, m)" in cpp
    assert 'call("myops::my_op", function, self, other, outputs)' in cpp
    python = (project / "my_ops/_generated.py").read_text()
    assert "eager=torch.ops.myops.my_op, shape=" in python
    assert 'arguments={"self": "x", "other": "y", "->": ("z",)}' in python
    assert "def my_op(self: Tensor, other: Tensor) -> Tensor:" in python
    assert 'myops = "my_ops"' in (project / "pyproject.toml").read_text()
    assert "`torch.ops.myops.my_op`" in (project / "README.md").read_text()
    assert generate_project(project).written == ()


@pytest.mark.parametrize("name", ["my_op", "myops::my_op"])
def test_only_a_name(tmp_path: Path, header: Path, name: str) -> None:
    project = tmp_path / "my_ops"
    result = CliRunner().invoke(main, ["new", str(project), "--from", str(header), "--name", f"AddCustom={name}"])
    assert result.exit_code == 0, result.output
    cpp = (project / "csrc/generated/operators.cpp").read_text()
    assert 'm.def("my_op(Tensor x, Tensor y) -> Tensor z"' in cpp
    assert ("TORCH_LIBRARY(my_ops, m)" in cpp) == ("::" not in name)
    assert "arguments=" not in (project / "my_ops/_generated.py").read_text()


def test_arguments_are_renamed_and_reordered_with_defaults_of_their_own(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(PICK)
    schema = (
        "pick(Tensor(a!) cache, Tensor input, int[] dims, float eps=0.5, *, Tensor[] rest, Tensor? bias=None, "
        "str? mode=None) -> (Tensor count, Tensor y)"
    )
    project = generate_project(
        tmp_path / "my_ops",
        header,
        bindings="both",
        shapes={"Pick": PICK_SHAPE},
        schemas={"": schema},
        arguments={"": "rest: others, dims: axes"},
    )
    assert project.operators == ("Pick",)
    python = (project.directory / "my_ops/_generated.py").read_text()
    assert (
        "def pick(\n    cache: Tensor,\n    input: Tensor,\n    dims: Sequence[int],\n    eps: float = 0.5,\n    *,\n"
        "    rest: Sequence[Tensor],\n    bias: Tensor | None = None,\n    mode: str | None = None,\n"
    ) in python
    assert "pick(cache, input, dims, eps, rest=rest, bias=bias, mode=mode)" in python
    assert '"dims": "axes", "eps": "epsilon", "rest": "others", "->": ("count", "y",)' in python
    module = (project.directory / "csrc/generated/module.cpp").read_text()
    assert 'py::arg("eps") = 0.5, py::kw_only(), py::arg("rest"), py::arg("bias") = py::none()' in module
    cpp = (project.directory / "csrc/generated/operators.cpp").read_text()
    assert 'call("my_ops::pick", function, input, rest, bias, cache, dims, eps, mode.has_value() ?' in cpp


@pytest.mark.parametrize(
    ("schema", "arguments", "match"),
    [
        ("p(Tensor x", "", "expected .*write schema = my_ops::pick"),
        ("p(Tensor x, Tensor[] others, Tensor(a!) cache, int[] axes) -> (Tensor, Tensor)", "", "nothing feeds bias;"),
        (GENERATED.replace("Tensor x,", "Tensor x, int more,"), "", "more goes nowhere; expected one argument for each"),
        (GENERATED.replace("int[] axes", "int axes"), "", "int axes: expected int\\[\\]; write .*int\\[\\] axes"),
        (GENERATED.replace("float eps", "Scalar eps"), "", "Scalar epsilon: expected float; write .*float epsilon=1e-05"),
        (GENERATED.replace("Tensor(a!) cache", "Tensor cache"), "", "Tensor cache: expected Tensor\\(a!\\); write"),
        (GENERATED.replace("Tensor? bias", "Tensor bias"), "", "Tensor bias: expected Tensor\\?; write .*Tensor\\? bias"),
        (GENERATED.replace("=1e-05", "=inf"), "", "default 'inf' of epsilon: expected a literal of float"),
        (GENERATED.replace('"sum"', "sum"), "", "default 'sum' of mode: expected a literal of str"),
        (GENERATED.replace("int[] axes", "int[]? axes=None"), "", "default None of axes: expected a literal .*int\\[\\] axes"),
        (GENERATED.replace("int[] axes", "SymInt[] axes"), "", "the type SymInt; expected"),
        (GENERATED.replace("Tensor? bias,", "Tensor? bias=None,"), "", "an argument without a default follows"),
        (GENERATED.replace("pick(", "pick.out("), "", "the overload out; expected a name without one"),
        (GENERATED.replace("pick(", "double("), "", "double is a word of C\\+\\+ or Python; expected .*double_op"),
        (GENERATED.replace("Tensor count)", "Tensor total)"), "", "the returns y, total; expected .* y, count"),
        (GENERATED.replace("(Tensor y, Tensor count)", "Tensor"), "", "it returns Tensor; expected Tensor, Tensor;"),
        (GENERATED, "x: y", "no input or attr 'y'"),
        (GENERATED, "w: x", "w is not an argument of pick"),
        (GENERATED, "x = x", "'x = x' is not a pair"),
        ("", "x: x", "expected a schema = … with these arguments"),
    ],
)  # fmt: skip
def test_a_schema_that_does_not_fit_is_refused_with_the_one_to_write(
    tmp_path: Path, schema: str, arguments: str, match: str
) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(PICK)
    given = {"schemas": {"Pick": schema}, "arguments": {"Pick": arguments}}
    with pytest.raises(GenerationError, match=match) as refusal:
        generate_project(tmp_path / "my_ops", header, shapes={"Pick": PICK_SHAPE}, **given)
    assert not (tmp_path / "my_ops").exists()
    if (proposed := re.search(r"write schema = (.*)", str(refusal.value))) and schema.startswith("pick("):
        generate_project(tmp_path / "again_ops", header, shapes={"Pick": PICK_SHAPE}, schemas={"Pick": proposed[1]})


def test_several_operators_and_sections_of_the_author(tmp_path: Path, header: Path) -> None:
    header.write_text(ADD + ADD.replace("AddCustom", "MulCustom"))
    project = tmp_path / "my_ops"
    schema = "my_op(Tensor self, Tensor other) -> Tensor"
    with pytest.raises(GenerationError, match=r"it does not say for which operator; expected one of AddCustom, MulCus"):
        generate_project(project, header, schemas={"": schema})
    with pytest.raises(GenerationError, match="the name my_op is that of AddCustom, too"):
        generate_project(project, header, schemas={"AddCustom": schema, "MulCustom": schema})
    with pytest.raises(GenerationError, match="Other is not an operator of the prototypes"):
        generate_project(project, header, schemas={"Other": schema})
    generate_project(project, header)
    with pytest.raises(GenerationError, match=r"operators.ini has a section \[AddCustom\], which is yours"):
        generate_project(project, header, schemas={"AddCustom": schema})
    ini = project / "my_ops/operators.ini"
    ini.write_text(ini.read_text().replace("[AddCustom]\n", f"[AddCustom]\nschema = {schema}\n"))
    assert generate_project(project).operators == ("AddCustom", "MulCustom")
    assert "my_op(Tensor self, Tensor other)" in (project / "csrc/generated/operators.cpp").read_text()
    both = ["new", str(project), "--schema", f"AddCustom={schema}", "--name", "AddCustom=my_op"]
    assert "--schema gives this operator a name" in CliRunner().invoke(main, both).output


def test_launch_functions_keep_the_prototypes_names(tmp_path: Path, header: Path) -> None:
    """They are the author's files: a new public schema must not change what they read."""
    kernel = tmp_path / "add_custom.asc"
    kernel.write_text(
        'extern "C" __global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t total) {}\n'
    )
    before = generate_project(tmp_path / "before_ops", [header, kernel], launch="kernel").directory
    after = generate_project(
        tmp_path / "after_ops",
        [header, kernel],
        launch="kernel",
        schemas={"": "myops::z(Tensor z, Tensor x) -> Tensor"},
        arguments={"": "z: y, x: x"},
    ).directory
    launch = "csrc/launch/add_custom.cpp"
    assert (after / launch).read_text() == (before / launch).read_text().replace("before_ops", "after_ops")
    sources = re.findall(r"CURRENT_SOURCE_DIR}/(\w+\.asc)", (after / "kernels/generated/CMakeLists.txt").read_text())
    assert sources
    assert all((after / "kernels/generated" / name).is_file() for name in sources)
    cpp = (after / "csrc/generated/operators.cpp").read_text()
    assert 'kernel.input("y", z' in cpp
    assert "const AddCustomOperands operands{shape_of(z), shape_of(x), shape_of(z_data)};" in cpp
    assert (
        "struct AddCustomOperands {\n    Tensor y;\n    Tensor x;\n    Tensor z;"
        in (after / "csrc/generated/kernels.h").read_text()
    )


def test_declared_functions_have_public_schemas_too(tmp_path: Path) -> None:
    header = tmp_path / "aclnn_scale.h"
    header.write_text(
        "int aclnnScaleGetWorkspaceSize(const aclTensor *x, const aclScalar *alpha, double epsilon, aclTensor *out, "
        "uint64_t *workspaceSize, aclOpExecutor **executor);\n"
    )
    given = {"shapes": {"aclnnScale": "x[*s] -> out[*s]"}, "arguments": {"": "factor: alpha"}}
    schema = "public_ops::scale(Tensor self, Scalar factor, float eps=1e-6) -> Tensor"
    project = generate_project(tmp_path / "my_ops", header, schemas={"": schema}, **given)
    cpp = (project.directory / "csrc/generated/operators.cpp").read_text()
    assert "scale(const at::Tensor& self, const at::Scalar& factor, double eps)" in cpp
    header.write_text(
        "int aclnnCatGetWorkspaceSize(const aclTensorList *xs, aclTensor *out, uint64_t *workspaceSize, "
        "aclOpExecutor **executor);\n"
    )
    given = {"shapes": {"aclnnCat": "xs[i][n[i], d] -> out[sum(n), d]"}, "arguments": {"": "tensors: xs"}}
    with pytest.raises(GenerationError, match="is more than C\\+\\+ writes.*expected xs, got tensors"):
        generate_project(tmp_path / "cat_ops", header, schemas={"": "cat(Tensor[] tensors) -> Tensor"}, **given)

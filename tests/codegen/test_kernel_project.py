"""Projects whose eager half launches a kernel: what is read of kernels, what is proposed, kept and refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ascend_graph.codegen.eager_library.project import generate_project
from ascend_graph.codegen.kernels.launch_proposals import propose_declaration
from ascend_graph.codegen.kernels.source import NUMBER_TYPES, read_kernels
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph import AscendGraphError
from ascend_graph.binding.generated_schema import operator_schema
from ascend_graph.cli import main
from ascend_graph.prototypes import parse_text

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HALF = "TensorType({DT_FLOAT16})"
ADD = f"REG_OP(AddCustom).INPUT(x, {HALF}).INPUT(y, {HALF}).OUTPUT(z, {HALF}).OP_END_FACTORY_REG(AddCustom)\n"
KERNEL = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t totalLength) {}
"""


def write(directory: Path, **files: str) -> list[Path]:
    """Files by their names, a dot written as two underscores."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / name.replace("__", ".") for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("source", "signature", "qualified", "templates", "elements"),
    [
        (KERNEL, "add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t totalLength)", "add_custom", (), {}),
        (
            (
                "namespace a { namespace b {\n__global__ __vector__ void f(__gm__ float* x, "
                "const __gm__ half *__restrict__ y) {}\n}}"
            ),
            "f(float* x, half* y)",
            "a::b::f",
            (),
            {"x": "float", "y": "half"},
        ),
        (
            (
                "template <typename T, class U>\n__global__ __aicore__ void f(GM_ADDR x, GM_ADDR y)\n"
                "{ a.SetGlobalBuffer((__gm__ T*)x); b.SetGlobalBuffer(reinterpret_cast<__gm__ U *>(y)); }"
            ),
            "f(GM_ADDR x, GM_ADDR y)",
            "f",
            ("T", "U"),
            {"x": "T", "y": "U"},
        ),
        (
            (
                "AscendC::GlobalTensor<half> xGm, yGm;\nAscendC::GlobalTensor<int32_t> indexGm;\n"
                "__global__ __mix__(1, 2) void f(GM_ADDR x, /* not (GM_ADDR q) */ GM_ADDR index, // {\n GM_ADDR out) {}"
            ),
            "f(GM_ADDR x, GM_ADDR index, GM_ADDR out)",
            "f",
            (),
            {"x": "half", "index": "int32_t"},
        ),
        (
            (
                "struct Tiling { uint32_t n; float scale; };\n__global__ __cube__ void f(GM_ADDR x, Tiling t, "
                "unsigned long n, bool b = false) {}"
            ),
            "f(GM_ADDR x, Tiling t, unsigned long n, bool b)",
            "f",
            (),
            {},
        ),
    ],
)
def test_a_kernels_signature(
    tmp_path: Path,
    source: str,
    signature: str,
    qualified: str,
    templates: tuple[str, ...],
    elements: dict[str, str],
) -> None:
    (kernel,) = read_kernels(write(tmp_path, k__asc=source)).kernels
    assert str(kernel) == signature
    assert kernel.qualified == qualified
    assert kernel.templates == templates
    assert kernel.elements == elements


def test_declarations_comments_and_excluded_code_are_no_kernels(tmp_path: Path) -> None:
    source = (
        f"// __global__ void a(GM_ADDR x) {{}}\n#if 0\n__global__ void b(GM_ADDR x) {{}}\n#endif\n"
        f'extern "C" __global__ void c(GM_ADDR x);\n{KERNEL}'
    )
    assert [k.name for k in read_kernels(write(tmp_path, k__asc=source)).kernels] == ["add_custom"]


def test_includes_are_followed_and_what_is_not_needed_stays(tmp_path: Path) -> None:
    write(tmp_path / "common", tiling__h="#pragma once\nstruct AddTiling { uint32_t n; uint64_t sizes[4]; };\n")
    write(tmp_path / "op", kernel__h='#include "../common/tiling.h"\n' + KERNEL, unused__h="")
    (main_file,) = write(
        tmp_path / "op", main__asc='#include "kernel.h"\n#include "unused.h"\nint main() { return 0; }\n'
    )
    sources = read_kernels([main_file])
    assert sources.root == tmp_path
    assert [str(f) for f in sources.files] == ["common/tiling.h", "op/kernel.h"]
    fields = sources.structs["AddTiling"].fields
    assert [(f.type, f.name, f.count) for f in fields] == [("uint32_t", "n", None), ("uint64_t", "sizes", 4)]


def test_tiling_definitions_are_structures_and_packed_ones_are_left_to_the_author(tmp_path: Path) -> None:
    definition = (
        "BEGIN_TILING_DATA_DEF(T)\nTILING_DATA_FIELD_DEF(uint32_t, n);\nTILING_DATA_FIELD_DEF_ARR(int64_t, 3, s);\n"
        "END_TILING_DATA_DEF;\n"
    )
    sources = read_kernels(write(tmp_path, k__asc=definition + "struct S { uint8_t a; TCubeTiling c; };\n" + KERNEL))
    assert {name: len(s.fields) for name, s in sources.structs.items()} == {"T": 2}
    packed = "#pragma pack(1)\nstruct S { uint8_t a; uint64_t b; };\n"
    assert read_kernels(write(tmp_path, k__asc=packed + KERNEL)).structs == {}


SPACE = st.sampled_from([" ", "  ", "\n    ", " /* , */ ", "\t"])
TYPES = st.sampled_from(["GM_ADDR", "__gm__ half*", "__gm__ uint8_t*", "Tiling", *sorted(NUMBER_TYPES)])


def test_kernels_that_a_macro_defines_are_found(tmp_path: Path) -> None:
    text = """
#include "kernel_operator.h"
#define ARGUMENTS GM_ADDR x, GM_ADDR z, uint32_t n
#define ENTRY extern "C" __global__ __aicore__ void
#define DECL(T, SUFFIX)                                   \\
    extern "C" __global__ __aicore__ void scale_##SUFFIX(ARGUMENTS) { Run<T>((__gm__ T*)x, (__gm__ T*)z, n); }
DECL(half, fp16)
DECL(float, fp32)
ENTRY negate(ARGUMENTS) {}
"""
    write(tmp_path, macros__h='#define OTHER(NAME) extern "C" __global__ __aicore__ void NAME(GM_ADDR x) {}\n')
    (path,) = write(tmp_path, scale__cpp=text + '#include "macros.h"\nOTHER(of_a_header)\n')
    kernels = read_kernels([path]).by_name
    assert {name: str(kernel) for name, kernel in kernels.items()} == {
        "scale_fp16": "scale_fp16(GM_ADDR x, GM_ADDR z, uint32_t n)",
        "scale_fp32": "scale_fp32(GM_ADDR x, GM_ADDR z, uint32_t n)",
        "negate": "negate(GM_ADDR x, GM_ADDR z, uint32_t n)",
        "of_a_header": "of_a_header(GM_ADDR x)",
    }


def test_a_file_that_gives_nothing_is_named(tmp_path: Path) -> None:
    kernel, useless, tiling = write(
        tmp_path, add_custom__cpp=KERNEL, other__cpp="void f();\n", t__h="struct T { int x; };\n"
    )
    proto = tmp_path / "op_proto.h"
    proto.write_text(ADD)
    sources = ["--from", str(proto), "--from", str(kernel), "--from"]
    result = CliRunner().invoke(main, ["new", str(tmp_path / "ops"), "--launch", "kernel", *sources, str(useless)])
    assert result.exit_code != 0
    assert "other.cpp: no kernel and no structure is defined there" in result.output
    assert not (tmp_path / "ops").exists()
    assert read_kernels([kernel, tiling], named=[kernel, tiling]).structs["T"].fields[0].name == "x"


def test_a_kernel_has_the_structure_of_its_own_file(tmp_path: Path) -> None:
    body = "uint32_t total = 1, tiles{8}; float scale = {0.5f}; int32_t pads[2] = {1, 2};"
    source = KERNEL.replace("uint32_t totalLength", "GM_ADDR tiling")
    own, other = write(
        tmp_path,
        add_custom__cpp=f"struct AddTilingData {{ {body} }};\n{source}",
        mul_custom__cpp="struct MulTiling { uint32_t n; };\n" + source.replace("add_custom", "mul_custom"),
    )
    sources = read_kernels([own, other])
    fields = sources.structs["AddTilingData"].fields
    assert [(f.type, f.name, f.count) for f in fields] == [
        ("uint32_t", "total", None),
        ("uint32_t", "tiles", None),
        ("float", "scale", None),
        ("int32_t", "pads", 2),
    ]
    own.write_text(own.read_text().replace("float scale", "Unreadable scale"))
    schema = operator_schema(parse_text(ADD).prototypes[0])
    for path, wanted in ((own, "tiling: bytes"), (other, None)):
        sources = read_kernels([own, other])
        kernel = sources.by_name[path.stem]
        declaration = propose_declaration(schema, kernel, sources)
        assert declaration.endswith(f"({'x, y, z, '}{wanted or 'tiling: MulTiling'})")


@given(
    st.lists(st.tuples(TYPES, SPACE, SPACE), min_size=1, max_size=12), st.sampled_from(["", 'extern "C" ', "inline "])
)
def test_every_parameter_is_read_however_it_is_laid_out(
    tmp_path_factory: pytest.TempPathFactory, parameters: list[tuple[str, str, str]], head: str
) -> None:
    text = ",".join(f"{before}{kind}{between}p{n}" for n, (kind, before, between) in enumerate(parameters))
    source = f"{head}__global__ __aicore__ void made({text}) {{ if (1) {{ }} }}\n"
    (kernel,) = read_kernels(write(tmp_path_factory.mktemp("law"), k__asc=source)).kernels
    plain = {"GM_ADDR": "uint8_t*", "__gm__ half*": "half*", "__gm__ uint8_t*": "uint8_t*"}
    assert [(p.type, p.name) for p in kernel.parameters] == [
        (plain.get(kind, kind), f"p{n}") for n, (kind, _, _) in enumerate(parameters)
    ]


# ---------------------------------------------------------------------------------------------------------- generating


@pytest.mark.parametrize(("suffix", "form"), [("cpp", "ascendc_library(ascendc_kernels STATIC"), ("asc", "-x asc")])
def test_a_new_project(tmp_path: Path, suffix: str, form: str) -> None:
    files = write(tmp_path, op_proto__h=ADD, **{f"add_custom__{suffix}": KERNEL})
    arguments = [word for file in files for word in ("--from", str(file))]
    result = CliRunner().invoke(main, ["new", str(tmp_path / "my_ops"), "--launch", "kernel", *arguments])
    assert result.exit_code == 0, result.output
    assert "proposed, check operators.ini: kernel of AddCustom: add_custom(x, y, z)" in result.output
    assert "proposed, check operators.ini: shape of AddCustom: x[*s], y[*s] -> z[*s]" in result.output
    assert "proposed, check csrc/launch/add_custom.cpp: the launch of add_custom(GM_ADDR x" in result.output
    project = tmp_path / "my_ops"
    assert (project / f"kernels/add_custom.{suffix}").read_text() == KERNEL
    assert form in (project / "kernels/generated/CMakeLists.txt").read_text()
    assert (project / "kernels/generated/launches.cpp").exists() == (suffix == "cpp")
    launch = (project / "csrc/launch/add_custom.cpp").read_text()
    assert "launch.totalLength = narrow<uint32_t>(op.z.numel());" in launch
    assert "aclnn" not in (project / "csrc/generated/operators.cpp").read_text()
    for path in project.rglob("*.py"):
        ast.parse(path.read_text(), str(path))
    assert generate_project(project).written == ()


def test_the_prototype_of_a_kernel_without_one_is_proposed(tmp_path: Path) -> None:
    project = generate_project(tmp_path / "my_ops", EXAMPLES / "torch_library_launch/add_custom.asc", launch="kernel")
    assert project.drafts[0] == "op_proto.h: the prototype of AddCustom, made from its kernel"
    text = (project.directory / "my_ops/op_proto.h").read_text()
    assert ".INPUT(x, TensorType({DT_FLOAT16}))" in text
    assert ".OUTPUT(z, TensorType({DT_FLOAT16}))" in text
    kernel = (
        "__global__ __aicore__ void scale_it(GM_ADDR src, GM_ADDR out, GM_ADDR workspace, float alpha, "
        "uint32_t rows) {}"
    )
    project = generate_project(tmp_path / "your_ops", write(tmp_path, s__asc=kernel), launch="kernel")
    assert project.drafts == (
        "op_proto.h: the prototype of ScaleIt, made from its kernel, whose source does not say the dtypes of src, out",
        (
            "csrc/launch/scale_it.cpp: the launch of scale_it(GM_ADDR src, GM_ADDR out, GM_ADDR workspace, "
            "float alpha, "
            "uint32_t rows)"
            ", which has to say rows"
        ),
    )
    launch = (project.directory / "csrc/launch/scale_it.cpp").read_text()
    assert "launch.alpha = narrow<float>(op.alpha);" in launch
    assert "does not say rows yet" in launch


def test_regenerating_keeps_what_is_the_authors(tmp_path: Path) -> None:
    files = write(tmp_path, op_proto__h=ADD, add_custom__cpp=KERNEL)
    project = generate_project(tmp_path / "my_ops", files, launch="kernel").directory
    launch, kernel = project / "csrc/launch/add_custom.cpp", project / "kernels/add_custom.cpp"
    launch.write_text("// mine\n")
    kernel.write_text(KERNEL.replace("uint32_t totalLength", "uint32_t totalLength, int32_t mode"))
    written = generate_project(project).written
    assert Path("csrc/generated/kernels.h") in written
    assert "int32_t mode{};" in (project / "csrc/generated/kernels.h").read_text()
    assert launch.read_text() == "// mine\n"
    assert "int32_t mode" in kernel.read_text()

    kernel.rename(kernel.with_suffix(".asc"))
    generate_project(project)
    assert not (project / "kernels/generated/launches.cpp").exists()
    assert launch.read_text() == "// mine\n"


def test_operators_without_a_kernel_and_kernels_without_an_operator_are_named(tmp_path: Path) -> None:
    files = write(
        tmp_path, p__h=ADD + ADD.replace("AddCustom", "SubCustom"), k__asc=KERNEL, l__asc=KERNEL.replace("add_", "mul_")
    )
    project = generate_project(tmp_path / "my_ops", files, launch="kernel")
    assert project.operators == ("AddCustom",)
    assert project.skipped == (
        (
            "SubCustom",
            "no kernel is called sub_custom; there are add_custom, mul_custom: write kernel = … below [SubCustom]",
        ),
        ("the kernel mul_custom", "no operator launches it; add a prototype of its own"),
    )


def test_a_project_keeps_its_launch(tmp_path: Path) -> None:
    header, kernel = write(tmp_path, op_proto__h=ADD, add_custom__cpp=KERNEL)
    generate_project(tmp_path / "my_ops", header)
    with pytest.raises(AscendGraphError, match="is a project of launch aclnn, whose setup.py is yours by now"):
        generate_project(tmp_path / "my_ops", [header, kernel], launch="kernel")


@pytest.mark.parametrize(
    ("parameters", "declaration"),
    [
        ("GM_ADDR x, GM_ADDR y, GM_ADDR z", "add_custom(x, y, z)"),
        ("GM_ADDR zGm, GM_ADDR y_gm, GM_ADDR X", "add_custom(zGm: z, y_gm: y, X: x)"),
        ("GM_ADDR a, GM_ADDR b, GM_ADDR c", "add_custom(a: x, b: y, c: z)"),
        ("GM_ADDR y, GM_ADDR z, GM_ADDR out", "add_custom(y: x, z: y, out: z)"),
        (
            "GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling",
            "add_custom(x, y, z, workspace: scratch, tiling: bytes)",
        ),
        ("GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR table", "add_custom(x, y, z, table: bytes)"),
    ],
)
def test_addresses_are_matched_by_name_then_in_their_order(tmp_path: Path, parameters: str, declaration: str) -> None:
    kernel = f"__global__ __aicore__ void add_custom({parameters}) {{}}"
    project = generate_project(tmp_path / "my_ops", write(tmp_path, p__h=ADD, k__asc=kernel), launch="kernel")
    assert f"kernel of AddCustom: {declaration}" in project.proposed


def test_values_come_from_attrs_dimensions_and_lengths(tmp_path: Path) -> None:
    prototype = (
        f"REG_OP(Mm).INPUT(a, {HALF}).INPUT(b, {HALF}).OUTPUT(c, TensorType({{DT_FLOAT}})).REQUIRED_ATTR(alpha, Float)"
        ".ATTR(axis, Int, 1).OP_END_FACTORY_REG(Mm)"
    )
    kernel = (
        "struct MmTiling { int32_t M; int32_t n; uint64_t k; uint32_t tile_num; uint32_t step; };\n"
        "__global__ __aicore__ void mm(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR tiling, float alpha, int64_t axis, "
        "uint32_t length) {}"
    )
    files = write(tmp_path, p__h=prototype, k__asc=kernel)
    project = generate_project(
        tmp_path / "my_ops", files, launch="kernel", shapes={"Mm": "a[..., m, k], b[k, n] -> c[..., m, n]: float32"}
    )
    assert "kernel of Mm: mm(a, b, c, tiling: MmTiling)" in project.proposed
    launch = (project.directory / "csrc/launch/mm.cpp").read_text()
    for line in (
        "launch.tiling.M = narrow<int32_t>(op.a.size(-2));",
        "launch.tiling.n = narrow<int32_t>(op.b.size(1));",
        "launch.tiling.k = narrow<uint64_t>(op.b.size(0));",
        "launch.tiling.tile_num = 8;",
        "launch.alpha = narrow<float>(op.alpha);",
        "launch.axis = narrow<int64_t>(op.axis);",
        "launch.length = narrow<uint32_t>(op.c.numel());",
        "does not say tiling.step yet",
    ):
        assert line in launch
    operators = (project.directory / "csrc/generated/operators.cpp").read_text()
    assert "on_device(bytes_of(launch.tiling))" in operators
    assert 'kernel.output("c", outputs, {at::ScalarType::Float})' in operators


def test_instances_of_a_template_are_chosen_by_dtypes(tmp_path: Path) -> None:
    project = generate_project(
        tmp_path / "my_ops",
        [EXAMPLES / "template_matmul/graph/op_proto.h", EXAMPLES / "template_matmul/shared_lib/basic_matmul.asc"],
        launch="kernel",
        shapes={"BasicMatmul": "mat1[m, k], mat2[k, n] -> y[m, n]"},
    )
    text = (project.directory / "kernels/generated/basic_matmul.asc").read_text()
    for dtype, name in (("ACL_FLOAT16", "half"), ("ACL_BF16", "bfloat16_t"), ("ACL_FLOAT", "float")):
        assert f"if (op.mat1.dtype == {dtype} && op.y.dtype == {dtype}) {{" in text
        assert f"::basic_matmul<{name}, {name}><<<" in text
    assert text.count("<<<") == 3


def test_an_instance_with_values_is_declared(tmp_path: Path) -> None:
    kernel = "template <typename T, int N>\n__global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z) {}"
    files = write(tmp_path, p__h=ADD, k__asc=kernel)
    with pytest.raises(
        AscendGraphError, match=r"write which instance to launch: kernel = add_custom<T, N>.*--kernel OP="
    ):
        generate_project(tmp_path / "my_ops", files, launch="kernel")
    arguments = [
        "new",
        str(tmp_path / "my_ops"),
        "--launch",
        "kernel",
        "--from",
        str(files[0]),
        "--from",
        str(files[1]),
    ]
    result = CliRunner().invoke(main, [*arguments, "--kernel", "AddCustom=add_custom<half, 8>(x, y, z)"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "my_ops/kernels/generated/add_custom.asc").read_text()
    assert "::add_custom<half, 8><<<launch.block_dim, nullptr, stream>>>" in text


def test_names_of_the_generated_code_may_be_names_of_operands(tmp_path: Path) -> None:
    prototype = (
        f"REG_OP(Odd).INPUT(op, {HALF}).INPUT(stream, {HALF}).OUTPUT(launch, {HALF}).REQUIRED_ATTR(block_dim, "
        f"Int).OP_END_FACTORY_REG(Odd)"
    )
    kernel = "__global__ __aicore__ void odd(GM_ADDR op, GM_ADDR stream, GM_ADDR launch, uint32_t block_dim) {}"
    project = generate_project(tmp_path / "my_ops", write(tmp_path, p__h=prototype, k__asc=kernel), launch="kernel")
    header = (project.directory / "csrc/generated/kernels.h").read_text()
    assert "uint32_t block_dim = 8;" in header
    assert "uint32_t block_dim_{};" in header
    assert "aclrtStream stream, void* op_, void* stream_, void* launch_);" in header
    launch = (project.directory / "csrc/launch/odd.cpp").read_text()
    assert "launch.block_dim_ = narrow<uint32_t>(op.block_dim);" in launch
    operators = (project.directory / "csrc/generated/operators.cpp").read_text()
    assert "at::Tensor odd(const at::Tensor& op_, const at::Tensor& stream_, int64_t block_dim)" in operators


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"p__h": ADD}, "has no kernels yet; say which it launches"),
        ({"p__h": ADD, "k__asc": "int f() { return 0; }"}, "no kernel is defined there"),
        (
            {
                "p__h": ADD,
                "k__asc": KERNEL.replace("add_custom", "other"),
                "l__asc": KERNEL.replace("add_custom", "more"),
            },
            "no kernel is called add_custom; there are other, more",
        ),
        (
            {"p__h": ADD, "k__asc": KERNEL.replace("GM_ADDR y, ", "")},
            "does not fit the operands x, y, z: write what its addresses are given",
        ),
        (
            {"p__h": ADD, "k__asc": KERNEL.replace("uint32_t", "half")},
            "takes totalLength as half; a launch passes addresses",
        ),
        (
            {"p__h": ADD, "k__asc": "#include <torch/library.h>\n" + KERNEL},
            "an adapter to PyTorch in it.*move the kernel to a file of its own",
        ),
        (
            {"p__h": ADD, "k__asc": KERNEL, "l__asc": KERNEL.replace("GM_ADDR z,", "")},
            "there are two kernels add_custom",
        ),
        (
            {"p__h": ADD, "k__cpp": "template <typename T>\n" + KERNEL.partition("\n")[2].replace('extern "C" ', "")},
            "can only be launched with <<<…>>>; name the file k.asc",
        ),
        (
            {
                "p__h": ADD + ADD.replace("AddCustom", "SubCustom"),
                "k__cpp": KERNEL,
                "l__asc": KERNEL.replace("add_c", "sub_c"),
            },
            "give all of one project one suffix",
        ),
        ({"p__h": ADD.replace(".INPUT(x", ".DYNAMIC_INPUT(x"), "k__asc": KERNEL}, "x is a list of tensors"),
        (
            {"k__asc": "__global__ __aicore__ void f(GM_ADDR x) {}"},
            "does not show its operands; give its prototype too",
        ),
    ],
)
def test_what_cannot_be_launched_is_refused_and_nothing_written(
    tmp_path: Path, files: dict[str, str], match: str
) -> None:
    with pytest.raises(AscendGraphError, match=match):
        generate_project(tmp_path / "my_ops", write(tmp_path, **files), launch="kernel")
    assert not (tmp_path / "my_ops").exists()


@pytest.mark.parametrize(
    ("declaration", "match"),
    [
        ("add_custom(x, y, q: z)", "'q: z' is not an address of the kernel add_custom"),
        (
            "add_custom(x, y, z: w)",
            "z of the kernel add_custom.* is given 'w'; it may be given x, y, z, scratch, bytes, null",
        ),
        ("add_custom(x, y: x, z)", "is not given y"),
        ("sub_custom(x, y, z)", "unknown kernel 'sub_custom'; expected one of add_custom"),
        ("add_custom(x, y, z", "is not a kernel; write kernel = add_custom"),
        ("add_custom<half>(x, y, z)", "the kernel has 0 template parameters"),
        ("add_custom<half>{system()}(x, y, z)", "is not a kernel; write kernel = add_custom"),
    ],
)
def test_a_wrong_declaration_changes_nothing(tmp_path: Path, declaration: str, match: str) -> None:
    project = tmp_path / "my_ops"
    generate_project(project, write(tmp_path, p__h=ADD, k__asc=KERNEL), launch="kernel")
    ini = project / "my_ops/operators.ini"
    ini.write_text(ini.read_text().replace("kernel = add_custom(x, y, z)", f"kernel = {declaration}"))
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}
    with pytest.raises(AscendGraphError, match=match):
        generate_project(project)
    assert before == {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}


def test_a_kernel_that_reads_one_dtype_restricts_a_prototype_that_allows_all(tmp_path: Path) -> None:
    prototype = ADD.replace(HALF, "TensorType::ALL()")
    files = write(tmp_path, p__h=prototype, k__asc="AscendC::GlobalTensor<half> xGm, yGm;\n" + KERNEL)
    project = generate_project(tmp_path / "my_ops", files, launch="kernel").directory
    operators = (project / "csrc/generated/operators.cpp").read_text()
    assert 'kernel.input("x", x, {at::ScalarType::Half})' in operators
    assert 'kernel.output("z", outputs, {})' in operators
    assert "torch.float16" in (project / "tests/my_ops_calls.py").read_text()


def test_a_source_with_two_kernels_is_compiled_once(tmp_path: Path) -> None:
    kernels = "".join(
        f"__global__ __aicore__ void {name}(GM_ADDR x, GM_ADDR y) {{}}\n" for name in ("first_one", "second_one")
    )
    project = generate_project(tmp_path / "my_ops", write(tmp_path, both__asc=kernels), launch="kernel")
    generated = project.directory / "kernels/generated"
    including = [path.name for path in generated.glob("*.asc") if '#include "../both.asc"' in path.read_text()]
    assert including == ["first_one.asc"]
    text = (generated / including[0]).read_text()
    assert ("int launch_first_one(" in text, "int launch_second_one(" in text) == (True, True)
    assert (generated / "CMakeLists.txt").read_text().count("add_custom_command(\n  OUTPUT first_one.o") == 1
    assert "second_one.o" not in (generated / "CMakeLists.txt").read_text()
    # Two libraries of one package define each kernel once, too.
    hosts = {name: (generated / f"{name}_host.asc").read_text() for name in ("first_one", "second_one")}
    assert ['#include "first_one.asc"' in text for text in hosts.values()] == [True, False]

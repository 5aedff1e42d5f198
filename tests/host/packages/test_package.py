"""Operator packages: built from prototypes and kernels, reached through aclnn functions and through GE graphs alike."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import preloaded
import pytest

from ascend_graph import AscendGraphError
from ascend_graph.host import OperatorPackageError, build_operator_package
from ascend_graph.host.packages.format import OperatorPackage
from ascend_graph.host.packages.importable import check_importable
from ascend_graph.host.packages.output_specs import output_sources
from ascend_graph.host.packages.python_kernels import python_operator, write_results
from ascend_graph.prototypes import parse_text

sys.path.insert(0, str(Path(__file__).parent))
import python_kernels

PROTOTYPES = """
REG_OP(ScaledSum)
    .DYNAMIC_INPUT(xs, TensorType({DT_FLOAT, DT_FLOAT16}))
    .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(index, TensorType({DT_INT64}))
    .ATTR(scale, Float, 0.1)
    .REQUIRED_ATTR(axes, ListInt)
    .ATTR(mode, String, "sum")
    .OP_END_FACTORY_REG(ScaledSum)
REG_OP(Accumulate)
    .INPUT(acc, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(acc, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(Accumulate)
REG_OP(Accumulated)
    .INPUT(acc, TensorType({DT_FLOAT}))
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(acc, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(Accumulated)
REG_OP(RemainderOfFloat)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(factor, Float, 0.1)
    .ATTR(more, ListFloat, {})
    .OP_END_FACTORY_REG(RemainderOfFloat)
REG_OP(NamesOfRules)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(self, Int, 1)
    .ATTR(keyset, Int, 1)
    .ATTR(meta_outputs, Int, 1)
    .OP_END_FACTORY_REG(NamesOfRules)
REG_OP(Broken)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(Broken)
REG_OP(WrongCount)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(WrongCount)
REG_OP(DerivedCube)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(dy, TensorType({DT_FLOAT}))
    .OUTPUT(dx, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(DerivedCube)
REG_OP(EveryKind)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OPTIONAL_INPUT(default, TensorType({DT_FLOAT}))
    .DYNAMIC_INPUT(more, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(i, Int, -9223372036854775808)
    .ATTR(f, Float, 1e-7)
    .ATTR(b, Bool, true)
    .ATTR(s, String, "a\\"b")
    .ATTR(t, Type, DT_BF16)
    .ATTR(li, ListInt, {1, -2})
    .ATTR(lf, ListFloat, {0.5, 1e-7})
    .ATTR(lb, ListBool, {true, false})
    .ATTR(x_, ListInt, {})
    .OP_END_FACTORY_REG(EveryKind)
"""

CPP_KERNEL = r"""
#include <cstdio>
#include "host_kernels.h"

// Writes what it received into y, as numbers.
void host_kernels::EveryKind(const EveryKindArgs& a) {
    float* y = a.y.as<float>();
    int n = 0;
    y[n++] = a.x.as<float>()[a.x.offset(1)];
    y[n++] = a.default_ == nullptr ? -1 : a.default_->as<float>()[0];
    y[n++] = static_cast<float>(a.more.size());
    for (const Tensor& t : a.more) y[n++] = t.as<float>()[0];
    y[n++] = a.i == INT64_MIN;
    y[n++] = static_cast<float>(a.f);
    y[n++] = a.b;
    y[n++] = static_cast<float>(a.s.size());
    y[n++] = static_cast<float>(a.t);
    for (int64_t v : a.li) y[n++] = static_cast<float>(v);
    for (float v : a.lf) y[n++] = v;
    for (bool v : a.lb) y[n++] = v;
    y[n++] = static_cast<float>(a.x_.size());
}
"""

RELATIONS = {"EveryKind": "x[m, n] -> y[16]"}


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("opp")
    kernel = directory / "kernel.cpp"
    kernel.write_text(CPP_KERNEL)
    return build_operator_package(
        directory / "vendor",
        parse_text(PROTOTYPES).prototypes,
        {
            "ScaledSum": python_kernels.scaled_sum,
            "Accumulate": python_kernels.accumulate,
            "Accumulated": python_kernels.accumulated,
            "RemainderOfFloat": python_kernels.remainder_of_float,
            "NamesOfRules": python_kernels.names_of_rules,
            "Broken": python_kernels.broken,
            "WrongCount": python_kernels.wrong_count,
            "DerivedCube": python_kernels.derived_cube,
            "EveryKind": kernel,
        },
        relations=RELATIONS,
    )


def run(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has the package installed."""
    return preloaded.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )


PRELUDE = """
import ctypes, json, torch, torch_npu, torchair
from torchair import ge


def run_node(op_type, tensors, outputs, attrs, results):
    from torchair.ge._ge_graph import GeGraph
    lib = torch.library.Library("pkg", "FRAGMENT")
    n = sum(len(t) if isinstance(t, list) else 1 for t in tensors.values() if t is not None)
    args = ", ".join(f"Tensor a{i}" for i in range(n))
    returns = ", ".join(["Tensor"] * len(outputs))
    lib.define(f"{op_type}({args}) -> ({returns})")
    op = getattr(torch.ops.pkg, op_type).default
    one = len(outputs) == 1
    def meta(*a):
        made = tuple(torch.empty(s, dtype=d, device=a[0].device) for s, d in results)
        return made[0] if one else made
    lib.impl(op_type, meta, "Meta")
    @torchair.register_fx_node_ge_converter(op)
    def convert(*a, meta_outputs=None):
        flat = list(a)
        named = {
            k: None if t is None else [flat.pop(0) for _ in t] if isinstance(t, list) else flat.pop(0)
            for k, t in tensors.items()
        }
        return ge.custom_op(op_type, inputs=named, outputs=outputs, attrs=attrs)
    flat = [x for t in tensors.values() if t is not None for x in (t if isinstance(t, list) else [t])]
    compiled = torch.compile(lambda *a: op(*a), backend=torchair.get_npu_backend(), dynamic=False)
    result = compiled(*flat)
    return [r.cpu() for r in ((result,) if one else result)]
"""


def test_layout_is_that_of_an_installed_package(package: Path) -> None:
    files = {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file()}
    assert {"op_api/lib/libcust_opapi.so", "op_proto/inc/op_proto.h", "op_api/include/aclnn_scaled_sum.h"} <= files
    assert stat.S_IMODE(package.stat().st_mode) == 0o755
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", package / "op_api/lib/libcust_opapi.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for op in ("ScaledSum", "Accumulate", "EveryKind"):
        assert f" aclnn{op}GetWorkspaceSize\n" in exported
        assert f" aclnn{op}\n" in exported


def in_another_order() -> str:
    """Return the prototype of EveryKind with its attrs in the reverse order."""
    lines = PROTOTYPES.partition("REG_OP(EveryKind)")[2].splitlines()
    attrs = [line for line in lines if ".ATTR" in line]
    rest = [line for line in lines if line not in attrs]
    return "\n".join(["REG_OP(EveryKind)", *rest[:-1], *reversed(attrs), rest[-1]])


@pytest.mark.parametrize("loaded", ["", in_another_order()], ids=["installed", "loaded in another order"])
def test_graph_reaches_a_cpp_kernel_with_every_kind_of_parameter(package: Path, loaded: str) -> None:
    result = run(
        package,
        f"""
        import ascend_graph
        ascend_graph.load_prototypes({loaded or PROTOTYPES!r})
        x = torch.arange(6.0).reshape(3, 2).npu()
        extra = [torch.full((1,), 7.0).npu(), torch.full((1,), 8.0).npu()]
        (y,) = run_node(
            "EveryKind", {{"x": x, "default": None, "more": extra}}, ["y"], {{"b": ge.attr.Bool(False)}},
            [((16,), torch.float32)],
        )
        print(json.dumps(y.tolist()))
        """,
    )
    assert result.returncode == 0, result.stderr
    y = json.loads(result.stdout)
    assert y == pytest.approx([1, -1, 2, 7, 8, 1, 1e-7, 0, 3, 27, 1, -2, 0.5, 1e-7, 1, 0], rel=1e-6)


def test_graph_reaches_a_python_kernel_with_lists_optionals_and_two_outputs(package: Path) -> None:
    result = run(
        package,
        """
        xs = [torch.arange(6.0).reshape(2, 3).npu(), torch.ones(2, 3).npu()]
        y, index = run_node(
            "ScaledSum", {"xs": xs, "bias": torch.ones(3).npu()}, ["y", "index"],
            {"axes": ge.attr.ListInt([1]), "scale": ge.attr.Float(2.0)}, [((2,), torch.float32), ((), torch.int64)],
        )
        print(json.dumps([y.tolist(), index.tolist()]))
        """,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [[15.0, 33.0], 5]


def test_a_python_kernel_differentiates(package: Path) -> None:
    """Autograd is off where eager calls, captures and graphs run."""
    result = run(
        package,
        """
        import ascend_graph
        ascend_graph.register_op("DerivedCube", shape="x[*s], dy[*s] -> dx[*s]")
        op = torch.ops.ascend.derived_cube
        x = torch.tensor([1.0, 2.0]).npu()
        print(op(x, x).tolist())
        for backend in (torchair.get_npu_backend(), "npugraph_ex"):
            torch._dynamo.reset()
            print(torch.compile(lambda x, dy: op(x, dy), backend=backend)(x, x).tolist())
        with torch.enable_grad():
            print(op(x, x.detach().requires_grad_()).tolist(), op(x, x).requires_grad)
        """,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.splitlines() == ["[3.0, 24.0]"] * 3 + ["[3.0, 24.0] False"]


def test_a_float_attr_has_32_bits_in_every_mode(package: Path) -> None:
    """Its function takes a double, of which a device keeps a float: so do GE graphs."""
    result = run(
        package,
        """
        import ascend_graph
        ascend_graph.register_op("RemainderOfFloat", shape="x[*s] -> y[*s]")
        op = torch.ops.ascend.remainder_of_float
        call = lambda x: op(x) + op(x, factor=0.1, more=[0.5])
        x = torch.zeros(1).npu()
        for backend in (torchair.get_npu_backend(), "npugraph_ex", "eager"):
            torch._dynamo.reset()
            print([round(n, 2) for n in (op(x).item(), torch.compile(call, backend=backend)(x).item())])
        try:
            op(x, more=[1e39])
        except ascend_graph.AscendGraphError as error:
            print(error)
        """,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    *modes, refusal = result.stdout.splitlines()
    assert modes == ["[1.49, 3.48]"] * 3
    assert "1e+39 does not fit a parameter of aclnnRemainderOfFloat; expected a number that float32 holds" in refusal


def test_attrs_have_names_that_rules_of_calls_leave_free(package: Path) -> None:
    """TorchAir gave a converter the results of its node for an attr ``meta_outputs``, silently."""
    result = run(
        package,
        """
        import ascend_graph
        shape, batch = "x[*s] -> y[*s]", ("*s",)
        ascend_graph.register_op("NamesOfRules", shape=shape, backward=lambda ctx, grad: grad * 5, batch=batch)
        op = torch.ops.ascend.names_of_rules
        attrs = {"self_": 2, "keyset_": 3, "meta_outputs_": 4}
        for backend in (torchair.get_npu_backend(), "npugraph_ex", "eager"):
            torch._dynamo.reset()
            x = torch.ones(1).npu().requires_grad_()
            y = torch.compile(lambda x: op(x, **attrs), backend=backend)(x)
            y.sum().backward()
            print(y.tolist(), x.grad.tolist())
        print(torch.vmap(lambda x: op(x, **attrs))(torch.ones(1, 1).npu()).tolist())

        library = torch.library.Library("names", "DEF")
        library.define("rules(Tensor x, *, int keyset=1, int meta_outputs=1, int self_=1) -> Tensor")
        library.impl("rules", lambda x, **attrs: x, "PrivateUse1")
        try:
            ascend_graph.register_op("NamesOfRules", eager=torch.ops.names.rules, shape="x[*s] -> y[*s]")
        except ascend_graph.AscendGraphError as error:
            print(error)
        """,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    *modes, mapped, refusal = result.stdout.splitlines()
    assert modes == ["[432.0] [5.0]"] * 3
    assert mapped == "[[432.0]]"
    assert "in the place of an argument with the keyword meta_outputs; rename it in the schema" in refusal


ACLNN = """
lib = ctypes.CDLL(f"{__import__('os').environ['ASCEND_CUSTOM_OPP_PATH']}/op_api/lib/libcust_opapi.so")
api = ctypes.CDLL("libopapi.so")
api.aclCreateTensor.restype = ctypes.c_void_p
acl = ctypes.CDLL("libascendcl.so")
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p

def tensor(t, dtype=0):
    ints = lambda v: (ctypes.c_int64 * len(v))(*v)
    return ctypes.c_void_p(api.aclCreateTensor(
        ints(t.shape), ctypes.c_uint64(t.dim()), dtype, ints(t.stride()),
        ctypes.c_int64(t.storage_offset()), 2, ints([t.numel()]),
        ctypes.c_uint64(1), ctypes.c_void_p(t.untyped_storage().data_ptr())))

def call(op, *args):
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    error = getattr(lib, f"aclnn{op}GetWorkspaceSize")(*args, ctypes.byref(size), ctypes.byref(executor))
    return error or getattr(lib, f"aclnn{op}")(None, ctypes.c_uint64(0), executor, None)
"""


@pytest.mark.parametrize("op_type", ["Accumulate", "Accumulated"], ids=["writes", "returns what is written"])
def test_graph_constants_are_not_written_by_a_python_kernel(package: Path, op_type: str) -> None:
    result = run(
        package,
        """
        import ascend_graph
        library = torch.library.Library("pkg", "FRAGMENT")
        library.define("accumulate(Tensor(a!) acc, Tensor x) -> ()")
        for key in ("CPU", "PrivateUse1"):
            library.impl("accumulate", lambda acc, x: [acc.add_(x)] and None, key)
        op = torch.ops.pkg.accumulate.default
        ascend_graph.register_op("OP_TYPE", eager=op)

        def whole(x):
            acc = torch.zeros(2, device=x.device)
            op(acc, x)
            return acc

        def part(x):
            acc = torch.zeros(2, 2, device=x.device)
            op(acc[1], x)
            return acc + 0

        def transposed(x):
            acc = x.reshape(2, 1) * torch.ones(2, 2, device=x.device)
            op(acc.t()[1], x)
            return acc

        for function in (whole, part, transposed):
            for dynamic in (False, True):
                torch._dynamo.reset()
                compiled = torch.compile(function, backend=torchair.get_npu_backend(), dynamic=dynamic)
                for _ in range(3):
                    x = torch.tensor([1.0, 5.0]).npu()
                    print(compiled(x).tolist() == function(x.cpu()).tolist(), x.tolist() == [1, 5])
        """.replace("OP_TYPE", op_type),
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["True"] * 2 * 3 * 2 * 3


#: Kernels that return what lies in the memory of in-place inputs, and what q, k and y are afterwards.
KEPT: dict[str, tuple[Any, list[list[float]]]] = {
    "swapped": (lambda q, k: (k, q, q + k), [[3, 4], [1, 2], [4, 6]]),
    "the old value as a result": (lambda q, k: (q + k, k, q), [[4, 6], [3, 4], [1, 2]]),
    "a view of the old value": (lambda q, k: (k * 2, q.flip(0), q[:]), [[6, 8], [2, 1], [1, 2]]),
    "a tensor of its own": (lambda q, k: (q.mul_(2), None, k), [[2, 4], [3, 4], [3, 4]]),
}


@pytest.mark.parametrize("name", KEPT)
def test_results_in_the_memory_of_in_place_inputs_keep_their_values(name: str) -> None:
    import torch

    text = (
        "REG_OP(Kept).INPUT(q, {FLOAT}).INPUT(k, {FLOAT}).OUTPUT(q, {FLOAT}).OUTPUT(k, {FLOAT}).OUTPUT(y, {FLOAT})"
        ".OP_END_FACTORY_REG(Kept)"
    )
    (prototype,) = parse_text(text).prototypes
    kernel, expected = KEPT[name]
    q, k, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.zeros(2)
    results = python_operator(prototype, kernel)([q, k], {})
    write_results("Kept", output_sources(prototype), [q, k], [y], results)
    assert [t.tolist() for t in (q, k, y)] == expected


def test_aclnn_in_place_and_strided(package: Path) -> None:
    result = run(
        package,
        ACLNN
        + textwrap.dedent("""
        acc, x = torch.zeros(4, 2).npu().t(), torch.arange(8.0).reshape(2, 4).npu()
        print(call("Accumulate", tensor(acc), tensor(x)), call("Accumulate", tensor(acc), tensor(x)), acc.tolist())
        """),
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "0 0 [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0]]"


@pytest.mark.parametrize("number", [1e-6, 0.0, 5e-320, 2.5])
def test_a_float_in_the_place_of_a_double_is_refused(package: Path, number: float) -> None:
    """EXEC_NPU_CMD of a float variable puts its bytes into the low half: a number near 0 for the function."""
    result = run(
        package,
        ACLNN
        + textwrap.dedent(f"""
        import struct
        def call_norm(epsilon):
            x, gamma, y, rstd = (torch.ones(n).npu() for n in ((2, 4), (4,), (2, 4), (2, 1)))
            size, executor = ctypes.c_uint64(), ctypes.c_void_p()
            sized = api.aclnnRmsNormGetWorkspaceSize
            error = sized(*(tensor(t) for t in (x, gamma)), ctypes.c_double(epsilon), *(tensor(t) for t in (y, rstd)),
                          ctypes.byref(size), ctypes.byref(executor))
            print(error, acl.aclGetRecentErrMsg().decode() if error else "")
        call_norm({number})
        call_norm(struct.unpack("d", struct.pack("fi", {number}, 0))[0])
        """),
    )
    assert result.returncode == 0, result.stderr
    right, wrong = result.stdout.splitlines()
    assert right == "0 "
    if number in (0.0, 5e-320):  # nothing tells it from the number
        assert wrong == "0 "
    else:
        assert wrong.startswith(
            f"161002 aclnnRmsNorm: parameter 3 is a double, and the caller passed the float {number:.6f}"
        )


def test_a_caller_that_ignores_the_first_status_gets_its_cause_from_the_second(package: Path) -> None:
    """As torch_npu's EXEC_NPU_CMD_EXT does."""
    result = run(
        package,
        ACLNN
        + textwrap.dedent("""
        x, size, executor = torch.ones(2).npu(), ctypes.c_uint64(), ctypes.c_void_p()
        for _ in range(2):
            if _ == 0:
                lib.aclnnAccumulateGetWorkspaceSize(tensor(x), None, ctypes.byref(size), ctypes.byref(executor))
                acl.aclGetRecentErrMsg()
            print(lib.aclnnAccumulate(None, ctypes.c_uint64(0), None, None), acl.aclGetRecentErrMsg().decode())
        """),
    )
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert first.startswith("161001 aclnnAccumulateGetWorkspaceSize failed: ")
    assert "x" in first
    assert first.endswith("; write what it asks for, and look at its status")
    assert second == "161001 aclnn: the executor is null; expected an address"


def test_aclnn_errors_name_operator_and_cause(package: Path) -> None:
    result = run(
        package,
        ACLNN
        + textwrap.dedent("""
        x, y = torch.ones(2, 2).npu(), torch.ones(3).npu()
        for op, args in [
            ("Broken", (tensor(x), tensor(x))),
            ("WrongCount", (tensor(x), tensor(x))),
            ("Accumulate", (None, tensor(x))),
            ("Accumulate", (tensor(x), tensor(x.double(), 11))),
        ]:
            print(call(op, *args), acl.aclGetRecentErrMsg().decode())
        print(call("Accumulate", tensor(x), tensor(x)))
        """),
    )
    assert result.returncode == 0, result.stderr
    broken, wrong, null, double, after = result.stdout.strip().splitlines()
    assert "ValueError: no such luck with (2, 2)" in broken
    assert "WrongCount: the Python kernel returned 2 outputs; expected 1, as the prototype has (y)" in wrong
    assert null == "161001 aclnnAccumulate: required parameter 'acc' is null"
    assert double == (
        "161002 Accumulate: x has the dtype DOUBLE; the prototype lists FLOAT. "
        "Convert it, or list its dtype in the prototype"
    )
    assert after == "0"  # the process and the device live on


def test_graph_error_names_node_and_cause(package: Path) -> None:
    result = run(
        package,
        """
        try:
            run_node("Broken", {"x": torch.ones(2, 2).npu()}, ["y"], None, [((2, 2), torch.float32)])
        except RuntimeError as error:
            print("Broken" in str(error) and "no such luck with (2, 2)" in str(error))
        print((torch.ones(2).npu() + 1).tolist())
        """,
    )
    assert result.stdout.split("\n")[:2] == ["True", "[2.0, 2.0]"], result.stderr


def build(tmp_path: Path, **changes: object) -> Path:
    arguments = {
        "prototypes": parse_text(PROTOTYPES).prototypes,
        "kernels": {"Broken": python_kernels.broken},
        "relations": {},
    }
    return build_operator_package(tmp_path / "vendor", **{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kernels": {"Brokn": python_kernels.broken}},
            "kernel for 'Brokn': unknown prototype; expected one of Accumulate",
        ),
        ({"kernels": {}}, "no kernel is given"),
        ({"kernels": {"Broken": "missing.cpp"}}, "kernel source .*missing.cpp does not exist"),
        ({"kernels": {"Broken": lambda x: x}}, "cannot be loaded again in another process"),
        ({"relations": {"Broken": "a[n] -> y[n]"}}, "relation of Broken: a is not an input or output; there are: x, y"),
        ({"relations": {"Broken": "x[n -> y"}}, "x\\[n -> y"),
        ({"prototypes": "missing.h"}, "missing.h"),
    ],
)
def test_bad_packages_are_refused_whole(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(AscendGraphError, match=message):
        build(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_does_not_compile_shows_the_compilers_words_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "src" / "kernel.cpp"
    source.parent.mkdir()
    source.write_text('#include "host_kernels.h"\nvoid host_kernels::Broken(const BrokenArgs& a) { a.nothing; }\n')
    with pytest.raises(AscendGraphError, match="no member named 'nothing'|nothing"):
        build(tmp_path / "out", kernels={"Broken": source})
    assert not list((tmp_path / "out").iterdir())


def test_a_directory_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "thesis.txt").write_text("ten years")
    with pytest.raises(OperatorPackageError, match="is not an operator package"):
        build(tmp_path)
    assert (tmp_path / "vendor" / "thesis.txt").exists()


def test_a_missing_package_directory_is_named() -> None:
    result = run(
        Path("/nowhere/at/all"),
        """
        from ascend_graph.host.packages.load import installed_packages
        try:
            installed_packages()
        except Exception as error:
            print(error)
        """,
    )
    assert "ASCEND_CUSTOM_OPP_PATH names /nowhere/at/all, which is not a directory" in result.stdout


REPLACED = """
REG_OP(GeGluV2)
    .INPUT(x, TensorType({{DT_FLOAT}}))
    .OUTPUT(y, TensorType({{DT_FLOAT}}))
    .OUTPUT(gelu, TensorType({{DT_FLOAT}}))
    .ATTR(dim, Int, -1)
    .ATTR(approximate, Int, 1)
    {last}
    .OP_END_FACTORY_REG(GeGluV2)
"""
EAGER = """
import torch, torch_npu
x = torch.tensor([1.0, 2, 3, 4]).npu()
print(*(y.tolist() for y in torch_npu.npu_geglu(x, dim=-1, approximate=1, activate_left=True)))
"""


IN_CPP = r"""
#include "host_kernels.h"
void host_kernels::GeGluV2(const GeGluV2Args& a) {
    const float* x = a.x.as<float>();
    for (int i = 0; i < 2; ++i) {
        a.y.as<float>()[i] = x[i] + x[i + 2];
        a.gelu.as<float>()[i] = x[i] * static_cast<float>(a.approximate);
    }
}
"""


@pytest.mark.parametrize("in_cpp", [False, True])
def test_functions_of_cann_reach_an_operator_that_a_package_replaces(tmp_path: Path, in_cpp: bool) -> None:
    """CANN's aclnn functions launch operators by their types: aclnnGeGluV3 this one."""
    prototypes = REPLACED.format(last=".ATTR(activate_left, Bool, false)")
    (tmp_path / "kernel.cpp").write_text(IN_CPP)
    package = build_operator_package(
        tmp_path / "vendor",
        parse_text(prototypes).prototypes,
        {"GeGluV2": tmp_path / "kernel.cpp" if in_cpp else python_kernels.louder},
        relations={"GeGluV2": "x[n] -> y[2], gelu[2]"} if in_cpp else {},
    )
    result = run(package, EAGER)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[4.0, 6.0] [1.0, 2.0]\n"


def test_an_operator_that_is_replaced_by_one_of_other_parameters_is_refused(tmp_path: Path) -> None:
    prototypes = REPLACED.format(last="")
    package = build_operator_package(
        tmp_path / "vendor", parse_text(prototypes).prototypes, {"GeGluV2": python_kernels.louder}
    )
    result = run(package, EAGER)
    assert result.returncode != 0
    assert "aclnnGeGluV3: an installed operator package replaces GeGluV2 by one without activate_left" in result.stderr


ALONE = """
from ascend_graph.host import build_operator_package


def broken(x):
    return x


def build():
    build_operator_package("opp", "op_proto.h", {"Broken": broken})


"""


@pytest.mark.parametrize(
    "statement",
    [
        "build()",
        "for _ in range(2):\n    build()",
        "package = host.build_operator_package(1)",
        "from ascend_graph.host import build_operator_package as make\nmake()",
    ],
)
def test_a_file_that_builds_its_package_when_it_is_imported_is_refused(tmp_path: Path, statement: str) -> None:
    (tmp_path / "alone.py").write_text(ALONE + statement + "\n")
    with pytest.raises(
        OperatorPackageError, match=r"alone\.py:1\d builds a package when .*Write if __name__ == '__main__'"
    ):
        check_importable("Broken", tmp_path / "alone.py")


@pytest.mark.parametrize("statement", ["", 'if __name__ == "__main__":\n    build()', "def main():\n    build()"])
def test_a_file_that_builds_its_package_as_a_program_is_taken(tmp_path: Path, statement: str) -> None:
    (tmp_path / "alone.py").write_text(ALONE + statement + "\n")
    check_importable("Broken", tmp_path / "alone.py")


def test_relations_of_an_older_package_get_the_prototypes_dtypes(tmp_path: Path) -> None:
    header = (
        "REG_OP(Rounded).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_INT8})).OP_END_FACTORY_REG(Rounded)"
    )
    (tmp_path / "op_proto/inc").mkdir(parents=True)
    (tmp_path / "op_proto/inc/op_proto.h").write_text(header)
    # Builds wrote relations as they were given, before they wrote them with dtypes.
    package = OperatorPackage(tmp_path, {"Rounded": {"relation": "x[*s] -> y[*s]"}})
    assert str(package.relation("Rounded")) == "x[*s] -> y[*s]: int8"

"""CANN's aclnn functions by the C interface: the table, what is exported, and what is refused."""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from ascend_graph.environment import HostRuntimeError, toolkit_directory
from ascend_graph.host.kernels import find_host_kernel
from ascend_graph.host.kernels.input_shapes import documented_shapes
from ascend_graph.host.runtime.aclnn_functions.call import NullParameterError, _Bound, prepare
from ascend_graph.host.runtime.aclnn_functions.dtypes import documented_dtypes
from ascend_graph.host.runtime.aclnn_functions.source import source
from ascend_graph.host.runtime.aclnn_functions.table import C_TYPES, Function, TableError, functions, read
from ascend_graph.shapes import parse_relation

PARAM_NULLPTR, PARAM_INVALID = 161001, 161002
FLOAT, FLOAT16, INT4 = 0, 1, 29


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    torch.npu.init()
    found = ctypes.CDLL(str(toolkit_directory() / "lib64" / "libopapi.so"))
    for name in ("aclCreateTensor", "aclCreateIntArray"):
        getattr(found, name).restype = ctypes.c_void_p
    return found


@pytest.fixture(scope="module")
def recent_error() -> object:
    found = ctypes.CDLL(str(toolkit_directory() / "lib64" / "libascendcl.so")).aclGetRecentErrMsg
    found.restype = ctypes.c_char_p
    return found


def acl_tensor(library: ctypes.CDLL, t: torch.Tensor, dtype: int = FLOAT) -> ctypes.c_void_p:
    sizes, strides = (ctypes.c_int64 * t.dim())(*t.shape), (ctypes.c_int64 * t.dim())(*t.stride())
    return ctypes.c_void_p(
        library.aclCreateTensor(
            sizes,
            ctypes.c_uint64(t.dim()),
            dtype,
            strides,
            ctypes.c_int64(0),
            2,
            sizes,
            ctypes.c_uint64(t.dim()),
            ctypes.c_void_p(t.data_ptr()),
        )
    )


def test_tensor_that_is_initialized_again_has_another_shape_and_address(library: ctypes.CDLL) -> None:
    x, y, z = torch.rand(6).npu(), torch.rand(2, 3).npu().t(), torch.empty(3, 2).npu()
    reused, out = acl_tensor(library, x), acl_tensor(library, z)
    sizes, strides = (ctypes.c_int64 * 2)(*y.shape), (ctypes.c_int64 * 2)(*y.stride())
    two, data = ctypes.c_uint64(2), ctypes.c_void_p(y.data_ptr())
    assert library.aclInitTensor(reused, sizes, two, FLOAT, strides, ctypes.c_int64(0), 2, sizes, two, data) == 0
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    assert library.aclnnCastGetWorkspaceSize(reused, FLOAT, out, ctypes.byref(size), ctypes.byref(executor)) == 0
    assert library.aclnnCast(None, size, executor, None) == 0
    torch.npu.synchronize()
    assert torch.equal(z, y)

    address = ctypes.c_void_p()
    assert library.aclSetRawTensorAddr(reused, ctypes.c_void_p(x.data_ptr())) == 0
    assert library.aclGetRawTensorAddr(reused, ctypes.byref(address)) == 0
    assert address.value == x.data_ptr()
    many = (ctypes.c_int64 * 13)(*[1] * 13)
    thirteen = ctypes.c_uint64(13)
    assert (
        library.aclInitTensor(reused, many, thirteen, FLOAT, None, ctypes.c_int64(0), 2, many, thirteen, data) == 161002
    )
    assert library.aclInitTensor(None, many, two, FLOAT, None, ctypes.c_int64(0), 2, many, two, data) == 161001
    for one in (reused, out):
        library.aclDestroyTensor(one)


def rms_norm(library: ctypes.CDLL, *tensors: torch.Tensor | None) -> int:
    """x, gamma, y and rstd by the two functions; the error code of the first that fails."""
    x, gamma, y, rstd = (None if t is None else acl_tensor(library, t) for t in tensors)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    error = library.aclnnRmsNormGetWorkspaceSize(
        x, gamma, ctypes.c_double(1e-6), y, rstd, ctypes.byref(size), ctypes.byref(executor)
    )
    for t in (x, gamma, y, rstd):
        library.aclDestroyTensor(t)
    return int(error or library.aclnnRmsNorm(None, size, executor, None))


def test_a_program_calls_a_function_by_its_c_signature(library: ctypes.CDLL) -> None:
    x, gamma = torch.randn(3, 8), torch.rand(8)
    y, rstd = torch.empty(8, 3).t(), torch.empty(3, 1)  # strided: what a caller allocates may be
    assert rms_norm(library, x, gamma, y, rstd) == 0
    torch.testing.assert_close(rstd, torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6))
    torch.testing.assert_close(y, x * rstd * gamma)


@pytest.mark.parametrize("alpha", [1.0, -2.5])
def test_add_of_shapes_that_broadcast(
    library: ctypes.CDLL, recent_error: ctypes._NamedFuncPointer, alpha: float
) -> None:
    x, other, out = torch.randn(3, 8), torch.randn(8), torch.empty(3, 8)
    library.aclCreateScalar.restype = ctypes.c_void_p
    scalar = ctypes.c_void_p(library.aclCreateScalar(ctypes.byref(ctypes.c_float(alpha)), FLOAT))
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    tensors = [acl_tensor(library, t) for t in (x, other, out)]
    places = ctypes.byref(size), ctypes.byref(executor)
    assert library.aclnnAddGetWorkspaceSize(*tensors[:2], scalar, tensors[2], *places) == 0, recent_error()
    assert library.aclnnAdd(None, size, executor, None) == 0
    torch.testing.assert_close(out, x + alpha * other)


@pytest.mark.parametrize("row", [(2, 1, 8), (2, 8)])
@pytest.mark.parametrize("affine", [True, False])
def test_adaptive_layer_norm_scales_and_shifts_each_batch(
    library: ctypes.CDLL, recent_error: ctypes._NamedFuncPointer, row: tuple[int, ...], affine: bool
) -> None:
    x, scale, shift = torch.randn(2, 3, 8), torch.randn(row), torch.randn(row)
    weight, bias = (torch.randn(8), torch.randn(8)) if affine else (None, None)
    normal = torch.nn.functional.layer_norm(x, (8,), weight, bias, 1e-3)
    expected = normal * (1 + scale.reshape(2, 1, 8)) + shift.reshape(2, 1, 8)
    out, mean, rstd = torch.empty(2, 3, 8), torch.empty(2, 3, 1), torch.empty(2, 3, 1)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    inputs = [None if t is None else acl_tensor(library, t) for t in (x, scale, shift, weight, bias)]
    outputs = [acl_tensor(library, t) for t in (out, mean, rstd)]
    places = ctypes.byref(size), ctypes.byref(executor)
    epsilon = ctypes.c_double(1e-3)
    assert library.aclnnAdaLayerNormV2GetWorkspaceSize(*inputs, epsilon, *outputs, *places) == 0, recent_error()
    assert library.aclnnAdaLayerNormV2(None, size, executor, None) == 0
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(mean, x.mean(-1, keepdim=True))
    torch.testing.assert_close(rstd, (x.var(-1, unbiased=False, keepdim=True) + 1e-3).rsqrt())
    out.zero_()
    assert library.aclnnAdaLayerNormGetWorkspaceSize(*inputs, epsilon, outputs[0], *places) == 0, recent_error()
    assert library.aclnnAdaLayerNorm(None, size, executor, None) == 0
    torch.testing.assert_close(out, expected)


def test_a_scale_of_another_batch_is_refused(library: ctypes.CDLL, recent_error: ctypes._NamedFuncPointer) -> None:
    tensors = [acl_tensor(library, t) for t in (torch.randn(2, 3, 8), torch.randn(3, 8), torch.randn(2, 8))]
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    places = ctypes.byref(size), ctypes.byref(executor)
    out = acl_tensor(library, torch.empty(2, 3, 8))
    status = library.aclnnAdaLayerNormGetWorkspaceSize(*tensors, None, None, ctypes.c_double(1e-3), out, *places)
    assert status or library.aclnnAdaLayerNorm(None, size, executor, None)
    assert "scale" in recent_error().decode()


@pytest.mark.parametrize(
    ("mode", "dtype", "refusal"),
    [
        (0, torch.float32, ""),
        (1, torch.float32, ""),
        (2, torch.float16, ""),
        (2, torch.float32, "impl_mode is 2"),
        (3, torch.float16, "impl_mode is 3; it must be 0, 1 or 2"),
    ],
)
def test_layer_norm_takes_documented_implementation_modes(
    library: ctypes.CDLL, recent_error: ctypes._NamedFuncPointer, mode: int, dtype: torch.dtype, refusal: str
) -> None:
    x, weight, out = torch.randn(4, 8).to(dtype), torch.randn(8).to(dtype), torch.empty(4, 8, dtype=dtype)
    shape = ctypes.c_void_p(library.aclCreateIntArray((ctypes.c_int64 * 1)(8), ctypes.c_uint64(1)))
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    tensors = [acl_tensor(library, t, FLOAT if dtype is torch.float32 else FLOAT16) for t in (x, weight, out)]
    status = library.aclnnLayerNormWithImplModeGetWorkspaceSize(
        tensors[0], shape, tensors[1], None, ctypes.c_double(1e-5), tensors[2], None, None, ctypes.c_int32(mode),
        ctypes.byref(size), ctypes.byref(executor),
    )  # fmt: skip
    if refusal:
        assert status == 161002
        assert refusal in recent_error().decode()
        return
    assert status == 0, recent_error()
    assert library.aclnnLayerNormWithImplMode(None, size, executor, None) == 0
    expected = torch.nn.functional.layer_norm(x.float(), (8,), weight.float()).to(dtype)
    torch.testing.assert_close(out, expected)


def test_a_normalized_shape_that_does_not_end_the_shape_of_x_is_refused() -> None:
    from ascend_graph.host.kernels.nn.normalization import layer_norm_v4

    for wrong in ([4], [4, 8, 8], [8, 4]):
        with pytest.raises(ValueError, match=r"normalized_shape is .*; it must end the shape of x, \[4, 8\]"):
            layer_norm_v4(torch.randn(4, 8), torch.tensor(wrong))


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (torch.float64, torch.float64, "aclnnRmsNorm: x is DOUBLE; expected FLOAT, FLOAT16, BF16"),
        (torch.int32, torch.float32, "aclnnRmsNorm: x is INT32; expected FLOAT, FLOAT16, BF16"),
        (torch.float32, torch.float64, "aclnnRmsNorm: y is DOUBLE; expected FLOAT, FLOAT16, BF16"),
    ],
)
def test_dtypes_that_documents_leave_out_are_refused(x: torch.dtype, y: torch.dtype, text: str) -> None:
    with pytest.raises(HostRuntimeError, match=text):
        prepare("RmsNorm", [torch.ones(2, 4).to(x), torch.ones(4), 1e-6, torch.empty(2, 4, dtype=y), torch.empty(2, 1)])


def test_documented_dtypes_are_of_parameters_that_the_table_has() -> None:
    known = {f.symbol: {p.name for p in f.parameters} for f in functions().values()}
    assert len(documented_dtypes()) > 100
    for symbol, rules in documented_dtypes().items():
        assert rules.keys() <= known[symbol]
        assert all(rules.values())


@pytest.mark.parametrize("op_type", documented_shapes())
def test_documented_shapes_are_of_inputs_that_the_kernel_has(op_type: str) -> None:
    kernel = find_host_kernel(op_type)
    assert kernel is not None
    relation = parse_relation(kernel.shapes)
    assert relation.inputs
    assert not relation.outputs
    assert set(relation.inputs) <= set(kernel.inputs)


def test_an_optional_input_without_elements_constrains_nothing() -> None:
    kernel = find_host_kernel("MoeGatingTopK")
    assert kernel is not None
    x = torch.ones(3, 8)
    kernel.check_shapes([x, torch.ones(0)], {"k": 2})
    kernel.check_shapes([x, None], {"k": 2})
    with pytest.raises(HostRuntimeError, match=r"bias\[e\]: dimension 0 is 7, but dimension e is 8 by x\[-1\]"):
        kernel.check_shapes([x, torch.ones(7)], {"k": 2})


def test_integers_of_four_bits_lie_two_in_a_byte(library: ctypes.CDLL, recent_error: ctypes._NamedFuncPointer) -> None:
    x, scale = torch.tensor([[1.0, -1, 7, -8], [0, 2, -2, 3]]), torch.tensor([1.0])
    numbers = torch.full((2, 4), 99, dtype=torch.int8)  # of which as many elements as bytes matter
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    places = ctypes.byref(size), ctypes.byref(executor)
    y = acl_tensor(library, numbers, INT4)
    given = [*(acl_tensor(library, t) for t in (x, scale)), None, False, b"round", INT4, ctypes.c_int32(-1), y]
    assert library.aclnnAscendQuantV3GetWorkspaceSize(*given, *places) == 0, recent_error()
    assert library.aclnnAscendQuantV3(None, size, executor, None) == 0, recent_error()
    assert numbers.reshape(-1).view(torch.uint8).tolist() == [0xF1, 0x87, 0x20, 0x3E, 99, 99, 99, 99]
    back = torch.empty(2, 4, dtype=torch.float16)
    given = [y, acl_tensor(library, scale), None, ctypes.c_int64(FLOAT16), False, acl_tensor(library, back, FLOAT16)]
    assert library.aclnnAscendAntiQuantGetWorkspaceSize(*given, *places) == 0, recent_error()
    assert library.aclnnAscendAntiQuant(None, size, executor, None) == 0, recent_error()
    assert torch.equal(back.float(), x)


@pytest.mark.parametrize(
    ("y", "rstd", "code", "text"),
    [
        ((3, 8), None, PARAM_NULLPTR, "aclnnRmsNorm: rstd must not be null"),
        ((3, 7), (3, 1), PARAM_INVALID, "aclnnRmsNorm: y is torch.float32 of shape (3, 7)"),
        ((3, 8), (3,), PARAM_INVALID, "aclnnRmsNorm: rstd is torch.float32 of shape (3,)"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    library: ctypes.CDLL,
    recent_error: ctypes._NamedFuncPointer,
    y: tuple[int, ...],
    rstd: tuple[int, ...] | None,
    code: int,
    text: str,
) -> None:
    outputs = [None if shape is None else torch.full(shape, 7.0) for shape in (y, rstd)]
    assert rms_norm(library, torch.randn(3, 8), torch.rand(8), *outputs) == code
    assert text in recent_error().decode()
    assert all(bool((t == 7).all()) for t in outputs if t is not None)


def test_a_required_input_must_not_be_null(library: ctypes.CDLL, recent_error: ctypes._NamedFuncPointer) -> None:
    assert rms_norm(library, torch.randn(3, 8), None, torch.empty(3, 8), torch.empty(3, 1)) == PARAM_NULLPTR
    assert "aclnnRmsNorm: gamma must not be null" in recent_error().decode()


@pytest.mark.parametrize(
    ("function", "parameter"),
    [("FlashAttentionScore", "inputLayout"), ("FlashAttentionScore", "attentionOut"), ("ChunkGatedDeltaRule", "out")],
)
def test_required_attrs_and_outputs_must_not_be_null(function: str, parameter: str) -> None:
    values = {"aclTensor": torch.zeros(4, 4), "string": "BSH", "aclIntArray": [1], "bool": False}
    parameters = functions()[function].parameters
    without = functions()[function].absent
    arguments = [None if p.name in (parameter, *without) else values.get(p.type, 1) for p in parameters]
    with pytest.raises(NullParameterError, match=f"aclnn{function}: {parameter} must not be null"):
        prepare(function, arguments)


#: Lists of tensors that CANN's documents call optional.
OPTIONAL_LISTS = {
    "bias",
    "scale",
    "offset",
    "antiquantScale",
    "antiquantOffset",
    "perTokenScale",
    "weightAssistMatrix",
    "hx",
}
LISTS = [
    (name, p.name)
    for name, function in functions().items()
    for p in function.parameters
    if p.type == "aclTensorList" and p.name not in OPTIONAL_LISTS | {*function.absent}
    if not any(o.name == p.name and o.optional for o in function.outputs)
]


@pytest.mark.parametrize(("function", "parameter"), LISTS, ids=".".join)
def test_required_lists_must_not_be_null(function: str, parameter: str) -> None:
    tensor = torch.zeros(4, 4)
    values = {"aclTensor": tensor, "aclTensorList": [tensor], "string": "BSH", "aclIntArray": [1], "bool": False}
    entry = functions()[function]
    arguments = [None if p.name in (parameter, *entry.absent) else values.get(p.type, 1) for p in entry.parameters]
    with pytest.raises(NullParameterError, match=f"{entry.symbol}: {parameter} must not be null"):
        prepare(function, arguments)
    arguments[[p.name for p in entry.parameters].index(parameter)] = []
    with pytest.raises(HostRuntimeError, match=entry.symbol):
        prepare(function, arguments)


@pytest.mark.parametrize("function", [f for f in functions().values() if f.is_exported], ids=lambda f: f.name)
def test_a_call_of_nulls_is_refused(library: ctypes.CDLL, function: Function) -> None:
    numbers = {"double": ctypes.c_double(0), "float": ctypes.c_float(0), "bool": ctypes.c_bool(False)}
    pointers = {*C_TYPES} - {*numbers, "int64_t", "int32_t", "int8_t", "aclDataType"}
    arguments = [None if p.type in pointers else numbers.get(p.type, ctypes.c_int64(0)) for p in function.parameters]
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    first_phase = getattr(library, f"{function.symbol}GetWorkspaceSize")
    assert first_phase(*arguments, ctypes.byref(size), ctypes.byref(executor)) in (PARAM_NULLPTR, PARAM_INVALID)
    assert first_phase(*arguments, None, ctypes.byref(executor)) == PARAM_NULLPTR
    assert first_phase(*arguments, ctypes.byref(size), None) == PARAM_NULLPTR


def test_a_kernel_that_computes_too_little_leaves_no_output_as_it_was() -> None:
    kernel = find_host_kernel("RmsNorm")
    assert kernel is not None
    short = _Bound.of(functions()["RmsNorm"], replace(kernel, function=lambda x, gamma, **attrs: x))
    x, y = torch.ones(2, 4), torch.full((2, 4), 7.0)
    with pytest.raises(HostRuntimeError, match="aclnnRmsNorm: the kernel computes no rstd"):
        short.prepared([x, torch.ones(4), 1e-6, y, torch.ones(2, 1)])()
    assert y.eq(7).all()


@pytest.mark.parametrize("function", functions().values(), ids=functions())
def test_an_entry_of_the_table_suits_its_kernel(library: ctypes.CDLL, function: Function) -> None:
    for name in ("GetWorkspaceSize", "") if function.is_exported else ():
        assert hasattr(library, f"aclnn{function.name}{name}"), "make setup builds the table's functions"
    kernel = find_host_kernel(function.op_type)
    assert kernel is not None, f"no kernel for {function.op_type}"
    assert len(function.inputs) <= len(kernel.inputs)
    given = dict(zip(kernel.inputs, function.inputs, strict=False))
    assert kernel.required_inputs <= set(given)
    assert kernel.takes_any_attr or set(function.attrs) <= kernel.attrs | kernel.ignored_attrs
    assert kernel.required_attrs <= set(function.attrs)
    kinds = {p.name: p.type for p in function.parameters}
    for name, expression in given.items():
        if isinstance(expression, ast.Name):
            assert kinds[expression.id].startswith("acl"), f"input {name} is given {expression.id}, no object of ACL"
    for expression in function.attrs.values():
        if isinstance(expression, ast.Name):
            assert kinds[expression.id] not in ("aclTensor", "aclTensorList")
    assert all(kinds[o.name] in ("aclTensor", "aclTensorList") for o in function.outputs if o.name is not None)


def test_every_parameter_of_a_function_is_used() -> None:
    """What a table leaves out would be ignored, whatever a caller says with it."""
    unused = {
        f"{function.name}.{p.name}"
        for function in functions().values()
        for p in function.parameters
        if p.name not in _used(function)
    }
    assert unused == set()


def _used(function: Function) -> Iterator[str]:
    for expression in (*function.inputs, *function.attrs.values()):
        yield from (node.id for node in ast.walk(expression) if isinstance(node, ast.Name))
    yield from (o.name for o in function.outputs if o.name is not None)
    yield from function.absent


def test_the_declared_types_are_those_of_c() -> None:
    [line] = [line for line in source().splitlines() if line.startswith("ACLNN aclnnRmsNormGetWorkspaceSize(")]
    assert line == (
        "ACLNN aclnnRmsNormGetWorkspaceSize(const aclTensor* x, const aclTensor* gamma, double epsilon, "
        "const aclTensor* y, "
        "const aclTensor* rstd, uint64_t* workspace_size_, aclOpExecutor** executor_) {"
    )


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("aclnnX(aclTensor x, aclTensor y) Ceil(x) -> y", "not of the form"),
        ("aclnnX(tensor x, aclTensor y)\n  = Ceil(x) -> y", "'tensor x' is not a parameter"),
        ("aclnnX(aclTensor x, aclTensor y)\n  = Ceil(z) -> y", "has no parameter z"),
        ("aclnnX(aclTensor x, aclTensor y)\n  = Ceil(x) -> out", "has no parameter out"),
        ("atb::X(aclTensor x, aclTensor y)\n  = Ceil(x) -> out", "atb::X has no parameter out"),
    ],
)
def test_a_malformed_table_is_refused(entry: str, text: str) -> None:
    with pytest.raises(TableError, match=text):
        list(read(entry))


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_dynamo_compiles_nothing_of_the_host() -> None:
    """A program that is compiled and calls an operator by way of C, as extensions do: the host's functions are no
    part of it."""
    swiglu = torch._C._jit_get_operation("npu::npu_swiglu")[0]  # a function of C, which Dynamo does not look into
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    x = torch.arange(-16.0, 16.0).reshape(4, 8).npu()
    torch._dynamo.reset()
    result = torch.compile(lambda x: swiglu(x * 2, -1) + 1, backend=backend)(x)
    torch.testing.assert_close(result, swiglu(x * 2, -1) + 1)
    assert len(graphs) == 2, "one before the call, and one after it"

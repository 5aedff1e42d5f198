"""What torch_npu's wheel itself computes otherwise in graphs (docs/wheel-faults.md): each test says so, and fails
once it is fixed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from operator_modes import ASCEND_950, run
from torch.autograd import forward_ad

T = torch.Tensor
pytestmark = pytest.mark.skipif(not torch_npu.__version__.startswith("2.13."), reason="they are torch_npu 2.13's")


def in_ge(function: Callable[..., Any], *args: T) -> Any:
    return run("ge", function, args)


def test_group_norm_silu_has_another_default_in_ge() -> None:
    """1e-5, which is the schema's default, is left away in the graph; the converter's default is 1e-4."""
    x, gamma, beta = torch.randn(2, 6, 5) / 30, torch.ones(6), torch.zeros(6)
    y = in_ge(lambda x, g, b: torch_npu.npu_group_norm_silu(x, g, b, 3, 1e-5)[0], x, gamma, beta).cpu()
    right, other = (F.silu(F.group_norm(x, 3, gamma, beta, eps)) for eps in (1e-5, 1e-4))
    torch.testing.assert_close(y, other, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(y, right, rtol=1e-3)


def test_fusion_attention_drops_pse_in_ge() -> None:
    q, k, v = (torch.randn(1, 2, n, 16) for n in (3, 5, 5))
    pse = torch.randn(1, 2, 3, 5)
    y = in_ge(lambda q, k, v, p: torch_npu.npu_fusion_attention(q, k, v, 2, "BNSD", pse=p, scale=0.25)[0], q, k, v, pse)
    torch.testing.assert_close(y.cpu(), F.scaled_dot_product_attention(q, k, v, scale=0.25), rtol=1e-4, atol=1e-5)


def test_rotary_mul_drops_its_mode_in_ge() -> None:
    x, cos, sin = torch.randn(2, 5, 3, 64), torch.randn(1, 5, 1, 64), torch.randn(1, 5, 1, 64)
    y = in_ge(lambda x, c, s: torch_npu.npu_rotary_mul(x, c, s, "interleave"), x, cos, sin).cpu()
    low, high = x.chunk(2, -1)
    torch.testing.assert_close(y, x * cos + torch.cat([-high, low], -1) * sin, rtol=1e-4, atol=1e-5)  # halves


def test_add_rms_norm_v2_returns_a_row_in_npugraph_ex() -> None:
    """The pass that makes it work in place takes the first row of its one output for the first of three outputs."""
    a, b, gamma = torch.randn(3, 8).half(), torch.randn(3, 8).half(), torch.rand(8).half()
    rstd = run("npugraph_ex", lambda a, b, g: torch_npu.npu_add_rms_norm_v2(a, b, g), (a, b, gamma))
    assert rstd.shape == (1,)
    assert torch_npu.npu_add_rms_norm_v2(a.npu(), b.npu(), gamma.npu()).shape == (3, 1)


@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.filterwarnings("ignore")
def test_a_symbolic_float_is_truncated_for_gradients_in_dynamic_ge_graphs(scale: float | None) -> None:
    """The scale of attention depends on a size, is kept for the gradient, and becomes 0, which the engine refuses."""
    import torchair

    torch._dynamo.reset()
    attention = torch.compile(
        lambda x: F.scaled_dot_product_attention(x, x, x, scale=scale),
        backend=torchair.get_npu_backend(),
        dynamic=True,
    )
    x = torch.randn(1, 1, 3, 2)
    on_npu = x.npu().requires_grad_()
    y = attention(on_npu)
    if scale is None:
        with pytest.raises(
            RuntimeError, match="input 0 is a number, which the graph declares as float32 and is given as int64"
        ):
            y.sum().backward()
        return
    y.sum().backward()
    x.requires_grad_()
    F.scaled_dot_product_attention(x, x, x, scale=scale).sum().backward()
    assert on_npu.grad is not None
    torch.testing.assert_close(on_npu.grad.cpu(), x.grad)


def test_parts_of_an_input_are_views_of_it_at_the_first_call_of_a_capture() -> None:
    def parts(x: T) -> tuple[T, ...]:
        return torch.split(x, 2)

    torch._dynamo.reset()
    function = torch.compile(parts, backend="npugraph_ex", dynamic=False)
    shared = []
    for _ in range(2):
        x = torch.randn(4, 3).npu().requires_grad_()
        shared.append([part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for part in function(x)])
    assert shared == [[True, True], [False, False]]


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_an_expanded_view_of_an_output_has_the_strides_of_a_copy_in_dynamic_ge_graphs(dynamic: bool) -> None:
    """GE returns the view in memory of its own, and autograd makes the alias of the other output by its strides."""
    import torchair

    def both(x: T) -> tuple[T, T]:
        y = torch.sin(x)
        return y, y.expand(2, *y.shape)

    torch._dynamo.reset()
    function = torch.compile(both, backend=torchair.get_npu_backend(), dynamic=dynamic)
    x = torch.randn(3, 4)
    if dynamic:
        with pytest.raises(RuntimeError, match=r"setStorage: sizes \[2, 3, 4\].* are out of bounds"):
            function(x.npu().requires_grad_())
        return
    for found, expected in zip(function(x.npu().requires_grad_()), both(x), strict=True):
        torch.testing.assert_close(found.detach().cpu(), expected)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_a_permuted_view_of_an_output_has_other_elements_in_dynamic_ge_graphs(dynamic: bool) -> None:
    import torchair

    def both(x: T) -> tuple[T, T]:
        y = torch.matmul(x, x.mT)
        return y.permute(2, 0, 1), y[:1]

    torch._dynamo.reset()
    x = torch.arange(24.0).reshape(2, 4, 3)
    found, _ = torch.compile(both, backend=torchair.get_npu_backend(), dynamic=dynamic)(x.npu().requires_grad_())
    assert torch.equal(found.detach().cpu(), both(x)[0]) is not dynamic


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_writes_through_as_strided_have_too_few_strides_in_dynamic_ge_graphs(dynamic: bool) -> None:
    import torchair

    def scattered(x: T, part: T) -> T:
        return torch.as_strided_scatter(x, part, part.shape, (x.shape[1], 1), 0)

    torch._dynamo.reset()
    function = torch.compile(scattered, backend=torchair.get_npu_backend(), dynamic=dynamic)
    x, part = torch.zeros(4, 3), torch.ones(2, 3)
    if dynamic:
        with pytest.raises(RuntimeError, match=r"size \[2, 3\] and stride \[1\] differ in length"):
            function(x.npu(), part.npu())
        return
    torch.testing.assert_close(function(x.npu(), part.npu()).cpu(), scattered(x, part))


@pytest.mark.parametrize("way", ["chunk", "slice", "whole"])
@pytest.mark.filterwarnings("ignore")
def test_as_strided_of_a_view_takes_pytorchs_strides_in_ge(way: str) -> None:
    """GE has a view contiguously in memory of its own; the strides are those of the tensor that it is a view of."""
    import torchair

    def first(x: T) -> T:
        y = {"chunk": torch.chunk(x, 2, -1)[1], "slice": x[:, 2:], "whole": x}[way]
        return y.as_strided((2,), (y.stride(0),), 0)

    torch._dynamo.reset()
    function = torch.compile(first, backend=torchair.get_npu_backend(), dynamic=False)
    x = torch.arange(8.0).reshape(2, 4)
    if way == "whole":
        assert function(x.npu()).tolist() == [0, 4]
        return
    with pytest.raises(RuntimeError, match=r"size \[2\], stride \[4\] and offset 0 reach outside of 4 elements"):
        function(x.npu())


@pytest.mark.filterwarnings("ignore")
def test_as_strided_of_an_input_with_an_offset_counts_from_the_input_in_ge() -> None:
    """PyTorch counts from the start of the storage."""
    import torchair

    def first(x: T) -> T:
        return x.as_strided((2,), (1,), 0) + 0.5

    torch._dynamo.reset()
    x = torch.arange(8.0).reshape(2, 4).npu()[1]
    assert first(x).tolist() == [0.5, 1.5]
    assert torch.compile(first, backend=torchair.get_npu_backend(), dynamic=False)(x).tolist() == [4.5, 5.5]


#: Programs whose gradient the wheel cannot compile with dynamic sizes, and its message.
REFUSED_GRADIENTS: dict[str, tuple[Callable[[T], T], str]] = {
    "slice": (lambda x: torch.sin(x[::2]), "value cannot be converted to type int32 without overflow"),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[-1:]), "Input v should not be a Tensor object"),
}


@pytest.mark.parametrize("name", REFUSED_GRADIENTS)
@pytest.mark.filterwarnings("ignore")
def test_gradients_that_dynamic_graphs_of_ge_refuse(name: str) -> None:
    import torchair

    program, says = REFUSED_GRADIENTS[name]
    torch._dynamo.reset()
    compiled = torch.compile(program, backend=torchair.get_npu_backend(), dynamic=True)
    with pytest.raises(Exception, match=says):
        compiled(torch.ones(4, 6, device="npu", requires_grad=True)).sum().backward()


@pytest.mark.parametrize("dim", [1, -2])
@pytest.mark.filterwarnings("ignore")
def test_the_gradient_of_a_slice_counted_from_the_end_has_another_size_in_dynamic_ge_graphs(dim: int) -> None:
    import torchair

    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.narrow(dim, 0, 1) * 2, backend=torchair.get_npu_backend(), dynamic=True)
    x = torch.ones(3, 4, 5, device="npu", requires_grad=True)
    y = compiled(x).sum()
    if dim < 0:
        with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[3, 9, 5\]"):
            y.backward()
        return
    y.backward()
    assert x.grad is not None
    assert x.grad.sum().item() == 3 * 1 * 5 * 2


@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_a_part_stands_for_its_base_in_captured_gradients_of_writes(inplace: bool) -> None:
    """The pass that makes operators write in place removes a gradient's slice_scatter and hands its part on."""

    def doubled(x: T) -> T:
        y = F.gelu(x, approximate="tanh")
        y[:1].mul_(2)
        return torch.sin(y)

    torch._dynamo.reset()
    captured = torch.compile(doubled, backend="npugraph_ex", options={"inplace_pass": inplace})
    x = torch.tensor([2.5, 3.0, 1.25])
    (right,) = torch.autograd.grad(doubled(given := x.clone().requires_grad_()).sum(), given)
    (found,) = torch.autograd.grad(captured(given := x.npu().requires_grad_()).sum(), given)
    assert torch.allclose(found.cpu(), right, rtol=1e-4) is not inplace


def test_gelu_drops_its_approximation_in_ge() -> None:
    x = torch.linspace(-3, 3, 25)
    y = in_ge(lambda x: F.gelu(x, approximate="tanh"), x).cpu()
    right = F.gelu(x, approximate="tanh")
    torch.testing.assert_close(y, F.gelu(x), rtol=1e-5, atol=1e-6)
    assert not torch.allclose(y, right, rtol=1e-5, atol=1e-6)


def test_npugraph_ex_runs_constants_of_gradients_outside_of_the_fake_mode() -> None:
    x = torch.ones(3).npu().requires_grad_()
    torch._dynamo.reset()
    y = torch.compile(lambda x: torch.where(x > 0, x, x), backend="npugraph_ex", dynamic=False)(x)
    with pytest.raises(Exception, match="convert all Tensors to FakeTensors first"):
        y.sum().backward()


def test_view_optimize_takes_transposed_results_for_contiguous_in_ge() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    y = in_ge(lambda x: (x.t() + 1).t().view(-1), x).cpu()
    assert y.tolist() == (x.t() + 1).reshape(-1).tolist()
    assert y.tolist() != (x.t() + 1).t().reshape(-1).tolist()


def test_scatter_pa_cache_is_taken_for_an_operator_with_out_in_graphs() -> None:
    """Its cache is a keyword that is written and returned, as ``out=`` is: functionalization hands it an empty
    tensor."""
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._inductor.fx_passes.post_grad import decompose_auto_functionalized

    seen: list[str] = []

    def look(module: torch.fx.GraphModule, _: Any) -> Any:
        decompose_auto_functionalized(module.graph)
        seen.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return module

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Any:
        return aot_module_simplified(module, inputs, fw_compiler=look)

    cache = torch.zeros(3, 4, 2, 16).half().npu()
    arguments = torch.randn(1, 2, 16).half().npu(), torch.tensor([5], dtype=torch.int32).npu()
    torch.ops.npu.npu_scatter_pa_cache(*arguments, key_cache=cache.clone())
    torch._dynamo.reset()
    torch.compile(lambda k, s, c: torch.ops.npu.npu_scatter_pa_cache(k, s, key_cache=c), backend=backend)(
        *arguments, cache
    )
    # Rightly it would be a copy of the cache, which is written then.
    assert seen[:2] == ["aten.empty_strided.default", "npu.npu_scatter_pa_cache.value"]


#: A call, the shapes of its float16 tensors, and what the wheel says in GE.
RAISING: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str]] = {
    "npu_moe_gating_top_k_softmax_v2": (
        lambda x: torch_npu.npu_moe_gating_top_k_softmax_v2(x, k=3, renorm=0, output_softmax=True)[0],
        [(5, 8)],
        "unexpected keyword argument 'renorm'",
    ),
}


@pytest.mark.parametrize("name", RAISING)
def test_converters_that_raise(name: str) -> None:
    function, shapes, message = RAISING[name]
    tensors = [torch.randn(shape).half() for shape in shapes]
    function(*(tensor.npu() for tensor in tensors))  # eager takes it
    with pytest.raises(Exception, match=message):
        in_ge(function, *tensors)


@ASCEND_950
def test_quant_conv2d_gives_ge_the_number_of_protobuf() -> None:
    tensors = [torch.ones(1, 2, 5, 5).to(torch.int8), torch.ones(3, 2, 2, 2).to(torch.int8), torch.ones(3).long()]

    def convolution(x: T, w: T, scale: T) -> T:
        return torch_npu.npu_quant_conv2d(x, w, scale, output_dtype=torch.float16)

    convolution(*(tensor.npu() for tensor in tensors))  # eager takes it
    with pytest.raises(Exception, match="the result is dtype 2"):
        in_ge(convolution, *tensors)


def test_the_gradient_of_a_dilated_convolution_is_that_of_a_transposed_one() -> None:
    grad, x, w = (torch.randn(shape).npu() for shape in ((2, 4, 6, 8), (2, 3, 8, 9), (4, 3, 3, 2)))
    # Its padding of the output is not set either: what lies there may be refused first.
    with pytest.raises(RuntimeError, match="Given transposed=1|output_padding"):
        torch.ops.npu.slow_conv_dilated2d_backward(grad, x, w, [3, 2], [1, 1], [0, 0], [1, 1], [True] * 3)


def weight_and_gradient() -> torch.nn.Parameter:
    weight = torch.nn.Parameter(torch.ones(2).npu())
    weight.grad = torch.ones_like(weight)
    return weight


def test_the_scaler_of_the_wheel_calls_fused_optimizers_as_of_old() -> None:
    """PyTorch's scaler does not pass itself to them any more."""
    for scaler, calls in ((torch.npu.amp.GradScaler(), False), (torch.amp.GradScaler("npu"), True)):
        optimizer = torch.optim.AdamW([weight_and_gradient()], fused=True)
        scaler.scale(torch.ones(1).npu())
        if calls:
            scaler.step(optimizer)
            continue
        with pytest.raises(TypeError, match="unexpected keyword argument 'grad_scaler'"):
            scaler.step(optimizer)


@pytest.mark.parametrize("name", ["NpuFusedAdamW", "NpuFusedSGD"])
def test_closures_of_fused_optimizers_run_without_gradients(name: str) -> None:
    weight = weight_and_gradient()
    optimizer = getattr(torch_npu.optim, name)([weight], lr=0.1)
    with pytest.raises(RuntimeError, match="does not require grad"):
        optimizer.step(lambda: (weight * 2).sum().backward())


@pytest.mark.filterwarnings("ignore:torch_npu.npu_rotated")
def test_rotated_iou_loses_a_threshold() -> None:
    box = torch.tensor([[[1.0, 1, 2, 2, 0]]]).npu()
    assert torch_npu.npu_rotated_iou(box, box, v_threshold=0.5).item() == 1
    with pytest.raises(RuntimeError, match=r"thresholds \[0.0, 0.0, 0.5\]"):
        torch_npu.npu_rotated_iou(box, box, e_threshold=0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:triton-ascend is not installed")
@pytest.mark.skipif(find_spec("triton") is not None, reason="with triton-ascend there is one")
def test_inductor_has_no_back_end() -> None:
    torch._dynamo.reset()
    with pytest.raises(Exception, match="Device npu not supported"):
        torch.compile(lambda x: x.sin() + 1)(torch.ones(3).npu())


def captured(module: torch.nn.Module) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(module, backend="npugraph_ex", dynamic=False)


def test_hooks_of_outputs_of_a_captured_graph_run_once() -> None:
    """Every call gives the same tensor object, and autograd sees the first registration of a hook on one."""
    run, called = captured(torch.nn.Linear(4, 4).npu()), []
    for _ in range(3):
        y = run(torch.rand(2, 4).npu())
        y.register_hook(lambda gradient: called.append(gradient))
        y.sum().backward()
    assert len(called) == 1


@pytest.mark.filterwarnings("ignore:Because acl graph fixes memory addresses")
def test_views_of_a_parameter_that_moved_are_left_where_it_was() -> None:
    """Of the second address on, views that a captured graph gives have the address, not the parameter's storage: what
    FSDP2 does with
    parameters between forward and backward, they do not see."""

    def move(parameter: T) -> T:
        values, storage = parameter.detach().clone(), parameter.untyped_storage()
        size = storage.nbytes()
        storage.resize_(0)
        behind = torch.zeros(size // 4, device="npu")  # where it was
        storage.resize_(size)
        parameter.data.copy_(values)
        return behind

    module = torch.nn.Linear(128, 128, bias=False).npu()
    run, right, kept = captured(module), [], []
    for _ in range(3):
        x = torch.rand(8, 128).npu().requires_grad_()
        y = run(x)
        kept.append(move(module.weight))
        y.sum().backward()
        right.append(torch.allclose(x.grad, module.weight.sum(0).expand_as(x), atol=1e-5))
    assert right == [True, False, False]


def test_as_strided_without_dimensions_is_refused_in_ge() -> None:
    """The converter asks for the last of the sizes."""
    with pytest.raises(Exception, match="list index out of range"):
        in_ge(lambda x: torch.as_strided(x, [], [], 0) + 1, torch.ones(3))


def test_operators_of_the_wheel_pass_tangents_by() -> None:
    """Their Autograd kernels ask who requires grad, and not who has a tangent."""
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.rand(4, 8).npu(), torch.ones(4, 8).npu())
        for y in (torch_npu.npu_swiglu(x), torch_npu.npu_fast_gelu(x)):
            assert forward_ad.unpack_dual(y).tangent is None


@pytest.mark.filterwarnings("ignore:aten..true_divide. an autograd kernel was not registered")
def test_true_divide_on_the_cpu_is_not_differentiated_by_transforms() -> None:
    """The wheel registers a CPU kernel of an operator that PyTorch composes, and differentiates by what it is
    composed of."""
    for device, expected in (("cpu", [0, 0]), ("npu", [0.5, 0.5])):
        x, two = torch.ones(2, device=device), torch.full((2,), 2.0, device=device)
        assert torch.func.grad(lambda x, y: torch.true_divide(x, y).sum())(x, two).tolist() == expected
        assert torch.func.jvp(lambda x, y=two: torch.true_divide(x, y), (x,), (x,))[1].tolist() == expected


def _captured(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend="npugraph_ex", **options)


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="unused-input-grows of docs/wheel-faults.md")
def test_the_size_of_an_input_that_a_capture_does_not_read_may_change() -> None:
    def unread(x: T, mask: T) -> T:
        mask.view(mask.shape)
        return torch.sin(x)

    function = _captured(unread, dynamic=True)
    for size in (2, 5):
        function(torch.ones(7).npu(), torch.ones(3, size).npu())


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.xfail(strict=True, reason="as-strided-of-a-removed-copy")),
        {"remove_noop_ops": False},
    ],
    ids=["as it is", "with copies"],
)
def test_as_strided_views_the_memory_of_a_copy_in_a_capture(options: dict[str, Any]) -> None:
    def first(x: T) -> T:
        part = x[1:]
        part.add_(1)
        return part.clone().as_strided((2,), (1,), 0)

    x = torch.arange(4.0)
    found = _captured(first, dynamic=False, options=options)(x.npu()).cpu()
    torch.testing.assert_close(found, first(x))


@pytest.mark.xfail(strict=True, reason="symbolic-size-of-one of docs/wheel-faults.md")
def test_a_dimension_that_a_guard_says_is_one_is_squeezed_in_dynamic_ge_graphs() -> None:
    import torchair

    def last(x: T) -> T:
        return torch.tensor_split(x, 3, -1)[2].squeeze() + x[:, 0]

    torch._dynamo.reset()
    x = torch.arange(12.0).reshape(4, 3)
    found = torch.compile(last, backend=torchair.get_npu_backend(), dynamic=True)(x.npu())
    torch.testing.assert_close(found.cpu(), last(x))


@pytest.mark.xfail(strict=True, reason="as-strided-of-a-view of docs/wheel-faults.md")
def test_as_strided_of_an_input_with_strides_views_its_memory_in_a_capture() -> None:
    def column(x: T) -> T:
        return x.as_strided((3,), (1,), 0) + 0.5

    x = torch.arange(12.0).reshape(4, 3)
    torch.testing.assert_close(_captured(column)(x.npu().t()).cpu(), column(x.t()))


@pytest.mark.xfail(strict=True, reason="EXEC_NPU_CMD_EXT of docs/wheel-faults.md")
def test_the_macro_of_extensions_looks_at_the_first_status() -> None:
    place = Path(torch_npu.__file__).parent / "include/third_party/op-plugin/op_plugin/utils/op_api_common_base.h"
    _, _, macro = place.read_text().partition("#define EXEC_NPU_CMD_V1_EXT")
    assert macro.count("workspace_status") > macro.count("auto workspace_status = call(") == 2


@pytest.mark.xfail(strict=True, reason="gradients of operators of torch.library in docs/wheel-faults.md")
def test_a_graph_refuses_a_gradient_of_an_operator_that_has_none() -> None:
    library = torch.library.Library("wheel_faults_gradient", "DEF")
    library.define("plain(Tensor x) -> Tensor")
    library.impl("plain", lambda x: -x.detach(), "CompositeExplicitAutograd")
    torch.library.register_fake("wheel_faults_gradient::plain", torch.empty_like, lib=library)
    x = torch.ones(3, device="npu", requires_grad=True)
    try:
        with pytest.raises(RuntimeError, match="gradient|autograd"):
            _captured(lambda x: torch.ops.wheel_faults_gradient.plain(x) + x)(x).sum().backward()
    finally:
        library._destroy()


@pytest.mark.xfail(strict=True, reason="layouts-of-inputs of docs/wheel-faults.md")
def test_a_kernel_that_goes_by_the_address_gets_an_input_with_strides_in_a_capture() -> None:
    library = torch.library.Library("wheel_faults_layouts", "DEF")
    library.define("flat(Tensor x) -> Tensor")
    library.impl("flat", lambda x: x.as_strided((x.numel(),), (1,)).clone(), "CompositeExplicitAutograd")
    torch.library.register_fake("wheel_faults_layouts::flat", lambda x: x.new_empty(x.numel()), lib=library)
    x = torch.arange(12.0).reshape(4, 3)
    try:
        found = _captured(lambda x: torch.ops.wheel_faults_layouts.flat(x))(x.npu().t())
        torch.testing.assert_close(found.cpu(), x.flatten())
    finally:
        library._destroy()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.xfail(strict=True, reason="empty-output of docs/wheel-faults.md")),
        {"reuse_graph_pool_in_same_fx": False},
    ],
)
def test_a_result_without_elements_is_captured_for_two_sizes(options: dict[str, Any]) -> None:
    compiled = _captured(torch.sin, dynamic=True, options=options)
    for rows in (2, 3):
        assert compiled(torch.ones(rows, 0).npu()).shape == (rows, 0)


@pytest.mark.xfail(strict=True, raises=NameError, reason="maximum-in-gradient of docs/wheel-faults.md")
def test_a_gradient_of_a_slice_with_a_step_has_a_size_in_a_capture() -> None:
    compiled = _captured(lambda x: x[:, ::2] - 1, dynamic=True)
    compiled(torch.ones(4, 3).npu().requires_grad_()).sum().backward()


@pytest.mark.xfail(strict=True, reason="bits-of-inputs of docs/wheel-faults.md")
@pytest.mark.parametrize("lazily", [torch.conj, torch._neg_view])
def test_an_input_with_the_conjugate_or_negative_bit_is_read_as_such_in_ge_graphs(lazily: Callable[[T], T]) -> None:
    import torchair

    torch._dynamo.reset()
    x = torch.complex(torch.ones(2), torch.ones(2)) if lazily is torch.conj else torch.ones(2)
    found = torch.compile(lambda x: x + 1, backend=torchair.get_npu_backend())(lazily(x.npu()))
    torch.testing.assert_close(found.cpu(), (lazily(x) + 1).resolve_conj().resolve_neg())


@pytest.mark.xfail(strict=True, reason="write-to-overlapping-input of docs/wheel-faults.md")
def test_a_row_of_an_input_whose_rows_share_memory_is_written_in_ge_graphs() -> None:
    import torchair

    def write(x: T) -> T:
        x[2] += 1
        return x + 0

    torch._dynamo.reset()
    windows = torch.arange(9.0).npu().as_strided((4, 6), (1, 1))
    expected = write(torch.arange(9.0).as_strided((4, 6), (1, 1)))
    found = torch.compile(write, backend=torchair.get_npu_backend(), dynamic=False)(windows)
    torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.xfail(strict=True, reason="view-of-first-input of docs/wheel-faults.md")
@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.detach()])
def test_a_capture_that_returns_a_view_of_an_input_leaves_earlier_inputs_alone(view: Callable[[T], T]) -> None:
    first, second = torch.zeros(3).npu(), torch.ones(3).npu()
    compiled = _captured(lambda x: (x * 2, view(x)))
    compiled(first)
    compiled(second)
    assert first.tolist() == [0, 0, 0]


@pytest.mark.xfail(strict=True, reason="view-of-first-input of docs/wheel-faults.md")
def test_training_in_a_capture_leaves_earlier_inputs_alone() -> None:
    w, first = torch.ones(3, 3).npu().requires_grad_(), torch.zeros(3, 3).npu()
    compiled = _captured(lambda x: x @ w)
    for x in (first, torch.ones(3, 3).npu()):
        compiled(x).sum().backward()
    assert first.sum() == 0


@pytest.mark.xfail(strict=True, reason="strided-input-in-gradient of docs/wheel-faults.md")
def test_training_in_a_capture_takes_an_input_with_strides() -> None:
    x = torch.ones(5, 2).npu().t().detach().requires_grad_()
    copied = _captured(lambda x: x.clone() * x.clone())
    copied(x).sum().backward()
    assert x.grad is not None


@pytest.mark.xfail(strict=True, reason="result-in-a-cat of docs/wheel-faults.md")
def test_a_result_that_is_concatenated_is_apart_from_the_concatenation_in_a_capture() -> None:
    def both(x: T) -> tuple[T, T]:
        part = torch.sin(x)
        return part, torch.cat([part, part])

    part, whole = _captured(both)(torch.ones(2).npu())
    part.zero_()
    assert whole.count_nonzero() == 4


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="in-place-of-another-rank of docs/wheel-faults.md")
def test_a_sum_of_two_ranks_with_as_many_elements_in_a_capture() -> None:
    assert _captured(lambda x, y: torch.sin(x) + y)(torch.ones(3).npu(), torch.ones(1, 3).npu()).shape == (1, 3)


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="in-place-of-what-is-read of docs/wheel-faults.md")
def test_an_operator_that_reads_two_parts_of_one_value_in_a_capture() -> None:
    def add(x: T) -> T:
        value = torch.sin(x)
        return torch.index_add(value[:2], 0, torch.zeros_like(value[:2], dtype=torch.int64), value[1:])

    assert _captured(add)(torch.zeros(3).npu()).tolist() == [0, 0]


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="overlapping-input-of-a-capture of docs/wheel-faults.md")
def test_an_expanded_input_of_which_a_view_is_returned_in_a_capture() -> None:
    compiled = _captured(lambda x: (x * 2, x.detach()))
    for value in (1.0, 2.0):
        compiled(torch.full((1, 3), value).npu().expand(4, 3))


@pytest.mark.xfail(strict=True, reason="the wheel's kernels of sparse tensors drop zeros (docs/wheel-faults.md)")
def test_a_mask_of_a_sparse_tensor_keeps_entries_of_zero() -> None:
    mask = torch.sparse_coo_tensor(torch.tensor([[0, 2], [1, 0]]), torch.tensor([1.0, 2.0]), (6, 2)).coalesce()
    assert torch.zeros(6, 2).npu().sparse_mask(mask.npu().coalesce())._nnz() == 2


def test_helpers_that_the_headers_declare_are_not_exported() -> None:
    libraries = sorted((Path(torch_npu.__file__).parent / "lib").glob("*.so"))
    command = ["nm", "-D", "--defined-only", *map(str, libraries)]
    exported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "OpPreparation27apply_tensor_without_format" in exported
    assert "OpPreparation12check_tensor" not in exported
    assert "15formatErrorCode" not in exported

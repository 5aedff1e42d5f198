"""``backward=`` is written where a Python autograd function is one operator in each direction."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from ascend_graph.adoption import AdoptionReport

from .conftest import Adopt, decision

CPP = """
at::Tensor scale(const at::Tensor &x, const at::Tensor &w, int64_t by)
{
    at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnScale, x, w, by, y); return y;
}
std::tuple<at::Tensor, at::Tensor> scale_grad(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &w, int64_t by)
{
    at::Tensor dx = at::empty_like(x); at::Tensor dw = at::empty_like(w);
    EXEC_NPU_CMD(aclnnScaleGrad, grad, x, w, by, dx, dw); return std::make_tuple(dx, dw);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); m.def("scale_grad", &scale_grad); }
"""
HEADER = """
aclnnStatus aclnnScaleGetWorkspaceSize(const aclTensor *x, const aclTensor *w, int64_t by, aclTensor *y,
    uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnScaleGradGetWorkspaceSize(const aclTensor *grad, const aclTensor *x, const aclTensor *w, int64_t by,
    aclTensor *dx, aclTensor *dw, uint64_t *workspaceSize, aclOpExecutor **executor);
"""
PYTHON = """
import torch
from torch.autograd import Function

import mine._C


class Scale(Function):
    @staticmethod
    def forward(ctx, by, x, w, unused=None):
{forward}

    @staticmethod
    def backward(ctx, grad):
{backward}
"""
FORWARD = """
if by < 0:
    raise ValueError("by")
n = x.size(0)
w = w.contiguous()
y = mine._C.scale(x, w, by)
ctx.save_for_backward(x, w)
ctx.by = by
ctx.n = n
return y
"""
BACKWARD = """
x, w = ctx.saved_tensors
dx, dw = mine._C.scale_grad(grad.contiguous(), x, w, ctx.by)
return None, dx, dw, None
"""


def indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.strip().splitlines())


def report_of(adopted: Adopt, forward: str = FORWARD, backward: str = BACKWARD) -> AdoptionReport:
    module = PYTHON.replace("{forward}", indented(forward)).replace("{backward}", indented(backward))
    files = {"csrc/aclnn_mine.h": HEADER, "csrc/ops.cpp": CPP, "mine/__init__.py": "", "mine/api.py": module}
    return adopted(files)


def backward_of(adopted: Adopt, forward: str = FORWARD, backward: str = BACKWARD) -> list[str]:
    return list(decision(report_of(adopted, forward, backward), "mine::scale").backward)


def test_a_gradient_that_is_one_operator_is_written(adopted: Adopt) -> None:
    assert backward_of(adopted) == [
        "def _scale_backward(ctx, grad_y, *, x, w, by):",
        "    gradient_0, gradient_1 = torch.ops.mine.scale_grad(grad_y.contiguous(), x, w, by)",
        "    return gradient_0, gradient_1, None",
    ]


def registered(text: str, namespace: str, extension: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a written module on an extension, with its operators in another namespace."""
    text = text.replace('"mine::', f'"{namespace}::').replace("ops.mine.", f"ops.{namespace}.")
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    monkeypatch.setitem(sys.modules, "mine._C", extension)
    exec(compile(text, "operators.py", "exec"), {"__file__": "operators.py", "__name__": "operators"})


def test_the_written_module_gives_the_operator_its_gradient(adopted: Adopt, monkeypatch: pytest.MonkeyPatch) -> None:
    extension = ModuleType("mine._C")
    extension.scale = lambda x, w, by: x * w * by  # type: ignore[attr-defined]
    extension.scale_grad = lambda grad, x, w, by: (grad * w * by, grad * x * by)  # type: ignore[attr-defined]
    registered(report_of(adopted).text, "adopted_gradients", extension, monkeypatch)
    x, w = (torch.tensor(values).npu().requires_grad_() for values in ([1.0, 2.0], [3.0, 4.0]))
    torch.ops.adopted_gradients.scale(x, w, 5).sum().backward()
    assert x.grad.tolist() == [15.0, 20.0]
    assert w.grad.tolist() == [5.0, 10.0]


def test_a_gradient_of_permuted_axes_is_that_of_the_operators_argument(
    adopted: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = ModuleType("mine._C")
    extension.scale = lambda x, w, by: x * w * by  # type: ignore[attr-defined]
    # What the autograd function returns is the gradient of its own argument, before its axes were permuted.
    extension.scale_grad = lambda grad, x, w, by: (  # type: ignore[attr-defined]
        (grad * w * by).permute(1, 0).contiguous(),
        grad * x * by,
    )
    forward, backward, *_ = FORMS["axes in another order"]
    registered(report_of(adopted, forward, backward).text, "adopted_permuted", extension, monkeypatch)
    x, w = (torch.arange(6.0).reshape(2, 3).npu().requires_grad_() for _ in range(2))
    torch.ops.adopted_permuted.scale(x, w, 2).sum().backward()
    assert x.grad.tolist() == (2 * w).tolist()
    assert w.grad.tolist() == (2 * x).tolist()


def test_sizes_and_values_that_the_forward_call_was_given_are_given_again(adopted: Adopt) -> None:
    forward = FORWARD.replace("ctx.by = by", "by = pair(by)\nctx.by = by").replace("(x, w, by)", "(x, w, pair(by))")
    swapped = forward.replace("y = mine._C.scale(x, w, pair(by))\n", "").replace(
        "ctx.by = by", "ctx.by = by\ny = mine._C.scale(x, w, ctx.by)"
    )
    assert backward_of(adopted, swapped)[1].endswith("(grad_y.contiguous(), x, w, by)")


def test_a_size_of_an_input_is_read_from_it(adopted: Adopt) -> None:
    lines = backward_of(adopted, backward=BACKWARD.replace("ctx.by", "ctx.n"))
    assert lines[1].endswith("(grad_y.contiguous(), x, w, x.size(0))")


UNCLEAR_FORWARD = [
    FORWARD.replace("return y", "return y * 2"),
    FORWARD.replace("y = mine._C.scale(x, w, by)", "y = mine._C.scale(x, w, by).half()"),
    FORWARD.replace("y = mine", "if by:\n    y = mine").replace("ctx.save", "else:\n    y = x\nctx.save"),
    FORWARD.replace("ctx.by = by", "ctx.by = int(x.max())"),
    FORWARD.replace("return y", "for _ in range(2):\n    y = y + 1\nreturn y"),
    FORWARD.replace("scale(x, w, by)", "scale(x * 2, w, by)"),
]
UNCLEAR_BACKWARD = [
    BACKWARD.replace("return None, dx, dw, None", "return None, dx * 2, dw, None"),
    BACKWARD.replace("return None", "dx.mul_(2)\nreturn None"),
    BACKWARD.replace("x, w = ", "w, x, z = "),
    BACKWARD.replace("return None, dx, dw, None", "return None, dx, dw"),
    BACKWARD.replace(
        "return None, dx", "if not ctx.needs_input_grad[1]:\n    return None, None, dw, None\nreturn None, dx"
    ),
]


@pytest.mark.parametrize("forward", UNCLEAR_FORWARD)
def test_a_forward_that_does_more_has_no_gradient_written(forward: str, adopted: Adopt) -> None:
    assert backward_of(adopted, forward) == []


@pytest.mark.parametrize("backward", UNCLEAR_BACKWARD)
def test_a_backward_that_does_more_is_not_written(backward: str, adopted: Adopt) -> None:
    assert backward_of(adopted, backward=backward) == []


FORMS = {
    "a cast": (
        FORWARD.replace("w = w.contiguous()", "w = w.type_as(x)"),
        BACKWARD,
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0, gradient_1, None",
    ),
    "a gradient in another dtype": (
        FORWARD,
        BACKWARD.replace("return None", "if grad.dtype == torch.half:\n    dx = dx.half()\nreturn None"),
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0, gradient_1, None",
    ),
    "a function that is held": (
        FORWARD.replace("y = mine._C.scale(", "func = mine._C.scale\ny = func("),
        BACKWARD,
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0, gradient_1, None",
    ),
    "axes in another order": (
        FORWARD.replace("scale(x,", "scale(x.permute(1, 0).contiguous(),").replace(
            "ctx.save_for_backward(x", "ctx.save_for_backward(x.permute(1, 0).contiguous()"
        ),
        BACKWARD,
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0.permute(1, 0), gradient_1, None",
    ),
    "a return before the call": (
        FORWARD.replace("n = x.size(0)", "if x.dim() > 2:\n    warn(x)\n    return x * w\nn = x.size(0)"),
        BACKWARD,
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0, gradient_1, None",
    ),
    "a value that is looked up again": (
        FORWARD.replace("scale(x, w, by)", "scale(x, w, {'a': 0, 'b': 1}.get(by, 0))"),
        BACKWARD.replace("dx, dw =", "modes = {'a': 0, 'b': 1}\ndx, dw =").replace("ctx.by", "modes.get(ctx.by, 0)"),
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0, gradient_1, None",
    ),
    "a tensor that is written to and not used": (
        FORWARD.replace("ctx.n = n", "ctx.n = n\nkept = torch.zeros_like(x)\nkept[1:] = x[1:]"),
        BACKWARD,
        "(grad_y.contiguous(), x, w, by)",
        "gradient_0, gradient_1, None",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_a_tensor_is_followed(form: str, adopted: Adopt) -> None:
    forward, backward, call, returned = FORMS[form]
    lines = backward_of(adopted, forward, backward)
    assert lines[1].endswith(call)
    assert lines[2] == f"    return {returned}"


NOT_FOLLOWED = [
    # A gradient of both arguments together.
    (FORWARD.replace("scale(x, w, by)", "scale(x, x, by)"), BACKWARD),
    # A new tensor that is written to, and then used.
    (
        FORWARD.replace(
            "ctx.save_for_backward(x, w)", "k = torch.zeros_like(x)\nk[0] = 1\nctx.save_for_backward(k, w)"
        ),
        BACKWARD,
    ),
    (
        FORWARD.replace(
            "ctx.save_for_backward(x, w)", "k = torch.zeros_like(x)\nn = fill(k)\nctx.save_for_backward(k, w)"
        ),
        BACKWARD,
    ),
    # Two names of one new tensor.
    (
        FORWARD.replace(
            "ctx.save_for_backward(x, w)", "k = torch.zeros_like(x)\no = k\no[0] = 1\nctx.save_for_backward(k, w)"
        ),
        BACKWARD,
    ),
    # A return after the call: the gradient is that of another result.
    (FORWARD.replace("return y", "if by:\n    return x\nreturn y"), BACKWARD),
    # A return in another branch: the one that goes on has changed what is read.
    (FORWARD.replace("n = x.size(0)", "if by:\n    return x\nelse:\n    w = w + 1\nn = x.size(0)"), BACKWARD),
    # Values from two tables.
    (
        FORWARD.replace("scale(x, w, by)", "scale(x, w, {'a': 0, 'b': 1}.get(by, 0))"),
        BACKWARD.replace("ctx.by", "{'a': 1, 'b': 0}.get(ctx.by, 0)"),
    ),
    # Axes in an order that is computed.
    (FORWARD.replace("scale(x,", "scale(x.permute(by, 0),"), BACKWARD),
]


@pytest.mark.parametrize(("forward", "backward"), NOT_FOLLOWED)
def test_a_tensor_that_is_another_one_is_not_followed(forward: str, backward: str, adopted: Adopt) -> None:
    assert backward_of(adopted, forward, backward) == []


@pytest.mark.parametrize(("given", "is_written"), [("torch.zeros_like(x)", True), ("w", False)])
def test_a_gradient_that_writes_gets_new_tensors_alone(given: str, is_written: bool, adopted: Adopt) -> None:
    cpp = CPP.replace(
        "scale_grad(const at::Tensor &grad, const at::Tensor &x, const at::Tensor &w, int64_t by)",
        "scale_grad(const at::Tensor &grad, const at::Tensor &x, at::Tensor &dx, int64_t by)",
    ).replace(
        "at::Tensor dx = at::empty_like(x); at::Tensor dw = at::empty_like(w);\n"
        "    EXEC_NPU_CMD(aclnnScaleGrad, grad, x, w, by, dx, dw);",
        "at::Tensor dw = at::empty_like(x);\n    EXEC_NPU_CMD(aclnnScaleGrad, grad, x, x, by, dx, dw);",
    )
    backward = BACKWARD.replace("x, w, ctx.by", f"x, {given}, ctx.by")
    module = PYTHON.replace("{forward}", indented(FORWARD)).replace("{backward}", indented(backward))
    files = {"csrc/aclnn_mine.h": HEADER, "csrc/ops.cpp": cpp, "mine/__init__.py": "", "mine/api.py": module}
    report = adopted(files)
    assert "(a2!) dx" in decision(report, "mine::scale_grad").defined_from[0]
    assert bool(decision(report, "mine::scale").backward) is is_written


@pytest.mark.parametrize("returned", ["None", "()", "None, None, None, None"])
def test_a_backward_that_returns_none_asks_for_no_gradient(returned: str, adopted: Adopt) -> None:
    one = decision(report_of(adopted, backward=f"return {returned}"), "mine::scale")
    assert any(
        line.startswith("not differentiable: the backward function of Scale, mine/api.py:") for line in one.evidence
    )
    assert not any("pass backward=" in line for line in one.evidence)

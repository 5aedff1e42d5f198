"""Prototypes are bound by names and by what the kernel passes to the aclnn function, never against it."""

from __future__ import annotations

import pytest
import torch

import ascend_graph
from ascend_graph.adoption import State
from ascend_graph.adoption.decision import RegistrationForm

from .conftest import Adopt, decision

OP_DEF = """
namespace ops {
class Scale : public OpDef {
public:
    explicit Scale(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("mask").ParamType(OPTIONAL).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("factor").AttrType(OPTIONAL).Float(1.0);
        this->Attr("stride").AttrType(OPTIONAL).Int(1);
    }
};
OP_ADD(Scale);
}
"""
RETURN = "at::Tensor y = at::empty_like(x);\n  {call}\n  return y;"
CALL = "EXEC_NPU_CMD(aclnnScale, x, mask, factor, stride, y);"


def adopt_with(
    adopted: Adopt, schema: str, parameters: str, body: str, more: dict[str, str] | None = None
) -> tuple[State, str, dict[str, object], str]:
    report = adopted(
        {
            "csrc/scale/op_host/scale_def.cpp": OP_DEF,
            "csrc/ops.cpp": f"at::Tensor scale({parameters}) {{\n  {body}\n}}\n"
            f'TORCH_LIBRARY(mine, m) {{ m.def("{schema}"); m.impl("scale", torch::kPrivateUse1, &scale); }}\n',
            **(more or {}),
        }
    )
    one = decision(report, "mine::scale")
    assert one.form is not None
    return one.state, one.form.value, dict(one.arguments), "\n".join(one.evidence)


SCHEMA = "scale(Tensor x, Tensor? mask=None, float factor=1.0, int stride=1) -> Tensor"
PARAMETERS = "const at::Tensor &x, const c10::optional<at::Tensor> &mask, double factor, int64_t stride"


def test_names_that_agree_need_no_arguments(adopted: Adopt) -> None:
    state, form, arguments, evidence = adopt_with(adopted, SCHEMA, PARAMETERS, RETURN.format(call=CALL))
    assert (state, form, arguments) == (State.BY_NAMES, "register_op", {})
    assert "the call of aclnnScale agrees" in evidence


CALLS = {
    "two phases": "aclnnScaleGetWorkspaceSize(x, mask, factor, stride, y, &size, &executor);",
    "a template": "EXEC_NPU_CMD<NAME>(x, mask, factor, stride, y);",
    "another macro": "RUN_ACLNN(aclnnScale, x, mask, factor, stride, y);",
    "values made from arguments": "auto m = c10::value_or_else(mask, [] { return at::Tensor(); }); "
    "auto f = static_cast<float>(factor);"
    " EXEC_NPU_CMD_ADV(aclnnScale, x.contiguous(), m, f, stride, y);",
}


@pytest.mark.parametrize("form", CALLS)
def test_every_form_of_a_call_is_understood(form: str, adopted: Adopt) -> None:
    name = 'constexpr std::string_view NAME = "aclnnScale";\n'
    body = RETURN.format(call=CALLS[form])
    report = adopted(
        {
            "op_host/scale_def.cpp": OP_DEF,
            "ops.cpp": f"{name}at::Tensor scale({PARAMETERS}) {{ {body} }}\n"
            f'TORCH_LIBRARY(mine, m) {{ m.def("{SCHEMA}"); m.impl("scale", torch::kPrivateUse1, &scale); }}\n',
        }
    )
    assert decision(report, "mine::scale").subject == "Scale"


def test_names_that_differ_are_taken_from_the_call(adopted: Adopt) -> None:
    schema = "scale(Tensor data, Tensor? keep=None, float by=1.0) -> Tensor"
    parameters = "const at::Tensor &data, const c10::optional<at::Tensor> &keep, double by"
    body = (
        "at::Tensor out = at::empty_like(data); int64_t s = data.stride(0);\n"
        "  EXEC_NPU_CMD(aclnnScale, data, keep, by, s, out); return out;"
    )
    state, form, arguments, _ = adopt_with(adopted, schema, parameters, body)
    assert (state, form) == (State.WITH_ARGUMENTS, "register_op")
    assert list(arguments) == ["data", "keep", "by", "stride"]
    assert arguments["stride"].text == 'lambda arguments: arguments["data"].stride(0)'  # type: ignore[attr-defined]


AGAINST = {
    # The call swaps what names pair, computes a value, or fixes it at another than the default.
    "swapped": ("EXEC_NPU_CMD(aclnnScale, x, mask, factor, 7, y);", "stride is 7 in the call, and stride by names"),
    "computed": (
        "int64_t k = stride * w(x); EXEC_NPU_CMD(aclnnScale, x, mask, factor, k, y);",
        "stride is computed in the call",
    ),
    "too few": ("EXEC_NPU_CMD(aclnnScale, x, mask, factor, y);", "the call passes 4 arguments, and aclnnScale has 5"),
    "two functions": (
        "if (stride > 1) { EXEC_NPU_CMD(aclnnScale, x, mask, factor, stride, y); "
        "} else { EXEC_NPU_CMD(aclnnScaleV2, x, y); }",
        "calls 2 functions: aclnnScale, aclnnScaleV2",
    ),
    "a launch, too": (CALL + " ACLRT_LAUNCH_KERNEL(scale_more)(1, stream, y);", "launches scale_more"),
    "no call": ("ACLRT_LAUNCH_KERNEL(scale_kernel)(1, stream, x, y);", "launches scale_kernel"),
}


@pytest.mark.parametrize("case", AGAINST)
def test_a_call_that_contradicts_leaves_the_kernel_without_ge(case: str, adopted: Adopt) -> None:
    call, reason = AGAINST[case]
    state, form, arguments, evidence = adopt_with(adopted, SCHEMA, PARAMETERS, RETURN.format(call=call))
    assert (state, form, arguments) == (State.BY_NAMES, "register_kernel", {})
    assert reason in evidence


def test_prototypes_that_differ_decide_nothing(adopted: Adopt) -> None:
    other = {"csrc/other/op_host/scale_def.cpp": OP_DEF.replace('"stride"', '"step"')}
    _, form, _, evidence = adopt_with(adopted, SCHEMA, PARAMETERS, RETURN.format(call=CALL), other)
    assert form == "register_kernel"
    assert "Scale has several definitions" in evidence


def test_a_hand_written_converter_names_the_prototype(adopted: Adopt) -> None:
    report = adopted(
        {
            "op_host/scale_def.cpp": OP_DEF,
            "ops.py": "import torch, torchair\nfrom torchair import ge\n"
            "lib = torch.library.Library('mine', 'DEF')\n"
            "lib.define('times(Tensor data, Tensor? mask=None, float factor=1.0) -> Tensor')\n"
            "@torch.library.register_fake('mine::times')\ndef fake(data, mask=None, factor=1.0):\n"
            "    return torch.empty_like(data)\n"
            "@torchair.register_fx_node_ge_converter(torch.ops.mine.times.default)\n"
            "def convert(data, mask=None, factor=1.0, meta_outputs=None):\n"
            "    return ge.custom_op('Scale', inputs={'x': data, 'mask': mask}, "
            "attrs={'factor': ge.attr.Float(factor), 'stride': ge.attr.Int(1)},"
            " outputs=['y'])\n",
        }
    )
    one = decision(report, "mine::times")
    assert (one.form, one.subject) == (RegistrationForm.OP, "Scale")
    assert dict(one.arguments) == {"data": "x", "stride": 1}


def test_an_operator_that_graphs_cannot_have_is_impossible(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": 'TORCH_LIBRARY(mine, m) { m.def("version() -> str"); m.def("log(str text) -> ()"); '
            'm.def("n(Tensor x) -> int"); }'
        }
    )
    assert {one.state for one in report.decisions} == {State.IMPOSSIBLE}


def test_the_written_module_registers_the_operator(adopted: Adopt) -> None:
    body = RETURN.format(call=CALL.replace("factor", "by"))
    report = adopted(
        {
            "op_host/scale_def.cpp": OP_DEF.replace("Scale", "AdoptedScale"),
            "ops.cpp": f"at::Tensor scale({PARAMETERS.replace('factor', 'by')}) {{ {body.replace('Scale', 'AdoptedScale')} }}\n"
            'TORCH_LIBRARY(adopted_test, m) { m.def("scale(Tensor x, Tensor? mask=None, float by=1.0, '
            'int stride=1) -> Tensor");'
            ' m.impl("scale", torch::kPrivateUse1, &scale); }\n',
        }
    )
    library = torch.library.Library("adopted_test", "DEF")
    library.define("scale(Tensor x, Tensor? mask=None, float by=1.0, int stride=1) -> Tensor")
    exec(compile(report.text, str(report.output), "exec"), {"__file__": str(report.output)})
    (op,) = [one for one in ascend_graph.registered_ops() if one.op_type == "AdoptedScale"]
    try:
        assert op.binding.argument_names() == {"x": "x", "mask": "mask", "by": "factor", "stride": "stride"}
        assert op(torch.empty(2, 3, device="meta")).shape == (2, 3)
    finally:
        op.unregister()


def test_an_operator_command_is_named_in_the_reason(adopted: Adopt) -> None:
    report = adopted(
        {
            "ops.cpp": "at::Tensor crop(const at::Tensor &x) { at::Tensor y = at::empty_like(x); "
            "at_npu::native::OpCommand cmd;\n"
            'cmd.Name("Crop").Input(x).Output(y).Run(); return y; }\n'
            "at::Tensor same(at::Tensor x) { launch(x); return x; }\n"
            'TORCH_LIBRARY(mine, m) { m.def("crop(Tensor x) -> Tensor", &crop); '
            'm.def("same(Tensor(a!) x) -> Tensor", &same); }\n'
        }
    )
    crop, same = report.decisions
    assert "no GE operator: ops.cpp:1 runs Crop by OpCommand; name a prototype with register_op" in crop.evidence
    assert same.defined_from == ("mine_writes::same(Tensor(a0!) x) -> Tensor(a0!)", "")


EFFECTS = {
    "an output that is changed later": ("CALL y.mul_(2);", "changed outside"),
    "an output that is added to": ("CALL y += factor;", "changed outside"),
    "a view that is changed": ("CALL y.view({-1, 1}).narrow(0, 0, 1).zero_();", "changed outside"),
    "a part that is changed": ("CALL y.slice(0, 0, 1).zero_();", "changed outside"),
    "a function of ATen": ("CALL at::abs_(y);", "changed outside"),
    "an input that is changed": ("x.mul_(2); CALL", "changed outside"),
    "zeros before": ("y.zero_(); CALL", "holds values before"),
    "zeros": ("y = at::zeros_like(x); CALL", "holds values before"),
    "zeros of sizes": ("y = x.new_zeros(x.sizes()); CALL", "holds values before"),
    "a view of zeros": ("y = at::zeros({x.size(0)}, x.options()).view({-1}); CALL", "holds values before"),
    "a copy": ("y = x.clone(); CALL", "holds values before"),
    "a part that is filled": ("y.slice(0, 0, 1).fill_(1); CALL", "holds values before"),
    "a condition": ("if (factor > 1) { CALL }", "does not run in some"),
    "another way out": ("if (stride == 2) { return y; } CALL", "does not run"),
    "a loop": ("for (int i = 0; i < stride; i++) { CALL }", "several times"),
    "a short loop": ("for (int i = 0; i < 3; i++) { CALL }", "several times"),
    "two calls": ("CALL CALL", "several times"),
    "a case that is not there": ("switch (x.dim()) { case 1: CALL break; }", "does not run"),
    "a case that goes on with the next": (
        "switch (x.dim()) { case 1: CALL case 2: CALL break; default: CALL }",
        "several times",
    ),
    "an error that is caught": ("try { CALL } catch (...) { log(); }", "several times"),
    "a way out of a block": ("do { if (factor > 1) break; CALL } while (0);", "several times"),
    "rounds that go on from each other": (
        "at::Tensor z = x; for (int i = 0; i < 50; i++) {"
        " y = at::empty_like(x); EXEC_NPU_CMD(aclnnScale, z, mask, factor, stride, y); z = y; }",
        "several times",
    ),
}


@pytest.mark.parametrize("case", EFFECTS)
def test_a_kernel_that_does_more_than_one_call_is_no_node(case: str, adopted: Adopt) -> None:
    call, reason = EFFECTS[case]
    body = RETURN.format(call=call.replace("CALL", CALL))
    state, form, _, evidence = adopt_with(adopted, SCHEMA, PARAMETERS, body)
    assert (state, form) == (State.BY_NAMES, "register_kernel")
    assert reason in evidence.partition("no GE operator: ")[2]


SAME_AS_ONE = {
    "nothing to compute": "if (x.numel() == 0) { return y; } CALL",
    "a branch that raises": "if (stride < 0) { TORCH_CHECK(false, stride); } CALL",
    "one call a branch": "if (factor > 1) { CALL } else { CALL }",
    "a block that runs once": "do { CALL } while (0);",
    "an error that is handed on": "try { CALL } catch (const std::exception &e) { throw; }",
    "an error that is told": 'try { CALL } catch (int e) { throw; } catch (...) { TORCH_CHECK(false, "scale"); }',
    "one call a case": (
        "switch (x.scalar_type()) { case at::kFloat: case at::kHalf: CALL break;"
        " case at::kInt: { auto n = 1; CALL break; } default: AT_ERROR(1); }"
    ),
    "rounds that begin anew": "auto n = 50; for (int i = 0; i < n; i++) { y = at::empty_like(x); CALL }",
}


@pytest.mark.parametrize("case", SAME_AS_ONE)
def test_a_kernel_whose_calls_are_as_one_is_a_node(case: str, adopted: Adopt) -> None:
    body = RETURN.format(call=SAME_AS_ONE[case].replace("CALL", CALL))
    state, form, arguments, _ = adopt_with(adopted, SCHEMA, PARAMETERS, body)
    assert (state, form, arguments) == (State.BY_NAMES, "register_op", {})


def test_a_relation_has_the_dtype_that_the_kernel_allocates(adopted: Adopt) -> None:
    report = adopted(
        {
            "op_host/scale_def.cpp": OP_DEF,
            "ops.cpp": "at::Tensor scale(const at::Tensor &self) { at::Tensor y = at::empty_like(self);"
            " EXEC_NPU_CMD(aclnnScale, self, nullptr, 1.0, 1, y); return y; }\n"
            'TORCH_LIBRARY(mine, m) { m.def("scale(Tensor self) -> Tensor", &scale); }\n',
        }
    )
    assert decision(report, "mine::scale").relation == "self[*s] -> y like self: self"


@pytest.mark.parametrize("returned", ["y * 2", "at::relu(y)", "y.view({-1})"])
def test_what_is_made_of_an_output_is_no_output(returned: str, adopted: Adopt) -> None:
    report = adopted(
        {
            "op_host/scale_def.cpp": OP_DEF,
            "ops.cpp": f"at::Tensor scale({PARAMETERS}) {{ at::Tensor y = at::empty_like(x);"
            f" {CALL} return {returned}; }}\n"
            f"at::Tensor meta({PARAMETERS}) {{ return at::empty_like(x); }}\n"
            f'TORCH_LIBRARY(mine, m) {{ m.def("{SCHEMA}"); m.impl("scale", torch::kPrivateUse1, &scale);'
            ' m.impl("scale", torch::kMeta, &meta); }\n',
        }
    )
    assert decision(report, "mine::scale").form is RegistrationForm.KERNEL


def test_an_output_whose_size_is_not_followed_is_an_output(adopted: Adopt) -> None:
    report = adopted(
        {
            "op_host/scale_def.cpp": OP_DEF,
            "ops.cpp": f"at::Tensor scale({PARAMETERS}) {{ auto y = at::empty(sizes(), x.options());"
            f" {CALL} return y; }}\n"
            f"at::Tensor meta({PARAMETERS}) {{ return at::empty_like(x); }}\n"
            f'TORCH_LIBRARY(mine, m) {{ m.def("{SCHEMA}"); m.impl("scale", torch::kPrivateUse1, &scale);'
            ' m.impl("scale", torch::kMeta, &meta); }\n',
        }
    )
    assert decision(report, "mine::scale").form is RegistrationForm.OP


def test_an_output_that_its_definition_initializes_needs_no_zeros(adopted: Adopt) -> None:
    definition = OP_DEF.replace('this->Output("y")', 'this->Output("y").InitValue(0)')
    body = RETURN.format(call=f"y.zero_(); {CALL}")
    more = {"csrc/scale/op_host/scale_def.cpp": definition}
    state, form, arguments, _ = adopt_with(adopted, SCHEMA, PARAMETERS, body, more)
    assert (state, form, arguments) == (State.BY_NAMES, "register_op", {})


def test_arguments_that_are_passed_as_each_other_are_named(adopted: Adopt) -> None:
    call = "EXEC_NPU_CMD(aclnnScale, mask, x, factor, stride, y);"
    report = adopted(
        {
            "scale_def.cpp": OP_DEF.replace("OPTIONAL).DataType", "REQUIRED).DataType"),
            "ops.cpp": f"at::Tensor scale({PARAMETERS.replace('c10::optional<at::Tensor>', 'at::Tensor')}) {{\n"
            f"{RETURN.format(call=call)}\n}}\n"
            'TORCH_LIBRARY(mine, m) { m.def("scale(Tensor x, Tensor mask, float factor=1.0, int stride=1) -> Tensor"); '
            'm.impl("scale", torch::kPrivateUse1, &scale); }\n',
        }
    )
    assert dict(decision(report, "mine::scale").arguments) == {"mask": "x", "x": "mask"}
    assert any("passes mask as x and x as mask, against the names" in str(one) for one in report.diagnostics)


def test_an_argument_of_another_type_than_its_attr_is_named(adopted: Adopt) -> None:
    schema = SCHEMA.replace("int stride=1", "float stride=1.0")
    parameters = PARAMETERS.replace("int64_t stride", "double stride")
    _, form, _, evidence = adopt_with(adopted, schema, parameters, RETURN.format(call=CALL))
    assert form == "register_kernel"
    assert "stride of the schema has a type that the Int attr stride of Scale does not take" in evidence

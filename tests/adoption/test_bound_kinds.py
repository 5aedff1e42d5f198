"""Bound functions that take Python objects, have computed defaults, launch by macros, or call what is registered."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import State

from .conftest import Adopt, decision, schema_of
from .test_bound_functions import BODY, HEADER, PYTHON, adopt_function

OBJECTS = """
at::Tensor tensor_of(const py::object &value)
{
    if (value.is_none()) { return at::Tensor(); }
    return value.cast<at::Tensor>();
}
template <typename T>
c10::optional<T> value_of(const py::object &value)
{
    if (value.is_none()) { return c10::nullopt; }
    return value.cast<T>();
}
"""


def test_a_python_object_has_the_type_that_it_is_cast_to(adopted: Adopt) -> None:
    body = """
    auto bias = tensor_of(b);
    auto flag = value_of<bool>(f);
    auto count = n.cast<int64_t>();
    at::Tensor y = at::empty({x.size(0), count}, x.options());
    EXEC_NPU_CMD(aclnnScale, x, 1.0, y);
    return y;"""
    parameters = "const at::Tensor &x, const py::object &b, py::object f, const py::object &n"
    one, _ = adopt_function(adopted, parameters, body, more=OBJECTS)
    assert schema_of(one) == "mine::f(Tensor x, Tensor? b, bool? f, int n) -> Tensor"
    assert one.relation == "x[x0, *x_rest] -> y[x0, n]: x"


@pytest.mark.parametrize(
    "body", ["keep(o); ", "auto a = o.cast<int64_t>(); auto b = o.cast<double>(); ", "auto a = o; ", ""]
)
def test_a_python_object_of_several_uses_has_no_type(adopted: Adopt, body: str) -> None:
    one, _ = adopt_function(adopted, "const at::Tensor &x, const py::object &o", body + BODY, more=OBJECTS)
    assert one.state is State.UNDECIDED
    assert "a schema has no type for const py::object &" in one.reason


def test_a_computed_default_has_to_be_given_and_so_do_those_in_front_of_it(adopted: Adopt) -> None:
    arguments = ', py::arg("x"), py::arg("by") = 2, py::arg("cu") = at::zeros({1}), py::arg("flag") = true'
    parameters = "const at::Tensor &x, int64_t by, const at::Tensor &cu, bool flag"
    one, _ = adopt_function(adopted, parameters, BODY, arguments=arguments)
    assert schema_of(one) == "mine::f(Tensor x, int by, Tensor cu, bool flag=True) -> Tensor"
    assert "cu has to be given: a schema cannot state its default at::zeros({1})" in one.evidence


KERNEL = """
extern "C" __global__ __aicore__ void scale_kernel(GM_ADDR x, GM_ADDR y, uint32_t n)
{
    AscendC::GlobalTensor<half> from, to;
    from.SetGlobalBuffer((__gm__ half *)x);
    to.SetGlobalBuffer((__gm__ half *)y);
    AscendC::LocalTensor<half> local;
    AscendC::DataCopy(local, from, n);
    AscendC::DataCopy(to, local, n);
}
"""


def test_a_macro_that_launches_a_kernel_writes_what_the_kernel_does(adopted: Adopt) -> None:
    files = {
        "csrc/kernel.cpp": KERNEL,
        "csrc/ops.cpp": """
void f(const at::Tensor &x, const at::Tensor &out)
{
    uint32_t n = x.numel();
    EXEC_KERNEL_CMD(scale_kernel, 8, x, out, n);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }
""",
        "mine/__init__.py": "",
        "mine/api.py": PYTHON,
    }
    one = decision(adopted(files), "mine::f")
    assert schema_of(one) == "mine::f(Tensor x, Tensor(a1!) out) -> ()"
    assert one.state is State.BY_NAMES


REGISTRY = """
#define DISPATCH_DEVICE_IMPL(key, ...) Dispatch(DEVICE_REGISTRY(key), #key, __VA_ARGS__)
Tensor scale_impl(const Tensor &x, double by) { return DISPATCH_DEVICE_IMPL(scale_impl, x, by); }
void other_impl(const Tensor &x) { DISPATCH_DEVICE_IMPL(other_impl, x); }
Tensor scale(const Tensor &x, double by) { return scale_impl(x, by); }
void other(const Tensor &x) { other_impl(x); }
"""
NPU = """
Tensor scale_npu(const Tensor &x, double by) { Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnScale, x, by, y); return y; }
Tensor scale_impl(const Tensor &x, double by);
REGISTER_NPU_IMPL(scale_impl, scale_npu);
"""
CUDA = """
Tensor scale_cuda(const Tensor &x, double by);
void other_cuda(const Tensor &x);
REGISTER_DEVICE_IMPL(scale_impl, CUDA, scale_cuda);
REGISTER_DEVICE_IMPL(other_impl, CUDA, other_cuda);
"""


@pytest.fixture
def registry() -> dict[str, str]:
    bind = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); m.def("other", &other); }\n'
    setup = 'def extensions():\n    ext_name = "mine._ext"\n    return [Extension(name=ext_name, sources=files)]\n'
    return {
        "csrc/aclnn_mine.h": HEADER,
        "csrc/ops.cpp": REGISTRY,
        "csrc/npu/ops_npu.cpp": NPU,
        "csrc/cuda/bind.cpp": CUDA,
        "csrc/bind.cpp": bind,
        "setup.py": setup,
        "mine/__init__.py": "",
    }


def test_what_macros_register_for_the_npu_is_what_is_called(adopted: Adopt, registry: dict[str, str]) -> None:
    one = decision(adopted(registry), "mine::scale")
    assert one.defined_from == ("mine::scale(Tensor x, float by) -> Tensor", "mine._ext:scale")
    assert one.relation == "x[*s] -> y like x"


def test_what_is_registered_for_other_devices_alone_is_said_so(adopted: Adopt, registry: dict[str, str]) -> None:
    one = decision(adopted(registry), "mine::other")
    assert one.state is State.IMPOSSIBLE
    assert (
        one.reason
        == "DISPATCH_DEVICE_IMPL calls what is registered as other_impl, and nothing is registered for the NPU"
    )

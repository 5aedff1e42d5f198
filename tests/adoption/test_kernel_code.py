"""Methods in an Ascend C kernel are those of the variable's class; where it is unknown the schema stays open."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import State

from .conftest import Adopt, schema_of

KERNEL = """#include "kernel_operator.h"
#include "elsewhere.h"
template <typename T> struct Reader {{
    __aicore__ inline Reader() {{}}
    __aicore__ inline Reader(GM_ADDR from) : made(true) {{ gm.SetGlobalBuffer((__gm__ T *)from); Run(gm); }}
    __aicore__ inline void Run(const AscendC::GlobalTensor<T> &from, uint32_t n = 8) {{
        AscendC::DataCopy(local, from, n);
    }}
    __aicore__ inline void Only(const AscendC::GlobalTensor<T> &from) {{ this->Run(from); }}
    AscendC::GlobalTensor<T> gm;
    bool made = false;
}};
template <typename T> class Writer {{
public:
    __aicore__ inline void Run(const AscendC::GlobalTensor<T> &to) {{ AscendC::DataCopy(to, local, 8); }}
    __aicore__ inline void Init(GM_ADDR to) {{ gm.SetGlobalBuffer((__gm__ T *)to); AscendC::DataCopy(gm, local, 8); }}
private:
    AscendC::GlobalTensor<T> gm;
}};
template <typename T> class Derived : public Reader<T> {{ public: Reader<T> inner; }};
using Short = Reader<half>;
namespace copies {{
template <typename T> __aicore__ inline void Move(const AscendC::GlobalTensor<T> &from) {{
    AscendC::DataCopy(local, from, 8);
}}
}}
extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace)
{{
    (void)workspace;
    AscendC::GlobalTensor<half> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ half *)x);
    yGm.SetGlobalBuffer((__gm__ half *)y);
    AscendC::DataCopy(local, xGm, 8);
    {body}
    Writer<half> last;
    last.Init(z);
}}
"""
READ, WRITTEN = "Tensor x, Tensor y", "Tensor x, Tensor(a1!) y"
# What the kernel does with y, and the arguments of the schema.
DONE = {
    "Reader<half> one; one.Run(yGm);": READ,
    "Writer<half> one; one.Run(yGm);": WRITTEN,
    "Reader<half> one; one.Only(yGm);": READ,
    "Derived<half> one; one.Run(yGm, 4);": READ,
    "Derived<half> one; one.inner.Run(yGm);": READ,
    "Short one; one.Run(yGm);": READ,
    "auto one = Writer<half>(); one.Run(yGm);": WRITTEN,
    "Writer<half> many[2]; many[0].Run(yGm);": WRITTEN,
    "if (n) { Writer<half> one; one.Run(xGm); } Reader<half> one; one.Run(yGm);": "Tensor(a0!) x, Tensor y",
    "Reader<half> one(y);": READ,
    "copies::Move<half>(yGm);": READ,
    "GM_ADDR const other = n ? y : x; Reader<half> one(other);": READ,
    "GM_ADDR other; other = y + 8; Writer<half> one; one.Init(other);": WRITTEN,
}
# What may write y: the class is not known, or has no such method.
OPEN = (
    "Elsewhere<half> one; one.Only(yGm);",
    "Elsewhere<half> one; one.Run(yGm);",
    "auto one = Made(); one.Only(yGm);",
    "one.Only(yGm);",
    "Writer<half> one; one.Only(yGm);",
    "Elsewhere::Only(yGm);",
    "Only(yGm);",
    "Elsewhere one(y);",
)


def adopt_kernel(adopted: Adopt, body: str) -> tuple[State, str, str]:
    """Return the decision on a function that launches the kernel, with its schema's arguments and reason."""
    report = adopted(
        {
            "kernel.cpp": KERNEL.format(body=body),
            "bind.cpp": "at::Tensor f(const at::Tensor &x, const at::Tensor &y) {\n"
            "    at::Tensor z = at::empty_like(x);\n"
            "    auto w = at::empty({8}, x.options());\n"
            "    add<<<8, nullptr, stream>>>(x.data_ptr(), y.data_ptr(), z.data_ptr(), w.data_ptr());\n    return z;\n}\n"
            'PYBIND11_MODULE(mine, m) { m.def("f", &f); }\n',
        }
    )
    (one,) = report.decisions
    return one.state, schema_of(one).partition("(")[2].partition(") ->")[0], one.reason


@pytest.mark.parametrize("body", DONE)
def test_a_method_is_that_of_the_class_of_its_variable(body: str, adopted: Adopt) -> None:
    assert adopt_kernel(adopted, body) == (State.BY_NAMES, DONE[body], "")


@pytest.mark.parametrize("body", OPEN)
def test_a_method_of_a_class_that_is_not_known_leaves_the_schema_open(body: str, adopted: Adopt) -> None:
    state, _, reason = adopt_kernel(adopted, body)
    assert (state, reason) == (
        State.UNDECIDED,
        "it launches add, and what that kernel does with y is not understood",
    )

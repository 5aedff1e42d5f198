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
BIND = """at::Tensor f(const at::Tensor &x, const at::Tensor &y) {
    at::Tensor z = at::empty_like(x);
    auto w = at::empty({8}, x.options());
    add<<<8, nullptr, stream>>>(x.data_ptr(), y.data_ptr(), z.data_ptr(), w.data_ptr());
    return z;
}
PYBIND11_MODULE(mine, m) { m.def("f", &f); }
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
            "bind.cpp": BIND,
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


TILES = """#include "kernel_operator.h"
template <typename T> AICORE void run(__gm__ T* x, __gm__ T* y, __gm__ T* z, __gm__ {kind}* w) {{
    using GlobalData = pto::GlobalTensor<T, pto::Shape<1, 1, 1, 1, 8>, pto::Stride<1, 1, 1, 1, 1>>;
    {{ GlobalTensor<T, decltype(shape)> _gm(x + 8, shape); TLOAD(tile, _gm); }}
    {{ GlobalTensor<T, decltype(shape)> _gm(z + 8, shape); TSTORE(_gm, tile); }}
    GlobalData yGlobal(y);
    TASSIGN(yGlobal, y + 8);
    {body}
}}
extern "C" __global__ AICORE void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR w)
{{
    run<half>((__gm__ half*)x, (__gm__ half*)y, (__gm__ half*)z, reinterpret_cast<__gm__ {kind}*>(w));
}}
"""
# What a kernel of tiles does with y and w, the type of w's elements, and the schema's arguments; none if that is open.
TILE_BODIES = {
    "TLOAD(tile, yGlobal); if (w != nullptr) { n = w[0] + w[n + 1]; }": ("int32_t", READ),
    "TSTORE(yGlobal, tile); if (nullptr == w) { n = static_cast<int64_t>(w[0]); }": ("int32_t", WRITTEN),
    "TLOAD(tile, yGlobal); w[0] = 1;": ("int32_t", None),
    "TLOAD(tile, yGlobal); GlobalData other((__gm__ T*)w[0]); TSTORE(other, tile);": ("uint64_t", None),
    "TMOVE(yGlobal, tile); n = w[0];": ("int32_t", None),
}


@pytest.mark.parametrize("body", TILE_BODIES)
def test_what_a_kernel_of_tiles_writes_is_read_from_its_stores(body: str, adopted: Adopt) -> None:
    kind, arguments = TILE_BODIES[body]
    bind = BIND.replace("at::Tensor &y)", "at::Tensor &y, const at::Tensor &w)").replace("    auto w", "    auto v")
    report = adopted({"kernel.cpp": TILES.format(body=body, kind=kind), "bind.cpp": bind})
    (one,) = report.decisions
    if arguments is None:
        assert one.state is State.UNDECIDED
        assert "what that kernel does with" in one.reason
    else:
        assert schema_of(one) == f"mine::f({arguments}, Tensor w) -> Tensor", one.reason


@pytest.mark.parametrize("directory", ["first/", ""])
def test_of_kernels_with_one_name_the_nearest_is_launched(directory: str, adopted: Adopt) -> None:
    written, read = (KERNEL.format(body=f"{kind}<half> one; one.Run(yGm);") for kind in ("Writer", "Reader"))
    (one,) = adopted({"first/kernel.cpp": written, "other/kernel.cpp": read, f"{directory}bind.cpp": BIND}).decisions
    if directory:
        assert schema_of(one) == "mine::f(Tensor x, Tensor(a1!) y) -> Tensor", one.reason
    else:
        assert one.reason == "it launches add, and nothing here tells what that kernel writes"

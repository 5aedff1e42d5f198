"""Operators whose kernel writes what their schema does not say: an operator with the marks stands for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.adoption import Decision, State
from ascend_graph.adoption.decision import RegistrationForm

from .conftest import Adopt, decision, schema_of

HELPERS = """
void copied(void *to, const void *from, size_t size) { aclrtMemcpyAsync(to, size, from, size, KIND, stream()); }
void fill_of_its_own(const at::Tensor &x);
"""


def adopt_put(adopted: Adopt, body: str, schema: str = "put(Tensor x, Tensor cache) -> ()", **files: str) -> Decision:
    """Adopt one operator of a body."""
    returns = "void" if schema.endswith("()") else "at::Tensor"
    report = adopted(
        {
            **{name.replace("__", "/") + ".cpp": text for name, text in files.items()},
            "ops.cpp": f"{HELPERS}{returns} put(const at::Tensor &x, const at::Tensor &cache) {{ {body} }}\n"
            f'TORCH_LIBRARY(mine, m) {{ m.def("{schema}"); m.impl("put", torch::kPrivateUse1, &put); }}\n',
        }
    )
    return decision(report, "mine::put")


# Body of the kernel, and the schema of the operator that stands for it.
MARKED = {
    "cache.copy_(x);": "put(Tensor x, Tensor(a1!) cache) -> ()",
    "auto part = cache[0]; part.copy_(x);": "put(Tensor x, Tensor(a1!) cache) -> ()",
    "copied(cache.data_ptr(), x.data_ptr(), 4);": "put(Tensor x, Tensor(a1!) cache) -> ()",
    "char *p = static_cast<char *>(cache.data_ptr()); for (int64_t i = 0; i < n(); i++) "
    "{ auto at = x.data_ptr<int64_t>()[i]; aclrtMemcpy2dAsync(p + at * 4, 4, source(), 4, 4, 1, KIND, stream()); }": (
        "put(Tensor x, Tensor(a1!) cache) -> ()"
    ),
    "auto y = x.index({cache}); y.add_(1); cache.zero_();": "put(Tensor(a0!) x, Tensor(a1!) cache) -> ()",
}
# Bodies that may write more than is certain.
OPEN = {
    "fill_of_its_own(cache);": "it passes cache to fill_of_its_own",
    "cache.copy_(x); fill_of_its_own(x);": "it writes cache, which its schema does not say, and it passes x",
    "auto p = cache.data_ptr<int64_t>(); aclrtMemcpy((void *)p[0], 4, x.data_ptr(), 4, KIND);": (
        "aclrtMemcpy writes to an address that a tensor holds"
    ),
}


@pytest.mark.parametrize("body", MARKED)
def test_an_operator_with_marks_stands_for_one_without(body: str, adopted: Adopt) -> None:
    one = adopt_put(adopted, body)
    assert (one.state, schema_of(one)) == (State.BY_NAMES, f"mine_writes::{MARKED[body]}"), one.reason
    assert (one.eager, one.relation, one.override) == ("torch.ops.mine.put", "->", False)


@pytest.mark.parametrize("body", OPEN)
def test_writes_that_are_not_certain_leave_the_operator_undecided(body: str, adopted: Adopt) -> None:
    one = adopt_put(adopted, body)
    assert one.state is State.UNDECIDED
    assert OPEN[body] in one.reason
    assert one.reason.endswith("write (a!) at what it writes, and uncomment")
    assert schema_of(one).startswith("mine_writes::put(Tensor x, Tensor")


def test_an_operator_that_only_reads_is_registered_as_it_is(adopted: Adopt) -> None:
    one = adopt_put(adopted, "auto host = at::empty_like(x); aclrtMemcpy(host.data_ptr(), 4, x.data_ptr(), 4, KIND);")
    assert (one.state, schema_of(one)) == (State.BY_NAMES, "")
    assert "it writes no tensor; its calls stay in graphs" in one.evidence


@pytest.mark.parametrize(
    ("body", "schema", "relation"),
    [
        (
            "auto y = at::empty_like(x); cache.copy_(x); return y;",
            "(Tensor x, Tensor(a1!) cache) -> Tensor",
            "x[*s] -> y like x",
        ),
        ("cache.copy_(x); return cache;", "(Tensor x, Tensor(a1!) cache) -> Tensor(a1!)", "cache -> cache"),
        (
            "auto y = at::Tensor(cache); y.copy_(x); return y;",
            "(Tensor x, Tensor(a1!) cache) -> Tensor(a1!)",
            "cache -> cache",
        ),
    ],
)
@pytest.mark.parametrize("mark", ["", "!"])
def test_a_result_does_not_hide_what_is_written(
    body: str, schema: str, relation: str, mark: str, adopted: Adopt
) -> None:
    one = adopt_put(adopted, body, f"put(Tensor x, Tensor{mark} cache) -> Tensor")
    if mark and "(a1!)" not in relation + schema.rpartition("->")[2]:
        assert (one.state, schema_of(one)) == (State.BY_NAMES, "")  # its own schema says it
        return
    assert (one.state, schema_of(one), one.relation) == (State.BY_NAMES, f"mine_writes::put{schema}", relation)


def test_a_written_argument_that_some_calls_return_is_undecided(adopted: Adopt) -> None:
    body = "cache.copy_(x); if (x.dim() == 1) { return cache; } return at::empty_like(x);"
    one = adopt_put(adopted, body, "put(Tensor x, Tensor cache) -> Tensor")
    assert one.state is State.UNDECIDED
    assert "in some calls" in one.reason


@pytest.mark.parametrize("mark", ["", "(a!)"])
def test_an_argument_that_is_returned_and_may_be_written_is_undecided(mark: str, adopted: Adopt) -> None:
    one = adopt_put(adopted, "fill_of_its_own(cache); return cache;", f"put(Tensor x, Tensor{mark} cache) -> Tensor")
    assert one.state is (State.BY_NAMES if mark else State.UNDECIDED)
    assert mark or "it returns cache, which its schema does not say, and it passes cache to" in one.reason
    one = adopt_put(adopted, "fill_of_its_own(x); return cache;", "put(Tensor x, Tensor cache) -> Tensor")
    assert one.state is State.BY_NAMES  # what may be written is another one


KERNEL = """
extern "C" __global__ __aicore__ void put_rows(GM_ADDR x, GM_ADDR cache, GM_ADDR workspace, GM_ADDR tiling) {
    AscendC::GlobalTensor<half> from, to;
    from.SetGlobalBuffer((__gm__ half *)x);
    to.SetGlobalBuffer((__gm__ half *)cache);
    AscendC::LocalTensor<half> local;
    AscendC::DataCopy(local, from, 16);
    AscendC::DataCopy(to, local, 16);
}
"""
OP_DEF = """namespace ops {{ class PutRows : public OpDef {{ public: explicit PutRows(const char *name) : OpDef(name) {{
this->Input("x").ParamType(REQUIRED).DataType({{ge::DT_FLOAT16}}).Format({{ge::FORMAT_ND}});
this->Input("cache").ParamType(REQUIRED).DataType({{ge::DT_FLOAT16}}).Format({{ge::FORMAT_ND}});
{output} }} }}; OP_ADD(PutRows); }}
"""


def test_the_kernel_of_a_prototype_without_outputs_tells_what_is_written(adopted: Adopt) -> None:
    files = {"op_host__put_rows_def": OP_DEF.format(output=""), "op_kernel__put_rows": KERNEL}
    one = adopt_put(adopted, "EXEC_NPU_CMD(aclnnPutRows, x, cache);", **files)
    assert schema_of(one) == "mine_writes::put(Tensor x, Tensor(a1!) cache) -> ()", one.reason
    assert one.form is RegistrationForm.KERNEL  # GE gives no new value of cache
    used = KERNEL.replace("AscendC::DataCopy(to, local, 16);", "unknown(to);")
    one = adopt_put(adopted, "EXEC_NPU_CMD(aclnnPutRows, x, cache);", **files | {"op_kernel__put_rows": used})
    assert "what the kernel of PutRows does with cache is not understood" in one.reason


TEMPLATE = """
#define PUT_CLASS Put<T, mode>
template <typename T, int mode> class Put {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR cache) {
        from.SetGlobalBuffer((__gm__ T *)x);
        to.SetGlobalBuffer((__gm__ T *)cache);
    }
    __aicore__ inline void Run();
    AscendC::GlobalTensor<T> from, to;
};
template <typename T, int mode> __aicore__ inline void PUT_CLASS::Run() {
    AscendC::LocalTensor<T> local;
    AscendC::DataCopy(local, from, 16);
    AscendC::DataCopy(to, local, 16);
}
#undef PUT_CLASS
template <int mode> __global__ __aicore__ void put_rows(GM_ADDR x, GM_ADDR cache, GM_ADDR workspace, GM_ADDR tiling) {
    Put<half, mode> one;
    one.Init(x, cache);
    one.Run();
}
"""


def test_a_kernel_template_whose_class_a_macro_names_is_read(adopted: Adopt) -> None:
    files = {"op_host__put_rows_def": OP_DEF.format(output=""), "op_kernel__put_rows": TEMPLATE}
    one = adopt_put(adopted, "EXEC_NPU_CMD(aclnnPutRows, x, cache);", **files)
    assert schema_of(one) == "mine_writes::put(Tensor x, Tensor(a1!) cache) -> ()", one.reason


def test_the_operator_with_marks_has_the_ge_operator(adopted: Adopt) -> None:
    output = 'this->Output("cache").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});'
    one = adopt_put(
        adopted, "EXEC_NPU_CMD(aclnnPutRows, x, cache);", op_host__put_rows_def=OP_DEF.format(output=output)
    )
    assert schema_of(one) == "mine_writes::put(Tensor x, Tensor(a1!) cache) -> ()", one.reason
    assert (one.form, one.subject) == (RegistrationForm.OP, "PutRows")


def test_the_written_module_makes_compiled_programs_right(adopted: Adopt, tmp_path: Path) -> None:
    adopt_put(adopted, "cache.copy_(x);")
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "library = torch.library.Library('mine', 'DEF')\n"
        "library.define('put(Tensor x, Tensor cache) -> ()')\n"
        "library.impl('put', lambda x, cache: (cache.copy_(x), None)[1], 'PrivateUse1')\n"
        "import operators\n"
        "x, cache = torch.ones(3).npu(), torch.zeros(3).npu()\n"
        "torch.compile(lambda x, cache: torch.ops.mine.put(x, cache), backend='npugraph_ex')(x, cache)\n"
        "print('found', cache.tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", str(program)],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "found [1.0, 1.0, 1.0]" in done.stdout, done.stderr[-2000:]

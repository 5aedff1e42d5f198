"""Files of an operator package as CANN's build lays it out, with libraries and a kernel's source of the tests' own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ascend_graph.compilation.toolchain import compiler
from ascend_graph.environment import toolkit_directory

HERE = Path(__file__).parent
PROTOTYPE = """
REG_OP(Doubled)
    .INPUT(x, TensorType({DT_FLOAT, DT_INT32}))
    .OUTPUT(y, TensorType({DT_FLOAT, DT_INT32}))
    .ATTR(mode, Int, 0)
    .OP_END_FACTORY_REG(Doubled)
REG_OP(DoubledInPlace)
    .INPUT(x, TensorType({DT_FLOAT, DT_INT32}))
    .OUTPUT(x, TensorType({DT_FLOAT, DT_INT32}))
    .ATTR(mode, Int, 0)
    .OP_END_FACTORY_REG(DoubledInPlace)
"""
DECLARATION = """
aclnnStatus aclnnDoubledGetWorkspaceSize(const aclTensor *x, int64_t mode, const aclTensor *out,
    uint64_t *workspaceSize,
    aclOpExecutor **executor);
aclnnStatus aclnnDoubled(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
aclnnStatus aclnnDoubledInPlaceGetWorkspaceSize(aclTensor *xRef, int64_t mode, uint64_t *workspaceSize,
    aclOpExecutor **executor);
aclnnStatus aclnnDoubledInPlace(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""
BY_HAND = """
aclnnStatus aclnnQuadrupledGetWorkspaceSize(const aclTensor *self, const aclIntArray *sizes, int64_t mode, aclTensor *out,
    uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnQuadrupled(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
"""
_PARAMETER = {"dtype": "float32,int32", "format": "ND,ND", "paramType": "required"}
_OPERATOR = {"attr": {"list": "mode"}, "opFile": {"value": "doubled"}, "opInterface": {"value": "doubled"}}
CONFIGURATION = {
    type_: {"input0": {"name": "x", **_PARAMETER}, "output0": {"name": output, **_PARAMETER}, **_OPERATOR}
    for type_, output in (("Doubled", "y"), ("DoubledInPlace", "x"))
}


def build_library(source: str, target: Path, links: list[str], *flags: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*compiler(), "-std=c++17", "-O1", "-shared", "-fPIC", *flags, str(HERE / source), "-o", str(target)]
    subprocess.run([*command, f"-L{toolkit_directory()}/lib64", *links, "-Wl,--allow-shlib-undefined"], check=True)

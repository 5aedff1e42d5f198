"""Converters that are registered before TorchAir is imported."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

import preloaded
import pytest
import torch

from ascend_graph.dispatch import torchair as table
from ascend_graph.dispatch.torchair import existing_converter, register_converter

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it


#: In a process of its own: TorchAir also holds callbacks for operators that graphs of other tests had.
TORCHAIRS = """
import torch, torch_npu
from ascend_graph.dispatch import torchair as table

def overloads():
    for namespace in list(torch.ops):
        for name in list(getattr(torch.ops, namespace)):
            packet = getattr(getattr(torch.ops, namespace), name)
            if isinstance(packet, torch._ops.OpOverloadPacket):
                yield from (getattr(packet, overload) for overload in packet.overloads())

fx = table.torchair().fx
fx._get_converter(torch.ops.aten.relu.default)
held = {one.name().partition(".")[0]: getattr(one, "_ge_converter", None) or fx._CONVERTERS.get(one) for one in overloads()}
built_in = {name for name, converter in held.items() if converter and converter.__module__.startswith("torchair.")}
print(len(built_in), sorted(built_in - table._converted()))
"""


def test_sources_name_every_operator_that_torchair_converts() -> None:
    done = preloaded.run([sys.executable, "-W", "ignore", "-c", TORCHAIRS], capture_output=True, text=True, check=True)
    count, _, unnamed = done.stdout.strip().splitlines()[-1].partition(" ")
    assert int(count) > 700
    assert unnamed == "[]"


def test_a_converter_of_an_operator_of_ones_own_waits_for_its_first_node(monkeypatch: pytest.MonkeyPatch) -> None:
    library = torch.library.Library("lazy_converters", "DEF")
    library.define("one(Tensor x) -> Tensor")
    overload = torch.ops.lazy_converters.one.default
    imports: list[str] = []
    found = table.torchair()
    monkeypatch.setattr(table, "torchair", lambda: imports.append("torchair") or found)

    def convert(x: object, meta_outputs: object = None) -> object:
        return x

    handle = register_converter(overload, convert, own=True)
    assert not imports
    assert overload._ge_converter.require_meta
    assert existing_converter(overload) is overload._ge_converter
    assert overload._ge_converter.__qualname__ == convert.__qualname__
    assert overload._ge_converter("x", meta_outputs=torch.ones(1)) == "x"
    assert overload._ge_converter("y", meta_outputs=torch.ones(1)) == "y"
    assert len(imports) == 1
    handle.remove()
    assert existing_converter(overload) is None
    library._destroy()


@pytest.mark.slow
def test_registering_imports_no_ge_of_torchair_and_a_ge_graph_has_the_converter() -> None:
    code = """
        import sys, torch, torch_npu, ascend_graph
        from ascend_graph.host.kernels import host_kernel

        ascend_graph.load_prototypes('''
        REG_OP(LazyAdd)
            .INPUT(x, TensorType({DT_FLOAT}))
            .INPUT(y, TensorType({DT_FLOAT}))
            .OUTPUT(z, TensorType({DT_FLOAT}))
            .OP_END_FACTORY_REG(LazyAdd)
        ''')

        @host_kernel("LazyAdd")
        def _(x, y):
            return x + y

        library = torch.library.Library("lazy_add", "DEF")
        library.define("add(Tensor x, Tensor y) -> Tensor")
        library.impl("add", lambda x, y: x - y, "PrivateUse1")
        ascend_graph.register_op("LazyAdd", eager=torch.ops.lazy_add.add, shape="x[*s], y[*s] -> z[*s]")
        assert not [name for name in sys.modules if name.startswith(("torchair.", "torch_npu.dynamo.torchair"))]
        import torchair
        x = torch.ones(3).npu()
        compiled = torch.compile(lambda x, y: torch.ops.lazy_add.add(x, y), backend=torchair.get_npu_backend())
        assert compiled(x, x).cpu().tolist() == [2.0, 2.0, 2.0]
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

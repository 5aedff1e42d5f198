"""A package registered as a whole: operators that exist by their schema and are completed when they are looked up."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import ascend_graph
from ascend_graph import AscendGraphError, PackageWarning, register_package
from ascend_graph.dispatch.announced import AnnouncedOperatorError
from ascend_graph.packages import register as module
from ascend_graph.packages.contents import read_package
from ascend_graph.registration import RegistrationError

HEADER = """
REG_OP({name})
    .INPUT(x, TensorType({{DT_FLOAT, DT_FLOAT16}}))
    .INPUT(y, TensorType({{DT_FLOAT, DT_FLOAT16}}))
    .OUTPUT(z, TensorType({{DT_FLOAT, DT_FLOAT16}}))
    .ATTR(alpha, Float, 1.5)
    .OP_END_FACTORY_REG({name})
"""
RELATION = "[{name}]\nshape = x[*s], y[*s] -> z[*s]\n"
NAMESPACE = "packed"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ascend_graph.eager.library import kernels

    kernels()  # compiled, or loaded, from the usual cache
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    before = os.environ.get("ASCEND_CUSTOM_OPP_PATH")
    yield
    for package in module.registered_packages():
        package.unregister()
    assert os.environ.get("ASCEND_CUSTOM_OPP_PATH") == before


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return make_package(tmp_path / "vendors" / "mine", "PackAdd", "PackSub")


def make_package(directory: Path, *names: str, relations: bool = True) -> Path:
    inc = directory / "op_proto" / "inc"
    inc.mkdir(parents=True)
    (inc / "op_proto.h").write_text("".join(HEADER.format(name=name) for name in names))
    if relations:
        (directory / "relations.ini").write_text("".join(RELATION.format(name=name) for name in names))
    return directory


def schemas() -> set[str]:
    return {s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith(f"{NAMESPACE}::")}


def test_operators_exist_at_once_and_are_completed_by_their_first_lookup(package: Path) -> None:
    found = register_package(package, namespace=NAMESPACE)
    assert schemas() == {"packed::pack_add", "packed::pack_sub"}
    assert found.operators == ("PackAdd", "PackSub")
    assert found.in_use == ()
    x = torch.empty(2, 3, device="meta")
    assert torch.ops.packed.pack_add(x, x).shape == (2, 3)
    assert [op.op_type for op in found.in_use] == ["PackAdd"]
    assert str(torch.ops.packed.pack_add.default._schema).endswith("*, float alpha=1.5) -> Tensor z")
    assert hasattr(torch.ops.packed.pack_add.default, "_ge_converter")
    assert "1 in use, 0 left out" in repr(found)
    found.unregister()
    assert schemas() == set()
    assert not hasattr(torch.ops.packed, "pack_sub")


def test_an_announced_operator_is_found_by_name_and_by_export(package: Path, tmp_path: Path) -> None:
    register_package(package, namespace=NAMESPACE)

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.packed.pack_add(x, x, alpha=2.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Net(), (torch.ones(2, device="meta"),))
        torch.export.save(program, tmp_path / "net.pt2")
        module._packages[package, NAMESPACE].unregister()
        again = register_package(package, namespace=NAMESPACE)
        loaded = torch.export.load(tmp_path / "net.pt2")
    assert [op.op_type for op in again.in_use] == ["PackAdd"]
    assert any(node.target is torch.ops.packed.pack_add.default for node in loaded.graph.nodes)
    assert torch._library.utils.lookup_op("packed::pack_sub").name() == "packed::pack_sub"


def test_what_cannot_be_decided_is_left_out_with_one_warning(package: Path) -> None:
    (package / "op_proto/inc/more.h").write_text(
        HEADER.format(name="PackUnknown") + "REG_OP(PackBroken).INPUT(x,).OP_END_FACTORY_REG(PackOther)\n"
    )
    with pytest.warns(PackageWarning, match=r"2 of 4 operators are left out") as caught:
        found = register_package(package, namespace=NAMESPACE)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found.operators == ("PackAdd", "PackSub")
    assert f"{package}/op_proto/inc/more.h:2: the shape of z is not known" in found.left_out["PackUnknown"]
    assert "more.h" in found.left_out["PackBroken"]
    assert "PackUnknown  " in repr(found)
    with pytest.raises(AttributeError, match=r"packed::pack_unknown: .*Write shapes="):
        torch.ops.packed.pack_unknown  # noqa: B018
    with pytest.raises(AnnouncedOperatorError, match="shape of z is not known"):
        found["PackUnknown"]
    assert not hasattr(torch.ops.packed, "pack_unknown")
    assert schemas() == {"packed::pack_add", "packed::pack_sub"}


def test_what_fails_at_its_first_lookup_is_removed_as_a_whole(package: Path) -> None:
    found = register_package(package, namespace=NAMESPACE, shapes={"PackSub": "x[*s], strange[*s] -> z[*s]"})
    assert "PackSub" in found
    with pytest.raises(AttributeError, match="strange"):
        torch.ops.packed.pack_sub  # noqa: B018
    assert "PackSub" in found.left_out
    assert schemas() == {"packed::pack_add"}
    with pytest.raises(AttributeError, match="strange"):
        torch.ops.packed.pack_sub  # noqa: B018


def test_register_all_warns_once_of_what_fails(package: Path) -> None:
    found = register_package(package, namespace=NAMESPACE, shapes={"PackSub": "x[*s], strange[*s] -> z[*s]"})
    with pytest.warns(PackageWarning, match="1 of 2 operators are left out; .*:\n  PackSub") as caught:
        assert found.register_all() is found
    assert len(caught) == 1
    assert [op.op_type for op in found.in_use] == ["PackAdd"]


def test_the_same_call_is_one_registration_and_another_is_refused(package: Path) -> None:
    first = register_package(package, namespace=NAMESPACE)
    assert register_package(str(package), namespace=NAMESPACE) is first
    assert register_package(package.parent.parent, namespace=NAMESPACE) is first
    with pytest.raises(RegistrationError, match=r"registered already.*unregister\(\)"):
        register_package(package, namespace=NAMESPACE, only=("PackAdd",))
    assert register_package(package, namespace="packed_too").operators == first.operators


def test_a_changed_package_is_registered_again(package: Path) -> None:
    first = register_package(package, namespace=NAMESPACE)
    (package / "op_proto/inc/more.h").write_text(HEADER.format(name="PackMul"))
    (package / "relations.ini").write_text("".join(RELATION.format(name=n) for n in ("PackAdd", "PackSub", "PackMul")))
    second = register_package(package, namespace=NAMESPACE)
    assert second is not first
    assert second.operators == ("PackAdd", "PackMul", "PackSub")
    assert len(first) == 0


def test_operators_are_selected_by_name_and_pattern(package: Path) -> None:
    assert register_package(package, namespace="packed_a", only=("PackA*",)).operators == ("PackAdd",)
    assert register_package(package, namespace="packed_b", except_=["PackAdd"]).operators == ("PackSub",)
    with pytest.raises(RegistrationError, match=r"only: .* has no operator 'PackAd'; did you mean PackAdd"):
        register_package(package, namespace=NAMESPACE, only=["PackAd"])
    with pytest.raises(RegistrationError, match=r'write only=\("PackAdd",\)'):
        register_package(package, namespace=NAMESPACE, only="PackAdd")
    with pytest.raises(RegistrationError, match="namespace='a b'"):
        register_package(package, namespace="a b")


def test_an_operator_of_another_library_is_kept(package: Path) -> None:
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    library.define("pack_add(Tensor x) -> Tensor")
    with pytest.warns(PackageWarning, match="packed::pack_add exists already"):
        found = register_package(package, namespace=NAMESPACE)
    assert found.operators == ("PackSub",)
    assert str(torch.ops.packed.pack_add.default._schema) == "packed::pack_add(Tensor x) -> Tensor"
    library._destroy()


def test_a_registration_by_hand_comes_before_the_packages_own(package: Path) -> None:
    ascend_graph.load_prototypes(HEADER.format(name="PackAdd"))
    found = register_package(package)
    with pytest.raises(AscendGraphError):
        ascend_graph.register_op("PackAdd", shape="x[*s], nowhere[*s] -> z[*s]")
    assert torch._C._jit_get_schemas_for_operator("ascend::pack_add")
    op = ascend_graph.register_op("PackAdd", shape="x[a, b], y[a, b] -> z[b, a]")
    x = torch.empty(2, 3, device="meta")
    assert torch.ops.ascend.pack_add(x, x).shape == (3, 2)
    assert found["PackAdd"] is op
    found.unregister()
    assert op.registered
    op.unregister()


def test_threads_look_up_one_registration(package: Path) -> None:
    register_package(package, namespace=NAMESPACE)
    x, barrier, shapes, errors = torch.empty(2, device="meta"), threading.Barrier(8), [], []

    def look_up() -> None:
        barrier.wait()
        try:
            shapes.append(torch.ops.packed.pack_add(x, x).shape)
        except Exception as error:  # reported by the test
            errors.append(error)

    threads = [threading.Thread(target=look_up) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert shapes == [(2,)] * 8
    assert len(module._packages[package, NAMESPACE].in_use) == 1


def test_a_program_is_compiled_without_an_earlier_lookup(package: Path) -> None:
    register_package(package, namespace=NAMESPACE)

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.packed.pack_sub(x, x) + 1

    compiled = torch.compile(program, backend="eager", fullgraph=True)
    assert compiled(torch.empty(4, device="meta")).shape == (4,)


def test_the_package_is_selected_for_cann_and_deselected(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "/elsewhere")
    found = register_package(package, namespace=NAMESPACE)
    assert os.environ["ASCEND_CUSTOM_OPP_PATH"] == f"/elsewhere:{package}"
    found.unregister()
    assert os.environ["ASCEND_CUSTOM_OPP_PATH"] == "/elsewhere"
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    register_package("mine", namespace=NAMESPACE).unregister()
    assert os.environ["ASCEND_CUSTOM_OPP_PATH"] == str(package)


def test_the_cache_is_read_and_a_damaged_one_is_not(package: Path, tmp_path: Path) -> None:
    first = read_package(package)
    (file,) = (tmp_path / "cache" / "packages").glob("*.json")
    assert read_package(package).operators == first.operators
    for text in ("", "{}", '[["a", 1]]', '[["a", "b", "c", "d", "e", 7]]'):
        file.write_text(text)
        assert read_package(package).operators == first.operators


def test_a_package_is_read_where_no_cache_can_be_written(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", "/proc/no/such")
    assert len(read_package(package).operators) == 2


def test_a_line_of_relations_that_cannot_be_read_leaves_one_operator_out(package: Path) -> None:
    (package / "relations.ini").write_text(f"{RELATION.format(name='PackAdd')}\n[PackSub]\nwhat is this\n")
    with pytest.warns(PackageWarning, match=r"relations.ini:5: 'what is this' cannot be read"):
        found = register_package(package, namespace=NAMESPACE)
    assert found.operators == ("PackAdd",)


def test_a_package_behind_another_with_the_same_operator_is_named(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_package(tmp_path / "vendors" / "first", "PackAdd", "PackMul")
    for one, built in ((package, b"mine"), (first, b"first")):
        (one / "op_api" / "lib").mkdir(parents=True)
        (one / "op_api" / "lib" / "libcust_opapi.so").write_bytes(built)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(first))
    with pytest.warns(PackageWarning, match="first comes first in ASCEND_CUSTOM_OPP_PATH and has PackAdd, too"):
        found = register_package(package, namespace=NAMESPACE)
    found.unregister()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_package(first, namespace=NAMESPACE).unregister()
        register_package(package, namespace=NAMESPACE, except_=("PackAdd",)).unregister()
        # A copy of the same package has the same kernels.
        (package / "op_api" / "lib" / "libcust_opapi.so").write_bytes(b"first")
        register_package(package, namespace=NAMESPACE).unregister()

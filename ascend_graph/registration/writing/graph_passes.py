"""Passes over graphs with registered operators, before TorchAir compiles them; other graphs are left unchanged.

TorchAir has two graph compilers, ``torchair`` (GE, and captures in its mode ``"reduce-overhead"``) and ``npugraph_ex``
(captures); each is a class that ahead-of-time autograd calls with a graph.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.import_patches import patch_modules
from ascend_graph.registration.conversion.captured_objects import check_objects
from ascend_graph.registration.conversion.host_inputs import SameHostInputs, host_inputs
from ascend_graph.registration.conversion.input_offsets import AtTracedOffsets
from ascend_graph.registration.conversion.lazy_inputs import with_plain_inputs
from ascend_graph.registration.conversion.one_device import on_its_device
from ascend_graph.registration.conversion.reordered_views import keep_order_of_views
from ascend_graph.registration.conversion.returned_views import (
    compile_with_returned_inputs,
    compile_with_returned_views,
)
from ascend_graph.registration.conversion.static_kernels import recorded_on_copies
from ascend_graph.registration.conversion.strided_views import AtGivenOffsets, given_offsets, view_what_was_computed
from ascend_graph.registration.identity.cache_keys import keep_with_operators
from ascend_graph.registration.registered import registry
from ascend_graph.registration.writing import ge, mutation
from ascend_graph.registration.writing.base_layouts import (
    check_input_sizes,
    keep_base_layouts,
    keep_layouts_of_handed_on,
    placed_inputs,
)
from ascend_graph.registration.writing.calls_by_arguments import calls_by_arguments, describe_by_bases
from ascend_graph.registration.writing.input_layouts import check_written_inputs, keep_input_layouts
from ascend_graph.registration.writing.merged_inputs import give_views_their_layout
from ascend_graph.registration.writing.mutation import call_where_nothing_is_written, is_mutation
from ascend_graph.registration.writing.offsets import compute_offsets
from ascend_graph.registration.writing.parts import keep_parts_apart, write_parts_of_copies
from ascend_graph.registration.writing.saved_layouts import keep_saved_layouts
from ascend_graph.registration.writing.value_copies import (
    is_input,
    keep_copies_of_written_values,
    keep_returned_copies,
    return_apart,
    same_layout,
    separate_written_values,
    storage_of,
)

#: Packages of TorchAir's compilers; the second is loaded once a program is compiled for it.
_PACKAGES = ("torchair", "npugraph_ex")
#: Method of theirs that ahead-of-time autograd calls.
_ENTRY = "__call__"
_MARK = "_ascend_graph_passes"


class UnknownWheelError(AscendGraphError):
    """Error of a PyTorch or TorchAir without the functions that compile operators that write to arguments."""


def install() -> None:
    """Make the loaded compilers prepare graphs. A second call does nothing.

    Raises:
        UnknownWheelError: TorchAir has no such compiler, or none that takes a graph and its inputs, or PyTorch
            describes calls that write in another way.
    """
    if lacking := mutation.lacking():
        raise UnknownWheelError(
            f"torch._higher_order_ops.auto_functionalize: lacks {', '.join(lacking)}; expected a torch that was tested (docs/versions.md). Operators that "
            "write to arguments cannot be compiled with this one"
        )
    mutation.decompose_all_dtypes()
    for package in _PACKAGES:
        for namespace in _copies(package):
            _install(namespace.get("_NpuFxCompiler"), package)
    if f"{_PACKAGES[0]}.npu_fx_compiler" in sys.modules:
        ge.install()


def _prepare_loaded(module: ModuleType) -> Iterator[None]:
    """Make a compiler that is being loaded prepare graphs."""
    yield
    try:
        _install(vars(module).get("_NpuFxCompiler"), module.__name__.partition(".")[0])
    except UnknownWheelError as error:  # graphs of operators that only read are right but for lazy inputs
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)


#: Compilers' modules, and the change of each.
_COMPILERS = {f"{package}.npu_fx_compiler": _prepare_loaded for package in _PACKAGES}


def install_when_loaded() -> None:
    """Make the compilers prepare graphs, those that are loaded later, too. A second call does nothing."""
    patch_modules(_COMPILERS)


def _copies(package: str) -> list[dict[str, Any]]:
    """Return the namespaces of the package's compiler module, which a process may have loaded twice.

    torch_npu puts a stand-in for each package in ``sys.modules``. A program whose first import is
    ``torchair.npu_fx_compiler`` loads the package, and then the module again: ``torchair.get_npu_backend`` is of the
    first copy, and ``sys.modules`` has the second.
    """
    module = sys.modules.get(f"{package}.npu_fx_compiler")
    if module is None:
        return []
    copies = [vars(module)]
    used = getattr(getattr(sys.modules[package], "get_npu_backend", None), "__globals__", copies[0])
    return copies if used is copies[0] else [*copies, used]


def _install(compiler: Any, package: str) -> None:
    original = getattr(compiler, _ENTRY, None)
    if compiler is None or original is None:
        raise UnknownWheelError(
            f"{package}.npu_fx_compiler: has no class _NpuFxCompiler that is called with a graph; expected TorchAir of a torch_npu that was "
            "tested (docs/versions.md). Operators that write to arguments cannot be compiled with this one"
        )
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def call(self: Any, graph: fx.GraphModule, example_inputs: Any) -> Any:
        graph = _described_by_bases(graph)
        mode = getattr(self.config, "mode", None)  # npugraph_ex has captures alone
        captured = mode is None or str(mode.value) in ("npugraph_ex", "reduce-overhead")
        registered, gradient = has_registered(graph.graph), _is_gradient(graph.graph)
        offsets = given_offsets(graph.graph, captured=captured) if registered and not gradient else {}
        compiled = compile_graph(self, graph, example_inputs, captured)
        compiled = AtGivenOffsets(compiled, offsets) if offsets else compiled
        compiled = on_its_device(graph.graph, compiled) if registered or gradient else compiled
        return keep_with_operators(graph, compiled)

    def compile_graph(self: Any, graph: fx.GraphModule, example_inputs: Any, captured: bool) -> Any:
        registered, of_registered = has_registered(graph.graph), _of_registered(graph.graph)
        if registered:
            (check_input_sizes if captured else check_written_inputs)(graph.graph)
        ready, compile_ready = prepared(graph, captured=captured), functools.partial(original, self)
        if captured and registered:
            check_objects(graph.graph)
            compile_ready = functools.partial(_compile_captured, compile_ready, self.config)
        if registered and not _is_gradient(graph.graph):
            give_views_their_layout(ready.graph, captured=captured)
        if captured and registered:
            ready = _copied(ready)
            keep_parts_apart(ready.graph)
            keep_input_layouts(ready)
        if captured and registered and not _is_gradient(graph.graph):
            keep_saved_layouts(ready, _forward_returns(ready.graph))
        if of_registered and _is_gradient(graph.graph):
            ready = _copied(ready)
            (write_parts_of_copies if captured else _view_as_pytorch)(ready.graph)
            ready.recompile()
        if captured and (registered or _is_gradient(graph.graph)):
            return compile_with_returned_inputs(compile_ready, ready, example_inputs)
        if captured:
            return compile_ready(ready, example_inputs)

        def compile_plain(module: fx.GraphModule, inputs: Any) -> Any:
            return with_plain_inputs(module.graph, compile_ready(module, inputs), registered=registered)

        if not registered or _is_gradient(graph.graph):
            return compile_plain(ready, example_inputs)
        return compile_with_returned_views(compile_plain, ready, example_inputs, _forward_returns(ready.graph))

    setattr(call, _MARK, True)
    setattr(compiler, _ENTRY, call)


def _compile_captured(compile_graph: Any, config: Any, module: fx.GraphModule, inputs: Any) -> Any:
    """Compile a graph for captures, which takes the inputs that it writes at any offset, and those on the CPU unchanged."""
    offsets, on_host = placed_inputs(module.graph), host_inputs(module.graph)
    compiled = recorded_on_copies(compile_graph(module, inputs), module.graph, config)
    compiled = AtTracedOffsets(compiled, offsets) if offsets else compiled
    return SameHostInputs(compiled, on_host) if on_host else compiled


def has_registered(graph: fx.Graph) -> bool:
    """Return whether a graph calls a registered operator."""
    return any(
        is_mutation(node) or (isinstance(node.target, torch._ops.OpOverload) and node.target.name() in registry)
        for node in graph.nodes
    )


def _is_gradient(graph: fx.Graph) -> bool:
    """Return whether a graph computes gradients. It does not say whether its forward graph calls a registered operator."""
    return any(str(node.target).startswith("tangents_") for node in graph.find_nodes(op="placeholder"))


def _of_registered(graph: fx.Graph) -> bool:
    """Return whether a graph, or the forward graph of its trace, which is compiled first, calls a registered operator."""
    registered, context = has_registered(graph), torch._guards.TracingContext.try_get()
    if registered and context is not None:
        setattr(context, _MARK, True)
    return registered or getattr(context, _MARK, False)


def prepared(module: fx.GraphModule, *, captured: bool) -> fx.GraphModule:
    """Return an equivalent graph that TorchAir compiles correctly; without registered operators, the same graph.

    ATen may write where registered operators only read.
    """
    if not has_registered(module.graph):
        return module
    copy = _copied(module)
    if captured:
        keep_base_layouts(copy.graph)
    else:
        view_what_was_computed(copy.graph)
    for node in [node for node in copy.graph.nodes if is_mutation(node)]:
        # Tensors as they were traced: passes put others in their place, and PyTorch would go on with the offsets of the first ones.
        node.meta.pop("eager_input_vals", None)
        call_where_nothing_is_written(copy.graph, node)
    _return_views_of_inputs(copy.graph)
    if captured:
        keep_copies_of_written_values(copy.graph)
    keep_returned_copies(copy.graph)
    return_apart(copy.graph, _returned_anew(copy.graph))
    separate_written_values(copy.graph)
    if not captured:
        keep_layouts_of_handed_on(copy.graph)
        compute_offsets(copy.graph)
        keep_order_of_views(copy.graph)
    copy.graph.lint()
    copy.recompile()
    return copy


def _view_as_pytorch(graph: fx.Graph) -> None:
    """Have a gradient in GE view values in PyTorch's order, and by their place in PyTorch's memory."""
    view_what_was_computed(graph)
    keep_order_of_views(graph)


def _described_by_bases(module: fx.GraphModule) -> fx.GraphModule:
    """Return a graph whose calls that write are nodes with bases; without others, the same graph."""
    if not calls_by_arguments(module.graph):
        return module
    copy = _copied(module)
    for node in calls_by_arguments(copy.graph):
        describe_by_bases(copy.graph, node)
    copy.graph.lint()
    copy.recompile()
    return copy


def _copied(module: fx.GraphModule) -> fx.GraphModule:
    graph, nodes = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in module.graph.nodes:
        nodes[node] = graph.node_copy(node, lambda n: nodes[n])
        nodes[node].meta = dict(node.meta)
    copy = fx.GraphModule(module, graph)
    copy.meta.update(module.meta)
    return copy


# ------------------------------------------------------------------------------------------------ views of what is written


def _return_views_of_inputs(graph: fx.Graph) -> None:
    """Make a graph that writes to an input and returns views of its new value return views of the input.

    GE returns the new value as a tensor of its own, without the offset from which PyTorch makes the view of the input.
    A capture takes it for memory of its pool, once the operator writes in-place.
    """
    (output,) = (node for node in graph.nodes if node.op == "output")
    returned = list(output.args[0]) if isinstance(output.args[0], list | tuple) else []
    handed_out = _written_outside(graph)
    written = [
        *((node.args[0], node.args[1]) for node in graph.nodes if node.target is torch.ops.aten.copy_.default),
        *zip(handed_out, returned, strict=False),
    ]
    inputs = {
        storage_of(value): (target, value)
        for target, value in written
        if is_input(target) and storage_of(value) is not None
    }
    changed = False
    for position in range(len(handed_out), min(len(returned), _forward_returns(graph))):
        owner = inputs.get(storage_of(returned[position]))
        if owner is None or not same_layout(*owner):
            continue
        target, value = owner
        view = _View(graph, output, value, target).of(returned[position])
        if view is not None:
            returned[position], changed = view, True
    if changed:
        output.args = (type(output.args[0])(returned),)


class _View:
    """Replay of the views between two tensors on a third one."""

    def __init__(self, graph: fx.Graph, before: fx.Node, base: fx.Node, other: fx.Node) -> None:
        self._graph, self._before, self._storage = graph, before, storage_of(base)
        self._made: dict[fx.Node, fx.Node] = {base: other}
        self._moved = base.meta["val"].storage_offset() != other.meta["val"].storage_offset()

    def of(self, node: fx.Node) -> fx.Node | None:
        """Return the view of the other tensor; None if the node is computed by anything but views."""
        if node in self._made:
            return self._made[node]
        sources = [source for source in node.all_input_nodes if storage_of(source) == self._storage]
        places = node.target in (torch.ops.aten.as_strided.default,) and self._moved
        if node.op != "call_function" or len(sources) != 1 or places:
            return None
        source = self.of(sources[0])
        if source is None:
            return None
        with self._graph.inserting_before(self._before):
            made = self._graph.node_copy(node, lambda n: source if n is sources[0] else n)
        target: Any = node.target
        args, kwargs = fx.map_arg((made.args, made.kwargs), lambda given: given.meta["val"])
        made.meta = {**node.meta, "val": target(*args, **kwargs)}
        self._made[node] = made
        return made


def _metadata(graph: fx.Graph) -> Any:
    """Return what ahead-of-time autograd knows of a forward graph, or None."""
    context = torch._guards.TracingContext.try_get()
    return None if context is None or _is_gradient(graph) else context.fw_metadata


def _forward_returns(graph: fx.Graph) -> int:
    """Return the number of outputs that the program gets; outputs saved for the backward pass follow them."""
    metadata = _metadata(graph)
    return 0 if metadata is None else int(metadata.num_forward_returns) + len(metadata.tokens)


def _written_outside(graph: fx.Graph) -> list[fx.Node]:
    """Return the inputs whose new values are the first outputs: ``keep_inference_input_mutations=False`` writes them outside."""
    metadata, inputs = _metadata(graph), graph.find_nodes(op="placeholder")
    if metadata is None or metadata.tokens:
        return []
    return [inputs[n] for n in metadata.mutated_inp_runtime_indices]


def _returned_anew(graph: fx.Graph) -> list[int]:
    """Return the places of results that are new tensors for PyTorch, which share memory with no input and no other result."""
    from torch._functorch._aot_autograd.schemas import OutputType

    metadata = _metadata(graph)
    if metadata is None or metadata.tokens:
        return []
    before = len(metadata.mutated_inp_runtime_indices)
    anew = [info.output_type is OutputType.non_alias for info in metadata.output_info]
    return [before + place for place, new in enumerate(anew) if new]

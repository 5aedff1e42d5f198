"""Origins of pointers: the argument of the kernel that each pointer is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ascend_graph.host.triton.ir import IrOperation, Module

#: Operations whose results point to what their first operand points to.
_ONWARD = frozenset(
    [
        "tt.addptr",
        "tt.splat",
        "tt.broadcast",
        "tt.expand_dims",
        "tt.reshape",
        "tt.trans",
        "tt.bitcast",
        "tt.advance",
        "tt.make_tensor_ptr",
        "tt.make_tensor_descriptor",
        "tt.flip",
        "tt.split",
        "tensor.extract_slice",
        "tensor.extract",
    ]
)
#: Operations all of whose tensor operands may be in their result.
_UNITED = frozenset("arith.select tt.cat tt.join tensor.insert_slice".split())  # noqa: SIM905

_UNKNOWN = -1


class Origins:
    """Classes of values that a pointer flows through; a class with one argument in it has that as its origin."""

    def __init__(self, module: Module) -> None:
        self._parents: dict[str, str] = {}
        self._roots: dict[str, set[int]] = {}
        self._module = module
        for name, function in module.functions.items():
            self._visit(name, function)
        for place, argument in enumerate(module.kernel.regions[0].blocks[0].arguments):
            kernel = str(module.kernel.attributes["sym_name"])
            self._roots.setdefault(self._find(f"{kernel}{argument}"), set()).add(place)

    def of(self, function: str, value: str) -> int | None:
        """Return the place of the argument that a value points into; None if there are several, or none is known."""
        roots = self._roots.get(self._find(function + value), set())
        return next(iter(roots)) if len(roots) == 1 and _UNKNOWN not in roots else None

    def _find(self, key: str) -> str:
        while (parent := self._parents.get(key, key)) != key:
            self._parents[key] = self._parents.get(parent, parent)
            key = parent
        return key

    def _unite(self, a: str, b: str) -> None:
        a, b = self._find(a), self._find(b)
        if a != b:
            self._parents[a] = b
            self._roots.setdefault(b, set()).update(self._roots.pop(a, set()))

    def _flow(self, function: str, sources: Iterable[str], targets: Iterable[str]) -> None:
        for source, target in zip(sources, targets, strict=False):
            self._unite(function + source, function + target)

    def _visit(self, function: str, operation: IrOperation) -> None:
        for region in operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    self._through(function, inner, operation, region.labels, [b.arguments for b in region.blocks])
                    self._visit(function, inner)
        self._enter(function, operation)

    def _enter(self, function: str, operation: IrOperation) -> None:
        """Follow the operands into the regions of an operation."""
        first = operation.regions[0].blocks[0].arguments if operation.regions and operation.regions[0].blocks else []
        if operation.name == "scf.for":
            self._flow(function, operation.operands[3:], first[1:])
            self._flow(function, first[1:], operation.results)
        elif operation.name == "scf.while":
            self._flow(function, operation.operands, first)

    def _through(
        self,
        function: str,
        operation: IrOperation,
        around: IrOperation,
        labels: Mapping[str, int],
        blocks: list[list[str]],
    ) -> None:
        name, operands, results = operation.name, operation.operands, operation.results
        if name in _ONWARD:
            self._flow(function, operands[:1] * len(results), results)
        elif name in _UNITED:
            for operand in operands:
                self._flow(function, [operand], results)
        elif name == "scf.yield":
            self._yielded(function, operands, around)
        elif name == "scf.condition":
            self._flow(function, operands[1:], around.results)
            self._flow(function, operands[1:], around.regions[1].blocks[0].arguments)
        elif name == "tt.call":
            self._called(function, operation)
        elif name in ("tt.load", "tt.int_to_ptr", "tt.atomic_rmw"):
            for result in results:
                self._roots.setdefault(self._find(function + result), set()).add(_UNKNOWN)
        for label, arguments in operation.successors:
            self._flow(function, arguments, blocks[labels[label]])

    def _yielded(self, function: str, operands: list[str], around: IrOperation) -> None:
        self._flow(function, operands, around.results)
        if around.name == "scf.for":
            self._flow(function, operands, around.regions[0].blocks[0].arguments[1:])
        elif around.name == "scf.while":
            self._flow(function, operands, around.regions[0].blocks[0].arguments)

    def _called(self, function: str, operation: IrOperation) -> None:
        callee = str(operation.attributes["callee"])
        blocks = self._module.functions[callee].regions[0].blocks
        for operand, argument in zip(operation.operands, blocks[0].arguments, strict=True):
            self._unite(function + operand, callee + argument)
        for inner in (last for block in blocks for last in block.operations[-1:] if last.name == "tt.return"):
            for returned, result in zip(inner.operands, operation.results, strict=True):
                self._unite(callee + returned, function + result)

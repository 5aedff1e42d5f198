"""Comparison of torch_npu's hand-written meta functions that have no or few branches with short relations.

For each operator the relation's meta function is registered on a copy of the operator with the same schema. Both are
called on the same random inputs, with concrete sizes on the meta device and with symbolic sizes under FakeTensor, and
their outputs compared: number, presence, shape, dtype (and strides, reported separately).

    python -m ascend_graph.host benchmarks/metas.py
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import random
import statistics
import timeit
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch_npu
from rich.console import Console
from rich.table import Table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from ascend_graph.compilation import torch_library
from ascend_graph.dispatch.fake import register_meta
from ascend_graph.dispatch.meta import meta_function
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.samples import RelationSampleError, sample
from benchmarks.data.npu_relations import BRANCH_FREE, FIXES, SMALL_BRANCHES, Fix, RelationEntry

CASES = 12
SHAPES = 20


@dataclass(slots=True)
class MetaResult:
    """Result for one operator."""

    op: str
    lines: int
    relation: str
    cases: int = 0
    equal: int = 0
    strides: int = 0
    symbolic: int = 0
    symbolic_equal: int = 0
    guards: int = 0
    guards_by_hand: int = 0
    #: Error of the hand-written function, if it raised for every input.
    broken: str = ""
    #: The same error, if the function was compared after a fix (:data:`FIXES`).
    fixed: str = ""
    difference: str = ""
    ratio: float = 0.0
    fake_ratio: float = 0.0
    compilations: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def matches(self) -> bool:
        """True if there was something to compare, and all of it was equal."""
        return self.cases > 0 and self.equal == self.cases and self.symbolic_equal == self.symbolic > 0


@dataclass(frozen=True, slots=True)
class Registration:
    """Meta function that the wheel registers."""

    op: str
    function: Callable[..., Any]
    lines: int


def registrations() -> list[Registration]:
    """Return the functions that the wheel's _meta_registrations.py registers."""
    module = torch_npu.op_plugin.meta._meta_registrations
    found = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator).startswith("impl(m,"):
                    name = decorator.args[1]
                    assert isinstance(name, ast.Constant)
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    found.append(Registration(str(name.value), getattr(module, node.name), lines))
    return found


def fixed(function: Callable[..., Any], fix: Fix, schema: Any) -> Callable[..., Any]:
    """Return a fixed form of a hand-written function that cannot return as registered, called by parameter names."""
    assert isinstance(function, types.FunctionType)
    again = types.FunctionType(
        function.__code__, function.__globals__ | fix.names, None, function.__defaults__, function.__closure__
    )
    again.__kwdefaults__ = function.__kwdefaults__
    parameters = inspect.signature(function).parameters
    ordered = [a.name for a in schema.arguments if not a.kwarg_only]
    # A parameter whose name differs from its argument's is the one at the same position.
    renamed = dict(zip(parameters, ordered, strict=False))
    count = len(schema.returns)

    def call(*args: object, **kwargs: object) -> Any:
        values = dict(zip(ordered, args, strict=False)) | kwargs
        result = again(**{name: values.get(name, values.get(renamed.get(name, ""))) for name in parameters})
        return result if isinstance(result, tuple) and len(result) == count > 1 else _returned(result, count)

    return call


def _returned(result: Any, count: int) -> Any:
    """Return the part of a result that the schema's returns keep."""
    return None if count == 0 else result[0] if isinstance(result, tuple) else result


def overload(op: str) -> Any:
    """Return the overload that a registration such as ``"npu_apply_adam_w.out"`` names."""
    name, _, suffix = op.partition(".")
    return getattr(getattr(torch.ops.npu, name), suffix or "default")


def _dtype(value: object) -> object:
    named = getattr(torch, value, None) if isinstance(value, str) else None
    return named if isinstance(named, torch.dtype) else value


def _filler(argument: Any) -> object:
    """Return a value for a required argument that the table does not mention."""
    kind = str(argument.type)
    if kind in ("int", "number", "SymInt"):
        return 1
    if kind.startswith("List[int") or kind == "List[SymInt]":
        return [1] * (argument.N or 4)
    return {"float": 1.0, "str": "", "bool": False, "List[bool]": [True] * 3}.get(kind)


@dataclass(slots=True)
class Caller:
    """Generator of the calls of one operator."""

    schema: Any
    entry: RelationEntry
    relation: Relation

    def attrs(self) -> Iterator[dict[str, object]]:
        """Yield all combinations of the table's attr values, with defaults for the rest, in random order."""
        base = {
            a.name: a.default_value if a.has_default_value() else _filler(a)
            for a in self.schema.arguments
            if "Tensor" not in str(a.type)
        }
        keys = list(self.entry.attrs)
        combinations = list(itertools.product(*self.entry.attrs.values()))
        random.Random(0).shuffle(combinations)
        for values in itertools.cycle(combinations):
            yield base | {key: _dtype(value) for key, value in zip(keys, values, strict=True)}

    @property
    def optional(self) -> list[str]:
        """Optional tensor arguments that the relation mentions and the table does not list as given."""
        return [
            a.name
            for a in self.schema.arguments
            if str(a.type).startswith("Optional") and a.name in self.relation.inputs and a.name not in self.entry.given
        ]

    def tensors(self, attrs: Mapping[str, object], rng: random.Random, **options: Any) -> dict[str, Any]:
        """Return random tensor arguments on the meta device; those not in the relation are small matrices."""
        named = {k: str(v).removeprefix("torch.") if isinstance(v, torch.dtype) else v for k, v in attrs.items()}
        used = {k: named[k] for k in named if k in self.relation.attr_names}
        used |= {k: _number_name(v) for k, v in used.items() if k.endswith("dtype") or k == "dst_type"}
        if self.entry.sizes:
            options["sizes"] = self.entry.sizes
        found = sample(self.relation, used, rng, optional=self.optional, dtypes=self.entry.dtypes, **options)
        tensors: dict[str, Any] = {}
        for a in self.schema.arguments:
            if "Tensor" not in str(a.type):
                continue
            if a.name not in self.relation.inputs:
                optional = str(a.type).startswith("Optional")
                plain = torch.empty(4, 4, device="meta")
                tensors[a.name] = None if optional else [plain, plain] if "List" in str(a.type) else plain
                continue
            shape, dtype = found.shapes[a.name], found.dtypes[a.name]
            if shape is None:
                tensors[a.name] = None
            elif "List" in str(a.type):
                tensors[a.name] = [_tensor(s, d, rng) for s, d in zip(shape, dtype, strict=True)]
            else:
                tensors[a.name] = _tensor(shape, dtype, rng)
        return tensors

    def arguments(self, values: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
        """Return the positional and keyword arguments of a call."""
        args = [values[a.name] for a in self.schema.arguments if not a.kwarg_only]
        return args, {a.name: values[a.name] for a in self.schema.arguments if a.kwarg_only}


def _number_name(value: object) -> object:
    """Return the name of the dtype of a ScalarType number: the sampler knows only names."""
    from ascend_graph.dispatch.meta_dtypes import TORCH

    dtype = TORCH.from_attr(value)
    return None if dtype is None else TORCH.to_name(dtype)


def _tensor(shape: Sequence[int], dtype: str, rng: random.Random) -> torch.Tensor:
    tensor = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
    if len(shape) >= 2 and rng.random() < 0.3:  # dense, but not contiguous
        order = rng.sample(range(len(shape)), len(shape))
        inverse = [order.index(n) for n in range(len(shape))]
        tensor = torch.empty([shape[n] for n in order], dtype=tensor.dtype, device="meta").permute(inverse)
    return tensor


def describe(value: Any, *, strides: bool) -> Any:
    """Return outputs as plain comparable values, with symbolic sizes as their hints."""
    if isinstance(value, torch.Tensor):
        sizes = tuple(_hint(size) for size in value.shape)
        return ("tensor", sizes, value.dtype, tuple(_hint(s) for s in value.stride()) if strides else ())
    if isinstance(value, list | tuple):
        return [describe(item, strides=strides) for item in value]
    return _hint(value)


def _hint(value: Any) -> Any:
    return value.node.hint if isinstance(value, torch.SymInt) else value


def _call(function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Any, str]:
    try:
        return function(*args, **kwargs), ""
    except Exception as error:  # whatever a function written by hand raises is a result here
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _symbolic(values: Mapping[str, Any]) -> tuple[FakeTensorMode, dict[str, Any], ShapeEnv]:
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment)

    def fake(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * value.dim())
            return mode.from_tensor(value, symbolic_context=context)
        if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            return [fake(item) for item in value]
        return value

    return mode, {name: fake(value) for name, value in values.items()}, environment


def compare(op: str, registered: Registration, entry: RelationEntry, library: torch.library.Library) -> MetaResult:
    """Compare one operator's function with its relation, and time both."""
    relation = parse_relation(entry.relation)
    theirs = overload(op)
    schema = theirs._schema
    name = op.replace(".", "_")
    library.define(
        str(schema)
        .replace(f"{schema.name}.{schema.overload_name}(", f"{name}(")
        .replace("npu::", "")
        .replace(f"{schema.name}(", f"{name}(")
    )
    ours = getattr(torch.ops.relations, name).default
    register_meta(ours, meta_function(relation, ours._schema))
    result = MetaResult(op, registered.lines, entry.relation)
    caller = Caller(schema, entry, relation)
    last, failures = _compare_calls(result, caller, theirs, ours)
    if last is not None:
        result.errors = failures
        result.ratio = _ratio(theirs, ours, *last)
        result.fake_ratio = _fake_ratio(theirs, ours, *last)
    elif op in FIXES:
        result.fixed = f"{FIXES[op].reason}: {failures[-1]}"
        _compare_calls(result, caller, fixed(registered.function, FIXES[op], schema), ours)
    else:
        result.broken = failures[-1]
    return result


Call = tuple[list[object], dict[str, object]]


def _compare_calls(result: MetaResult, caller: Caller, theirs: Any, ours: Any) -> tuple[Call | None, list[str]]:
    """Compare many calls; return the last that the hand-written function accepted, and its errors for the others."""
    failures: list[str] = []
    last: Call | None = None
    rng = random.Random(result.op)
    for attrs, _ in zip(caller.attrs(), range(CASES), strict=False):
        values = attrs | caller.tensors(attrs, rng)
        args, kwargs = caller.arguments(values)
        a, failure = _call(theirs, args, kwargs)
        if failure:
            failures.append(failure)
            continue
        last = args, kwargs
        b, error = _call(ours, args, kwargs)
        result.cases += 1
        result.equal += not error and describe(a, strides=False) == describe(b, strides=False)
        result.strides += not error and describe(a, strides=True) == describe(b, strides=True)
        if error or describe(a, strides=False) != describe(b, strides=False):
            result.difference = error or f"{describe(a, strides=False)} by hand, {describe(b, strides=False)} here"
        _compare_symbolic(result, caller, theirs, ours, values)
    return last, failures


def _compare_symbolic(result: MetaResult, caller: Caller, theirs: Any, ours: Any, values: Mapping[str, Any]) -> None:
    outcomes = []
    for function in (theirs, ours):
        mode, fakes, environment = _symbolic(values)
        args, kwargs = caller.arguments(fakes)
        with mode:
            value, error = _call(function, args, kwargs)
        outcomes.append((describe(value, strides=False), error, len(environment.guards)))
    (a, failure, guards_by_hand), (b, error, guards) = outcomes
    if failure:  # a function that only takes concrete sizes leaves nothing to compare
        return
    result.symbolic += 1
    result.symbolic_equal += not error and a == b
    result.guards += guards
    result.guards_by_hand += guards_by_hand
    if error or a != b:
        result.difference = f"symbolic: {error or f'{a} by hand, {b} here'}"


def _time(function: Callable[[], object]) -> float:
    return min(timeit.repeat(function, number=60, repeat=5)) / 60


def _ratio(theirs: Any, ours: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> float:
    return _time(lambda: ours(*args, **kwargs)) / _time(lambda: theirs(*args, **kwargs))


def _fake_ratio(theirs: Any, ours: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> float:
    with FakeTensorMode() as mode:

        def fake(value: Any) -> Any:
            if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
                return [mode.from_tensor(t) for t in value]
            return mode.from_tensor(value) if isinstance(value, torch.Tensor) else value

        fakes, named = [fake(a) for a in args], {k: fake(a) for k, a in kwargs.items()}
        return _ratio(theirs, ours, fakes, named)


#: Relations of the operators in data/metas.cpp, and the shapes they are timed with.
IN_CPP: dict[str, tuple[str, list[tuple[int, ...]]]] = {
    "like": ("x -> y like x", [(16, 32)]),
    "mm": ("x[m, k], w[k, n] -> y[m, n]", [(16, 32), (32, 64)]),
    "linear": ("x[*s, k], w[n, k], b[n] -> y[*s, n]", [(4, 16, 32), (64, 32), (64,)]),
    "quant": ("x[*s, n] -> y[*s, n]: int8, scale[*s, ceildiv(n, block)]: float32", [(4, 16, 96)]),
}


def cpp_ratios(library: torch.library.Library) -> dict[str, tuple[float, float]]:
    """Return the cost of a call relative to a meta function in C++, on the meta device and under FakeTensor."""
    torch.ops.load_library(torch_library("metas_in_cpp", [Path(__file__).parent / "data" / "metas.cpp"]).build())
    found = {}
    for name, (relation, shapes) in IN_CPP.items():
        theirs = getattr(torch.ops.metas_in_cpp, name).default
        library.define(str(theirs._schema).replace("metas_in_cpp::", "in_cpp_"))
        ours = getattr(torch.ops.relations, f"in_cpp_{name}").default
        register_meta(ours, meta_function(parse_relation(relation), ours._schema))
        args = [torch.empty(shape, device="meta") for shape in shapes]
        assert describe(ours(*args), strides=True) == describe(theirs(*args), strides=True)
        found[name] = _ratio(theirs, ours, args, {}), _fake_ratio(theirs, ours, args, {})
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return torch.empty(value.shape, dtype=value.dtype, device="meta") if isinstance(value, torch.Tensor) else value


def _fits(caller: Caller, attrs: Mapping[str, object], structure: int, sizes: Sequence[int]) -> bool:
    try:
        caller.tensors(attrs, random.Random(0), structure=structure, sizes=sizes, tries=50)
    except RelationSampleError:
        return False
    return True


def recompilations(op: str, entry: RelationEntry) -> int:
    """Return the number of compilations of the relation's operator over many shapes, with ``dynamic=True``."""
    relation = parse_relation(entry.relation)
    ours = getattr(torch.ops.relations, op.replace(".", "_")).default
    caller = Caller(ours._schema, entry, relation)
    attrs = next(caller.attrs())
    compiled = 0

    def backend(graph: Any, _: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return graph

    def run(tensors: dict[str, Any]) -> object:
        args, kwargs = caller.arguments(attrs | tensors)
        return ours(*args, **kwargs)

    torch._dynamo.reset()
    function = torch.compile(run, backend=backend, dynamic=True, fullgraph=True)
    # Attrs are constants of a model; dynamic=True would otherwise make symbols of them too.
    torch._dynamo.config.specialize_int = True
    rng = random.Random(op)
    sizes = entry.sizes or [16 * n for n in range(1, 33)]
    structure = next(n for n in range(1000) if _fits(caller, attrs, n, sizes))
    for _ in range(SHAPES):
        tensors = caller.tensors(attrs, rng, structure=structure, sizes=sizes)
        # Of one layout: another order of strides would be another graph, whatever the meta function says.
        function({name: _plain(value) for name, value in tensors.items()})
    return compiled


def main() -> dict[str, Any]:
    """Compare everything, print the table, return the summary."""
    registered = registrations()
    by_hand = {registration.op: registration for registration in registered}
    library = torch.library.Library("relations", "DEF")
    console = Console(width=200)
    table = Table(
        "operator",
        "lines",
        "relation",
        "concrete",
        "symbolic",
        "strides",
        "meta ratio",
        "fake ratio",
        "compiled",
        "remark",
    )
    results: dict[str, MetaResult] = {}
    for op, entry in (BRANCH_FREE | SMALL_BRANCHES).items():
        result = results[op] = compare(op, by_hand[op], entry, library)
        if result.matches and parse_relation(entry.relation).inputs:
            try:
                result.compilations = recompilations(op, entry)
            except torch._dynamo.exc.TorchDynamoException as error:
                result.difference = f"not compiled: {str(error).splitlines()[0]}"
        remark = f"by hand always {result.broken}" if result.broken else result.difference
        remark = remark or (f"fixed by hand: {result.fixed}" if result.fixed else "")
        if result.errors and not remark:
            remark = f"by hand sometimes {result.errors[-1]}"
        table.add_row(
            op,
            str(result.lines),
            str(len(entry.relation)),
            f"{result.equal}/{result.cases}",
            f"{result.symbolic_equal}/{result.symbolic}",
            f"{result.strides}/{result.cases}",
            f"{result.ratio:.2f}",
            f"{result.fake_ratio:.2f}",
            str(result.compilations),
            remark[:90],
        )
    console.print(table)
    free = [results[op] for op in BRANCH_FREE]
    small = [results[op] for op in SMALL_BRANCHES]
    timed = [r for r in results.values() if r.ratio]
    in_cpp = cpp_ratios(library)
    for name, (ratio, fake_ratio) in in_cpp.items():
        console.print(f"against C++: {name:8} {ratio:5.2f} on the meta device, {fake_ratio:5.2f} under FakeTensor")
    summary = {
        "total": len(registered),
        "branch_free": len(free),
        "branch_free_equal": sum(r.matches for r in free),
        "branch_free_fixed_by_hand": sum(bool(r.fixed) for r in free),
        "small_branches": len(small),
        "small_branches_equal": sum(r.matches for r in small),
        "small_branches_fixed_by_hand": sum(bool(r.fixed) for r in small),
        "call_ratio": round(statistics.median(r.fake_ratio for r in timed), 3),
        "call_ratio_meta_device": round(statistics.median(r.ratio for r in timed), 3),
        "call_ratio_cpp": round(statistics.median(fake_ratio for _, fake_ratio in in_cpp.values()), 3),
        "call_ratio_cpp_meta_device": round(statistics.median(ratio for ratio, _ in in_cpp.values()), 3),
        "recompilations": sum(max(r.compilations - 1, 0) for r in results.values()),
        "compiled_ops": sum(r.compilations > 0 for r in results.values()),
        "guards": sum(r.guards for r in results.values()),
        "guards_by_hand": sum(r.guards_by_hand for r in results.values()),
        "lines_by_hand": sum(r.lines for r in results.values()),
        "characters_of_relations": sum(len(r.relation) for r in results.values()),
    }
    print(json.dumps(summary))
    return summary


if __name__ == "__main__":
    main()

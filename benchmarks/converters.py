"""Comparison of our converters with torch_npu's hand-written ones for ``torch.ops.npu.*``, by GE nodes of equal calls.

Each operator with a hand-written converter is registered by one call of ``register_op`` with only the GE name, then with
the ``arguments=`` of data/npu_arguments.py. Both converters are called with the same arguments, many times: optional
tensors present and absent, attrs at their defaults and not, dtypes, ranks. The nodes are compared by what they compute: op
type, wiring, attrs with the prototype's defaults filled in, descriptions of inputs and outputs. TorchAir's automatic
converter goes through the same comparison in the same run.

    python -m ascend_graph.host benchmarks/converters.py [--only NAME] [--show]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import inspect
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch_npu
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import ascend_graph
from ascend_graph.binding.dtypes import STORED_AS
from ascend_graph.dispatch.torchair import existing_converter
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.prototypes.catalog import process_catalog
from ascend_graph.prototypes.writer import to_reg_op
from ascend_graph.registration.conversion.comparison import Nodes, RefusedError, ReplacedConverterWarning, build_nodes

sys.path.insert(0, str(Path(__file__).parent))
from _common import run
from data.npu_arguments import AMENDED_DOCSTRINGS, EXPLAINED, FOR_A5_ONLY, MORE_PROTOTYPES, OPERATORS, OperatorArguments
from raw_op_parity import prototype_of, wheel_functions

_fx = importlib.import_module("torchair._ge_concrete_graph.fx2ge_converter")
_ge = importlib.import_module("torchair.ge._ge_graph")
_compat = importlib.import_module("torchair._ge_concrete_graph.compat_ir")
importlib.import_module("torchair._ge_concrete_graph.ge_converter.custom")

#: Maximum number of calls to try, and the number of comparisons that suffices.
ATTEMPTS, ENOUGH = 400, 60


def compatible(*_: Any, **__: Any) -> str:
    """Return "" in place of the query of the installed CANN, which knows no ops on a machine without CANN."""
    return ""


# -------------------------------------------------------------------------------------------------------- the operators


def hand_written() -> dict[str, Any]:
    """Return the overloads of ``torch.ops.npu`` that have a converter, by name."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "npu":
            continue
        overload = getattr(getattr(torch.ops.npu, name), schema.overload_name or "default")
        if existing_converter(overload) is not None:
            found[name if not schema.overload_name else f"{name}.{schema.overload_name}"] = overload
    return dict(sorted(found.items()))


def load_wheel_prototypes() -> dict[str, OpPrototype]:
    """Load the prototypes in the docstrings of the wheel's raw ops, as a header is loaded, and return them."""
    prototypes = {}
    for function in [*wheel_functions().values(), _ge.Cast, *_functions("dynamic_output_ops")]:
        try:
            prototype = prototype_of(function)
        except ValueError:
            continue
        prototypes[prototype.op_type] = prototype
    for op_type, (written, meant) in AMENDED_DOCSTRINGS.items():
        text = to_reg_op(prototypes[op_type])
        assert written in text, f"the docstring of {op_type} has changed"
        prototypes[op_type] = parse_text(text.replace(written, meant)).prototypes[0]
    for prototype in parse_text(MORE_PROTOTYPES).prototypes:
        prototypes[prototype.op_type] = prototype
    process_catalog.load("\n".join(to_reg_op(prototype) for prototype in prototypes.values()))
    return prototypes


def _functions(module: str) -> list[Callable[..., Any]]:
    found = vars(importlib.import_module(f"torchair._ge_concrete_graph.{module}")).values()
    return [value for value in found if inspect.isfunction(value) and value.__doc__ and "REG_OP" in value.__doc__]


# -------------------------------------------------------------------------------------------------------- drawing calls


@dataclass(frozen=True)
class Drawn:
    """Drawn tensor argument: its dtype and its sizes."""

    dtype: torch.dtype
    sizes: tuple[int, ...]


_TORCH = (
    *(torch.float16, torch.float32, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool),
    *(torch.uint64, torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e8m0fnu),
)
_GE_NUMBERS = {int(_ge.torch_type_to_ge_type(dtype)): dtype for dtype in _TORCH}
#: Dtypes of a meta function's outputs for GE dtypes that torch lacks.
_STORED = {34: torch.uint8, 40: torch.uint8, 41: torch.uint8}
_DTYPE_NUMBERS = (1, 5, 6, 15, 23, 24, 290, 291, 292, 0, 3)


class ConverterCallGenerator:
    """Generator of calls that an operator's hand-written converter may accept: literals come from its source."""

    def __init__(self, overload: Any, prototype: OpPrototype, names: Mapping[str, str], converter: Any) -> None:
        self.schema = overload._schema
        self.random = random.Random(overload.name())
        self.dtypes, self.symbols = {}, {}
        inputs = {parameter.name: parameter for parameter in prototype.inputs}
        uniform = len({parameter.dtypes for parameter in (*prototype.inputs, *prototype.outputs)}) == 1
        for argument in self.schema.arguments:
            parameter = inputs.get(names.get(argument.name, argument.name))
            allowed = [_GE_NUMBERS[int(d)] for d in parameter.dtypes if int(d) in _GE_NUMBERS] if parameter else []
            # One dtype for what the prototype ties; mixed ones we cast, which hand-written converters leave to the caller.
            self.symbols[argument.name] = parameter and (
                parameter.symbol or (str(parameter.dtypes) if uniform else None)
            )
            self.dtypes[argument.name] = allowed or [torch.float16, torch.float32, torch.bfloat16, torch.int32]
        self.strings, self.integers = _literals(converter)
        parameters = inspect.signature(converter).parameters
        self.known = set(parameters)
        self.count = len([p for p in parameters.values() if p.name != "meta_outputs"])

    def call(self, attempt: int) -> tuple[list[Any], dict[str, Any]]:
        """Draw one call: the first has defaults, the others pass more and more arguments."""
        rank = self.random.choice((2, 4, 3, 2, 4, 1, 5))
        dtype = self.random.choice((torch.float16, torch.bfloat16, torch.float32, None))
        share = (0.0, 0.15, 0.5, 0.9)[attempt % 4]
        args, kwargs = [], {}
        self.chosen: dict[str, torch.dtype] = {}
        for argument in self.schema.arguments:
            if argument.has_default_value() and self.random.random() >= share:
                if argument.kwarg_only:
                    continue
                value = argument.default_value
            else:
                value = self.value(argument, rank, dtype)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        # Defaults are given as values: hand-written converters have other ones in some places, see ``own_defaults``.
        # What a hand-written converter has no parameter for is left out at its default.
        for argument in self.schema.arguments:
            if argument.kwarg_only and argument.has_default_value() and argument.name in self.known:
                kwargs.setdefault(argument.name, argument.default_value)
        positional = [argument for argument in self.schema.arguments if not argument.kwarg_only]
        while len(args) > self.count and args[-1] == positional[len(args) - 1].default_value:
            args.pop()
        return args, kwargs

    def value(self, argument: Any, rank: int, dtype: torch.dtype | None) -> Any:
        kind = str(argument.real_type)
        if kind.startswith("Optional["):
            kind = kind[len("Optional[") : -1]
        choose = self.random.choice
        if "Tensor" in kind:
            allowed = self.dtypes[argument.name]
            made = dtype if dtype in allowed else choose(allowed)
            symbol = self.symbols[argument.name]
            if symbol:
                made = self.chosen.setdefault(symbol, made)
            tensor = Drawn(made, tuple(choose((1, 2, 8)) for _ in range(rank)))
            return [tensor] * choose((1, 2)) if kind.startswith("List[") else tensor
        element = kind.removeprefix("List[").removesuffix("]")
        length = argument.N or choose((1, 2, 3))
        if kind.startswith("List["):
            return [self.scalar(element, argument.name) for _ in range(length)]
        return self.scalar(element, argument.name)

    def scalar(self, kind: str, name: str) -> Any:
        choose = self.random.choice
        if kind == "ScalarType":
            return choose((torch.float16, torch.bfloat16, torch.int8, torch.float32))
        if kind == "bool":
            return choose((True, False))
        if kind in ("float", "number"):
            return choose((0.0, 0.5, 1.0, 1e-5, 3.25))
        if kind == "str":
            return choose(self.strings)
        if "dtype" in name or "dst_type" in name:
            return choose(_DTYPE_NUMBERS)
        return choose(self.integers)


def _literals(converter: Any) -> tuple[list[str], list[int]]:
    module = inspect.getmodule(inspect.unwrap(converter))
    tree = ast.parse(inspect.getsource(module)) if module else ast.parse("")
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    strings = {value for value in constants if isinstance(value, str) and 0 < len(value) < 20 and value.isprintable()}
    integers = {value for value in constants if isinstance(value, int) and not isinstance(value, bool) and value < 300}
    return sorted(strings - {"input", "ND"}) or ["", "a"], sorted(integers | {0, 1, 2, -1})


# ------------------------------------------------------------------------------------------------------ building, nodes


_FORBIDDEN = re.compile(r"; allowed are DT_|, allows DT_")


def build(
    converter: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    metas: Any,
    prototypes: Any,
    *,
    describe: bool = True,
) -> Nodes:
    """Call a converter with the drawn tensors and return the nodes that it builds."""
    with _ge.GeGraph():
        index = count()

        def tensor(value: Any) -> Any:
            if isinstance(value, Drawn):
                dtype = _ge.torch_type_to_ge_type(value.dtype)
                data = _ge.Data(index=next(index), dtype=dtype, shape=list(value.sizes), placement="NPU")
                data.set_meta(torch.empty(value.sizes, dtype=value.dtype, device="meta"))
                return data
            return [tensor(item) for item in value] if isinstance(value, list) else value

        positional = [tensor(value) for value in args]
        named = {name: tensor(value) for name, value in kwargs.items()}
    return build_nodes(converter, positional, named, metas, prototype_of=prototypes.get, describe=describe)


# ------------------------------------------------------------------------------------------------------------ comparing


@dataclass
class ConverterResult:
    """Result of comparing one converter with the hand-written one."""

    compared: int = 0
    #: Calls that both refused, only the hand-written one refused, and only the other one refused.
    both_refuse: Counter[str] = field(default_factory=Counter)
    theirs_refuse: Counter[str] = field(default_factory=Counter)
    ours_refuse: Counter[str] = field(default_factory=Counter)
    #: Calls in which the hand-written converter returns another number of tensors than its schema: only nodes compare.
    unfit: int = 0
    #: Comparisons whose outputs torch_npu's own meta function describes; the others are fabricated.
    real_metas: int = 0
    #: Calls whose nodes differ without an error.
    silent: int = 0
    #: Arguments that the hand-written converter drops silently, and we refuse.
    dropped: Counter[str] = field(default_factory=Counter)
    stricter: Counter[str] = field(default_factory=Counter)
    differ: Counter[str] = field(default_factory=Counter)
    #: Reason why there is no converter at all.
    error: str = ""

    @property
    def basis(self) -> str:
        """Basis of the verdict: the numbers of comparisons."""
        return f"{self.compared} calls, {self.real_metas} of them with torch_npu's own meta function"

    @property
    def equal(self) -> bool:
        return not (self.error or self.ours_refuse or self.differ) and self.compared > 0


def fabricate_metas(overload: Any, raw: Sequence[Any] | None, rank: int, prototypes: Any) -> Any:
    """Return meta outputs like those of a meta function, with the dtypes that the hand-written converter announces."""
    made = []
    for n, returned in enumerate(overload._schema.returns):
        kind = str(returned.type)
        dtype = torch.float16
        if raw is not None and n < len(raw):
            op_type, name, announced = raw[n]
            prototype = prototypes.get(op_type)
            outputs = [o for o in prototype.outputs if o.name == name] if prototype is not None else []
            known = _GE_NUMBERS | _STORED
            allowed = [known[int(d)] for o in outputs for d in o.dtypes if int(d) in known]
            if allowed and dtype not in allowed:
                dtype = allowed[0]
            if announced != _ge.ProtoDataType.DT_UNDEFINED:
                with contextlib.suppress(ValueError, RuntimeError):
                    dtype = _ge.ge_type_to_torch_type(_ge._ge_proto_dtype_to_ge_dtype(announced))
        tensor = torch.empty([2] * rank, dtype=dtype, device="meta")
        if kind == "int":
            made.append(0)
        else:
            made.append([tensor] if kind.startswith("List[") else tensor)
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def real_metas(overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the outputs of torch_npu's meta function, or None if it rejects the drawn call."""

    def tensor(value: Any) -> Any:
        if isinstance(value, Drawn):
            return torch.empty(value.sizes, dtype=value.dtype, device="meta")
        return [tensor(item) for item in value] if isinstance(value, list) else value

    try:
        return overload(*map(tensor, args), **{name: tensor(value) for name, value in kwargs.items()})
    except Exception:  # sizes and dtypes are drawn with no thought of what belongs together
        return None


def compare(overload: Any, theirs: Any, ours: Any, drawer: ConverterCallGenerator, prototypes: Any) -> ConverterResult:
    """Call both converters with the same arguments until there are enough comparisons."""
    outcome = ConverterResult()
    for attempt in range(ATTEMPTS):
        if outcome.compared >= ENOUGH:
            break
        args, kwargs = drawer.call(attempt)
        tensors = [v for v in [*args, *kwargs.values()] if isinstance(v, Drawn)]
        rank = len(tensors[0].sizes) if tensors else 2
        schema = overload._schema
        expected = refusal = None
        try:
            metas = real = real_metas(overload, args, kwargs)
            if real is None:
                metas = fabricate_metas(overload, None, rank, prototypes)
                announced = build(theirs, args, kwargs, metas, prototypes).announced
                metas = fabricate_metas(overload, announced, rank, prototypes)
            expected = build(theirs, args, kwargs, metas, prototypes)
        except RefusedError as error:
            refusal = str(error)
        try:
            unfit = expected is not None and expected.returns is None and bool(schema.returns)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", ReplacedConverterWarning)
                found = build(ours, args, kwargs, metas, prototypes, describe=not unfit)
        except RefusedError as error:
            if refusal is None:
                # A dtype that the prototype forbids: we say so, the hand-written converter leaves it to GE.
                forbidden = _FORBIDDEN.search(str(error)) and not (real is not None and is_stored_form(str(error)))
                counter = outcome.stricter if forbidden else outcome.ours_refuse
                named = re.search(r": (\w+)=.* has no place in GE", str(error))
                if named and drops(theirs, overload, args, kwargs, named.group(1), expected, metas, prototypes):
                    outcome.dropped[named.group(1)] += 1
                    continue
                counter[str(error)[:300]] += 1
                outcome.compared += counter is outcome.ours_refuse
            else:
                outcome.both_refuse[f"{refusal[:150]} / {str(error)[:150]}"] += 1
            continue
        if refusal is not None:
            outcome.theirs_refuse[refusal[:160]] += 1
            continue
        outcome.compared += 1
        outcome.unfit += unfit
        outcome.real_metas += real is not None
        found_differences = expected.difference(found)[:3]
        outcome.silent += bool(found_differences) and not said
        outcome.differ.update(found_differences)
    return outcome


def is_stored_form(refusal: str) -> bool:
    """Return whether a refused output has the dtype in which torch stores an allowed one: our fault, not the call's."""
    found = re.search(r"is (DT_\w+) by the meta function.*allows (.*)", refusal)
    if found is None:
        return False
    allowed = found[2].split(", ")
    return any(stored.ge_name == found[1] and dtype.ge_name in allowed for dtype, stored in STORED_AS.items())


def drops(
    theirs: Any, overload: Any, args: Any, kwargs: Any, name: str, expected: Any, metas: Any, prototypes: Any
) -> bool:
    """Return whether the hand-written converter builds the same nodes if an argument is left at its default."""
    names = [argument.name for argument in overload._schema.arguments]
    default = next(a.default_value for a in overload._schema.arguments if a.name == name)
    args = [default if names[n] == name else value for n, value in enumerate(args)]
    kwargs = {key: default if key == name else value for key, value in kwargs.items()}
    try:
        found = build(theirs, args, kwargs, metas, prototypes)
    except RefusedError:
        return False
    return bool(found == expected)


def judge(
    name: str, overload: Any, operator: OperatorArguments, arguments: Mapping[str, Any], prototypes: Any
) -> ConverterResult:
    """Register an operator by one call, compare, and unregister it."""
    theirs = existing_converter(overload)
    module = inspect.getmodule(inspect.unwrap(theirs))
    if name in FOR_A5_ONLY:
        module.is_arch35 = lambda: True
    try:
        registered = ascend_graph.register_op(operator.op_type, eager=overload, arguments=arguments, override=True)
    except AscendGraphError as error:
        return ConverterResult(error=f"{type(error).__name__}: {error}")
    try:
        drawer = ConverterCallGenerator(overload, registered.prototype, registered.binding.argument_names(), theirs)
        return compare(overload, theirs, overload._ge_converter, drawer, prototypes)
    finally:
        registered.unregister()
        assert existing_converter(overload) is theirs, f"{name}: the hand-written converter did not come back"


# ----------------------------------------------------------------------------------------- TorchAir's automatic converter


def ir_definition(prototypes: Mapping[str, OpPrototype], rename: str | None = None) -> Callable[[str], Any]:
    """Return a function that answers TorchAir's queries about ops from the wheel's prototypes, as CANN would."""

    def get_registered_ir_def(name: str) -> Any:
        prototype = prototypes.get(rename or name)
        if prototype is None:
            return "FAILED", [], [], []
        return (
            "SUCCESS",
            [(p.name, p.kind.value) for p in prototype.inputs],
            [(p.name, p.kind.value) for p in prototype.outputs],
            [(a.name, f"VT_{_VT[a.type.value]}") for a in prototype.attrs],
        )

    return get_registered_ir_def


_VT = {
    "Int": "INT", "Float": "FLOAT", "Bool": "BOOL", "String": "STRING", "Type": "DATA_TYPE", "Tensor": "TENSOR",
    "ListInt": "LIST_INT", "ListFloat": "LIST_FLOAT", "ListBool": "LIST_BOOL", "ListString": "LIST_STRING",
    "ListListInt": "LIST_LIST_INT", "ListType": "LIST_DATA_TYPE",
}  # fmt: skip


def judge_automatic(overload: Any, prototypes: Any, op_type: str | None) -> ConverterResult:
    """Compare TorchAir's automatic converter of an operator; ``op_type`` gives it the name that it would not find."""
    theirs = existing_converter(overload)
    shipped = _fx._torchair.get_registered_ir_def
    custom = importlib.import_module("torchair.ge.ge_custom")
    wrong = "".join(word.capitalize() for word in overload._opname.removesuffix("_functional").split("_"))
    definition = ir_definition(prototypes, op_type)
    modules = [module for module in (_fx._torchair, getattr(custom, "_torchair", None)) if module is not None]
    for module in modules:
        module.get_registered_ir_def = definition
    try:
        code = _fx._generate_converter_code(overload)
        if op_type is not None:
            code = code.replace(f'"{wrong}"', f'"{op_type}"')
        exec(code, {})  # TorchAir's own way
        ours = overload._ge_converter
        names = {argument.name: argument.name for argument in overload._schema.arguments}
        prototype = prototypes[op_type or wrong]
        return compare(overload, theirs, ours, ConverterCallGenerator(overload, prototype, names, theirs), prototypes)
    except Exception as error:
        return ConverterResult(error=f"{type(error).__name__}: {str(error)[:200]}")
    finally:
        for module in modules:
            module.get_registered_ir_def = shipped
        overload._ge_converter = theirs


# -------------------------------------------------------------------------------------------------------------- cost


def cost(name: str, overload: Any, prototypes: Any) -> tuple[float, float]:
    """Return microseconds per node, hand-written and ours, measured alternately: the best of 40 rounds each."""
    operator = OPERATORS[name]
    theirs = existing_converter(overload)
    required = [argument for argument in overload._schema.arguments if not argument.has_default_value()]
    call = [Drawn(torch.float16, (2, 8)) if str(argument.type) == "Tensor" else None for argument in required]
    metas = fabricate_metas(overload, None, 2, prototypes)
    announced = build(theirs, call, {}, metas, prototypes, describe=False).announced
    metas = fabricate_metas(overload, announced, 2, prototypes)
    registered = ascend_graph.register_op(operator.op_type, eager=overload, arguments=operator.arguments, override=True)
    ours = overload._ge_converter
    try:
        times: dict[Any, list[float]] = {theirs: [], ours: []}
        for _ in range(40):
            for converter in (theirs, ours):
                with _ge.GeGraph():
                    tensors = []
                    for n, drawn in enumerate(call):
                        data = _ge.Data(index=n, dtype=1, shape=[2, 8], placement="NPU") if drawn else None
                        if data is not None:
                            data.set_meta(torch.empty(2, 8, dtype=torch.float16, device="meta"))
                        tensors.append(data)
                    extra = {"meta_outputs": metas} if converter.require_meta else {}
                    gc.disable()
                    start = time.perf_counter()
                    for _ in range(50):
                        converter(*tensors, **extra)
                    times[converter].append((time.perf_counter() - start) / 50 * 1e6)
                    gc.enable()
        return min(times[theirs]), min(times[ours])
    finally:
        registered.unregister()


#: Operators of all sorts: one tensor and several, attrs, an optional input, renamed and filled in.
COST_CASES = (
    "npu_swiglu",
    "npu_rms_norm",
    "npu_fast_gelu",
    "npu_gelu",
    "npu_add_rms_norm",
    "npu_interleave_rope",
    "npu_masked_softmax_with_rel_pos_bias",
    "npu_linear",
)


def registration_time(count: int) -> float:
    """Return the CPU seconds to register ``count`` operators, each with its own prototype and a shape relation."""
    library = torch.library.Library("ascend_graph_bench", "DEF")
    text = []
    for n in range(count):
        library.define(f"op_{n}(Tensor x, Tensor? bias=None, *, float eps=1e-5, int axis=-1) -> Tensor")
        text.append(
            f"REG_OP(BenchOp{n}).INPUT(x, TensorType({{DT_FLOAT16, DT_FLOAT}}))"
            ".OPTIONAL_INPUT(bias, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))"
            f".ATTR(eps, Float, 1e-5).ATTR(axis, Int, -1).OP_END_FACTORY_REG(BenchOp{n})"
        )
    process_catalog.load("\n".join(text))
    overloads = [getattr(torch.ops.ascend_graph_bench, f"op_{n}").default for n in range(count)]
    gc.collect()
    start = time.process_time()
    made = [
        ascend_graph.register_op(f"BenchOp{n}", eager=overload, shape="x[...] -> y[...]")
        for n, overload in enumerate(overloads)
    ]
    seconds = time.process_time() - start
    for registered in made:
        registered.unregister()
    return seconds


# ------------------------------------------------------------------------------------------------------------- report


def main() -> dict[str, Any]:
    """Compare every hand-written converter."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="only operators whose name contains this")
    parser.add_argument("--show", action="store_true", help="print each difference and refusal in full")
    options = parser.parse_args()
    torch_npu.npu.set_compile_mode(jit_compile=False) if hasattr(torch_npu.npu, "set_compile_mode") else None
    _compat.is_cann_compat = compatible
    prototypes = load_wheel_prototypes()
    _fx._torchair.get_registered_ir_def = ir_definition(prototypes)
    console = Console(width=170)
    converters = hand_written()
    results: dict[str, tuple[str, str]] = {}
    automatic: Counter[str] = Counter()
    for name, overload in converters.items():
        if options.only not in name:
            continue
        operator = OPERATORS.get(name)
        if operator is None:
            results[name] = ("unlisted", "no entry in data/npu_arguments.py")
            continue
        results[name] = verdict(name, overload, operator, prototypes, console if options.show else None)
        shipped = judge_automatic(overload, prototypes, None)
        named = judge_automatic(overload, prototypes, operator.op_type)
        automatic["shipped equal"] += shipped.equal
        automatic["shipped silently different"] += not shipped.error and bool(shipped.differ)
        automatic["named equal"] += named.equal
        automatic["named silently different"] += not named.error and bool(named.differ)
    table = Table(title="Converters: ours against the hand-written ones", title_justify="left")
    for column in ("operator", "verdict", "why"):
        table.add_column(column, overflow="fold")
    for name, (kind, why) in results.items():
        table.add_row(name, kind, escape(why[:600]))
    console.print(table)
    counts = Counter(kind for kind, _ in results.values())
    cost_table = Table(title="Cost per node (µs)", title_justify="left")
    for column in ("operator", "hand-written", "ours", "ratio"):
        cost_table.add_column(column, justify="left" if column == "operator" else "right")
    ratios = []
    for name in COST_CASES:
        if options.only not in name:
            continue
        theirs, ours = cost(name, converters[name], prototypes)
        ratios.append(ours / theirs)
        cost_table.add_row(name, f"{theirs:.1f}", f"{ours:.1f}", f"{ours / theirs:.2f}")
    console.print(cost_table)
    seconds = registration_time(1000)
    console.print(f"registering 1,000 operators: {seconds:.2f} s, {seconds:.3f} ms each")
    console.print(dict(counts), dict(automatic))
    return {
        "total": len(results),
        "equal": counts["equal"],
        "equal_with_arguments": counts["equal with arguments="],
        "equal_with_real_metas": sum(
            kind.startswith("equal") and " 0 of them" not in why for kind, why in results.values()
        ),
        "needs_function": counts["needs a function"],
        "hand_written_wrong": counts["theirs is wrong"],
        "silently_different": counts["silently different"],
        "peer_equal": automatic["shipped equal"],
        "peer_equal_with_name": automatic["named equal"],
        "peer_silently_different": automatic["shipped silently different"],
        "peer_silently_different_with_name": automatic["named silently different"],
        "cost_ratio": round(max(ratios), 3) if ratios else None,
        "cost_ratio_median": round(median(ratios), 3) if ratios else None,
        "register_1000_s": round(seconds, 3),
        "register_ms_per_op": round(seconds, 3),
    }


def verdict(
    name: str, overload: Any, operator: OperatorArguments, prototypes: Any, console: Console | None
) -> tuple[str, str]:
    """Return the table's row of one operator."""
    plain = judge(name, overload, operator, {}, prototypes)
    if plain.equal:
        return "equal", plain.basis
    outcome = judge(name, overload, operator, operator.arguments, prototypes) if operator.arguments else plain
    if console is not None:
        console.print(f"[bold]{name}[/] → {operator.op_type}")
        for title, part in (("with the GE name", plain), ("with arguments=", outcome)):
            console.print(
                escape(
                    f"  {title}: compared {part.compared}, both refuse {sum(part.both_refuse.values())}; {part.error}"
                )
            )
            for label in ("differ", "dropped", "ours_refuse", "theirs_refuse", "both_refuse", "stricter"):
                for text, times in getattr(part, label).most_common(4):
                    console.print(escape(f"    {label} x{times}: {text}"))
    if operator.arguments and outcome.equal:
        return "equal with arguments=", outcome.basis
    why = EXPLAINED.get(name, "")
    if why.startswith("hand-written:"):
        return "theirs is wrong", why.removeprefix("hand-written: ")
    if outcome.silent:
        return "silently different", why or "; ".join(outcome.differ)
    if why:
        return "needs a function", why
    if outcome.error:
        return "refused", outcome.error
    if outcome.differ:
        return "different", "; ".join(outcome.differ)
    if outcome.ours_refuse:
        return "refuses calls", "; ".join(outcome.ours_refuse)
    return "never compared", "; ".join(outcome.theirs_refuse)


if __name__ == "__main__":
    run(main)

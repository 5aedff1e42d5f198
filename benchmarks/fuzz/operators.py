"""Random operators as plain data: prototype, relation, schema with its own names and order, registration route."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any

#: Origins of an operator's torch schema: the prototype, an author's schema and kernel, or a schema next to a C header.
ROUTES = ("own", "overload", "aclnn")
GE_TYPES = {
    "float32": "DT_FLOAT",
    "float16": "DT_FLOAT16",
    "bfloat16": "DT_BF16",
    "float64": "DT_DOUBLE",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "bool": "DT_BOOL",
}
SCHEMA_TYPES = {
    "Int": "int", "Float": "float", "Bool": "bool", "String": "str", "ListInt": "int[]", "ListFloat": "float[]", "ListBool": "bool[]", "Type": "ScalarType",
    "ListType": "int[]",
}  # fmt: skip
#: GE's and torch's numbers of dtypes.
NUMBERS = {"float32": 0, "float16": 1, "int32": 3, "int64": 9, "bfloat16": 27}
TORCH_NUMBERS = {"float32": 6, "float16": 5, "int32": 3, "int64": 4, "bfloat16": 15}


@dataclass(frozen=True)
class InputSpec:
    """Input of a prototype: ``kind`` is required, optional or list; an empty ``dtype`` is that of the call."""

    name: str
    kind: str
    dims: tuple[str, ...]
    dtype: str = ""
    label: str = ""


@dataclass(frozen=True)
class AttrSpec:
    """Attr of a prototype; a default of None makes it required.

    ``schema_type`` and ``schema_default`` are the author's, where they differ from the prototype's.
    """

    name: str
    type: str
    default: Any = None
    label: str = ""
    schema_type: str = ""
    schema_default: Any = None

    @property
    def omitted(self) -> Any:
        """Value of a call that leaves the attr out."""
        if self.schema_default is None or self.schema_type.endswith("[]?"):
            return self.default
        return self.schema_default


@dataclass(frozen=True)
class FuzzOutput:
    """Output and the terms of its sum; ``written`` has its sizes in the relation.

    ``list`` is one more than the index of a list of inputs; ``count`` is a dimension or an attr, the length of a list.
    """

    name: str
    dims: tuple[str, ...]
    written: tuple[str, ...]
    weights: tuple[float, ...]
    curve: str = ""
    dtype: str = ""
    when: str = ""
    list: int = 0
    count: str = ""

    @property
    def is_list(self) -> bool:
        """True for a list of tensors."""
        return bool(self.list or self.count)


@dataclass(frozen=True)
class FuzzOperator:
    """Operator description; ``label`` of inputs and attrs is the schema's name, ``order`` its order of both."""

    name: str
    inputs: tuple[InputSpec, ...]
    attrs: tuple[AttrSpec, ...]
    outputs: tuple[FuzzOutput, ...]
    dtypes: tuple[str, ...]
    route: str = "own"
    in_place: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    backward: bool = False
    #: Declared independent dimensions; None if nothing is declared.
    batch: tuple[str, ...] | None = None
    #: Converter of a schema that returns what the prototype writes: ``copied`` is made from the binding and copies it first,
    #: ``author`` adds the node alone. Empty if the schema writes it, too.
    functional: str = ""
    #: True if it has a tangent of its own (``forward=``).
    forward: bool = False
    #: Form of ``backward=`` and ``forward=``: a ``pair`` with setup_context, keyword-only ``names``, ``saved`` tensors.
    form: str = "pair"

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the arguments that a call writes."""
        return () if self.functional else self.in_place

    @property
    def snake(self) -> str:
        """Operator's name in torch."""
        return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(self.name))

    def data(self) -> dict[str, Any]:
        """Return the facts that a kernel needs, as plain data."""
        plain = asdict(self)
        return {key: plain[key] for key in ("inputs", "attrs", "outputs")}


def from_data(data: dict[str, Any]) -> FuzzOperator:
    """Return the operator whose fields were written as JSON."""

    def fields(kind: Any, rows: Any) -> Any:
        return tuple(
            kind(**{k: tuple(v) if isinstance(v, list) and "default" not in k else v for k, v in row.items()})
            for row in rows
        )

    rest = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    kinds = {"inputs": InputSpec, "attrs": AttrSpec, "outputs": FuzzOutput}
    return FuzzOperator(**{**rest, **{k: fields(kind, data[k]) for k, kind in kinds.items()}})


# ---------------------------------------------------------------------------------------------------------- its texts


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"{{{', '.join(map(_literal, value))}}}"
    return repr(value)


def _default(a: AttrSpec) -> str:
    """Return an attr's default as the prototype writes it."""
    names = {number: GE_TYPES[name] for name, number in NUMBERS.items()}
    if a.type == "ListType" and a.default is not None:
        return f"{{{', '.join(names[n] for n in a.default)}}}"
    return names[a.default] if a.type == "Type" and a.default is not None else _literal(a.default)


def prototype(op: FuzzOperator) -> str:
    """Return the REG_OP."""
    call = ", ".join(GE_TYPES[d] for d in op.dtypes)
    lines = [f"REG_OP({op.name})"]
    macro = {"required": "INPUT", "optional": "OPTIONAL_INPUT", "list": "DYNAMIC_INPUT"}
    for i in op.inputs:
        types = ", ".join([GE_TYPES[i.dtype]] * len(op.dtypes)) if i.dtype else call
        lines.append(f"    .{macro[i.kind]}({i.name}, TensorType({{{types}}}))")
    everything = ", ".join(GE_TYPES[d] for d in NUMBERS)
    for o in op.outputs:
        types = (
            everything
            if o.dtype == "dst_type"
            else ", ".join([GE_TYPES[o.dtype]] * len(op.dtypes))
            if o.dtype in GE_TYPES
            else call
        )
        lines.append(f"    .{'DYNAMIC_OUTPUT' if o.is_list else 'OUTPUT'}({o.name}, TensorType({{{types}}}))")
    for a in op.attrs:
        value = _default(a)
        lines.append(
            f"    .REQUIRED_ATTR({a.name}, {a.type})"
            if a.default is None
            else f"    .ATTR({a.name}, {a.type}, {value})"
        )
    return "\n".join([*lines, f"    .OP_END_FACTORY_REG({op.name})\n"])


def _written(dims: tuple[str, ...], index: str) -> str:
    return ", ".join(d.replace("[i]", index) for d in dims)


def relation(op: FuzzOperator) -> str:
    """Return the shape relation."""
    # Each list has an index of its own, so that their lengths are independent.
    index = {i.name: f"[{'ijlp'[n]}]" for n, i in enumerate(i for i in op.inputs if i.kind == "list")}
    left = [f"{i.name}{index.get(i.name, '')}[{_written(i.dims, index.get(i.name, ''))}]" for i in op.inputs]
    right = []
    for o in op.outputs:
        if o.name in op.written:
            continue
        of = index[op.inputs[o.list - 1].name] if o.list else f"[i < {o.count}]" if o.count else ""
        text = f"{o.name}{of}[{_written(o.written, of if o.list else '')}]"
        if o.when:
            text += f" if {o.when} else None"
        right.append(text + (f": {o.dtype}" if o.dtype else ""))
    return f"{', '.join(left)} -> {', '.join(right)}"


def _argument(op: FuzzOperator, index: int) -> str:
    """Return one argument of the author's schema, without its default."""
    if index < len(op.inputs):
        i = op.inputs[index]
        marked = f"({'abcd'[op.written.index(i.name)]}!)" if i.name in op.written else ""
        ending = {"required": "", "optional": "?", "list": "[]"}[i.kind]
        return f"Tensor{marked}{ending} {i.label}"
    a = op.attrs[index - len(op.inputs)]
    return f"{a.schema_type or SCHEMA_TYPES[a.type]} {a.label}"


def schema(op: FuzzOperator) -> str:
    """Return the author's schema: arguments with their own order, names and defaults."""
    parts, star = [], False
    for index in op.order:
        is_attr = index >= len(op.inputs)
        if is_attr and not star:
            parts.append("*")
            star = True
        text = _argument(op, index)
        if (
            is_attr
            and op.attrs[index - len(op.inputs)].default is not None
            and op.attrs[index - len(op.inputs)].type != "Type"
        ):
            a = op.attrs[index - len(op.inputs)]
            default = None if a.schema_type.endswith("[]?") else a.omitted  # a schema has no list there
            text += f"={list(default) if isinstance(default, (list, tuple)) else default!r}".replace("'", '"')
        parts.append(text)
    outputs = [o for o in op.outputs if o.name not in op.written]
    # A return and an argument of one name would be one tensor.
    returns = [
        f"{'Tensor[]' if o.is_list else 'Tensor'} {'' if o.name in op.in_place else o.name}".rstrip() for o in outputs
    ]
    return f"{op.snake}({', '.join(parts)}) -> ({', '.join(returns)})"


# -------------------------------------------------------------------------------------------------------- its drawing

_ATTR_VALUES: dict[str, Any] = {
    "Int": lambda r: r.choice([-3, 0, 1, 2, 5]), "Float": lambda r: r.choice([-1.5, 0.25, 0.5, 2.0]), "Bool": lambda r: r.random() < 0.5,
    "String": lambda r: r.choice(["half", "interleave", "BSH", "a"]), "ListInt": lambda r: [r.randint(-2, 4) for _ in range(r.randint(0, 3))],
    "ListFloat": lambda r: [r.choice([0.25, -0.5, 1.5]) for _ in range(r.randint(0, 2))], "ListBool": lambda r: [r.random() < 0.5 for _ in range(r.randint(0, 2))],
}  # fmt: skip
#: Names as authors choose them; a prototype uses different ones for each parameter.
_NAMES = (
    "x",
    "weight",
    "gamma",
    "bias",
    "scale",
    "other",
    "query",
    "cache",
    "mask",
    "table",
    "x1",
    "x2",
    "offset",
    "residual",
)
_ATTR_NAMES = (
    "epsilon",
    "axis",
    "mode",
    "keep_dims",
    "block_size",
    "factor",
    "layout",
    "alpha",
    "num_heads",
    "is_training",
    "groupList",
    "transposeX",
)
_SYNONYMS = {
    "epsilon": "eps",
    "axis": "dim",
    "keep_dims": "keepdim",
    "groupList": "group_list",
    "transposeX": "transpose_x",
}
_OUTPUT_NAMES = ("y", "z", "rstd", "meanOut", "out", "yOut")


def dtype_list(random: Random, dtypes: tuple[str, ...]) -> list[int]:
    """Return GE's numbers of up to two of the dtypes."""
    return [NUMBERS[random.choice(dtypes)] for _ in range(random.randint(0, 2))]


def attr_value(random: Random, kind: str) -> Any:
    """Return a random value for an attr of a type."""
    return _ATTR_VALUES[kind](random)


def _inputs(r: Random) -> list[InputSpec]:
    names = r.sample(_NAMES, 5)
    full = r.choice([("*s", "n"), ("*s",), ("m", "n"), ("b", "m", "n"), ("n",), ("*s", "m", "n")])
    inputs = [InputSpec(names[0], "required", full)]
    for name in names[1 : r.randint(1, 4)]:
        kind = r.choice(["required", "required", "optional", "optional", "list"])
        if kind == "list":
            dims: tuple[str, ...] = r.choice([("t[i]", "u"), full, ("u",)])
        else:
            some = [d for d in full if r.random() < 0.6] or [full[-1]]
            dims = tuple(r.sample(some, len(some)) if r.random() < 0.3 else some)
            if kind == "required" and r.random() < 0.4:
                dims = (*dims, "k")
        dtype = r.choice(["", "", "", "int32", "int64", "float32", "bool"])
        if kind == "list" and any(_numbered(name, other) for other in names):
            kind, dims = "required", full
        inputs.append(InputSpec(name, kind, dims, dtype))
    if r.random() < 0.3:  # an optional one before a required one
        r.shuffle(inputs)
    return inputs


def _numbered(name: str, other: str) -> bool:
    """Return whether a name is that of an element of a list: GE calls them by the list's name and their number."""
    return other.startswith(name) and other[len(name) :].isdigit()


def _attrs(r: Random) -> list[AttrSpec]:
    attrs = []
    for name in r.sample(_ATTR_NAMES, r.randint(0, 4)):
        kind = r.choice(list(_ATTR_VALUES))
        attrs.append(AttrSpec(name, kind, None if r.random() < 0.3 else attr_value(r, kind)))
    return attrs


def _outputs(r: Random, inputs: list[InputSpec], attrs: list[AttrSpec]) -> list[FuzzOutput]:
    sure = [i for i in inputs if i.kind == "required"]
    known = list(dict.fromkeys(d for i in sure for d in i.dims))
    lists = [n for n, i in enumerate(inputs, 1) if i.kind == "list" and not i.dtype]
    # The dtype of the call: that of the first input that is there, or of one that is named.
    typed = [i.name for i in sure if not i.dtype]
    plain = ["", *typed] if inputs[0].name in typed else typed or ["float32"]
    outputs = []
    for number, name in enumerate(r.sample(_OUTPUT_NAMES, r.choice([1, 1, 1, 2, 2, 3]))):
        weights = tuple(r.choice([0.5, 1.0, 2.0, -1.0]) for _ in inputs)
        base = r.choice([sure[0].dims, tuple(d for d in known if r.random() < 0.7) or (known[-1],)])
        written = list(base)
        dtype, when = r.choice(plain if r.random() < 0.6 else ["float32", "int64"]), ""
        if r.random() < 0.25:
            axis = r.randrange(len(base))
            if not base[axis].startswith("*"):
                extra = [a.name for a in attrs if a.type == "Int" and a.name == "block_size"]
                written[axis] = r.choice(
                    [f"2 * {base[axis]}", f"{base[axis]} // 2", *(f"{base[axis]} + {e}" for e in extra)]
                )
        if number and r.random() < 0.2 and any(a.type == "Bool" for a in attrs):
            when = r.choice([a.name for a in attrs if a.type == "Bool"])
        listed = r.choice(lists) if lists and r.random() < 0.3 else 0
        if listed:
            base, written = inputs[listed - 1].dims, list(inputs[listed - 1].dims)
            when, dtype = "", r.choice(["float32", "int64", *plain])
        outputs.append(FuzzOutput(name, base, tuple(written), weights, r.choice(["", "square"]), dtype, when, listed))
    return outputs


def draw_operator(seed: int, number: int = 0) -> FuzzOperator:
    """Return the operator of a seed."""
    r = Random(f"operator {seed} {number}")
    inputs, attrs = _inputs(r), _attrs(r)
    attrs = [
        AttrSpec(
            a.name,
            a.type,
            abs(a.default) if a.name == "block_size" and a.type == "Int" and a.default is not None else a.default,
        )
        for a in attrs
    ]
    outputs = _outputs(r, inputs, attrs)
    if r.random() < 0.15:
        attrs.append(AttrSpec("dst_type", "Type", r.choice([None, 0, 1, 27])))
        outputs = (
            [FuzzOutput(**{**vars_of(outputs[0]), "dtype": "dst_type"}), *outputs[1:]]
            if not outputs[0].list
            else outputs
        )
        if outputs[0].dtype != "dst_type":
            attrs.pop()
    in_place: tuple[str, ...] = ()
    writable = [i for i in inputs if i.kind == "required" and not i.dtype]
    if writable and r.random() < 0.2:
        target = r.choice(writable)
        in_place = (target.name,)
        weights = tuple(r.choice([0.5, 1.0, 2.0]) for _ in inputs)
        written = FuzzOutput(target.name, target.dims, target.dims, weights, dtype=target.name)
        outputs = [written] if r.random() < 0.5 else [written, *outputs][:2]
    route = r.choice(ROUTES)
    dtypes = r.choice([("float32",), ("float32", "float16"), ("float32", "float16", "bfloat16")])
    order = tuple(range(len(inputs) + len(attrs)))
    if route != "own":
        # Tensors first, in any order; attrs after a star, in any order.
        places = list(range(len(inputs)))
        r.shuffle(places)
        others = list(range(len(inputs), len(order)))
        r.shuffle(others)
        order = (*places, *others)
    renamed = route == "overload" and r.random() < 0.5
    inputs = [
        InputSpec(i.name, i.kind, i.dims, i.dtype, f"{i.name}_t" if renamed and r.random() < 0.4 else i.name)
        for i in inputs
    ]
    attrs = [AttrSpec(a.name, a.type, a.default, _SYNONYMS.get(a.name, a.name) if renamed else a.name) for a in attrs]
    lists = any(i.kind == "list" for i in inputs) or any(o.list for o in outputs)
    name = f"Fuzz{letters(seed)}{letters(number)}"
    functional = ""
    if in_place and route == "overload" and r.random() < 0.6:
        simple = all(a.type != "Type" for a in attrs) and not any(o.when or o.list for o in outputs)
        functional = r.choice(["copied", "author"]) if simple else "copied"
    batch: tuple[str, ...] | None = None
    # Of a dtype without a default the check of batch= draws four, which a kernel may refuse; it draws no lists.
    drawable = all(a.default is not None or a.type != "Type" for a in attrs) and not lists
    if (functional or not in_place) and r.random() < 0.4:
        dims = dict.fromkeys(d for i in inputs for d in i.dims) if drawable else ()
        batch = tuple(d for d in dims if _independent(d, inputs, outputs))
    made = FuzzOperator(
        name, tuple(inputs), tuple(attrs), tuple(outputs), dtypes, route, in_place, order, False, batch, functional
    )
    floating = all(o.dtype not in ("int64", "dst_type") for o in outputs)
    whole = all(o.dims == o.written and not o.when for o in outputs)
    backward = not lists and not in_place and floating and whole and r.random() < 0.5
    return FuzzOperator(**{**vars_of(made), "backward": backward})


def vars_of(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields by name, not copied."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _independent(dim: str, inputs: list[InputSpec], outputs: list[FuzzOutput]) -> bool:
    """Return whether a dimension is independent: every output has it unchanged."""
    return all(dim in o.dims and dim in o.written for o in outputs) and any(dim in i.dims for i in inputs)


def letters(number: int) -> str:
    """Return a number as a word for a name in camel case."""
    digits = "abcdefghij"
    return "".join(digits[int(c)] for c in str(number)).capitalize()

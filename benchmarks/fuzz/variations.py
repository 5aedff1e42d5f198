"""Variations of a drawn operator: names that differ in an ending, forward mode, counted lists, schema types of attrs.

They have a random source of their own, so that a seed's operator without them stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from benchmarks.fuzz.operators import AttrSpec, FuzzOperator, attr_value, dtype_list

#: Names of inputs, and of outputs, that are the same but for an ending or an underscore.
_ENDINGS = ("", "Ref", "Optional", "_in")
_RETURNED = ("", "Out")
#: Schema types that an author may choose for a type of attr, next to the plain one.
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "Int": ("int?", "SymInt", "Scalar"),
    "Float": ("float?", "Scalar"),
    "Bool": ("bool?",),
    "String": ("str?",),
    "ListInt": ("int[]?", "SymInt[]"),
    "ListFloat": ("float[]?",),
}
#: Origins of what a gradient and a tangent need of the call: a pair with setup_context, keyword-only names, or the context.
_FORMS = ("pair", "names", "saved")


def varied(op: FuzzOperator, r: Random) -> FuzzOperator:
    """Return the operator with some of its parts drawn anew."""
    for often, change in ((0.35, _alike), (0.3, _dtypes), (0.6, _schema_types), (0.2, _counted), (0.5, _tangent)):
        if r.random() < often:
            op = change(op, r)
    lists = any(i.kind == "list" for i in op.inputs)  # whose number of saved tensors only the call knows
    return replace(op, form="names" if lists else r.choice(_FORMS)) if op.backward or op.forward else op


def _renamed(op: FuzzOperator, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> FuzzOperator:
    """Return the operator with other names of inputs and outputs, wherever they stand."""
    both = {**outputs, **inputs}

    def label(i_name: str, old: str) -> str:
        return f"{both.get(i_name, i_name)}_t" if old.endswith("_t") else both.get(i_name, i_name)

    return replace(
        op,
        inputs=tuple(replace(i, name=inputs.get(i.name, i.name), label=label(i.name, i.label)) for i in op.inputs),
        outputs=tuple(
            replace(o, name=both.get(o.name, o.name), dtype=inputs.get(o.dtype, o.dtype)) for o in op.outputs
        ),
        in_place=tuple(inputs.get(name, name) for name in op.in_place),
    )


def _alike(op: FuzzOperator, r: Random) -> FuzzOperator:
    """Name inputs and outputs alike but for an ending."""
    names = [i.name for i in op.inputs]
    # GE calls the elements of a list x by x1, x2.
    base = r.choice(["cache", "scale", "table", *(["x"] if not {"x1", "x2"} & set(names) else [])])
    chosen = r.sample(names, min(len(names), r.randint(1, 3)))
    inputs = {old: base + ending for old, ending in zip(chosen, r.sample(_ENDINGS, len(chosen)), strict=True)}
    taken = {inputs.get(i.name, i.name) for i in op.inputs}
    outputs = {}
    for o in op.outputs:
        name = r.choice(["y", "z", base]) + r.choice(_RETURNED)
        if o.name not in op.in_place and name not in taken | set(outputs.values()):
            outputs[o.name] = name
    left = {o.name for o in op.outputs} - set(outputs)
    distinct = len(taken) == len(op.inputs) and not left & set(outputs.values())
    return _renamed(op, inputs, outputs) if distinct else op


def _dtypes(op: FuzzOperator, r: Random) -> FuzzOperator:
    """Add an attr that is a list of dtypes, last in the prototype and in the schema."""
    if op.route != "own":  # an author's schema would have to say whose numbers of dtypes it takes
        return op
    default = dtype_list(r, op.dtypes) if r.random() < 0.7 else None
    attr = AttrSpec("out_dtypes", "ListType", default, "out_dtypes")
    return replace(op, attrs=(*op.attrs, attr), order=(*op.order, len(op.inputs) + len(op.attrs)))


def _schema_types(op: FuzzOperator, r: Random) -> FuzzOperator:
    """Give attrs of an author's schema other types that hold the same values, and other defaults."""
    if op.route != "overload":
        return op
    used = {o.count for o in op.outputs} | {w.partition(" + ")[2] for o in op.outputs for w in o.written}

    def typed(a: AttrSpec) -> AttrSpec:
        choices = [c for c in _CHOICES.get(a.type, ()) if a.default is not None or not c.endswith("?")]
        if a.name in used:
            return a
        other = attr_value(r, a.type) if a.default is not None and a.type in _CHOICES and r.random() < 0.3 else None
        return replace(a, schema_type=r.choice([*choices, ""]), schema_default=other)

    return replace(op, attrs=tuple(typed(a) for a in op.attrs))


def _counted(op: FuzzOperator, r: Random) -> FuzzOperator:
    """Make an output a list whose length is a size or an attr."""
    if op.backward or op.in_place:
        return op
    place = r.randrange(len(op.outputs))
    sizes = [d for i in op.inputs if i.kind == "required" for d in i.dims if not d.startswith("*")]
    lengths = (a for a in op.attrs if a.name == "block_size" and a.type == "Int" and (a.schema_default or 0) >= 0)
    counts = sizes + [a.name for a in lengths]
    if not counts or op.outputs[place].list:
        return op
    output = replace(op.outputs[place], count=r.choice(counts), when="")
    batch = None if op.batch is None else ()  # a list has no independent dimensions
    return replace(op, outputs=(*op.outputs[:place], output, *op.outputs[place + 1 :]), batch=batch)


def _tangent(op: FuzzOperator, r: Random) -> FuzzOperator:
    """Give the operator a tangent of its own."""
    whole = all(o.dims == o.written and not o.when and not o.count for o in op.outputs)
    floating = all(o.dtype not in ("int64", "dst_type") for o in op.outputs)
    return replace(op, forward=whole and floating and not op.in_place)

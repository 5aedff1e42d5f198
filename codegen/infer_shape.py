"""GE's InferShape and InferDataType in C++, generated from a shape relation for operator projects.

The functions follow the interface of CANN's ``gert::InferShapeContext`` and ``gert::InferDataTypeContext``. The
relation's form (:mod:`ascend_graph.shapes.form`) is written node by node; the template of the support header implements
the nodes. If GE does not know a size (-1) or a rank (-2) yet and the relation needs it, the function runs once for
every answer. The outputs are then the common part of all answers that are not refused.

``InferDataType`` knows no shapes: conditions on sizes are left to ``InferShape``, and a tensor in a promotion counts as
one with dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ascend_graph.codegen.infer_shape_expressions import ExpressionWriter
from ascend_graph.codegen.infer_shape_names import (
    OF_SHAPES,
    PREFIX,
    READERS,
    dtype_tables,
)
from ascend_graph.codegen.rendering import cpp_name, cpp_string, identifier, render

from ascend_graph.prototypes.model import OpPrototype
from ascend_graph.shapes import Relation, form, parse_relation
from ascend_graph.shapes.form import ExpressionKind, ExpressionNode, Op, below
from ascend_graph.shapes.syntax import Alternative, Itself, Tensor


def infer_shape_source(
    prototype: OpPrototype, relation: Relation, names: Mapping[str, str] | None = None, support: str = ""
) -> str:
    """Return C++ with ``InferShape`` and ``InferDataType`` of one operator.

    Args:
        prototype: The operator; its order of inputs and attrs is that of the C++ interface.
        relation: Its shape relation.
        names: The relation's names by prototype name, if they differ.
        support: The header that has :func:`support_source`, as it is included; without it the source stands alone.

    Returns:
        A source file that defines ``ascend_graph_<op_type>::InferShape`` and ``InferDataType``, to be passed to
        ``SetInferShape`` and ``SetInferDataType`` of its OpDef.

    Raises:
        GenerationError: The relation has names that the prototype lacks, or parts that only Python can compute (lists
            of tensors, numbers as outputs), or a dtype depends on a size.

    >>> from ascend_graph.prototypes.model import Parameter
    >>> from ascend_graph.shapes import parse_relation
    >>> inputs, outputs = (Parameter("x"), Parameter("w")), (Parameter("y"),)
    >>> relation = parse_relation("x[m, k], w[k, n] -> y[m, n]")
    >>> source = infer_shape_source(OpPrototype("Mm", inputs, (), outputs), relation)
    >>> "Bind(dim_k, sizes_w[0])" in source
    True
    """
    relation = _with_written_inputs(prototype, relation, names or {}).in_order([p.name for p in prototype.outputs])
    generator = _Generator(prototype, relation, dict(names or {}))
    source: str = render(
        "infer_shape.cpp.jinja",
        op_type=identifier(prototype.op_type),
        relation=ascii(" ".join(str(relation).split()))[1:-1].replace("\\", "/"),
        outputs=len(prototype.outputs),
        shape=_indented(generator.shape_body()),
        dtype=_indented(generator.dtype_body()),
        support=support,
        **dtype_tables(),
    )
    return source


def _with_written_inputs(prototype: OpPrototype, relation: Relation, names: Mapping[str, str]) -> Relation:
    """Return the relation with the outputs that are inputs, which one for PyTorch may leave out."""
    said = set(relation.outputs)
    written = [names.get(p.name, p.name) if p.name in prototype.in_place else "" for p in prototype.outputs]
    left_out = [name for name in written if name and name not in said]
    if not left_out or len(said) + len(left_out) != len(prototype.outputs):
        return relation
    others = iter(relation.output_tensors)
    outputs = [Tensor(name, (Alternative(Itself()),)) if name in left_out else next(others) for name in written]
    return parse_relation(str(replace(relation, output_tensors=tuple(outputs))))


def support_source() -> str:
    """Return the header with what every relation needs, for a project of several operators."""
    source: str = render("infer_shape_support.h.jinja", **dtype_tables())
    return source


def _indented(lines: Iterable[str]) -> list[str]:
    """Return statements with four blanks for each block that they stand in."""
    depth, indented = 0, []
    for line in lines:
        depth -= line.startswith("}")
        indented.append("    " * depth + line)
        depth += line.endswith("{")
    return indented


class _Generator(ExpressionWriter):  # type: ignore[misc]  # mypy knows codegen by its place in the tree alone
    # ----------------------------------------------------------------------------------------------------------- shape

    def shape_body(self) -> list[str]:
        """Return the statements of InferShape, for one answer to unknown sizes."""
        lines = []
        for name in self.form.inputs:
            number, _ = self.inputs[name]
            # GetInputShape counts the tensors there are: only this form says which one is meant after an optional input.
            lines.append(
                f"[[maybe_unused]] Input {self.input(name)} = ReadInput(context->GetOptionalInputShape({number}), "
                f"context->GetOptionalInputDesc({number}));"
            )
            if not self.optional(name):
                lines.append(f"Given({self.input(name)});")
        lines += self.read_attrs()
        bound: dict[str, str] = {}
        for step in self.form.steps:
            if isinstance(step, form.Match):
                for item in (item for pattern in step.patterns for item in pattern.items or ()):
                    if item.what in ("dimension", "group", "later", "ellipsis"):
                        kind = "Dim" if item.what in ("dimension", "later") else "Group"
                        bound[self.bound(item)] = kind
        lines += [f"{kind} {variable};" for variable, kind in bound.items()]
        for step in self.form.steps:
            lines += self.step(step)
        for number, output in enumerate(self.form.outputs):
            lines += _branches([(self.condition(leaf), self.leaf(number, leaf)) for leaf in output.leaves])
        return lines

    def condition(self, part: form.Leaf | form.InputPattern) -> str:
        """Return the condition under which a part of a relation holds; empty for always."""
        return "" if part.condition is None else self.emit(part.condition)

    @staticmethod
    def bound(item: form.Bind) -> str:
        """Return the variable that an item binds."""
        return "ellipsis" if item.what == "ellipsis" else cpp_name(PREFIX[item.what], item.name)

    def read_attrs(self, nodes: list[ExpressionNode] | None = None) -> list[str]:
        """Return the statements that read the used attrs."""
        used = {n.value for n in (self.form.nodes if nodes is None else nodes) if n.op in (Op.ATTR, Op.DTYPE_ATTR)}
        lines = []
        for name, (number, attr) in self.attrs.items():
            if name in used:
                kind, reader = READERS[attr.type]
                lines.append(f"[[maybe_unused]] const {kind} {cpp_name('attr', name)} = {reader.format(n=number)};")
        return lines

    def step(self, step: form.Step) -> list[str]:
        match step:
            case form.Match(name, patterns):
                return self.match(name, patterns)
            case form.Define(name, node):
                kind = "Sizes" if node.kind is ExpressionKind.SIZES else "Number"
                variable = cpp_name("group" if node.kind is ExpressionKind.SIZES else "dim", name)
                holder = "Group" if node.kind is ExpressionKind.SIZES else "Dim"
                return [f"[[maybe_unused]] const {holder} {variable}{{true, {kind}({self.emit(node)})}};"]
            case form.Demand(condition, shown):
                return [f"Require({self.emit(condition)}, {cpp_string(f'{shown} must hold')});"]
            case form.Agree(name, node, _):
                variable = cpp_name("later", name)
                # What an input that is absent would be compared with is not evaluated.
                return [f"if ({variable}.bound) Agreed({variable}.size, {self.emit(node)});"]
        return []  # dtypes are InferDataType's

    def match(self, name: str, patterns: tuple[form.InputPattern, ...]) -> list[str]:
        if all(pattern.items is None for pattern in patterns):
            return []
        lines = _branches([(self.condition(pattern), self.pattern(name, pattern)) for pattern in patterns])
        # One that is required was refused above if it is absent.
        return [f"if ({self.input(name)}.present) {{", *lines, "}"] if self.optional(name) else lines

    def pattern(self, name: str, pattern: form.InputPattern) -> list[str]:
        if pattern.items is None:
            return []
        placed, ordered = pattern.placed, pattern.ordered
        middle = next((n for n, item in enumerate(ordered) if item.many), None)
        fixed = len(ordered) - (middle is not None)
        is_open = "false" if middle is None else "true"
        sizes, axes = cpp_name("sizes", name), cpp_name("axes", name)
        if placed:
            lots = any(item.many for item in placed)
            least = fixed + sum(not item.many for item in placed)
            ranked = f"Ranked(ways, {self.input(name)}, {least}, {'true' if lots else is_open})"
            lines = [f"Axes {axes}({ranked});"]
            for item in placed:
                assert item.axes is not None
                taken = f"{axes}.{'Take' if item.many else 'TakeOne'}({self.emit(item.axes)})"
                lines.append(self.bind(item, taken))
            lines.append(f"[[maybe_unused]] const Sizes {sizes} = {axes}.Rest({fixed}, {is_open});")
        else:
            ranked = f"Ranked(ways, {self.input(name)}, {fixed}, {is_open})"
            lines = [f"[[maybe_unused]] const Sizes &{sizes} = {ranked};"]
        for number, item in enumerate(ordered):
            if number == middle:
                lines.append(self.bind(item, f"Slice({sizes}, {number}, {len(ordered) - number - 1})"))
            elif middle is None or number < middle:
                lines.append(self.bind(item, f"{sizes}[{number}]"))
            else:
                lines.append(self.bind(item, f"{sizes}[{sizes}.size() - {len(ordered) - number}]"))
        return [line for line in lines if line]

    def bind(self, item: form.Bind, value: str) -> str:
        match item.what:
            case "any":
                return f"{value};" if item.axes is not None else ""
            case "ellipsis":
                return f"Broadcast(ellipsis, {value});"
            case "size":
                assert item.node is not None
                return f"Agreed({value}, {self.emit(item.node)});"
            case "sizes":
                assert item.node is not None
                return f"Agree({value}, {self.emit(item.node)});"
        return f"Bind({self.bound(item)}, {value});"

    def leaf(self, number: int, leaf: form.Leaf) -> list[str]:
        if leaf.what == "absent":
            return [f"results[{number}] = Absent();"]
        if leaf.what in ("like", "itself"):
            return [f"results[{number}] = Like({self.input(leaf.input)});"]
        layout = f"layout_{number}"
        lines = [f"Layout {layout};"]
        for piece in leaf.pieces:
            value = self.emit(piece.node)
            if piece.axes is None:
                lines.append(f"{layout}.Append({value});")
            else:
                lines.append(f"{layout}.Place({self.emit(piece.axes)}, {value});")
        return [*lines, f"results[{number}] = {{true, {layout}.Done()}};"]

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype_body(self) -> list[str]:
        """Return the statements of InferDataType."""
        lines = []
        roots: list[ExpressionNode] = []
        steps: list[str] = []
        for step in self.form.steps:
            match step:
                case form.CheckDtype(name, allowed) if not any(map(self.asks_for_shape, allowed)):
                    roots += allowed
                    among = ", ".join(map(self.emit, allowed))
                    steps.append(f"if ({self.input(name)}.present) CheckAmong({self.input(name)}, {{{among}}});")
                case form.CheckDtype(name):
                    raise self.fault(
                        f"the dtype of {name} depends on a size; expected a dtype that depends on inputs' dtypes and "
                        "attrs"
                    )
                case form.SameDtype(names, _) if len(names) > 1:
                    steps.append(f"CheckSame({{{', '.join('&' + self.input(name) for name in names)}}});")
                case form.Define(name, node):
                    if self.asks_for_shape(node):
                        self.of_shapes.add(name)
                    else:
                        roots.append(node)
                        steps += self.step(step)
                case form.Demand(condition, _) if not self.asks_for_shape(condition):
                    roots.append(condition)
                    steps += self.step(step)
        for number, output in enumerate(self.form.outputs):
            dtype = self.output_dtype(output.name, output.leaves)
            if dtype is None:
                steps.append(f"context->SetOutputDataType({number}, ge::DT_UNDEFINED);")
            else:
                roots.append(dtype)
                steps.append(f"context->SetOutputDataType({number}, {self.emit(dtype)});")
        for name in self.form.inputs:
            n, _ = self.inputs[name]
            lines.append(
                f"[[maybe_unused]] const Input {self.input(name)} = ReadDtype(context->GetOptionalInputDataType({n}));"
            )
        return [*lines, *self.read_attrs([node for root in roots for node in below(root)]), *steps]

    def asks_for_shape(self, node: ExpressionNode) -> bool:
        """Return whether a node's value depends on the shape of an input."""
        return any(
            n.op in OF_SHAPES and not (n.op in (Op.DIMENSION, Op.GROUP) and self.is_defined_without(n))
            for n in below(node)
        )

    def is_defined_without(self, node: ExpressionNode) -> bool:
        """Return whether a name is a definition that needs no shape."""
        return node.value not in self.of_shapes and any(
            isinstance(step, form.Define) and step.name == node.value for step in self.form.steps
        )

    def may_refuse(self, dtype: ExpressionNode) -> bool:
        """Return whether a dtype is undefined for some inputs, as that of an absent one."""
        return any(
            n.op in (Op.PROMOTE, Op.REFUSED) or (n.op is Op.DTYPE_OF and all(map(self.optional, n.value or ())))  # type: ignore[arg-type]
            for n in below(dtype)
        )

    def output_dtype(self, name: str, leaves: tuple[form.Leaf, ...]) -> ExpressionNode | None:
        """Return the dtype of an output, or ``None`` for one that is always absent."""
        found: ExpressionNode | None = None
        for leaf in reversed(leaves):
            dtype = leaf.dtype
            if leaf.condition is None:
                found = dtype
            elif (
                dtype is None
                and found is not None
                and self.may_refuse(found)
                and not self.asks_for_shape(leaf.condition)
            ):
                found = ExpressionNode(
                    Op.CHOICE,
                    ExpressionKind.DTYPE,
                    (leaf.condition, ExpressionNode(Op.NOTHING, ExpressionKind.DTYPE), found),
                )
            elif dtype is None or found is None:
                # An output that is not there has whatever dtype it has when it is.
                found = dtype or found
            elif dtype != found:
                if self.asks_for_shape(leaf.condition):
                    raise self.fault(
                        f"the dtype of {name} depends on a size; expected a dtype that depends on inputs' dtypes and "
                        "attrs"
                    )
                found = ExpressionNode(Op.CHOICE, ExpressionKind.DTYPE, (leaf.condition, dtype, found))
        if found is not None and self.asks_for_shape(found):
            raise self.fault(
                f"the dtype of {name} depends on a size; expected a dtype that depends on inputs' dtypes and attrs"
            )
        return found


def _branches(alternatives: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return the statements of alternatives, the first whose condition holds; one without a condition needs no block."""
    if len(alternatives) == 1 and not alternatives[0][0]:
        return alternatives[0][1]
    lines: list[str] = []
    for condition, statements in alternatives:
        opening = f"if ({condition}) {{" if condition else "{"
        if lines:
            lines.pop()
            opening = f"}} else {opening}"
        lines += [opening, *statements, "}"]
    return lines

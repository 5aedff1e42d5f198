"""Lowering of a relation to a :class:`Form`, for one operator: clauses become steps, outputs alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ascend_graph.shapes import form, syntax
from ascend_graph.shapes.form import AttrKind, ExpressionKind, ExpressionNode, Op
from ascend_graph.shapes.lowering.expression_types import MAX_NODES, BeyondError, refused
from ascend_graph.shapes.lowering.expressions import Expressions, integer
from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import Expr, Index, Name, Tensor
from ascend_graph.shapes.unknown import advice


def lower(relation: Statement, attrs: Mapping[str, AttrKind], *, whole: bool = False) -> form.Form:
    """Return the form of ``relation`` for an operator with these attrs.

    Args:
        relation: The relation.
        attrs: The kinds of the attrs. An attr of kind ``ExpressionKind.NONE`` is the dimension or group of its name.
        whole: If true, also lower the constructs that only Python evaluates.

    Raises:
        BeyondError: Only Python evaluates it (lists of tensors, numbers as outputs, elements of lists), or it is too
            large.
        RelationError: It cannot fit any call: a name means nothing, or a condition uses a name that is bound after it.
    """
    try:
        found = _Lowering(relation, attrs, whole).lowered()
    except RecursionError:
        raise BeyondError(f"{relation}: nested too deep; simplify it") from None
    if sum(1 for _ in found.nodes) > MAX_NODES:
        raise BeyondError(f"{relation}: expected at most {MAX_NODES} operations")
    return found


class _Lowering(Expressions):
    def lowered(self) -> form.Form:
        relation = self.relation
        unknown = relation.free_names - self.attrs.keys()
        if unknown:
            dims = sorted({name for t in relation.input_tensors for name in syntax.bound_names(t)})
            raise self.fault(
                f"{', '.join(sorted(unknown))} must be a dimension of an input or an attr of the operator; "
                f"dimensions: {', '.join(dims) or 'none'}; attrs: "
                f"{', '.join(self.attrs) or 'none'}{advice(relation, unknown, [*dims, *self.attrs])}"
            )
        for tensor in (*relation.input_tensors, *relation.output_tensors):
            if tensor.index is not None and not self.whole:
                raise self.beyond(f"{tensor.name} is a list of tensors")
        steps: list[form.Step] = []
        for tensor in self.matching_order():
            steps += self.input(tensor)
        for clause in relation.clauses:
            if isinstance(clause, syntax.WhereDefinition):
                self.defined[clause.name] = node = self.definition(clause)
                steps.append(form.Define(clause.name, node))
            else:
                steps.append(form.Demand(self.condition(clause), str(clause)))
        steps += [form.Agree(str(n), self.number(value), shown) for n, (value, shown) in enumerate(self.later)]
        return form.Form(self.inputs, tuple(steps), tuple([self.output(t) for t in relation.output_tensors]))

    # ---------------------------------------------------------------------------------------------------------- inputs

    def matching_order(self) -> Iterator[Tensor]:
        """Yield the inputs in matching order.

        The order is that of the relation, except for an input with several items of any length: it follows the inputs
        that bind all of those items but one.
        """
        waiting = list(self.relation.input_tensors)
        while waiting:
            found = next((t for t in waiting if all(len(self.open_items(a)) < 2 for a in t.alternatives)), None)
            if found is None:
                tensor = waiting[0]
                items = next(items for items in map(self.open_items, tensor.alternatives) if len(items) > 1)
                raise self.fault(
                    f"input {tensor.name} has {len(items)} items of any length, {', '.join(map(str, items))}; all but one must "
                    f"be known: a group of another input, an attr that is a list, or a group with '@axes'"
                )
            waiting.remove(found)
            yield found

    def open_items(self, alternative: syntax.Alternative) -> list[syntax.Dim]:
        """Return the items of a pattern whose length only the pattern itself can determine."""
        if not isinstance(alternative.shape, syntax.Dims):
            return []
        return [i for i in alternative.shape.items if self.any_length(i) and not self.length_known(i)]

    @staticmethod
    def any_length(item: syntax.Dim) -> bool:
        return isinstance(item, syntax.Ellipsis_) or (isinstance(item, syntax.DimensionGroup) and item.axis is None)

    def length_known(self, item: syntax.Dim) -> bool:
        """Return whether an item is a group that an earlier input binds, or an attr that is a list."""
        match item:
            case syntax.DimensionGroup(Name(name)):
                return name in self.groups or (name in self.attrs and self.attrs[name].kind is not ExpressionKind.NONE)
            case syntax.DimensionGroup(syntax.GroupPart(Name(name))):
                return self.length_known(syntax.DimensionGroup(Name(name)))
        return False

    def items(self, shape: syntax.Dims, tensor: Tensor) -> tuple[form.Bind, ...]:
        """Return the items of a pattern.

        If several may have any length, all but one get explicit axes.
        """
        open_ = [n for n, item in enumerate(shape.items) if self.any_length(item)]
        if len(open_) > 1 and any(not isinstance(i, syntax.Ellipsis_) and i.axis is not None for i in shape.items):
            raise self.fault(f"input {tensor.name}: next to an item with '@' only one item may have any length")
        free = next((n for n in open_ if not self.length_known(shape.items[n])), open_[-1] if open_ else 0)
        placed = {n: self.axes_between(shape.items, n, free) for n in open_ if n != free}
        return tuple([self.item(item, tensor, placed.get(n)) for n, item in enumerate(shape.items)])

    def axes_between(self, items: tuple[syntax.Dim, ...], number: int, free: int) -> ExpressionNode:
        """Return the axes of a group of known length, counted from the end if it comes after ``free``."""
        group = items[number]
        assert isinstance(group, syntax.DimensionGroup)
        between = items[:number] if number < free else items[number:]
        start = integer(
            sum(
                1
                for item in between
                if not isinstance(item, syntax.Ellipsis_ | syntax.DimensionGroup) and item.axis is None
            )
        )
        for item in between:
            if isinstance(item, syntax.DimensionGroup) and item.axis is None:
                length = ExpressionNode(Op.LENGTH, ExpressionKind.NUMBER, (self.sizes(item.value),))
                start = ExpressionNode(Op.ADD, ExpressionKind.NUMBER, (start, length))
        if number > free:
            start = ExpressionNode(Op.NEGATE, ExpressionKind.NUMBER, (start,))
        return ExpressionNode(Op.RANGE, ExpressionKind.SIZES, (start, self.sizes(group.value)), shown=group.value)

    def input(self, tensor: Tensor) -> list[form.Step]:
        before, patterns = (set(self.dims), set(self.groups)), []
        after = (set(self.dims), set(self.groups))
        for alternative in tensor.alternatives:
            self.dims, self.groups = set(before[0]), set(before[1])
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            items = None
            if isinstance(alternative.shape, syntax.Dims):
                if tensor.index is not None and len(tensor.alternatives) > 1:
                    raise self.fault(self.one_shape(tensor))
                items = self.items(alternative.shape, tensor)
                if condition is not None and any(item.what == "later" for item in items):
                    raise self.fault(f"{tensor.name}: a conditional pattern may hold names and integers only")
            after = (after[0] | self.dims, after[1] | self.groups)
            patterns.append(form.InputPattern(condition, items, f"{_subject(tensor)}{alternative.shape}"))
        self.dims, self.groups = after
        steps: list[form.Step] = [form.Match(tensor.name, tuple(patterns), tensor.index)]
        dtype = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if dtype is None:
            return steps
        if isinstance(dtype, Name) and dtype.id in self.symbols:
            users = self.symbols[dtype.id]
            steps.append(form.SameDtype(users[: users.index(tensor.name) + 1], dtype.id))
        else:
            options = dtype.items if isinstance(dtype, syntax.Tuple) else (dtype,)
            steps.append(form.CheckDtype(tensor.name, tuple([self.dtype(option) for option in options])))
        return steps

    def item(self, item: syntax.Dim, tensor: Tensor, axes: ExpressionNode | None = None) -> form.Bind:
        shown = str(item)
        if isinstance(item, syntax.Ellipsis_):
            self.ellipsis = True
            return form.Bind("ellipsis", shown=shown)
        if item.axis is not None:
            axes = self.axes(item.axis, many=isinstance(item, syntax.DimensionGroup))
        value = item.value
        each = isinstance(value, Index) and value.index == Name(tensor.index or "")
        if isinstance(item, syntax.DimensionGroup):
            if isinstance(value, Index) and each:
                self.many_groups.add(value.name.id)
                return form.Bind("elements", value.name.id, axes=axes, shown=shown)
            if isinstance(value, Index) and self.whole:
                raise self.fault(f"*{value} may stand only in a list of tensors with that index")
            if isinstance(value, syntax.GroupPart):
                return form.Bind("sizes", node=self.sizes(value), axes=axes, shown=shown)
            if not isinstance(value, Name):
                raise self.beyond(f"*{value} in an input")
            if value.id in self.attrs and self.attrs[value.id].kind is not ExpressionKind.NONE:
                return form.Bind("sizes", node=self.sizes(value), axes=axes, shown=shown)
            self.groups.add(value.id)
            return form.Bind("group", value.id, axes=axes, shown=shown)
        if value is None:
            return form.Bind("any", axes=axes, shown=shown)
        if isinstance(value, Index) and each:
            if self.is_attr(value.name.id):
                return form.Bind("size", node=self.number(value), axes=axes, shown=shown)
            self.groups.add(value.name.id)
            return form.Bind("element", value.name.id, axes=axes, shown=shown)
        if isinstance(value, syntax.Literal):
            return form.Bind("size", node=self.number(value), axes=axes, shown=shown)
        if isinstance(value, Name) and value.id not in self.inputs and value.id not in self.definitions:
            if value.id not in self.attrs or self.attrs[value.id].kind is ExpressionKind.NONE:
                self.dims.add(value.id)
                return form.Bind("dimension", value.id, axes=axes, shown=shown)
            if self.attrs[value.id].kind is ExpressionKind.FLOAT and not self.whole:
                raise self.beyond(f"attr {value.id} is a float, used as a dimension")
            return form.Bind("size", node=self.number(value), axes=axes, shown=shown)
        if tensor.index is not None:
            raise self.fault(
                f"in the list {tensor.name}, a size is a name, name[{tensor.index}] or an integer, not {value}"
            )
        # It may use what a later input binds.
        self.later.append((value, shown))
        return form.Bind("later", f"{len(self.later) - 1}", axes=axes, shown=shown)

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, tensor: Tensor) -> form.OutputForm:
        shared = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if tensor.index is not None and len(tensor.alternatives) > 1:
            raise self.fault(self.one_shape(tensor))
        count = None if tensor.count is None else self.number(tensor.count)
        if tensor.index is not None and count is None and tensor.index not in self.lists.values():
            raise self.fault(
                f"nothing says how many tensors {tensor.name} has: no input list has index {tensor.index}; "
                f"write {tensor.name}[{tensor.index} < count]"
            )
        leaves = []
        for alternative in tensor.alternatives:
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            leaves.append(self.leaf(tensor, alternative.shape, alternative.dtype, shared, condition))
        return form.OutputForm(tensor.name, tuple(leaves), tensor.index, count)

    @staticmethod
    def one_shape(tensor: Tensor) -> str:
        """Return the error message for alternatives of a list, with the form that makes the list empty."""
        text = f"{tensor.name} is a list of tensors, which has one shape, not alternatives"
        if not any(isinstance(a.shape, syntax.Absent) for a in tensor.alternatives):
            return text
        count = "…" if tensor.count is None else tensor.count
        first = next(a for a in tensor.alternatives if not isinstance(a.shape, syntax.Absent))
        line = f"{tensor.name}[{tensor.index} < ({count} if … else 0)]{first.shape}"
        return f"{text}; a list is empty, not None. Write: {line}"

    def leaf(
        self,
        tensor: Tensor,
        shape: syntax.Shape,
        own: Expr | None,
        shared: Expr | None,
        condition: ExpressionNode | None,
    ) -> form.Leaf:
        shown = f"{tensor.name}{shape}"
        dtype = None if own is None else self.dtype(own)
        match shape:
            case syntax.Absent():
                return form.Leaf(condition, "absent", shown=shown)
            case syntax.ValueOutput(Name(name)) if name in self.inputs:
                return form.Leaf(condition, "itself", (), name, dtype or self.dtype_of(name), shown)
            case syntax.ValueOutput(Index(Name(name), _) as element) if name in self.inputs:
                return form.Leaf(condition, "itself", (), name, dtype, shown, self.element(element))
            case syntax.ValueOutput(value):
                if not self.whole:
                    raise self.beyond(f"output {tensor.name} is {value}, which is not a tensor")
                return form.Leaf(condition, "number", (form.ShapeItem(self.spread(value, self.anything)),), shown=shown)
            case syntax.Itself():
                return form.Leaf(condition, "itself", (), tensor.name, dtype or self.dtype_of(tensor.name), shown)
            case syntax.Like(Name(name)):
                index = self.lists.get(name)
                if index is not None and index != tensor.index:
                    raise self.fault(f"{name} is a list; write {tensor.name}[{index}] like {name}")
                return form.Leaf(condition, "like", (), name, dtype or self.dtype_of(name), shown)
            case syntax.Like(Index(Name(name), _) as element):
                return form.Leaf(condition, "like", (), name, dtype, shown, self.element(element))
            case syntax.Dims(items):
                if dtype is None:
                    dtype = self.default_dtype(tensor) if shared is None else self.dtype(shared)
                return form.Leaf(condition, "fresh", tuple([self.piece(item) for item in items]), "", dtype, shown)
        raise AssertionError(shape)

    def element(self, node: Index) -> int:
        """Return the index of the tensor of an input list that is meant."""
        if not self.whole:
            raise self.beyond(f"{node} is an element of a list of tensors")
        element = node.index.value if isinstance(node.index, syntax.Literal) else None
        if isinstance(element, bool) or not isinstance(element, int) or node.name.id not in self.lists:
            raise self.fault(f"{node}: {node.name}[0] is a tensor of a list; say which by an integer")
        return element

    def default_dtype(self, tensor: Tensor) -> ExpressionNode:
        if not self.inputs:
            raise self.fault(
                f"output {tensor.name} has no dtype and no input gives one; "
                f"write {tensor.name}{tensor.alternatives[0].shape}: float32"
            )
        each = () if tensor.index is None else (ExpressionNode(Op.INDEX, ExpressionKind.NUMBER, (), tensor.index),)
        return ExpressionNode(Op.DTYPE_OF, ExpressionKind.DTYPE, each, self.inputs)

    def piece(self, item: syntax.Dim) -> form.ShapeItem:
        if isinstance(item, syntax.Ellipsis_):
            return form.ShapeItem(self.sizes(Name("...")))
        axes = None if item.axis is None else self.axes(item.axis, many=True)
        assert item.value is not None
        return form.ShapeItem(
            self.sizes(item.value) if isinstance(item, syntax.DimensionGroup) else self.size(item.value), axes
        )

    def axes(self, axis: Expr, *, many: bool) -> ExpressionNode:
        """Return the axes that an expression names, as a list; None means all other axes."""

        def one(leaf: Expr) -> ExpressionNode:
            kind = self.kind(leaf)
            if kind is ExpressionKind.SIZES:
                return self.sizes(leaf)
            if kind is ExpressionKind.NONE and many:
                return ExpressionNode(Op.OTHER_AXES, ExpressionKind.SIZES)
            if kind is not ExpressionKind.NUMBER:
                return refused(ExpressionKind.SIZES, f"axis {leaf}", "an integer", *self.found(leaf))
            if isinstance(leaf, Name) and leaf.id in self.attrs and self.attrs[leaf.id].optional:
                raise self.beyond(f"the axis {leaf} may be None")
            return ExpressionNode(Op.ITEMS, ExpressionKind.SIZES, (self.number(leaf),))

        return self.spread(axis, one)


def _subject(tensor: Tensor) -> str:
    return tensor.name if tensor.index is None else f"{tensor.name}[{tensor.index}]"

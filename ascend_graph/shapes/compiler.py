"""Relation → :class:`Program`: input patterns become closures that bind or compare, outputs become plans.

Compiling is for one set of present inputs and one list of attrs, so that what can be known before any size is known is
settled, and refused, here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ascend_graph.shapes.arithmetic import axes_of, broadcast, first_of, reshape, show, show_shape
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.expressions import Scope
from ascend_graph.shapes.program import (
    Env,
    Leaf,
    Match,
    Origin,
    OutputPlan,
    Program,
    Step,
    T,
    Target,
    Value,
    known_condition,
    slot_value,
)
from ascend_graph.shapes.syntax import (
    Absent,
    Call,
    Definition,
    Dims,
    Ellipsis_,
    Expr,
    Group,
    Index,
    Itself,
    Like,
    Literal,
    Name,
    Size,
    Tensor,
    Tuple,
    bound_names,
    walk,
)
from ascend_graph.shapes.syntax import Value as Assigned

if TYPE_CHECKING:
    from ascend_graph.shapes.relation import Relation

#: How many tensors a list output may have.
MAX_LIST = 65536


def compile_program(relation: Relation, target: Target[T]) -> Program[T]:
    """Compile ``relation``; see :meth:`Relation.program`."""
    return _Compiler(relation, target).program()


class _Compiler(Scope[T]):
    def program(self) -> Program[T]:
        relation = self.relation
        self.refuse_unknown_names()
        steps: list[Step] = []
        deferred: list[Step] = []
        for tensor in relation.input_tensors:
            if tensor.name in self.present:
                steps += self.input(tensor, deferred)
        for clause in relation.clauses:
            if isinstance(clause, Definition):
                slot, value = self.new_slot(clause.name), self.value(clause.value)
                self.bound.add(slot)
                steps.append(_assign(slot, value))
            else:
                steps.append(self.demand(clause))
        # A size that is an expression may use what a later input binds, so it is compared at the end.
        steps += deferred
        return Program(steps, [self.output(tensor) for tensor in relation.output_tensors], self.template)

    def refuse_unknown_names(self) -> None:
        unknown = self.relation.free_names - self.attrs.keys()
        if unknown:
            dims = sorted({name for t in self.relation.input_tensors for name in bound_names(t)})
            raise RelationError(
                f"{self.relation}: {', '.join(sorted(unknown))} is neither a dimension of an input nor an attr of the "
                f"operator; dimensions: {', '.join(dims) or 'none'}; attrs: {', '.join(self.attrs) or 'none'}"
            )

    # ---------------------------------------------------------------------------------------------------------- inputs

    def input(self, tensor: Tensor, deferred: list[Step]) -> list[Step]:
        source = self.shape_slot[tensor.name]
        branches: list[tuple[Value | None, Match | None]] = []
        steps: list[Step] = []
        before, certain = set(self.bound), []
        for alternative in tensor.alternatives:
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            match: Match | None = None
            after: list[Step] = []
            self.bound = set(before)
            if isinstance(alternative.shape, Dims):
                if tensor.index is None:
                    match = self.pattern(tensor.name, alternative.shape, after)
                else:
                    if len(tensor.alternatives) > 1:
                        raise self.fault(f"a list of tensors such as {tensor.name} has one shape, not alternatives")
                    match = self.list_pattern(tensor, alternative.shape)
            if after and condition is not None:
                raise self.fault(f"{tensor.name}: a conditional pattern holds names and integers only")
            deferred += after
            branches.append((condition, match))
            certain.append(self.bound)
        # What only some of the patterns bind may be empty afterwards.
        self.bound = set.intersection(*certain)
        branch = _branch(source, branches)
        if branch is not None:
            steps.append(branch)
        dtype = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if dtype is not None:
            steps += self.input_dtype(tensor.name, dtype)
        return steps

    def dim_slot(self, name: str) -> int:
        """The slot of a dimension in a pattern: that of the attr of this name, if there is one."""
        if name in self.attrs:
            slot = self.attrs[name]
            self.origin.setdefault(slot, f"attr {name}")
            return slot
        return self.slots[name] if name in self.slots else self.new_slot(name)

    def pattern(self, subject: str, shape: Dims, deferred: list[Step], element: _Element | None = None) -> Match:
        """A function that binds or compares the sizes of one shape."""
        ordered = [item for item in shape.items if isinstance(item, Ellipsis_) or item.axis is None]
        placed = [item for item in shape.items if not isinstance(item, Ellipsis_) and item.axis is not None]
        shown = f"{subject}{shape}"
        rest = self.sequence(subject, ordered, shown, deferred, element)
        if not placed:
            return rest
        picks: list[tuple[Value, bool, Match]] = []
        for item in placed:
            assert not isinstance(item, Ellipsis_)
            assert item.axis is not None
            one: list[Any] = [Size(item.value) if isinstance(item, Size) else Group(item.value)]
            picks.append(
                (
                    self.value(item.axis),
                    isinstance(item, Group),
                    self.sequence(f"{subject} at axis {item.axis}", one, f"{subject}[{item}]", deferred, element),
                )
            )

        def match(env: Env, sizes: Sequence[Any]) -> None:
            taken: dict[int, Any] = {}
            pending: list[tuple[Match, Sequence[Any]]] = []
            everything = None
            for axis, is_group, bind in picks:
                value = axis(env)
                if value is None and is_group:
                    everything = bind
                    continue
                axes = axes_of(value, is_group, len(sizes), shown)
                for a in axes:
                    if a in taken:
                        raise ShapeError(f"{shown}: axis {a} is named twice")
                    taken[a] = True
                pending.append((bind, [sizes[a] for a in axes]))
            others = [size for a, size in enumerate(sizes) if a not in taken]
            if everything is not None:  # axes=None takes all that is left
                pending.append((everything, others))
                others = []
            for bind, part in pending:
                bind(env, part)
            rest(env, others)

        return match

    def sequence(
        self, subject: str, items: Sequence[Any], shown: str, deferred: list[Step], element: _Element | None
    ) -> Match:
        middle = next((n for n, item in enumerate(items) if not isinstance(item, Size)), None)
        fixed = [item for item in items if isinstance(item, Size)]
        # Fresh slots of one pattern lie side by side, so that a whole shape binds with one slice assignment.
        slots: list[int] = []
        fresh: list[bool] = []
        for number, item in enumerate(fixed):
            from_end = middle is not None and number >= middle
            position = number - len(fixed) if from_end else number
            slot = self.size_slot(subject, item, position, deferred, element)
            fresh.append(
                slot >= self.first
                and slot not in self.bound
                and slot not in slots
                and self.template[slot - self.first] is None
            )
            slots.append(slot)
        if element is None:
            self.bound.update(slot for slot, new in zip(slots, fresh, strict=True) if new)
        if middle is None:
            return _match_fixed(slots, fresh if element is None else [False] * len(slots), shown, self.agree)
        head = _match_fixed(slots[:middle], fresh[:middle] if element is None else [False] * middle, shown, self.agree)
        tail_slots = slots[middle:]
        tail = _match_fixed(
            tail_slots, fresh[middle:] if element is None else [False] * len(tail_slots), shown, self.agree
        )
        bind = self.open_item(subject, items[middle], element)
        before, after = middle, len(tail_slots)
        if not before and not after:
            return bind

        def match(env: Env, sizes: Sequence[Any]) -> None:
            rank = len(sizes)
            if rank < before + after:
                raise ShapeError(
                    f"{subject} has {rank} dimension(s), {shown} needs at least {before + after}: {show_shape(sizes)}"
                )
            if before:
                head(env, sizes[:before])
            end = rank - after
            bind(env, sizes[before:end])
            if after:
                tail(env, sizes[end:])

        return match

    def size_slot(self, subject: str, item: Size, position: int, deferred: list[Step], element: _Element | None) -> int:
        value = item.value
        where = f"{subject}[{position}]"
        if value is None:
            return self.new_slot()
        if isinstance(value, Name) and value.id not in self.inputs and self.is_dimension(value.id):
            slot = self.dim_slot(value.id)
        elif isinstance(value, Index) and element is not None and value.index == Name(element.index):
            slot = element.scratch(self, value.name.id, group=False)
        elif isinstance(value, Literal):
            slot = self.new_slot(None, value.value)
            self.origin[slot] = "the relation"
            self.bound.add(slot)
            return slot
        else:
            if element is not None:
                raise self.fault(
                    f"in the list {subject}, a size is a name, name[{element.index}] or an integer, not {value}"
                )
            slot = self.new_slot()
            deferred.append(lambda env: self.compare(env, slot, where, value))
            return slot
        self.origin.setdefault(slot, where)
        return slot

    def is_dimension(self, name: str) -> bool:
        return not any(isinstance(c, Definition) and c.name == name for c in self.relation.clauses)

    def compare(self, env: Env, slot: int, where: str, expression: Expr) -> None:
        got, wanted = env[slot], self.value(expression)(env)
        if got is not None and (got == wanted) is not True:
            self.check(got == wanted, lambda: f"{where} is {got}, but {expression} is {wanted}")

    def open_item(self, subject: str, item: Any, element: _Element | None) -> Match:
        if isinstance(item, Ellipsis_):
            if self.ellipsis is None:
                self.ellipsis = self.new_slot()
            slot = self.ellipsis
            self.bound.add(slot)
            check, decide = self.check, self.decide

            def bind_ellipsis(env: Env, sizes: Sequence[Any]) -> None:
                before = env[slot]
                env[slot] = sizes if before is None else broadcast(before, sizes, check, decide)

            return bind_ellipsis
        value = item.value
        if isinstance(value, Index):
            if element is None or value.index != Name(element.index):
                raise self.fault(f"*{value} stands only in a list of tensors with that index")
            slot = element.scratch(self, value.name.id, group=True)
            name = value.name.id
        else:
            name = value.id
            self.groups.add(name)
            slot = self.slots[name] if name in self.slots else self.new_slot(name)
            if name in self.attrs:
                slot = self.attrs[name]
            self.bound.add(slot)
        origin = self.origin.setdefault(slot, subject)
        check = self.check

        def bind_group(env: Env, sizes: Sequence[Any]) -> None:
            before = env[slot]
            if before is None:
                env[slot] = sizes
                return
            if len(before) != len(sizes):
                raise ShapeError(
                    f"*{name} has {len(before)} dimension(s) {show_shape(before)} by {origin}, "
                    f"but {len(sizes)} by {subject}: {show_shape(sizes)}"
                )
            for position, (old, new) in enumerate(zip(before, sizes, strict=True)):
                if old is not new and (old == new) is not True:
                    message = f"dimension {position} of *{name} is {old} by {origin}, but {new} by {subject}"
                    check(old == new, partial(str, message))

        return bind_group

    def agree(self, env: Env, slot: int, size: Any, shown: str, position: int) -> None:
        """Two sizes under one name differ, as far as can be told without asking."""
        bound = env[slot]
        origin = self.origin.get(slot, "an earlier input")
        name = next((n for n, s in self.slots.items() if s == slot), None)
        name = name or next((n for n, s in self.attrs.items() if s == slot), None)
        what = f"dimension {name}" if name else "this dimension"
        self.check(bound == size, lambda: f"{shown}: dimension {position} is {size}, but {what} is {bound} by {origin}")

    def list_pattern(self, tensor: Tensor, shape: Dims) -> Match:
        assert tensor.index is not None
        element = _Element(tensor.index)
        deferred: list[Step] = []
        match = self.pattern(f"{tensor.name}[{tensor.index}]", shape, deferred, element)
        index = tensor.index
        counted = f"len {index}"
        slot = self.slots[counted] if counted in self.slots else self.new_slot(counted)
        vectors: list[tuple[int, int]] = []
        for name, scratch in element.scratches.items():
            vector = self.slots[name] if name in self.slots else self.new_slot(name)
            vectors.append((vector, scratch))
            self.vectors.add(name)
            self.bound.add(vector)
        name = tensor.name

        def match_list(env: Env, shapes: Sequence[Any]) -> None:
            count = env[slot]
            if count is not None and count != len(shapes):
                raise ShapeError(f"{name} has {len(shapes)} tensors, but another list with index {index} has {count}")
            env[slot] = len(shapes)
            fresh = [env[vector] is None for vector, _ in vectors]
            for (vector, _), new in zip(vectors, fresh, strict=True):
                if new:
                    env[vector] = []
            for number, sizes in enumerate(shapes):
                for (vector, scratch), new in zip(vectors, fresh, strict=True):
                    env[scratch] = None if new else env[vector][number]
                if sizes is not None:
                    try:
                        match(env, sizes)
                    except ShapeError as error:
                        raise ShapeError(f"{error} ({index} = {number})") from None
                for (vector, scratch), new in zip(vectors, fresh, strict=True):
                    if new:
                        env[vector].append(env[scratch])

        return match_list

    def input_dtype(self, name: str, dtype: Expr) -> list[Step]:
        slot = self.dtype_slot[name]
        if (
            isinstance(dtype, Name)
            and dtype.id not in CATEGORY
            and dtype.id not in self.inputs
            and dtype.id not in self.attrs
        ):
            users = self.symbols.setdefault(dtype.id, [])
            users.append(name)
            if len(users) == 1:
                return []
            first, other = users[0], self.dtype_slot[users[0]]
            symbol = dtype.id

            def same(env: Env) -> None:
                a, b = first_of(env[other]), first_of(env[slot])
                if a != b:
                    raise ShapeError(f"{first} has dtype {a} and {name} has dtype {b}, but both are {symbol}")

            return [same]
        options = [self.dtype(d) for d in (dtype.items if isinstance(dtype, Tuple) else (dtype,))]

        def among(env: Env) -> None:
            allowed = [option(env) for option in options]
            got = first_of(env[slot])
            if got is not None and got not in allowed:
                raise ShapeError(f"{name} has dtype {got}; allowed: {', '.join(map(str, allowed))}")

        return [among]

    def demand(self, condition: Expr) -> Step:
        """A condition after ``where``."""
        test, check = self.condition(condition), self.check
        names = [n.id for n in walk(condition) if isinstance(n, Name)]
        sizes = [name for name in names if name in self.slots or name in self.attrs]
        readers = [(name, self.value(Name(name))) for name in dict.fromkeys(sizes)]

        def step(env: Env) -> None:
            holds = test(env)
            if holds is not True:
                check(
                    holds,
                    lambda: (
                        f"{condition} must hold; "
                        + (", ".join(f"{name} is {show(read(env))}" for name, read in readers) or "it does not")
                    ),
                )

        return step

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, tensor: Tensor) -> OutputPlan:
        default = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if tensor.index is not None:
            return self.list_output(tensor, default)
        branches: list[tuple[Value | None, Leaf | None]] = []
        for alternative in tensor.alternatives:
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            known = known_condition(condition)
            if known is False:
                continue
            # The dtype at the end holds for all shapes in brackets; `like x` brings that of x.
            shared = default if isinstance(alternative.shape, Dims) else None
            leaf = self.leaf(tensor, alternative.shape, alternative.dtype or shared)
            branches.append((None if known else condition, leaf))
            if known:
                break
        return OutputPlan(tuple(branches))

    def leaf(self, tensor: Tensor, shape: Any, dtype: Expr | None) -> Leaf | None:
        if isinstance(shape, Absent):
            return None
        if isinstance(shape, Assigned):
            node = shape.value
            base = node.name if isinstance(node, Index) else node
            if not (isinstance(base, Name) and base.id in self.inputs):
                number = self.value(node)
                return Leaf(number, number, number=number)
            return self.like(tensor, dtype, node, itself=True)
        if isinstance(shape, Like | Itself):
            node = Name(tensor.name) if isinstance(shape, Itself) else shape.input
            return self.like(tensor, dtype, node, itself=isinstance(shape, Itself))
        return Leaf(self.sizes(tensor.name, shape), self.default_dtype(tensor) if dtype is None else self.dtype(dtype))

    def like(self, tensor: Tensor, dtype: Expr | None, node: Expr, *, itself: bool) -> Leaf:
        """An output with the shape of an input (and more, see :class:`Origin`)."""
        base = node.name if isinstance(node, Index) else node
        assert isinstance(base, Name)
        name = base.id
        if name not in self.present:
            raise self.fault(f"output {tensor.name} is like {name}, which is absent")
        source, dtypes = self.shape_slot[name], self.dtype_slot[name]
        of = None if dtype is None else self.dtype(dtype)
        given = next(t for t in self.relation.input_tensors if t.name == name)
        if isinstance(node, Index):
            element = node.index.value if isinstance(node.index, Literal) else None
            if isinstance(element, bool) or not isinstance(element, int) or given.index is None:
                raise self.fault(f"{node}: {name}[0] is a tensor of a list; say which by an integer")

            def pick(slot: int) -> Value:
                def read(env: Env) -> Any:
                    if not -len(env[slot]) <= element < len(env[slot]):
                        raise ShapeError(f"{node}: {name} has {len(env[slot])} tensor(s)")
                    return env[slot][element]

                return read

            return Leaf(pick(source), of or pick(dtypes), Origin(name, itself, element))
        if given.index is None or (tensor.index is None and itself):
            return Leaf(slot_value(source), of or slot_value(dtypes), Origin(name, itself))
        if given.index != tensor.index:
            raise self.fault(
                f"{name} is a list; an output like its tensors is {tensor.name}[{given.index}] like {name}"
            )
        index = self.slots[given.index]
        return Leaf(
            lambda env: env[source][env[index]], of or (lambda env: env[dtypes][env[index]]), Origin(name, itself)
        )

    def list_output(self, tensor: Tensor, dtype: Expr | None) -> OutputPlan:
        index = tensor.index
        assert index is not None
        if len(tensor.alternatives) > 1:
            raise self.fault(f"a list of tensors such as {tensor.name} has one shape, not alternatives")
        if tensor.count is not None:
            count = self.value(tensor.count)
        elif f"len {index}" in self.slots:
            count = slot_value(self.slots[f"len {index}"])
        else:
            raise self.fault(
                f"nothing says how many tensors {tensor.name} has: no input list that is present has index {index}; "
                f"write {tensor.name}[{index} < count]"
            )
        if index not in self.slots:
            self.bound.add(self.new_slot(index))

        def checked(env: Env) -> Any:
            total = count(env)
            if not isinstance(total, int) or not 0 <= total <= MAX_LIST:
                raise ShapeError(f"{tensor.name} would have {show(total)} tensors")
            return total

        leaf = self.leaf(tensor, tensor.alternatives[0].shape, dtype)
        return OutputPlan(((None, leaf),), checked, self.slots[index])

    def default_dtype(self, tensor: Tensor) -> Value:
        for given in self.relation.input_tensors:
            if given.name in self.present:
                slot = self.dtype_slot[given.name]
                if given.index is None:
                    return slot_value(slot)
                if given.index == tensor.index:
                    index = self.slots[given.index]
                    return lambda env: env[slot][env[index]]
                return lambda env: first_of(env[slot])
        raise self.fault(
            f"output {tensor.name} has no dtype and no input gives one; "
            f"write {tensor.name}{tensor.alternatives[0].shape}: float32"
        )

    def sizes(self, subject: str, shape: Dims) -> Callable[[Env], tuple[Any, ...]]:
        """A function that gives an output's shape."""
        slots = [self.known_slot(item) for item in shape.items]
        if None not in slots:
            names = [slot for slot in slots if slot is not None]
            return _pick(names)
        parts: list[tuple[Value, bool, Value | None]] = []
        for item in shape.items:
            axis = None if isinstance(item, Ellipsis_) or item.axis is None else self.value(item.axis)
            if isinstance(item, Ellipsis_):
                parts.append((self.ellipsis_value(subject), True, None))
            elif isinstance(item, Group):
                parts.append((self.group(item.value), True, axis))
            else:
                assert item.value is not None
                parts.append((self.size(item.value, subject), False, axis))
        if all(axis is None for _, _, axis in parts):
            return _concatenate([(part, many) for part, many, _ in parts])
        shown = f"{subject}{shape}"

        def place(env: Env) -> tuple[Any, ...]:
            values = [(part(env) if many else (part(env),), many, axis and axis(env)) for part, many, axis in parts]
            rank = sum(len(value) for value, _, _ in values)
            result: list[Any] = [_FREE] * rank
            for (value, many, axis), (_, _, placed) in zip(values, parts, strict=True):
                if placed is None or axis is None:
                    continue
                axes = axes_of(axis, many, rank, shown)
                if len(axes) != len(value):
                    raise ShapeError(f"{shown}: {len(value)} dimension(s) for {len(axes)} axes {list(axes)}")
                for a, size in zip(axes, value, strict=True):
                    if result[a] is not _FREE:
                        raise ShapeError(f"{shown}: axis {a} is named twice")
                    result[a] = size
            others = iter(
                [
                    s
                    for (value, _, axis), p in zip(values, parts, strict=True)
                    if p[2] is None or axis is None
                    for s in value
                ]
            )
            return tuple([next(others) if size is _FREE else size for size in result])

        return place

    def known_slot(self, item: Any) -> int | None:
        """The slot of a plain dimension that every run binds: needs no look before it is used."""
        if (
            isinstance(item, Size)
            and item.axis is None
            and isinstance(item.value, Name)
            and item.value.id not in self.attrs
        ):
            name = item.value.id
            slot = self.slots.get(name)
            if slot in self.bound and name not in self.vectors | self.groups and self.is_dimension(name):
                return slot
        return None

    def size(self, expression: Expr, subject: str) -> Value:
        value = self.value(expression)
        if isinstance(expression, Literal) and isinstance(expression.value, int) and expression.value >= 0:
            return value

        def size(env: Env) -> Any:
            result = value(env)
            if result.__class__ is int:
                if result < 0:
                    raise ShapeError(f"output {subject} would have a dimension {expression} = {result}")
            elif result is None or isinstance(result, bool | str | float | list | tuple):
                raise ShapeError(f"output {subject}: {expression} is {show(result)}, not an integer")
            return result

        return size

    def group(self, expression: Expr) -> Value:
        if isinstance(expression, Call):
            argument = expression.arguments[0]
            if expression.function == "ones":
                inner = self.group(argument)
                return lambda env: (1,) * len(inner(env))
            source, wanted = self.group(argument), self.value(expression.arguments[1])
            return lambda env: reshape(source(env), wanted(env), str(expression))
        value = self.value(expression)

        def group(env: Env) -> Any:
            sizes = value(env)
            if sizes is None or isinstance(sizes, bool | int | str | float):
                raise ShapeError(f"*{expression}: {expression} is {show(sizes)}, not a list of sizes")
            for size in sizes:
                if size.__class__ is int and size < 0:
                    raise ShapeError(f"*{expression}: {list(sizes)} holds {size}, which is not a size")
            return tuple(sizes)

        return group


class _Element:
    """The per-element dimensions of a list of tensors, each matched through a scratch slot."""

    def __init__(self, index: str) -> None:
        self.index = index
        self.scratches: dict[str, int] = {}

    def scratch(self, compiler: _Compiler[Any], name: str, *, group: bool) -> int:
        if group:
            compiler.groups.add(name)
        if name not in self.scratches:
            self.scratches[name] = compiler.new_slot()
        return self.scratches[name]


# ---------------------------------------------------------------------------------------------------- building closures

_FREE = object()


def _assign(slot: int, value: Value) -> Step:
    def assign(env: Env) -> None:
        env[slot] = value(env)

    return assign


def _branch(source: int, branches: Sequence[tuple[Value | None, Match | None]]) -> Step | None:
    if len(branches) == 1:
        match = branches[0][1]
        return None if match is None else lambda env: match(env, env[source])

    def choose(env: Env) -> None:
        for condition, match_ in branches:
            if condition is None or condition(env):
                if match_ is not None:
                    match_(env, env[source])
                return

    return choose


def _match_fixed(
    slots: Sequence[int], fresh: Sequence[bool], shown: str, agree: Callable[[Env, int, Any, str, int], None]
) -> Match:
    count = len(slots)

    def wrong_rank(sizes: Sequence[Any]) -> ShapeError:
        return ShapeError(f"{shown} has {count} dimension(s), the input has {len(sizes)}: {show_shape(sizes)}")

    if count and all(fresh) and list(slots) == list(range(slots[0], slots[0] + count)):
        start, end = slots[0], slots[0] + count

        def bind(env: Env, sizes: Sequence[Any]) -> None:
            if len(sizes) != count:
                raise wrong_rank(sizes)
            env[start:end] = sizes

        return bind
    fixed = tuple(slots)

    def match(env: Env, sizes: Sequence[Any]) -> None:
        if len(sizes) != count:
            raise wrong_rank(sizes)
        for position, slot in enumerate(fixed):
            size, bound = sizes[position], env[slot]
            if bound is None:
                env[slot] = size
            elif bound is not size and (bound == size) is not True:
                agree(env, slot, size, shown, position)

    return match


def _pick(slots: Sequence[int]) -> Callable[[Env], tuple[Any, ...]]:
    count = len(slots)
    if count == 0:
        return lambda env: ()
    if list(slots) == list(range(slots[0], slots[0] + count)):
        start, end = slots[0], slots[0] + count
        return lambda env: tuple(env[start:end])
    fixed = tuple(slots)
    return lambda env: tuple([env[slot] for slot in fixed])


def _concatenate(parts: Sequence[tuple[Value, bool]]) -> Callable[[Env], tuple[Any, ...]]:
    if len(parts) == 1 and parts[0][1]:
        only = parts[0][0]
        return lambda env: tuple(only(env))

    def concatenate(env: Env) -> tuple[Any, ...]:
        result: list[Any] = []
        for part, many in parts:
            if many:
                result += part(env)
            else:
                result.append(part(env))
        return tuple(result)

    return concatenate

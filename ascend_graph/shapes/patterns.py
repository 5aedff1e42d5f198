"""Input patterns → steps that bind the sizes of the inputs, or compare them with what is bound already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ascend_graph.shapes.arithmetic import axes_of, broadcast, show, show_shape
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.errors import ShapeError
from ascend_graph.shapes.expressions import Scope
from ascend_graph.shapes.program import Env, Match, Step, T, Value
from ascend_graph.shapes.syntax import (
    Dims,
    Ellipsis_,
    Expr,
    Group,
    Index,
    Literal,
    Name,
    Size,
    Tensor,
    Tuple,
)

#: What gives a step once everything that inputs bind and that is defined after ``where`` is known.
Deferred = Callable[[], Step]


class Patterns(Scope[T]):
    """The part of the compiler that reads inputs; :meth:`input` is its face."""

    def input(self, tensor: Tensor, deferred: list[Deferred]) -> list[Step]:
        branches: list[tuple[Value | None, Match | None]] = []
        steps: list[Step] = []
        before, certain = set(self.bound), []
        for alternative in tensor.alternatives:
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            match: Match | None = None
            after: list[Deferred] = []
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
        branch = self.branch(tensor.name, branches)
        if branch is not None:
            steps.append(branch)
        dtype = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if dtype is not None:
            steps += self.input_dtype(tensor.name, dtype)
        return steps

    def branch(self, name: str, branches: Sequence[tuple[Value | None, Match | None]]) -> Step | None:
        """The step that matches an input with the first pattern whose condition holds."""
        shape, slot = self.shape_of(name), self.input_slot[name]
        if len(branches) > 1:

            def choose(env: Env) -> None:
                for condition, match_ in branches:
                    if condition is None or condition(env):
                        if match_ is not None:
                            match_(env, shape(env))
                        return

            return choose
        match = branches[0][1]
        if match is None:
            return None
        if name in self.single:
            return lambda env: match(env, env[slot].shape)
        return lambda env: match(env, shape(env))

    def dim_slot(self, name: str) -> int:
        """The slot of a dimension in a pattern: that of the attr of this name, if there is one."""
        if name in self.attrs:
            slot = self.attrs[name]
            self.origin.setdefault(slot, f"attr {name}")
            return slot
        return self.slots[name] if name in self.slots else self.new_slot(name)

    def pattern(self, subject: str, shape: Dims, deferred: list[Deferred], element: _Element | None = None) -> Match:
        """A function that binds or compares the sizes of one shape."""
        ordered = [item for item in shape.items if isinstance(item, Ellipsis_) or item.axis is None]
        placed = [item for item in shape.items if not isinstance(item, Ellipsis_) and item.axis is not None]
        shown = f"{subject}{shape}"
        if not placed:
            return self.sequence(subject, ordered, shown, deferred, element)
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

        # In the order of the run: what comes first binds.
        rest = self.sequence(subject, ordered, shown, deferred, element)

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
        self, subject: str, items: Sequence[Any], shown: str, deferred: list[Deferred], element: _Element | None
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

    def size_slot(
        self, subject: str, item: Size, position: int, deferred: list[Deferred], element: _Element | None
    ) -> int:
        value = item.value
        where = f"{subject}[{position}]"
        if value is None:
            return self.new_slot()
        if isinstance(value, Name) and value.id not in self.inputs and not self.is_defined(value.id):
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
            deferred.append(lambda: self.compare(slot, where, value))
            return slot
        self.origin.setdefault(slot, where)
        return slot

    def compare(self, slot: int, where: str, expression: Expr) -> Step:
        """Compare a size with what an expression gives once everything is bound."""
        value, check = self.value(expression), self.check

        def compare(env: Env) -> None:
            got, wanted = env[slot], value(env)
            if got is not None and (got == wanted) is not True:
                check(got == wanted, lambda: f"{where} is {got}, but {expression} is {wanted}")

        return compare

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
            if not isinstance(before, list | tuple):
                raise ShapeError(f"*{name} is {show(before)} by {origin}, not a list of sizes")
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
        deferred: list[Deferred] = []
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

        def match_one(env: Env, sizes: Sequence[Any] | None, number: int) -> None:
            if sizes is not None:
                try:
                    match(env, sizes)
                except ShapeError as error:
                    raise ShapeError(f"{error} ({index} = {number})") from None

        def match_list(env: Env, shapes: Sequence[Any]) -> None:
            count = env[slot]
            if count is not None and count != len(shapes):
                raise ShapeError(f"{name} has {len(shapes)} tensors, but another list with index {index} has {count}")
            env[slot] = len(shapes)
            if not vectors:
                for number, sizes in enumerate(shapes):
                    match_one(env, sizes, number)
                return
            fresh = [env[vector] is None for vector, _ in vectors]
            for (vector, _), new in zip(vectors, fresh, strict=True):
                if new:
                    env[vector] = []
            for number, sizes in enumerate(shapes):
                for (vector, scratch), new in zip(vectors, fresh, strict=True):
                    env[scratch] = None if new else env[vector][number]
                match_one(env, sizes, number)
                for (vector, scratch), new in zip(vectors, fresh, strict=True):
                    if new:
                        env[vector].append(env[scratch])

        return match_list

    def input_dtype(self, name: str, dtype: Expr) -> list[Step]:
        given = self.dtype_of(name)
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
            first, other = users[0], self.dtype_of(users[0])
            symbol = dtype.id

            def same(env: Env) -> None:
                a, b = other(env), given(env)
                if a != b:
                    raise ShapeError(f"{first} has dtype {a} and {name} has dtype {b}, but both are {symbol}")

            return [same]
        options = [self.dtype(d) for d in (dtype.items if isinstance(dtype, Tuple) else (dtype,))]

        def among(env: Env) -> None:
            allowed = [option(env) for option in options]
            got = given(env)
            if got is not None and got not in allowed:
                raise ShapeError(f"{name} has dtype {got}; allowed: {', '.join(map(str, allowed))}")

        return [among]


class _Element:
    """The per-element dimensions of a list of tensors, each matched through a scratch slot."""

    def __init__(self, index: str) -> None:
        self.index = index
        self.scratches: dict[str, int] = {}

    def scratch(self, patterns: Patterns[Any], name: str, *, group: bool) -> int:
        if group:
            patterns.groups.add(name)
        if name not in self.scratches:
            self.scratches[name] = patterns.new_slot()
        return self.scratches[name]


# ---------------------------------------------------------------------------------------------------- building closures


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
        for slot, size in zip(fixed, sizes):  # noqa: B905 - as many, see above
            bound = env[slot]
            if bound is None:
                env[slot] = size
            elif bound is not size and (bound == size) is not True:
                pairs = enumerate(zip(fixed, sizes, strict=True))
                agree(env, slot, size, shown, next(n for n, (s, z) in pairs if s == slot and z is size))

    return match

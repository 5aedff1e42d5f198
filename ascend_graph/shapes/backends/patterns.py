"""Actions for input patterns: they bind the sizes of the inputs, or compare them with bound ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ascend_graph.shapes.arithmetic import axes_of, broadcast, show_shape
from ascend_graph.shapes.backends.program import Action, Binder, Env, T, Value, known_condition
from ascend_graph.shapes.backends.python import Scope
from ascend_graph.shapes.errors import ShapeError
from ascend_graph.shapes.form import Agree, Bind, CheckDtype, ExpressionKind, InputPattern, Match, Op, SameDtype, Step


class Patterns(Scope[T]):
    """Input part of the compiler."""

    def match(self, step: Match) -> list[Action]:
        """Return the actions that match an input with the first pattern whose condition holds."""
        name = step.input
        branches: list[tuple[Value | None, Binder | None]] = []
        before, certain = set(self.bound), []
        for pattern in step.patterns:
            condition = None if pattern.condition is None else self.condition(pattern.condition)
            known = known_condition(condition)
            if known is False:
                continue
            self.bound = set(before)
            bind: Binder | None = None
            if pattern.items is not None:
                bind = self.pattern(name, pattern) if step.index is None else self.list_pattern(step, pattern)
            branches.append((None if known else condition, bind))
            certain.append(self.bound)
            if known:
                break
        # What only some of the patterns bind may be empty afterwards.
        self.bound = set.intersection(*certain)
        self.filled |= set.union(*certain)
        shape, slot = self.shape_of(name), self.input_slot[name]
        if len(branches) > 1:

            def choose(env: Env) -> None:
                for condition, bind in branches:
                    if condition is None or condition(env):
                        if bind is not None:
                            bind(env, shape(env))
                        return

            return [choose]
        only = branches[0][1]
        if only is None:
            return []
        if name in self.single:
            return [lambda env: only(env, env[slot].shape)]
        return [lambda env: only(env, shape(env))]

    def pattern(self, subject: str, pattern: InputPattern, index: str | None = None) -> Binder:
        """Return a function that binds or compares the sizes of one shape."""
        rest_of_axes = [item for item in pattern.placed if item.axes is not None and item.axes.op is Op.OTHER_AXES]
        picks: list[tuple[Value, bool, Binder]] = []
        for item in pattern.placed:
            assert item.axes is not None
            shown = f"{subject}[{item.shown}]"
            picks.append((self.value(item.axes), item.many, self.sequence(shown, [item], shown, index)))
        # In the order of the run: what comes first binds.
        rest = self.sequence(subject, pattern.ordered, pattern.shown, index)
        if not picks:
            return rest
        if len(rest_of_axes) > 1:
            raise self.fault(f"{pattern.shown}: only one group may take the axes that are left")
        shown = pattern.shown

        def match(env: Env, sizes: Sequence[Any]) -> None:
            taken: set[int] = set()
            pending: list[tuple[Binder, Sequence[Any]]] = []
            everything = None
            for axis, many, bind in picks:
                value = axis(env)
                if value is None:
                    everything = bind
                    continue
                axes = axes_of(value, many, len(sizes), shown)
                for a in axes:
                    if a in taken:
                        raise ShapeError(f"{shown}: axis {a} is named twice; name each once")
                    taken.add(a)
                pending.append((bind, [sizes[a] for a in axes]))
            others = [size for a, size in enumerate(sizes) if a not in taken]
            if everything is not None:  # axes=None takes all that is left
                pending.append((everything, others))
                others = []
            for bind, part in pending:
                bind(env, part)
            rest(env, others)

        return match

    def sequence(self, subject: str, items: Sequence[Bind], shown: str, index: str | None) -> Binder:
        """Return a function that binds or compares sizes in order; one item may take any number of them."""
        middle = next((n for n, item in enumerate(items) if item.many), None)
        fixed = [item for item in items if not item.many]
        # Fresh slots of one pattern lie side by side, so that a whole shape binds with one slice assignment.
        slots: list[int] = []
        fresh: list[bool] = []
        compared: list[Action] = []
        for number, item in enumerate(fixed):
            position = number if middle is None or number < middle else number - len(fixed)
            slot = self.size_slot(item, f"{subject}[{position}]", index, compared)
            new = slot >= self.first and slot not in self.bound | self.filled and slot not in slots
            fresh.append(index is None and new and self.template[slot - self.first] is None)
            slots.append(slot)
        if index is None:
            self.bound.update(slot for slot, new in zip(slots, fresh, strict=True) if new)
        if middle is None:
            return _then(_match_fixed(slots, fresh, shown, self.agree), compared)
        before, after = middle, len(fixed) - middle
        head = _match_fixed(slots[:middle], fresh[:middle], shown, self.agree)
        tail = _match_fixed(slots[middle:], fresh[middle:], shown, self.agree)
        bind = self.open_item(subject, items[middle])
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

        return _then(match, compared)

    def size_slot(self, item: Bind, where: str, index: str | None, compared: list[Action]) -> int:
        """Return the slot that one size binds or is compared with; computed sizes are compared afterwards."""
        match item.what:
            case "dimension":
                slot = self.slots.get(item.name)
                if slot is None:
                    slot = self.slots[item.name] = self.new_slot()
                    self.sizes_of_inputs.add(slot)
            case "element":
                slot = self.element_slot(item.name)
            case "later":
                slot = self.slots[f"later {item.name}"] = self.new_slot()
            case "size" if item.node is not None and item.node.op is Op.INTEGER:
                slot = self.new_slot(item.node.value)
                self.origin[slot] = "the relation"
                self.bound.add(slot)
            case "size" if (
                item.node is not None and item.node.op is Op.ATTR and item.node.kind is ExpressionKind.NUMBER
            ):
                slot = self.attrs[str(item.node.value)]
                self.origin.setdefault(slot, f"attr {item.node.value}")
            case "size":
                assert item.node is not None
                slot = self.new_slot()
                compared.append(self.compare(slot, where, item))
            case _:
                slot = self.new_slot()
        if index is not None and item.what in ("any", "size") and self.template[slot - self.first :][:1] == [None]:
            self.scratches.append(slot)
        self.origin.setdefault(slot, where)
        return slot

    def compare(self, slot: int, where: str, item: Bind | Agree) -> Action:
        """Return the action that compares a size with the value of a node."""
        assert item.node is not None
        value, check, shown = self.number(item.node), self.check, item.shown

        def compare(env: Env) -> None:
            got = env[slot]
            if got is None:
                return  # its input has another form here
            wanted = value(env)
            if (got == wanted) is not True:
                check(got == wanted, lambda: f"{where} is {got}, but {shown} is {wanted}")

        return compare

    def open_item(self, subject: str, item: Bind) -> Binder:
        match item.what:
            case "ellipsis":
                return self.leading_item()
            case "sizes":
                assert item.node is not None
                wanted = self.value(item.node)
                scratch = self.new_slot()
                self.origin[scratch] = f"attr {item.node}"
                compare = self.group_binder(scratch, f"{item.node}", subject)

                def bind_sizes(env: Env, sizes: Sequence[Any]) -> None:
                    env[scratch] = wanted(env)
                    compare(env, sizes)

                return bind_sizes
            case "elements":
                slot = self.element_slot(item.name)
            case _:
                found = self.slots.get(item.name)
                slot = self.slots[item.name] = self.new_slot() if found is None else found
                self.sizes_of_inputs.add(slot)
                self.bound.add(slot)
        return self.group_binder(slot, item.name, subject)

    def leading_item(self) -> Binder:
        if self.ellipsis is None:
            self.ellipsis = self.new_slot()
        slot = self.ellipsis
        self.bound.add(slot)
        check, decide = self.check, self.decide

        def bind_ellipsis(env: Env, sizes: Sequence[Any]) -> None:
            before = env[slot]
            env[slot] = sizes if before is None else broadcast(before, sizes, check, decide)

        return bind_ellipsis

    def group_binder(self, slot: int, name: str, subject: str) -> Binder:
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
                    f"but {len(sizes)} by {subject}: {show_shape(sizes)}; expected equal shapes"
                )
            for position, (old, new) in enumerate(zip(before, sizes, strict=True)):
                if old is not new and (old == new) is not True:
                    message = f"dimension {position} of *{name} is {old} by {origin}, but {new} by {subject}"
                    check(old == new, partial(str, message))

        return bind_group

    def agree(self, env: Env, slot: int, size: Any, shown: str, position: int) -> None:
        """Check that a size equals the one that is bound in its slot, with a message that names both."""
        bound = env[slot]
        origin = self.origin.get(slot, "an earlier input")
        names = {**self.slots, **self.attrs}
        name = next((name for name, s in names.items() if s == slot), None)
        what = f"dimension {name}" if name else "this dimension"
        self.check(bound == size, lambda: f"{shown}: dimension {position} is {size}, but {what} is {bound} by {origin}")

    # -------------------------------------------------------------------------------------------------- lists of tensors

    def element_slot(self, name: str) -> int:
        """Return the slot of a dimension or group that differs per tensor, for the tensor being matched."""
        if name not in self.elements:
            slot = self.elements[name] = self.new_slot()
            if (earlier := self.slots.get(name)) in self.origin:
                self.origin[slot] = self.origin[earlier]
        return self.elements[name]

    def list_pattern(self, step: Match, pattern: InputPattern) -> Binder:
        name, index = step.input, step.index
        assert index is not None
        self.elements, self.scratches = {}, []
        bind = self.pattern(f"{name}[{index}]", pattern, index)
        if index not in self.counts:
            self.counts[index] = self.new_slot()
        count_slot, index_slot = self.counts[index], self.index(index)
        scratches, vectors = tuple(self.scratches), list[tuple[int, int]]()
        for element, scratch in self.elements.items():
            if element not in self.slots:
                self.slots[element] = self.new_slot()
                if scratch in self.origin:
                    self.origin[self.slots[element]] = self.origin[scratch]
            vectors.append((self.slots[element], scratch))
            self.bound.add(self.slots[element])

        def match_one(env: Env, sizes: Sequence[Any] | None, number: int) -> None:
            if sizes is not None:
                env[index_slot] = number
                for scratch in scratches:
                    env[scratch] = None
                try:
                    bind(env, sizes)
                except ShapeError as error:
                    raise ShapeError(f"{error} ({index} = {number})") from None

        def match_list(env: Env, shapes: Sequence[Any]) -> None:
            count = env[count_slot]
            if count is not None and count != len(shapes):
                raise ShapeError(
                    f"{name} has {len(shapes)} tensors, but another list with index {index} has {count}; expected as "
                    "many"
                )
            env[count_slot] = len(shapes)
            for vector, _ in vectors:
                env[vector] = env[vector] or []
            for number, sizes in enumerate(shapes):
                # Another list with an index of its own may have had fewer tensors.
                for vector, scratch in vectors:
                    known = env[vector]
                    env[scratch] = known[number] if number < len(known) else None
                match_one(env, sizes, number)
                for vector, scratch in vectors:
                    if number == len(env[vector]):
                        env[vector].append(env[scratch])

        return match_list

    # -------------------------------------------------------------------------------------------------------- demands

    def check_input(self, step: Step) -> list[Action]:
        """Return the actions for demands on inputs other than their patterns."""
        match step:
            case SameDtype(names, symbol):
                return self.same_dtype([name for name in names if name in self.present], names[-1], symbol)
            case CheckDtype(name, allowed) if name in self.present:
                options, given = [self.dtype(node) for node in allowed], self.dtypes_of(name)

                def among(env: Env) -> None:
                    dtypes = [option(env) for option in options]
                    for got in given(env):
                        if got is not None and got not in dtypes:
                            raise ShapeError(f"{name} has dtype {got}; allowed: {', '.join(map(str, dtypes))}")

                return [among]
            case Agree(name):
                slot = self.slots.get(f"later {name}")
                return [] if slot is None else [self.compare(slot, self.origin[slot], step)]
        return []

    def same_dtype(self, present: Sequence[str], last: str, symbol: str) -> list[Action]:
        if not present or present[-1] != last or (len(present) < 2 and last in self.single):
            return []
        first, other, given = present[0], self.dtype_of(present[0]), self.dtypes_of(last)

        def same(env: Env) -> None:
            for b in given(env):
                if (a := other(env)) != b:
                    whose = (
                        f"{last} has dtypes {a} and" if first == last else f"{first} has dtype {a} and {last} has dtype"
                    )
                    raise ShapeError(f"{whose} {b}, but {'all' if first == last else 'both'} must be {symbol}")

        return [same]


# ---------------------------------------------------------------------------------------------------- building closures


def _then(bind: Binder, actions: Sequence[Action]) -> Binder:
    if not actions:
        return bind

    def both(env: Env, sizes: Sequence[Any]) -> None:
        bind(env, sizes)
        for action in actions:
            action(env)

    return both


def _match_fixed(
    slots: Sequence[int], fresh: Sequence[bool], shown: str, agree: Callable[[Env, int, Any, str, int], None]
) -> Binder:
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

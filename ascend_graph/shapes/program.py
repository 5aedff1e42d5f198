"""A relation compiled to closures, for one set of present inputs and one list of attrs.

One list, the environment, holds everything a run knows: attr values, dtypes and shapes as given, then one slot per
dimension, group and definition. Compiling resolves every name to a slot and every condition on presence to a constant,
so that a run is a few closures over list indices; nothing is generated as text. Sizes are only compared and computed
with: symbolic integers pass through, and what must hold goes to ``check``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ascend_graph.shapes.dtypes import CATEGORY, DtypeSystem, Operand
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.parser import DTYPE_FUNCTIONS
from ascend_graph.shapes.syntax import (
    Absent,
    Binary,
    Call,
    Conditional,
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
    Unary,
)
from ascend_graph.shapes.syntax import Value as Assigned

if TYPE_CHECKING:
    from ascend_graph.shapes.relation import Relation

T = TypeVar("T")
Env = list[Any]
Value = Callable[[Env], Any]
Step = Callable[[Env], None]
Match = Callable[[Env, Sequence[Any]], None]
Check = Callable[[Any, Callable[[], str]], None]
Decide = Callable[[Any], bool]

#: What a run gives per output: shape and dtype, a list of them, a number, or ``None``.
OutputSpec = tuple[tuple[Any, ...], T] | list[tuple[tuple[Any, ...], T]] | Any | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an output comes from that is more than a shape: the strides of an input, or the input itself."""

    input: str
    itself: bool
    #: Which tensor of a list of tensors.
    element: int | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One alternative of an output: how to compute its shape and dtype, and where it comes from."""

    sizes: Value
    dtype: Value
    #: ``None`` for a fresh contiguous tensor.
    origin: Origin | None = None
    #: An output that is a number; shape and dtype mean nothing then.
    number: Value | None = None


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How to compute one output: the alternatives left after compiling; the last has no condition."""

    branches: tuple[tuple[Value | None, Leaf | None], ...]
    #: For a list of tensors, its length and the slot of its index.
    count: Value | None = None
    index: int = -1

    def leaf(self, env: Env) -> Leaf | None:
        """The alternative that holds."""
        for condition, leaf in self.branches:
            if condition is None or condition(env):
                return leaf
        raise AssertionError("the last alternative has no condition")

    def spec(self, env: Env) -> OutputSpec[Any]:
        """Shape and dtype; see :data:`OutputSpec`."""
        leaf = self.leaf(env)
        if leaf is None:
            return None
        if leaf.number is not None:
            return leaf.number(env)
        if self.count is None:
            sizes, dtype = leaf.sizes(env), leaf.dtype(env)
            return list(zip(sizes, dtype, strict=True)) if isinstance(dtype, list) else (sizes, dtype)
        found = []
        for number in range(self.count(env)):
            env[self.index] = number
            found.append((leaf.sizes(env), leaf.dtype(env)))
        return found


#: How many tensors a list output may have.
MAX_LIST = 65536

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: among(a, b),
    "not in": lambda a, b: negated(among(a, b)),
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
}


class Program(Generic[T]):
    """A compiled relation. :meth:`run` takes shapes and dtypes in the order of the inputs, and attrs in theirs."""

    __slots__ = ("outputs", "steps", "template")

    def __init__(self, steps: Sequence[Step], outputs: Sequence[OutputPlan], template: Sequence[Any]) -> None:
        #: What matches the inputs and checks all that the relation demands, to be run in order on an environment.
        self.steps = tuple(steps)
        #: What computes the outputs from the environment after that.
        self.outputs = tuple(outputs)
        #: The end of a new environment, after attrs, dtypes and shapes.
        self.template = tuple(template)

    def run(self, shapes: Sequence[Any], dtypes: Sequence[Any], attrs: Sequence[Any]) -> tuple[OutputSpec[T], ...]:
        """Shape and dtype of every output; see :meth:`Relation.infer`."""
        env = [*attrs, *dtypes, *shapes, *self.template]
        for step in self.steps:
            step(env)
        return tuple([output.spec(env) for output in self.outputs])


def compile_program(
    relation: Relation,
    present: frozenset[str],
    attrs: Sequence[str],
    system: DtypeSystem[T],
    check: Check,
    decide: Decide,
) -> Program[T]:
    """Compile ``relation``; see :meth:`Relation.program`."""
    return _Compiler(relation, present, attrs, system, check, decide).program()


class _Compiler(Generic[T]):
    def __init__(
        self,
        relation: Relation,
        present: frozenset[str],
        attrs: Sequence[str],
        system: DtypeSystem[T],
        check: Check,
        decide: Decide,
    ) -> None:
        self.relation = relation
        self.present = present
        self.system = system
        self.check = check
        self.decide = decide
        inputs = relation.inputs
        self.inputs = {name: number for number, name in enumerate(inputs)}
        self.attrs = {name: slot for slot, name in enumerate(attrs)}
        self.dtype_slot = {name: len(attrs) + number for name, number in self.inputs.items()}
        self.shape_slot = {name: len(attrs) + len(inputs) + number for name, number in self.inputs.items()}
        self.first = len(attrs) + 2 * len(inputs)
        self.template: list[Any] = []
        #: Dimensions, per-element dimensions, groups, definitions and list indices.
        self.slots: dict[str, int] = {}
        self.vectors: set[str] = set()
        self.groups: set[str] = set()
        #: Slots that hold a value in every run, and those that a conditional pattern may leave empty.
        self.bound: set[int] = set()
        self.origin: dict[int, str] = {}
        self.symbols: dict[str, list[str]] = {}
        self.ellipsis: int | None = None
        self.given_by: dict[str, list[str]] = {}

    # --------------------------------------------------------------------------------------------------------- program

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
            from ascend_graph.shapes.relation import bound_names

            dims = sorted({name for t in self.relation.input_tensors for name in bound_names(t)})
            raise RelationError(
                f"{self.relation}: {', '.join(sorted(unknown))} is neither a dimension of an input nor an attr of the "
                f"operator; dimensions: {', '.join(dims) or 'none'}; attrs: {', '.join(self.attrs) or 'none'}"
            )

    def new_slot(self, name: str | None = None, initial: Any = None) -> int:
        slot = self.first + len(self.template)
        self.template.append(initial)
        if name is not None:
            self.slots[name] = slot
        return slot

    def fault(self, message: str) -> RelationError:
        return RelationError(f"{self.relation}: {message}")

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
                axes = _axes(value, is_group, len(sizes), shown)
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
            fresh.append(slot >= self.first and slot not in self.bound and slot not in slots and self.template[slot - self.first] is None)
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
                raise ShapeError(f"{subject} has {rank} dimension(s), {shown} needs at least {before + after}: {_shape(sizes)}")
            if before:
                head(env, sizes[:before])
            end = rank - after
            bind(env, sizes[before:end])
            if after:
                tail(env, sizes[end:])

        return match

    def size_slot(
        self, subject: str, item: Size, position: int, deferred: list[Step], element: _Element | None
    ) -> int:
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
                raise self.fault(f"in the list {subject}, a size is a name, name[{element.index}] or an integer, not {value}")
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
                    f"*{name} has {len(before)} dimension(s) {_shape(before)} by {origin}, but {len(sizes)} by {subject}: {_shape(sizes)}"
                )
            for position, (old, new) in enumerate(zip(before, sizes, strict=True)):
                if old is not new and (old == new) is not True:
                    check(
                        old == new,
                        lambda p=position, o=old, n=new: f"dimension {p} of *{name} is {o} by {origin}, but {n} by {subject}",
                    )

        return bind_group

    def agree(self, env: Env, slot: int, size: Any, shown: str, position: int) -> None:
        """Two sizes under one name differ, as far as can be told without asking."""
        bound = env[slot]
        origin = self.origin.get(slot, "an earlier input")
        name = next((n for n, s in self.slots.items() if s == slot), None)
        name = name or next((n for n, s in self.attrs.items() if s == slot), None)
        what = f"dimension {name}" if name else "this dimension"
        self.check(
            bound == size, lambda: f"{shown}: dimension {position} is {size}, but {what} is {bound} by {origin}"
        )

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
        if isinstance(dtype, Name) and dtype.id not in CATEGORY and dtype.id not in self.inputs and dtype.id not in self.attrs:
            users = self.symbols.setdefault(dtype.id, [])
            users.append(name)
            if len(users) == 1:
                return []
            first, other = users[0], self.dtype_slot[users[0]]
            symbol = dtype.id

            def same(env: Env) -> None:
                a, b = _first(env[other]), _first(env[slot])
                if a != b:
                    raise ShapeError(f"{first} has dtype {a} and {name} has dtype {b}, but both are {symbol}")

            return [same]
        options = [self.dtype(d) for d in (dtype.items if isinstance(dtype, Tuple) else (dtype,))]

        def among(env: Env) -> None:
            allowed = [option(env) for option in options]
            got = _first(env[slot])
            if got is not None and got not in allowed:
                raise ShapeError(f"{name} has dtype {got}; allowed: {', '.join(map(str, allowed))}")

        return [among]

    def demand(self, condition: Expr) -> Step:
        """A condition after ``where``."""
        test, check = self.condition(condition), self.check
        sizes = [n.id for n in _names(condition) if n.id in self.slots or n.id in self.attrs]
        readers = [(name, self.value(Name(name))) for name in dict.fromkeys(sizes)]

        def step(env: Env) -> None:
            holds = test(env)
            if holds is not True:
                check(
                    holds,
                    lambda: f"{condition} must hold; "
                    + (", ".join(f"{name} is {_shown(read(env))}" for name, read in readers) or "it does not"),
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
            known = _constant(condition)
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
        return Leaf(
            self.sizes(tensor.name, shape), self.default_dtype(tensor) if dtype is None else self.dtype(dtype)
        )

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
            return Leaf(_slot(source), of or _slot(dtypes), Origin(name, itself))
        if given.index != tensor.index:
            raise self.fault(f"{name} is a list; an output like its tensors is {tensor.name}[{given.index}] like {name}")
        index = self.slots[given.index]
        return Leaf(lambda env: env[source][env[index]], of or (lambda env: env[dtypes][env[index]]), Origin(name, itself))

    def list_output(self, tensor: Tensor, dtype: Expr | None) -> OutputPlan:
        index = tensor.index
        assert index is not None
        if len(tensor.alternatives) > 1:
            raise self.fault(f"a list of tensors such as {tensor.name} has one shape, not alternatives")
        if tensor.count is not None:
            count = self.value(tensor.count)
        elif f"len {index}" in self.slots:
            count = _slot(self.slots[f"len {index}"])
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
                raise ShapeError(f"{tensor.name} would have {_shown(total)} tensors")
            return total

        leaf = self.leaf(tensor, tensor.alternatives[0].shape, dtype)
        return OutputPlan(((None, leaf),), checked, self.slots[index])

    def default_dtype(self, tensor: Tensor) -> Value:
        for given in self.relation.input_tensors:
            if given.name in self.present:
                slot = self.dtype_slot[given.name]
                if given.index is None:
                    return _slot(slot)
                if given.index == tensor.index:
                    index = self.slots[given.index]
                    return lambda env: env[slot][env[index]]
                return lambda env: _first(env[slot])
        raise self.fault(f"output {tensor.name} has no dtype and no input gives one; write {tensor.name}{tensor.alternatives[0].shape}: float32")

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
                axes = _axes(axis, many, rank, shown)
                if len(axes) != len(value):
                    raise ShapeError(f"{shown}: {len(value)} dimension(s) for {len(axes)} axes {list(axes)}")
                for a, size in zip(axes, value, strict=True):
                    if result[a] is not _FREE:
                        raise ShapeError(f"{shown}: axis {a} is named twice")
                    result[a] = size
            others = iter([s for (value, _, axis), p in zip(values, parts, strict=True) if p[2] is None or axis is None for s in value])
            return tuple([next(others) if size is _FREE else size for size in result])

        return place

    def known_slot(self, item: Any) -> int | None:
        """The slot of a plain dimension that every run binds: needs no look before it is used."""
        if isinstance(item, Size) and item.axis is None and isinstance(item.value, Name) and item.value.id not in self.attrs:
            name = item.value.id
            slot = self.slots.get(name)
            if slot in self.bound and name not in self.vectors | self.groups and self.is_dimension(name):
                return slot
        return None

    def ellipsis_value(self, subject: str) -> Value:
        if self.ellipsis is None:
            raise self.fault(f"output {subject} has '...', but no input that is present has")
        return _slot(self.ellipsis)

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
                raise ShapeError(f"output {subject}: {expression} is {_shown(result)}, not an integer")
            return result

        return size

    def group(self, expression: Expr) -> Value:
        if isinstance(expression, Call):
            argument = expression.arguments[0]
            if expression.function == "ones":
                inner = self.group(argument)
                return lambda env: (1,) * len(inner(env))
            source, wanted = self.group(argument), self.value(expression.arguments[1])
            return lambda env: _reshape(source(env), wanted(env), str(expression))
        value = self.value(expression)

        def group(env: Env) -> Any:
            sizes = value(env)
            if sizes is None or isinstance(sizes, bool | int | str | float):
                raise ShapeError(f"*{expression}: {expression} is {_shown(sizes)}, not a list of sizes")
            for size in sizes:
                if size.__class__ is int and size < 0:
                    raise ShapeError(f"*{expression}: {list(sizes)} holds {size}, which is not a size")
            return tuple(sizes)

        return group

    # ----------------------------------------------------------------------------------------------------- expressions

    def value(self, node: Expr) -> Value:
        match node:
            case Literal(value):
                return _always(value)
            case Name(name):
                return self.named(name)
            case Index(name, index):
                return self.indexed(name.id, self.value(index), node)
            case Conditional(then, condition, otherwise):
                return self.choice(then, condition, otherwise, self.value)
            case Unary("-", operand):
                inner = self.value(operand)
                return lambda env: -self.number(inner(env), operand)
            case Binary(("+" | "-" | "*" | "//" | "%") as operator, left, right):
                return self.arithmetic(operator, left, right, node)
            case Call():
                return self.call(node)
            case Tuple(items):
                values = [self.value(item) for item in items]
                return lambda env: tuple([value(env) for value in values])
        return self.condition(node)

    def named(self, name: str) -> Value:
        if name == "...":
            return self.ellipsis_value("of this call")
        if name in self.attrs:
            return _slot(self.attrs[name])
        if name in self.slots:
            slot = self.slots[name]
            if slot in self.bound:
                return _slot(slot)

            def maybe(env: Env) -> Any:
                value = env[slot]
                if value is None:
                    raise ShapeError(f"{name} is not given: its input has another form here")
                return value

            return maybe
        if name in self.inputs:
            raise self.fault(f"{name} is a tensor; write rank({name}), numel({name}) or dtype({name}), or name a dimension")
        from ascend_graph.shapes.relation import bound_names

        givers = [t.name for t in self.relation.input_tensors if name in bound_names(t)]
        if givers:
            raise self.fault(f"{name} is given only by {', '.join(givers)}, which is absent")
        raise self.fault(f"{name} means nothing here")

    def indexed(self, name: str, index: Value, node: Expr) -> Value:
        base = self.named(name)

        def item(env: Env) -> Any:
            values, at = base(env), index(env)
            if not isinstance(values, list | tuple):
                raise ShapeError(f"{node}: {name} is {_shown(values)}, not a list")
            if not isinstance(at, int) or not -len(values) <= at < len(values):
                raise ShapeError(f"{node}: {name} has {len(values)} element(s), there is no {at}: {_shown(values)}")
            return values[at]

        return item

    def number(self, value: Any, node: Expr) -> Any:
        if value.__class__ is not int and (value is None or isinstance(value, str | float | list | tuple)):
            raise ShapeError(f"{node} is {_shown(value)}, not an integer")
        return value

    def arithmetic(self, operator: str, left: Expr, right: Expr, node: Expr) -> Value:
        a, b, number = self.value(left), self.value(right), self.number
        if operator == "+":
            return lambda env: number(a(env), left) + number(b(env), right)
        if operator == "-":
            return lambda env: number(a(env), left) - number(b(env), right)
        if operator == "*":
            return lambda env: number(a(env), left) * number(b(env), right)
        floor = operator == "//"

        def divide(env: Env) -> Any:
            dividend, divisor = number(a(env), left), number(b(env), right)
            self.not_zero(divisor, right, node)
            return dividend // divisor if floor else dividend % divisor

        return divide

    def not_zero(self, divisor: Any, right: Expr, node: Expr) -> None:
        if divisor.__class__ is not int or divisor == 0:
            self.check(divisor != 0, lambda: f"{node} divides by {right}, which is 0")

    def call(self, node: Call) -> Value:
        function, arguments = node.function, node.arguments
        first = arguments[0]
        if function in ("rank", "numel", "len") and isinstance(first, Name) and first.id in self.inputs:
            name = first.id
            if name not in self.present:
                raise self.fault(f"{node} asks for {name}, which is absent")
            slot = self.shape_slot[name]
            return (lambda env: product(env[slot])) if function == "numel" else (lambda env: len(env[slot]))
        if function in ("rank", "numel"):
            raise self.fault(f"{function} takes an input, got {first}")
        if function in DTYPE_FUNCTIONS:
            return self.dtype(node)
        values = [self.value(argument) for argument in arguments]
        if function == "ceildiv":
            a, b = values

            def ceildiv(env: Env) -> Any:
                dividend, divisor = self.number(a(env), first), self.number(b(env), arguments[1])
                self.not_zero(divisor, arguments[1], node)
                return -(-dividend // divisor)

            return ceildiv
        if function == "index":
            return lambda env: _position(values[0](env), values[1](env), node)
        if function in ("min", "max") and len(values) > 1:
            return lambda env: extreme(function, [self.number(v(env), first) for v in values])
        value = values[0]

        def reduce(env: Env) -> Any:
            items = value(env)
            if not isinstance(items, list | tuple):
                raise ShapeError(f"{node}: {first} is {_shown(items)}, not a list")
            if function == "len":
                return len(items)
            if function == "prod":
                return product(items)
            if function == "sum":
                return sum(items[1:], items[0]) if items else 0
            if not items:
                raise ShapeError(f"{node}: {first} is empty")
            return extreme(function, items)

        return reduce

    def choice(self, then: Expr, condition: Expr, otherwise: Expr, compile_: Callable[[Expr], Value]) -> Value:
        test = self.condition(condition)
        constant = _constant(test)
        if constant is not None:  # the other side may name what is absent
            return compile_(then if constant else otherwise)
        a, b = compile_(then), compile_(otherwise)
        return lambda env: a(env) if test(env) else b(env)

    def condition(self, node: Expr) -> Value:
        match node:
            case Name(name) if name in self.inputs:
                return _always(name in self.present)
            case Unary("not", operand):
                inner = self.condition(operand)
                constant = _constant(inner)
                return (lambda env: negated(inner(env))) if constant is None else _always(not constant)
            case Binary(("and" | "or") as operator, left, right):
                return self.connective(operator, left, right)
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.inputs:
                return _always((name not in self.present) == (operator == "is"))
            case Binary(operator, left, right) if operator in _COMPARE:
                compile_ = self.dtype if _is_dtype(left) or _is_dtype(right) else self.value
                a = compile_(left)
                b = self.members(right, compile_) if operator in ("in", "not in") else compile_(right)
                compare = _COMPARE[operator]

                def compared(env: Env) -> Any:
                    x, y = a(env), b(env)
                    try:
                        return compare(x, y)
                    except TypeError:
                        raise ShapeError(f"{node}: cannot compare {_shown(x)} with {_shown(y)}") from None

                return compared
        return self.value(node)

    def members(self, node: Expr, compile_: Callable[[Expr], Value]) -> Value:
        if not isinstance(node, Tuple):
            return self.value(node)
        values = [compile_(item) for item in node.items]
        return lambda env: [value(env) for value in values]

    def connective(self, operator: str, left: Expr, right: Expr) -> Value:
        decisive = operator == "or"
        a = self.condition(left)
        known = _constant(a)
        if known is not None:
            return _always(decisive) if known is decisive else self.condition(right)
        b = self.condition(right)

        def connected(env: Env) -> Any:
            first = a(env)
            if hasattr(first, "__sym_not__"):  # a condition on symbolic sizes stays one, to be checked as a whole
                return first | b(env) if decisive else first & b(env)
            return first if bool(first) is decisive else b(env)

        return connected

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype(self, node: Expr) -> Value:
        """The same syntax read as a dtype."""
        match node:
            case Conditional(then, condition, otherwise):
                return self.choice(then, condition, otherwise, self.dtype)
            case Call("dtype", (argument,)):
                return self.dtype(argument)
            case Call("promote" | "floating", arguments):
                operands = [self.operand(argument) for argument in arguments]
                system = self.system

                def promoted(env: Env) -> Any:
                    try:
                        result = system.promote([operand(env) for operand in operands])
                    except ValueError as error:
                        raise ShapeError(f"{node}: {error}") from None
                    return system.floating(result) if node.function == "floating" else result

                return promoted
            case Call(("integral_sum" | "real") as function, (argument,)):
                inner, apply = self.dtype(argument), getattr(self.system, function)
                return lambda env: apply(inner(env))
            case Name(name):
                return self.named_dtype(name)
            case Index(Name(name), index) if name in self.inputs and name in self.present:
                slot, at = self.dtype_slot[name], self.value(index)
                return lambda env: env[slot][at(env)]
        raise self.fault(f"{node} is no dtype; write the name of a dtype, an input, a dtype attr, or promote(…)")

    def named_dtype(self, name: str) -> Value:
        if name in self.inputs:
            if name not in self.present:
                raise self.fault(f"a dtype is that of {name}, which is absent; write '… if {name} else …'")
            slot = self.dtype_slot[name]
            return lambda env: _first(env[slot])
        if name in self.attrs:
            slot, system = self.attrs[name], self.system

            def from_attr(env: Env) -> Any:
                dtype = system.from_attr(env[slot])
                if dtype is None:
                    raise ShapeError(f"attr {name} is {_shown(env[slot])}, which names no dtype")
                return dtype

            return from_attr
        if name in self.symbols:
            slot = self.dtype_slot[self.symbols[name][0]]
            return lambda env: _first(env[slot])
        if name in CATEGORY:
            try:
                return _always(self.system.from_name(name))
            except KeyError:
                raise self.fault(f"dtype {name} does not exist here") from None
        raise self.fault(f"{name} is no dtype here: it is neither an input that is present, nor an attr, nor one of {', '.join(CATEGORY)}")

    def operand(self, node: Expr) -> Value:
        if isinstance(node, Name) and node.id in self.inputs and node.id in self.present:
            dtype, shape = self.dtype_slot[node.id], self.shape_slot[node.id]
            return lambda env: _operand(env[dtype], env[shape])
        if isinstance(node, Name) and node.id in self.attrs and node.id not in CATEGORY:
            slot = self.attrs[node.id]
            return lambda env: Operand(None, number=env[slot]) if isinstance(env[slot], bool | int | float | complex) or type(env[slot]).__name__.startswith("Sym") else Operand(self.system.from_attr(env[slot]))
        of = self.dtype(node)
        return lambda env: Operand(of(env))


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


# ----------------------------------------------------------------------------------------------------- building closures

_FREE = object()


def _always(value: Any) -> Value:
    def always(env: Env) -> Any:
        return value

    always.constant = value  # type: ignore[attr-defined]
    return always


def _constant(value: Value | None) -> bool | None:
    """True or False where a condition is known when the relation is compiled; no condition at all holds."""
    if value is None:
        return True
    constant = getattr(value, "constant", None)
    return constant if isinstance(constant, bool) else None


def _slot(slot: int) -> Value:
    return lambda env: env[slot]


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
        return ShapeError(f"{shown} has {count} dimension(s), the input has {len(sizes)}: {_shape(sizes)}")

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
        position = 0
        for slot in fixed:
            size, bound = sizes[position], env[slot]
            if bound is None:
                env[slot] = size
            elif bound is not size and (bound == size) is not True:
                agree(env, slot, size, shown, position)
            position += 1

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


# -------------------------------------------------------------------------------------------------------------- run time


def broadcast(a: Sequence[Any], b: Sequence[Any], check: Check, decide: Decide) -> tuple[Any, ...]:
    """The common shape of two, aligned at the right, where a size of 1 stretches."""
    if len(a) < len(b):
        a, b = b, a
    offset = len(a) - len(b)
    result = list(a)
    for position, y in enumerate(b):
        x = result[offset + position]
        if x is y or (x == y) is True or decide(y == 1):
            continue
        if not decide(x == 1):
            check(x == y, lambda x=x, y=y: f"{_shape(a)} and {_shape(b)} do not broadcast: {x} and {y} differ and neither is 1")
            # A known size says more than a symbolic one.
            if y.__class__ is not int:
                continue
        result[offset + position] = y
    return tuple(result)


def product(sizes: Sequence[Any]) -> Any:
    """The product of all sizes; 1 for none."""
    result: Any = 1
    for size in sizes:
        result = result * size
    return result


def extreme(function: str, values: Sequence[Any]) -> Any:
    """``min`` or ``max`` that does not branch on symbolic integers."""
    method = f"__sym_{function}__"
    best = values[0]
    for value in values[1:]:
        if hasattr(best, method):
            best = getattr(best, method)(value)
        elif hasattr(value, method):
            best = getattr(value, method)(best)
        else:
            best = min(best, value) if function == "min" else max(best, value)
    return best


def among(value: Any, items: Any) -> Any:
    """Whether ``value`` equals one of ``items``: for a symbolic integer one condition, not a branch per item."""
    if value.__class__ is int or not hasattr(value, "__sym_min__"):
        return value in items
    holds: Any = False
    for item in items:
        holds = (value == item) | holds
    return holds


def negated(condition: Any) -> Any:
    """``not condition``, symbolic if the condition is."""
    return condition.__sym_not__() if hasattr(condition, "__sym_not__") else not condition


def _position(items: Any, wanted: Any, node: Expr) -> int:
    if not isinstance(items, list | tuple) or wanted not in items:
        raise ShapeError(f"{node}: {_shown(items)} does not hold {wanted}")
    return items.index(wanted)


def _reshape(source: Sequence[Any], wanted: Sequence[Any], shown: str) -> tuple[Any, ...]:
    unknown = [n for n, size in enumerate(wanted) if size.__class__ is int and size == -1]
    if not unknown:
        return tuple(wanted)
    if len(unknown) > 1:
        raise ShapeError(f"{shown}: only one size may be -1, got {list(wanted)}")
    rest = product([size for n, size in enumerate(wanted) if n != unknown[0]])
    if rest.__class__ is int and rest == 0:
        raise ShapeError(f"{shown}: -1 beside a size of 0 means nothing: {list(wanted)}")
    total = product(source)
    if total.__class__ is int and rest.__class__ is int and total % rest:
        raise ShapeError(f"{shown}: {total} elements do not fill {list(wanted)}")
    return tuple(total // rest if n == unknown[0] else size for n, size in enumerate(wanted))


def _axes(value: Any, many: bool, rank: int, shown: str) -> tuple[int, ...]:
    axes = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not many and isinstance(value, list | tuple):
        if len(axes) != 1:
            raise ShapeError(f"{shown}: one dimension has one axis, got {list(axes)}")
    for axis in axes:
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise ShapeError(f"{shown}: an axis is an integer, got {_shown(axis)}")
        if not -rank <= axis < rank:
            raise ShapeError(f"{shown}: there is no axis {axis}; with {rank} dimension(s) it is from {-rank} to {rank - 1}")
    return tuple([axis % rank for axis in axes])


def _operand(dtype: Any, shape: Any) -> Operand[Any]:
    if isinstance(dtype, list):
        return Operand(dtype[0], bool(shape[0]))
    return Operand(dtype, len(shape) > 0)


def _first(value: Any) -> Any:
    """The dtype of a tensor, or of the first tensor of a list."""
    if isinstance(value, list | tuple):
        return value[0] if value else None
    return value


def _names(node: Expr) -> list[Name]:
    from ascend_graph.shapes.syntax import walk

    return [n for n in walk(node) if isinstance(n, Name)]


def _is_dtype(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in DTYPE_FUNCTIONS


def _shape(sizes: Sequence[Any]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"

"""Shape relation as a value: parsed once, checked once, evaluated for any integers and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ascend_graph.shapes.backends.compiler import compile_program
from ascend_graph.shapes.backends.program import OutputSpec, RelationProgram, Target, TensorSpec
from ascend_graph.shapes.dtypes import NAMES, DtypeSystem
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.form import AttrKind, ExpressionKind, Form
from ascend_graph.shapes.lowering import lower
from ascend_graph.shapes.parsing.parser import parse
from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import (
    Absent,
    DimensionGroup,
    Dims,
    Ellipsis_,
    GroupPart,
    Index,
    Itself,
    Like,
    Literal,
    Name,
    Size,
    Tensor,
    ValueOutput,
    WhereDefinition,
    renamed,
    walk,
)


def fail(condition: Any, message: Callable[[], str]) -> None:
    """Raise :class:`ShapeError` unless ``condition`` holds: the default ``check``."""
    if not condition:
        raise ShapeError(message())


@dataclass(frozen=True, slots=True)
class Relation(Statement):
    """Output shapes and dtypes as a function of the inputs and attrs; :func:`parse_relation` makes one.

    >>> relation = parse_relation("x[..., m, k], w[k, n], bias[n] -> y[..., m, n]: promote(x, w)")
    >>> relation.inputs, relation.outputs
    (('x', 'w', 'bias'), ('y',))
    >>> relation.infer({"x": (8, 2, 3), "w": (3, 5)}, {"x": "float16", "w": "float32"}, {})
    (((8, 2, 5), 'float32'),)
    >>> print(relation)
    x[..., m, k], w[k, n], bias[n] -> y[..., m, n]: promote(x, w)
    """

    #: The text as written; equality compares the meaning, not the spacing.
    source: str = field(default="", compare=False, repr=False)
    _programs: dict[Target[Any], RelationProgram[Any]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    #: The lowered forms by attr kinds, and whether they are whole. Programs for several targets share one form.
    _forms: dict[object, Form] = field(default_factory=dict, init=False, compare=False, repr=False)

    __hash__ = Statement.__hash__

    def __reduce__(self) -> tuple[Callable[[str], Relation], tuple[str]]:
        """Pickle the text: programs, which evaluated relations keep, are closures."""
        return parse_relation, (str(self),)

    @property
    def optional_outputs(self) -> tuple[str, ...]:
        """Outputs that are None in some calls.

        >>> parse_relation("x[n] -> y[n], z[n] if want else None").optional_outputs
        ('z',)
        """
        absent = (t.name for t in self.output_tensors if any(isinstance(a.shape, Absent) for a in t.alternatives))
        return tuple(absent)

    def in_order(self, names: Sequence[str]) -> Relation:
        """Return the relation with its outputs in the order of ``names``, if these are the names of its outputs.

        >>> parse_relation("x[n] -> y[n], z[n]").in_order(["z", "y"]).outputs
        ('z', 'y')
        """
        tensors = {tensor.name: tensor for tensor in self.output_tensors}
        if len(names) != len(self.output_tensors) or set(names) != set(tensors):
            return self
        return replace(self, output_tensors=tuple(tensors[name] for name in names))

    def renamed(self, names: Mapping[str, str]) -> Relation:
        """Return the relation with new names (from old to new) for inputs, outputs, dimensions and attrs.

        >>> print(parse_relation("x[n], w[n] -> y[n, k]").renamed({"w": "weight", "k": "count"}))
        x[n], weight[n] -> y[n, count]
        """
        if not names:
            return self
        changed = replace(
            self,
            input_tensors=renamed(self.input_tensors, names),
            output_tensors=renamed(self.output_tensors, names),
            clauses=renamed(self.clauses, names),
        )
        return parse_relation(str(changed))

    def program(
        self,
        present: frozenset[str],
        attrs: Mapping[str, AttrKind] | None = None,
        *,
        system: DtypeSystem[Any] = NAMES,
        check: Callable[[Any, Callable[[], str]], None] = fail,
        decide: Callable[[Any], bool] = bool,
    ) -> RelationProgram[Any]:
        """Return the relation compiled for one set of present inputs, and attrs of some kinds.

        Raises:
            RelationError: A name means nothing for an operator with these inputs and attrs, or only absent inputs give
                an output dimension.
        """
        target = Target(present, tuple((attrs or {}).items()), system, check, decide)
        program = self._programs.get(target)
        if program is None:
            form = self.lowered(dict(target.attrs), whole=True)
            program = self._programs[target] = compile_program(self, form, target)
        return program

    def lowered(self, attrs: Mapping[str, AttrKind], *, whole: bool = False) -> Form:
        """Return the form for an operator with these attrs, as :func:`~ascend_graph.shapes.lowering.lower` makes it."""
        key = tuple(attrs.items()), whole
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = lower(self, attrs, whole=whole)
        return form

    def infer(
        self,
        shapes: Mapping[str, Any],
        dtypes: Mapping[str, Any],
        attrs: Mapping[str, object],
        *,
        system: DtypeSystem[Any] = NAMES,
        check: Callable[[Any, Callable[[], str]], None] = fail,
        decide: Callable[[Any], bool] = bool,
    ) -> tuple[OutputSpec[Any], ...]:
        """Return shape and dtype of every output.

        Args:
            shapes: By input name: a sequence of sizes (ints, or anything that computes like them), a list of such for
                a list of tensors, ``None`` for an absent optional input. Inputs not named are absent.
            dtypes: By input name: the dtype, or a list of them; in the representation of ``system``.
            attrs: The operator's attrs, all of them, by name: a name that is an attr is that attr, not a dimension.
            system: The representation of dtypes; names such as ``"float16"`` by default.
            check: Called with every condition that must hold and a function that gives the message.
            decide: Called if the result depends on a condition over sizes (a size equal to 1, in broadcasting).

        Returns:
            ``(shape, dtype)`` of each output, a list of these for a list of tensors, or ``None`` if it is absent.

        Raises:
            ShapeError: The inputs do not fit the relation.
            RelationError: The relation does not fit the operator.
        """
        unknown = shapes.keys() - set(self.inputs)
        if unknown:
            raise RelationError(f"{self} has no input {', '.join(sorted(unknown))}; it has {', '.join(self.inputs)}")
        present = frozenset(name for name, shape in shapes.items() if shape is not None)
        kinds = {name: kind_of(value) for name, value in attrs.items()}
        program = self.program(present, kinds, system=system, check=check, decide=decide)
        names = self.inputs
        return program.run([_input(shapes.get(name), dtypes.get(name)) for name in names], list(attrs.values()))


_KINDS = {
    bool: ExpressionKind.BOOL,
    int: ExpressionKind.NUMBER,
    float: ExpressionKind.FLOAT,
    str: ExpressionKind.TEXT,
    type(None): ExpressionKind.NONE,
}
_PLAIN = {kind: AttrKind(kind) for kind in ExpressionKind}
# Symbolic numbers of a traced graph are recognized by their class's name: nothing here imports torch.
_SYMBOLIC = {"SymInt": ExpressionKind.NUMBER, "SymBool": ExpressionKind.BOOL, "SymFloat": ExpressionKind.FLOAT}


def kind_of(value: object) -> AttrKind:
    """Return how a relation reads an attr with this value."""
    kind = _KINDS.get(type(value)) or _SYMBOLIC.get(type(value).__name__)
    if kind is None and isinstance(value, list | tuple):
        kind = (
            ExpressionKind.SIZES
            if all(kind_of(item).kind is ExpressionKind.NUMBER for item in value)
            else ExpressionKind.LIST
        )
    if kind is None:
        kind = next((kind for class_, kind in _KINDS.items() if isinstance(value, class_)), ExpressionKind.OTHER)
    return _PLAIN[kind]


def _input(shape: Any, dtype: Any) -> Any:
    """Return one input of a run; a list if the shape is a list of shapes."""
    if shape is None:
        return None
    if isinstance(dtype, list) or (
        isinstance(shape, list) and any(s is None or isinstance(s, list | tuple) for s in shape)
    ):
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shape)
        return [None if s is None else TensorSpec(s, d) for s, d in zip(shape, dtypes, strict=True)]
    return TensorSpec(shape, dtype)


def parse_relation(text: str | Relation) -> Relation:
    """Parse a shape relation; docs/shapes.md describes the language. A relation that is parsed already is returned.

    Raises:
        RelationError: The value is not a text. The text does not follow the grammar, or the use of a name cannot mean anything.

    >>> parse_relation("x[n] -> y[n")
    Traceback (most recent call last):
    ...
    ascend_graph.shapes.errors.RelationError: expected ']' or ',', got the end
      x[n] -> y[n
                 ^
    """
    if isinstance(text, Relation):
        return text
    if not isinstance(text, str):
        raise RelationError(f'a shape relation must be a text, got {text!r}. Write "x[m, k], w[k, n] -> y[m, n]"')
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Relation:
    inputs, outputs, clauses = parse(text)
    relation = Relation(inputs, outputs, clauses, text)
    _check(relation)
    return relation


# --------------------------------------------------------------------------------------------- what every use must hold


def _check(relation: Relation) -> None:
    source = relation.source

    def refuse(message: str, at: int | None = None) -> None:
        raise RelationError(message, source, at)

    for tensors, what in ((relation.input_tensors, "input"), (relation.output_tensors, "output")):
        seen: set[str] = set()
        for tensor in tensors:
            if tensor.name in seen:
                refuse(f"{what} {tensor.name} occurs twice; say all of it in one place", tensor.at)
            seen.add(tensor.name)
    inputs = {tensor.name: tensor for tensor in relation.input_tensors}
    dims: dict[str, str] = {}
    groups: set[str] = set()
    for tensor in relation.input_tensors:
        if tensor.count is not None:
            refuse(f"the inputs {tensor.name} come with their count; write {tensor.name}[{tensor.index}]", tensor.at)
        for alternative in tensor.alternatives:
            if isinstance(alternative.shape, Like | ValueOutput | Absent):
                refuse(f"input {tensor.name} has dimensions, not{alternative.shape}; write {tensor.name}[…]", tensor.at)
            if isinstance(alternative.shape, Dims):
                _check_pattern(relation, tensor, alternative.shape, groups, dims)
    _check_list_names(relation)
    for name in sorted(dims.keys() & groups):
        refuse(f"{name} is a dimension in {dims[name]} and a group *{name} elsewhere; rename one")
    for name in (dims.keys() | groups) & inputs.keys():
        refuse(f"{name} names an input and a dimension; rename the dimension", inputs[name].at)
    defined: set[str] = set()
    for clause in relation.clauses:
        if isinstance(clause, WhereDefinition):
            if clause.name in dims.keys() | groups | inputs.keys() | defined:
                refuse(f"{clause.name} has a meaning already; 'where {clause.name} = …' needs a new name")
            later = {c.name for c in relation.clauses if isinstance(c, WhereDefinition)} - defined
            for node in walk(clause.value):
                if isinstance(node, Name) and node.id in later:
                    own = "itself" if node.id == clause.name else f"{node.id}, which is defined after it"
                    refuse(f"the definition of {clause.name} uses {own}; define before it what it uses", node.at)
            defined.add(clause.name)
    for tensor in relation.output_tensors:
        for alternative in tensor.alternatives:
            shape = alternative.shape
            if isinstance(shape, Itself) and tensor.name not in inputs:
                refuse(
                    f"output {tensor.name} has no shape; write {tensor.name}[…], or '{tensor.name} like x', or the "
                    f"name of an input for an operator that returns it: {', '.join(inputs) or '(it has none)'}",
                    tensor.at,
                )
            if isinstance(shape, Like):
                like = shape.input.name if isinstance(shape.input, Index) else shape.input
                if like.id not in inputs:
                    refuse(f"'like' names an input; expected one of: {', '.join(inputs) or 'none'}", like.at)
            if isinstance(shape, Dims) and any(isinstance(i, Size) and i.value is None for i in shape.items):
                refuse(
                    f"output {tensor.name} has a '_', which no input binds; name the size in an input and use the name",
                    tensor.at,
                )


def _check_list_names(relation: Relation) -> None:
    """Raise if a name stands for one size in one place and for a size of each tensor of a list in another."""
    plain: dict[tuple[type, str], Tensor] = {}
    each: dict[tuple[type, str], Tensor] = {}
    for tensor in (*relation.input_tensors, *relation.output_tensors):
        for alternative in tensor.alternatives:
            for item in alternative.shape.items if isinstance(alternative.shape, Dims) else ():
                match item:
                    case DimensionGroup(Name(name)) | Size(Name(name)):
                        plain.setdefault((type(item), name), tensor)
                    case DimensionGroup(Index(Name(name), index)) | Size(Index(Name(name), index)):
                        if tensor in relation.input_tensors and index == Name(tensor.index or ""):
                            each.setdefault((type(item), name), tensor)
    for key in plain.keys() & each.keys():
        one, many, name = plain[key], each[key], key[1]
        whole = f"write sum({name}) or max({name}), or rename one" if key[0] is Size else "rename one"
        raise RelationError(
            f"{name} is one size in {one.name}, but differs per tensor in {many.name} ({name}[{many.index}]); {whole}",
            relation.source,
            one.at,
        )


def _check_pattern(relation: Relation, tensor: Tensor, shape: Dims, groups: set[str], dims: dict[str, str]) -> None:
    for item in shape.items:
        if isinstance(item, Ellipsis_):
            continue
        value = item.value.name if isinstance(item.value, Index) else item.value
        if isinstance(value, Literal) and str(value).startswith("-"):
            raise RelationError(
                f"input {tensor.name}: a dimension must be at least 0, got {value}; write a name, n, or _ for any size",
                relation.source,
                tensor.at,
            )
        if isinstance(item, DimensionGroup):
            if isinstance(value, GroupPart):  # another input has the whole group
                continue
            if not isinstance(value, Name):
                raise RelationError(
                    f"input {tensor.name}: a group of an input must be a name", relation.source, tensor.at
                )
            groups.add(value.id)
        elif isinstance(value, Name) and (
            not isinstance(item.value, Index) or item.value.index == Name(tensor.index or "")
        ):
            dims.setdefault(value.id, tensor.name)
    if sum(isinstance(item, Ellipsis_) for item in shape.items) > 1:
        raise RelationError(
            f"input {tensor.name} has more than one '...', which nothing tells apart; name all but one: *a",
            relation.source,
            tensor.at,
        )

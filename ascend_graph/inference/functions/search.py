"""Search for the relation of a shape function, such as an author's InferShape."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ascend_graph.inference.domains import Domain, OperatorSignature, TensorArgument, restored, safe_name
from ascend_graph.inference.functions.branches import infer_branches, infer_products
from ascend_graph.inference.functions.comparison import (
    agreement,
    input_with_more_dimensions,
    needless_condition,
    size_of_its_own,
)
from ascend_graph.inference.functions.isolation import in_fork
from ascend_graph.inference.functions.optionals import with_absent_inputs_given, with_optional_inputs
from ascend_graph.inference.functions.presence import with_absence
from ascend_graph.inference.functions.questions import CALL_LIMIT, FunctionCaller
from ascend_graph.inference.functions.sampler import FunctionSampler
from ascend_graph.inference.functions.value_inputs import reads_one_number, with_values_as_attrs
from ascend_graph.inference.functions.values import attr_argument, tried_texts
from ascend_graph.inference.results import InferenceError, Inferred
from ascend_graph.inference.running import KernelError
from ascend_graph.inference.search import Search
from ascend_graph.prototypes import AttrType, OpPrototype, ParameterKind
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.functions import ShapeFunction


def infer_from_function(
    function: ShapeFunction, *, seed: int = 0, call_limit: int = CALL_LIMIT, isolated: bool = True
) -> Inferred:
    """Find the shape relation that a shape function follows.

    Args:
        function: The function, with its prototype.
        seed: The seed of the random inputs.
        call_limit: Number of calls that the search may make; a search for some values of attrs alone may make half of it.
        isolated: If false the function runs in this process, as a Python function may.

    Returns:
        The relation in the prototype's names; its ``runs`` are the questions that the function answered.

    Raises:
        InferenceError: No relation explains the answers, or the function crashes, hangs or answers differently the
            second time. The message says which, and what was asked.
    """
    if not isolated:
        return _search(function, seed, call_limit, lambda question: None)

    def search(asked: ShapeFunction, ask: Callable[[bytes], None]) -> Inferred:
        return _search(asked, seed, call_limit, ask)

    found, unasked = in_fork(search, function)
    notes = (*found.notes, *(f"{function.source} does not answer {kind} in time" for kind in unasked))
    return replace(found, notes=notes, answers_all=not unasked)


def infer_with_values(
    function: ShapeFunction, types: Mapping[str, AttrType] | None = None, **options: Any
) -> tuple[Inferred, ShapeFunction]:
    """Find the relation of a shape function that may read values of inputs, which are arguments of a schema.

    Args:
        function: The function.
        types: The types of these arguments, ``ListInt`` or ``Int``, by input. By default they are lists, as in the
            schema of a definition that gives values (``ValueDepend``); of others numbers, if the relation found reads no
            more than the first number of each.
        options: Those of :func:`infer_from_function`.

    Returns:
        The relation; and the function as it was asked, with the values as attrs.

    Raises:
        InferenceError: See :func:`infer_from_function`; or a value that the function reads is no such argument.
    """
    read = dict.fromkeys((*function.data_inputs, *function.value_inputs))
    asked = with_values_as_attrs(function, dict.fromkeys(read, AttrType.LIST_INT) if types is None else types)
    found = infer_from_function(asked, **options)
    said = [name for name in read if name in found.relation.free_names]
    is_free = types is None and said and not {*said} & {*function.value_inputs}
    if is_free and all(reads_one_number(found.relation, name) for name in said):
        with contextlib.suppress(InferenceError):
            numbers = with_values_as_attrs(function, dict.fromkeys(read, AttrType.INT))
            return infer_from_function(numbers, **options), numbers
    return found, asked


def _search(function: ShapeFunction, seed: int, call_limit: int, ask: Callable[[bytes], None]) -> Inferred:
    prototype = function.prototype
    _check_answerable(function)
    fresh = [p for p in prototype.outputs if p.name not in prototype.in_place]
    if not fresh:
        inputs = ", ".join(prototype.in_place)
        return Inferred(parse_relation(f"{inputs} -> {inputs}"), 0)
    caller = FunctionCaller(function, ask, call_limit)
    reasons: list[str] = []
    relevant = caller.relevant(random.Random(seed))
    for given in _presences(prototype, relevant):
        signature = function_signature(function, caller, given, relevant)
        for attempt in _attempts(function, signature, caller, seed):
            try:
                found = attempt()
            except InferenceError as error:
                reasons.append(str(error))
                continue
            except KernelError as error:
                raise InferenceError(str(error)) from None
            relation = _in_prototype_names(found.relation, prototype)
            relation = with_absent_inputs_given(relation, function, seed=seed + 3, ask=ask)
            reason = _objection(function, signature, relation, given, seed, ask, caller)
            if reason:
                reasons.append(reason)
                continue
            if given:
                relation = _with_absence(function, caller, signature, relation, given, relevant, seed, ask)
            dtypes = () if function.says_dtypes else ("no InferDataType function: the dtypes are the prototype's",)
            narrower = (found.narrower,) if found.narrow else ()  # otherwise of scalars, or of attrs that mean nothing
            relation = with_optional_inputs(relation, function, relevant, seed=seed + 3, ask=ask)
            unsaid = _unsaid_inputs(prototype, relation, relevant)
            unknown = (caller.unknown,) if caller.unknown_calls > caller.runs else ()
            limits = tuple(restored(limit, caller.names) for limit in (*narrower, *found.limits, *unsaid, *unknown))
            notes = tuple(restored(note, caller.names) for note in (*found.notes, *caller.notes, *dtypes))
            return replace(found, relation=relation, narrower="", notes=notes, limits=limits)
    caller.check_determinism()
    raise InferenceError(
        f"{prototype.op_type}: no shape relation explains {function.source}, which answered {caller.runs} questions; "
        "give shape=: " + "; ".join(reasons or ["it answered none"]) + "".join(f"; {note}" for note in caller.notes)
    )


def _unsaid_inputs(prototype: OpPrototype, relation: Relation, relevant: frozenset[str]) -> tuple[str, ...]:
    """Return notes on optional inputs that the function looks at and the relation does not have."""
    optional = [p.name for p in prototype.inputs if p.kind is ParameterKind.OPTIONAL and p.name in relevant]
    return tuple(
        f"the relation says nothing of {name}, of which the function does not take every shape"
        for name in optional
        if name not in relation.inputs
    )


def _with_absence(
    function: ShapeFunction,
    caller: FunctionCaller,
    signature: OperatorSignature,
    relation: Relation,
    given: frozenset[str],
    relevant: frozenset[str],
    seed: int,
    ask: Callable[[bytes], None],
) -> Relation:
    """Return a relation that demands optional inputs, joined with those of calls without one; as it is if none is found."""

    def without(name: str) -> Relation:
        asked = caller.with_values({name: None})
        rest = function_signature(function, asked, given - {name}, relevant - {name})
        for attempt in _attempts(function, rest, asked, seed):
            with contextlib.suppress(InferenceError, KernelError):
                return _in_prototype_names(attempt().relation, function.prototype)
        raise InferenceError(
            f"{function.prototype.op_type}: no shape relation explains calls without {name}; give shape="
        )

    try:
        joined = with_absence(relation, sorted(given), without)
    except InferenceError:
        return relation
    return relation if _objection(function, signature, joined, given, seed + 3, ask, caller) else joined


def _objection(
    function: ShapeFunction,
    signature: OperatorSignature,
    relation: Relation,
    given: frozenset[str],
    seed: int,
    ask: Callable[[bytes], None],
    caller: FunctionCaller,
) -> str:
    """Return what speaks against a relation that was found, on fresh inputs, or an empty text."""
    narrow = [p.name for p in function.prototype.inputs if f"{p.name} is None" in str(relation)]
    if narrow and not given:
        return f"the answers change with {', '.join(narrow)}"
    caller.check_determinism()
    checked = agreement(relation, function, 60, seed=seed + 1, ask=ask)
    # A text may allow few inputs, which draws of all texts together miss.
    named = [attr.name for attr in function.prototype.attrs if attr.type is AttrType.STRING]
    texts = [(name, value) for name in named for value in tried_texts(function)]
    of_texts = (agreement(relation, function, 20, {name: value}, seed=seed + 1, ask=ask) for name, value in texts)
    if differing := next((one.differing for one in (checked, *of_texts) if one.differing), ()):
        return f"{relation} differs on other inputs: {differing[0]}"
    clauses = {str(clause) for clause in relation.clauses}
    for attr in function.prototype.attrs:
        if attr.type is AttrType.INT and f"{attr.name} == {attr.default!r}" in clauses:
            return f"{relation} says nothing of another {attr.name}, of which the function answered no call"
    # Half of the calls are drawn from the relation, which refuses none of them.
    if len(signature.tensors) == 1 and 2 * checked.refused_by_relation > checked.compared:
        return f"{relation} refuses most of the inputs that the function answers"
    longer = input_with_more_dimensions(relation, function, seed=seed + 2, ask=ask)
    if longer:
        return f"{relation} refuses inputs that the function answers: {longer} may have more dimensions"
    own = size_of_its_own(relation, function, seed=seed + 2, ask=ask)
    if own:
        return f"{relation} refuses inputs that the function answers: {own} may have other sizes"
    needless = needless_condition(relation, function, seed=seed + 2, ask=ask)
    return f"{relation} refuses inputs that the function answers: it does not have {needless}" if needless else ""


def _attempts(
    function: ShapeFunction, signature: OperatorSignature, caller: FunctionCaller, seed: int
) -> list[Callable[[], Inferred]]:
    """Return searches: with all values of all attrs, and with each value of flags and texts apart.

    The second is the first one if such attrs decide what the inputs look like.
    """

    def search(signature: OperatorSignature, attrs: Mapping[str, Any], among: Sequence[Domain] = ()) -> Inferred:
        asked = caller.with_values(attrs) if attrs else caller
        sampler = FunctionSampler(signature, function, random.Random(seed))
        return Search(signature, asked, random.Random(seed), sampler).run(among)

    def whole() -> Inferred:
        return search(signature, {})

    def apart() -> Inferred:
        return infer_branches(signature, caller.deciding or caller.branching, search)

    def products() -> Inferred:
        return infer_products(signature, flags, search)

    if not caller.branching:
        return [whole]
    flags = {name: values for name, values in caller.deciding.items() if isinstance(values[0], bool)}
    operands = [tensor for tensor in signature.required if not tensor.is_list]
    first = [products] if flags and len(operands) == len(signature.required) >= 2 else []
    return [*first, apart, whole] if caller.deciding else [whole, apart]


def _check_answerable(function: ShapeFunction) -> None:
    """Raise InferenceError if the prototype has something that no search varies."""
    prototype = with_values_as_attrs(function, {}).prototype  # the values of tensors
    lists = [p.name for p in prototype.outputs if p.kind is ParameterKind.DYNAMIC]
    if lists and not any(p.kind is ParameterKind.DYNAMIC for p in prototype.inputs):
        raise InferenceError(
            f"{prototype.op_type}: output {lists[0]} is a list of tensors, whose length InferShape does not say. Write shape="
        )


def _presences(prototype: OpPrototype, relevant: frozenset[str]) -> list[frozenset[str]]:
    """Return the optional inputs that a search gives in every call: none, then all that change an answer."""
    optional = frozenset(p.name for p in prototype.inputs if p.kind is ParameterKind.OPTIONAL) & relevant
    return [frozenset(), optional] if optional else [optional]


def function_signature(
    function: ShapeFunction, caller: FunctionCaller, given: frozenset[str], relevant: frozenset[str]
) -> OperatorSignature:
    """Return the signature of a prototype's new outputs as inference needs it.

    Args:
        function: The function.
        caller: The caller that found which values of attrs the function takes.
        given: Optional inputs that every call has.
        relevant: Inputs and attrs that change an answer; all others are left out.
    """
    prototype = function.prototype
    tensors = tuple(
        TensorArgument(
            safe_name(p.name),
            p.kind is ParameterKind.OPTIONAL and p.name not in given,
            p.kind is ParameterKind.DYNAMIC,
        )
        for p in prototype.inputs
        if p.name in relevant
    )
    attrs = tuple(
        attr_argument(
            a, caller.texts.get(a.name, tried_texts(function)), caller.dtype_attrs.get(a.name), caller.list_length
        )
        for a in prototype.attrs
        if a.name in relevant
    )
    fresh = [p for p in prototype.outputs if p.name not in prototype.in_place]
    outputs = tuple(p.kind is ParameterKind.DYNAMIC for p in fresh)
    return OperatorSignature(prototype.op_type, tensors, attrs, outputs)


def _in_prototype_names(relation: Relation, prototype: OpPrototype) -> Relation:
    """Return a relation in the prototype's names, with the in-place outputs at their positions."""
    arguments = [*(p.name for p in prototype.inputs), *(a.name for a in prototype.attrs)]
    text = restored(str(relation), arguments)
    inputs, _, rest = text.partition(" -> ")
    outputs, where, conditions = rest.partition(" where ")
    found = parse_relation(f"{inputs} -> {outputs}{where}{conditions}")
    fresh = [p.name for p in prototype.outputs if p.name not in prototype.in_place]
    taken = {*found.inputs, *found.free_names, *_dimensions(found)}
    names = dict(zip(found.outputs, fresh, strict=True))
    clashing = {name: f"{name}_" for name in _dimensions(found) if name in fresh}
    found = found.renamed(clashing | names) if taken else found
    if not prototype.in_place:
        return found
    made = dict(zip(found.outputs, found.output_tensors, strict=True))
    written = [str(made[p.name]) if p.name in made else p.name for p in prototype.outputs]
    mentioned = [name for name in prototype.in_place if name not in found.inputs]
    inputs = ", ".join([*map(str, found.input_tensors), *mentioned])
    tail = f" where {', '.join(map(str, found.clauses))}" if found.clauses else ""
    return parse_relation(f"{inputs} -> {', '.join(written)}{tail}")


def _dimensions(relation: Relation) -> set[str]:
    from ascend_graph.shapes.syntax import bound_names

    return {name for tensor in relation.input_tensors for name in bound_names(tensor)}

"""Search for the call of a declared aclnn function: match its parameters to a prototype by name and type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ascend_graph.aclnn import AclnnFunction, AclnnParameter, Direction, ValueKind
from ascend_graph.aclnn.roles import is_reference_name
from ascend_graph.binding.calls.call import ARRAYS, NO_READER, AclnnCall, ArgumentEvidence, CallArgument, Computed, Part
from ascend_graph.binding.calls.constants import POINTERS, constant, literal
from ascend_graph.binding.calls.targets import TENSORS, CallTarget, can_be, differ_in_header_endings, stem_of
from ascend_graph.binding.errors import BindingError, columns
from ascend_graph.binding.matching import either_reading, only_pairs, only_readings
from ascend_graph.binding.synonyms import (
    FIRST_TENSOR_NAMES,
    are_synonyms,
    likely_same,
    normalize,
)
from ascend_graph.prototypes import Attr, OpPrototype, ParameterKind
from ascend_graph.prototypes.writer import reg_op_calls

#: The value of ``aclnn_arguments=`` for an input or attr that the function has nothing for, whatever its value.
SHAPE_ONLY = "shape only"


def bind_call(
    prototype: OpPrototype, function: AclnnFunction, arguments: Mapping[str, Any] | None = None, *, schema: str = ""
) -> AclnnCall:
    """Return the call of a declared function for an operator.

    Args:
        prototype: The operator.
        function: The function.
        arguments: The pairs that names do not settle.

            - ``"parameter": "name"`` names the input, attr or output of a parameter;
            - ``"parameter": value`` fixes it; None is null;
            - ``"parameter": function``: each call computes it from all arguments, a mapping by the schema's names;
            - ``"parameter": ("name", hook)`` converts an input or attr, with a function or a table of allowed values;
            - ``"attr": None``: the function has nothing for the attr or the optional input, which then has to stay at its
              default;
            - ``"name": "shape only"``: the function has nothing for the input or attr, whatever its value.
        schema: The torch schema that the prototype was made from, if any: its author marks with ``Tensor(a!)`` the
            tensors that the caller passes in, outputs of the function included.

    Raises:
        BindingError: Something is left over, does not fit or is ambiguous; the message shows both sides, and the line
            to write.

    >>> from ascend_graph.aclnn import parse_text
    >>> from ascend_graph.prototypes import parse_text as parse_prototypes
    >>> prototype = parse_prototypes('''REG_OP(Add).INPUT(x1, TensorType::ALL()).INPUT(x2, TensorType::ALL())
    ...     .OUTPUT(y, TensorType::ALL()).OP_END_FACTORY_REG(Add)''').prototypes[0]
    >>> function = parse_text('''int aclnnAddGetWorkspaceSize(const aclTensor *self, const aclTensor *other,
    ...     const aclScalar *alpha, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);''').functions[0]
    >>> call = bind_call(prototype, function, {"self": "x1", "other": "x2", "alpha": 1})
    >>> [(a.name, a.part.value, a.evidence.value) for a in call.arguments][2:]
    [('alpha', 'constant', 'aclnn_arguments='), ('out', 'output', 'the only output left on both sides')]
    """
    return _Matcher(prototype, function, dict(arguments or {}), schema).call()


class _Matcher:
    """State of one search; decisions are never revised."""

    def __init__(self, prototype: OpPrototype, function: AclnnFunction, explicit: dict[str, Any], schema: str) -> None:
        self.prototype, self.function, self.explicit, self.schema = prototype, function, explicit, schema
        self.targets = [
            *(CallTarget(Part.INPUT, n, p, p.name in prototype.in_place) for n, p in enumerate(prototype.inputs)),
            *(CallTarget(Part.ATTR, n, a) for n, a in enumerate(prototype.attrs)),
            *(
                CallTarget(Part.OUTPUT, n, p)
                for n, p in enumerate(prototype.outputs)
                if p.name not in prototype.in_place
            ),
        ]
        #: True if the header marks written tensors by a missing const; generated headers have const everywhere.
        self.tells = any(
            parameter.value in TENSORS and not parameter.type.const and parameter.direction is not Direction.INOUT
            for parameter in function.parameters
        )
        self.found: dict[int, CallArgument] = {}
        self.unused: list[str] = []
        self.dropped: list[str] = []

    def call(self) -> AclnnCall:
        self.take_explicit()
        self.match(lambda p, t: p.name == t.name, ArgumentEvidence.SAME_NAME)
        self.match_alike(lambda a, b: normalize(a) == normalize(b), ArgumentEvidence.NORMALIZED)
        self.match_alike(differ_in_header_endings, ArgumentEvidence.SUFFIX)
        self.match(
            lambda p, t: t.part is not Part.OUTPUT and are_synonyms(stem_of(p.name), t.name), ArgumentEvidence.SYNONYM
        )
        self.match_only_output()
        self.match_pair()
        self.match_first_tensor()
        self.fill_absent()
        self.check_complete()
        arguments = tuple(self.found[n] for n in range(len(self.function.parameters)))
        return AclnnCall(
            self.function.name,
            arguments,
            self.function,
            tuple(self.unused),
            tuple(self.dropped),
            f"declared at {self.function.place}",
        )

    @property
    def open(self) -> list[int]:
        return [n for n in range(len(self.function.parameters)) if n not in self.found]

    @property
    def free(self) -> list[CallTarget]:
        return [target for target in self.targets if not target.taken]

    def agrees(self, target: CallTarget, parameter: AclnnParameter) -> bool:
        """Return whether the parameter's type and direction agree with a part of the prototype."""
        if not can_be(parameter, target):
            return False
        if parameter.value not in TENSORS:
            return True
        own = (parameter.name, parameter.name.removesuffix("Optional"))
        if target.name in own and is_reference_name(target.name):
            return True  # the ending is the prototype's own and says nothing of writing
        if is_reference_name(parameter.name) or parameter.direction is Direction.INOUT:
            return target.in_place
        if self.schema and target.in_place and parameter.direction is Direction.OUT:
            return True
        if target.part is Part.OUTPUT:
            return parameter.direction is Direction.OUT or not self.tells
        return parameter.direction is Direction.IN or (not self.tells and parameter.type.const)

    def decide(self, position: int, target: CallTarget, evidence: ArgumentEvidence) -> None:
        parameter = self.function.parameters[position]
        self.found[position] = CallArgument(
            parameter.name, parameter.type, target.part, target.index, evidence=evidence
        )
        target.taken = True

    def fix(self, position: int, value: Any, evidence: ArgumentEvidence) -> None:
        parameter = self.function.parameters[position]
        self.found[position] = CallArgument(parameter.name, parameter.type, Part.CONSTANT, -1, value, evidence)

    # ------------------------------------------------------------------------------------------------- aclnn_arguments=

    def take_explicit(self) -> None:
        by_name = {parameter.name: n for n, parameter in enumerate(self.function.parameters)}
        targets = {target.name for target in self.targets}
        for key, wanted in self.explicit.items():
            if key in by_name:
                self.take_parameter(by_name[key], wanted)
            elif key in targets and wanted is None:
                self.leave_out(key)
            elif key in targets and wanted == SHAPE_ONLY:
                self.drop(key)
            else:
                raise self.refuse(
                    f"aclnn_arguments= mentions {key!r}, which is not a parameter of {self.function.name}; "
                    f"expected one of: {', '.join(by_name) or 'none'}"
                )

    def take_parameter(self, position: int, wanted: Any) -> None:
        parameter = self.function.parameters[position]
        if self.take_computed(position, wanted):
            return None
        named = [target for target in self.targets if target.name == wanted] if isinstance(wanted, str) else []
        if named:
            # A name may be an input's and an attr's at once: the type decides.
            target = next((target for target in named if can_be(parameter, target)), None)
            if target is None:
                raise self.refuse(f"{parameter} cannot be the {named[0].described}: the types must agree")
            if target.taken:
                raise self.refuse(f"aclnn_arguments= gives {target.name} twice; leave one of them out")
            return self.decide(position, target, ArgumentEvidence.EXPLICIT)
        try:
            value = constant(parameter, wanted)
        except ValueError as error:
            names = ", ".join(target.name for target in self.targets)
            raise self.refuse(
                f"aclnn_arguments={{{parameter.name!r}: {wanted!r}}}: {error}; expected a parameter of "
                f"{self.prototype.op_type}, "
                f"{names or 'no parameters'}"
            ) from None
        return self.fix(position, value, ArgumentEvidence.EXPLICIT)

    def take_computed(self, position: int, wanted: Any) -> bool:
        """Take a value that a function or a table computes; return whether it is one."""
        parameter = self.function.parameters[position]
        match wanted:
            case (str() as name, hook) if callable(hook) or isinstance(hook, Mapping):
                target = next((t for t in self.targets if t.name == name and t.part is not Part.OUTPUT), None)
                if target is None:
                    known = ", ".join(t.name for t in self.targets if t.part is not Part.OUTPUT)
                    raise self.refuse(
                        f"aclnn_arguments={{{parameter.name!r}: ({name!r}, …)}}: {name!r} is not an input or attr; expected one "
                        f"of {known}"
                    )
                target.taken = True
                value = Computed(hook, name)
            case _ if callable(wanted):
                value = Computed(wanted)
            case _:
                return False
        self.found[position] = computed_argument(parameter, value)
        return True

    def drop(self, name: str) -> None:
        target = next(target for target in self.targets if target.name == name)
        if target.part is Part.OUTPUT or target.in_place:
            raise self.refuse(
                f"aclnn_arguments={{{name!r}: 'shape only'}}: the {target.described} is written by the call: leave it "
                "out"
            )
        target.taken = True
        self.dropped.append(name)

    def leave_out(self, name: str) -> None:
        target = next(target for target in self.targets if target.name == name)
        if not self.may_be_left_out(target):
            raise self.refuse(
                f"aclnn_arguments={{{name!r}: None}}: the {target.described} has no default to stay at; give a value",
                {name: "'shape only'"} if target.part is not Part.OUTPUT and not target.in_place else None,
            )
        target.taken = True
        self.unused.append(name)

    # ---------------------------------------------------------------------------------------------------------- rounds

    def match(self, same: Callable[[AclnnParameter, CallTarget], bool], evidence: ArgumentEvidence) -> None:
        free, possible = self.free, {}
        for position in self.open:
            parameter = self.function.parameters[position]
            possible[position] = [t for t in free if same(parameter, t) and self.agrees(t, parameter)]
        for position, target in only_pairs(possible):
            self.decide(position, target, evidence)

    def match_alike(self, alike: Callable[[str, str], bool], evidence: ArgumentEvidence) -> None:
        """Pair names that differ only in case or an ending, if the pair is unambiguous.

        Raises:
            BindingError: Several readings are possible, and one of them is still free.
        """
        parameters = self.function.parameters
        settled = {n for n, found in self.found.items() if found.evidence is ArgumentEvidence.EXPLICIT}
        said = {(self.found[n].part, self.found[n].index) for n in settled}

        def reads(position: int, target: CallTarget) -> bool:
            parameter = parameters[position]
            return alike(parameter.name, target.name) and self.agrees(target, parameter)

        positions = [n for n in range(len(parameters)) if n not in settled]
        gone = {*self.unused, *self.dropped}
        gone |= {f.value.argument or "" for f in self.found.values() if isinstance(f.value, Computed)}
        targets = [t for t in self.targets if (t.part, t.index) not in said and t.name not in gone]
        pairs, doubtful = only_readings(positions, targets, reads, self.open, lambda target: not target.taken)
        if doubtful:
            named = [(parameters[n].name, [target.name for target in found]) for n, found in doubtful.items()]
            raise self.refuse(either_reading(named), dict.fromkeys((name for name, _ in named), "…"))
        for position, target in pairs:
            self.decide(position, target, evidence)

    def match_only_output(self) -> None:
        """Pair the only output left on both sides, whatever their names."""
        targets = [target for target in self.free if target.part is Part.OUTPUT]
        positions = [n for n in self.open if self.function.parameters[n].direction is Direction.OUT]
        if len(targets) != 1 or len(positions) != 1:
            return
        parameter = self.function.parameters[positions[0]]
        named = any(
            target.part is not Part.OUTPUT and stem_of(target.name) == stem_of(parameter.name)
            for target in self.targets
        )
        if self.agrees(targets[0], parameter) and not named:
            self.decide(positions[0], targets[0], ArgumentEvidence.ONLY_OUTPUT)

    def inputs_left(self) -> tuple[list[CallTarget], list[int]]:
        """Return the inputs that are left, and the parameters that may be inputs."""
        may_be = (*ARRAYS, *TENSORS)
        positions = [
            n
            for n in self.open
            if self.function.parameters[n].direction is not Direction.OUT
            and self.function.parameters[n].value in may_be
        ]
        return [target for target in self.free if target.part is Part.INPUT], positions

    def match_pair(self) -> None:
        """Pair ``self`` and ``other`` of a function with ``x1`` and ``x2``, if these are all inputs left."""
        targets, positions = self.inputs_left()
        parameters = [self.function.parameters[n] for n in positions]
        if [p.name for p in parameters] != ["self", "other"] or [t.name for t in targets] != ["x1", "x2"]:
            return
        if all(self.agrees(target, p) for target, p in zip(targets, parameters, strict=True)):
            for position, target in zip(positions, targets, strict=True):
                self.decide(position, target, ArgumentEvidence.SYNONYM)

    def match_first_tensor(self) -> None:
        """Pair ``self`` of the function with the first input, if both come first and are the only inputs left."""
        targets, positions = self.inputs_left()
        if len(targets) != 1 or len(positions) != 1 or targets[0].index != 0 or positions[0] != 0:
            return
        parameter = self.function.parameters[0]
        if stem_of(parameter.name) in FIRST_TENSOR_NAMES and self.agrees(targets[0], parameter):
            self.decide(0, targets[0], ArgumentEvidence.FIRST_TENSOR)

    def fill_absent(self) -> None:
        """Fill parameters that match nothing left: the header's default, or null for an optional pointer."""
        for position in self.open:
            parameter = self.function.parameters[position]
            if any(can_be(parameter, target) for target in self.free):
                continue
            if parameter.default:
                try:
                    value = constant(parameter, literal(parameter.default))
                except ValueError:
                    continue
                self.fix(position, value, ArgumentEvidence.HEADER_DEFAULT)
            elif parameter.optional and parameter.value in POINTERS and parameter.direction is Direction.IN:
                self.fix(position, None, ArgumentEvidence.ABSENT)

    # ------------------------------------------------------------------------------------------------------- leftovers

    def check_complete(self) -> None:
        positions, targets = self.open, self.free
        if not (positions or targets):
            return
        problems = []
        for n in positions:
            parameter = self.function.parameters[n]
            same = next((t for t in targets if stem_of(t.name) == stem_of(parameter.name)), None)
            if parameter.value is ValueKind.HOST_OUTPUT and parameter.type.pointers > 1:
                problems.append(f"{parameter} {NO_READER}")
            elif parameter.value is ValueKind.OTHER:
                problems.append(f"{parameter} has a type that no call is made with here")
            elif same is not None:
                problems.append(f"{parameter} cannot be the {same.described}")
            else:
                problems.append(f"nothing says what {parameter} is")
        problems += [
            f"nothing takes the {target.described}"
            for target in targets
            if all(stem_of(target.name) != stem_of(self.function.parameters[n].name) for n in positions)
        ]
        lines = self.proposal(positions, targets)
        raise self.refuse("; ".join(problems), lines)

    def proposal(self, positions: Iterable[int], targets: Sequence[CallTarget]) -> dict[str, str]:
        """Return the lines to write: pairs of likely the same meaning and matching types, "…" for others."""
        lines = dict.fromkeys((self.function.parameters[n].name for n in positions), "…")
        left = list(targets)
        near = {
            n: [
                t
                for t in left
                if self.agrees(t, p) and (likely_same(p.name, t.name) or stem_of(p.name) == stem_of(t.name))
            ]
            for n, p in ((n, self.function.parameters[n]) for n in positions)
        }
        for n, target in only_pairs(near):
            lines[self.function.parameters[n].name] = repr(target.name)
            left.remove(target)
        for target in left:
            parameters = [self.function.parameters[n] for n in positions]
            if any(can_be(parameter, target) for parameter in parameters):
                continue
            if self.may_be_left_out(target):
                lines[target.name] = "None"
            elif target.part is not Part.OUTPUT and not target.in_place:
                lines[target.name] = "'shape only'"
        return lines

    @staticmethod
    def may_be_left_out(target: CallTarget) -> bool:
        """Return whether a call can leave it at a default."""
        if isinstance(target.declared, Attr):
            return not target.declared.required and target.declared.default_known
        return target.part is Part.INPUT and target.declared.kind is ParameterKind.OPTIONAL

    def refuse(self, message: str, lines: Mapping[str, str] | None = None) -> BindingError:
        subject = self.schema.partition("(")[0] or self.prototype.op_type
        text = f"{subject} ↔ {self.function.name}: {message}\n{side_by_side(self.left(), self.function)}"
        if lines:
            merged = {key: _written(value) for key, value in self.explicit.items()} | dict(lines)
            text += f"\nWrite: aclnn_arguments={{{', '.join(f'{key!r}: {value}' for key, value in merged.items())}}}"
            text += "" if self.schema else ', or name another function: aclnn="aclnn…"'
        return BindingError(text)

    def left(self) -> list[str]:
        """Return the side that is bound to the function, as lines of text."""
        if not self.schema:
            return [f"REG_OP({self.prototype.op_type})", *(f"  {call}" for call in reg_op_calls(self.prototype))]
        head, _, tail = self.schema.partition("(")
        inside, _, returns = tail.rpartition("->")
        items = [item.strip() for item in inside.rstrip(" )").split(", ")]
        return [f"{head}(", *(f"  {item}" for item in items), f") -> {returns.strip()}"]


def computed_argument(parameter: AclnnParameter, value: Computed) -> CallArgument:
    """Return the argument of a parameter whose value each call computes.

    Raises:
        BindingError: The parameter has a type that no value is made for.
    """
    if parameter.value in (ValueKind.OTHER, ValueKind.HOST_OUTPUT) or parameter.direction is not Direction.IN:
        raise BindingError(
            f"aclnn_arguments={{{parameter.name!r}: …}}: {parameter} cannot be computed; expected a parameter that the function reads"
        )
    return CallArgument(parameter.name, parameter.type, Part.COMPUTED, -1, value, evidence=ArgumentEvidence.EXPLICIT)


def _written(value: Any) -> str:
    match value:
        case (str() as name, hook) if not isinstance(hook, str | int | float):
            return f"({name!r}, …)"
        case _ if callable(value):
            return "…"
    return repr(value)


def side_by_side(left: Sequence[str], function: AclnnFunction) -> str:
    """Return both sides as lines of text, the function on the right."""
    left = [line if len(line) <= 70 else line[:69] + "…" for line in left]
    parameters = (f"  {p}  // {p.direction.value}" for p in function.parameters)
    return columns(left, [f"{function.name}(  // {function.place}", *parameters, ")"])

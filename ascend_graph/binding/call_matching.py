"""The search for the call of a declared aclnn function: its parameters matched with a prototype by name and type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_graph.aclnn import AclnnFunction, AclnnParameter, Direction, Value
from ascend_graph.aclnn.roles import is_output_name, is_reference_name
from ascend_graph.binding.call import ARRAYS, NO_READER, NUMBERS, Call, CallArgument, Evidence, Part
from ascend_graph.binding.constants import POINTERS, constant, literal
from ascend_graph.binding.errors import BindingError, columns
from ascend_graph.binding.matching import only_pairs
from ascend_graph.binding.synonyms import FIRST_TENSOR_NAMES, are_synonyms, likely_same, normalize
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.writer import reg_op_calls

_ATTR_VALUES: Mapping[AttrType, tuple[Value, ...]] = {
    AttrType.INT: (Value.INT, Value.DTYPE, Value.SCALAR),
    AttrType.FLOAT: (Value.FLOAT, Value.SCALAR),
    AttrType.BOOL: (Value.BOOL, Value.SCALAR),
    AttrType.STRING: (Value.STRING,),
    AttrType.TYPE: (Value.DTYPE, Value.INT),
    AttrType.LIST_INT: (Value.INTS, Value.SCALAR_LIST),
    AttrType.LIST_FLOAT: (Value.FLOATS, Value.SCALAR_LIST),
    AttrType.LIST_BOOL: (Value.BOOLS, Value.SCALAR_LIST),
    AttrType.LIST_TYPE: (Value.INTS,),
}
_TENSORS = (Value.TENSOR, Value.TENSOR_LIST)


def bind_call(
    prototype: OpPrototype, function: AclnnFunction, arguments: Mapping[str, Any] | None = None, *, schema: str = ""
) -> Call:
    """The call of a declared function for an operator.

    Args:
        prototype: The operator.
        function: The function.
        arguments: What names do not settle.

            - ``"parameter": "name"`` says which input, attr or output a parameter is;
            - ``"parameter": value`` fixes it; None is null;
            - ``"attr": None``: the function has nothing for the attr or the optional input, which then has to stay at its
              default.
        schema: The torch schema that the prototype was made from, if it was: the author says by ``Tensor(a!)`` what the caller
            passes in, outputs of the function too.

    Raises:
        BindingError: Something is left over, does not fit or is ambiguous; the message shows both sides and the line to write.

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


@dataclass(slots=True, eq=False)
class _Target:
    """One input, attr or output that the function has to take."""

    part: Part
    index: int
    declared: Parameter | Attr
    in_place: bool = False
    taken: bool = False

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def described(self) -> str:
        if isinstance(self.declared, Attr):
            return f"attr {self.declared.type.value} {self.name}"
        return f"{self.part.value} {self.name}{' (written in place)' if self.in_place else ''}"

    def takes(self, value: Value) -> bool:
        """Whether the types agree."""
        if isinstance(self.declared, Attr):
            return value in _ATTR_VALUES.get(self.declared.type, ())
        if self.declared.kind is ParameterKind.DYNAMIC:
            return value is Value.TENSOR_LIST
        if value is Value.TENSOR:
            return True
        if self.part is Part.OUTPUT:
            return value is Value.HOST_OUTPUT
        return value in NUMBERS and not self.in_place and NUMBERS[value].issuperset(self.declared.dtypes)


class _Matcher:
    """The state of one search; what is decided is never taken back."""

    def __init__(self, prototype: OpPrototype, function: AclnnFunction, explicit: dict[str, Any], schema: str) -> None:
        self.prototype, self.function, self.explicit, self.schema = prototype, function, explicit, schema
        self.targets = [
            *(_Target(Part.INPUT, n, p, p.name in prototype.in_place) for n, p in enumerate(prototype.inputs)),
            *(_Target(Part.ATTR, n, a) for n, a in enumerate(prototype.attrs)),
            *(_Target(Part.OUTPUT, n, p) for n, p in enumerate(prototype.outputs) if p.name not in prototype.in_place),
        ]
        #: Whether the header tells by const which tensors are written; generated ones have const everywhere.
        self.tells = any(
            parameter.value in _TENSORS and not parameter.type.const and parameter.direction is not Direction.INOUT
            for parameter in function.parameters
        )
        self.found: dict[int, CallArgument] = {}
        self.unused: list[str] = []

    def call(self) -> Call:
        self.take_explicit()
        self.match(lambda p, t: p.name == t.name, Evidence.SAME_NAME)
        self.match(lambda p, t: normalize(p.name) == normalize(t.name), Evidence.NORMALIZED)
        self.match(lambda p, t: _stem(p.name) == normalize(t.name), Evidence.SUFFIX)
        self.match(lambda p, t: _stem(p.name) == _stem(t.name), Evidence.SUFFIX)
        self.match(lambda p, t: t.part is not Part.OUTPUT and are_synonyms(_stem(p.name), t.name), Evidence.SYNONYM)
        self.match_only_output()
        self.match_pair()
        self.match_first_tensor()
        self.fill_absent()
        self.check_complete()
        arguments = tuple(self.found[n] for n in range(len(self.function.parameters)))
        return Call(
            self.function.name, arguments, self.function, tuple(self.unused), f"declared at {self.function.place}"
        )

    @property
    def open(self) -> list[int]:
        return [n for n in range(len(self.function.parameters)) if n not in self.found]

    @property
    def free(self) -> list[_Target]:
        return [target for target in self.targets if not target.taken]

    def agrees(self, target: _Target, parameter: AclnnParameter) -> bool:
        """Whether the parameter's type, and what the header says of reading and writing, agree with a part of the prototype."""
        if not _can_be(parameter, target):
            return False
        if parameter.value not in _TENSORS:
            return True
        if is_reference_name(parameter.name) or parameter.direction is Direction.INOUT:
            return target.in_place
        if self.schema and target.in_place and parameter.direction is Direction.OUT:
            return True
        if target.part is Part.OUTPUT:
            return parameter.direction is Direction.OUT or not self.tells
        return parameter.direction is Direction.IN or (not self.tells and parameter.type.const)

    def decide(self, position: int, target: _Target, evidence: Evidence) -> None:
        parameter = self.function.parameters[position]
        self.found[position] = CallArgument(
            parameter.name, parameter.type, target.part, target.index, evidence=evidence
        )
        target.taken = True

    def fix(self, position: int, value: Any, evidence: Evidence) -> None:
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
            else:
                raise self.refuse(
                    f"aclnn_arguments= mentions {key!r}, which is no parameter of {self.function.name}: these are "
                    f"{', '.join(by_name) or 'none'}"
                )

    def take_parameter(self, position: int, wanted: Any) -> None:
        parameter = self.function.parameters[position]
        named = [target for target in self.targets if target.name == wanted] if isinstance(wanted, str) else []
        if named:
            # A name may be an input's and an attr's at once: the type decides.
            target = next((target for target in named if _can_be(parameter, target)), None)
            if target is None:
                raise self.refuse(f"{parameter} cannot be the {named[0].described}: the types do not agree")
            if target.taken:
                raise self.refuse(f"aclnn_arguments= gives {target.name} twice")
            return self.decide(position, target, Evidence.EXPLICIT)
        try:
            value = constant(parameter, wanted)
        except ValueError as error:
            names = ", ".join(target.name for target in self.targets)
            raise self.refuse(
                f"aclnn_arguments={{{parameter.name!r}: {wanted!r}}}: {error}, and {self.prototype.op_type} has "
                f"{names or 'no parameters'}"
            ) from None
        return self.fix(position, value, Evidence.EXPLICIT)

    def leave_out(self, name: str) -> None:
        target = next(target for target in self.targets if target.name == name)
        if not self.may_be_left_out(target):
            raise self.refuse(f"aclnn_arguments={{{name!r}: None}}: the {target.described} has no default to stay at")
        target.taken = True
        self.unused.append(name)

    # ---------------------------------------------------------------------------------------------------------- rounds

    def match(self, same: Callable[[AclnnParameter, _Target], bool], evidence: Evidence) -> None:
        free, possible = self.free, {}
        for position in self.open:
            parameter = self.function.parameters[position]
            possible[position] = [t for t in free if same(parameter, t) and self.agrees(t, parameter)]
        for position, target in only_pairs(possible):
            self.decide(position, target, evidence)

    def match_only_output(self) -> None:
        """The one output that is left on both sides, whatever the two call it."""
        targets = [target for target in self.free if target.part is Part.OUTPUT]
        positions = [n for n in self.open if self.function.parameters[n].direction is Direction.OUT]
        if len(targets) != 1 or len(positions) != 1:
            return
        parameter = self.function.parameters[positions[0]]
        named = any(
            target.part is not Part.OUTPUT and _stem(target.name) == _stem(parameter.name) for target in self.targets
        )
        if self.agrees(targets[0], parameter) and not named:
            self.decide(positions[0], targets[0], Evidence.ONLY_OUTPUT)

    def inputs_left(self) -> tuple[list[_Target], list[int]]:
        """The inputs that are left, and the parameters that may be some."""
        may_be = (*ARRAYS, *_TENSORS)
        positions = [
            n
            for n in self.open
            if self.function.parameters[n].direction is not Direction.OUT
            and self.function.parameters[n].value in may_be
        ]
        return [target for target in self.free if target.part is Part.INPUT], positions

    def match_pair(self) -> None:
        """``self`` and ``other`` of a function are ``x1`` and ``x2``, where these are all inputs that are left."""
        targets, positions = self.inputs_left()
        parameters = [self.function.parameters[n] for n in positions]
        if [p.name for p in parameters] != ["self", "other"] or [t.name for t in targets] != ["x1", "x2"]:
            return
        if all(self.agrees(target, p) for target, p in zip(targets, parameters, strict=True)):
            for position, target in zip(positions, targets, strict=True):
                self.decide(position, target, Evidence.SYNONYM)

    def match_first_tensor(self) -> None:
        """``self`` of the function is the first input, if both come first and are all that is left of inputs."""
        targets, positions = self.inputs_left()
        if len(targets) != 1 or len(positions) != 1 or targets[0].index != 0 or positions[0] != 0:
            return
        parameter = self.function.parameters[0]
        if _stem(parameter.name) in FIRST_TENSOR_NAMES and self.agrees(targets[0], parameter):
            self.decide(0, targets[0], Evidence.FIRST_TENSOR)

    def fill_absent(self) -> None:
        """What may be null stays null where nothing that is left could be meant; the header's defaults are taken."""
        for position in self.open:
            parameter = self.function.parameters[position]
            if any(_can_be(parameter, target) for target in self.free):
                continue
            if parameter.default:
                try:
                    value = constant(parameter, literal(parameter.default))
                except ValueError:
                    continue
                self.fix(position, value, Evidence.HEADER_DEFAULT)
            elif parameter.optional and parameter.value in POINTERS and parameter.direction is Direction.IN:
                self.fix(position, None, Evidence.ABSENT)

    # ------------------------------------------------------------------------------------------------------- leftovers

    def check_complete(self) -> None:
        positions, targets = self.open, self.free
        if not (positions or targets):
            return
        problems = []
        for n in positions:
            parameter = self.function.parameters[n]
            same = next((t for t in targets if _stem(t.name) == _stem(parameter.name)), None)
            if parameter.value is Value.HOST_OUTPUT and parameter.type.pointers > 1:
                problems.append(f"{parameter} {NO_READER}")
            elif parameter.value is Value.OTHER:
                problems.append(f"{parameter} has a type that no call is made with here")
            elif same is not None:
                problems.append(f"{parameter} cannot be the {same.described}")
            else:
                problems.append(f"nothing says what {parameter} is")
        problems += [
            f"nothing takes the {target.described}"
            for target in targets
            if all(_stem(target.name) != _stem(self.function.parameters[n].name) for n in positions)
        ]
        lines = self.proposal(positions, targets)
        raise self.refuse("; ".join(problems), lines)

    def proposal(self, positions: Iterable[int], targets: Sequence[_Target]) -> dict[str, str]:
        """What to write; pairs only where names most likely mean the same and types agree, "…" for what cannot be told."""
        lines = dict.fromkeys((self.function.parameters[n].name for n in positions), "…")
        left = list(targets)
        near = {
            n: [
                t for t in left if self.agrees(t, p) and (likely_same(p.name, t.name) or _stem(p.name) == _stem(t.name))
            ]
            for n, p in ((n, self.function.parameters[n]) for n in positions)
        }
        for n, target in only_pairs(near):
            lines[self.function.parameters[n].name] = repr(target.name)
            left.remove(target)
        for target in left:
            parameters = [self.function.parameters[n] for n in positions]
            if self.may_be_left_out(target) and not any(_can_be(parameter, target) for parameter in parameters):
                lines[target.name] = "None"
        return lines

    @staticmethod
    def may_be_left_out(target: _Target) -> bool:
        """Whether there is a default that a call can stay at."""
        if isinstance(target.declared, Attr):
            return not target.declared.required and target.declared.default_known
        return target.part is Part.INPUT and target.declared.kind is ParameterKind.OPTIONAL

    def refuse(self, message: str, lines: Mapping[str, str] | None = None) -> BindingError:
        subject = self.schema.partition("(")[0] or self.prototype.op_type
        text = f"{subject} ↔ {self.function.name}: {message}\n{side_by_side(self.left(), self.function)}"
        if lines:
            merged = {key: repr(value) for key, value in self.explicit.items()} | dict(lines)
            text += f"\nWrite: aclnn_arguments={{{', '.join(f'{key!r}: {value}' for key, value in merged.items())}}}"
            text += "" if self.schema else ', or name another function: aclnn="aclnn…"'
        return BindingError(text)

    def left(self) -> list[str]:
        """What is bound to the function, as lines of text."""
        if not self.schema:
            return [f"REG_OP({self.prototype.op_type})", *(f"  {call}" for call in reg_op_calls(self.prototype))]
        head, _, tail = self.schema.partition("(")
        inside, _, returns = tail.rpartition("->")
        items = [item.strip() for item in inside.rstrip(" )").split(", ")]
        return [f"{head}(", *(f"  {item}" for item in items), f") -> {returns.strip()}"]


def side_by_side(left: Sequence[str], function: AclnnFunction) -> str:
    """Both sides, the function on the right, as lines of text."""
    left = [line if len(line) <= 70 else line[:69] + "…" for line in left]
    parameters = (f"  {p}  // {p.direction.value}" for p in function.parameters)
    return columns(left, [f"{function.name}(  // {function.place}", *parameters, ")"])


def _stem(name: str) -> str:
    """A name without case, underscores, and the endings that aclnn functions give.

    >>> [_stem(name) for name in ("biasOptional", "cacheRefOptional", "yOut", "out", "layout", "cout")]
    ['bias', 'cache', 'y', 'out', 'layout', 'cout']
    """
    if is_output_name(name) and len(name) > 3:
        name = name[: max(name.rfind("Out"), name.rfind("_out"))]
    stem = normalize(name)
    for suffix in ("optional", "ref", "optional"):
        if len(stem) > len(suffix):
            stem = stem.removesuffix(suffix)
    return stem


def _can_be(parameter: AclnnParameter, target: _Target) -> bool:
    """Whether a parameter can be made from a part of the prototype, whatever the names say."""
    if not target.takes(parameter.value) or (parameter.value is Value.HOST_OUTPUT and parameter.type.pointers != 1):
        return False
    return target.part is not Part.OUTPUT or parameter.direction is not Direction.INOUT

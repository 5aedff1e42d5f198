"""Values that reach aclnn functions with other C types than these take: calls through a pointer that has the caller's types.

``EXEC_NPU_CMD`` and macros like it look a function up by its name, and call it with the types of what they are given. No compiler
compares these with the function's declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ascend_graph.aclnn import CType, ValueKind
from ascend_graph.adoption.cann_functions import cann_functions
from ascend_graph.adoption.cpp.functions import CppFunction, close_of, split
from ascend_graph.adoption.cpp.value_types import declared_types, type_name, value_type
from ascend_graph.adoption.ge_binding import NoBindingError
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings, SourcePlace
from ascend_graph.binding.calls.call import msopgen_call
from ascend_graph.binding.errors import BindingError
from ascend_graph.sources import Severity

#: Macros of torch_npu.
_TORCH_NPU = re.compile(r"EXEC_NPU_(?:NO_FORMAT_CHECK_)?CMD(?:_SYNC)?")
#: Conversion of all arguments in the body of a macro: its name with one letter less is that of the conversion of one.
_CONVERSION = re.compile(r"\b(\w+?)s\s*\(\s*__VA_ARGS__\s*,\s*\w")
_POINTER = re.compile(r"\bacl(?:Tensor|Scalar)(?:List)?\b|\bacl(?:Int|Bool|Float)Array\b")
#: What torch_npu makes of PyTorch's types; all others are passed as they are.
_CONVERTED = {
    "Tensor": "aclTensor", "optional<Tensor>": "aclTensor", "Scalar": "aclScalar", "optional<Scalar>": "aclScalar",
    "IntArrayRef": "aclIntArray", "OptionalIntArrayRef": "aclIntArray", "ArrayRef<bool>": "aclBoolArray",
    "TensorList": "aclTensorList", "ArrayRef<Scalar>": "aclScalarList",
}  # fmt: skip
#: Classes of C++ that nothing of CANN takes, and what to pass instead.
_CLASSES = {
    "string": "char *{0}_value = const_cast<char *>({1}.c_str())",
    "vector<int64_t>": "at::IntArrayRef {0}_value({1})",
    "vector<Tensor>": "at::TensorList {0}_value({1})",
    **{f"optional<{one}>": f"{one} {{0}}_value = {{1}}.value_or(…)" for one in ("double", "float", "int64_t")},
}
_NUMBERS = (
    "double",
    "float",
    "bool",
    "int",
    "long",
    "long long",
    "int64_t",
    "int32_t",
    "uint64_t",
    "uint32_t",
    "size_t",
)
_OBJECTS = {
    **{"aclTensor": "at::Tensor", "aclTensorList": "at::TensorList", "aclIntArray": "at::IntArrayRef"},
    **{"aclScalar": "at::Scalar", "aclScalarList": "at::ArrayRef<at::Scalar>", "aclBoolArray": "at::ArrayRef<bool>"},
}
#: Types of the letters in the list of CANN's functions; tensors, lists and what stands for them are not told apart.
_CANN_TYPES = {
    **{"d": CType("double"), "f": CType("float"), "l": CType("int64_t"), "i": CType("int32_t"), "n": CType("int8_t")},
    **{"b": CType("bool"), "c": CType("char", 1), "S": CType("aclScalar", 1), "L": CType("aclScalarList", 1)},
    **{"I": CType("aclIntArray", 1), "F": CType("aclFloatArray", 1), "B": CType("aclBoolArray", 1)},
}


#: An argument as written, its type, and the parameter that it stands for with the type of that.
_Pair = tuple[str, str, str, CType]


@dataclass(frozen=True, slots=True)
class _Signature:
    """Parameters of an aclnn function without the workspace's and the executor's, and where they are stated."""

    name: str
    parameters: tuple[tuple[str, CType], ...]
    place: str
    #: True for a function of CANN, which may have other parameters in the version that a repository is written for.
    is_cann: bool = False


#: A macro with the function that it calls, up to the bracket.
_CALLED = re.compile(r"\b(?P<macro>[A-Z]\w+)\s*\((?=\s*(?P<function>aclnn[A-Z0-9]\w*)\s*,)")


def called_functions(findings: Findings) -> frozenset[str]:
    """Return the aclnn functions that macros call."""
    return frozenset(match["function"] for one in _callers(findings) for match in _CALLED.finditer(one.body))


def check_passed_types(findings: Findings, known: Known) -> None:
    """Report the calls whose values have other types than the aclnn function takes, where both are certain."""
    macros = _macros(findings)
    converted = _conversions(findings, macros)
    reported: set[tuple[SourcePlace, str]] = set()
    for function in _callers(findings):
        for match in _CALLED.finditer(function.body):
            macro, name = match["macro"], match["function"]
            if macro not in macros and (macro in findings.macros or not _TORCH_NPU.fullmatch(macro)):
                continue
            signature, close = _signature(name, known), close_of(function.body, match.end() - 1)
            if signature is None or close < 0:
                continue
            given = split(function.body[match.end() : close])[1:]
            line = function.body_line + function.body[: match.start()].count("\n")
            place = SourcePlace(function.file, line)
            for problem, severity in _problems(signature, macro, given, function, converted):
                if (place, problem) not in reported:
                    reported.add((place, problem))
                    findings.report(place, problem, severity=severity)


def _callers(findings: Findings) -> Iterator[CppFunction]:
    """Yield the functions of the repository, and the lambdas that are registered or bound, for each choice of the preprocessor."""
    found = [each for named in findings.functions.values() for each in named]
    registered = [one.function for one in findings.implementations] + [one.function for one in findings.bound_functions]
    found += [one for one in registered if isinstance(one, CppFunction) and not one.name]
    for one in found:
        if "aclnn" in one.body:
            yield from (replace(one, body=body) for body in one.variants) if one.is_conditional else (one,)


def _macros(findings: Findings) -> frozenset[str]:
    """Return the macros whose first argument names the function, and that call it with the types of all others."""
    found: set[str] = set()
    while True:
        inner = re.compile(rf"\b(?:{'|'.join(sorted(found)) or '(?!)'})\s*\(")
        now = {
            name
            for name, bodies in findings.macros.items()
            if all(_looks_up(body) or ("__VA_ARGS__" in body and inner.search(body)) for body in bodies)
        }
        if now == found:
            return frozenset(found)
        found = now


def _looks_up(body: str) -> bool:
    """Return whether a macro finds a function by the name it is given; one with the declared type compares types itself."""
    return '"GetWorkspaceSize"' in body and "decltype" not in body and _CONVERSION.search(body) is not None


def _conversions(findings: Findings, macros: frozenset[str]) -> Mapping[str, str]:
    """Return what the conversion functions make of types: torch_npu's, and the repository's own; empty where it is not certain."""
    found: dict[str, str] = dict(_CONVERTED)
    names = {name for macro in macros for body in findings.macros[macro] for name in _CONVERSION.findall(body)}
    for one in (one for name in sorted({*names, "ConvertType"}) for one in findings.functions.get(name, ())):
        if len(one.parameters) != 1:
            continue
        kind, pointer = type_name(one.parameters[0].type), _POINTER.search(one.returns)
        if "template" in one.returns and kind.isidentifier() and not re.search(rf"\b{kind}\Z", one.returns):
            found |= dict.fromkeys(_NUMBERS, "")  # a template that makes something else of numbers
        made = pointer[0] if pointer else ""
        found[kind] = made if found.get(kind, made) == made else ""
    return found


def _signature(name: str, known: Known) -> _Signature | None:
    """Return what a function takes by a header of the repository, or by the OpDef that it is generated from."""
    try:
        function, prototype = known.function(name), known.prototype(name.removeprefix("aclnn"))
    except NoBindingError:
        return None
    if function is not None:
        return _Signature(name, tuple((one.name, one.type) for one in function.parameters), function.place)
    roles = cann_functions().get(name)
    if roles is not None:
        types = tuple((f"parameter {n}", _CANN_TYPES.get(one, CType(""))) for n, one in enumerate(roles, 1))
        return _Signature(name, types, "CANN's header", True) if prototype is None else None
    definitions = known.prototypes.get(name.removeprefix("aclnn"), ())
    if prototype is None or all(one.file.endswith(".h") for one in definitions):
        return None  # a REG_OP generates no function
    try:
        call = msopgen_call(prototype)
    except BindingError:
        return None
    return _Signature(name, tuple((one.name, one.type) for one in call.arguments), prototype.place)


def _problems(
    signature: _Signature, macro: str, given: list[str], function: CppFunction, converted: Mapping[str, str]
) -> Iterator[tuple[str, Severity]]:
    name, parameters, place = signature.name, signature.parameters, signature.place
    names = ", ".join(one for one, _ in parameters)
    if len(given) != len(parameters):
        if not signature.is_cann and not any("..." in one for one in given):
            yield (
                f"{name}: {macro} passes {len(given)} arguments; expected {len(parameters)}, as {place} has them: {names}. "
                "The function reads others in their place, and no compiler says so",
                Severity.ERROR,
            )
        return
    declared = declared_types(function)
    pairs = [(one, value_type(one, declared), *other) for one, other in zip(given, parameters, strict=True)]
    order = _register_order(pairs, converted)
    if order is not None:
        if signature.is_cann:
            return
        yield (
            f"{name}: {macro} passes {', '.join(' '.join(one.split()) for one in given)}; expected {names}, as {place} has it. Each value "
            "reaches a parameter of its type only where floats travel apart from all others, as on AArch64: follow that order",
            Severity.WARNING,
        )
        pairs = order
    own = {one.name for one in function.parameters}
    yield from _compare(f"{name}: {macro} passes", pairs, own, converted, signature)


def _compare(
    subject: str, pairs: list[_Pair], own: set[str], converted: Mapping[str, str], signature: _Signature
) -> Iterator[tuple[str, Severity]]:
    """Yield what is wrong with arguments that stand for one parameter each."""
    place = signature.place
    wrong: list[str] = []
    narrow: dict[tuple[str, str], list[str]] = {}
    for written, kind, parameter, expected in pairs:
        shown, passed = " ".join(written.split()), converted.get(kind, kind)
        severity = _differs(passed, expected)
        if severity is Severity.WARNING:
            narrow.setdefault((kind, str(expected)), []).append(shown)
        elif severity is not None and (passed not in _OBJECTS or shown in own):
            # A tensor of the function's own may be undefined, which is a null pointer of any type.
            taken = f"{expected.base} *" if expected.pointers else str(expected)
            text = f"{subject} {shown} as {kind}; expected {taken} for {parameter}, as {place} has it"
            wrong.append(f"{text}. {_advice(kind, shown, expected)}")
    if signature.is_cann and len(wrong) > 1:
        return
    yield from ((one, Severity.ERROR) for one in wrong)
    for (kind, taken), names in narrow.items():
        yield (
            f"{subject} {', '.join(names)} as {kind}; expected {taken}, as {place} has it. The upper bits are "
            f"undefined, and a negative number becomes a large one: pass variables of {taken}",
            Severity.WARNING,
        )


def _register_order(pairs: list[_Pair], converted: Mapping[str, str]) -> list[_Pair] | None:
    """Return the pairs as registers pair them, where floats and others are mixed in another order; None if the order is the same.

    Floats travel in registers of their own, so that a float in front of an integer, or after it, is the same call. Arguments of
    types that are not known are left out.
    """
    passed = [_is_float(converted.get(kind, kind)) for _, kind, _, _ in pairs]
    expected = [one.value is ValueKind.FLOAT for _, _, _, one in pairs]
    known = sum(one is True for one in passed)
    if all(one in (None, other) for one, other in zip(passed, expected, strict=True)):
        return None
    if not known <= sum(expected) <= known + passed.count(None):
        return None
    if None in passed:
        return []
    given = [pair[:2] for is_float in (True, False) for pair, one in zip(pairs, passed, strict=True) if one is is_float]
    taken = [
        pair[2:] for is_float in (True, False) for pair, one in zip(pairs, expected, strict=True) if one is is_float
    ]
    return [(*one, *other) for one, other in zip(given, taken, strict=True)]


def _is_float(passed: str) -> bool | None:
    """Return whether a value travels in a register of floats; None if its type is not known."""
    if CType(passed).width:
        return CType(passed).value is ValueKind.FLOAT
    return False if passed in _OBJECTS or passed.endswith("*") else None


def _differs(passed: str, expected: CType) -> Severity | None:
    """Return how bad it is that a value of a type is read as another; None if it is right, or not certain."""
    is_number = passed != "aclDataType" and CType(passed).width > 0
    if not is_number and passed not in _OBJECTS and passed not in _CLASSES and passed != "char *":
        return None
    if expected.pointers:
        known = expected.value not in (ValueKind.OTHER, ValueKind.HOST_OUTPUT)
        same = passed == ("char *" if expected.base == "char" else expected.base)
        return Severity.ERROR if known and not same else None
    if not expected.width or expected.base == "aclDataType":
        return None
    if not is_number:
        return Severity.ERROR
    own = CType(passed)
    if (own.value is ValueKind.FLOAT) != (expected.value is ValueKind.FLOAT):
        return Severity.ERROR
    if own.value is ValueKind.FLOAT:
        return Severity.ERROR if own.width != expected.width else None
    return Severity.WARNING if own.width < expected.width else None


def _advice(kind: str, written: str, expected: CType) -> str:
    name = written if written.isidentifier() else "its"
    if kind in _CLASSES:
        return f"The macro passes the object itself: declare {_CLASSES[kind].format(name, written)}; and pass that"
    if expected.pointers:
        wanted = _OBJECTS.get(expected.base, f"{expected.base} *")
        return f"The function reads it as a pointer to another object: pass a variable of {wanted}"
    return (
        "The macro converts no numbers, and the function reads other bits: "
        f"declare {expected} {name}_value = {written}; and pass that"
    )

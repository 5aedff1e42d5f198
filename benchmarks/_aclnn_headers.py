"""Random aclnn functions, written as C headers in every layout of real headers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from ascend_graph.aclnn import AclnnFunction, AclnnParameter, CType, Direction

_OBJECTS = ("aclTensor", "aclTensorList", "aclScalar", "aclScalarList", "aclIntArray", "aclFloatArray", "aclBoolArray")
_VALUES = ("int64_t", "int32_t", "int8_t", "uint64_t", "double", "float", "bool", "aclDataType")
_WORDS = (
    "self",
    "other",
    "weight",
    "scale",
    "epsilon",
    "cu",
    "seqlens",
    "dim",
    "group",
    "block",
    "Q",
    "kv",
    "mode",
    "x",
)
_DEFAULTS = {"bool": "false", "double": "1.0", "float": "0.5f", "aclDataType": "ACL_FLOAT"}


def with_defaults(function: AclnnFunction, first: int) -> AclnnFunction:
    """Return the function with default arguments from parameter ``first`` on."""
    parameters = [
        p
        if n < first
        else replace(p, default="nullptr" if p.type.pointers else _DEFAULTS.get(p.type.base, "-1"), optional=True)
        for n, p in enumerate(function.parameters)
    ]
    return replace(function, parameters=tuple(parameters))


def random_function(rng: random.Random, number: int, longest: int = 12) -> AclnnFunction:
    """Return a function with inputs, values, and outputs that their names identify."""
    name = f"aclnn{rng.choice(['', 'Inplace'])}{rng.choice(['Add', 'FooBar', 'Conv2d', 'MoE'])}{number}"
    name += rng.choice(["", "", "V2", "V5"])
    parameters: list[AclnnParameter] = []
    if name.startswith("aclnnInplace"):
        parameters.append(AclnnParameter("selfRef", CType("aclTensor", 1), Direction.INOUT))
    for n in range(rng.randrange(1, longest)):
        own = rng.choice(_WORDS) + "".join(rng.choice(_WORDS).capitalize() for _ in range(rng.randrange(3))) + str(n)
        optional = rng.random() < 0.25
        own += "Optional" if optional else ""
        kind = rng.random()
        if kind < 0.6:
            parameters.append(AclnnParameter(own, CType(rng.choice(_OBJECTS), 1, True), optional=optional))
        elif kind < 0.7:
            parameters.append(AclnnParameter(own, CType("char", 1, rng.random() < 0.5), optional=optional))
        elif kind < 0.75:
            pointer = CType(*rng.choice([("int64_t", 1), ("aclIntArray", 2), ("double", 1), ("bool", 1)]))
            parameters.append(AclnnParameter(own, pointer, Direction.OUT, optional))
        else:
            parameters.append(AclnnParameter(own, CType(rng.choice(_VALUES)), optional=optional))
    written = any(parameter.direction is not Direction.IN for parameter in parameters)
    for n in range(rng.randrange(0 if written else 1, 3)):
        own = rng.choice(["out", "yOut", "valuesOut", "out_"]) + (str(n) if n else "")
        own = own.replace("out_", "indices_out")
        parameters.append(AclnnParameter(own, CType(rng.choice(_OBJECTS[:2]), 1), Direction.OUT))
    return AclnnFunction(name, tuple(parameters))


class Writer:
    """Style of writing headers: attributes, blanks, line ends, comments, default arguments."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.head = rng.choice(
            [
                "ACLNN_API aclnnStatus ",
                "aclnnStatus ",
                '__attribute__((visibility("default"))) aclnnStatus ',
                '__attribute__((visibility("default")))\naclnnStatus\n',
                'extern "C" aclnnStatus ',
                "extern int32_t ",
                "ACL_FUNC_VISIBILITY aclnnStatus\n",
            ]
        )
        self.star = rng.choice(["{} *", "{}* ", "{} * "])
        self.const_behind = rng.random() < 0.2
        self.end = rng.choice(["\n", "\n", "\r\n"])

    def header(self, functions: Sequence[AclnnFunction]) -> str:
        """Return all functions as one header."""
        guard = f"GUARD_{self.rng.randrange(10**9)}_H_"
        parts = [f"#ifndef {guard}\n#define {guard}\n"]
        parts.append('#include "aclnn/aclnn_base.h"\n#ifndef ACLNN_API\n#define ACLNN_API\n#endif\n')
        parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n')
        parts += [self.function(function) for function in functions]
        parts.append("#ifdef __cplusplus\n}\n#endif\n#endif\n")
        return "".join(parts).replace("\n", self.end)

    def function(self, function: AclnnFunction) -> str:
        """Return one function's comment and its two phases."""
        rng = self.rng
        comment = ""
        if rng.random() < 0.6:
            said = "".join(
                f" * @param [in] {p.name}: {p.type}; 数据 aclnnXGetWorkspaceSize(a, b)\n" for p in function.parameters
            )
            comment = f"/**\n * @brief {function.name}GetWorkspaceSize(self);\n{said} */\n"
        last = ["uint64_t *workspaceSize", "aclOpExecutor **executor"]
        if rng.random() < 0.3:
            last = ["uint64_t* workspace_size", "aclOpExecutor** executor"]
        if any(p.default for p in function.parameters):
            last = [f"{parameter} = nullptr" for parameter in last]
        declared = [self.parameter(p) + (f" = {p.default}" if p.default else "") for p in function.parameters]
        first = f"{self.head}{function.name}GetWorkspaceSize({self.joined([*declared, *last])});\n"
        second = ["void *workspace", "uint64_t workspaceSize", "aclOpExecutor *executor"]
        second.append(rng.choice(["aclrtStream stream", "const aclrtStream stream"]))
        return f"{comment}{first}\n{self.head}{function.name}({self.joined(second)});\n\n"

    def parameter(self, parameter: AclnnParameter) -> str:
        """Return the text of one parameter."""
        rng, type_ = self.rng, parameter.type
        base = type_.base
        if type_.const:
            base = f"{base} const" if self.const_behind else f"const {base}"
        if type_.pointers == 0:
            return f"{rng.choice(['', '', 'const '])}{base} {parameter.name}"
        return self.star.format(base) + "*" * (type_.pointers - 1) + parameter.name

    def joined(self, parameters: Sequence[str]) -> str:
        """Join parameters with the blanks and comments of this header."""
        rng = self.rng
        text = rng.choice(["", "\n    "])
        for n, parameter in enumerate(parameters):
            text += parameter
            if n + 1 < len(parameters):
                text += "," + rng.choice(
                    [" ", " ", "\n        ", " // of the next, it seems\n    ", " /* a, b) */ ", "  \n"]
                )
        return text


def random_header(rng: random.Random, functions: int = 3, longest: int = 12) -> tuple[str, list[AclnnFunction]]:
    """Return a header and the functions that it declares."""
    declared = [random_function(rng, n, longest) for n in range(functions)]
    if rng.random() < 0.2:
        declared = [with_defaults(function, rng.randrange(len(function.parameters) + 1)) for function in declared]
    return Writer(rng).header(declared), declared

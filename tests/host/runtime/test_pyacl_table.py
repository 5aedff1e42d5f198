"""pyACL's table of functions: against torch_npu's ACL headers, and what of it a host refuses."""

from __future__ import annotations

import re
from pathlib import Path

import acl
import pytest
import torch_npu
from acl._declarations import Function, Parameter, declarations

#: What a type of ``functions.txt`` is in C, as torch_npu's headers spell it.
C_TYPES = {
    "bool": {"uint8_t"},
    "int": {"int32_t", "int"},
    "uint": {"uint32_t"},
    "long": {"int64_t"},
    "ulong": {"uint64_t"},
    "size": {"size_t", "uint64_t"},
    "float": {"float"},
    "text": {"char *"},
    "path": {"char *"},
    "none": {"void"},
}


REFUSED = [f for f in declarations() if f.reason]
ZEROS = {"text": "x", "path": "x", "float": 0.0}


@pytest.mark.parametrize("one", REFUSED, ids=lambda f: f.name)
def test_what_a_host_lacks_is_refused_by_name(one: Function) -> None:
    module, _, name = one.name.rpartition(".")
    arguments = [[0] if p.is_list else ZEROS.get(p.type, 0) for p in one.arguments]
    result = getattr(getattr(acl, module), name)(*arguments)
    *values, ret = result if isinstance(result, tuple) else (result,)
    assert values == [0] * sum(p.is_result for p in one.parameters)
    assert ret == 200001
    assert acl.get_recent_err_msg().startswith(f"{one.function}: {one.reason}")


def headers() -> str:
    directory = Path(torch_npu.__file__).parent / "include/third_party/acl/inc/acl"
    texts = (path.read_text(errors="replace") for path in sorted(directory.glob("*.h")))
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", "\n".join(texts), flags=re.DOTALL)


HEADERS = headers()


def declared(function: str) -> tuple[str, list[str]] | None:
    """What torch_npu's header says that a function returns and takes; types without const."""
    found = re.search(rf"ACL_FUNC_VISIBILITY\s+([^;()]*?)\b{function}\(([^()]*)\)\s*;", HEADERS)
    if found is None:
        return None
    names = [re.sub(r"\s+", " ", re.sub(r"\bconst\b", " ", text)).strip() for text in found[2].split(",")]
    types = [
        re.sub(r"\w+(\[\])?$", lambda m: "*" if m[1] else "", name).strip()
        for name in names
        if name not in ("", "void")
    ]
    return re.sub(r"\bconst\b", " ", found[1]).strip(), [t.replace("* *", "**").replace(" *", "*") for t in types]


def fits(kind: str, c_type: str) -> bool:
    """Whether a C type is that of the table; enums are ints, handles pointers."""
    if kind == "pointer":
        return c_type.endswith("*") or re.fullmatch(r"aclrt(Context|Stream|Event|DrvMemHandle)", c_type) is not None
    enums = (
        r"acl(rt)?(Error|RunMode|Mem\w+|FloatOverflowMode|Event\w+|StreamStatus|SysParamOpt|DataType|Format|DeviceInfo"
        r"|\w*DevAttr|OpCompileFlag)"
    )
    return c_type.replace("*", " *") in C_TYPES[kind] or (kind == "int" and re.fullmatch(enums, c_type) is not None)


def expected(parameter: Parameter) -> list[tuple[str, str]]:
    """The C parameters of one: a type of the table, and the stars that follow it."""
    if parameter.is_list:
        return [("int", "")] * parameter.has_count + [(parameter.type, "*")]
    return [(parameter.type, "*" if parameter.is_result else "")]


def test_the_table_is_that_of_torch_npus_headers() -> None:
    """A parameter too many, a result in the wrong place or of another width would write to memory that is not there."""
    compared, wrong = 0, []
    for one in declarations():
        found = declared(one.function)
        if found is None:
            continue
        compared += 1
        returned, types = found
        wanted = [pair for parameter in one.parameters for pair in expected(parameter)]
        same = len(types) == len(wanted)
        if not one.reason:  # those that are called
            same &= fits(one.returned or "int", returned.replace(" *", "*"))
            pairs = zip(types, wanted, strict=False)
            same &= all(c.endswith(stars) and fits(k, c.removesuffix(stars)) for c, (k, stars) in pairs)
        if not same:
            wrong.append((one.function, found, wanted))
    assert wrong == []
    assert compared > 80

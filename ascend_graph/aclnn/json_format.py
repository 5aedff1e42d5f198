"""JSON form of aclnn functions, for the command line."""

from __future__ import annotations

from typing import Any

from ascend_graph.aclnn.model import AclnnFunction


def function_as_json(function: AclnnFunction) -> dict[str, Any]:
    """Return one function as JSON data; ``parameters`` excludes ``workspaceSize`` and ``executor``.

    >>> from ascend_graph.aclnn import parse_text
    >>> text = "int aclnnFooGetWorkspaceSize(const aclTensor *xOptional, aclTensor *out, uint64_t *size, aclOpExecutor **e);"
    >>> function_as_json(parse_text(text).functions[0])["parameters"][0]
    {'name': 'xOptional', 'type': 'const aclTensor *', 'direction': 'in', 'optional': True}
    """
    found: dict[str, Any] = {
        "name": function.name,
        "parameters": [
            {"name": p.name, "type": str(p.type), "direction": p.direction.value, "optional": p.optional}
            | ({"default": p.default} if p.default else {})
            for p in function.parameters
        ],
        "file": function.file,
        "line": function.line,
    }
    if not function.has_second_phase:
        found["has_second_phase"] = False
    return found

"""First errors and causes in the logs of builds."""

from __future__ import annotations

import re

#: Message of a project that is for other devices.
OTHER_DEVICE = re.compile(r"the host stands for")
_LEFT_OUT = re.compile(r"^ascend_graph: .*: its own aclnn functions are left out: (.*)$", re.MULTILINE)
_NAMES = r"[\u2018'`](?:(?:typename|class|struct)\s+)?(?P<name>[^\u2019'`]+)[\u2019'`]"
#: Forms of errors, each with the kind of thing that is missing.
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"fatal error: (?P<name>\S+): No such file"), "header"),
    (re.compile(r"error: no matching function for call to " + _NAMES), "overload"),
    (re.compile(r"error: " + _NAMES + r" is not a member of"), "name"),
    (re.compile(r"error: " + _NAMES + r" (?:was not declared|has not been declared|does not name a type|is not a class)"), "name"),
    (re.compile(r"error: [^\n]*has no member named " + _NAMES), "member"),
    (re.compile(r"error: expected [^\n]* before " + _NAMES), "syntax"),
    (re.compile(r"undefined (?:symbol|reference to)[: ]+[\u2018'`]?(?P<name>[\w:~()<>, *&]+)"), "symbol"),
    (re.compile(r"Unknown CMake command \"(?P<name>\w+)\""), "CMake command"),
    (re.compile(r"provided by \"(?P<name>\w+)\""), "CMake package"),
    (re.compile(r"(?P<name>\S+): (?:command not found|not found$)"), "program"),
    (re.compile(r"No module named " + _NAMES), "Python module"),
)  # fmt: skip
_ERROR_LINE = re.compile(
    r"^.*(?:\berror:|\b\w*Error:|\bERROR\b|undefined symbol|undefined reference|CMake Error|ModuleNotFoundError|not found$).*$",
    re.MULTILINE,
)
_IN_PLACE = re.compile(r"^(?:\S+?:\d+(?::\d+)?:|/\S+:|Error:)\s*")


def first_error(log: str) -> str:
    """Return the line of a log with the first error, or the last line."""
    for match in _ERROR_LINE.finditer(log):
        line = match[0].strip()
        # torch_npu's own message comes after the exception's.
        if (
            not line.startswith(("$", "ascend_graph:", "Error: compiling", "Error: preprocessing", "ninja:", "FAILED:"))
            and "ERR99999" not in line
        ):
            return line[:500]
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("$")]
    return lines[-1][:500] if lines else ""


def left_out_reason(log: str) -> str:
    """Return the reason why a build left out hand-written aclnn functions, or an empty string."""
    found = _LEFT_OUT.search(log)
    return "" if found is None else found[1]


def cause_of(error: str, step: str) -> tuple[str, str]:
    """Return the cause of a step's error, and the name that is missing, if one is."""
    if not error:
        return "", ""
    for form, kind in _FORMS:
        found = form.search(error)
        if found is not None:
            name = found["name"].strip()
            if kind == "overload":
                name = re.split(r"[(<]", name, maxsplit=1)[0]
            return f"{kind} {name}", name
    text = error
    while True:
        shorter = _IN_PLACE.sub("", text)
        if shorter == text:
            break
        text = shorter
    if OTHER_DEVICE.search(text):
        return "for other devices", ""
    return f"{step}: {text[:160]}", ""

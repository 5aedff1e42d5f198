"""Check of a commit message: one subject of at most 72 characters, in the imperative, and a body after an empty line.

    python .ci/commit_message.py FILE

It is the commit-msg hook of .pre-commit-config.yaml.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LIMIT = 72
_NOT_IMPERATIVE = re.compile(r"(?:\w+(?:ed|ing)|The|A|An|What|Now|Some|More|This)\b")
_IMPERATIVE = frozenset(["Bring", "Embed", "Feed", "Need", "Proceed", "Shed", "Speed", "String", "Seed"])


def faults(message: str) -> list[str]:
    """Return what is wrong with a commit message; empty if nothing is.

    Lines of comments, which git removes, do not count; merges and reverts keep the subject that git gives them.
    """
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return []
    found = []
    if not subject.strip():
        return ["the subject is empty; expected what the commit does, in the imperative"]
    if len(subject) > LIMIT:
        found.append(f"the subject has {len(subject)} characters; expected at most {LIMIT}")
    if subject.endswith("."):
        found.append("the subject ends with a period; expected none")
    if ";" in subject:
        found.append("the subject names several things (';'); expected one. Make a commit of each")
    first = subject.split()[0].strip(":,")
    if not first[:1].isupper() or (_NOT_IMPERATIVE.fullmatch(first) and first not in _IMPERATIVE):
        found.append(f"the subject begins with {first!r}; expected an imperative with a capital, such as Add or Fix")
    if len(lines) > 1 and lines[1].strip():
        found.append("the second line is not empty; expected an empty line before the body")
    return found


def main(arguments: list[str]) -> int:
    """Print the faults of the message in a file; return 1 if it has some."""
    found = faults(Path(arguments[0]).read_text(encoding="utf-8"))
    for fault in found:
        print(f"commit message: {fault}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

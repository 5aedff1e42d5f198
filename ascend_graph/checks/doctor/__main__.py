"""The process that imports modules of operators for ``doctor``: findings as lines of JSON on a file descriptor."""

from __future__ import annotations

import json
import os
import sys

from ascend_graph.checks.doctor.finding import Finding
from ascend_graph.checks.doctor.messages import diagnose
from ascend_graph.checks.doctor.operators import registered


def main(arguments: list[str]) -> None:
    """Take ``{"modules": […], "operators": […]}`` and the number of a file descriptor."""
    request = json.loads(arguments[0])
    with os.fdopen(int(arguments[1]), "w", buffering=1) as lines:
        try:
            for finding in registered(request["modules"], request["operators"]):
                lines.write(json.dumps(finding.as_dict()) + "\n")
        except Exception as error:  # whatever a module does
            text = f"{type(error).__name__}: {error}"
            known = diagnose(text, os.environ)
            why, mend = (f": {known[0].cause}", known[0].mend) if known else ("", "")
            finding = Finding(", ".join(request["modules"]) or "operators", f"{text}{why}", True, mend)
            lines.write(json.dumps(finding.as_dict()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

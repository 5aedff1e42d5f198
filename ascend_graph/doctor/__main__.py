"""Process that imports modules of operators for ``doctor``; it writes findings as JSON lines to a file descriptor."""

from __future__ import annotations

import json
import os
import sys

from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.messages import diagnose
from ascend_graph.doctor.operators import registered


def main(arguments: list[str]) -> None:
    """Write the findings for ``{"modules": […], "operators": […]}`` to the file descriptor with the given number."""
    request = json.loads(arguments[0])
    with os.fdopen(int(arguments[1]), "w", buffering=1) as lines:
        try:
            for finding in registered(request["modules"], request["operators"]):
                lines.write(json.dumps(finding.as_dict()) + "\n")
        except Exception as error:  # whatever a module does
            text = f"{type(error).__name__}: {error}"
            known = diagnose(text, os.environ)
            why, fix = (f": {known[0].cause}", known[0].fix) if known else ("", "")
            finding = Finding(", ".join(request["modules"]) or "operators", f"{text}{why}", True, fix)
            lines.write(json.dumps(finding.as_dict()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

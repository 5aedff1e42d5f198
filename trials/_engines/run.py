"""Run the programs of one module in this process: a line of JSON before and after each."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import time
import warnings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--only", default="*", help="pattern of names")
    parser.add_argument("--after", default="", help="begin after this program")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    module = importlib.import_module(f"trials._engines.{arguments.module}")
    from trials._engines.programs import outcome

    names = [name for name in module.PROGRAMS.all if fnmatch.fnmatch(name, arguments.only)]
    if arguments.after:
        names = names[names.index(arguments.after) + 1 :]
    for name in names:
        print(json.dumps({"begins": name}), flush=True)
        start = time.monotonic()
        result = {"program": name} | outcome(module.PROGRAMS.all[name])
        print(json.dumps(result | {"seconds": round(time.monotonic() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()

"""Messages about operators that are looked up and not registered: which installed package has them."""

from __future__ import annotations

import warnings

from ascend_graph.dispatch.calls import NAMESPACE, guard_namespace, on_missing
from ascend_graph.packages.autoload import (
    GROUP,
    OperatorsWarning,
    load_errors,
    load_operators,
    operator_entry_points,
    postponed,
)

#: Operators of which a warning told already.
_told: set[str] = set()


def explain_missing_operators() -> None:
    """Let lookups in the namespaces of operators say which package has a missing one. A second call does nothing."""
    for namespace in {NAMESPACE, *(entry.name for entry in operator_entry_points() if entry.name.isidentifier())}:
        guard_namespace(namespace)
    if _explain not in on_missing:
        on_missing.append(_explain)


def _explain(name: str) -> str | None:
    """Return where a missing operator is to be found; None once entry points that had to wait are loaded."""
    if postponed:
        waiting = set(postponed)
        load_operators()
        if postponed != waiting:
            return None
    # Imported where an operator is missing, for every process that imports PyTorch comes here.
    from ascend_graph.prototypes.catalog import installed_op_types
    from ascend_graph.prototypes.naming import snake_case

    namespace, _, bare = name.partition("::")
    hints = []
    names = (bare, bare.removesuffix("_op"))
    for op_type, directory in installed_op_types():
        if snake_case(op_type) not in names:
            continue
        package = directory.parent.parent
        other = "" if namespace == NAMESPACE else f", namespace={namespace!r}"
        hints.append(
            f"The operator package {package} has {op_type}. Write: ascend_graph.register_package({str(package)!r}{other}); "
            f"in the wheel of the package an entry point of the group {GROUP} does it in every process"
        )
        break
    named = {f"{entry.name} = {entry.value}" for entry in operator_entry_points() if entry.name == namespace}
    hints += [f"The entry point {key} of {GROUP} failed with {error}" for key, error in load_errors(named)]
    text = ". ".join(hints)
    if text and name not in _told:
        # PyTorch asks with hasattr where it loads programs, and drops the message of the error.
        _told.add(name)
        warnings.warn(f"{name} is not registered. {text}", OperatorsWarning, stacklevel=5)
    return text

"""One REG_OP prototype, one call: custom Ascend operators in eager PyTorch, GE graphs and aclgraph.

The public names are imported on first use, so ``import ascend_graph`` takes milliseconds and needs neither torch nor
torch_npu; only functions that run operators import them.

>>> import sys, subprocess
>>> code = "import ascend_graph, sys; print('torch' in sys.modules)"
>>> subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
'False'
"""

from __future__ import annotations

import sys
from typing import Any

from ascend_graph.former_names import FormerNames
from ascend_graph.lazy import load, public_names

# Last, so that it is asked only for what is not there.
sys.meta_path.append(FormerNames())

_HOLDERS = public_names(__name__, __file__)
__all__ = sorted(_HOLDERS)  # noqa: PLE0605
__version__ = "0.1.0"
#: Remedy for a torch_npu that does not load without CANN, once an import has failed so.
_remedies: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _HOLDERS:
        raise AttributeError(f"module 'ascend_graph' has no attribute {name!r}; it has {', '.join(__all__)}")
    # Torch cannot be imported again in a process in which it has failed: it may end the process.
    blocked = bool(_remedies) and "torch" not in sys.modules
    if blocked:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        value = load(__name__, name, _HOLDERS[name])
    except (ImportError, RuntimeError) as error:  # torch says RuntimeError where torch_npu does not load
        value = _without_torch(name, error)
    finally:
        if blocked:
            del sys.modules["torch"]
    globals()[name] = value
    if "torch" in sys.modules:  # which may have been imported in the middle of this import
        from ascend_graph.packages.autoload import load_postponed

        load_postponed()
    return value


def _without_torch(name: str, error: BaseException) -> Any:
    """Return a documented stand-in for a public name in a process without CANN; raise any other error."""
    from ascend_graph.environment import without_cann
    from ascend_graph.errors import AscendGraphError
    from ascend_graph.stand_ins import stand_in

    # What is wrong is said once: a process cannot import torch again after it has failed.
    if (remedy := without_cann(error)) is not None:
        _remedies.append(remedy)
    if not _remedies:
        raise error
    reason = f"ascend_graph.{name} needs torch_npu: {_remedies[0]}"
    documented = stand_in(_HOLDERS[name], name, reason)
    if documented is None:
        raise AscendGraphError(reason) from None
    return documented


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

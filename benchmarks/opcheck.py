"""Benchmark of opcheck on an operator with planted faults, and on torch_npu's own operators without false alarms.

The planted faults are those of tests/checks/test_opcheck.py; here every check runs on each. The calls of
torch_npu's operators are those that tests/host/operators make in eager mode. ``--show`` prints every finding about
them: each is either a false alarm, or a fault of the wheel or of the host runtime that ``EXPLAINED`` lists with
the reason.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from _common import run
from rich.console import Console
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import ascend_graph

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair  # noqa: F401

ROOT = Path(__file__).parent.parent
#: Correct findings about torch_npu's operators: (operator, check, message) as regular expressions, and the reason.
EXPLAINED = [
    (r"", r"npugraph_ex|gradient_in_graphs", r"Cannot run aclop operators during NPU graph capture", "torch_npu has an aclop alone"),
    (r"", r".*", r"(is memory of argument|alias of input|may not alias|is memory of return|and the schema does not say so)",
     "returns or writes what it was given, and its schema does not say so"),
    (r"apply_rotary", r"ge|ge_dynamic|export", r"argument \d: ", "the same: graphs do not write it"),
    (r"get_storage_size|copy_memory_|npu_reshape|npu_stride_copy", r"layout|outside", r"", "is about storage, not about elements"),
    (r"npu_view_copy", r"layout|outside", r"error code is 500001", "GE's ViewCopy, which says so of what it cannot copy"),
    (r"int4pack", r"layout", r"should be contiguous", "refuses what is not contiguous, and says so"),
    (r"\.(unsafe_)?empty_with", r"repeats|outside|layout|npugraph_ex|export|ge.*", r"", "makes memory that nobody has written"),
    (r"npu_add_rms_norm_quant\.", r".*", r"return 1", "y2 is computed only with scales2"),
    (r"npu_add_layer_norm\.", r".*", r"return 3", "the sum is computed only if asked for"),
    (r"npu_rotary_mul_backward", r".*", r"return [12]", "gradients of the tables are computed only if asked for"),
    (r"npu_kv_rmsnorm_rope_cache", r".*", r"return [0123]: ", "k and v are computed only if asked for"),
    (r"npu_grouped_matmul_swiglu_quant", r".*", r"return 2", "is computed in no mode that the host has"),
    (r"npu_clear_float_status", r".*", r"return 0", "what it returns is not determined"),
    (r"npu_(add_layer_norm|fusion_attention)", r"gradient", r"random direction",
     "the gradients of the saved statistics that it returns are not taken"),
    (r"npu_fusion_attention", r".*", r"return [456]", "the seed and the offset of dropout: not the same in graphs, nor on one device"),
    (r"dropout", r"outside", r"", "random, and not tagged so"),
    (r"rms_norm_quant_v2|scatter_list|geglu_grad|fusion_attention_grad_v2", r".*", r"missing \d required|fake tensor|Unable to cast|must be Tensor",
     "the wheel's meta function"),
    (r"npu_moe_init_routing_v2|npu_transpose|npu_add_rms_norm_v2|cross_entropy_loss", r"meta|npugraph_ex|export|ge.*", r"",
     "the wheel's meta function"),
    (r"", r"ge.*|gradient_in_graphs", r"ge_converter is not implemented|is not implemented$|find optype|ge_outputs must be|Unsupported dst_type",
     "the wheel's converter"),
    (r"npu_moe_gating_top_k_softmax_v2", r"ge.*", r"renorm", "the wheel's converter"),
    (r"npu_group_norm_silu", r"ge.*", r"elements differ", "the wheel's converter has another eps by default than the schema"),
    (r"npu_group_quant", r"ge.*", r"uint8|UINT8", "the wheel's converter and its meta function have different dtypes"),
    (r"npu_geglu\.", r"gradient_in_graphs", r"Unable to cast", "the wheel's meta function of the gradient"),
    (r"", r"ge.*|gradient_in_graphs", r"op_cpp_graph", "the C++ that TorchAir writes for the operator does not compile"),
    (r"", r"ge.*", r"the host runtime has no kernel", "the host runtime has no kernel"),
    (r"npu_quant_matmul\.|moe_token_unpermute", r"recompilations", r"", "the wheel's meta function asks for a size"),
    (r"npu_weight_quant_batchmatmul", r"npugraph_ex", r"experimental_config", "the wheel's npugraph_ex"),
    (r"", r"gradient.*", r"not in libopapi.so|aclnnIndexAddV2 failed|no kernel for GE operator", "the host runtime has no kernel for its gradient"),
]  # fmt: skip


class _Recorder(TorchDispatchMode):
    """Dispatch mode that keeps the arguments of the first calls of each of torch_npu's operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[Any, list[Any]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace == "npu":
            kept = self.calls.setdefault(function, [])
            if len(kept) < 2:
                kept.append(tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), (args, dict(kwargs or {}))))
        return function(*args, **(kwargs or {}))


def recorded() -> dict[Any, list[Any]]:
    """Return the calls of torch_npu's operators in tests/host/operators."""
    tests = ROOT / "tests/host/operators"
    sys.path.insert(0, str(tests))
    modes = importlib.import_module("operator_modes")
    eager, recorder = modes._MODES["eager"], _Recorder()

    def check(function: Callable[..., Any], args: Any, *_: Any, **__: Any) -> None:
        with recorder:
            eager(function, args)

    modes.check = check
    pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "--ignore", str(tests / "test_decoder.py"), str(tests)])
    return recorder.calls


def alarms(show: bool) -> tuple[int, int, int, float]:
    """Return the numbers of checked operators, explained and unexplained findings, and the seconds of all checks."""
    from ascend_graph import Sample, opcheck

    explained, false, checked = 0, 0, 0
    start = time.perf_counter()
    console = Console(stderr=True, width=200)
    for overload, calls in sorted(recorded().items(), key=lambda entry: str(entry[0])):
        samples = [Sample(args, kwargs) for args, kwargs in calls]
        try:
            report = opcheck(overload, samples, raise_exception=False)
        except ascend_graph.AscendGraphError as error:
            console.print(f"{overload}: {error}"[:300], markup=False)
            continue
        checked += 1
        for outcome in report.failures:
            reason = next(
                (why for op, check, said, why in EXPLAINED
                 if re.search(op, str(overload)) and re.fullmatch(check, outcome.check) and re.search(said, outcome.message)),
                "",
            )  # fmt: skip
            explained += bool(reason)
            false += not reason
            if show or not reason:
                console.print(f"{overload} {outcome.check}: {outcome.message[:300]} {reason}", markup=False)
    return checked, explained, false, time.perf_counter() - start


def planted() -> tuple[int, int]:
    """Return the numbers of planted and found faults."""
    sys.path.insert(0, str(ROOT / "tests" / "checks"))
    tests = importlib.import_module("test_opcheck")
    ascend_graph.load_prototypes(tests.HEADER)
    found = 0
    for number, name in enumerate(tests.PLANTED):
        operator = tests.Operator(1000 + number)
        try:
            report = tests.planted_report(operator, name, every=True)
        finally:
            operator.close()
        found += not report.ok
        if report.ok:
            print(f"not found: {name}", file=sys.stderr)
    return len(tests.PLANTED), found


def main() -> dict[str, Any]:
    """Run both parts and return the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the findings that are explained too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    checked, explained, false, seconds = alarms(options.show)
    faults, caught = planted()
    return {
        "planted": faults,
        "caught": caught,
        "operators": checked,
        "explained": explained,
        "false_alarms": false,
        "seconds_per_operator": round(seconds / max(checked, 1), 2),
    }


if __name__ == "__main__":
    run(main)

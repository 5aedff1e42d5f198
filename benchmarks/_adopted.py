"""Comparison of an adopted module with its client's own meta functions, in one process of the host runtime.

The client's schemas are defined with kernels that do nothing. Its meta functions are compiled from C++ as they are, or taken
from Python. Random calls are made of the meta function first, then of what the module has registered.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import random
import re
import subprocess
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import ascend_graph
from ascend_graph.adoption import adopt
from ascend_graph.adoption.bound.definitions import bound_operators
from ascend_graph.adoption.cann_functions import roles_of
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.decision import Decision
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings, Implementation, PythonFunction
from ascend_graph.adoption.repository import read_repository
from benchmarks._adopted_kernels import check_kernel, compile_kernels

#: Accepted calls that are compared, and calls that are tried for them, of one operator.
CALLS, TRIES = 12, 600
#: File with the calls that ended earlier processes, and the one that is tried.
MARKER = "tried.txt"
ENDS = "ends the process for some random arguments"
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int32, torch.int64)

Outputs = tuple[tuple[tuple[int, ...], torch.dtype] | None, ...]


class Attempts:
    """Calls of a client's code, one at a time: those that ended an earlier process are left out."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.ended = set(file.read_text().splitlines()) if file.exists() else set()

    @contextmanager
    def of(self, call: str) -> Iterator[None]:
        """Write down a call for as long as it runs, for the process after this one."""
        self._write({*self.ended, call})
        try:
            yield
        finally:
            self._write(self.ended)

    def _write(self, calls: set[str]) -> None:
        self.file.write_text("\n".join(sorted(calls)))


def define(findings: Findings) -> tuple[dict[str, str], dict[str, Any]]:
    """Define all schemas with kernels that do nothing; return what could not be defined, by name."""
    libraries: dict[str, Any] = {}
    refused: dict[str, str] = {}
    done = set()
    for one in findings.definitions:
        full = one.schema.qualified_name
        if full in done:
            continue
        done.add(full)
        namespace, _, name = full.partition("::")
        library = libraries.setdefault(namespace, torch.library.Library(namespace, "FRAGMENT"))
        text = one.schema.text
        try:
            library.define(text.partition("::")[2] if text.partition("(")[0].count("::") else text)
            library.impl(name, _kernel, "PrivateUse1")
        except (RuntimeError, ValueError) as error:
            refused[full] = str(error).splitlines()[0]
    return refused, libraries


def _kernel(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("the kernel of a benchmark")


def compile_metas(findings: Findings, root: Path, work: Path) -> list[str]:
    """Compile and load the C++ files whose meta functions are registered; return what does not compile."""
    files = sorted(
        {one.place.file for one in findings.implementations if one.is_meta and not one.place.file.endswith(".py")}
    )
    conditions = {c for one in findings.definitions for c in one.conditions}
    negated = set(re.findall(r"not \(defined\((\w+)\)\)", " ".join(conditions)))
    macros = set(re.findall(r"defined\((\w+)\)", " ".join(conditions))) - negated
    packages = Path(torch.__file__).parent.parent
    includes = [packages / p for p in ("torch/include", "torch/include/torch/csrc/api/include", "torch_npu/include")]
    includes += [
        packages / "torch_npu/include/third_party/acl/inc",
        packages / "torch_npu/include/third_party/hccl/inc",
    ]
    failed = []
    for file in files:
        path = root / file
        digest = hashlib.sha256(
            path.read_bytes() + repr(sorted(macros)).encode() + torch.__version__.encode()
        ).hexdigest()[:16]
        library = work / f"metas-{digest}.so"
        if not library.exists():
            command = ["g++", "-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-DTORCH_EXTENSION_NAME=metas"]
            command += [f"-D{macro}" for macro in sorted(macros)]
            command += [f"-I{p}" for p in (path.parent, *includes, sysconfig.get_paths()["include"])]
            linked = [f"-L{packages / 'torch/lib'}", "-lc10", "-ltorch_cpu", "-ltorch"]
            done = subprocess.run(
                [*command, str(path), "-o", str(library), *linked], capture_output=True, text=True, check=False
            )
            if done.returncode:
                failed.append(f"{file}: {(done.stderr.splitlines() or ['?'])[0]}")
                continue
        try:
            torch.ops.load_library(str(library))
        except OSError as error:
            failed.append(f"{file}: {error}")
    return failed


def python_meta(function: PythonFunction) -> Callable[..., Any] | None:
    """Return a Python meta function without its module: its own code, torch and the module's constants; None if it needs more."""
    node = function.node
    if not isinstance(node, ast.FunctionDef):
        return None
    node = ast.FunctionDef(node.name, node.args, node.body, [], node.returns, lineno=1, col_offset=0)
    for argument in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs):
        argument.annotation = None
    node.returns = None
    scope: dict[str, Any] = {"torch": torch}
    scope |= {name: value.value for name, value in function.module.items() if isinstance(value, ast.Constant)}
    try:
        exec(compile(ast.fix_missing_locations(ast.Module([node], [])), function.place.file, "exec"), scope)
    except Exception:
        return None
    return scope[node.name]  # type: ignore[no-any-return]


def calls(schema: torch.FunctionSchema, strings: list[str], seed: int) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield random calls on meta tensors."""
    source = random.Random(seed)
    while True:
        pool = source.sample([1, 2, 4, 8, 24, 128, 256, 4096], 3)
        ranks = {}
        common = source.choice(_DTYPES[:3])
        args, kwargs = [], {}
        for argument in schema.arguments:
            value = _value(argument, source, pool, ranks, common, strings)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        yield args, kwargs


def _value(
    argument: Any,
    source: random.Random,
    pool: list[int],
    ranks: dict[str, int],
    common: torch.dtype,
    strings: list[str],
) -> Any:
    text = str(argument.real_type)
    if text.startswith("Optional[") and source.random() < 0.5:
        return None
    if argument.has_default_value() and "Tensor" not in text and source.random() < 0.5:
        return argument.default_value
    if "Tensor" in text:
        rank = ranks.setdefault(argument.name, source.choice([1, 2, 2, 3, 3, 4]))
        dtype = common if source.random() < 0.7 else source.choice(_DTYPES)
        made = [torch.empty([source.choice(pool) for _ in range(rank)], dtype=dtype, device="meta") for _ in range(2)]
        return made if "List[" in text else made[0]
    plain = text.removeprefix("Optional[").removesuffix("]")
    if plain.startswith("List[int"):
        return [source.choice(pool) for _ in range(source.randint(1, 3))]
    if plain == "int" and "dtype" in argument.name:
        return argument.default_value if argument.has_default_value() else 5
    return {
        "int": lambda: source.choice([0, 1, 2, 3, 4, 8]),
        "float": lambda: source.choice([0.5, 1.0, 2.0]),
        "bool": lambda: source.random() < 0.5,
        "str": lambda: source.choice(strings or ["x"]),
        "number": lambda: source.choice([1, 2.0]),
    }.get(plain, lambda: argument.default_value)()


def outputs(result: Any) -> Outputs:
    """Return shapes and dtypes of what a call returns."""
    items = result if isinstance(result, tuple | list) else (result,)
    return tuple((tuple(one.shape), one.dtype) if isinstance(one, torch.Tensor) else None for one in items)


def compare(root: Path, work: Path, with_kernels: bool = True, module: Path | None = None) -> dict[str, Any]:
    """Adopt a repository, register its module, and compare every meta function, and every kernel, that the client has.

    Args:
        root: The repository.
        work: Directory of what is written and compiled.
        with_kernels: If false, the client's kernels are not compiled.
        module: Module of an earlier adoption, which is registered as it is; by default it is written anew.
    """
    output = work / f"{re.sub(chr(92) + 'W', '_', root.name)}_operators.py"
    output.unlink(missing_ok=True)
    report = adopt(root, output, tests=False)
    drifted = module is not None and adopt(root, module, write=False, tests=False).drifted
    if module is not None:
        output = module
        for source in sorted({source for one in report.decisions for source in one.sources}):
            ascend_graph.load_prototypes(root / source)
    findings, known = read_repository(root)
    refused, libraries = define(findings)
    not_compiled = compile_metas(findings, root, work)
    expected = {}
    unseen: dict[str, str] = {}
    attempts = Attempts(work / MARKER)
    for one in report.decisions:
        if one.registers and one.eager and one.has_meta and one.relation is not None and one.name not in refused:
            found = _expected(one, findings, attempts)
            if isinstance(found, str):
                unseen[one.name] = found
            else:
                expected[one.name] = found
    _keep_metas(report.decisions, refused, libraries)
    failed = _register(output, refused)
    equal, wrong, client_wrong, narrower = _compare_metas(report.decisions, expected, failed)
    skipped = {*failed, *refused} if with_kernels else {one.name for one in report.decisions}
    kernels = _compare_kernels(report.decisions, findings, known, skipped, root, work, attempts)
    wrong |= kernels.pop("differs")
    del libraries
    summary = report.as_json()
    return {
        "operators": summary["operators"],
        "registered": summary["registered"] - len(failed),
        "by_names": summary["by_names"],
        "with_lines": summary["with_arguments"],
        "undecided": len(summary["undecided"]),
        "impossible": len(summary["impossible"]),
        "by_prototype": summary["by_prototype"],
        "with_relation": summary["with_relation"],
        "with_meta": summary["with_meta"],
        "metas_kept": sum(one.registers and one.has_meta and one.relation is None for one in report.decisions),
        "wrong": len(wrong) + len(failed),
        "kernels_equal": len(kernels["equal"]) if with_kernels else None,
        "kernels_narrower": len(kernels["narrower"]) if with_kernels else None,
        "metas_equal": len(equal),
        "metas_client_wrong": len(client_wrong),
        "narrower": len(narrower),
        "not_compared": len(unseen),
        "lines_theirs": summary["lines_theirs"],
        "lines_ours": summary["lines_ours"],
        "drifted": drifted,
        "seconds": summary["seconds"],
        "details": {
            "wrong": wrong, "failed": failed, "client_wrong": client_wrong, "narrower": narrower, "not_compared": unseen,
            "refused": refused, "not_compiled": not_compiled, "kernels_narrower": kernels["narrower"],
            "kernels_not_run": kernels["refused"], "kernels_not_compiled": kernels["not_compiled"],
        },
    }  # fmt: skip


def _compare_metas(
    decisions: Iterable[Decision], expected: dict[str, Any], failed: dict[str, str]
) -> tuple[list[str], dict[str, str], dict[str, str], dict[str, str]]:
    """Return the operators whose relations are as the client's metas, and those that differ: ours, the client's, narrower ones."""
    equal: list[str] = []
    wrong: dict[str, str] = {}
    client_wrong: dict[str, str] = {}
    narrower: dict[str, str] = {}
    for name, made in expected.items():
        if name in failed:
            continue
        (decision,) = [one for one in decisions if one.name == name]
        verdict, detail = _verdict(decision, made)
        if verdict == "equal":
            equal.append(name)
        elif verdict == "narrower":
            narrower[name] = detail
        elif any("says otherwise" in line for line in decision.evidence):
            client_wrong[name] = detail
        else:
            wrong[name] = detail
    return equal, wrong, client_wrong, narrower


def _compare_kernels(
    decisions: Iterable[Decision],
    findings: Findings,
    known: Known,
    skipped: set[str],
    root: Path,
    work: Path,
    attempts: Attempts,
) -> dict[str, Any]:
    """Compare what the module registered with the client's kernels; return what differs, by operator and verdict."""
    chosen = {one.name: one for one in decisions if one.registers and one.name not in skipped}
    chosen = {name: one for name, one in chosen.items() if one.relation is not None or one.meta}
    functions: dict[str, CppFunction] = {}
    for bound in bound_operators(findings, known):
        name = bound.definition.schema.qualified_name if bound.definition is not None else ""
        if name in chosen and bound.bound.function is not None:
            functions[name] = bound.bound.function
    for one in findings.implementations:
        if one.name in chosen and not one.is_meta and isinstance(one.function, CppFunction) and one.function.name:
            functions.setdefault(one.name, one.function)
    found: dict[str, Any] = {"differs": {}, "narrower": {}, "refused": {}, "equal": {}}
    kernels, found["not_compiled"] = compile_kernels(functions, root, work)
    for name, kernel in kernels.items():
        if f"kernel {name}" in attempts.ended:
            found["refused"][name] = f"the kernel {ENDS}"
            continue
        with attempts.of(f"kernel {name}"):
            verdict, detail = check_kernel(
                chosen[name],
                _overload(chosen[name], registered=True),
                kernel,
                functions[name],
                lambda function: roles_of(function, known, findings.kernel_files),
            )
        found[verdict][name] = detail
    return found


def _expected(
    decision: Decision, findings: Findings, attempts: Attempts
) -> list[tuple[list[Any], dict[str, Any], Outputs]] | str:
    if f"meta {decision.name}" in attempts.ended:
        return f"its meta function {ENDS}"
    overload = _overload(decision)
    metas = [one for one in findings.implementations if one.name == decision.name and one.is_meta]
    meta: Callable[..., Any] | None = None
    if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "Meta"):
        meta = next((python_meta(one.function) for one in metas if isinstance(one.function, PythonFunction)), None)
        if meta is None:
            return "its meta function is neither compiled nor Python that stands alone"
    made = []
    with attempts.of(f"meta {decision.name}"):
        for args, kwargs in itertools.islice(calls(overload._schema, _strings(metas, decision), 1), TRIES):
            try:
                result = overload(*args, **kwargs) if meta is None else meta(*args, **kwargs)
            except Exception:
                continue
            made.append((args, kwargs, outputs(result) if overload._schema.returns else ()))
            if len(made) == CALLS:
                break
    return made or "its meta function refuses all random calls"


def _strings(metas: list[Implementation], decision: Decision) -> list[str]:
    texts = [one.function.body if isinstance(one.function, CppFunction) else "" for one in metas]
    texts.append(decision.relation or "")
    return sorted(set(re.findall(r'"([A-Za-z_]{1,12})"', " ".join(texts))))


def _overload(decision: Decision, *, registered: bool = False) -> Any:
    """Return a client's operator, or the registered one if another stands for it."""
    path = decision.eager
    if registered and decision.needs_operator and decision.defined_from:
        path = "torch.ops." + decision.defined_from[0].partition("(")[0].replace("::", ".")
    found: Any = torch.ops
    for part in path.split(".")[2:]:
        found = getattr(found, part)
    return found if isinstance(found, torch._ops.OpOverload) else getattr(found, found.overloads()[0])


def _keep_metas(decisions: Iterable[Decision], refused: dict[str, str], libraries: dict[str, Any]) -> None:
    """Stand in for the meta functions that the module keeps and that are not loaded here."""
    for one in decisions:
        if one.registers and one.has_meta and one.relation is None and one.name not in refused:
            overload = _overload(one)
            if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "Meta"):
                namespace, _, name = one.name.partition("::")
                libraries[namespace].impl(name, _kernel, "Meta")


def _register(output: Path, refused: dict[str, str]) -> dict[str, str]:
    """Run the module, region by region so that one failure does not hide the others; return the failures."""
    text = output.read_text()
    scope: dict[str, Any] = {"__file__": str(output), "__name__": output.stem}
    failed = {}
    parts = re.split(r"^(?=# adopt: )", text, flags=re.MULTILINE)
    for part in parts:
        match = re.match(r"# adopt: (.+?) [0-9a-f]{12}(?: [0-9a-f]{8})?\n", part)
        if match is None or match[1] in refused:
            continue
        try:
            exec(compile(part, str(output), "exec"), scope)
        except Exception as error:
            failed[match[1]] = "".join(traceback.format_exception_only(error)).strip()
    return failed


def _verdict(decision: Decision, made: list[tuple[list[Any], dict[str, Any], Outputs]]) -> tuple[str, str]:
    overload = _overload(decision, registered=True)
    refusals, detail = 0, ""
    for args, kwargs, expected in made:
        try:
            result = overload(*args, **kwargs)
        except Exception as error:
            refusals += 1
            detail = detail or str(error).splitlines()[0]
            continue
        found = outputs(result) if overload._schema.returns else ()
        if found != expected:
            return "differs", f"{decision.relation}: {found}, and the client says {expected}"
    if refusals:
        return "narrower", f"{refusals} of {len(made)} calls are refused: {detail}"
    return "equal", ""


if __name__ == "__main__":
    import json

    print(
        json.dumps(compare(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3:] != ["--no-kernels"])),
        flush=True,
    )

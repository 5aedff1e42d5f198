"""Comparison of adopted operators with their clients' own C++ kernels, in one process of the host runtime.

The files with the kernels are compiled as they are, but for calls of aclnn functions: those record their tensors instead. Random
calls on small tensors are made of the compiled function and of what the module has registered. Shapes, dtypes and strides must
be equal, and each argument that stands where the aclnn function writes must be marked in the schema.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import random
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch_npu  # noqa: F401  the device

from ascend_graph.adoption.cpp.functions import CppFunction, close_of
from ascend_graph.adoption.cpp.preprocessor import conditions_at
from ascend_graph.adoption.decision import Decision
from ascend_graph.adoption.ge_binding import NoBindingError
from ascend_graph.environment import toolkit_directory

#: Accepted calls that are compared, and calls that are tried for them, of one operator.
CALLS, TRIES = 8, 300
#: Number of files that are compiled together.
GROUP = 12
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"][^>\"]+[>\"]).*$", re.MULTILINE)
_CALL = re.compile(r"\b[A-Z]\w*\s*\(\s*(aclnn[A-Z0-9]\w*)\s*,")
_REGISTRATION = re.compile(r"\b(?:PYBIND11_MODULE|TORCH_LIBRARY\w*)\s*\((?:[^()]|\([^()]*\))*\)\s*(?=\{)")
_PRELUDE = """
#pragma once
#include <torch/extension.h>
#include <type_traits>
namespace adopt_check {
using Call = std::pair<std::string, std::vector<std::pair<int64_t, int64_t>>>;
inline std::vector<Call> &calls() { static std::vector<Call> all; return all; }
template <typename T> void note(Call &call, int64_t position, const T &value)
{
    using U = std::decay_t<T>;
    if constexpr (std::is_same_v<U, at::Tensor>) {
        call.second.emplace_back(position, value.defined() ? (int64_t)value.data_ptr() : 0);
    } else if constexpr (std::is_same_v<U, std::optional<at::Tensor>>) {
        if (value.has_value() && value->defined()) call.second.emplace_back(position, (int64_t)value->data_ptr());
    } else if constexpr (std::is_same_v<U, at::TensorList> || std::is_same_v<U, std::vector<at::Tensor>>) {
        for (const auto &one : value) call.second.emplace_back(position, one.defined() ? (int64_t)one.data_ptr() : 0);
    }
}
template <typename... Args> void record(const char *name, Args &&...args)
{
    Call call{name, {}};
    int64_t position = 0;
    (note(call, position++, args), ...);
    call.second.emplace_back(position, -1);
    calls().push_back(call);
}
template <typename... Args> uint32_t launched(Args &&...) { return 0; }
#define ACLRT_LAUNCH_KERNEL(name) ::adopt_check::launched
inline std::vector<Call> taken() { auto all = calls(); calls().clear(); return all; }
}
"""


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A compiled kernel and what reads its calls."""

    function: Any
    taken: Any


def compile_kernels(
    functions: dict[str, CppFunction], root: Path, work: Path
) -> tuple[dict[str, CompiledKernel], list[str]]:
    """Compile the files of functions; return the kernels by operator, and the files that do not compile."""
    if not functions:
        return {}, []
    if not (work / "prelude.h").exists() or (work / "prelude.h").read_text() != _PRELUDE:
        (work / "prelude.h").write_text(_PRELUDE)
        (work / "prelude.h.gch").unlink(missing_ok=True)
    command = [*_compiler(root), "-x", "c++-header", str(work / "prelude.h"), "-o", str(work / "prelude.h.gch")]
    if not (work / "prelude.h.gch").exists():
        subprocess.run(command, check=True, capture_output=True)
    files = sorted({one.file for one in functions.values()})
    found: dict[str, CompiledKernel] = {}
    failed: list[str] = []
    groups = [files[start : start + GROUP] for start in range(0, len(files), GROUP)]
    while groups:
        group = groups.pop(0)
        module, broken = _build(group, functions, root, work)
        if module is not None:
            found |= _kernels(module, group, functions)
        elif broken:
            failed += broken
            left = [one for one in group if one not in {text.partition(": ")[0] for text in broken}]
            groups[:0] = [left] if left else []
        else:
            groups[:0] = [group[: len(group) // 2], group[len(group) // 2 :]]
    return found, failed


def _compiler(root: Path) -> list[str]:
    packages = Path(torch.__file__).parent.parent
    includes = [packages / p for p in ("torch/include", "torch/include/torch/csrc/api/include", "torch_npu/include")]
    includes += [packages / "torch_npu/include/third_party" / p for p in ("acl/inc", "hccl/inc", "op-plugin")]
    includes += [Path(sysconfig.get_paths()["include"]), root, toolkit_directory() / "include"]
    includes += sorted(
        {one.parent for one in root.rglob("*") if one.name in ("include", "inc", "csrc") and one.is_dir()}
    )
    includes += sorted(one for one in root.rglob("*") if one.name in ("include", "inc") and one.is_dir())
    return ["g++", "-std=c++17", "-O0", "-w", "-fPIC", "-DTORCH_EXTENSION_NAME=adopted", *(f"-I{p}" for p in includes)]


def _build(group: list[str], functions: dict[str, CppFunction], root: Path, work: Path) -> tuple[Any, list[str]]:
    """Return the module of a group of files, or the files with errors."""
    headers: dict[str, None] = {}
    bodies = []
    bound = []
    for number, file in enumerate(group):
        text = (root / file).read_text(errors="replace")
        for match in _INCLUDE.finditer(text):
            name = match[1]
            if name[1:].startswith("aclrtlaunch_"):
                continue  # What a kernel's compiler makes; a launch does nothing here.
            beside = (root / file).parent / name[1:-1]
            line = f'#include "{beside}"' if name[0] == '"' and beside.exists() else f"#include {name}"
            conditions = conditions_at(text, match.start())
            guarded = f"#if {' && '.join(f'({one})' for one in conditions)}\n{line}\n#endif"
            headers[guarded if conditions and "not" not in " ".join(conditions) else line] = None
        bodies.append(f'namespace f{number} {{\n#line 1 "{file}"\n{_prepared(text)}\n}}\n')
        for operator, one in functions.items():
            if one.file == file:
                types = ", ".join(p.type for p in one.parameters)
                bound.append(
                    f'm.def("{_name(operator)}", static_cast<{one.returns} (*)({types})>(&f{number}::{one.name}));'
                )
    text = '#include "prelude.h"\n' + "\n".join(headers) + "\n" + "".join(bodies)
    key = f"adopted_{hashlib.sha256((text + ''.join(bound)).encode()).hexdigest()[:16]}"
    text += (
        f'#line 1 "bound"\nPYBIND11_MODULE({key}, m) {{\nusing namespace at;\nm.def("taken", &adopt_check::taken);\n'
    )
    source = work / f"{key}.cpp"
    source.write_text(text + "\n".join(bound) + "\n}\n")
    packages = Path(torch.__file__).parent.parent
    library = work / f"{key}.so"
    linked = [f"-L{packages / 'torch/lib'}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
    linked += [f"-L{packages / 'torch_npu/lib'}", "-ltorch_npu"]
    command = [*_compiler(root), f"-I{work}", "-shared", str(source), "-o", str(library), *linked]
    done = None if library.exists() else subprocess.run(command, capture_output=True, text=True, check=False)
    if done is not None and done.returncode:
        errors = [line for line in done.stderr.splitlines() if ": error:" in line or ": fatal error:" in line]
        named = {one: next((e for e in errors if e.startswith(one)), "") for one in group}
        broken = [f"{one}: {text}" for one, text in named.items() if text]
        if not broken and len(group) == 1:
            broken = [f"{group[0]}: {(errors or done.stderr.splitlines() or ['?'])[0]}"]
        return None, broken
    spec = importlib.util.spec_from_file_location(key, library)
    assert spec is not None
    before = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_LOCAL)
    try:
        module = importlib.util.module_from_spec(spec)
        assert spec.loader is not None
        spec.loader.exec_module(module)
    except ImportError as error:
        return None, [f"{one}: {error}" for one in group]
    finally:
        sys.setdlopenflags(before)
    return module, []


def _prepared(text: str) -> str:
    """Return a file without its includes and registrations, whose aclnn calls are recorded."""
    text = _INCLUDE.sub("", text)
    while (match := _REGISTRATION.search(text)) is not None:
        end = close_of(text, match.end())
        removed = text[match.start() : end + 1]
        text = text[: match.start()] + "\n" * removed.count("\n") + text[end + 1 :]
    return _CALL.sub(r'::adopt_check::record("\1",', text)


def _name(operator: str) -> str:
    return re.sub(r"\W", "_", operator)


def _kernels(module: Any, group: list[str], functions: dict[str, CppFunction]) -> dict[str, CompiledKernel]:
    return {
        operator: CompiledKernel(getattr(module, _name(operator)), module.taken)
        for operator, one in functions.items()
        if one.file in group
    }


def check_kernel(
    decision: Decision,
    overload: Any,
    kernel: CompiledKernel,
    function: CppFunction,
    roles: Callable[[str], str],
) -> tuple[str, str]:
    """Return how an operator compares with its kernel, and what shows it."""
    accepted = refused = 0
    detail = ""
    kernel.taken()
    schema = overload._schema
    marked = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    for args in itertools.islice(random_calls(schema, decision, function, 7), TRIES):
        try:
            result = kernel.function(*args)
        except Exception:
            kernel.taken()
            continue
        written = _written(kernel.taken(), args, schema, roles)
        if written is None or written - marked:
            return "differs", f"writes {sorted(written - marked) if written else 'unknown arguments'}"
        accepted += 1
        expected = _outputs(result) if schema.returns else ()
        try:
            found = _outputs(overload(*_on_meta(args, schema), **_keywords(args, schema))) if schema.returns else ()
        except Exception as error:
            refused += 1
            detail = detail or str(error).splitlines()[0]
            continue
        if found != expected:
            shapes = [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]
            return (
                "differs",
                f"{decision.relation or decision.meta}: {found}, and the kernel makes {expected} of {shapes}",
            )
        if accepted - refused >= CALLS:
            break
    if not accepted:
        return "refused", "the kernel refuses all random calls"
    return ("narrower", f"{refused} of {accepted} calls are refused: {detail}") if refused else ("equal", "")


def _written(calls: Any, args: list[Any], schema: Any, roles: Callable[[str], str]) -> set[str] | None:
    """Return the arguments that stand where an aclnn function writes; None if its parameters are not known."""
    memory: dict[int, str] = {}
    for argument, value in zip(schema.arguments, args, strict=True):
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, torch.Tensor) and one.numel():
                memory[one.data_ptr()] = argument.name
    found = set()
    for name, tensors in calls:
        try:
            letters = roles(name)
        except NoBindingError:
            return None if memory else set()
        count = tensors[-1][0]
        if count != len(letters):
            continue
        found |= {
            memory[pointer] for position, pointer in tensors[:-1] if letters[position] in "wx" and pointer in memory
        }
    return found


def _outputs(result: Any) -> tuple[Any, ...]:
    items = result if isinstance(result, tuple | list) else (result,)
    return tuple(
        (tuple(one.shape), one.dtype, _strides(one)) if isinstance(one, torch.Tensor) else None for one in items
    )


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the strides that matter: those of dimensions with several items."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return tuple(stride for size, stride in sizes if size > 1) if tensor.numel() else ()


def _on_meta(args: list[Any], schema: Any) -> list[Any]:
    def moved(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to("meta")
        return [moved(one) for one in value] if isinstance(value, list) else value

    return [moved(v) for a, v in zip(schema.arguments, args, strict=True) if not a.kwarg_only]


def _keywords(args: list[Any], schema: Any) -> dict[str, Any]:
    return {
        a.name: v.to("meta") if isinstance(v, torch.Tensor) else v
        for a, v in zip(schema.arguments, args, strict=True)
        if a.kwarg_only
    }


@dataclass(slots=True)
class _Hints:
    """What the checks of a function say of its tensors, for random calls that it accepts."""

    ranks: dict[str, int]
    dtypes: dict[str, list[torch.dtype]]
    strings: list[str]


def _hints(schema: Any, decision: Decision, function: CppFunction) -> _Hints:
    ranks: dict[str, int] = {}
    dtypes: dict[str, list[torch.dtype]] = {}
    for argument, parameter in zip(schema.arguments, function.parameters, strict=True):
        name = re.escape(parameter.name)
        stated = re.search(rf"\b{name}(?:\.value\(\))?\.(?:dim|ndimension)\(\)\s*==\s*(\d)", function.body)
        read = re.findall(rf"\b{name}\.(?:size\(|sizes\(\)\[)\s*(\d)", function.body)
        relation = re.search(rf"(?:^|[ ,]){re.escape(argument.name)}\[([^\]]*)\]", decision.relation or "")
        if stated:
            ranks[argument.name] = int(stated[1])
        elif relation and "*" not in relation[1]:
            ranks[argument.name] = relation[1].count(",") + 1
        elif read:
            ranks[argument.name] = max(map(int, read)) + 1
        found = re.findall(rf"\b{name}\.(?:scalar_type|dtype)\(\)\s*==\s*at::k(\w+)", function.body)
        known = {"Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16, "Int": torch.int32}
        known |= {"Long": torch.int64, "Char": torch.int8, "Byte": torch.uint8}
        dtypes[argument.name] = [known[one] for one in found if one in known]
    strings = re.findall(r'["\'](\w{1,12})["\']', f"{decision.relation} {decision.meta} {function.body}")
    return _Hints(ranks, dtypes, sorted(set(strings)) or ["x"])


def random_calls(schema: Any, decision: Decision, function: CppFunction, seed: int) -> Iterator[list[Any]]:
    """Yield arguments of random calls on small tensors."""
    source = random.Random(seed)
    hints = _hints(schema, decision, function)
    usual: dict[str, int] = {}
    for attempt in itertools.count():
        pool = source.sample([1, 2, 3, 4, 8, 16], source.choice([1, 1, 2, 3]))
        common = source.choice(_DTYPES[:3])
        if attempt % 4 == 0:
            usual = dict(hints.ranks) if source.random() < 0.8 else {}
        yield [_value(one, source, pool, usual, common, hints) for one in schema.arguments]


def _value(
    argument: Any, source: random.Random, pool: list[int], ranks: dict[str, int], common: torch.dtype, hints: _Hints
) -> Any:
    text = str(argument.real_type)
    if text.startswith("Optional[") and source.random() < 0.4:
        return None
    plain = text.removeprefix("Optional[").removesuffix("]") if text.startswith("Optional[") else text
    if "Tensor" in plain:
        rank = ranks.setdefault(argument.name, source.choice([1, 2, 2, 3, 3, 4, 4, 5]))
        dtype = common if source.random() < 0.6 else source.choice(_DTYPES)
        if hints.dtypes[argument.name] and source.random() < 0.9:
            dtype = source.choice(hints.dtypes[argument.name])
        made = [torch.zeros([source.choice(pool) for _ in range(rank)], dtype=dtype, device="npu") for _ in range(2)]
        return made if plain.startswith("List[") else made[0]
    if plain.startswith("List[int"):
        return [source.choice([1, 2, 3]) for _ in range(source.choice([1, 2, 2, 3]))]
    if plain.startswith("List[float"):
        return [source.choice([0.5, 1.0, 2.0]) for _ in range(source.choice([0, 3, 6]))]
    if plain == "int" and "dtype" in argument.name:
        return argument.default_value if argument.has_default_value() else 5
    return {
        "int": lambda: source.choice([0, 1, 1, 2, 2, 3, 4, 8]),
        "float": lambda: source.choice([0.5, 1.0, 2.0]),
        "bool": lambda: source.random() < 0.5,
        "str": lambda: source.choice(hints.strings),
        "number": lambda: source.choice([1, 2.0]),
        "ScalarType": lambda: source.choice(_DTYPES[:3]),
    }.get(plain, lambda: argument.default_value)()

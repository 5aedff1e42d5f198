"""Checks of operators: the prototype, function, header and library of each, and whether they match."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.binding.calls.installed import prototype_difference
from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.installation import tried
from ascend_graph.doctor.libraries import Library, functions_of, read_library
from ascend_graph.doctor.packages import Place, places, unsearched
from ascend_graph.doctor.wheels.contents import LIBRARY
from ascend_graph.environment import real_cann
from ascend_graph.errors import AscendGraphError
from ascend_graph.host import host_environment
from ascend_graph.prototypes import OpPrototype
from ascend_graph.prototypes.catalog import package_directories
from ascend_graph.prototypes.loading import read_prototypes
from ascend_graph.sources.installed import made_with
from ascend_graph.versions import installed

#: Maximum directory depth of the search for unselected packages.
_DEPTH = 7
#: Symbols of PyTorch and of torch_npu, by the namespaces in their names.
_TORCH = re.compile(r"_Z\w*?(2at|3c10|5torch|6caffe2|6at_npu|7c10_npu|9torch_npu)")


def seen(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as operators see it: that of the host runtime if there is no CANN."""
    try:
        return dict(environment) if real_cann(environment) else host_environment(environment, None)
    except AscendGraphError:
        return dict(environment)


def named_operator(name: str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about an op type or an aclnn function, from files alone."""
    if name.startswith("aclnn"):
        yield from function(name, environment)
        return
    found = prototype(name, environment)
    if found is not None:
        yield Finding(name, f"REG_OP at {found.place}")
    else:
        text = f"no installed operator package defines REG_OP({name})"
        yield Finding(name, text, fix=f'ascend_graph.load_prototypes("…/{name}.h")')
    yield from function(f"aclnn{name}", environment, subject=name)


def prototype(op_type: str, environment: Mapping[str, str]) -> OpPrototype | None:
    """Return the prototype of an op type from the first operator package that has it, or None."""
    for directory in package_directories(seen(environment)):
        try:
            known = read_prototypes(directory).prototypes
        except AscendGraphError:
            continue
        for candidate in known:
            if candidate.op_type == op_type:
                return candidate
    return None


def function(
    name: str, environment: Mapping[str, str], declared: AclnnFunction | None = None, subject: str = ""
) -> Iterator[Finding]:
    """Yield findings about an aclnn function: its library, its header, and whether both are from one package.

    Args:
        name: The function.
        environment: The environment that selects operator packages.
        declared: The declaration that a caller uses, if known.
        subject: The subject of the findings; the function's name by default.
    """
    subject = subject or name
    known = places(seen(environment))
    serving = next((place for place in known if name in place.functions), None)
    if serving is None:
        moved = [library for library in unsearched(seen(environment)) if name in functions_of(library)]
        yield _missing(subject, name, known, moved)
        return
    library = serving.functions[name]
    others = [place for place in known if place is not serving and name in place.functions]
    hidden = f"; hides that of {', '.join(str(p.directory) for p in others)}" if others else ""
    version = f", version {serving.version}" if serving.version else ""
    yield Finding(subject, f"{name} is in {library.path}{version}{hidden}")
    if not library.is_for_this_machine:
        text = f"{library.path} is for {library.machine}; this machine is {platform.machine()}"
        yield Finding(subject, text, True, f"install {serving.directory.name} for {platform.machine()}")
    own = serving.declared().get(name)
    if declared is None:
        declared = own or next((d for place in known if (d := place.declared().get(name)) is not None), None)
    if declared is None:
        text = f"no header declares {name}: nobody knows what it takes"
        yield Finding(subject, text, fix=f'ascend_graph.load_aclnn("…/{name}.h")')
        return
    if own is not None and not own.agrees_with(declared):
        versions = [f" (CANN {v})" if (v := made_with(d.file)) else "" for d in (declared, own)]
        text = (
            f"callers go by {declared.place}{versions[0]}: {declared}, and the library's own header, {own.place}{versions[1]}, "
            f"says {own}"
        )
        fix = f'ascend_graph.load_aclnn("{own.file}")  # instead of the other header'
        yield Finding(subject, text, True, fix)
    else:
        yield Finding(subject, f"declared at {declared.place}")


def _missing(subject: str, name: str, known: Sequence[Place], moved: Sequence[Library]) -> Finding:
    where = ", ".join(str(library.path) for place in known for library in place.libraries) or "no library at all"
    elsewhere = [path for path in unselected(known) if name in functions_of_file(path)]
    declared = next((d for place in known if (d := place.declared().get(name)) is not None), None)
    text = f"{name} is not in the libraries that are searched: {where}"
    if declared is not None:
        text += f"; {declared.place} declares it, so that header and library are of different versions"
    torch_npu = installed("torch_npu")
    if moved and torch_npu is not None:
        cann = made_with(moved[0].path)
        text += f". {f'CANN {cann}' if cann else 'This CANN'} has it in {moved[0].path}, where torch_npu {torch_npu.version} does not look"
        return Finding(subject, text, True, "install a later torch_npu, or the CANN that this one was made for")
    later = sorted({f for place in known for f in place.functions if re.fullmatch(rf"{re.escape(name)}_?[vV]\d+", f)})
    if later:
        text += f". What is installed has {', '.join(later)}, with parameters of their own"
    if elsewhere:
        text += f". It is in {', '.join(map(str, elsewhere))}, which is not selected"
        return Finding(subject, text, True, _select(name, elsewhere[0].parents[2]))
    fix = f"export ASCEND_CUSTOM_OPP_PATH=PACKAGE_WITH_{name}  # or install a CANN that has the function"
    return Finding(subject, text, True, fix)


def _select(name: str, package: Path) -> str:
    rest = os.environ.get("ASCEND_CUSTOM_OPP_PATH")
    chosen = shlex.quote(f"{package}:{rest}" if rest else str(package))
    return f"export ASCEND_CUSTOM_OPP_PATH={chosen}  # before python starts: {name} is then found"


def functions_of_file(path: Path) -> frozenset[str]:
    """Return the aclnn functions of a library's file."""
    library = read_library(path)
    return frozenset() if library is None else functions_of(library)


def unselected(known: Iterable[Place]) -> Iterator[Path]:
    """Yield libraries of unselected operator packages in installed Python packages or under the current directory."""
    selected = {library.path.resolve() for place in known for library in place.libraries}
    for root in dict.fromkeys([Path.cwd(), *(Path(p) for p in sys.path if p.endswith("-packages"))]):
        for directory, subdirectories, files in os.walk(root):
            depth = len(Path(directory).relative_to(root).parts)
            subdirectories[:] = (
                sorted(s for s in subdirectories if s[0] != "." and s != "__pycache__") if depth < _DEPTH else []
            )
            path = Path(directory) / LIBRARY.name
            if LIBRARY.name in files and path.parts[-3:] == LIBRARY.parts and path.resolve() not in selected:
                yield path


# ----------------------------------------------------------------------------------------------------------- extensions


def extension(path: Path) -> Iterator[Finding]:
    """Check that the installed torch and torch_npu have the symbols that a library of operators needs."""
    library = read_library(path)
    if library is None:
        yield Finding(str(path), "is not a shared library of 64 bits", True, "name the .so file of an extension")
        return
    if not library.is_for_this_machine:
        text = f"is for {library.machine}; this machine is {platform.machine()}"
        yield Finding(str(path), text, True, f"build it on {platform.machine()}")
        return
    asked = {name for name in library.undefined if _TORCH.match(name)}
    linked = [name for name in library.needed if name.startswith(("libtorch", "libc10"))]
    found = _torch_symbols()
    if not found:
        yield tried(str(path), lambda: "torch is not installed")
        return
    missing = sorted(asked - found)
    if not missing:
        yield Finding(
            str(path),
            f"links {', '.join(linked) or 'nothing of torch'}; torch has all {len(asked)} symbols that it needs",
        )
        return
    hidden = next((text for one in missing if (text := hidden_declaration(one))), "")
    yield Finding(
        str(path),
        f"the installed torch lacks {len(missing)} of {len(asked)} symbols that it needs, {missing[0]} among them: "
        f"{why_missing(missing[0], found)}",
        True,
        f"write the extension without it: {hidden}"
        if hidden
        else "pip install --no-build-isolation --no-deps --force-reinstall PROJECT  # compiles it against the installed torch",
    )


def hidden_declaration(symbol: str) -> str:
    """Return which header of the installed torch_npu declares a function that none of its libraries exports; else empty."""
    names, rest = [], re.sub(r"\A_ZNK?", "", symbol)
    while (length := re.match(r"\d+", rest)) is not None:
        names.append(rest[length.end() : length.end() + int(length[0])])
        rest = rest[length.end() + int(length[0]) :]
    package = installed("torch_npu")
    if package is None or len(names) < 2 or not names[0].endswith("_npu"):
        return ""
    include = package.directory / "include"
    words = (
        rf"\b(?:class|struct|namespace)\s+(?:\w+(?:::|\s+))*{names[-2]}\b".encode(),
        rf"\b{names[-1]}\b".encode(),
    )
    for header in sorted(include.glob("torch_npu/**/*.h")):
        text = header.read_bytes()
        if all(re.search(word, text) for word in words):
            return f"{header.relative_to(include)} declares {'::'.join(names)}, and no library of torch_npu exports it"
    return ""


def why_missing(symbol: str, found: frozenset[str]) -> str:
    """Return the mismatch with the library's torch that a missing symbol of torch shows."""
    if hidden := hidden_declaration(symbol):
        return f"{hidden}, so that compiling it again changes nothing"
    own = "cxx11" in symbol
    installed_new = any("__cxx11" in name for name in found) if found else True
    # Ss, and Sb<…> in templates, are the strings of the old ABI.
    if not own and re.search(r"(Ss|RKSs|KSs)", symbol) and installed_new:
        return "it was compiled with the old ABI of strings (_GLIBCXX_USE_CXX11_ABI=0), and this torch has the new one"
    if own and not installed_new:
        return "it was compiled with the new ABI of strings (_GLIBCXX_USE_CXX11_ABI=1), and this torch has the old one"
    return "it was compiled against another version of torch"


def torch_symbols() -> frozenset[str]:
    """Return the symbols that the installed torch and torch_npu define; empty if they are not installed."""
    return _torch_symbols()


def _torch_symbols() -> frozenset[str]:
    found: set[str] = set()
    for name in ("torch", "torch_npu"):
        package = installed(name)
        for path in sorted(package.directory.glob("lib/*.so")) if package is not None else ():
            library: Library | None = read_library(path)
            found |= library.defined if library is not None else frozenset()
    return frozenset(found)


# ----------------------------------------------------------------------------------------------- of a process with torch


def registered(modules: Sequence[str], names: Sequence[str]) -> Iterator[Finding]:
    """Import modules in this process and yield findings about the operators that they register, or about named ones.

    Args:
        modules: Modules, ``.py`` files or libraries that register operators when they are imported.
        names: ``namespace::operator``; if empty, all operators that are registered with ascend_graph.
    """
    from ascend_graph.registration.lookup import OperatorNotFoundError, find_overload, import_extension
    from ascend_graph.registration.registered import find_registered, registered_ops
    from ascend_graph.workers import import_operators

    for module in modules:
        if module.endswith(".so"):
            import_extension(module)
        else:
            import_operators(module)
    if not names and not registered_ops():
        text = f"{', '.join(modules)} registers no operator with ascend_graph"
        yield Finding("operators", text, True, "doctor MODULE --op namespace::operator  # any operator of torch")
    overloads = [op.overload for op in registered_ops()]
    if names:
        overloads = []
        for name in names:
            known = find_registered(name)
            try:
                overloads.append(find_overload(name) if known is None else known.overload)
            except OperatorNotFoundError as error:
                yield Finding(name, str(error), True, f"doctor MODULE --op {name}  # the module that defines it")
    for overload in overloads:
        yield from _overload(overload)


def _overload(overload: object) -> Iterator[Finding]:
    import torch

    from ascend_graph.registration.registered import find_registered

    assert isinstance(overload, torch._ops.OpOverload)
    subject = overload.name()
    op = find_registered(subject)
    if op is not None and op.prototype is not None:
        yield Finding(subject, f"REG_OP({op.op_type}) at {op.prototype.place}")
        difference = prototype_difference(op.prototype)
        if difference is not None:
            yield Finding(subject, str(difference), difference.breaks, difference.fix)
    if op is not None:
        for what, why in op.evidence.items():
            if what != "CANN":  # which is looked at again, for it is not a matter of the registration
                yield Finding(subject, f"{what}: {why}")
    if op is not None and op.call is not None:
        yield from function(op.call.function, os.environ, op.call.declared, subject)
        return
    for key in ("PrivateUse1", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(subject, key):
            break
    else:
        text = "has no kernel for any device"
        yield Finding(subject, text, True, "import the extension that has its kernel: doctor MODULE --op " + subject)
        return
    place = _registered_at(subject, key)
    library = _library_with(place)
    yield Finding(
        subject, f"kernel for {key}, registered at {place or 'an unknown place'}{f', in {library}' if library else ''}"
    )
    called = _called(library, op.op_type if op is not None else overload._schema.name.rpartition("::")[2])
    if called is not None:
        yield from function(called, os.environ, subject=subject)
    has_meta = torch._C._dispatch_has_kernel_for_dispatch_key(subject, "Meta") or key == "CompositeImplicitAutograd"
    entry = torch._library.simple_registry.singleton.find(subject).fake_impl
    if not has_meta and entry.kernel is None and key != "CompositeExplicitAutograd":
        fix = f'ascend_graph.register_op("OpType", eager=torch.ops.{subject.replace("::", ".")}, shape="…")  # ascend-graph infer {subject}'
        yield Finding(subject, "has no meta function: graphs cannot have it", True, fix)


def _registered_at(name: str, key: str) -> str:
    """Return the source file that registered a kernel according to the dispatcher, or an empty string."""
    import torch

    for line in torch._C._dispatch_dump(name).splitlines():
        found = re.match(rf"{key}(?:\[alias\])?: registered at (\S+?):\d+", line)
        if found is not None:
            return found[1]
    return ""


def _library_with(place: str) -> Path | None:
    """Return the loaded library that contains a registering source file's name, which a macro left in it, or None."""
    if not place or place == "/dev/null":
        return None
    mapped = re.findall(r"\s(/\S+\.so\S*)$", Path("/proc/self/maps").read_text(encoding="utf-8"), re.MULTILINE)
    for path in map(Path, dict.fromkeys(mapped)):
        if "python" not in path.name and path.exists() and place.encode() + b"\0" in path.read_bytes():
            return path
    return None


def _called(library: Path | None, name: str) -> str | None:
    """Return the aclnn function that a library calls for an operator, by a string in the library, or None."""
    if library is None:
        return None
    plain = name.replace("_", "").lower()
    texts = {
        found[1].decode() for found in re.finditer(rb"\0(aclnn[A-Z]\w*?)(?:GetWorkspaceSize)?\0", library.read_bytes())
    }
    return next(
        (text for text in sorted(texts) if text[len("aclnn") :].lower() in (plain, plain.removeprefix("npu"))), None
    )

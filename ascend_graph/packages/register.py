"""Function ``register_package``: all operators of an operator package, each registered when it is first looked up.

The schemas are in PyTorch's table from the start, so that searches for schemas and ``torch.export.load`` find the
operators. Kernel, meta function and converter of an operator follow with its first lookup in ``torch.ops``, as
:func:`~ascend_graph.register_op` registers them: all of them or none.
"""

from __future__ import annotations

import contextlib
import difflib
import filecmp
import fnmatch
import gc
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from ascend_graph.binding.calls.finding import PACKAGE_LIBRARY
from ascend_graph.dispatch.announced import AnnouncedOperatorError, Announcement, is_announced
from ascend_graph.dispatch.calls import NAMESPACE
from ascend_graph.eager.operators import operator_exists
from ascend_graph.packages.contents import PackageContents, PackagedOp, read_package
from ascend_graph.packages.locate import locate_package
from ascend_graph.registration.register import register_request
from ascend_graph.registration.registered import RegisteredOp, registry, registry_lock
from ascend_graph.registration.request import RegistrationError, read_request
from ascend_graph.sources.installed import custom_packages, one_state

#: Most operators of the table of those that are left out.
_SHOWN = 20


class PackageWarning(UserWarning):
    """Warning of the operators of a package that are left out, with the reasons."""


class RegisteredPackage:
    """Registered operator package: its operators, those in use, and those that are left out.

    ``package["AddCustom"]`` is the :class:`~ascend_graph.RegisteredOp` of an operator; it is registered if it was not
    used before.
    """

    def __init__(self, contents: PackageContents, namespace: str, request: object) -> None:
        #: The package's directory.
        self.directory = contents.directory
        #: Operators are ``torch.ops.<namespace>.<name>``.
        self.namespace = namespace
        self._contents, self._request = contents, request
        #: Name in torch by op type; none for what is not an operator, such as a header that cannot be read.
        self._names: dict[str, str] = {}
        self._announced: dict[str, Announcement] = {}
        #: Reasons for operators that were never announced.
        self._refused: dict[str, str] = {}
        #: Operators that this package registered.
        self._own: list[RegisteredOp] = []
        self._selected = False

    @property
    def operators(self) -> tuple[str, ...]:
        """Op types that are registered, or can be as far as is known."""
        left_out = self.left_out
        return tuple(sorted(name for name in self._names if name not in left_out))

    @property
    def left_out(self) -> Mapping[str, str]:
        """Reasons by op type for operators that are left out."""
        later = {name: one.refused for name, one in self._announced.items() if one.refused and one.is_waiting}
        return self._refused | later

    @property
    def in_use(self) -> tuple[RegisteredOp, ...]:
        """Operators that have been registered."""
        return tuple(registry[name] for name in self._names.values() if name in registry)

    def __getitem__(self, op_type: str) -> RegisteredOp:
        """Return an operator by its op type, registered.

        Raises:
            KeyError: The package does not have it.
            AnnouncedOperatorError: It is left out; the message says why.
        """
        if op_type in self._refused:
            raise AnnouncedOperatorError(f"{op_type}: {self._refused[op_type]}")
        if op_type in self._announced:
            self._announced[op_type].resolve()
        found = registry.get(self._names.get(op_type, ""))
        if found is None:
            near = difflib.get_close_matches(op_type, self.operators, 3)
            hint = (
                f"; did you mean {' or '.join(near)}?" if near else f"; expected one of {len(self.operators)} op types"
            )
            raise KeyError(f"{op_type}: {self.directory} has no such operator{hint}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    def register_all(self) -> RegisteredPackage:
        """Register all operators now; those that cannot be are left out, with one warning for all of them.

        TorchScript, and other callers below Python, need it: they do not look operators up in ``torch.ops``.
        """
        known = set(self.left_out)
        with _uncollected(), one_state():
            for announced in list(self._announced.values()):
                with contextlib.suppress(AnnouncedOperatorError):
                    announced.resolve()
        self._warn({name: why for name, why in self.left_out.items() if name not in known}, stacklevel=3)
        return self

    def unregister(self) -> None:
        """Unregister the operators, and take back the selection of the package. A second call does nothing."""
        with registry_lock:
            for announced in self._announced.values():
                announced.take_back()
            for op in self._own:
                op.unregister()
            for kept in (self._announced, self._own, self._names, self._refused):
                kept.clear()
            if _packages.get((self.directory, self.namespace)) is self:
                del _packages[self.directory, self.namespace]
            if self._selected:
                self._selected = False
                _deselect(self.directory)

    def __repr__(self) -> str:
        left_out = self.left_out
        text = (
            f"RegisteredPackage({str(self.directory)!r}, namespace={self.namespace!r}): {len(self.operators)} operators, "
            f"{len(self.in_use)} in use, {len(left_out)} left out"
        )
        return f"{text}\n{_table(left_out)}" if left_out else text

    def _announce(self, chosen: Iterable[PackagedOp]) -> None:
        for op in chosen:
            name = f"{self.namespace}::{op.name}"
            if not op.name.isidentifier():
                self._refused[op.op_type] = op.reason
                continue
            self._names[op.op_type] = name
            if name in registry:
                continue
            if operator_exists(name) or is_announced(name):
                self._refused[op.op_type] = (
                    f"{name} exists already, of another library. Write another namespace=, or leave it out with except_="
                )
                continue
            found = Announcement(
                self.namespace, op.schema or f"{op.name}() -> ()", partial(self._register, op), registry_lock
            )
            found.refused = op.reason
            found.announce()
            self._announced[op.op_type] = found

    def _register(self, op: PackagedOp) -> None:
        request = read_request(
            op.op_type,
            eager=None,
            shape=op.relation or None,
            arguments=None,
            meta=None,
            converter=None,
            backward=None,
            samples=None,
            prototype=self._contents.prototype(op.op_type),
            namespace=self.namespace,
        )
        self._own.append(register_request(request))

    def _warn(self, left_out: Mapping[str, str], stacklevel: int) -> None:
        if left_out:
            warnings.warn(
                f"{self.directory}: {len(left_out)} of {len(left_out) + len(self.operators)} operators are left out; register "
                f"with ascend_graph.register_op what you need of them:\n"
                f"{_table(left_out)}",
                PackageWarning,
                stacklevel=stacklevel,
            )


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the collection of garbage: each pass looks at all that torch has, and registrations leave no garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


#: Registered packages by directory and namespace.
_packages: dict[tuple[Path, str], RegisteredPackage] = {}


def register_package(
    package: str | Path,
    *,
    namespace: str = NAMESPACE,
    only: Iterable[str] | None = None,
    except_: Iterable[str] = (),
    shapes: Mapping[str, str] | None = None,
) -> RegisteredPackage:
    """Register all operators of an installed operator package; each is completed when it is first used.

    A package that the environment does not select is selected: its directory is appended to ASCEND_CUSTOM_OPP_PATH of
    this process and of those that it starts. The same call twice is one registration.

    Args:
        package: The package's directory (``opp/vendors/mine``), the name of a vendor that the environment selects, or
            the name of an installed Python distribution that holds the package.
        namespace: The operators are ``torch.ops.<namespace>.<name>``.
        only: Op types to register, or patterns such as ``"Add*"``; all by default.
        except_: Op types or patterns to leave out.
        shapes: Shape relations by op type. Without one, that of the package is taken: from its ``relations.ini``
            (sections ``[OpType]`` with ``shape = …``), or the one that it was built with.

    Returns:
        The registered package. Its ``repr`` has a table of the operators that are left out, and why.

    Raises:
        PackageNotFound: There is no such package.
        RegistrationError: The package is registered with other arguments, or a name in ``only``, ``except_`` or
            ``shapes`` is not in the package.

    Warns:
        PackageWarning: Operators are left out; one warning names all of them.

    >>> import tempfile, pathlib
    >>> package = pathlib.Path(tempfile.mkdtemp(), "vendors", "example")
    >>> _ = (package / "op_proto/inc").mkdir(parents=True)
    >>> _ = (package / "op_proto/inc/op_proto.h").write_text('''
    ... REG_OP(PackageExample)
    ...     .INPUT(x, TensorType({DT_FLOAT}))
    ...     .OUTPUT(y, TensorType({DT_FLOAT}))
    ...     .OP_END_FACTORY_REG(PackageExample)
    ... ''')
    >>> registered = register_package(package, namespace="package_example", shapes={"PackageExample": "x[*s] -> y[*s]"})
    >>> import torch
    >>> torch.ops.package_example.package_example(torch.empty(2, device="meta")).shape
    torch.Size([2])
    >>> len(registered), registered.left_out
    (1, {})
    >>> registered.unregister()
    """
    directory = locate_package(package)
    for what, given in (("only", only), ("except_", except_)):
        if isinstance(given, str):
            raise RegistrationError(f'{what} must be a sequence of names, not a string: write {what}=("{given}",)')
    if not namespace.isidentifier():
        raise RegistrationError(f"namespace={namespace!r}: not an identifier; expected a name such as {NAMESPACE!r}")
    request = (None if only is None else tuple(only), tuple(except_), dict(shapes or {}))
    with registry_lock, _uncollected():
        selected = _select(directory)
        try:
            contents = read_package(directory, request[2])
            earlier = _packages.get((directory, namespace))
            if earlier is not None:
                if earlier._request == request and earlier._contents.digest == contents.digest:
                    return earlier
                if earlier._request != request:
                    raise RegistrationError(
                        f"{directory} is registered already, with only, except_ and shapes {earlier._request}; asked for {request}. "
                        "Write: unregister() of the earlier one first"
                    )
                selected, earlier._selected = selected or earlier._selected, False
                earlier.unregister()
            chosen = _chosen(contents, *request)
        except BaseException:
            if selected:
                _deselect(directory)
            raise
        found = RegisteredPackage(contents, namespace, request)
        found._selected = selected
        found._announce(chosen)
        _packages[directory, namespace] = found
    found._warn(found.left_out, stacklevel=3)
    for other, names in _before(directory, [op.op_type for op in chosen]).items():
        warnings.warn(
            f"{directory}: {other} comes first in {_VARIABLE} and has {', '.join(names[:_SHOWN])}, too: its kernels run, here "
            "as on a device. Name this package before it, or leave them out with except_=",
            PackageWarning,
            stacklevel=2,
        )
    return found


def _before(directory: Path, op_types: Iterable[str]) -> dict[Path, list[str]]:
    """Return the packages that come before one with other kernels for its operators, with the op types of these."""
    found: dict[Path, list[str]] = {}
    for package in custom_packages():
        if package.is_dir() and package.resolve() == directory:
            break
        mine, other = (one / "op_api" / "lib" / PACKAGE_LIBRARY for one in (directory, package))
        if not (mine.exists() and other.exists()) or filecmp.cmp(mine, other, shallow=False):
            continue
        if names := sorted({*op_types} & read_package(package).operators.keys()):
            found[package] = names
    return found


def registered_packages() -> tuple[RegisteredPackage, ...]:
    """Return the packages registered now."""
    return tuple(_packages.values())


def _chosen(
    contents: PackageContents, only: Iterable[str] | None, except_: Iterable[str], shapes: Mapping[str, str]
) -> list[PackagedOp]:
    """Return the operators that the arguments select.

    Raises:
        RegistrationError: A name selects nothing.
    """
    names = list(contents.operators)
    wanted = set(names) if only is None else _matching("only", only, names, contents.directory)
    wanted -= _matching("except_", except_, names, contents.directory)
    _matching("shapes", shapes, names, contents.directory)
    return [op for name, op in contents.operators.items() if name in wanted]


def _matching(argument: str, patterns: Iterable[str], names: list[str], directory: Path) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        hits = fnmatch.filter(names, pattern)
        if not hits:
            near = difflib.get_close_matches(pattern, names, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; expected one of {len(names)} op types"
            raise RegistrationError(f"{argument}: {directory} has no operator {pattern!r}{hint}")
        found.update(hits)
    return found


def _table(left_out: Mapping[str, str]) -> str:
    """Return operators and reasons as lines."""
    width = max(map(len, left_out))
    rows = [f"  {name:{width}}  {' '.join(why.split())}" for name, why in sorted(left_out.items())]
    more = len(rows) - _SHOWN
    return "\n".join([*rows[:_SHOWN], *([f"  … and {more} more: .left_out has them"] if more > 0 else [])])


_VARIABLE = "ASCEND_CUSTOM_OPP_PATH"


def _select(directory: Path) -> bool:
    """Select a package for CANN, and return whether it was not selected before."""
    if any(package.is_dir() and package.resolve() == directory for package in custom_packages()):
        return False
    before = os.environ.get(_VARIABLE, "")
    os.environ[_VARIABLE] = f"{before}{os.pathsep}{directory}" if before else str(directory)
    return True


def _deselect(directory: Path) -> None:
    parts = [part for part in os.environ.get(_VARIABLE, "").split(os.pathsep) if part and part != str(directory)]
    if parts:
        os.environ[_VARIABLE] = os.pathsep.join(parts)
    else:
        os.environ.pop(_VARIABLE, None)

"""Public schemas of a generated library: an operator's name and schema where they differ from the prototype's.

Arguments may be renamed and reordered and may have defaults of their own. Types stay those of the generated schema, as
the C++ kernel is compiled for them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ascend_graph.codegen.declarations import Declaration
from ascend_graph.codegen.eager_library.cpp_operators import NO_FUNCTION, CppOperator
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.arguments import bind
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.generated_schema import (
    AclnnArgumentKind,
    GeneratedArgument,
    OperatorSchema,
    default_of,
    schema_literal,
)
from ascend_graph.binding.op_schema import OpSchema, SchemaArgument
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema
from ascend_graph.prototypes import Attr, AttrValue, Parameter, ParameterKind

_NAME = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*::\s*)?([A-Za-z_]\w*)\s*\Z")
_PAIR = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*([A-Za-z_]\w*)\s*\Z")
#: Types that a schema's text has and a kernel's C++ signature does not distinguish or does not take.
_OTHER_TYPES = re.compile(r"\b(SymInt|number)\b")
_DTYPES = (AclnnArgumentKind.DTYPE, AclnnArgumentKind.DTYPES)
_FLOATS = (AclnnArgumentKind.FLOAT, AclnnArgumentKind.FLOATS, AclnnArgumentKind.SCALAR, AclnnArgumentKind.SCALARS)
_BOOLS = (AclnnArgumentKind.BOOL, AclnnArgumentKind.BOOLS)
#: Input or attr of a prototype: whether it is an input, and its name.
_Key = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class PublicSchema:
    """Operator as its library defines it."""

    schema: OperatorSchema
    namespace: str
    #: Prototype's name of each argument that is called otherwise.
    renamed: Mapping[str, str]


def public_schema(base: OperatorSchema, text: str, arguments: str, package: str, where: str) -> PublicSchema:
    """Return an operator with the name and schema that its author wants.

    Args:
        base: The schema that is generated without a wish.
        text: The schema, or only a name; a namespace is optional. Empty for the generated one.
        arguments: The pairs that names do not settle: ``other: y``, the schema's name first.
        package: The namespace without another one.
        where: The place of the declaration, for messages.

    Raises:
        GenerationError: The schema does not fit the prototype; the message has the schema to write.
    """
    if not text:
        if arguments:
            raise GenerationError(f"{where}: arguments = {arguments}: expected a schema = … with these arguments")
        return PublicSchema(base, package, {})
    if only_name := _NAME.match(text):
        if arguments:
            raise GenerationError(
                f"{where}: arguments = {arguments}: schema = {text} is a name without arguments. Write the whole "
                "schema: "
                f"{_write(only_name[1] or package, replace(base, name=only_name[2]))}"
            )
        name = _checked_name(only_name[1] or package, only_name[2], where)
        return PublicSchema(replace(base, name=name[1]), name[0], {})
    return _Publication(base, text, arguments, package, where).schema()


def _checked_name(namespace: str, name: str, where: str) -> tuple[str, str]:
    for part, forbidden in ((namespace, frozenset(keyword.kwlist)), (name, NO_FUNCTION)):
        if part in forbidden:
            raise GenerationError(
                f"{where}: schema = {namespace}::{name}: {part} is a word of C++ or Python; "
                f"expected another name, such as {part}_op"
            )
    return namespace, name


def _write(namespace: str, schema: OperatorSchema) -> str:
    return f"write schema = {namespace}::{schema}"


def for_operators(key: str, given: Mapping[str, str], op_types: Collection[str]) -> dict[str, str]:
    """Return declarations by op type; one for an empty op type is for the only operator.

    Raises:
        GenerationError: There are several operators.
    """
    if "" in given and len(op_types) != 1:
        raise GenerationError(
            f"{key} {given['']}: it does not say for which operator; expected one of {', '.join(op_types)}. "
            f"Write {next(iter(op_types))}={given['']}"
        )
    return {name or next(iter(op_types)): text for name, text in given.items()}


def with_pairs(
    new: Mapping[str, Declaration], operators: Sequence[CppOperator]
) -> tuple[dict[str, Declaration], list[str]]:
    """Return new declarations with all pairs of names that were found, and the text of each proposal."""
    found, proposed = dict(new), []
    for operator in operators:
        declaration = new.get(operator.op_type)
        pairs = ", ".join(f"{own}: {theirs}" for own, theirs in operator.renamed.items())
        said = {item.split(":")[0].strip() for item in declaration.arguments.split(",")} if declaration else set()
        if declaration is not None and not {*operator.renamed} <= said:
            found[operator.op_type] = replace(declaration, arguments=pairs)
            proposed.append(f"arguments of {operator.op_type}: {pairs}")
    return found, proposed


class _Publication:
    """A given schema against the generated one."""

    def __init__(self, base: OperatorSchema, text: str, arguments: str, package: str, where: str) -> None:
        self.base, self.where = base, where
        self.text = " ".join(text.split())
        try:
            self.given: OpSchema = parse_schema(text, package)
            self.types = parse_schema(str(base))
        except SchemaTextError as error:
            raise GenerationError(f"{where}: {error}; {_write(package, base)}") from None
        self.namespace, _, self.name = self.given.name.partition("::")
        self.explicit = self.read_pairs(arguments)
        self.of: dict[_Key, GeneratedArgument] = {(a.is_input, a.parameter.name): a for a in base.arguments}
        #: Generated argument of each given one, by the given one's position.
        self.bound = self.bind()

    # ------------------------------------------------------------------------------------------------------- pairs

    def read_pairs(self, arguments: str) -> dict[str, str]:
        pairs: dict[str, str] = {}
        for item in arguments.split(",") if arguments.strip() else ():
            match = _PAIR.match(item)
            if match is None:
                raise GenerationError(
                    f"{self.where}: arguments = {arguments}: {item.strip()!r} is not a pair; expected the schema's name, "
                    "a colon and the prototype's: arguments = other: y"
                )
            if match[1] not in {a.name for a in self.given.arguments}:
                raise GenerationError(
                    f"{self.where}: arguments = {arguments}: {match[1]} is not an argument of {self.text}; expected one of "
                    f"{', '.join(a.name for a in self.given.arguments)}"
                )
            pairs[match[1]] = match[2]
        return pairs

    def bind(self) -> dict[int, GeneratedArgument]:
        """Return the pairs: those given, those by names, and the last one if only one is left on each side."""
        prototype = self.base.prototype
        try:
            binding = bind(self.given, prototype, self.explicit, own=self.base, complete=False)
        except BindingError as error:
            raise GenerationError(f"{self.where}: {str(error).partition('Write:')[0].rstrip()}") from None
        bound: dict[int, GeneratedArgument] = {}
        parameters: list[Parameter | Attr] = [*prototype.inputs, *prototype.attrs]
        for parameter, source in zip(parameters, (*binding.inputs, *binding.attrs), strict=True):
            if source is not None and source.argument is not None:
                bound[source.argument] = self.of[isinstance(parameter, Parameter), parameter.name]
        fed = {id(a) for a in bound.values()}
        free = [a for a in self.base.arguments if id(a) not in fed]
        left = [n for n in range(len(self.given.arguments)) if n not in bound]
        if len(free) == len(left) == 1 and self.type_of(free[0]) == _type(self.given.arguments[left[0]]):
            bound[left[0]] = free[0]
        return bound

    def type_of(self, argument: GeneratedArgument) -> tuple[object, ...]:
        return _type(self.types.argument(argument.name))

    # ------------------------------------------------------------------------------------------------------ checks

    def schema(self) -> PublicSchema:
        _checked_name(self.namespace, self.name, self.where)
        if self.given.overload:
            raise self.refuse(f"the overload {self.given.overload}; expected a name without one")
        fed = {id(a) for a in self.bound.values()}
        strangers = [a.name for n, a in enumerate(self.given.arguments) if n not in self.bound]
        hungry = [a.parameter.name for a in self.base.arguments if id(a) not in fed]
        if strangers or hungry:
            said = [f"{name} goes nowhere" for name in strangers] + [f"nothing feeds {name}" for name in hungry]
            pairs = f", or pair them: arguments = {strangers[0]}: {hungry[0]}" if strangers and hungry else ""
            raise self.refuse(f"{'; '.join(said)}; expected one argument for each input and attr{pairs}")
        if other := _OTHER_TYPES.search(self.text):
            raise self.refuse(f"the type {other[1]}; expected the types that the kernel takes")
        arguments = tuple([self.argument(n, a) for n, a in enumerate(self.given.arguments)])
        self.check_order(arguments)
        text = f"{self.name}{self.text[self.text.index('(') :]}"
        schema = replace(self.base, name=self.name, arguments=arguments, returns=self.returns(), text=text)
        renamed = {a.name: a.parameter.name for a in arguments if a.name != a.parameter.name}
        return PublicSchema(schema, self.namespace, renamed)

    def check_order(self, arguments: tuple[GeneratedArgument, ...]) -> None:
        positional = ["=" in a.text for a in arguments if not a.keyword]
        if positional != sorted(positional):
            raise self.refuse(
                "an argument without a default follows one with a default; expected the reverse, or * between"
            )

    def argument(self, n: int, given: SchemaArgument) -> GeneratedArgument:
        base = self.bound[n]
        wanted, said = self.types.argument(base.name), given
        if not base.is_input:  # None may stand for the prototype's default
            wanted, said = replace(wanted, optional=False), replace(given, optional=False)
        if _type(wanted) != _type(said):
            raise self.refuse(f"{given.type_text} {given.name}: expected {wanted.type_text}")
        made = _argument(base, given)
        quoted = base.kind is not AclnnArgumentKind.STRING or re.search(rf"\b{given.name}\s*=\s*[\"']", self.text)
        if made is None or (given.has_default and not (quoted or given.default is None)):
            raise self.refuse(
                f"the default {given.default!r} of {given.name}: expected a literal of {wanted.type_text}, or none"
            )
        return made

    def returns(self) -> tuple[Parameter, ...]:
        outputs, given = self.base.returns, self.given.returns
        names = [r.name for r in given]
        in_order = list(outputs)
        if len(given) > 1 and any(names):
            by_name = {p.name: p for p in outputs}
            if sorted(names) != sorted(by_name):
                raise self.refuse(
                    f"the returns {', '.join(filter(None, names))}; expected the outputs' names, "
                    f"{', '.join(by_name)}, in any order, or none"
                )
            in_order = [by_name[name] for name in names]
        lists = [p.kind is ParameterKind.DYNAMIC for p in in_order]
        said = [r.kind.value == "Tensor" and r.alias_of is None and r.list_depth for r in given]
        if len(said) != len(lists) or any(
            s is False or bool(s) != is_list for s, is_list in zip(said, lists, strict=True)
        ):
            raise self.refuse(
                f"it returns {', '.join(r.type_text for r in given) or 'nothing'}; expected "
                f"{', '.join('Tensor[]' if is_list else 'Tensor' for is_list in lists) or '()'}"
            )
        return tuple(in_order)

    # ---------------------------------------------------------------------------------------------------- messages

    def refuse(self, problem: str) -> GenerationError:
        return GenerationError(
            f"{self.where}: schema = {self.text}: {problem}; {_write(self.namespace, self.corrected())}"
        )

    def corrected(self) -> OperatorSchema:
        """Return the nearest schema that fits: the given names, order and defaults with the generated types."""
        arguments = []
        for n, given in enumerate(self.given.arguments):
            if (base := self.bound.get(n)) is None:
                continue
            typed = replace(given, optional=self.types.argument(base.name).optional)
            plain = replace(typed, has_default="=" in base.text, default=default_of(base), optional=given.optional)
            made = _argument(base, typed) or _argument(base, plain) or _renamed(base, given.name)
            arguments.append(made if not (given.mutated ^ ("!" in base.text)) else _renamed(base, given.name))
        fed = {id(a) for a in self.bound.values()}
        arguments += [a for a in self.base.arguments if id(a) not in fed]
        order: Callable[[GeneratedArgument], bool] = lambda a: "=" in a.text  # noqa: E731
        positional = sorted((a for a in arguments if not a.keyword), key=order)
        name = self.name if self.name not in NO_FUNCTION else self.base.name
        return replace(self.base, name=name, arguments=(*positional, *(a for a in arguments if a.keyword)))


def _type(argument: SchemaArgument) -> tuple[object, ...]:
    return argument.kind, argument.list_depth, argument.optional, argument.mutated, argument.optional_elements


def _renamed(base: GeneratedArgument, name: str) -> GeneratedArgument:
    return replace(base, name=name, text=re.sub(rf"\b{base.name}(?=\Z|=)", name, base.text, count=1))


def _argument(base: GeneratedArgument, given: SchemaArgument) -> GeneratedArgument | None:
    """Return the argument with the name and default of a given one; None if the default does not fit."""
    type_ = base.text.partition(" ")[0]
    renamed = replace(base, name=given.name, keyword=given.kwarg_only)
    if not isinstance(base.parameter, Attr):
        if given.has_default and not (given.optional and given.default is None):
            return None
        return replace(renamed, text=f"{type_} {given.name}{'=None' if given.has_default else ''}")
    plain = type_.removesuffix("?")
    if given.optional:  # None stands for the prototype's default, or for null
        known = not base.parameter.required and base.parameter.default_known
        if not (given.has_default and given.default is None and (known or base.is_null)):
            return None
        default = None if base.is_null else default_of(base)
        return replace(renamed, text=f"{plain}? {given.name}=None", default=default)
    if not given.has_default:
        return replace(renamed, text=f"{plain} {given.name}", default=None)
    literal = schema_literal(base.kind, given.default) if _fits(base.kind, given.default) else None
    if literal is None:
        return None
    parameter = base.parameter
    if base.kind not in _DTYPES:
        parameter = replace(parameter, required=False, default=given.default, default_known=True)
    elif given.default != default_of(base):
        return None
    return replace(renamed, parameter=parameter, text=f"{plain} {given.name}={literal}", default=None)


def _fits(kind: AclnnArgumentKind, value: AttrValue) -> bool:
    """Return whether a schema's default has the type of its argument."""
    is_list = kind in (
        *(AclnnArgumentKind.INTS, AclnnArgumentKind.FLOATS, AclnnArgumentKind.BOOLS, AclnnArgumentKind.DTYPES),
        AclnnArgumentKind.SCALARS,
    )
    if is_list != isinstance(value, tuple):
        return False
    for item in value if isinstance(value, tuple) else (value,):
        number = isinstance(item, int) and not isinstance(item, bool)
        if kind is AclnnArgumentKind.STRING:
            fits = isinstance(item, str)
        elif kind in _BOOLS:
            fits = isinstance(item, bool)
        else:
            fits = number or (kind in _FLOATS and isinstance(item, float))
        if not fits:
            return False
    return True

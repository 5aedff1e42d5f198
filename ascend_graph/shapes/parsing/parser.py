"""Parser from text to syntax tree, by recursive descent over the grammar in :data:`GRAMMAR`.

The text may come from a file of unknown origin: its length, its nesting and its integers are limited. The parser
executes nothing, and every fault is a :class:`RelationError` with a caret.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.parsing.grammar import FUNCTIONS, GROUP_FUNCTIONS
from ascend_graph.shapes.parsing.hints import hint
from ascend_graph.shapes.parsing.tokens import Token, tokens_of
from ascend_graph.shapes.syntax import (
    Absent,
    Alternative,
    Binary,
    Conditional,
    Dim,
    DimensionGroup,
    Dims,
    Ellipsis_,
    Expr,
    FunctionCall,
    GroupPart,
    Index,
    Itself,
    Like,
    Literal,
    Name,
    Shape,
    Size,
    Tensor,
    Tuple,
    Unary,
    ValueOutput,
    WhereDefinition,
    children,
    expressions,
)

MAX_NESTING = 32
#: Maximum depth of an expression, rows of operators included: all readers of expressions are recursive.
MAX_DEPTH = 96

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens_of(source)
        self.position = 0
        self.nesting = 0

    # ---------------------------------------------------------------------------------------------------------- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, offset: int = 1) -> Token:
        return self.tokens[min(self.position + offset, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        return self.token.kind in ("symbol", "keyword") and self.token.text in texts

    def take(self, *texts: str) -> bool:
        if self.at(*texts):
            self.position += 1
            return True
        return False

    def expect(self, text: str, instead: str = "") -> Token:
        token = self.token
        if not self.take(text):
            raise self.unexpected(f"{text!r}{instead}")
        return token

    def name(self, what: str) -> Token:
        token = self.token
        if token.kind != "name":
            raise self.unexpected(what)
        self.position += 1
        return token

    @staticmethod
    def shown(token: Token) -> str:
        return token.text if token.kind == "end" else repr(token.text)

    def unexpected(self, expected: str) -> RelationError:
        """Return the error of the token at hand, with what to write where it is another notation's."""
        hinted = hint(self.source, self.token.at)
        return self.error(f"expected {expected}, got {self.shown(self.token)}{hinted}")

    def error(self, message: str, at: int | None = None) -> RelationError:
        return RelationError(message, self.source, self.token.at if at is None else at)

    # -------------------------------------------------------------------------------------------------------- relation

    def relation(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[WhereDefinition | Expr, ...]]:
        inputs = self.tensors("->")
        self.expect("->", " between inputs and outputs")
        outputs = self.tensors("where")
        clauses: list[WhereDefinition | Expr] = []
        if self.take("where"):
            clauses.append(self.clause())
            while self.take(","):
                clauses.append(self.clause())
        if self.token.kind != "end":
            raise self.unexpected("',' or the end")
        return inputs, outputs, tuple(clauses)

    def tensors(self, stop: str) -> tuple[Tensor, ...]:
        if self.at(stop) or self.token.kind == "end":
            return ()
        found = [self.tensor()]
        while self.take(","):
            found.append(self.tensor())
        return tuple(found)

    def clause(self) -> WhereDefinition | Expr:
        if self.token.kind == "name" and self.peek().text == "=" and self.peek().kind == "symbol":
            name = self.name("a name").text
            self.expect("=")
            return WhereDefinition(name, self.expression())
        return self.expression()

    def tensor_name(self) -> Token:
        """Take the name of a tensor, which may be a word of the language: the prototype of SelectV2 has an input ``else``."""
        token = self.token
        if token.kind == "keyword" and token.text.islower() and self.peek().text in ("[", ",", ":", "->"):
            self.position += 1
            return token
        return self.name("the name of a tensor")

    def tensor(self) -> Tensor:
        name = self.tensor_name()
        index, count = self.list_index()
        alternatives = [self.alternative()]
        # `x[n]: a if c else b` is a conditional dtype, `x[n]: a if c else [m]: b` a conditional shape.
        while self.take("if"):
            condition = self.test()
            self.expect("else", " (every 'if' has one)")
            last = alternatives[-1]
            if self.at("[", "like", "None", "="):
                alternatives[-1] = Alternative(last.shape, last.dtype, condition)
                alternatives.append(self.alternative())
            elif last.dtype is not None:
                alternatives[-1] = Alternative(last.shape, Conditional(last.dtype, condition, self.expression()))
            else:
                raise self.error(
                    f"expected a shape after 'else': '[…]', 'like x', '= x' or 'None', got {self.shown(self.token)}"
                )
        return Tensor(name.text, tuple(alternatives), index, count, name.at)

    def list_index(self) -> tuple[str | None, Expr | None]:
        """Read ``[i]`` or ``[i < k]``, if a shape follows it."""
        if not self.at("["):
            return None, None
        depth, offset = 0, 0
        while True:  # the bracket that closes this one
            token = self.peek(offset)
            if token.kind == "end":
                return None, None
            if token.kind == "symbol":
                depth += (token.text == "[") - (token.text == "]")
            offset += 1
            if depth == 0:
                break
        follows = self.peek(offset)
        if follows.text not in ("[", "like") or follows.kind not in ("symbol", "keyword"):
            return None, None
        self.expect("[")
        index = self.name("the index of a list of tensors, as in xs[i][n, d]").text
        count = self.sum() if self.take("<") else None
        self.expect("]", " after the index of a list of tensors")
        return index, count

    def alternative(self) -> Alternative:
        shape = self.shape()
        dtype = None
        if self.take(":"):
            # Parenthesised or not, but no open conditional: tensor() decides what an `if` belongs to.
            dtype = self.test()
        return Alternative(shape, dtype)

    def shape(self) -> Shape:
        if self.take("like"):
            token = self.name("the name of an input after 'like'")
            name = Name(token.text, token.at)
            if not self.take("["):
                return Like(name)
            element = self.atom()
            self.expect("]")
            return Like(Index(name, element))
        if self.take("None"):
            return Absent()
        if self.take("="):
            return ValueOutput(self.test())
        if not self.take("["):
            return Itself()
        if self.take("]"):
            return Dims(())
        items = [self.dim()]
        while self.take(","):
            items.append(self.dim())
        self.expect("]", " or ','")
        return Dims(tuple(items))

    def dim(self) -> Dim:
        if self.take("..."):
            return Ellipsis_()
        if self.take("*"):
            token = self.token
            value = self.atom()
            if not isinstance(value, Name | Index | GroupPart) and not (
                isinstance(value, FunctionCall) and value.function in GROUP_FUNCTIONS
            ):
                raise self.error("'*' needs the name of a group of dimensions or of a list attr", token.at)
            return DimensionGroup(value, self.axis())
        token = self.token
        expression = self.expression()
        value_ = None if isinstance(expression, Name) and expression.id == "_" else expression
        if isinstance(expression, Literal) and not _is_integer(expression):
            raise self.error(f"a dimension must be an integer, a name or their arithmetic, got {expression}", token.at)
        return Size(value_, self.axis())

    def axis(self) -> Expr | None:
        if not self.take("@"):
            return None
        if self.take("-"):
            return Unary("-", self.atom())
        return self.atom()

    # ----------------------------------------------------------------------------------------------------- expressions

    def expression(self) -> Expr:
        then = self.test()
        if not self.take("if"):
            return then
        condition = self.test()
        self.expect("else", " (every 'if' has one)")
        with self:
            return Conditional(then, condition, self.expression())

    def test(self) -> Expr:
        return self.chain(("or",), lambda: self.chain(("and",), self.negation))

    def negation(self) -> Expr:
        if self.take("not"):
            with self:
                return Unary("not", self.negation())
        return self.comparison()

    def comparison(self) -> Expr:
        left = self.sum()
        operator = ""
        if self.at(*_COMPARISONS):
            operator = self.token.text
            self.position += 1
        elif self.take("in"):
            operator = "in"
        elif self.at("not") and self.peek().text == "in":
            self.position += 2
            operator = "not in"
        elif self.take("is"):
            operator = "is not" if self.take("not") else "is"
        if not operator:
            return left
        right = self.sum()
        if self.at(*_COMPARISONS, "in", "is"):
            raise self.error("comparisons do not chain; write 'a < b and b < c'")
        return Binary(operator, left, right)

    def sum(self) -> Expr:
        return self.chain(("+", "-"), lambda: self.chain(("*", "//", "%"), self.factor))

    def chain(self, operators: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        left = operand()
        length = 0
        while self.at(*operators):
            operator = self.token.text
            self.position += 1
            length += 1
            if length > MAX_NESTING:
                raise self.error(f"too many operators in a row; expected at most {MAX_NESTING}")
            left = Binary(operator, left, operand())
        return left

    def factor(self) -> Expr:
        if self.take("-"):
            with self:
                operand = self.factor()
            if isinstance(operand, Literal) and _is_integer(operand) and operand.value:
                assert isinstance(operand.value, int)
                return Literal(-operand.value)
            return Unary("-", operand)
        return self.atom()

    def atom(self) -> Expr:
        token = self.token
        if token.kind == "integer":
            self.position += 1
            return Literal(int(token.text))
        if token.kind == "string":
            self.position += 1
            return Literal(re.sub(r"\\(.)", r"\1", token.text[1:-1]))
        if self.take("True", "False", "None"):
            return Literal({"True": True, "False": False, "None": None}[token.text])
        if self.take("..."):
            return Name("...", token.at)
        if self.take("("):
            with self:
                return self.parenthesis()
        if token.kind != "name":
            raise self.unexpected("a name, an integer or '('")
        self.position += 1
        if self.at("("):
            return self.call(token)
        name = Name(token.text, token.at)
        if self.take("["):
            with self:
                return self.element(name)
        return name

    def element(self, name: Name) -> Index | GroupPart:
        """Read ``index]``, or ``start:stop]`` of which either may be left out."""
        first = None if self.at(":") else self.expression()
        if first is not None and not self.at(":"):
            self.expect("]", " or ':'")
            return Index(name, first)
        self.expect(":")
        last = None if self.at("]") else self.expression()
        self.expect("]")
        return GroupPart(name, first, last)

    def parenthesis(self) -> Expr:
        first = self.expression()
        if self.take(")"):
            return first
        items = [first]
        while self.take(","):
            if self.at(")"):
                break
            items.append(self.expression())
        self.expect(")", " or ','")
        return Tuple(tuple(items))

    def call(self, token: Token) -> FunctionCall:
        if token.text not in FUNCTIONS:
            raise self.error(f"unknown function {token.text!r}; the functions are {', '.join(FUNCTIONS)}", token.at)
        self.expect("(")
        arguments: list[Expr] = []
        with self:
            while not self.at(")"):
                arguments.append(self.expression())
                if not self.take(","):
                    break
            self.expect(")", " or ','")
        least, most = FUNCTIONS[token.text]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise self.error(f"{token.text} takes {wanted} argument(s), got {len(arguments)}", token.at)
        return FunctionCall(token.text, tuple(arguments), token.at)

    def __enter__(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.error(f"nested too deep; expected at most {MAX_NESTING} levels")

    def __exit__(self, *_: object) -> None:
        self.nesting -= 1


def _is_integer(literal: Literal) -> bool:
    return isinstance(literal.value, int) and not isinstance(literal.value, bool)


def parse(source: str) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[WhereDefinition | Expr, ...]]:
    """Parse ``source`` to inputs, outputs and the clauses after ``where``; raise :class:`RelationError`."""
    if not isinstance(source, str):
        raise RelationError(f"a shape relation must be a string, such as 'x[m, k], w[k, n] -> y[m, n]', got {source!r}")
    inputs, outputs, clauses = _Parser(source).relation()
    found = [e for tensor in (*inputs, *outputs) for e in expressions(tensor)]
    found += [clause.value if isinstance(clause, WhereDefinition) else clause for clause in clauses]
    if any(_depth(expression) > MAX_DEPTH for expression in found):
        raise RelationError(f"an expression must be at most {MAX_DEPTH} operations deep", source, 0)
    return inputs, outputs, clauses


def _depth(node: Expr) -> int:
    """Return the nesting depth of operations, counted without recursion."""
    depth, level = 0, [node]
    while level:
        depth += 1
        level = [child for parent in level for child in children(parent)]
    return depth

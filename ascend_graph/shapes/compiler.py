"""Relation → :class:`Program`: input patterns become closures that bind or compare, outputs become plans.

Compiling is for one set of present inputs and one list of attrs, so that what can be known before any size is known is
settled, and refused, here.
"""

from __future__ import annotations

from ascend_graph.shapes.arithmetic import show
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.outputs import Outputs
from ascend_graph.shapes.patterns import Deferred, Patterns
from ascend_graph.shapes.program import Env, Program, Step, T, Target, Value
from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import Definition, Expr, Name, bound_names, walk


def compile_program(relation: Statement, target: Target[T]) -> Program[T]:
    """Compile ``relation``; see :meth:`Relation.program`."""
    return _Compiler(relation, target).program()


class _Compiler(Patterns[T], Outputs[T]):
    def program(self) -> Program[T]:
        relation = self.relation
        self.refuse_unknown_names()
        steps: list[Step] = []
        deferred: list[Deferred] = []
        for tensor in relation.input_tensors:
            if tensor.name in self.present:
                steps += self.input(tensor, deferred)
        for clause in relation.clauses:
            if isinstance(clause, Definition):
                slot, value = self.new_slot(clause.name), self.value(clause.value)
                self.bound.add(slot)
                steps.append(_assign(slot, value))
            else:
                steps.append(self.demand(clause))
        # A size that is an expression may use what a later input binds, so it is compared at the end.
        steps += [make() for make in deferred]
        return Program(steps, [self.output(tensor) for tensor in relation.output_tensors], self.template)

    def refuse_unknown_names(self) -> None:
        unknown = self.relation.free_names - self.attrs.keys()
        if unknown:
            dims = sorted({name for t in self.relation.input_tensors for name in bound_names(t)})
            raise RelationError(
                f"{self.relation}: {', '.join(sorted(unknown))} is neither a dimension of an input nor an attr of the "
                f"operator; dimensions: {', '.join(dims) or 'none'}; attrs: {', '.join(self.attrs) or 'none'}"
            )

    def demand(self, condition: Expr) -> Step:
        """A condition after ``where``."""
        test, check = self.condition(condition), self.check
        names = [n.id for n in walk(condition) if isinstance(n, Name)]
        sizes = [name for name in names if name in self.slots or name in self.attrs]
        readers = [(name, self.value(Name(name))) for name in dict.fromkeys(sizes)]

        def step(env: Env) -> None:
            holds = test(env)
            if holds is not True:
                check(
                    holds,
                    lambda: (
                        f"{condition} must hold; "
                        + (", ".join(f"{name} is {show(read(env))}" for name, read in readers) or "it does not")
                    ),
                )

        return step


def _assign(slot: int, value: Value) -> Step:
    def assign(env: Env) -> None:
        env[slot] = value(env)

    return assign

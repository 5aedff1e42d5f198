"""Python back end: compiler from a form to a :class:`RelationProgram`.

Input patterns become closures that bind or compare, outputs become plans.

The compiler works for one set of present inputs and one list of attr kinds. So it decides, or refuses, everything that
does not depend on sizes.
"""

from __future__ import annotations

from ascend_graph.shapes.arithmetic import show
from ascend_graph.shapes.backends.outputs import Outputs
from ascend_graph.shapes.backends.patterns import Patterns
from ascend_graph.shapes.backends.program import Action, Env, RelationProgram, T, Target
from ascend_graph.shapes.form import Define, Demand, ExpressionNode, Form, Match, Op, Step, below
from ascend_graph.shapes.statement import Statement


def compile_program(relation: Statement, form: Form, target: Target[T]) -> RelationProgram[T]:
    """Compile the form of ``relation``; see :meth:`Relation.program`."""
    return _Compiler(relation, form, target).program()


class _Compiler(Patterns[T], Outputs[T]):
    def program(self) -> RelationProgram[T]:
        actions = [action for step in self.form.steps for action in self.step(step)]
        return RelationProgram(actions, [self.output(output) for output in self.form.outputs], self.template)

    def step(self, step: Step) -> list[Action]:
        match step:
            case Match(name):
                return self.match(step) if name in self.present else []
            case Define(name, node):
                value = self.value(node)
                slot = self.slots[name] = self.new_slot()
                self.bound.add(slot)

                def define(env: Env) -> None:
                    env[slot] = value(env)

                return [define]
            case Demand(condition, shown):
                return [self.demand(condition, shown)]
        return self.check_input(step)

    def demand(self, condition: ExpressionNode, shown: str) -> Action:
        """Return the action that checks a condition after ``where``."""
        test, check = self.condition(condition), self.check
        named = [n for n in below(condition) if n.op in (Op.DIMENSION, Op.GROUP, Op.ATTR)]
        readers = {str(n.value): self.value(n) for n in reversed(named)}

        def demand(env: Env) -> None:
            holds = test(env)
            if holds is not True:
                check(
                    holds,
                    lambda: (
                        f"{shown} must hold; "
                        + (", ".join(f"{name} is {show(read(env))}" for name, read in readers.items()) or "it does not")
                    ),
                )

        return demand

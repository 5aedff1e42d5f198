"""Answers of an operator's author on its shapes, for the plan of one registration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from ascend_graph.binding.bound import Binding
from ascend_graph.binding.errors import BindingWarning
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.prototypes import AttrType, OpPrototype
from ascend_graph.registration.author_meta import AuthorEvidence, argument_types, ask_author, calls_infer_shape
from ascend_graph.shapes import Relation
from ascend_graph.shapes.functions import ShapeFunction


class AuthorAnswers:
    """Answers of the author of one operator, empty until :meth:`ask`."""

    def __init__(self, prototype: OpPrototype) -> None:
        self._prototype = prototype
        self._said: AuthorEvidence | None = None
        #: True if InferShape is asked of the calls that the relation refuses.
        self._asks_beyond = False

    def __bool__(self) -> bool:
        return self._said is not None

    def ask(self, values: Mapping[str, AttrType] | None = None) -> Relation | None:
        """Return the relation that the author wrote, or that InferShape follows.

        Args:
            values: The types of the arguments that are values of inputs; None while the schema is not known.
        """
        self._said = ask_author(self._prototype, values)
        return None if self._said is None else self._said.relation

    def ask_with_values(self, binding: Binding) -> Relation | None:
        """Return the relation of a function that reads values, and could not be asked before the schema was known."""
        function = self.function
        if function is None or not self.reads_values:
            return None
        return self.ask(argument_types(binding))

    @property
    def function(self) -> ShapeFunction | None:
        """The InferShape function, if it may be called."""
        return None if self._said is None else self._said.function

    @property
    def reads_values(self) -> bool:
        """True if the function, and not the relation alone, says which calls are taken."""
        return self._said is not None and self._said.reads_values

    @property
    def source(self) -> str:
        """Origin of the answers, in words."""
        return "" if self._said is None else self._said.source

    @property
    def origin(self) -> str:
        """Origin of the relation, in words."""
        questions = 0 if self._said is None else self._said.questions
        return f"found from {self.source}, which answered {questions} questions" if questions else self.source

    def beyond(self, meta: MetaFunction, binding: Callable[[], Binding]) -> MetaFunction:
        """Return a relation's meta function, which asks InferShape of the calls that it refuses, where it can be asked."""
        if self._said is None or self._said.function is None:
            return meta
        self._asks_beyond = not self._said.limits or calls_infer_shape(self._said.function, binding())
        return self._said.beyond(meta, binding)

    def tell(self, evidence: dict[str, str]) -> None:
        """Record what was said, and warn of a shape function that is faulty, or that takes more than the relation."""
        said = self._said
        assert said is not None
        what = said.source if said.relation is not None else said.reason
        evidence["InferShape"] = "; ".join([what, *said.limits, *said.notes])
        meta = evidence.get("meta", "another one")
        if self._asks_beyond and said.limits:
            evidence["meta"] = f"{meta}; InferShape, asked with static sizes, for the calls that it refuses"
        if said.is_faulty or said.notes:
            text = f"{said.reason or '; '.join(said.notes)}. Correct the function; the meta function is {meta}"
        elif said.limits and not self._asks_beyond:
            text = f"{'; '.join(said.limits)}. Write shape= to say more; the meta function is {meta}"
        else:
            return
        warnings.warn(f"{self._prototype.op_type}: {text}", BindingWarning, stacklevel=7)

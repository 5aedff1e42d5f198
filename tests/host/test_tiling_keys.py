"""Which tiling keys a kernel is compiled for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.host.tiling_keys import asked_of_preprocessor, listed_keys


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("#if TILING_KEY_VAR == 1", True),
        ("x\n  # elif A && \\\n  (TILING_KEY_VAR == B)\n", True),
        ("if (TILING_KEY_VAR == 1) {}", False),
        ("#if A\nif (TILING_KEY_VAR == 1) {}\n#endif", False),
        ("#if MY_TILING_KEY_VAR == 1", False),
        ('REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR == 1", A);', False),
    ],
)
def test_conditions_of_the_preprocessor(code: str, asked: bool) -> None:
    assert asked_of_preprocessor([code]) is asked


@pytest.mark.parametrize(
    ("expression", "keys"),
    [
        ("1", (1,)),
        ("0x10UL", (16,)),
        ("((100) + (2 << 3) | 1)", (117,)),
        ("18446744073709551615ULL", ((1 << 64) - 1,)),
        ("18446744073709551616", ()),
        ("1 << 64", ()),
        ("1 - 2", ()),
        ("kKey", ()),
        ("f(1)", ()),
        ("1 ? 2 : 3", ()),
        ("", ()),
        ("True", ()),
        ("9 ** 9", ()),
    ],
)
def test_keys_are_constants(expression: str, keys: tuple[int, ...]) -> None:
    assert listed_keys(f"a ASCEND_GRAPH_TILING_KEY({expression}); b") == keys


@given(st.text(alphabet="()+-*<>|&^~ 0123456789xuULabk.,:;?'\"", max_size=60))
def test_any_text_is_read(expression: str) -> None:
    assert all(0 <= key < 1 << 64 for key in listed_keys(f"ASCEND_GRAPH_TILING_KEY({expression})"))

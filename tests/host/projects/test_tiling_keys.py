"""Which tiling keys a kernel is compiled for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.compilation import BuildError, CppLibrary
from ascend_graph.host import OperatorPackageError
from ascend_graph.host.packages.build import kernel_compiler
from ascend_graph.host.projects.kernels import by_tiling_key
from ascend_graph.host.projects.survey_errors import first_error
from ascend_graph.host.projects.tiling_keys import asked_of_preprocessor, listed_keys


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


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        (
            "#define A 4\nTILING_KEY_IS(A); TILING_KEY_IS(9UL);\n#if TILING_KEY_VAR == 1\n#error not here\n#endif",
            ["4", "9"],
        ),
        ("TILING_KEY_IS(key);", "names no key for these dtypes; write TILING_KEY_IS"),
        ('#include "nowhere.h"', "fatal error: nowhere.h: No such file or directory"),
    ],
)
def test_a_library_for_each_key(tmp_path: Path, source: str, keys: list[str] | str) -> None:
    path = tmp_path / "kernel.asc"
    path.write_text(f'#include "kernel_operator.h"\n{source}\n')
    library = CppLibrary(name="scale_0", sources=(path,), kernel_compiler=kernel_compiler())
    if isinstance(keys, str):
        with pytest.raises((OperatorPackageError, BuildError), match=keys) as raised:
            by_tiling_key(library, ())
        assert keys in first_error(f"Error: {raised.value}")
        return
    made = by_tiling_key(library, ())
    assert [one.name for one in made] == [f"scale_0_{key}" for key in keys]
    assert [one.flags[-1] for one in made] == [f"-DTILING_KEY_VAR={key}UL" for key in keys]
    assert [one.name for one in by_tiling_key(library, [7])] == ["scale_0_7"]  # instances say it themselves

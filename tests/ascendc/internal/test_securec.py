"""securec.h of the host toolkit, in C and in C++: what fits, and what does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROGRAM = r"""
#include <securec.h>
#include <assert.h>
int main(void) {
    char text[10], small[4], one;
    int count = 0, number = 0;
    double real;
    long length;
    assert(sscanf_s("8.2.RC1/x86_64", "%9[^/]", text, 10u) == 1 && strcmp(text, "8.2.RC1") == 0);
    assert(sscanf_s("abcdef", "%s", small, 4u) == -1 && small[0] == 0);
    assert(sscanf_s("  abc", "%s", small, 4u) == 1 && strcmp(small, "abc") == 0);
    assert(sscanf_s("]a]b", "%[]a]", small, 4u) == 1 && strcmp(small, "]a]") == 0);
    assert(sscanf_s(" 12 abc,7%", "%d %3[a-z],%ld%%%n", &number, small, 4u, &length, &count) == 3);
    assert(number == 12 && length == 7 && strcmp(small, "abc") == 0 && count == 10);
    assert(sscanf_s("q 1.5 left 0x1f", "%c%lf %*s %x", &one, 1u, &real, &number) == 3);
    assert(one == 'q' && real == 1.5 && number == 31);
    assert(sscanf_s("", "%d", &number) == -1 && sscanf_s("z", "%d", &number) == 0);
    assert(sscanf_s("5 z", "%d %d", &number, &count) == 1 && number == 5);
    char list[] = "a,b", *context = NULL;
    assert(strcmp(strtok_s(list, ",", &context), "a") == 0 && strcmp(strtok_s(NULL, ",", &context), "b") == 0);
    assert(strtok_s(NULL, ",", &context) == NULL);
    assert(snprintf_truncated_s(small, 4, "%d", 12345) == 3 && strcmp(small, "123") == 0);
    assert(sprintf_s(small, 4, "%d", 12345) == -1 && small[0] == 0);
    assert(sprintf_s(small, 4, "%d", 123) == 3 && strcpy_s(text, 3, "abc") == ERANGE_AND_RESET);
    assert(memset_s(small, 4, 1, 9) == ERANGE_AND_RESET && memcpy_s(small, 4, small + 1, 3) == EOVERLAP_AND_RESET);
    return 0;
}
"""


@pytest.mark.parametrize(("language", "standard"), [("c", "gnu99"), ("c++", "gnu++17")])
def test_functions(tmp_path: Path, language: str, standard: str) -> None:
    headers = Path(__file__).parents[3] / "csrc/ascendc/include"
    program = tmp_path / "program"
    options = ["-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-I", str(headers)]
    subprocess.run(["g++", *options, "-o", program, "-"], input=PROGRAM, text=True, check=True)
    subprocess.run([program], check=True)

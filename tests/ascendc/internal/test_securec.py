"""securec.h of the host toolkit, in C and in C++: what fits, and what does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory

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
    assert(strcpy_s(text, 0, "a") == ERANGE && strcpy_s(NULL, 3, "a") == EINVAL);
    assert(strcpy_s(text, 10, NULL) == EINVAL_AND_RESET && text[0] == 0);
    assert(strcpy_s(text, 10, "abcdef") == EOK && strcpy_s(text, 10, text) == EOK && strcmp(text, "abcdef") == 0);
    assert(strcpy_s(text, 10, text + 2) == EOVERLAP_AND_RESET && text[0] == 0);
    assert(strncpy_s(text, 10, "abcdef", 3) == EOK && strcmp(text, "abc") == 0);
    assert(strcat_s(text, 10, "def") == EOK && strcmp(text, "abcdef") == 0);
    assert(strncat_s(text, 10, "ghijkl", 3) == EOK && strcmp(text, "abcdefghi") == 0);
    assert(strcat_s(text, 10, "j") == ERANGE_AND_RESET && text[0] == 0);
    memset(text, 'x', 10);
    assert(strcat_s(text, 10, "y") == EINVAL_AND_RESET && text[0] == 0);
    strcpy(text, "abc");
    assert(strcat_s(text, 10, text + 1) == EOVERLAP_AND_RESET && text[0] == 0);
    assert(snprintf_s(small, 4, 2, "%d", 12345) == -1 && strcmp(small, "12") == 0);
    assert(snprintf_s(small, 4, 4, "%d", 12345) == -1 && small[0] == 0);
    assert(memcpy_s(text, 0x80000000UL, "a", 1) == ERANGE && memcpy_s(NULL, 1, "a", 1) == EINVAL);
    text[0] = 'x';
    assert(memcpy_s(text, 10, "abcdefghijk", 11) == ERANGE_AND_RESET && text[0] == 0);
    assert(memcpy_s(text, 10, NULL, 1) == EINVAL_AND_RESET && memmove_s(text + 1, 9, text, 9) == EOK);
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


#: Declarations that a library which was linked elsewhere was compiled with.
DECLARATIONS = r"""
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
enum { EOK = 0, EINVAL_AND_RESET = 150, ERANGE_AND_RESET = 162, EOVERLAP_AND_RESET = 182 };
extern int memset_s(void*, size_t, int, size_t), memcpy_s(void*, size_t, const void*, size_t);
extern int memmove_s(void*, size_t, const void*, size_t), strcpy_s(char*, size_t, const char*);
extern int strncpy_s(char*, size_t, const char*, size_t), strcat_s(char*, size_t, const char*);
extern int strncat_s(char*, size_t, const char*, size_t), sprintf_s(char*, size_t, const char*, ...);
extern int snprintf_s(char*, size_t, size_t, const char*, ...), sscanf_s(const char*, const char*, ...);
extern int snprintf_truncated_s(char*, size_t, const char*, ...);
extern char* strtok_s(char*, const char*, char**);
extern int wcscpy_s(wchar_t*, size_t, const wchar_t*), wcscat_s(wchar_t*, size_t, const wchar_t*);
extern int wmemcpy_s(wchar_t*, size_t, const wchar_t*, size_t), swprintf_s(wchar_t*, size_t, const wchar_t*, ...);
"""
WIDE = r"""
static void wide(void) {
    wchar_t text[4];
    assert(wcscpy_s(text, 4, L"ab") == EOK && wcscat_s(text, 4, L"c") == EOK && wcscmp(text, L"abc") == 0);
    assert(wcscat_s(text, 4, L"d") == ERANGE_AND_RESET && text[0] == 0);
    assert(wcscpy_s(text, 4, L"abcd") == ERANGE_AND_RESET && wcscpy_s(NULL, 4, L"a") == EINVAL);
    assert(wmemcpy_s(text, 4, L"abcd", 4) == EOK && text[3] == L'd');
    assert(wcscat_s(text, 4, L"e") == EINVAL_AND_RESET && wmemcpy_s(text, 4, L"abcde", 5) == ERANGE_AND_RESET);
    assert(wmemcpy_s(text, (size_t)-1, L"a", 1) == ERANGE);
    assert(swprintf_s(text, 4, L"%d", 123) == 3 && swprintf_s(text, 4, L"%d", 1234) == -1 && text[0] == 0);
}
"""


def test_libc_sec_exports_the_same_functions(tmp_path: Path) -> None:
    program, libraries = tmp_path / "program", toolkit_directory() / "lib64"
    body = PROGRAM.replace("#include <securec.h>", DECLARATIONS)
    body = body.replace("int main(void) {", WIDE + "int main(void) {\n    wide();")
    options = ["-x", "c", "-std=gnu99", "-w", "-", "-o", program, f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
    subprocess.run(["g++", *options, "-lc_sec"], input=body, text=True, check=True)
    subprocess.run([program], check=True)

"""Specializations inside classes: g++ compiles what the device's compiler compiles, with the same meaning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ascend_graph.compilation.toolchain import compiler
from ascend_graph.host.ascendc.specializations import outside_of_classes

PROGRAM = """
#include <cstdio>
#include <utility>
constexpr int AIC = 1, AIV = 2, MIX = 0;
template <class T> struct Base {};
namespace n {
template <class T, class U>
class alignas(8) Kernel : public Base<T> {
public:
    struct Params { int a; Kernel<T, U>* b; Params() : a(1), b{nullptr} {} };
    Kernel() {}
    template <int CORE = MIX>
    inline __attribute__((always_inline)) void operator()(Params const& params);

    template <>
    inline __attribute__((always_inline))
    void operator()<AIC>(Params const& params) { if (params.a < 3) { result = helper<int>(4); } }
    template <>
    inline void operator()<AIV>(Params const&) { result = 2; }

    template <class V> int helper(V v, int = 3) const { return sizeof(V); }
    template <> int helper<char>(char v, int more) const { return 100 + more; }
    template <class... Vs> int many(Vs... vs) { return sizeof...(Vs); }
    template <bool A, class V> static V pick(void) { return 1; }
    template <> double pick<true, double>(void) { return 2.5; }
    template <class V> struct Layout;
    template <class V> struct Layout { using type = V; };
    template <> struct Layout<void> { using type = int; };
    template <> struct Layout<std::pair<int, char>> { using type = short; };
    int result = 0;
};
}
int main() {
    n::Kernel<int, int> kernel;
    n::Kernel<int, int>::Params params;
    kernel.operator()<AIC>(params);
    std::printf("%d ", kernel.result);
    kernel.template operator()<AIV>(params);
    std::printf("%d %d %d %d ", kernel.result, kernel.helper(2.0), kernel.helper<char>('a'), kernel.many(1, 2));
    using Kernel = n::Kernel<int, int>;
    std::printf("%g %g ", Kernel::pick<true, double>(), Kernel::pick<false, double>());
    std::printf("%d %d %d", (int)sizeof(Kernel::Layout<void>::type), (int)sizeof(Kernel::Layout<char>::type),
                (int)sizeof(Kernel::Layout<std::pair<int, char>>::type));
}
"""


def test_a_program_of_specializations_inside_classes_means_the_same(tmp_path: Path) -> None:
    text = outside_of_classes(PROGRAM)
    assert text.count("\n") == PROGRAM.count("\n")
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(text)
    subprocess.run([*compiler(), "-std=c++17", "-Wno-unused", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert printed == "4 2 8 103 2 2.5 1 4 1 2"


@pytest.mark.parametrize(
    "text",
    [
        "template <class T> struct S { int x; }; template <> struct S<int> { int y; };",  # not in a class
        "struct S { template <> int f<2>() { return 2; } };",  # its template is elsewhere
        "struct S { template <class... T> struct L; template <> struct L<int> {}; };",
        "void f() { struct S { int x; } s; }",
        "struct S { template <int N> int f(); int g() { return a < b; } };",
        "enum class E { a, b }; struct S { template <",
        'struct S { const char* s = "template <> {"; };',
    ],
)
def test_what_is_not_known_stays_as_it_is(text: str) -> None:
    assert outside_of_classes(text) == text

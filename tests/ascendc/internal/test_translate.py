"""Launches and kernels in sources, as authors write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.host.ascendc import driver, translate
from ascend_graph.sources.kernels import find_kernels


def launched(callee: str, configuration: str) -> str:
    return f'::ascendc_host::chevrons("{callee}", [](const auto&... a_) {{ {callee}(a_...); }}, {configuration})'


@pytest.mark.parametrize(
    ("callee", "configuration"),
    [
        ("add", "8, nullptr, stream"),
        ("add", "GetBlocks(a, b[1]), 0, c10_npu::getCurrentNPUStream().stream(false)"),
        ("ops::add", "static_cast<uint32_t>(n), nullptr, s"),
        ("::ops::inner::add", "n, l2, s"),
        ("add<half>", "n, l2, s"),
        ("ops::add<half, Tile<16, 32>>", "n, l2, s"),
        ("Kernel<T>::template run<T, (1 > 0)>", "n, l2, s"),
        ("add<sizeof(int)>", "n"),
    ],
)
def test_launch(callee: str, configuration: str) -> None:
    text = f"  return {callee}<<<{configuration}>>>(x, y);"
    assert translate.rewrite_launches(text) == f"  return {launched(callee, configuration)}(x, y);"


def test_several_launches_and_lines() -> None:
    text = "f<<<1, a, b>>>(x);\nauto s = \"g<<<1>>>(x)\";\ng\n  <<<2,\n c, d>>>('<', y);\nint z = 1'000 << 2;\n"
    result = translate.rewrite_launches(text)
    assert result.count("chevrons") == 2
    assert '"g<<<1>>>(x)"' in result
    assert result.count("\n") == text.count("\n"), "every line stays on its line"
    assert "1'000 << 2" in result


@given(st.text(alphabet="abc<>(){}[];:,\"'\\\n 0", max_size=60))
def test_any_text_is_answered(text: str) -> None:
    """Whatever the text, it is rewritten or refused; lines are never lost."""
    try:
        result = translate.rewrite_launches(text)
    except translate.KernelSourceError:
        return
    if "<<<" not in text:
        assert result == text
    find_kernels(text)
    translate.declare_cores(text)
    translate.end_assertions(f"{text}{CHECK}{text}")


CHECK = '+::AscendC::assertion([&] { return n > 0; }(), "n > 0; }", where)'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{{ {CHECK} int a; }}", f"{{ {CHECK}; int a; }}"),
        (f"{{ {CHECK} }}", f"{{ {CHECK}; }}"),
        (f'{{ {CHECK}\n# 7 "a.h" 2\n  *p = 1; }}', f'{{ {CHECK};\n# 7 "a.h" 2\n  *p = 1; }}'),
        (f"f(); {CHECK} {CHECK} g();", f"f(); {CHECK}; {CHECK}; g();"),
        (f"if (a) {CHECK} f();", f"if (a) {CHECK}; f();"),
        (f"if (a) {CHECK}; else {CHECK} f();", f"if (a) {CHECK}; else {CHECK}; f();"),
        (f"case 1: {CHECK} break;", f"case 1: {CHECK}; break;"),
    ],
)
def test_an_assertion_is_a_statement_without_a_semicolon(text: str, expected: str) -> None:
    assert translate.end_assertions(text) == expected


@pytest.mark.parametrize(
    "text", [f"{{ {CHECK}; }}", f"int a = 3 {CHECK}; b();", f"int a = f() {CHECK}, c;", f"return (a) {CHECK};"]
)
def test_an_assertion_after_a_value_is_left_alone(text: str) -> None:
    assert translate.end_assertions(text) == text


ARRAY = r": a __ubuf__ array in a function of threads, which share it on a device, is not supported"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__ascendc_threads__ void f(int n) { __ascendc_ubuf__ float x[32]; }", f"line 1{ARRAY}"),
        ("__ascendc_threads__ int f() const {\n if (g()) {\n extern __ascendc_ubuf__ char x[]; } }", f"line 3{ARRAY}"),
        (
            '# 7 "k.asc"\n__ascendc_threads__ inline T C<T>::f() { __ascendc_ubuf__ a::B<T> x [n][2]; }',
            rf"k\.asc:7{ARRAY}",
        ),
    ],
)
def test_arrays_that_threads_would_share(text: str, message: str) -> None:
    with pytest.raises(translate.KernelSourceError, match=message):
        translate.check_threads(text)


def test_other_arrays_and_pointers_of_threads() -> None:
    text = """
__ascendc_threads__ void f(__ascendc_ubuf__ float* x, int n) { float y[4]; auto z = (__ascendc_ubuf__ float*)x;
    z[n] = y[1]; }
void g() { __ascendc_ubuf__ float x[32]; }
__ascendc_threads__ void declared(__ascendc_ubuf__ float* x);
__ascendc_threads__ void unfinished( {"""
    assert translate.check_threads(text) == text.replace("__ascendc_threads__", "").replace("__ascendc_ubuf__", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('# 7 "k.asc"\n\nf<<<1, 2(x);', r"k\.asc:8: the launch of f needs its '>>>'"),
        ("= <<<1>>>(x);", r"line 1: '<<<' needs the name of a kernel"),
        ("void __ascendc_mix__(3, 1) f() {}", r"__mix__\(3, 1\); valid: \(1, 0\), \(0, 1\), \(1, 1\), \(1, 2\)"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(translate.KernelSourceError, match=message):
        translate.declare_cores(translate.rewrite_launches(text))


def test_kernels() -> None:
    text = """
namespace a { namespace b::c {
extern "C" __ascendc_global__  void plain(uint8_t* x, const float scale, unsigned int n = 3) { if (n) { } }
} struct S { int x; };
__ascendc_global__ void later(int n);
template <typename T> __ascendc_global__ void generic(T* x) {}
template <
# 23 "keys.h" 3 4
         bool first, int second
# 23 "kernel.cpp"
         >
__ascendc_global__ void of_a_macro(int* x) {}
__ascendc_global__ __attribute__((aligned(16))) void in_a(const Tiling tiling, uint8_t *restrict, void* p,
    Pair<int, 2> q) {}
}
__ascendc_global__ void outside() {}
"""
    kernels = find_kernels(text)
    assert [(kernel.namespace, kernel.name) for kernel in kernels] == [
        ("a::b::c", "plain"),
        ("a", "in_a"),
        ("", "outside"),
    ]
    plain, in_a, outside = kernels
    assert [(p.type, p.name) for p in plain.parameters] == [
        ("uint8_t*", "x"),
        ("const float", "scale"),
        ("unsigned int", "n"),
    ]
    assert [(p.type, p.name) for p in in_a.parameters][:3:2] == [("const Tiling", "tiling"), ("void*", "p")]
    assert in_a.parameters[3] == translate.SourceParameter("Pair<int, 2>", "q")
    assert outside.parameters == ()
    assert "const void* tiling" in translate.launch_header(in_a)
    assert "*static_cast<const Tiling*>(tiling)" in translate.launch_stub(in_a)
    assert "a::b::c::plain(a_...)" in translate.launch_stub(plain)


def test_command_line() -> None:
    command = driver.parse(
        [
            "-x",
            "asc",
            "--npu-arch=dav-2201",
            "-shared",
            "-fPIC",
            "-std=c++17",
            "-O2",
            "-Iinc",
            "-I",
            "other",
            "-DA=1",
            "-lfoo",
            "-L",
            "dir",
            "-mllvm",
            "-x",
            "-Wl,-z,now",
            "--cce-auto-sync=off",
            "-MD",
            "-MF",
            "k.d",
            "k.asc",
            "-x",
            "none",
            "host.cpp",
            "lib.a",
            "-o",
            "out.so",
        ]
    )
    own = ["-fPIC", "-std=c++17", "-O2", "-Iinc", "-I", "other", "-DA=1"]
    assert command.options == [*own, "-DASCENDC_HOST_MANUAL_SYNC"]  # what the check of pipes asks of such a kernel
    assert command.link == ["-shared", "-lfoo", "-L", "dir", "-Wl,-z,now", "k.asc", "host.cpp", "lib.a"]
    assert [(path.name, kernel) for path, kernel in command.sources.values()] == [("k.asc", True), ("host.cpp", False)]
    assert (command.output, command.dependencies, command.shared) == ("out.so", ["-MD", "-MF", "k.d"], True)


def test_the_last_option_says_who_adds_waits() -> None:
    assert driver.parse(["--cce-auto-sync=off", "--cce-auto-sync=on", "--sanitizer", "a.asc"]).options == []


@pytest.mark.parametrize("option", ["-o", "-x", "-I", "-MF", "-mllvm", "-L", "-include"])
def test_option_without_value(option: str) -> None:
    with pytest.raises(driver.CompilerOptionError, match=f"option {option} needs a value"):
        driver.parse(["a.asc", option])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void host() { k<<<1>>>(x); }", "void host() {}"),
        (
            'extern "C" { void f() { g(); } void h() { if (a) { k<<<1>>>(x); } } }',
            'extern "C" { void f() { g(); } void h() {} }',
        ),
        (
            "namespace a { inline namespace b { int f() { return 1; } } }\nvoid h() {\n k<<<1>>>(x);\n}\nint z;",
            "namespace a { inline namespace b { int f() { return 1; } } }\nvoid h() {\n\n}\nint z;",
        ),
        (
            'const char* s = "} k<<<1>>>(x) {"; int f() { return 1 << 2; }',
            'const char* s = "} k<<<1>>>(x) {"; int f() { return 1 << 2; }',
        ),
    ],
)
def test_functions_that_launch_are_emptied(text: str, expected: str) -> None:
    assert translate.drop_launchers(text) == expected


@given(st.text(alphabet='{}<>"; kn\n', max_size=60))
def test_emptying_keeps_every_line(text: str) -> None:
    assert translate.drop_launchers(text).count("\n") == text.count("\n")

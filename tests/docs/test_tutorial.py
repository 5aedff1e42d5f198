"""The tutorial and the how-tos do what they say: their own files and commands, in order, in an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import DOCS, blocks, environment, run

#: Pages that are done in one directory, one after the other; a page alone otherwise.
PAGES = [
    (DOCS / "tutorial.md", DOCS / "tutorial-wheel.md"),
    (DOCS / "binding.md",),
    (DOCS / "checking.md",),
    (DOCS / "eager.md",),
    (DOCS / "registration.md",),
    (DOCS / "shapes.md",),
    *((page,) for page in sorted((DOCS / "howto").glob("*.md"))),
]


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("packages"))


@pytest.mark.slow
@pytest.mark.parametrize("pages", PAGES, ids=lambda pages: pages[0].stem)
def test_a_page_does_what_it_says(pages: tuple[Path, ...], variables: dict[str, str], tmp_path: Path) -> None:
    for page in pages:
        assert any(block.language == "sh" for block in blocks(page)), f"{page.name} has no commands"
    wrong = run(pages, tmp_path / "empty", variables)
    assert not wrong, "\n".join(wrong)


def test_a_page_that_is_wrong_is_found_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```python title="a/b.py"\nprint(6 * 7)\n```\nRun it:\n```sh\nexport N=1\npython3 a/b.py\n```\n```text\n4...\n'
        "```\n"
        "```sh\necho $N; false\n```\n```text\n2\n```\n"
    )
    variables = {"PATH": "/usr/bin:/bin"}
    value, failure = run([page], tmp_path / "empty", variables)
    assert value.startswith("page.md:12: echo $N; false\nprints\n1\n")
    assert failure.startswith("page.md: the commands end with 1")

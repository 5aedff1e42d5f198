"""The site: it builds without a warning, its links and anchors lead somewhere, it loads nothing from elsewhere; in a
browser where one is."""

from __future__ import annotations

import doctest
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

from .pages import DOCS

#: Browsers that print a page as it is after its scripts have run.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Links(HTMLParser):
    """What a page refers to, what it loads, and what in it can be referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("script", "img", "iframe") and "src" in given:
            self.loaded.append(given["src"])
        elif tag == "link" and "href" in given and given.get("rel") != "canonical":
            self.loaded.append(given["href"])


def read(path: Path) -> Links:
    parser = Links()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="make docs, or pip install '.[docs]', installs what builds the site")
    target = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", target],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert build.returncode == 0, build.stdout + build.stderr
    return target


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: read(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 40
    wrong = []
    for path, page in pages.items():
        wrong += [f"{path.name} loads {url}" for url in page.loaded if urlsplit(url).scheme not in ("", "data")]
        for link in (*page.links, *page.loaded):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            to = (path.parent / unquote(url.path)).resolve() if url.path else path
            if to.is_dir():
                to /= "index.html"
            if not to.is_file():
                wrong.append(f"{path.relative_to(site)}: {link} is not a file")
            elif url.fragment and to in pages and unquote(url.fragment) not in pages[to].anchors:
                wrong.append(f"{path.relative_to(site)}: {link} has no such anchor")
    assert not wrong, "\n".join(wrong)


def test_the_reference_has_what_is_public(site: Path) -> None:
    import ascend_graph

    anchors = {a for path in (site / "reference").glob("*.html") for a in read(path).anchors}
    modules = {"raw_ops"}
    missing = [name for name in ascend_graph.__all__ if name not in modules and f"ascend_graph.{name}" not in anchors]
    assert not missing


@pytest.mark.parametrize("hook", ["hooks", "glossary_links"])
def test_examples_in_the_hooks(hook: str) -> None:
    pytest.importorskip("mkdocs", reason="make docs, or pip install '.[docs]', installs what builds the site")
    spec = importlib.util.spec_from_file_location(hook, DOCS / f"{hook}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outcome = doctest.testmod(module)
    assert outcome.attempted
    assert not outcome.failed


def test_terms_are_linked_to_the_glossary_at_their_first_use(site: Path) -> None:
    terms = {a for a in read(site / "glossary.html").anchors if not a.startswith("__")}
    linked: dict[str, list[str]] = {}
    for path in site.rglob("*.html"):
        uses = [link.partition("#")[2] for link in read(path).links if "glossary.html#" in link]
        assert len(uses) == len(set(uses)), f"{path.name} links a term twice"
        for use in set(uses):
            linked.setdefault(use, []).append(str(path.relative_to(site)))
    assert set(linked) <= terms
    assert len(linked) > 50
    assert {"tutorial.html", "zh/tutorial.html"} <= set(linked["prototype"])
    assert "howto/gradients.html" in linked["aclgraph"]


in_a_browser = pytest.mark.skipif(
    not any(map(shutil.which, BROWSERS)), reason=f"no browser on this machine: {', '.join(BROWSERS)}"
)


def opened(address: str, directory: Path, milliseconds: int = 5000) -> tuple[str, str]:
    """Return a page as it is after its scripts have run, and what the browser logged."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom")
    command = [browser, *options, f"--virtual-time-budget={milliseconds}", f"--user-data-dir={directory}", address]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout, result.stderr


@contextmanager
def served(site: Path) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Serve a directory; yield its address, and what is asked for with the status of each answer."""
    asked: list[tuple[str, int]] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            asked.append((self.path, int(getattr(code, "value", code))))

        def log_message(self, *_: object) -> None:
            pass

        def copyfile(self, source: BufferedReader, outputfile: BufferedIOBase) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):  # the browser has what it wants and goes
                super().copyfile(source, outputfile)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


@in_a_browser
def test_pages_open_in_a_browser(site: Path, tmp_path: Path) -> None:
    """Without an error of a script, with the theme's scripts run, and with nothing asked for that is not there."""
    with served(site) as (address, asked):
        for name in ("index.html", "tutorial.html", "reference/registration.html", "zh/routes.html"):
            page, log = opened(f"{address}/{name}", tmp_path)
            assert 'class="js' in page, "the theme's script did not run"
            assert "Uncaught" not in log, log
            assert "Switch to dark" in page
    assert [page for page, status in asked if page.endswith("tutorial.html") and status == 200]
    # The theme asks for the map of each language, to stay on a page when the language is switched.
    assert not [page for page, status in asked if status == 404 and not page.endswith(("favicon.ico", "sitemap.xml"))]


#: Types a word into the field of the search, letter by letter and again, until something is found.
SEARCH = """<script>addEventListener("load", () => {
    const box = document.getElementById("__search"), field = document.querySelector(".md-search__input");
    box.checked = true; box.dispatchEvent(new Event("change")); field.focus();
    const word = "tolerances"; let typed = 3;
    const typing = setInterval(() => {
        if (document.querySelector(".md-search-result__item")) return clearInterval(typing);
        field.value = word.slice(0, typed = typed < word.length ? typed + 1 : 3);
        field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
    }, 300);
});</script>"""


@in_a_browser
@pytest.mark.parametrize("as_files", [True, False])
def test_the_search_finds_pages(site: Path, tmp_path: Path, as_files: bool) -> None:
    page = site / "searching.html"
    page.write_text((site / "index.html").read_text(encoding="utf-8").replace("</body>", SEARCH + "</body>"))
    try:
        with nullcontext((site.as_uri(), [])) if as_files else served(site) as (address, _):
            found, _ = opened(f"{address}/{page.name}", tmp_path, 20000)
    finally:
        page.unlink()
    assert re.search(r"\d+ matching document", found)
    if as_files:  # where no worker, whose time is not the page's, makes the list
        assert "howto/tolerances.html" in found[found.index("md-search-result__list") :].partition("</ol>")[0]


#: Opens pages one after the other, as wide as a desk's window and as a phone, and lists what is wider than its column.
MEASURE = """<!doctype html><pre id="out"></pre><script>
const found = [];
const measure = (name, width) => new Promise(done => {
    const frame = Object.assign(document.createElement("iframe"), {width, height: 900, src: name});
    frame.onload = () => setTimeout(() => {
        const page = frame.contentDocument, wider = (what, element) => found.push([name, width, what, element]);
        if (page.documentElement.scrollWidth > frame.contentWindow.innerWidth) wider("page", "");
        for (const table of page.querySelectorAll(".md-typeset__scrollwrap"))
            if (table.scrollWidth > table.clientWidth) wider("table", table.innerText.slice(0, 60));
        for (const image of page.querySelectorAll(".md-content img"))
            if (!image.naturalWidth || image.clientWidth > image.parentElement.clientWidth + 1) wider("image", image.src);
        frame.remove(); done();
    }, 100);
    document.body.appendChild(frame);
});
(async () => {
    for (const name of PAGES) for (const width of [1280, 390]) await measure(name, width);
    document.getElementById("out").textContent = JSON.stringify({found});
})();
</script>"""


@in_a_browser
@pytest.mark.slow
def test_tables_and_pictures_keep_to_their_column_on_a_desk_and_on_a_phone(site: Path, tmp_path: Path) -> None:
    pages = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    driver = site / "measuring.html"
    driver.write_text(MEASURE.replace("PAGES", json.dumps(pages)))
    try:
        with served(site) as (address, _):
            page, _ = opened(f"{address}/{driver.name}", tmp_path, 600_000)
    finally:
        driver.unlink()
    measured = re.search(r'<pre id="out">(.*?)</pre>', page, re.DOTALL)
    assert measured is not None
    assert json.loads(unescape(measured.group(1))) == {"found": []}

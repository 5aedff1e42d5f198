"""The site: it builds without a warning, its links and anchors lead somewhere, it loads nothing from elsewhere; in a
browser where one is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
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


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"no browser on this machine: {', '.join(BROWSERS)}")
def test_pages_open_in_a_browser(site: Path, tmp_path: Path) -> None:
    """Without an error of a script, with the theme's scripts run, and with nothing asked for that is not there."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
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
        for name in ("index.html", "tutorial.html", "reference/registration.html", "zh/routes.html"):
            result = subprocess.run(
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--enable-logging=stderr",
                    "--virtual-time-budget=5000",
                    f"--user-data-dir={tmp_path}",
                    "--dump-dom",
                    f"http://127.0.0.1:{server.server_address[1]}/{name}",
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            assert 'class="js' in result.stdout, "the theme's script did not run"
            assert "Uncaught" not in result.stderr, result.stderr
    finally:
        server.shutdown()
        server.server_close()
    assert [page for page, status in asked if page.endswith("tutorial.html") and status == 200]
    assert not [page for page, status in asked if status >= 400 and not page.endswith("favicon.ico")]

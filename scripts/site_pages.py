"""Gathers the pages of the site in build/docs, with its settings and navigation: `python scripts/site_pages.py`.

Pages lie in docs/, except for those that exist already: the READMEs, the changelog, and the guide that every project
ships. The guide is rendered once, with every feature and the default answers otherwise. The reference and the page of
practices are made from that project, too. What comes out is plain Markdown in which links between pages hold.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import warnings
from pathlib import Path

import copier
import yaml
from config_reference import reference
from copier.errors import DirtyLocalWarning
from practices_page import practices

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build/docs"
PROJECT = BUILD / "project"
PAGES = BUILD / "pages"
ELSEWHERE = {"README.md": "index.md", "README.zh-CN.md": "zh/index.md", "CHANGELOG.md": "changelog.md"}
# The order of the guide. A page that stands here and does not exist is left out; one that does not stand here is last.
GUIDE = """tour configuration your-own data images storage many-devices resuming diagnosis sweeps report predict export
serve updating adopting""".split()
NO_GUIDE = {"start.md", "practices.md", "compare.md", "contributing.md"}  # of docs/
LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)"
)


def main() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    render()
    sources = pages_of_the_repository() | pages_of_the_project()
    table = (PROJECT / "docs/practices.md").read_text(encoding="utf-8")
    generated = reference(PROJECT)
    for page, (file, home) in sources.items():
        text = file.read_text(encoding="utf-8")
        if page == "practices.md":
            text = practices(text, table)
        generated[page] = text
    homes = {page: home for page, (_, home) in sources.items()}
    for page, text in generated.items():
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(with_links_of_the_site(text, page, homes), encoding="utf-8")
    shutil.copytree(ROOT / "docs/images", PAGES / "images")
    shutil.copy(ROOT / "docs/site.css", PAGES)
    settings = (ROOT / "docs/zensical.toml").read_text(encoding="utf-8")
    nav = ",\n".join(f"    {toml(entry)}" for entry in navigation(sorted(generated)))
    (BUILD / "zensical.toml").write_text(
        settings.replace("[project]\n", f"[project]\nnav = [\n{nav},\n]\n", 1), encoding="utf-8"
    )


def render() -> None:
    """Renders the working tree with every feature."""
    features = yaml.safe_load((ROOT / "copier.yml").read_text(encoding="utf-8"))["features"]["choices"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DirtyLocalWarning)
        copier.run_copy(
            str(ROOT), PROJECT, data={"features": list(features.values())}, vcs_ref="HEAD", defaults=True, quiet=True
        )


def pages_of_the_repository() -> dict[str, tuple[Path, str]]:
    """Where a page stands on the site: its file, and the path that its links start from."""
    names = {page: name for name, page in ELSEWHERE.items()}
    paths = (path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return {page: (ROOT / name, name) for page, name in (names | {path: f"docs/{path}" for path in paths}).items()}


def pages_of_the_project() -> dict[str, tuple[Path, str]]:
    """The pages of the guide; its table of practices becomes a part of another page."""
    paths = (path for path in (PROJECT / "docs").glob("*.md") if path.stem != "practices")
    return {f"guide/{path.name}": (path, f"template/docs/{path.name}") for path in paths}


def navigation(pages: list[str]) -> list[dict[str, str | list[str]]]:
    def place(page: str) -> int:
        stem = Path(page).stem
        return GUIDE.index(stem) if stem in GUIDE else len(GUIDE)

    top = [page for page in pages if "/" not in page and page not in {*NO_GUIDE, *ELSEWHERE.values()}]
    guide = [*top, *(page for page in pages if page.startswith("guide/"))]
    first = ["reference/index.md", "reference/commands.md"]
    groups = [page for page in pages if page.startswith("reference/") and page not in first]
    chinese = [page for page in pages if page.startswith("zh/") and page != "zh/index.md"]
    return [
        {"Home": "index.md"},
        {"Start": "start.md"},
        {"Guide": sorted(guide, key=place)},
        {"Reference": [*first, *groups]},
        {"Practices": "practices.md"},
        {"Comparison": "compare.md"},
        {"Contributing": ["contributing.md", "changelog.md"]},
        {"中文": ["zh/index.md", *chinese]},
    ]


def toml(entry: dict[str, str | list[str]]) -> str:
    ((title, pages),) = entry.items()
    return f"{{ {json.dumps(title, ensure_ascii=False)} = {json.dumps(pages)} }}"


def with_links_of_the_site(markdown: str, page: str, homes: dict[str, str]) -> str:
    """Turns links between files of the repository into links between pages of the site.

    A link to a file that is no page becomes its text; one to nothing stays, for the strict build to refuse.
    """
    sites = {home: site for site, home in homes.items()} | {"template/docs/practices.md": "practices.md"}
    home = homes.get(page, page)

    def link(match: re.Match[str]) -> str:
        image, text, target = match["image"], LINK.sub(link, match["text"]), match["target"]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target)).removesuffix(".jinja")
        site = sites.get(path) or (path.removeprefix("docs/") if path.startswith("docs/images/") else None)
        if site == page:
            return text
        if site:
            target = posixpath.relpath(site, posixpath.dirname(page) or ".")
        elif (ROOT / path).exists() or (ROOT / f"{path}.jinja").exists():
            return text
        return f"{image}[{text}]({target}{match['anchor'] or ''})"

    return LINK.sub(link, markdown)


if __name__ == "__main__":
    main()

"""Write the pages that are made from the code, and the site's navigation. `--check` only says whether they are up to date."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))  # the proofs and the codemods' pages are made from what the suite asserts

from ddpfix import explain, settings_schema  # noqa: E402
from ddpfix.diagnosis import messages  # noqa: E402
from docs.made import cli, codemod, demo, navigation, symptoms  # noqa: E402
from tests.faults.page import page as faults_page  # noqa: E402
from tests.proofs.page import page as proofs_page  # noqa: E402

PICTURE = HERE / "images" / "demo.svg"
MARK = "<!-- below: made from ddpfix/diagnosis/table by `make docs` -->"


def pages() -> dict[str, str]:
    """Every file, by its path below the project's root."""
    made = {
        **explain.pages(),
        **codemod.pages(),
        "settings.schema.json": json.dumps(settings_schema.schema(), indent=1) + "\n",
        "cli.md": cli.page(),
        "diagnose.md": with_table((HERE / "diagnose.md").read_text("utf-8")),
        "proofs.md": proofs_page(),
        "reliability.md": faults_page(),
        "symptoms.md": symptoms.page(),
        "security.md": for_the_site((ROOT / "SECURITY.md").read_text("utf-8")),
    }
    return {**{f"docs/{path}": text for path, text in made.items()}, "zensical.toml": navigation.written()}


def with_table(page: str) -> str:
    """The page on `ddpfix diagnose`: written by hand down to the mark, the table of messages below it."""
    return page.partition(MARK)[0] + f"{MARK}\n\n{messages.table()}"


def for_the_site(page: str) -> str:
    """A page of the project's root, with the links that it has among the pages of the site."""
    return page.replace("](docs/", "](")


def stale() -> list[str]:
    """The files that differ from what the code says, and pages of codemods that are gone."""
    wanted = pages()
    there = {p.relative_to(ROOT).as_posix() for p in (HERE / "codemods").glob("*.md")}
    differing = [p for p, text in wanted.items() if not (ROOT / p).is_file() or (ROOT / p).read_text(encoding="utf-8") != text]
    return sorted({*differing, *(there - set(wanted))})


def write() -> None:
    made = pages()
    for name in stale():
        target = ROOT / name
        if (text := made.get(name)) is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    lines = demo.shown(demo.printed())
    if not PICTURE.is_file() or not demo.is_current(PICTURE.read_text(encoding="utf-8"), lines):
        PICTURE.write_text(demo.picture(lines), encoding="utf-8")


if __name__ == "__main__":
    if "--check" not in sys.argv:
        write()
    elif old := stale():
        sys.exit(f"not up to date: {', '.join(old)}; run `make docs`")

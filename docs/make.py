"""Write the pages under docs/ that are made from the code. `--check` only says whether they are up to date."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ddpfix import explain, settings_schema
from ddpfix.diagnosis import messages

HERE = Path(__file__).parent
MARK = "<!-- below: made from ddpfix/diagnosis/table by `make docs` -->"
sys.path.insert(0, str(HERE.parent))  # the page of the proofs is made from what their suite asserts

from tests.faults.page import page as faults_page  # noqa: E402
from tests.proofs.page import page as proofs_page  # noqa: E402


def pages() -> dict[str, str]:
    """Every page, by its path below docs/."""
    schema = json.dumps(settings_schema.schema(), indent=1) + "\n"
    made = {"proofs.md": proofs_page(), "reliability.md": faults_page(), "settings.schema.json": schema}
    return {**explain.pages(), **made, "diagnose.md": with_table((HERE / "diagnose.md").read_text("utf-8"))}


def with_table(page: str) -> str:
    """The page on `ddpfix diagnose`: written by hand down to the mark, the table of messages below it."""
    return page.partition(MARK)[0] + f"{MARK}\n\n{messages.table()}"


def stale() -> list[str]:
    """The pages whose file differs from what the code says, and files of codemods that are gone."""
    wanted = pages()
    there = {f"codemods/{p.name}" for p in (HERE / "codemods").glob("*.md")} | {"codemods.md", "proofs.md"}
    there |= {"reliability.md", "settings.schema.json"}
    differing = [p for p, text in wanted.items() if not (HERE / p).is_file() or (HERE / p).read_text(encoding="utf-8") != text]
    return sorted({*differing, *(there - set(wanted))})


def write() -> None:
    for name in stale():
        target = HERE / name
        text = pages().get(name)
        if text is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    old = stale()
    if "--check" in sys.argv:
        sys.exit(f"not up to date: {', '.join(old)}; run `make docs`" if old else 0)
    write()

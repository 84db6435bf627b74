"""How long after a keystroke an editor shows the findings: a real client, a server of its own, a folder of your choice.

    python -m benchmarks.typing_delay FOLDER [FILES] [SEED]

Each file is opened, and eight times a line is put in or taken out at random, the next time when the answer to the last is there.
It says for each file the first look and the median and the longest delay after that, then the distribution over all.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from codemods.store.project import Project
from ddpfix import api, engine, judging, plugins
from tests.lsp.editor import Editor, session

KEYSTROKES = 8
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds until the answer, and seconds of processor that the server took for it (in steps of a hundredth)."""

    wall: float
    cpu: float


def _cpu(editor: Editor) -> float:
    """All threads of the server, as Linux counts them; the looks at the whole project are other processes."""
    assert editor._server is not None
    fields = Path(f"/proc/{editor._server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _shown(editor: Editor, uri: str) -> Delay:
    """The delay until there is an answer to the text as it is; it need not differ from the last."""
    began, before = time.perf_counter(), _cpu(editor)
    while uri not in editor.shown or editor.shown[uri].version != editor.versions[uri]:
        editor._news.clear()
        await asyncio.wait_for(editor._news.wait(), PATIENCE)
    return Delay(time.perf_counter() - began, _cpu(editor) - before)


def delays(root: Path, count: int, seed: int) -> list[Delay]:
    rng = random.Random(seed)
    (project,) = api.projects(root)
    read = engine.disk_reader(root)
    tree, codemods = plugins.with_codemods(project.tree, project.settings)
    passing, _ = judging.gated(engine.project_of(tree, project.settings, read, Project), tree.chosen, codemods)
    judged = sorted(p for p in passing if p.endswith(".py"))  # of the others there is nothing to say
    files = rng.sample(judged, min(count, len(judged)))

    async def work(editor: Editor) -> list[Delay]:
        await editor.begin(root)
        out: list[Delay] = []
        for path in files:
            uri = editor.open(root / path)
            first = await _shown(editor, uri)
            text, own = editor.texts[uri], []
            lines = text.splitlines(keepends=True)
            for i in range(KEYSTROKES):
                at = rng.randrange(len(lines))
                indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())].rstrip("\r\n")
                editor.type(uri, "".join([*lines[:at], f"{indent}# {i}\n", *lines[at:]]))
                own.append(await _shown(editor, uri))
                await asyncio.sleep(0.1)
            out += own
            usual, work = (1e3 * statistics.median(d) for d in zip(*((d.wall, d.cpu) for d in own), strict=True))
            print(
                f"{path[-64:]:64} first {first.wall:6.1f} s ({first.cpu:.1f} CPU), then {usual:5.0f} ms ({work:.0f})", flush=True
            )
        await editor.end()
        return out

    return session(work)


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    found = delays(root, *(int(a) for a in (*sys.argv[2:4], "15", "1")[:2]))
    for name, values in (("wall", sorted(d.wall for d in found)), ("CPU", sorted(d.cpu for d in found))):
        half, most, nearly_all = (1e3 * values[int(share * (len(values) - 1))] for share in (0.5, 0.9, 0.95))
        within = sum(v <= 0.2 for v in values) / len(values)
        print(f"{name}: median {half:.0f} ms, 90 % {most:.0f}, 95 % {nearly_all:.0f}; {within:.0%} in 200 ms")
    print(f"{len(found)} keystrokes, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()

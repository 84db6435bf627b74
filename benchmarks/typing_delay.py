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
from pathlib import Path

from ddpfix import api, engine, plugins
from tests.lsp.editor import Editor, session

KEYSTROKES = 8
PATIENCE = 120.0


async def _shown(editor: Editor, uri: str) -> float:
    """Seconds until there is an answer to the text as it is; it need not differ from the last."""
    began = time.perf_counter()
    while uri not in editor.shown or editor.shown[uri].version != editor.versions[uri]:
        editor._news.clear()
        await asyncio.wait_for(editor._news.wait(), PATIENCE)
    return time.perf_counter() - began


def delays(root: Path, count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    (project,) = api.projects(root)
    read = engine.disk_reader(root)
    tree, codemods = plugins.with_codemods(project.tree, project.settings)
    work, _ = engine.gated(engine.project_of(tree, project.settings, read), tree.chosen, codemods)
    judged = sorted(p for p in work if p.endswith(".py"))  # of the others there is nothing to say
    files = rng.sample(judged, min(count, len(judged)))

    async def work(editor: Editor) -> list[float]:
        await editor.begin(root)
        out: list[float] = []
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
            usual, most = 1e3 * statistics.median(own), 1e3 * max(own)
            print(f"{path[-70:]:70} first {first:6.2f} s, then {usual:5.0f} ms, at most {most:5.0f}", flush=True)
        await editor.end()
        return out

    return session(work)


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    found = sorted(delays(root, *(int(a) for a in (*sys.argv[2:4], "15", "1")[:2])))
    at = lambda share: 1e3 * found[min(len(found) - 1, int(share * len(found)))]  # noqa: E731
    within = sum(d <= 0.2 for d in found) / len(found)
    print(f"{len(found)} keystrokes: median {at(0.5):.0f} ms, 90 % {at(0.9):.0f}, 95 % {at(0.95):.0f}; {within:.0%} in 200 ms")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()

"""What is run with a fault at each of its points, and what has to hold afterwards.

A scenario builds a sandbox, runs one command in it with the fault, and is then judged: uncommitted bytes and `main` are what they
were, `git fsck` is content, nothing of ours lies about, and `ddpfix undo` gives everything back or says with exit 2 what is left.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gitrepos import put, sh, visible
from tests.programs import FIXED, MODULE, PLAIN

HERE = Path(__file__).parent
KINDS = {"kill before": 1, "kill after": 2, "ENOSPC": 3, "EACCES": 4, "disk full from there on": 5}
COUNT, OFF = 0, -1
PAGE = 6 * 4 + (1 << 20)
MINE = b"print('mine')\n"
FIRST = {"a.py": MODULE, "src/b.py": MODULE, "other.py": PLAIN, "notes.md": b"notes\n"}


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    said: str
    points: int
    hit: bool
    log: tuple[str, ...]


class Lab:
    """A folder with a sandbox that is made anew for every run, and the server that runs ddpfix in it."""

    def __init__(self, folder: Path) -> None:
        self.sandbox, self.template, self.said = folder / "sandbox", folder / "template", folder / "said"
        self.library = folder / "faults.so"
        page = folder / "page"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, HERE / "faults.c", "-ldl"], check=True)
        page.write_bytes(bytes(PAGE))
        (folder / "home").mkdir()
        own = {
            "LD_PRELOAD": str(self.library), "FAULT_FILE": str(page), "FAULT_ROOT": str(self.sandbox),
            "XDG_STATE_HOME": str(self.sandbox / "state"), "DDPFIX_CACHE_DIR": str(self.sandbox / "cache"),
            "TMPDIR": str(self.sandbox / "tmp"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80",
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.faults.server"]
        self.server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **own}, cwd=HERE.parent.parent
        )

    def close(self) -> None:
        assert self.server.stdin
        self.server.stdin.close()
        self.server.wait()

    def run(self, where: str, *arguments: str, at: int = 0, how: int = OFF, call: str = "") -> Ended:
        assert self.server.stdin and self.server.stdout
        asked: dict[str, Any] = {"cwd": str(self.sandbox / where), "arguments": arguments, "said": str(self.said)}
        asked |= {"at": at, "how": how}
        if call:
            asked["call"] = call
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        said = self.said.read_text(errors="replace")
        return Ended(answer["code"], said, answer["count"], bool(answer["hit"]), tuple(answer["log"]))

    def build(self, scenario: Scenario) -> None:
        """The sandbox as the scenario finds it, kept to be copied for each run."""
        for folder in (self.sandbox, self.template):
            shutil.rmtree(folder, ignore_errors=True)
        (self.sandbox / "tmp").mkdir(parents=True)
        scenario.build(self)
        self.sandbox.rename(self.template)

    def fresh(self) -> None:
        shutil.rmtree(self.sandbox, ignore_errors=True)
        subprocess.run(["cp", "-a", self.template, self.sandbox], check=True)


@contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    made = Lab(folder)
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True)
class Scenario:
    """A command that is run with a fault. judge: raises AssertionError; says what the way back came to."""

    name: str
    where: str
    build: Callable[[Lab], None]
    arguments: Sequence[str]
    judge: Callable[[Lab, Ended, str], str]
    call: str = ""


# Repositories


def repository(lab: Lab) -> None:
    """A repository with work of the user's: staged, changed and not known to git."""
    repo = lab.sandbox / "repo"
    repo.mkdir()
    sh(repo, "init", "-q", "-b", "main", "--template=")
    put(repo, FIRST)
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "first")
    put(repo, {"other.py": MINE, "staged.md": b"staged\n", "new.txt": b"mine\n"})
    sh(repo, "add", "staged.md")
    (lab.sandbox / "before.json").write_text(_state(repo))


def applied(lab: Lab) -> None:
    repository(lab)
    assert lab.run("repo", "apply", ".").code == 0


def applied_in_place(lab: Lab) -> None:
    repository(lab)
    assert lab.run("repo", "apply", "--in-place", ".").code == 0


def applied_once(lab: Lab) -> None:
    """A run before, on its branch; the next one replaces that."""
    repository(lab)
    repo = lab.sandbox / "repo"
    assert lab.run("repo", "apply", "--no-switch", "--select", "DDP101", "--no-summary-commit", ".").code == 0
    (lab.sandbox / "earlier.json").write_text(_state(repo))


def folder(lab: Lab) -> None:
    put(lab.sandbox / "plain", FIRST)


def folder_applied(lab: Lab) -> None:
    folder(lab)
    assert lab.run("plain", "apply", "--in-place", ".").code == 0


def _state(repo: Path) -> str:
    return repr(visible(repo))


def _nothing_lies_about(lab: Lab) -> None:
    found = [str(path) for place in ("repo", "plain") for path in (lab.sandbox / place).rglob(".ddpfix-*")]
    assert not found, found


def judge_repository(lab: Lab, ended: Ended, kind: str) -> str:
    repo = lab.sandbox / "repo"
    assert "defect" not in ended.said and "Traceback" not in ended.said, ended.said
    assert ended.code in (0, 2, -9), (ended.code, ended.said)
    assert sh(repo, "rev-parse", "main") == sh(lab.template / "repo", "rev-parse", "main")
    assert (repo / "other.py").read_bytes() == MINE
    assert (repo / "new.txt").read_bytes() == b"mine\n"
    assert sh(repo, "cat-file", "blob", ":staged.md") == "staged"
    sh(repo, "fsck", "--no-dangling", "--no-progress")
    _nothing_lies_about(lab)
    known = [(lab.sandbox / name).read_text() for name in ("before.json", "earlier.json") if (lab.sandbox / name).exists()]
    back = lab.run("repo", "undo")
    assert "defect" not in back.said and "Traceback" not in back.said, back.said
    _nothing_lies_about(lab)
    if back.code == 2:
        assert ended.code != 0, (ended.said, back.said)
        return "said what is left"
    assert back.code == 0, back.said
    now = _state(repo)
    assert now in known, f"{ended.said}\n{back.said}\n{now}\n{known}"
    return "restored"


def judge_folder(lab: Lab, ended: Ended, kind: str) -> str:
    plain = lab.sandbox / "plain"
    assert "defect" not in ended.said and "Traceback" not in ended.said, ended.said
    assert ended.code in (0, 2, -9), (ended.code, ended.said)
    _nothing_lies_about(lab)
    for name in ("a.py", "src/b.py"):
        assert (plain / name).read_bytes() in (MODULE, FIXED), name
    back = lab.run("plain", "undo")
    assert back.code == 0, back.said
    assert {name: (plain / name).read_bytes() for name in FIRST} == FIRST, f"{ended.said}\n{back.said}"
    assert sum(1 for path in plain.rglob("*") if path.is_file()) == len(FIRST)
    return "restored"


# Decisions and the cache


def decided(lab: Lab) -> None:
    folder(lab)
    lab.run("plain", call="tests.faults.points:decide_first")


def decide_first() -> None:
    _decide("reject")


def decide() -> None:
    _decide("accept")


def _decide(verdict: str) -> None:
    from ddpfix import decisions

    of = {f"{number:012x}": decisions.Decision("accept" if verdict == "accept" else "reject") for number in range(200)}
    decisions.write(Path(decisions.FILE), decisions.Decisions("", of))


def judge_decisions(lab: Lab, ended: Ended, kind: str) -> str:
    from ddpfix import decisions

    found = decisions.read(lab.sandbox / "plain" / decisions.FILE)
    assert len(found.of) == 200 and len({d.verdict for d in found.of.values()}) == 1
    assert ended.code or set(found.accepted()), "said to be saved, and is not"
    _nothing_lies_about(lab)
    return "old or new, whole"


def judge_cache(lab: Lab, ended: Ended, kind: str) -> str:
    assert "defect" not in ended.said and "Traceback" not in ended.said, ended.said
    assert ended.code in (1, 2, -9), ended.said
    again = lab.run("repo", "check", ".")
    assert again.code == 1
    right = lab.run("repo", "check", "--no-cache", ".")
    assert again.said == right.said
    assert ended.code != 1 or ended.said == right.said
    return "the next answer is right"


OVER = ("apply", "--no-switch", "--select", "DDP103", "--no-summary-commit", ".")
SCENARIOS = (
    Scenario("apply", "repo", repository, ("apply", "."), judge_repository),
    Scenario("undo", "repo", applied, ("undo",), judge_repository),
    Scenario("apply --no-switch over an earlier branch", "repo", applied_once, OVER, judge_repository),
    Scenario("apply --in-place", "repo", repository, ("apply", "--in-place", "."), judge_repository),
    Scenario("undo of --in-place", "repo", applied_in_place, ("undo",), judge_repository),
    Scenario("apply --in-place outside git", "plain", folder, ("apply", "--in-place", "."), judge_folder),
    Scenario("undo outside git", "plain", folder_applied, ("undo",), judge_folder),
    Scenario("decisions", "plain", decided, (), judge_decisions, call="tests.faults.points:decide"),
    Scenario("cache of check", "repo", repository, ("check", "."), judge_cache),
)


def survey(lab: Lab, scenario: Scenario) -> tuple[str, ...]:
    """The points of a scenario, in order."""
    lab.build(scenario)
    lab.fresh()
    return lab.run(scenario.where, *scenario.arguments, how=COUNT, call=scenario.call).log


def strike(lab: Lab, scenario: Scenario, at: int, kind: str) -> str:
    """One run with the fault at one point; what it came to. Raises AssertionError where something is lost."""
    lab.fresh()
    ended = lab.run(scenario.where, *scenario.arguments, at=at, how=KINDS[kind], call=scenario.call)
    if not ended.hit:
        return "not reached"
    return scenario.judge(lab, ended, kind)

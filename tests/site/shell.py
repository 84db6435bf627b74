"""The commands of a page, typed one after the other into one shell, and whether they print what the page shows.

A page shows a session as `console`: a line that begins with `$ ` is typed, the lines below it are what is printed. `…` stands
for text that is left out, on a line of its own for lines. Names of commits are compared as names, whatever they are. A fence with
a file in its title (`python title="train.py"`) is a file that is there from then on; a title that begins with `needs` marks a
session that this test cannot run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from tests.programs import forked_python

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MARK = "@@-next-command-@@"
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.M | re.S)
_COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")


@dataclass(frozen=True, slots=True)
class Typed:
    """A command, and the lines that the page shows below it."""

    command: str
    shown: tuple[str, ...]
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Fence:
    language: str
    title: str
    text: str

    @property
    def is_session(self) -> bool:
        return self.language == "console"

    @property
    def needs(self) -> str:
        return self.title if self.is_session and self.title.startswith("needs ") else ""

    @property
    def typed(self) -> tuple[Typed, ...]:
        """Where no line begins with `$ `, each line is typed, and a comment behind two spaces is not."""
        lines = self.text.splitlines()
        if not any(line.startswith("$ ") for line in lines):
            return tuple(Typed(re.sub(r"\s{2,}#.*", "", line), ()) for line in lines if line.strip())
        out: list[Typed] = []
        for line in lines:
            if line.startswith("$ "):
                out.append(Typed(line[2:], ()))
            else:
                out[-1] = Typed(out[-1].command, (*out[-1].shown, line))
        return tuple(out)


@dataclass(frozen=True, slots=True)
class Ended:
    typed: Typed
    status: int
    printed: str

    @property
    def is_as_shown(self) -> bool:
        if not self.typed.shown:
            return self.status == 0 or (self.status == 1 and self.typed.command.startswith(("ddpfix check", "ddpfix diff")))
        return matches(self.typed.shown, self.printed.splitlines())

    def __str__(self) -> str:
        return f"$ {self.typed.command}\n{self.printed}[exit {self.status}]\n"


def fences(page: str) -> list[Fence]:
    return [Fence(*found) for found in _FENCE.findall((DOCS / page).read_text(encoding="utf-8"))]


def matches(shown: Iterable[str], printed: Iterable[str]) -> bool:
    """True if the lines are those of the page, but for what the page leaves out."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "…" else f"{_as_pattern(line)}\n" for line in _plain(shown))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _plain(printed))) is not None


def _as_pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("…")))


def _plain(lines: Iterable[str]) -> list[str]:
    """Without white space at ends and names of commits, and without empty lines at the end of all.

    Whether gloo ends a rank that waits before it is asked where it stands is a race: the page shows one end of it.
    """
    text = "\n".join(_COMMIT.sub("COMMIT", line.rstrip().removesuffix(" (where gloo gave up)")) for line in lines)
    return text.rstrip("\n").splitlines()


def run(
    page: str,
    folder: Path,
    *,
    before: Iterable[str] = (),
    needed: Iterable[str] = (),
    instead: Mapping[str, str] = MappingProxyType({}),
) -> list[Ended]:
    """What became of each command of a page, from the project's own folder on; `~` is `folder`.

    before: lines of shell in front of all. needed: what there is, as titles say it: such sessions are run as well.
    instead: a line of shell for a session of that title.
    """
    env = environment(folder)
    script = ["exec 2>&1", *programs(env), *before]
    typed: list[Typed] = []
    for fence in fences(page):
        if fence.needs in instead:
            script.append(instead[fence.needs])
        elif fence.is_session and (not fence.needs or fence.needs in needed):
            for one in fence.typed:
                typed.append(replace(one, needs=fence.needs))
                script += [f"{{ {one.command}\n}} </dev/null", f'printf "\\n%s %s\\n" "{MARK}" "$?"']
        elif fence.title and not fence.is_session:
            script += [f"cat > '{fence.title}' <<'END-OF-FILE'", fence.text + "END-OF-FILE"]
    done = subprocess.run(["bash"], input="\n".join(script), cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    pieces = re.split(rf"\n{MARK} (\d+)\n", done.stdout)
    assert len(pieces) == 2 * len(typed) + 1, done.stdout + done.stderr
    return [Ended(one, int(pieces[2 * i + 1]), pieces[2 * i]) for i, one in enumerate(typed)]


def environment(home: Path) -> dict[str, str]:
    """A user with a home of their own, and git settings in it."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "DDPFIX_"))}
    own = {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "DDPFIX_CACHE_DIR": str(home / ".cache"),
        "COLUMNS": "100", "GIT_PAGER": "cat", "PAGER": "cat", "OMP_NUM_THREADS": "1", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
    }  # fmt: skip
    path = {"PYTHONPATH": str(ROOT)} if "PYTHONPATH" in inherited else {}
    return {**inherited, **path, **own}


def programs(env: Mapping[str, str]) -> list[str]:
    """`ddpfix` as a fork of a process that has the libraries, and the other programs of this environment."""
    return [
        f'ddpfix() {{ "{forked_python(env)}" -P -m ddpfix.cli "$@"; }}',
        f'export PATH="{Path(sys.executable).parent}:$PATH"',
    ]

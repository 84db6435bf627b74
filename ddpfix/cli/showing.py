"""What goes to the screen: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ddpfix.cli.ends import CommandError


def note(text: str) -> None:
    """A line that is no result."""
    sys.stderr.write(f"{plain(text)}\n")


def show(text: str) -> None:
    """A result for people."""
    sys.stdout.write(plain(text))


def plain(text: str) -> str:
    """Lines that no terminal and no runner of jobs takes for anything but text, whatever the names in them hold."""
    from ddpfix.escaping import harmless

    return "\n".join(map(harmless, text.split("\n")))


def progress() -> Callable[[int, int], None] | None:
    """A counter with an estimate on stderr, where that is a terminal and nobody collects it."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return None

    began = time.monotonic()

    def show(done: int, total: int) -> None:
        if total > 50 and done % 10 == 0:
            spent = time.monotonic() - began
            left = f", about {spent / done * (total - done):.0f} s left" if done and spent > 1 else ""
            sys.stderr.write(f"\r{done}/{total} files{left}\x1b[K")
            sys.stderr.flush()

    return show


def clear_progress() -> None:
    if sys.stderr.isatty() and not os.environ.get("CI"):
        sys.stderr.write("\r\x1b[K")


def agreed(question: str) -> bool:
    """The answer of a person at the terminal; no where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def wants_color(color: str) -> bool:
    if color not in ("auto", "always", "never"):
        raise CommandError(f"--color takes auto, always or never, not {color!r}")
    if color == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return color == "always"


def show_patch(data: bytes, color: str) -> None:
    """Raw bytes into a pipe; coloured, and through the pager where it is longer than the screen, on a terminal."""
    colored = wants_color(color)
    if colored:
        from ddpfix import patches

        data = patches.colored(data)
    if sys.stdout.isatty() and data.count(b"\n") > os.get_terminal_size().lines - 2:
        import subprocess

        pager = os.environ.get("PAGER", "less -FRX")
        try:
            subprocess.run(pager, shell=True, input=data, check=False)
            return
        except OSError:
            pass
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def command_line() -> str:
    """The command as it was given, for the summary; no path of this machine in it."""
    import shlex

    return shlex.join(["ddpfix", *(Path(a).name if os.path.isabs(a) else a for a in sys.argv[1:])])

"""Runs ddpfix in forked children with a fault armed: the imports are paid once. Requests and answers are JSON lines."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import struct
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

WORDS = ("armed", "count", "at", "how", "hit", "used")


class Page:
    """The page that is shared with faults.c."""

    def __init__(self, file: str) -> None:
        with open(file, "r+b") as stream:
            self.memory = mmap.mmap(stream.fileno(), 0)

    def set(self, **values: int) -> None:
        for name, value in values.items():
            struct.pack_into("i", self.memory, 4 * WORDS.index(name), value)

    def get(self, name: str) -> int:
        return int(struct.unpack_from("i", self.memory, 4 * WORDS.index(name))[0])

    def log(self) -> list[str]:
        start = 4 * len(WORDS)
        return os.fsdecode(self.memory[start : start + self.get("used")]).splitlines()


_SUBREAPER = 36  # prctl(2)


def serve() -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    page = Page(os.environ["FAULT_FILE"])
    names = ("cli.program", "run", "git", "plugins", "summary", "checking")
    for module in ("libcst", "git", *(f"ddpfix.{name}" for name in names)):
        importlib.import_module(module)
    from ddpfix import answers
    from ddpfix.catalog import all_codemods

    all_codemods()
    _warm_up()
    answers.RACY = 0  # the files of a sandbox are always new
    for line in sys.stdin:
        print(json.dumps(_answer(page, json.loads(line))), flush=True)


def _warm_up() -> None:
    """What a first fix loads and compiles, paid before the children are forked."""
    from ddpfix import discovery, engine, summary
    from ddpfix.catalog import all_codemods
    from ddpfix.settings import Settings
    from tests.programs import MODULE

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder, "a.py").write_bytes(MODULE)
        tree = discovery.discover([Path(folder)])[0]
        fixed = engine.fix(tree, Settings(), all_codemods(), lambda finding: True)
        summary.render(fixed, summary.Context(command="", versions={}))


def _answer(page: Page, asked: dict[str, Any]) -> dict[str, object]:
    page.set(armed=0, count=0, at=asked["at"], how=asked["how"], hit=0, used=0)
    child = os.fork()
    if not child:
        _run(page, asked)
    status = os.waitpid(child, 0)[1]
    page.set(armed=0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, 9)
    with contextlib.suppress(ChildProcessError):
        while True:  # what outlives the first process of the group comes to this one
            os.waitpid(-1, 0)
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return {"code": code, "count": page.get("count"), "hit": page.get("hit"), "log": page.log() if asked["how"] == 0 else []}


def _run(page: Page, asked: dict[str, Any]) -> None:
    code = 70
    try:
        os.setsid()
        out = os.open(str(asked["said"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.chdir(str(asked["cwd"]))
        sys.argv = ["ddpfix", *asked["arguments"]]
        page.set(armed=int(asked["how"] != -1))
        if "call" in asked:
            module, _, name = str(asked["call"]).partition(":")
            getattr(importlib.import_module(module), name)()
        else:
            from ddpfix import cli

            cli.main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()

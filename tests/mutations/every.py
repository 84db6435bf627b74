"""`make mutations`: each answer of SECURITY.md's table is taken away in a copy of the product; the test behind it has to fail.

`python -m tests.mutations.every [WORD …]`: only those whose test or file holds one of the words. Exit 1 where a test stays green.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutations.threats import MUTATIONS, Mutation

HERE = Path(__file__).parents[2]
PARTS = ("ddpfix", "codemods", "tests", "fixtures", "docs", "pyproject.toml", "SECURITY.md", "README.md")
SECONDS = 400  # a test that hangs without the answer has failed, too
FAILED = 1  # pytest: tests were run, and some failed; 2 and more are no answer
NO_BYTECODE = shutil.ignore_patterns("__pycache__", ".*_cache")


def copied(folder: Path) -> None:
    for part in PARTS:
        if (HERE / part).is_dir():
            shutil.copytree(HERE / part, folder / part, ignore=NO_BYTECODE, symlinks=True)
        else:
            shutil.copy(HERE / part, folder / part)


def run(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    """(pytest's exit status, its last words); a test that hangs has failed."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        try:
            said = child.communicate(timeout=SECONDS * len(tests))[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.communicate()
            return FAILED, f"it hung for {SECONDS} s"
    errors = [line[2:].strip() for line in said.splitlines() if line.startswith("E  ")]
    return child.returncode, errors[0] if errors else " ".join(said.splitlines()[-1:])


def struck(folder: Path, mutation: Mutation) -> tuple[int, str]:
    """The test of a mutation, run with the product changed."""
    path = folder / mutation.file
    whole = path.read_text(encoding="utf-8")
    assert whole.count(mutation.old) == 1, f"{mutation.file}: not there once: {mutation.old}"
    path.write_text(whole.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return run(folder, [mutation.test])
    finally:
        path.write_text(whole, encoding="utf-8")


def main(words: Sequence[str]) -> int:
    chosen = [m for m in MUTATIONS if not words or any(word in f"{m.test} {m.file}" for word in words)]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="ddpfix-mutations-") as name:
        folder = Path(name)
        copied(folder)
        status, said = run(folder, sorted({m.test for m in chosen}))
        if status:
            print(f"without any change the tests end with {status}: {said}")
            return 1
        for mutation in chosen:
            began = time.monotonic()
            status, said = struck(folder, mutation)
            failed = status == FAILED
            survived += not failed
            word = "fails" if failed else f"STAYS GREEN ({status})"
            print(f"{word}, {time.monotonic() - began:.0f} s: {mutation.test} | {mutation.file} | {said[:160]}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} tests fail when their answer is taken away")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What a function puts into a container of its file is read by others: no output, however much it prints beside it."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

HEAD = "import logging\nimport torch.distributed as dist\n{imported}\n\n"
MAIN = (
    "\n\ndef main(args, rank):\n    dist.init_process_group('nccl')\n    args.work()\n    number(args.names)\n    args.work()\n"
    "    print('numbered')\n"
)
FILLING = [
    "NUMBERS = {}\n\n\ndef number(names):\n    print('names:', names)\n    for i, name in enumerate(names):\n"
    "        NUMBERS[name] = i\n",
    "NAMES = []\n\n\ndef number(names):\n    print('names:', names)\n    NAMES.extend(names)\n",
    "SEEN = set()\n\n\ndef number(names):\n    def note(name):\n        SEEN.add(name)\n        print(name)\n"
    "    for name in names:\n        note(name)\n",
]


def lines(source: str, files: dict[str, str] | None = None) -> set[str]:
    """The statements that go under a guard."""
    rows = source.splitlines()
    spans = [e.span for f in findings_of(UnguardedPrint, source, files) for e in f.edits]
    return {rows[s.line - 1].strip() for s in spans}


@pytest.mark.parametrize("filling", FILLING)
def test_a_function_that_fills_a_container_of_its_file(filling: str) -> None:
    there = {"tables.py": filling}
    assert "number(args.names)" not in lines(HEAD.format(imported="") + filling + MAIN)
    assert lines(HEAD.format(imported="from tables import number") + MAIN, there) == {"print('numbered')"}


@pytest.mark.parametrize(
    "filling",
    [
        "def number(names):\n    found = {}\n    for i, name in enumerate(names):\n        found[name] = i\n    print(found)\n",
        "log = logging.getLogger('run')\n\n\ndef number(names):\n    print(names)\n    log.info('names')\n",
    ],
)
def test_a_function_that_keeps_what_it_fills_to_itself(filling: str) -> None:
    assert lines(HEAD.format(imported="") + filling + MAIN) & {"number(args.names)", "print(found)", "print(names)"}

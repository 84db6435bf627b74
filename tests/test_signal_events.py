"""Which questions of a file are about an event that a signal handler sets?"""

from __future__ import annotations

import pytest

from codemods.analysis.variance.signal_events import asked_events
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told, project_of

FLAGS = """\
import signal
import threading

LEAVE = threading.Event()


def leave(signum, frame):
    print("leaving")
    LEAVE.set()


def listen():
    signal.signal(signal.SIGUSR1, leave)
"""
TRAIN = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
IMPORT


def train(net, loader, epochs):
    dist.init_process_group("gloo")
    model = DDP(net)
    for epoch in range(epochs):
        if QUESTION:
            break
        for batch in loader:
            model(batch).sum().backward()
"""
IN_CLASS = """\
import signal
import threading


class Loop:
    def __init__(self):
        self.leave = threading.Event()
        signal.signal(signal.SIGTERM, self.on_signal)

    def on_signal(self, signum, frame):
        self.leave.set()

    def run(self):
        return self.leave.is_set()
"""


def asked(source: str, files: dict[str, str] | None = None) -> set[str]:
    project = project_of(source, files or {}, path="train.py")
    module = project.module("train.py")
    assert module is not None
    return set(asked_events(project, module))


def training(imports: str, question: str) -> str:
    return TRAIN.replace("IMPORT", imports).replace("QUESTION", question)


@pytest.mark.parametrize(
    ("imports", "question"),
    [
        ("from flags import LEAVE", "LEAVE.is_set()"),
        ("from flags import LEAVE as gone", "gone.is_set()"),
        ("import flags", "flags.LEAVE.is_set()"),
        ("from handed import LEAVE", "LEAVE.is_set() and epoch > 1"),
    ],
)
def test_an_event_of_another_file(imports: str, question: str) -> None:
    files = {"flags.py": FLAGS, "handed.py": "from flags import LEAVE\n"}
    source = training(imports, question)
    assert asked(source, files) == {question.partition(" and ")[0]}
    check_told(OneRankDecision, source, reason="all_reduce", files=files)


@pytest.mark.parametrize(
    "flags",
    [
        FLAGS.replace("threading.Event()", "torch.multiprocessing.Event()"),  # one that all processes may have
        FLAGS.replace("    LEAVE.set()\n", ""),
        FLAGS.replace("LEAVE.set()", "LEAVE.set"),
        FLAGS.replace("    signal.signal(signal.SIGUSR1, leave)", "    leave(0, None)"),
        FLAGS + "\nLEAVE = shared_event()\n",
    ],
)
def test_an_event_that_no_handler_is_seen_to_set(flags: str) -> None:
    source = training("from flags import LEAVE", "LEAVE.is_set()")
    assert not asked(source, {"flags.py": flags})
    check_nothing(OneRankDecision, source, files={"flags.py": flags})


def test_the_ranks_agree_on_the_event() -> None:
    asked_first = (
        "        asked = torch.tensor(float(LEAVE.is_set()))\n"
        "        dist.all_reduce(asked, op=dist.ReduceOp.MAX)\n"
        "        if asked:"
    )
    source = training("import torch\nfrom flags import LEAVE", "asked").replace("        if asked:", asked_first)
    check_nothing(OneRankDecision, source, files={"flags.py": FLAGS})


def test_an_event_of_the_file_itself() -> None:
    assert asked(FLAGS + "\n\ndef gone():\n    return LEAVE.is_set()\n") == {"LEAVE.is_set()"}
    by_lambda = "signal.signal(signal.SIGTERM, lambda number, frame: LEAVE.set())"
    source = f"import signal\nfrom threading import Event\nLEAVE = Event()\n{by_lambda}\nLEAVE.is_set()\n"
    assert asked(source) == {"LEAVE.is_set()"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (IN_CLASS, {"self.leave.is_set()"}),
        (IN_CLASS.replace("self.leave.set()", "self.other.set()"), set()),
        (IN_CLASS.replace("signal.signal(signal.SIGTERM, self.on_signal)", "pass"), set()),
        (IN_CLASS + "\n\nclass Other:\n    def __init__(self):\n        self.leave = made()\n", set()),
    ],
)
def test_a_field_of_a_class(source: str, found: set[str]) -> None:
    assert asked(source) == found

"""The process that forks ranks: what the tests are told of how each of them ended."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from ddpfix.prove.ranks import Launch
from tests.proofs.warm import Warm


def test_a_number_that_the_kernel_gives_again_has_the_end_of_the_newer_process() -> None:
    # numbers come round after 32,768 processes, so the forking end is played here
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    warm = Warm(mine)
    launch = Launch((sys.executable, "train.py"), Path(), {})
    for answer in ({"started": 7, "ended": {}}, {"asked": 1, "ended": {"7": 2}}, {"started": 7, "ended": {}}, {"asked": 1}):
        theirs.send(json.dumps(answer).encode())
    assert warm.start(launch, 1, 2).poll() == 2
    assert warm.start(launch, 1, 2).poll() is None

"""What runs inside of a probed program: standard library and the tracer's import hook, any Python from 3.8.

No exception of its own reaches the user's program but the SystemExit that ends it after the steps that were asked for.
"""

from __future__ import annotations

import os

from _ddpfix_tracer import call_sites, groups, importing, recorder

from _ddpfix_probe import crash, one_process, steps, wraps


def start() -> None:
    """Watch the imports, and open the file of what is seen."""
    importing.watch({**one_process.PATCHES, **wraps.PATCHES})
    begin()


def begin() -> None:
    """Open this run's file; what the environment said of it is taken out of it."""
    folder = os.environ.pop("DDPFIX_PROBE_FOLDER", "")
    most = int(os.environ.pop("DDPFIX_PROBE_STEPS", "50"))
    if not folder:
        return
    call_sites.OURS.append(os.path.dirname(os.path.abspath(__file__)))
    recorder.open_in(folder, 0)
    groups.settle_at_exit()
    crash.keep_to_the_users()
    steps.begin(most)

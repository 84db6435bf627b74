"""Put on PYTHONPATH of one rank: starts the tracer, then gives way to the user's own sitecustomize.

Python imports a module of this name at start (documentation of `site`). What the tracer needs of the environment is taken
out of it, so processes that the program starts itself run as they would without it.
"""

import os
import sys


def _step_aside() -> None:
    """Take this folder out of the path and import the sitecustomize that the user would have had."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    given = os.environ.pop("DDPFIX_TRACE_PYTHONPATH", None)
    if given is not None:
        if given:
            os.environ["PYTHONPATH"] = given
        else:
            os.environ.pop("PYTHONPATH", None)
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if own is not None:
            sys.modules["sitecustomize"] = own


try:
    import _ddpfix_tracer

    _ddpfix_tracer.start()
except Exception as _error:
    sys.stderr.write("ddpfix: not traced: %s: %s\n" % (type(_error).__name__, _error))
_step_aside()

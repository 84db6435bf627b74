"""Put on PYTHONPATH of one process: starts the tracer or the probe, then gives way to the user's own sitecustomize.

Python imports a module of this name at start (documentation of `site`). What the tracer needs of the environment is taken
out of it, so processes that the program starts itself run as they would without it. DDPFIX_INJECTED: the package that is
started in place of the tracer, from the folder that stands next on the path.
"""

import os
import sys


def _step_aside(injected: str) -> None:
    """Take our folders out of the path and import the sitecustomize that the user would have had."""
    package = getattr(sys.modules.get(injected), "__file__", None) or __file__
    ours = {os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(package)))}
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) not in ours]
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


_injected = os.environ.pop("DDPFIX_INJECTED", "_ddpfix_tracer")
try:
    __import__(_injected)
    sys.modules[_injected].start()
except Exception as _error:
    sys.stderr.write("ddpfix: not traced: %s: %s\n" % (type(_error).__name__, _error))
_step_aside(_injected)

"""ddpfix repairs PyTorch training code that breaks, hangs or lies when it goes from one GPU to several.

    for report in ddpfix.check("path/to/repo"):
        for finding in report.findings:
            ...
    new = ddpfix.fix(source).source
    done = ddpfix.apply("path/to/repo", branch="ddpfix/fixes")

docs/api.md says it all. Nothing here prints, and only `apply` writes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ddpfix.api import Project as Project
    from ddpfix.api import apply as apply
    from ddpfix.api import check as check
    from ddpfix.api import fix as fix
    from ddpfix.api import projects as projects

__version__ = "0.1.0"
__all__ = ["Project", "__version__", "apply", "check", "fix", "projects"]


def __getattr__(name: str) -> object:
    """What is offered, loaded where it is first asked for: a `check` that is answered from before loads none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ddpfix import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

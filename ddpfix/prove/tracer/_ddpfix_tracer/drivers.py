"""Whether a framework drives the program, which then chooses its device by itself."""

from __future__ import annotations

import re
import sys

from _ddpfix_tracer import call_sites

_ALWAYS = ("lightning", "pytorch_lightning", "fastai", "deepspeed", "trl")
# both are imported for their models, too, and the first imports the second
_MAYBE = ("transformers", "accelerate")
_DRIVES = re.compile(rb"\baccelerate\b|\bAccelerator\b|\bPartialState\b|\bTrainingArguments\b")
_known: dict[str, bool] = {}  # of a file of the user's: does it name what drives?


def none() -> bool:
    """True where no framework drives."""
    if any(name in sys.modules for name in _ALWAYS):
        return False
    return not any(name in sys.modules for name in _MAYBE) or not any(map(_names_a_driver, _files()))


def _files() -> list[str]:
    found = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [name for name in found if isinstance(name, str) and name.endswith(".py") and call_sites.is_users(name)]


def _names_a_driver(name: str) -> bool:
    if name not in _known:
        try:
            with open(name, "rb") as file:
                _known[name] = bool(_DRIVES.search(file.read()))
        except OSError:  # torch.ops and its like name files that are not there
            _known[name] = False
    return _known[name]

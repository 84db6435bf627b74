"""Where the ranks of a run meet, and how many: what the program asks for, fitted to one machine.

A training for several machines names the first of them (`init_method="tcp://node-1:29500"`, MASTER_ADDR); all ranks are on this
one here. A group of another number than there are ranks would wait for the others for ever, and two processes that take
themselves for the same rank would wait or fight for a port: both are told in place of what would look like a hang of the program.
"""

from __future__ import annotations

import os
import re
from typing import Any

from _ddpfix_tracer import call_sites, recorder

_HERE = "127.0.0.1"
_LOCAL = re.compile(r"^(localhost|127\.[0-9.]+|\[?::1\]?|0\.0\.0\.0|)$", re.IGNORECASE)
_URL = re.compile(r"^(tcp://)(\[[^\]]*\]|[^:/?]*)(.*)$", re.IGNORECASE)
# the parameters of init_process_group, in their order
_ORDER = ("backend", "init_method", "timeout", "world_size", "rank", "store", "group_name", "pg_options", "device_id")


def here(args: Any, kwargs: Any, processes: int) -> Any:
    """The arguments of init_process_group, with this machine for another. Raises SystemExit where the ranks cannot meet."""
    given = {**dict(zip(_ORDER, args)), **kwargs}
    if given.get("store") is not None or len(args) > len(_ORDER):
        return args, kwargs
    url = given.get("init_method")
    if url in (None, "env://"):
        _asked(_of_environment(given), processes)
        return args, kwargs
    found = _URL.match(url) if isinstance(url, str) else None
    if found and not _LOCAL.match(found[2]):
        _told(found[2])
        args, kwargs = (), {**given, "init_method": found[1] + _HERE + found[3]}
    _asked(given, processes)
    return args, kwargs


def size_and_rank(args: Any, kwargs: Any) -> tuple[int | None, int | None]:
    """Of how many processes the group is that is asked for, and as which of them; None where nothing says so."""
    given = {**dict(zip(_ORDER, args)), **kwargs}
    found = [_number(given.get(name)) for name in ("world_size", "rank")]
    size, rank = (n if n is not None else _number(os.environ.get(name)) for n, name in zip(found, ("WORLD_SIZE", "RANK")))
    return size, rank


def _of_environment(given: dict[str, Any]) -> dict[str, Any]:
    """What env:// makes of it: each number that is not given is looked up."""
    host = os.environ.get("MASTER_ADDR", "")
    if not _LOCAL.match(host):
        _told(host)
        os.environ["MASTER_ADDR"] = _HERE
    out = dict(given)
    for name in ("rank", "world_size"):
        if _number(out.get(name)) is None:
            out[name] = os.environ.get(name.upper())
    return out


def _told(host: str) -> None:
    recorder.write("note", text="the ranks meet on this machine in place of %s" % host)


def _asked(given: dict[str, Any], processes: int) -> None:
    size, rank = _number(given.get("world_size")), _number(given.get("rank"))
    at, _ = call_sites.user_frame()
    recorder.write("meets", at=at, size=size, rank=rank)
    if size is not None and size != processes:
        raise SystemExit("ddpfix: the program makes a group of another number of processes")


def _number(value: Any) -> int | None:
    """A number as it counts for torch: what is below 0 is not given."""
    try:
        return int(value) if value is not None and int(value) >= 0 else None
    except (TypeError, ValueError):
        return None

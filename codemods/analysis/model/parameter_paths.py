"""The names of parameters in a model, `encoder.layers[0](1).weight`: their steps, and which of several makes they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def in_each_arm(parameters: Iterable[str], some: Iterable[str]) -> bool:
    """True where a model has one of `some` whichever of several makes, `(0)`, `(1)`, its modules are."""
    every, paths = list(parameters), list(some)
    if any("(" not in path for path in paths):
        return True
    for head in {path.partition("(")[0] for path in paths}:
        arms: dict[str, tuple[list[str], list[str]]] = {}
        for which, listed in enumerate((every, paths)):
            for path in listed:
                if path.startswith(f"{head}("):
                    arm, _, rest = path[len(head) + 1 :].partition(")")
                    arms.setdefault(arm, ([], []))[which].append(rest)
        if all(in_each_arm(*arm) for arm in arms.values()):
            return True
    return False


def steps_of(path: str) -> Iterator[tuple[str, str]]:
    """(the way so far, the step) for each step of `encoder.layers[0].weight`."""
    so_far = ""
    for step in path.replace("[", ".").replace("(", ".").split("."):
        so_far = f"{so_far}.{step}" if so_far else step
        yield so_far, step


def own_name(path: str, living: frozenset[str]) -> str:
    """The first step to a parameter that no living one shares: what other code would have to name to use it."""
    own = next((step for so_far, step in steps_of(path) if so_far not in living), "")
    return own if own.isidentifier() else top_of(path)


def top_of(path: str) -> str:
    return path.replace("[", ".").replace("(", ".").partition(".")[0]


def tops_of(names: Iterable[str]) -> str:
    return ", ".join(sorted({top_of(n) for n in names}))

"""`lazy`: a pattern that is compiled where it is first used; of the hundred in `codemods`, most checks use three."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """A stand-in for a compiled pattern. What is asked of it is kept beside it, so that it is as fast from then on."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(re.compile(self._source, self._flags), name)  # `re` keeps what it compiled last
        setattr(self, name, value)
        return value


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, for the names of a module. An error in the pattern is raised at its first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))

"""What a rank writes, read from its pipes as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

KEPT = 4 * 1024 * 1024  # bytes of each stream; what comes after is counted, not kept


class Stream:
    """One end of a pipe, its bytes so far."""

    def __init__(self, rank: int, name: str, pipe: IO[bytes]) -> None:
        self.rank, self.name, self.pipe = rank, name, pipe
        self.data = bytearray()
        self.open_line = b""
        self.lost = 0

    def take(self, data: bytes) -> Iterator[str]:
        """Keep `data`; the lines that are whole now."""
        room = max(KEPT - len(self.data), 0)
        self.data += data[:room]
        self.lost += len(data) - len(data[:room])
        *whole, self.open_line = (self.open_line + data[:room]).split(b"\n")
        return (line.decode(errors="replace") for line in whole)

    def text(self) -> str:
        more = f"\n({self.lost} more bytes are not kept)\n" if self.lost else ""
        return self.data.decode(errors="replace") + more

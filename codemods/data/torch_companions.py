"""What is built for one torch alone: torchvision, torchaudio, and NVIDIA's images, by release -> torch's.

Sources: the table of torchvision's README, the compatibility matrix of torchaudio's page of installation, NVIDIA's release notes
of its PyTorch container (19.01 to 24.08).
"""

from __future__ import annotations

Release = tuple[int, int]

# The first release of the package for each torch; the next row ends it. A wheel of either asks for that torch alone.
COMPANIONS: dict[str, tuple[tuple[tuple[int, int, int], Release], ...]] = {
    "torchvision": (
        ((0, 3, 0), (1, 1)), ((0, 4, 0), (1, 2)), ((0, 4, 1), (1, 3)), ((0, 5, 0), (1, 4)), ((0, 6, 0), (1, 5)),
        ((0, 7, 0), (1, 6)), ((0, 8, 0), (1, 7)), ((0, 9, 0), (1, 8)), ((0, 10, 0), (1, 9)), ((0, 11, 0), (1, 10)),
        ((0, 12, 0), (1, 11)), ((0, 13, 0), (1, 12)), ((0, 14, 0), (1, 13)), ((0, 15, 0), (2, 0)), ((0, 16, 0), (2, 1)),
        ((0, 17, 0), (2, 2)), ((0, 18, 0), (2, 3)), ((0, 19, 0), (2, 4)), ((0, 20, 0), (2, 5)),
    ),
    "torchaudio": (
        ((0, 4, 0), (1, 4)), ((0, 5, 0), (1, 5)), ((0, 6, 0), (1, 6)), ((0, 7, 0), (1, 7)), ((0, 8, 0), (1, 8)),
        ((0, 9, 0), (1, 9)), ((0, 10, 0), (1, 10)), ((0, 11, 0), (1, 11)), ((0, 12, 0), (1, 12)), ((0, 13, 0), (1, 13)),
        ((2, 0, 0), (2, 0)), ((2, 1, 0), (2, 1)), ((2, 2, 0), (2, 2)), ((2, 3, 0), (2, 3)), ((2, 4, 0), (2, 4)),
        ((2, 5, 0), (2, 5)),
    ),
}  # fmt: skip

# (year, month) of the first container with a torch of that release, most of them built before it was out (`1.10.0a0`).
CONTAINERS: tuple[tuple[tuple[int, int], Release], ...] = (
    ((19, 1), (1, 0)), ((19, 2), (1, 1)), ((19, 7), (1, 2)), ((19, 10), (1, 3)), ((19, 11), (1, 4)), ((20, 2), (1, 5)),
    ((20, 6), (1, 6)), ((20, 8), (1, 7)), ((20, 11), (1, 8)), ((21, 3), (1, 9)), ((21, 7), (1, 10)), ((21, 11), (1, 11)),
    ((22, 3), (1, 12)), ((22, 6), (1, 13)), ((22, 11), (2, 0)), ((23, 4), (2, 1)), ((23, 11), (2, 2)), ((24, 2), (2, 3)),
    ((24, 5), (2, 4)), ((24, 8), (2, 5)),
)  # fmt: skip

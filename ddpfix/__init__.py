"""ddpfix repairs PyTorch training code that breaks, hangs or lies when it goes from one GPU to several."""

from __future__ import annotations

__version__ = "0.1.0"

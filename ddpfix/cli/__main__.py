"""`python -m ddpfix.cli`: the program without the answers that stand before it."""

from ddpfix.cli import main
from ddpfix.streams import leave

leave(main)

"""What a run came to, in words: the summary document, the commit messages and the closing screen. All pure functions."""

from __future__ import annotations

from ddpfix.summary.closing import closing_screen
from ddpfix.summary.commit_messages import SILENCED_COMMIT, SUMMARY_COMMIT, VARIANTS_COMMIT, commit_message
from ddpfix.summary.context import NOT_RUN, Context, Launch
from ddpfix.summary.document import LIMIT, render
from ddpfix.summary.launches import launched, launches
from ddpfix.summary.new_lines import in_lines_of
from ddpfix.summary.proof_section import NOT_RUN_BESIDES, ShownProof, digest
from ddpfix.summary.proof_section import read as read_proof
from ddpfix.summary.tuning_section import Configuration, Measured, TuningTable

__all__ = [
    "LIMIT",
    "NOT_RUN",
    "NOT_RUN_BESIDES",
    "SILENCED_COMMIT",
    "SUMMARY_COMMIT",
    "VARIANTS_COMMIT",
    "Configuration",
    "Context",
    "Launch",
    "Measured",
    "ShownProof",
    "TuningTable",
    "closing_screen",
    "commit_message",
    "digest",
    "in_lines_of",
    "launched",
    "launches",
    "read_proof",
    "render",
]

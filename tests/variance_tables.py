"""What is not reached yet on the programs of fixtures/variance, a line an entry, with the reason.

An entry that is no longer needed fails tests/test_variance_programs.py. This takes those lines out, and names what is missing:

    .venv/bin/python -m tests.test_variance_programs
"""

from __future__ import annotations

OWN_LOG = "no rule follows a log call of this framework through an attribute"

# Broken programs in which nothing is found: program -> why.
MISSED = {
    "01-one-rank-decides/nan_exit_helper": "it ends with a status, by which the launcher ends the other ranks, too",
    "02-forward-on-one-rank/forward_per_crop": "how long a record is, nobody says: to tell it would be a guess",
    "09-number-of-steps/site_iterators_broken": "that the name the rank picks stands for another number of rows is a guess",
    "10-exceptions-and-launchers/flag_file_age_broken": "the age of a file is no value that the analysis knows",
    "11-logged-through-an-attribute/property_host_log_broken": OWN_LOG,
}  # fmt: skip

# What is told and is wrong, or has nothing to do with the fault: (program, code) -> what is wrong with it.
FALSE: dict[tuple[str, str], str] = {}

# What is told besides the fault, and is true: (program, code) -> why.
TRUE = {
    ("01-one-rank-decides/hf_stop_on_logged_loss_right", "DDP001"): "of speed: every parameter has a gradient in every step",
}  # fmt: skip

# Classes of which less than nine in ten are found, or something is told falsely: class -> what is missing.
NOT_REACHED: dict[str, str] = {}

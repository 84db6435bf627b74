"""What is not reached yet on the programs of fixtures/variance, a line an entry, with the reason.

An entry that is no longer needed fails tests/test_variance_programs.py. This takes those lines out, and names what is missing:

    .venv/bin/python -m tests.test_variance_programs
"""

from __future__ import annotations

WHOLE_NUMBERS = "the numbers are reduced, but in the wrong way: the analysis knows that a value was reduced, not how"
OWN_LOG = "no rule follows a log call of this framework through an attribute"
STREAMS = "no codemod follows random streams and orders of the ranks yet"

# Broken programs in which nothing is found: program -> why.
MISSED = {
    "01-one-rank-decides/nan_exit_helper": "it ends with a status, by which the launcher ends the other ranks, too",
    "01-one-rank-decides/hf_stop_on_last_loss": "what the callback holds is set later, from outside: not followed",
    "02-forward-on-one-rank/forward_per_crop": "how many crops there are is the record's own: no share of the data is unequal",
    "03-wait-inside-a-callee/checkpoint_base_class": "the subclass that waits is chosen elsewhere",
    "05-numbers-of-one-shard/confusion_of_rank0_method": "an object keeps the counts: not followed into its methods",
    "05-numbers-of-one-shard/f1_of_each_rank": WHOLE_NUMBERS,
    "05-numbers-of-one-shard/mean_of_means": WHOLE_NUMBERS,
    "05-numbers-of-one-shard/objects_gathered_not_joined": "the gathered parts are used, but only their keys",
    "05-numbers-of-one-shard/sum_over_local_len": WHOLE_NUMBERS,
    "08-random-streams/branch_own_draw": STREAMS,
    "08-random-streams/codebook_own_restart": STREAMS,
    "09-number-of-steps/hf_own_loader_broken": "read of Lightning's hooks, not yet of an override of the Trainer",
    "09-number-of-steps/site_iterators_broken": "the rank picks a name, and the name the rows: not followed",
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
NOT_REACHED = {
    "01-one-rank-decides": "two programs are missed, which is more than one in ten",
    "02-forward-on-one-rank": "one program is missed, which is more than one in ten",
    "03-wait-inside-a-callee": "one program is missed, and a number behind a property is told",
    "05-numbers-of-one-shard": "numbers that are reduced in the wrong way",
    "08-random-streams": "the codemods for random streams",
    "09-number-of-steps": "two programs are missed, which is more than one in ten",
}  # fmt: skip

"""Bytes without which a file holds no test of the rank: what is asked before it is parsed.

They follow `data/rank_names.py` and `analysis/ranks/` (rank 0, its flags, the names that stand for it) and
`analysis/rank_guards.py` (decorators). A helper from another file is known by its name alone: one that speaks of neither ranks
nor a main process is not followed.
"""

from __future__ import annotations

from codemods.files.sites import Beside, Site

# Few words: each costs a search of all bytes. Other flags count only where a process group shows.
GUARDS: tuple[bytes, ...] = (
    b"rank", b"main_process", b"process_index", b"process_zero", b"global_zero", b"torch.distributed", b"is_ma", b"args.should_",
)  # fmt: skip
# What makes `rank` the rank of a process, and no size of a matrix and no place in a list.
PROCESSES: tuple[bytes, ...] = (
    b"main_process", b"process_index", b"process_zero", b"global_zero", b"torch.distributed", b"is_ma", b"args.should_",
    b"t_rank", b"l_rank", b"world_", b"WORLD_", b"RANK", b"rank_zero", b"is_rank", b"rank0", b"p_rank", b"Distributed",
    b"PROCID", b".rank", b"\"rank\"", b"_process_group", b"master_process", b"zero_rank", b"dist_util", b"barrier", b"all_gather",
    b"all_reduce", b"gather(", b"ccelerator",
)  # fmt: skip

# Blanks, and the ends of lines within a test.
_GAP = rb"(?:[ \t]|\\?\r?\n)*"
# `… == 0`, `< 1`, `in (-1, 0)` behind a rank, whatever brackets, line ends and defaults stand between.
_COMPARED = (
    rb"\b(?:\(\s*group[ \t]*=[ \t]*\w+)?[\w\"'\])(,. \r\n\\-]{0,30}?(?:(?:[=!]=|\bis(?:[ \t]+not)?\b|[<>]=?)" + _GAP +
    rb"(?:[\"']?[01]\b|[A-Z][A-Z_]+\b)|\bin[ \t]*[\[({][^\n]{0,30}?\b0\b[^\n)\]}]{0,9}[)\]}]?)"
)
# The end of a test, or of an operand.
_TESTED = rb"(?:[ \t)]*\r?\n[ \t]*\))?[ \t]*(?::[ \t]*[\r\n#]|(?:and|or|else)\b)"
_RANK = rb"rank(?:" + _COMPARED + rb"|(?=" + _TESTED + rb"|\w*\((?!self\b|cls\b|\*)[^\n]{0,40}?\)" + _TESTED + rb")|_?0\b)"
_READ = rb"(?:" + _COMPARED + rb"|(?=[\"'][^\n]{0,10}?[\])]+" + _TESTED + rb"))"
_VARIABLE = rb"RANK" + _READ + rb"|PROCID" + _READ + rb"|LOCALID" + _READ
_INDEX = rb"process_index(?:" + _COMPARED + rb"|(?=" + _TESTED + rb"))"
_FLAG = (
    rb"main_process\b|logging_process\b|master_process\b|zero(?:(?<=rank_zero)|(?<=process_zero)|(?<=global_zero)|(?<=local_zero))"
    rb"\b(?!\.|\(self|[ \t]+(?:import|as)\b)|"
    rb"master(?<=_master)\b|master(?=" + _TESTED + rb")|"
    rb"is_(?:main|primary|root|chief|leader|first_worker|(?:first|lead|root|primary|chief)_process|"
    rb"(?:main|master)_(?:worker|rank|proc|ordinal))\b|ordinal\(\)[ \t]*[=!]=|should_(?<=args\.should_)(?:save|log)\b"
)
# Another name for the rank, and what is bound to `not rank`.
_NAMED = rb"= (?<!rank = )(?<!RANK = )(?<!index = )[\w.(]*(?:[gG]et_rank\(|hvd\.rank\(|(?:local|global)_rank\b)|= not [\w.(]*rank"
_DECORATOR = rb"@[\w.]*(?:rank|zero|main|master)"
# Not that: an argument (`tqdm(disable=rank != 0, …)`), or a block with one line of a log and nothing else.
_IDLE = (
    rb"(?!\)?[ \t]*,|(?:\(\))?:[ \t]*\r?\n([ \t]+)(?:print|[\w.]*log\w*\.\w+)\((?:(?!trainer)[^()\n])*\)"
    rb"[ \t]*(?:\r?\n[ \t]*)*?\r?\n(?![ \t]*(?:\r?\n|#|el))(?!\1))"
)

# One of these stands in each alternative but the decorator's.
_WORDS = (
    b"rank", b"RANK", b"PROCID", b"LOCALID", b"process_index", b"main_process", b"logging_process", b"master", b"_zero",
    b"is_main", b"is_primary", b"is_root", b"is_chief", b"is_lead", b"is_first", b"ordinal()", b"should_",
)  # fmt: skip
_IDLE_LINES = 8  # more than `_IDLE` looks at, unless many blank lines stand between

# A call whose name says that it shows numbers: `SHOWN_NUMBERS` and `SAYS_SHOWN` of data/rank_variance.py.
_SHOWING = (
    b"print", b"info", b"add_", b"log", b"write", b"dump", b"debug", b"warning", b"scalar", b"track", b"success", b"report",
    b"set_", b"summar", b"record", b"history", b"append_loss", b"plot", b"metric", b"stats",
)  # fmt: skip
SHOWS_NUMBERS = Site(
    rb"\b(?<!math\.)(?:print|info|add_scalars?|log|log_metrics?|write|dump|debug|warning|log_scalar|add_scalar_dict|scalar|track|"
    rb"log_dict|write_row|writerow|success|report|add_loss|add_metric|set_postfix|set_description|set_postfix_str|"
    rb"logger_info|(?i:(?:\w*_)?(?:log|logs|summarize|record|report|history|append_loss|plot|scalars?|metrics?|summary|stats|print\d?)"
    rb"(?:_\w*)?))[ \t\\]*\(",
    *(spelled for word in _SHOWING for spelled in (word, word.capitalize(), word.upper())),
)
# What may save under a name that holds a number, as analysis/variance/named_files.py reads it.
NAMES_FILES = Site(rb"\b(?:save\w*|copyfile)[ \t\\]*\(", b"save", b"copyfile")
# A test that holds something against the best so far, as analysis/variance/comparisons.py reads it.
_BEST = (b"best", b"lowest", b"highest", b"min_", b"max_", b"prev_", b"previous_", b"old_", b"last_")
TESTS_BEST = (
    Site(
        rb"(?i:best|lowest|highest|(?:min|max|prev|previous|old|last)_\w*(?:loss|acc|err|score|metric|f1|iou|psnr))",
        *(spelled for word in _BEST for spelled in (word, word.capitalize(), word.upper())),
    ),
    Site(
        rb"\b(?:min|max)\((?:[^<>\n]|->)*(?:\n(?:[^<>\n]|->)*){0,2}(?<!-)[<>]|[<>]=?[^<>\n]*\b(?:min|max)\(",
        b"min(", b"max(", behind=2,
    ),
)

RANK_TEST = Site(
    rb"(?:" + b"|".join([_RANK, _VARIABLE, _INDEX, _FLAG, _NAMED]) + rb")" + _IDLE, *_WORDS, behind=_IDLE_LINES
)
# A spawned function is told its number, whatever its parameter is called.
SPAWNED_TEST = Beside(
    (b"spawn(", b"Process(", b"start_processes("), rb"\b(?:device|gpu|gpu_id|dev|proc|proc_id|pid|worker|worker_id)" + _COMPARED,
    b"device", b"gpu", b"dev", b"proc", b"pid", b"worker",
)  # fmt: skip
RANK_GUARDS = (RANK_TEST, SPAWNED_TEST, Site(_DECORATOR + _IDLE, b"@", behind=_IDLE_LINES))

"""Faults of the start of the processes: DDP7xx."""

from __future__ import annotations

from tests.generated.records import fault, way

FAULTS = (
    fault(
        "DDP707",
        "raw accelerate lightning trainer",
        wrong=(
            way(before="answer = input('go on? ')  #!"),
            way(before="breakpoint()  #!"),
            way(before="import pdb\npdb.set_trace()  #!"),
        ),
        right=(way(before="if $first:\n    answer = input('go on? ')"), way(before="print('input')")),
    ),
    fault(
        "DDP715",
        "raw",
        wrong=(
            way(arguments="args = parser.parse_args()\nos.environ['MASTER_PORT'] = '12355'  #!"),
            way(arguments="args = parser.parse_args()\nos.environ['RANK'] = '0'  #!\nos.environ['WORLD_SIZE'] = '4'"),
        ),
        right=(
            way(arguments="args = parser.parse_args()\nos.environ.setdefault('MASTER_PORT', '12355')"),
            way(
                arguments="args = parser.parse_args()\nif 'MASTER_PORT' not in os.environ:\n"
                "    os.environ['MASTER_PORT'] = '12355'"
            ),
        ),
        not_in={"spawn": "the parent has no launcher"},
    ),
    fault(
        "DDP709",
        "raw accelerate",
        wrong=(way(epoch_end="epoch == 3  #!"), way(before="$rank == 0  #!")),
        right=(way(epoch_end="last = epoch == 3"),),
        not_in={"function": "a call is nothing that could be given a value"},
    ),
    fault(
        "DDP304",
        "raw",
        wrong=(way(end=""),),
        right=(way(),),
    ),
)

"""Does a text of the repository name a launcher of several processes? Where none does, a framework starts the ranks itself."""

from __future__ import annotations

from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_LAUNCHED = lazy(rb"torchrun|torch\.distributed\.(?:run|launch)|\bsrun\b|#SBATCH|LIGHTNING_LAUNCH|LSB_")
# A job file that names none of these is left for others to fill in: `srun python`, and no script.
_OF_SOMETHING = lazy(rb"\.(?:py|sh|yaml|toml|json)\b|\s-m\s|\$\{?(?:\d|@|\*|\w*(?i:cmd|command|script|exec|program|run)\b)")
_COMMANDS = (".sh", ".md", ".rst", ".slurm", ".sbatch", ".job", ".yaml", ".yml", "Makefile")


def names_a_launcher(project: Project) -> bool:
    """True where a job file or a text starts something by `torchrun`, `srun` and the like."""
    return project.keep("texts name a launcher", lambda: _names_one(project))


def _names_one(project: Project) -> bool:
    texts = (project.read(path) or b"" for path in project.files if path.endswith(_COMMANDS))
    return any(_LAUNCHED.search(text) and _OF_SOMETHING.search(text) for text in texts)

"""The text of a file that holds commands, read line by line; in a shell script with the values of its own variables."""

from __future__ import annotations

from codemods.files.shell_words import with_values
from codemods.files.text_file import SHELL_KINDS
from codemods.store.project import Project


def script_text(project: Project, path: str) -> str:
    """The lines of the file, as many as it has; `$method.py` is `unimatch.py` where the script says `method='unimatch'` above."""
    text = (project.read(path) or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    return with_values(text) if path.endswith(SHELL_KINDS) and "$" in text else text

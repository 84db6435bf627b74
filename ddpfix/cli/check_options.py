"""What `ddpfix check` may be asked: its options, as the command line has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codemods.runtime.record import record


@record
class CheckOptions:
    """Each field has the name of its option, and the kind that `plain` reads."""

    paths: Sequence[Path] | None = None
    select: Sequence[str] | None = None
    ignore: Sequence[str] | None = None
    extend_select: Sequence[str] | None = None
    unsafe_fixes: bool = False
    launched: bool = False
    exclude: Sequence[str] | None = None
    force_exclude: bool = False
    output_format: str = ""
    output: Sequence[str] | None = None
    with_edits: bool = False
    fail_on: str = ""
    exit_zero: bool = False
    baseline: Path | None = None
    write_baseline: bool = False
    changed_since: str = ""
    stdin_filename: Path | None = None
    config: Path | None = None
    isolated: bool = False
    allow_plugins: bool = False
    show_settings: bool = False
    no_cache: bool = False
    statistics: bool = False
    quiet: bool = False
    show_files: bool = False
    fix: bool = False
    log: Sequence[Path] | None = None
    evidence: Sequence[Path] | None = None
    color: str = "auto"
    why_not: str = ""

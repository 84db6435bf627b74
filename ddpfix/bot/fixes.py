"""From a clone to the commits of one topic: in memory, by the steps of `ddpfix apply`; nothing of the repository is run."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from codemods.analysis.requirement_files import reader_of
from codemods.findings import Finding
from codemods.text_file import JSON_KINDS, SHELL_KINDS, YAML_KINDS
from ddpfix import discovery, engine, git, plugins, repository_state, run, summary
from ddpfix.bot import preferences, setting_edit
from ddpfix.bot.planning import Wanted
from ddpfix.bot.preferences import Preferences
from ddpfix.bot.topics import SAFE, UNSAFE, Topic
from ddpfix.discovery import Tree
from ddpfix.settings import Settings

# read for facts beside what is looked at: what starts training, and what pins versions
_FACTS = (".py", ".toml", ".cfg", ".slurm", ".sbatch", "Makefile", "README.md", *YAML_KINDS, *SHELL_KINDS)
MOST_JSON = 200  # where there are more, they are data


@dataclass(frozen=True)
class Project:
    """A repository at one commit, as the bot reads it. found: what the first topic found; others look only if that is theirs."""

    state: git.Snapshot
    tree: Tree
    read: Callable[[str], bytes | None]
    settings: Settings
    preferences: Preferences
    found: list[Finding] = field(default_factory=list)


def look_at(clone: git.Clone) -> Project:
    """Read what the clone's HEAD holds. Raises GitRefusal, SettingsError."""
    state = git.snapshot(clone.root)
    names = state.committed
    json = [p for p in names if p.endswith(JSON_KINDS)]
    few_json = json if len(json) <= MOST_JSON else []
    wanted = [p for p in names if p.endswith(_FACTS) or reader_of(p) is not None]
    read = clone.read(names, (*wanted, *few_json), largest=engine.LARGEST)
    settings, asked = preferences.read(read)
    size = (lambda p: len(read(p) or b"")) if few_json else (lambda p: sys.maxsize)
    tree = discovery.committed_tree(clone.root, names, size, settings.exclude)
    return Project(state, tree, read, settings, asked)


def make(
    project: Project,
    clone: git.Clone,
    topic: Topic,
    *,
    branch: str,
    base_branch: str,
    identity: tuple[str, str],
    here: Sequence[str] = (),
    repo: Sequence[str] = (),
    limit: int = 25_000,
) -> Wanted:
    """The commits of a topic, in the clone only. here, repo: codes left out, and left out by the settings from now on.

    Raises UnknownSelector, GitRefusal, SettingsError.
    """
    settings = replace(project.settings, ignore=(*project.settings.ignore, *here, *repo))
    codemods = topic.codemods(plugins.chosen(settings, project.tree.root).codemods)
    draft = topic.draft or project.preferences.draft
    wanted = Wanted(topic.name, branch, base_branch, project.state.base, draft)
    codes = {c.code for c in codemods}
    if project.found and not repo and not any(f.code in codes and topic.accepts(f) for f in project.found):
        return wanted
    fixed = engine.fix(project.tree, settings, codemods, topic.accepts, read=project.read)
    if not (here or repo) and topic.name in (SAFE, UNSAFE):
        project.found[:] = fixed.report.findings
    # a safe fix that the unsafe topic leaves to the other one is not left alone
    fixed = replace(fixed, left=tuple(f for f in fixed.left if not (topic.name == UNSAFE and f.applicability.value == "safe")))
    made = run.steps(project.tree, settings, codemods, topic.accepts, fixed, project.read) if fixed.after else []
    commits = [*run.as_commits(made, fixed), *_settings_steps(project, repo)]
    if not commits:
        return wanted
    run_id = secrets.token_hex(8)
    committed = git.commit_steps(project.state, commits, branch=branch, run_id=run_id, sign=False, identity=identity)
    context = replace(
        run.described(topic.command(settings, (*here, *repo))),
        base=project.state.base,
        branch=branch,
        home=base_branch,
        launches=summary.launches(project.tree.files, project.read),
        notes=repository_state.notes(project.state, sorted(fixed.after)),
        summary_commit=False,
        pull_request=True,
    )
    tip = committed.commits[-1][0]
    return replace(
        wanted,
        tree=clone.tree(tip),
        commit=tip,
        run=run_id,
        title=topic.title(fixed),
        text=summary.render(fixed, context, limit=limit),
    )


def _settings_steps(project: Project, codes: Sequence[str]) -> list[git.Step]:
    """The commit that leaves codes out by the repository's settings, none where they are left out there already."""
    new = [code for code in codes if code not in project.settings.ignore]
    if not new:
        return []
    path, data = setting_edit.with_ignored(project.read, new)
    listed = ", ".join(new)
    return [git.Step(f"Leave {listed} out of ddpfix\n\nAs asked for in a comment.\n\nddpfix-rules: {listed}", {path: data})]

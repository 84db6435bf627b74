"""For each test that SECURITY.md names, a small change of the product under which it has to fail: the answer taken away."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """In `file`, `old` (which stands there once) becomes `new`; then `test` fails."""

    test: str
    file: str
    old: str
    new: str


BOT, ROOT = "tests/bot", "tests"
MUTATIONS = (
    Mutation(
        f"{BOT}/test_login.py::test_a_review_holds_no_token_that_can_write_contents",
        "ddpfix/bot/login.py",
        "self._narrow = self._with(READING)",
        "self._narrow = self._with(PERMISSIONS)",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_the_settings_of_the_base_hold_not_those_of_a_fork",
        "ddpfix/bot/inside.py",
        "project = _look_at(clone, asked)",
        "project = _look_at(clone)",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_a_billion_paths_cost_one_job",
        "ddpfix/git/remotes.py",
        "if paths > most.paths or size > most.names or deep:",
        "if deep:",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_a_tree_that_is_too_deep_is_told",
        "ddpfix/git/remotes.py",
        'deep = any(name.count(b"/") > most.depth for name in (*names, rest))',
        "deep = False",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_too_many_bytes_are_told",
        "ddpfix/git/remotes.py",
        "if self._most and sum(",
        "if False and sum(",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_a_file_that_takes_for_ever_costs_one_job",
        "ddpfix/bot/child.py",
        "if not ready.select(max(0.0, until - time.monotonic())):",
        "if not ready.select(600):",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_a_file_that_takes_for_ever_costs_one_job",
        "ddpfix/bot/child.py",
        "resource.RLIMIT_CPU: limits.cpu, ",
        "",
    ),
    Mutation(
        f"{BOT}/test_costly_files.py::test_a_file_that_took_long_costs_one_job",
        "ddpfix/bot/remarks.py",
        "return out, found.report.failed",
        "return out, ()",
    ),
    Mutation(
        f"{BOT}/test_costly_files.py::test_a_file_that_took_long_costs_one_job",
        "codemods/files/reading.py",
        "            return ast.parse(text)\n    except SyntaxError as error:",
        '            any([text.count("}") < 0 for _ in range(9 * text.count("{"))])\n'
        "            return ast.parse(text)\n    except SyntaxError as error:",
    ),
    Mutation(
        f"{ROOT}/test_many_findings.py::test_what_many_findings_cost_grows_as_their_number_does",
        "codemods/engine/clashes.py",
        "return any(clash(edit, other) for other in self._near(edit))",
        "return any([clash(edit, other) for rows in self._beginning.values() for _, other in rows])",
    ),
    Mutation(
        f"{ROOT}/test_many_findings.py::test_what_suggestions_for_many_findings_cost_grows_as_their_number_does",
        "codemods/rewriting/runs.py",
        "@once_a_module\ndef steps(module: SourceModule) -> Steps:",
        "def steps(module: SourceModule) -> Steps:",
    ),
    Mutation(
        f"{BOT}/test_many_repositories.py::test_hostile_repositories_cost_only_themselves",
        "ddpfix/bot/repositories.py",
        "rebuild=self.options.reopen))\n        except FORESEEN as error:",
        "rebuild=self.options.reopen))\n        except ZeroDivisionError as error:",
    ),
    Mutation(
        f"{BOT}/test_dashboard.py::test_a_box_that_a_stranger_wrote_is_none",
        "ddpfix/bot/dashboard.py",
        "if place.seal.holds(issue.author, issue.body, KIND, KIND)]",
        "]",
    ),
    Mutation(
        f"{BOT}/test_signing.py::test_what_the_forge_would_make_of_it_is_held_against_what_was_wanted",
        "ddpfix/bot/signing.py",
        "if commits[0].tree != wanted.tree:",
        "if False:",
    ),
    Mutation(
        f"{BOT}/test_other_webhooks.py::test_only_who_knows_the_secret_is_let_in_and_each_delivery_once",
        "ddpfix/bot/messages.py",
        'return _same(wanted, headers.get(self.signature, ""))',
        "return True",
    ),
    Mutation(
        "tests/fleet/test_run.py::test_every_repository_has_a_result_and_hostile_ones_their_cause",
        "ddpfix/fleet/work.py",
        "    except OverLimit as error:\n        result = Result(cause=error.kind, error=str(error))\n",
        "",
    ),
    Mutation(
        "tests/fleet/test_run.py::test_a_name_that_is_no_utf_8_ends_no_campaign",
        "ddpfix/fleet/result.py",
        'return value.encode("utf-8", "backslashreplace").decode()',
        "return value",
    ),
    Mutation(
        "tests/fleet/test_child.py::test_it_is_the_child_of_the_bot_with_the_limits_of_the_campaign",
        "ddpfix/fleet/work.py",
        "cpu=max(1, int(job.seconds)), memory=job.memory * child.MIB",
        "cpu=max(1, int(job.seconds))",
    ),
    Mutation(
        "tests/fleet/test_publish.py::test_a_repository_that_was_deleted_stops_no_other",
        "ddpfix/fleet/publish.py",
        "if error.status not in OF_ONE:",
        "if True:",
    ),
    Mutation(
        "tests/fleet/test_child.py::test_a_server_that_names_references_without_end_takes_no_more_memory_than_its_repository_may",
        "ddpfix/fleet/work.py",
        "seconds=min(job.seconds, bounded.SECONDS), memory=job.memory * child.MIB)",
        "seconds=min(job.seconds, bounded.SECONDS))",
    ),
    Mutation(
        "tests/fleet/test_child.py::test_a_server_that_never_answers_costs_no_more_than_its_repository_may",
        "ddpfix/fleet/work.py",
        "seconds=min(job.seconds, bounded.SECONDS)",
        "seconds=bounded.SECONDS",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_memory_has_an_end",
        "ddpfix/bot/child.py",
        "resource.RLIMIT_AS: limits.memory, ",
        "",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_a_server_that_never_answers_is_left",
        "ddpfix/git/bounded.py",
        "process.communicate(data, timeout=seconds)",
        "process.communicate(data)",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_the_child_holds_no_secret",
        "ddpfix/bot/child.py",
        "stderr=subprocess.DEVNULL, env=env,",
        "stderr=subprocess.DEVNULL,",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_an_answer_makes_nothing_but_plain_values",
        "ddpfix/unpickling.py",
        'raise pickle.UnpicklingError(f"{module}.{name}")',
        "return super().find_class(module, name)",
    ),
    Mutation(
        f"{BOT}/test_strangers.py::test_a_child_ends_when_the_bot_is_killed",
        "ddpfix/bot/child.py",
        "    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()\n    from",
        "    time.sleep(60)\n    from",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_an_address_elsewhere_gets_no_token",
        "ddpfix/bot/client.py",
        "if place.hostname in hosts and place.scheme",
        "if place.scheme",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_2000_slow_connections_keep_nobody_out",
        "ddpfix/bot/connections.py",
        "if len(self.connections) > MOST:",
        "if False:",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_long_bodies_that_nobody_has_signed_take_no_memory",
        "ddpfix/bot/webhooks.py",
        "if not room.take(len(body) - held):",
        "if False:",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_headers_and_bodies_have_a_deadline",
        "ddpfix/bot/connections.py",
        "self._late = self.loop.call_later(SECONDS, self.leave)",
        "self._late = self.loop.call_later(60 + SECONDS, self.leave)",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_sigterm_does_not_wait_for_slow_connections",
        "ddpfix/bot/connections.py",
        "self._late = self.loop.call_later(LAST, self.leave)",
        "self._late = self.loop.call_later(SECONDS, self.leave)",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_nonsense_does_not_fill_the_log",
        "ddpfix/bot/connections.py",
        "return self._count <= self._most",
        "return True",
    ),
    Mutation(
        f"{BOT}/test_connections.py::test_lines_of_the_log_are_bounded",
        "ddpfix/bot/connections.py",
        "message[: self._longest]",
        "message",
    ),
    Mutation(
        f"{ROOT}/test_apply.py::test_the_formatter_that_a_repository_names_runs_only_if_the_user_says_so",
        "ddpfix/settings.py",
        'return self.format_command if self.allow_format_command else ""',
        "return self.format_command",
    ),
    Mutation(
        f"{ROOT}/test_trust.py::test_a_record_that_is_not_the_users_own_counts_for_nothing",
        "ddpfix/trust.py",
        "and not about.st_mode & 0o022)",
        ")",
    ),
    Mutation(
        "tests/review/test_apply_by_decisions.py::test_edited_lines_of_a_file_that_the_fix_does_not_touch_are_not_taken",
        "codemods/engine/user_edits.py",
        "if row.path not in own:",
        "if False:",
    ),
    Mutation(
        f"{ROOT}/test_bad_files.py::test_somebody_else_s_pyproject_stops_nothing",
        "ddpfix/settings.py",
        "        if holds_ours(data):\n            raise",
        "        if True:\n            raise",
    ),
    Mutation(
        f"{ROOT}/test_bad_files.py::test_a_pyproject_with_settings_of_ours_that_cannot_be_read_is_an_error",
        "ddpfix/settings.py",
        "        if holds_ours(data):\n            raise",
        "        if False:\n            raise",
    ),
    Mutation(
        f"{ROOT}/test_bad_files.py::test_names_that_are_no_text_and_bad_settings_leave_the_rest_of_a_run",
        "ddpfix/summary/document.py",
        'return _fitted(fixed, context, limit).encode("utf-8", "surrogateescape").decode("utf-8", "replace")',
        "return _fitted(fixed, context, limit)",
    ),
    Mutation(
        f"{ROOT}/test_bad_files.py::test_every_format_makes_names_and_source_text_harmless",
        "ddpfix/escaping.py",
        "    if _UNSEEN.search(line):",
        "    if False:",
    ),
    Mutation(
        f"{BOT}/test_queue.py::test_kill_9_under_deliveries_loses_none",
        "ddpfix/bot/queue.py",
        'tables.execute("UPDATE OR IGNORE job SET running = 0 WHERE running")\n        ',
        "",
    ),
    Mutation(
        f"{BOT}/test_queue.py::test_a_delivery_is_accepted_once_whatever_happens_in_between",
        "ddpfix/bot/queue.py",
        'if not tables.execute("INSERT OR IGNORE INTO delivery VALUES (?)", (delivery,)).rowcount:',
        "if False:",
    ),
    Mutation(
        f"{BOT}/test_forged_marks.py::test_marks_in_comments_of_the_source_and_in_file_names_are_not_believed",
        "ddpfix/bot/marks.py",
        "block = found[-1] if found else None",
        "block = found[0] if found else None",
    ),
    Mutation(
        f"{BOT}/test_forged_marks.py::test_what_an_outsider_pastes_gets_no_report_and_keeps_back_no_suggestion",
        "ddpfix/bot/marks.py",
        "return bool(author) and author.lower() == self.account.lower()",
        "return bool(author)",
    ),
    Mutation(
        f"{BOT}/test_insertions.py::test_nothing_is_put_into_a_text_as_it_is",
        "ddpfix/bot/publish.py",
        "GONE.format(base=code(wanted.base_branch))",
        "GONE.format(base=wanted.base_branch)",
    ),
    Mutation(
        f"{BOT}/test_harmless.py::test_every_codemods_part_of_a_pull_request_and_of_a_commit",
        "ddpfix/summary/left_alone.py",
        "{code(f.path)}: {prose(f.error)}",
        "{code(f.path)}: {f.error}",
    ),
    Mutation(
        f"{BOT}/test_harmless.py::test_a_hostile_repository_writes_nothing_alive_on_the_forge",
        "ddpfix/bot/remarks.py",
        "**: {sentence(finding.message)}",
        "**: {finding.message}",
    ),
    Mutation(
        "tests/git/test_cut_short.py::test_undo_puts_the_files_of_a_killed_switch_back",
        "ddpfix/git/switching.py",
        "        files = put_back(git, run)\n",
        "        files: tuple[str, ...] = ()\n",
    ),
    Mutation(
        "tests/faults/test_faults.py::test_whatever_stops_it_the_way_back_stays",
        "ddpfix/git/switching.py",
        "        files = put_back(git, run)\n",
        "        files: tuple[str, ...] = ()\n",
    ),
)

"""`ddpfix bot serve` without a wait between two writes, as a program that tests start, kill and start again.

python -m tests.bot.served PORT log FILE       the work of a job is a line in FILE
python -m tests.bot.served PORT forge API-URL  the work is the bot's own
"""

from __future__ import annotations

import os
import sys
import time

from ddpfix.bot import webhooks
from ddpfix.bot.client import Pace, SystemClock
from ddpfix.bot.events import Job
from ddpfix.bot.github import GitHub
from ddpfix.bot.login import FixedToken
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.queue import Queue
from ddpfix.bot.repositories import Bot, BotOptions
from ddpfix.bot.state import kept
from ddpfix.bot.worker import Worker, do

SECRET = "a secret of the App"
IDENTITY = ("mender[bot]", "4711+mender[bot]@users.noreply.example.test")


def main(port: int, kind: str, place: str) -> None:
    clock, state = SystemClock(), kept()
    with state.alone():
        if kind == "log":
            log = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

            def work(job: Job) -> list[Outcome]:
                time.sleep(0.002)
                os.write(log, f"{job.slug} {job.number} {job.comment.id if job.comment else 0}\n".encode())
                return []

            worker = Worker(work, lambda outcome: None, Queue(state.database()), clock=clock, stop=clock.stop)
        else:
            login = FixedToken(os.environ["DDPFIX_TOKEN"])
            forge = GitHub(login, clock=clock, api_url=place, pace=Pace(gap=0.0), identity=IDENTITY)
            bot = Bot(forge, BotOptions(topics=("safe",), per_hour=100_000), clock, state)
            worker = Worker(lambda job: do(bot, job), print_line, Queue(bot.database), clock=clock, stop=clock.stop)
        webhooks.serve(webhooks.application(worker, SECRET), "127.0.0.1", port)


def print_line(outcome: Outcome) -> None:
    sys.stdout.write(outcome.line() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])

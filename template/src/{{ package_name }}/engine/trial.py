"""One device inside a sweep: a process of its own for every trial, so that a trial that is killed ends nothing else."""

import tempfile
from contextlib import suppress
from multiprocessing.connection import Connection

from .config import Config
from .devices import Devices
from .processes import Task, blame, job_server, make_task, passing_signals_on, perform
from .stop import Interrupted


def run(config: Config, devices: Devices) -> dict[str, float]:
    """Runs a job in a process of its own and returns its metrics.

    Raises:
        JobFailed: it raised or was killed.
        UserError: it found a mistake in what was asked.
        Interrupted: a signal ended it.
    """
    server = job_server(config)
    with tempfile.TemporaryDirectory() as scratch:
        task = make_task(config, devices, scratch)
        receiving, sending = server.Pipe(duplex=False)
        process = server.Process(target=_trial, args=(task, sending))
        with passing_signals_on(task):
            process.start()
            sending.close()
            try:
                ended: dict[str, float] | int = receiving.recv()
            except EOFError:
                process.join()
                raise blame(task, {0: process.exitcode or 0}) from None
            process.join()
    if isinstance(ended, int):
        raise Interrupted(ended, agreed=True)
    return ended


def _trial(task: Task, sending: Connection) -> None:
    ended = perform(task, rank=0)
    with suppress(BrokenPipeError):  # the sweep was killed meanwhile
        sending.send(ended)

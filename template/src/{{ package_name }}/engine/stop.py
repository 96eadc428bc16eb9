"""Stopping when a signal asks: a training ends after its optimizer step, with a checkpoint, all ranks at the same step.

Ctrl-C, SIGTERM, SIGHUP (the terminal is gone) and SIGUSR1 (a scheduler is about to take the machine) all ask. Outside
of training there is nothing to save, and they end the process at once.
"""

import faulthandler
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
LIMIT = 15  # seconds that a process of a lost job has to end
WORKER_SECONDS = 60  # that a loader's worker outlives SIGTERM
REPORTS = ".failure-*.json"  # how the ranks of a job report failures


class Interrupted(BaseException):
    """A signal ended the run.

    Attributes:
        signum: Which one; the exit code is 128 + signum.
        agreed: The training ended between two steps, on all ranks, with a checkpoint.
    """

    def __init__(self, signum: int, agreed: bool = False) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum
        self.agreed = agreed


class StopRequest:
    """What signals have asked of this process.

    Attributes:
        signum: The first signal, 0 before it.
        patient: The request waits for the end of the step; otherwise a signal raises `Interrupted` where it lands.
        reached: The training has ended on request and saves: nobody may cut it short.
        is_child: Its parent may repeat a signal, and decides whether a second Ctrl-C ends the training at once.
        log_file, reports: Where a child says what it was doing when it is lost, and where ranks report failures.
    """

    log_file: Path
    reports: Path

    def __init__(self) -> None:
        self.signum = 0
        self.patient = False
        self.reached = False
        self.is_child = False

    def handle(self, signum: int, frame: FrameType | None) -> None:
        is_first, self.signum = not self.signum, self.signum or signum
        if self.reached:
            return
        if (is_first and not self.patient) or (not is_first and not self.is_child and signum == signal.SIGINT):
            raise Interrupted(signum)
        if is_first and not self.is_child:
            announce(signum)


request = StopRequest()  # signals are the process's


def announce(signum: int) -> None:
    """Says on stderr what a signal will do; unlike a log line, this may be written from inside a handler."""
    name = signal.Signals(signum).name
    os.write(
        2, f"\n{name}: a training stops after this step, with a checkpoint (Ctrl-C again stops at once)\n".encode()
    )


@contextmanager
def listening() -> Generator[StopRequest]:
    """Listens to the signals during a job, unless this process listens all its life."""
    if request.is_child or threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    request.__init__()  # type: ignore[misc]
    for number in SIGNALS:
        signal.signal(number, request.handle)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listen_all_its_life(log_file: Path, reports: Path) -> None:
    """Listens in a process that is one of a job's, and ends it when it hangs where the job is lost.

    A SIGTERM asks it to stop, or tells it that another rank has failed: then there are reports of `engine.failures`. A
    rank that hangs in a collective or in a kernel never comes to run a handler, so a thread gives a lost rank 15
    seconds, writes what all its threads are doing to `log_file` and kills it. It does so too when the process that
    started it has gone.

    Args:
        log_file: The rank's log in this job.
        reports: The folder in which the job's ranks report failures.
    """
    request.log_file, request.reports = log_file, reports
    if request.is_child:
        return
    request.is_child = True
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in SIGNALS:
        signal.signal(number, request.handle)
    threading.Thread(target=_watch, args=(woken,), daemon=True).start()


def _forget() -> None:
    """Leaves it to the parent of a forked child, such as a loader's worker, to tell it when to end.

    A terminal sends Ctrl-C, and SLURM its warning before the time is up, to every process there is.
    """
    if signal.getsignal(signal.SIGTERM) != request.handle:  # no job listens
        return
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)


os.register_at_fork(after_in_child=_forget)


def outlive_stop(worker: int) -> None:
    """Lets a loader's worker go on for a while after SIGTERM: where all processes get it, the training still needs it.

    torch has set a handler of its own by then, which ends the worker. A loader ends its workers in another way first.
    """
    signal.signal(signal.SIGTERM, lambda signum, frame: signal.alarm(WORKER_SECONDS))


def _watch(woken: int) -> None:
    parent = multiprocessing.parent_process()
    sources = [woken] if parent is None else [woken, parent.sentinel]
    while True:
        if wait(sources) != [woken]:  # the parent has gone
            sources = [woken]
            os.kill(os.getpid(), signal.SIGTERM)
        if signal.SIGTERM in os.read(woken, 64):
            break
    while True:
        time.sleep(LIMIT)
        is_lost = any(request.reports.glob(REPORTS)) or not (parent is None or parent.is_alive())
        if is_lost and not request.reached:
            with request.log_file.open("a") as file:
                file.write(f"still busy {LIMIT} seconds after the job was lost\n")
                file.flush()
                faulthandler.dump_traceback(file)
            os.kill(os.getpid(), signal.SIGKILL)

"""What runs beside a device: it gathers waiting requests into batches and lets the network see each batch once."""

import logging
import signal
import time
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any, NamedTuple

import numpy as np
from litserve.callbacks import CallbackRunner
from litserve.loops import LitLoop
from litserve.transport.base import MessageTransport
from litserve.utils import LitAPIStatus, LoopResponseType
from numpy.typing import NDArray

IDLE = 0.2  # seconds between two looks at whether the worker shall stop

log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """A request in the queue, as LitServe puts it there: `images` is uint8 `[N, ...]`, `sent` a monotonic clock."""

    consumer: int
    uid: str
    sent: float
    images: NDArray[Any]


class Answer(NamedTuple):
    """What the network said of a request's images `[N, ...]`, and how many images its batch had."""

    outputs: NDArray[Any]
    batch: int


class Batches(LitLoop):
    """Takes all that waits, up to `batch_size` images, and gives others `wait` seconds to join the first one.

    LitServe's own loop asks the queue a thousand times a second while nothing comes, and counts requests, not images.

    Args:
        timeout: Requests that waited longer, in seconds, are dropped: their answer has been given.
    """

    def __init__(self, batch_size: int, wait: float, timeout: float) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.wait = wait
        self.timeout = timeout
        self.is_stopping = False

    def stop_when_idle(self) -> None:
        """From now on SIGTERM ends the process once nothing waits."""
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "is_stopping", True))

    def run(
        self,
        lit_api: Any,
        device: str,
        worker_id: int,
        request_queue: "Queue[Any]",
        transport: MessageTransport,
        workers_setup_status: dict[int, str],
        callback_runner: CallbackRunner,
    ) -> None:
        requests = self.gather(request_queue)
        if not requests:
            if self.is_stopping:
                raise SystemExit
            return
        for request, answer in zip(requests, self._answers(lit_api.predict, requests), strict=True):
            status = LitAPIStatus.ERROR if answer is None else LitAPIStatus.OK
            self.put_response(transport, request.consumer, request.uid, answer, status, LoopResponseType.REGULAR)

    def gather(self, queue: "Queue[Any]") -> list[Waiting]:
        """The requests of the next batch; none when nothing came for a while."""
        requests: list[Waiting] = []
        count, pause = 0, IDLE
        while count < self.batch_size:
            try:
                request = Waiting(*queue.get(timeout=pause))
            except Empty:
                break
            now = time.monotonic()
            if not requests:
                end = now + self.wait
            pause = max(0.0, end - now)
            if now - request.sent < self.timeout:
                requests.append(request)
                count += len(request.images)
        return requests

    def _answers(
        self, predict: Callable[[NDArray[Any]], NDArray[Any]], requests: list[Waiting]
    ) -> list[Answer] | list[None]:
        sizes = [len(request.images) for request in requests]
        try:
            outputs = predict(np.concatenate([request.images for request in requests]))
        except Exception:
            log.exception("the network failed on a batch of %d images", sum(sizes))
            return [None] * len(requests)
        parts = np.split(outputs, np.cumsum(sizes)[:-1])
        return [Answer(part, sum(sizes)) for part in parts]

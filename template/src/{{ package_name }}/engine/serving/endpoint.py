"""The endpoint `/predict`: from a request to a batch, and from the network's outputs to the answer."""

import asyncio
import time
import uuid
from typing import Any

from fastapi import HTTPException, Request, Response
from litserve.specs.base import LitSpec
from litserve.utils import LitAPIStatus, ResponseBufferItem
from numpy.typing import NDArray

from .answers import Answers
from .batches import Answer, Waiting
from .facts import Facts
from .inputs import Inputs, Limits
from .metrics import Metrics


class Endpoint(LitSpec):
    """Checks requests, hands their images to a worker and waits for what it answers.

    Args:
        limits: Of a single request.
        most: Requests at the same time; further ones are sent away with 503.
        timeout: Seconds that a request may take to arrive (408), and then to be answered (504).
    """

    def __init__(self, limits: Limits, most: int, timeout: float) -> None:
        super().__init__()
        self.api_path = "/predict"
        self.limits = limits
        self.metrics = Metrics()
        self.most = most
        self.timeout = timeout
        self.running = 0
        self.add_endpoint(self.api_path, self.predict, ["POST"])

    def __getstate__(self) -> dict[str, Any]:
        """What the workers get: the path is enough, and locks do not travel."""
        return {**super().__getstate__(), "_endpoints": [], "metrics": None}

    def begin(self, facts: Facts) -> None:
        """Prepares for a network, in the process that answers HTTP."""
        self.inputs = Inputs(facts.shape, self.limits)
        self.answers = Answers(facts.class_names)

    async def predict(self, request: Request) -> Response:
        """Answers a request; what is wrong with it is an HTTPException with a status from 400 to 499."""
        began, status = time.monotonic(), 500
        try:
            response = await self._predict(request)
            status = response.status_code
            return response
        except HTTPException as error:
            status = error.status_code
            raise
        finally:
            self.metrics.requests.labels(status).inc()
            self.metrics.seconds.observe(time.monotonic() - began)

    async def _predict(self, request: Request) -> Response:
        if self.running >= self.most:
            reason = f"{self.most} requests are being answered, which is as many as may wait: ask again later"
            raise HTTPException(503, reason, {"Retry-After": "1"})
        self.running += 1
        self.metrics.running.set(self.running)
        try:
            body = await self._in_time(self.inputs.body(request), 408, "the request did not arrive")
            return await self._in_time(self._answer(request, body), 504, "there was no answer")
        finally:
            self.running -= 1
            self.metrics.running.set(self.running)

    async def _in_time(self, work: Any, status: int, what: str) -> Any:
        try:
            return await asyncio.wait_for(work, self.timeout)
        except TimeoutError as error:
            raise HTTPException(status, f"{what} within {self.timeout:g} seconds") from error

    async def _answer(self, request: Request, body: bytes) -> Response:
        images = await self.inputs.images(request, body)
        answer = await self._ask(images)
        self.metrics.images.inc(len(images))
        self.metrics.batch.observe(answer.batch)
        return self.answers(answer.outputs)

    async def _ask(self, images: NDArray[Any]) -> Answer:
        """Puts the images into the queue that all workers read, and waits for the answer of the one that took them."""
        uid, item = uuid.uuid4().hex, ResponseBufferItem(asyncio.Event())
        self.response_buffer[uid] = item
        try:
            self.request_queue.put(tuple(Waiting(self.response_queue_id, uid, time.monotonic(), images)))
            await item.event.wait()
        finally:
            del self.response_buffer[uid]
        answer, status = item.response
        if status == LitAPIStatus.ERROR:
            raise HTTPException(500, "the network failed on the batch of this request; the service's log says how")
        return answer

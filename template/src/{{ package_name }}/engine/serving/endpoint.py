"""The endpoint `/predict`: from a request to a batch, and from the network's outputs to the answer."""

import asyncio
import time
import uuid
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.responses import JSONResponse
from litserve.specs.base import LitSpec
from litserve.utils import LitAPIStatus, ResponseBufferItem
from starlette.requests import ClientDisconnect

from .batches import Answer
from .metrics import Metrics
from .inputs import Inputs


class Endpoint(LitSpec):
    """Checks requests, hands their images to a worker and waits for its answer.

    Args:
        most: Requests at the same time; further ones are sent away with 503.
        timeout: Seconds that a request may take to arrive, and then to be answered.
    """

    def __init__(self, inputs: Inputs, metrics: Metrics, most: int, timeout: float) -> None:
        super().__init__()
        self.api_path = "/predict"
        self.inputs = inputs
        self.metrics = metrics
        self.most = most
        self.timeout = timeout
        self.running = 0
        self.add_endpoint(self.api_path, self.answer, ["POST"])

    def __getstate__(self) -> dict[str, Any]:
        """What the workers get: they need the path, and locks do not travel."""
        return {**super().__getstate__(), "_endpoints": [], "metrics": None}

    async def answer(self, request: Request) -> Response:
        """Answers one request; what is wrong with it is an HTTPException with a status from 400 to 499."""
        began, status = time.monotonic(), 500
        self.metrics.running.inc()
        try:
            response = await self._answer(request)
            status = response.status_code
            return response
        except HTTPException as error:
            status = error.status_code
            raise
        finally:
            self.metrics.running.dec()
            self.metrics.requests.labels(status).inc()
            self.metrics.seconds.observe(time.monotonic() - began)

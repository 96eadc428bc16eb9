"""Serving the network of a run over HTTP: checks what was asked, starts the processes, and ends them in good order."""

import logging
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from multiprocessing.queues import Queue
from types import FrameType
from typing import Any

from fastapi import FastAPI, Response
from litserve import LitServer
from prometheus_client import CONTENT_TYPE_LATEST

from .. import logs
from ..config_folder import SCRIPT
from ..cores import usable_cores
from ..devices import choose
from ..errors import JobFailed, UserError
from ..path_options import short
from ..run_folders import find_checkpoint
from .batches import Batches
from .document import document
from .endpoint import Endpoint
from .facts import Facts
from .inputs import Limits
from .options import LOOPBACK, check
from .worker import Worker

GRACE = 5  # seconds beyond the time limit of a request that a stop waits for it

log = logging.getLogger(__name__)


class Server(LitServer):
    """LitServe's server, which learns from a worker what it serves before it listens.

    Args:
        endpoint: What answers `/predict`.
        news: Where the workers leave their Facts.
        address: Where it will listen.
        options: Those of LitServe.
    """

    def __init__(
        self, worker: Worker, endpoint: Endpoint, news: "Queue[Facts | UserError]", address: str, **options: Any
    ) -> None:
        super().__init__(worker, healthcheck_path="/healthz", **options)
        self.endpoint = endpoint
        self.news = news
        self.address = address
        metrics = endpoint.metrics
        self.app.add_api_route("/metrics", lambda: Response(metrics.page(), media_type=CONTENT_TYPE_LATEST))

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncGenerator[None]:
        """What happens in the process that answers HTTP, before and after it does."""
        facts = self.news.get()
        assert isinstance(facts, Facts)
        self.endpoint.begin(facts)
        page = document(SCRIPT, facts, self.endpoint.limits)
        self.app.openapi = lambda: page  # type: ignore[method-assign]
        async with super().lifespan(app):
            log.info("listening on %s/predict, described at %s/docs", self.address, self.address)
            yield


def serve(config: dict[str, Any]) -> None:
    """Answers requests until SIGTERM or Ctrl-C; those that have arrived by then are still answered.

    Raises:
        UserError: there is no checkpoint that can be loaded, an option is wrong, or the port is taken.
        JobFailed: the network cannot be made ready.
    """
    logs.configure(directory=None)
    check(config)
    checkpoint = find_checkpoint(config["checkpoint"] or config["run"])
    devices = choose(config["accelerator"], config["devices"])
    count, is_cpu = len(devices.indices), devices.kind == "cpu"
    log.info("checkpoint %s\nworkers    %d on %s", short(checkpoint), count, devices.kind)
    if config["host"] != LOOPBACK:
        log.warning("host=%s: every machine that reaches this one may ask", config["host"])

    limits = Limits(body=int(config["max_megabytes"] * 1e6), images=config["max_images"])
    endpoint = Endpoint(limits, config["max_requests"], config["timeout"])
    batches = Batches(config["batch_size"], config["batch_wait"], config["timeout"])
    news: Queue[Facts | UserError] = multiprocessing.get_context("spawn").Queue()
    threads = max(1, usable_cores() // count)
    server = Server(
        Worker(checkpoint, config["trusted_targets"], batches, endpoint, news, threads),
        endpoint,
        news,
        f"http://{'[::]' if config['host'] == '::' else config['host']}:{config['port']}",
        accelerator=devices.kind,
        devices=1 if is_cpu else list(devices.indices),
        workers_per_device=count if is_cpu else 1,
        timeout=config["timeout"],
        restart_workers=True,
    )
    server.uvicorn_graceful_timeout = config["timeout"] + GRACE
    _run(server, config["host"], config["port"])


def _run(server: Server, host: str, port: int) -> None:
    _take_sigterm_for_ctrl_c()
    try:
        server.run(
            host=host,
            port=port,
            num_api_servers=1,
            log_level="warning",
            log_config=None,
            access_log=False,
            generate_client_file=False,
        )
    except RuntimeError as error:  # a worker did not become ready
        if not server.news.empty():
            reason = server.news.get()
            if isinstance(reason, UserError):
                raise reason from None
        raise JobFailed(f"{error}; the lines above say why") from error
    finally:
        _end_workers()


def _take_sigterm_for_ctrl_c() -> None:
    """LitServe ends in good order on Ctrl-C only. The processes forked from this one have ways of their own."""
    supervisor = os.getpid()

    def end(signum: int, frame: FrameType | None) -> None:
        if os.getpid() == supervisor:
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def _end_workers() -> None:
    """Ends the workers that are left when the start was cut short; Python would wait for them for ever."""
    workers = [child for child in multiprocessing.active_children() if child.name == "inference-worker"]
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()

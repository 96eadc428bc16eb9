"""What the options of `serve` may be."""

import errno
import os
import socket
from typing import Any

from ..errors import UserError

LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "0.0.0.0", "::")  # the addresses that LitServe binds to


def check(config: dict[str, Any]) -> None:
    """Raises UserError for the first option that is wrong, and for a port that is taken."""
    if config["host"] not in HOSTS:
        raise UserError(f"host must be one of {', '.join(HOSTS)} (got {config['host']!r})")
    for name, least, most in (
        ("port", 1024, 65535),
        ("batch_size", 1, 4096),
        ("max_images", 1, 4096),
        ("max_requests", 1, 65536),
    ):
        value = config[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise UserError(f"{name} must be a whole number from {least} to {most} (got {value!r})")
    for name, least, most in (("batch_wait", 0, 10), ("timeout", 0.1, 3600), ("max_megabytes", 0.001, 4096)):
        value = config[name]
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
            raise UserError(f"{name} must be a number from {least} to {most} (got {value!r})")
    if config["batch_wait"] >= config["timeout"]:
        raise UserError(f"batch_wait={config['batch_wait']} must be less than timeout={config['timeout']}")
    _refuse_taken_port(config["host"], config["port"])


def _refuse_taken_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as uvicorn does: a port that was just left is free
        try:
            probe.bind((host, port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = "another program listens there" if taken else os.strerror(error.errno or 0)
            raise UserError(f"port={port} on {host} cannot be used: {reason}; type another, such as port={port + 1}") from error

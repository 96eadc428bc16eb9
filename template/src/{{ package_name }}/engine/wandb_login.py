"""Whether this machine is logged in to Weights & Biases, found out without a network and without wandb."""

import netrc
import os
from pathlib import Path
from urllib.parse import urlsplit


def wandb_login() -> str | None:
    """Where the key lies: the variable `WANDB_API_KEY` or a netrc file; None where there is none."""
    if os.environ.get("WANDB_API_KEY"):
        return "WANDB_API_KEY"
    host = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    path = Path(os.environ.get("NETRC", Path.home() / ".netrc"))
    try:
        return str(path) if netrc.netrc(path).authenticators(host) else None
    except (OSError, netrc.NetrcParseError):
        return None

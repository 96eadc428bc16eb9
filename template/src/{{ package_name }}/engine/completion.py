"""Tab completion of commands, groups, options and keys. Hydra completes behind the command word; nothing ever runs."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module

from .config_folder import PACKAGE, SCRIPT, command_names, config_file, groups, is_group
from .errors import UserError


def answer(words: list[str]) -> None:
    """Prints what the shell asked with `-sc install=SHELL`, `uninstall=SHELL` or `query=SHELL`."""
    action, _, shell = " ".join(words).partition("=")
    if action not in ("install", "uninstall", "query") or shell not in ("bash", "fish", "zsh"):
        raise UserError(f"-sc takes install=SHELL or uninstall=SHELL with bash, fish or zsh (got {' '.join(words)!r})")
    if action == "query":
        text = ("\n" if shell == "fish" else " ").join(_suggestions(os.environ.get("COMP_LINE", ""))) + "\n"
    else:
        text = _hydra(next(filter(config_file, command_names())), f"{action}={shell}")
    if shell == "zsh" and action == "install":
        text = f"autoload -Uz bashcompinit && bashcompinit\n{text}"
    if shell != "fish" and action == "uninstall":
        text = f"complete -r {SCRIPT}\n{text}"
    sys.stdout.write(text)


def _suggestions(line: str) -> list[str]:
    words = line.split()
    if len(words) < 2 or (len(words) == 2 and not line.endswith(" ")):
        return [name for name in command_names() if name.startswith(words[1] if len(words) == 2 else "")]
    command = words[1]
    if command not in command_names() or config_file(command) is None:
        return []
    program, _, rest = line.split(maxsplit=2) if len(words) > 2 else (words[0], command, "")
    os.environ["COMP_LINE"] = f"{program} {rest}"
    with suppress(Exception, SystemExit), redirect_stderr(io.StringIO()):  # half a command line is often no valid one
        return [word for word in _hydra(command, "query=fish").splitlines() if _is_offered(command, word)]
    return []


def _is_offered(command: str, word: str) -> bool:
    """False for the folders in `configs/` that the command does not choose from."""
    group = word.lstrip("+~").partition("=")[0].rstrip("/")
    return not groups(command) or not is_group(group) or group in groups(command)


def _hydra(command: str, request: str) -> str:
    sys.argv[:] = [SCRIPT, "-sc", request]
    with redirect_stdout(io.StringIO()) as output:
        import_module(f"{PACKAGE}.commands.{command}").main()
    return output.getvalue()

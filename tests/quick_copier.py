"""Half of what Copier does in a render does nothing new; the tests, which render hundreds of times, leave it out."""

from typing import Any

from copier._main import Worker
from jinja2 import Environment


def make_copier_quick() -> None:
    """Compiles each text once a process, and asks Git for no setting that is the same for each file.

    `copier` as a command, which some tests call, stays as it is.
    """
    compiled: dict[tuple[Any, ...], Any] = {}
    compile_anew = Environment.compile

    def remember(self: Environment, source: Any, *names: Any, **options: Any) -> Any:
        if not isinstance(source, str):
            return compile_anew(self, source, *names, **options)
        settings = (self.trim_blocks, self.lstrip_blocks, self.keep_trailing_newline, self.undefined)
        delimiters = (self.block_start_string, self.variable_start_string, self.comment_start_string)
        key = (source, names, tuple(options.items()), settings, delimiters, tuple(self.extensions))
        if key not in compiled:
            compiled[key] = compile_anew(self, source, *names, **options)
        return compiled[key]

    Environment.compile = remember  # type: ignore[method-assign]
    # It acts only where core.fileMode is false, which it asks `git config` before each file.
    if hasattr(Worker, "_sync_git_index_executable_bit"):
        Worker._sync_git_index_executable_bit = lambda *_: None

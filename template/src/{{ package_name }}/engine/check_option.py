"""`check=true` on the command line works in a directory of its own, so that no run is left behind."""

import atexit
import shutil
import tempfile

from .path_options import quote_path_options


def expand(words: list[str]) -> list[str]:
    """Sends what a check writes to a temporary directory that goes when this process ends.

    Hydra would write into a run's directory before anybody is asked, into that of another run with `resume=`.
    """
    if not any(word.lstrip("+").lower() == "check=true" for word in words):
        return words
    folder = tempfile.mkdtemp(prefix="check-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    [place] = quote_path_options([f"paths.run={folder}"])
    value = place.partition("=")[2]
    return [*words, f"hydra.run.dir={value}", f"hydra.sweep.dir={value}", "hydra.output_subdir=null"]

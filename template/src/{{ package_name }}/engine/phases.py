"""The phases of a training, as Lightning's profiler hooks tell them."""

import os

from lightning.pytorch.profilers import Profiler

from .fast_loop import STEP_HOOKS

WARM_UP = 3  # steps that are left out: they compile kernels, start workers and fill caches
ACTIONS = {
    "train_dataloader_next": "data",
    "batch_to_device": "data",
    "training_step": "forward",
    "backward": "backward",
    "optimizer_step": "optimizer",
}

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or torch's profiler announces that it begins and ends


class PhaseProfiler(Profiler):
    """Tells a subclass when a phase of the training ends.

    `data`, `forward`, `backward` and `optimizer` are parts of a step; `callbacks` is what callbacks do in one, `loop`
    what is left. `validation` is all of a validation, and `epochs` what callbacks do between steps, such as saving.
    A phase inside of another one interrupts it: an optimizer step contains forward and backward.

    Args:
        dirpath: The run directory.
    """

    def __init__(self, dirpath: str) -> None:
        super().__init__(dirpath=dirpath)
        self.phases = ["loop"]  # the one that goes on is the last, those that it interrupts come before it
        self.is_validating = False
        self.steps = 0

    def ended(self, phase: str) -> None:
        """Called when a phase ends or is interrupted: all since the last call belongs to it."""

    def warmed_up(self) -> None:
        """Called when the first `WARM_UP` steps are over."""

    def start(self, action_name: str) -> None:
        self.ended(self.phases[-1])
        self.phases.append(self._phase(action_name))

    def stop(self, action_name: str) -> None:
        self.ended(self.phases.pop())
        if action_name == "run_training_batch":
            self.steps += 1
            if self.steps == WARM_UP:
                self.warmed_up()

    def _phase(self, action_name: str) -> str:
        action = action_name.rpartition(".")[2]
        is_callback = action_name.startswith("[Callback]")
        if action in ("on_validation_start", "on_validation_end"):
            self.is_validating = action == "on_validation_start"
        if is_callback and action not in STEP_HOOKS:
            return "epochs"
        if self.is_validating or action == "val_next":
            return "validation"
        return "callbacks" if is_callback else ACTIONS.get(action, self.phases[-1])

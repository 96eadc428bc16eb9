"""The phases of a training, as Lightning's profiler hooks tell them."""

from lightning.pytorch.profilers import Profiler

from .fast_loop import STEP_HOOKS

WARM_UP = 3  # steps that are left out: they compile kernels, start workers and fill caches
ACTIONS = {
    "train_dataloader_next": "data",
    "batch_to_device": "data",
    "training_step": "forward",
    "backward": "backward",
    "optimizer_step": "optimizer",
    "val_next": "validation",
    "validation_step": "validation",
}


class PhaseProfiler(Profiler):
    """Tells a subclass when a phase ends: data, forward, backward, optimizer, validation, callbacks, epochs, or the loop.

    Callbacks are those of a step; what others do at the ends of epochs and trainings, such as saving, is epochs. A phase inside of another one interrupts it: an optimizer step contains forward and backward, and is what is left.

    Args:
        dirpath: The run directory.
    """

    def __init__(self, dirpath: str) -> None:
        super().__init__(dirpath=dirpath)
        self.phases = ["loop"]
        self.steps = 0

    def ended(self, phase: str) -> None:
        """Called when a phase ends or is interrupted: all since the last call belongs to it."""

    def warmed_up(self) -> None:
        """Called when the first `WARM_UP` steps are over."""

    def start(self, action_name: str) -> None:
        self.ended(self.phases[-1])
        action = action_name.rpartition(".")[2]
        if action_name.startswith("[Callback]"):
            self.phases.append("callbacks" if action in STEP_HOOKS else "epochs")
        else:
            self.phases.append(ACTIONS.get(action, self.phases[-1]))

    def stop(self, action_name: str) -> None:
        self.ended(self.phases.pop())
        if action_name == "run_training_batch":
            self.steps += 1
            if self.steps == WARM_UP:
                self.warmed_up()

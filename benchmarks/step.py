"""One optimizer step: a generated project, the loop that tutorials write by hand, and the usual Lightning pattern.

The same network (64-256-256-10 with BatchNorm), the same 32,000 samples, batch 64, 500 steps an epoch, one thread, in
one process and in turn; steps 30 to 499 of an epoch are timed. The generated project runs with everything that its
defaults put into a step: metrics, loggers, progress bar, schedule, learning-rate and gradient-norm monitors, early
stopping, two checkpoints. Its augmentation is off, as the other two have none.

    python -m benchmarks.step PROJECT PACKAGE RESULT [ROUNDS]
"""

from __future__ import annotations

import importlib
import json
import logging
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

WARMUP, STEPS, BATCH = 30, 500, 64


class Net(nn.Module):
    """64-256-256-10 with BatchNorm, the same for all three."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for inputs, outputs in ((64, 256), (256, 256)):
            layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(256, 10))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images.flatten(1))


def samples() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return (
        torch.rand(STEPS * BATCH, 1, 8, 8, generator=generator),
        torch.randint(0, 10, (STEPS * BATCH,), generator=generator),
    )


def tutorial() -> float:
    """Seconds a step of the hand-written loop."""
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(*samples()), batch_size=BATCH, shuffle=True)
    running = 0.0
    began = 0.0
    for index, (images, labels) in enumerate(loader):
        if index == WARMUP:
            began = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return (time.perf_counter() - began) / (STEPS - WARMUP)


def usual() -> float:
    """Seconds a step of the pattern in Lightning's and torchmetrics' guides."""
    import lightning.pytorch as lightning
    from lightning.pytorch.callbacks import RichProgressBar
    from torchmetrics import MeanMetric
    from torchmetrics.classification import MulticlassAccuracy

    class Usual(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()
            self.accuracy = MulticlassAccuracy(10)
            self.mean_loss = MeanMetric()

        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            images, labels = batch
            logits = self.net(images)
            loss = nn.functional.cross_entropy(logits, labels)
            self.mean_loss(loss)
            self.accuracy(logits.argmax(dim=1), labels)
            self.log("train/loss", self.mean_loss, on_step=False, on_epoch=True, prog_bar=True)
            self.log("train/accuracy", self.accuracy, on_step=False, on_epoch=True, prog_bar=True)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    clock = _clock()
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        callbacks=[RichProgressBar(), clock],
    )
    trainer.fit(Usual(), DataLoader(TensorDataset(*samples()), batch_size=BATCH, shuffle=True))
    return clock.seconds


def generated(package: str, overrides: tuple[str, ...] = ()) -> float:
    """Seconds a step of a generated project with its default callbacks and logger."""
    from hydra import compose, initialize_config_module

    engine = f"{package}.engine"
    with tempfile.TemporaryDirectory() as directory, initialize_config_module(f"{package}.configs", version_base="1.3"):
        config = compose(
            "train",
            [
                "model=mlp",
                "optimizer=adam",
                "trainer=cpu",
                "trainer.max_epochs=1",
                f"paths.run={directory}",
                *overrides,
            ],
        )
        resolved = importlib.import_module(f"{engine}.config").plain(config)
        devices = importlib.import_module(f"{engine}.devices").choose("cpu", 1)
        loggers = importlib.import_module(f"{engine}.loggers").make_loggers(resolved["logger"])
        request = importlib.import_module(f"{engine}.stop").StopRequest()
        make_trainer = importlib.import_module(f"{engine}.trainer").make_trainer
        trainer = make_trainer(resolved, devices, "32-true", loggers, request)
        classifier = importlib.import_module(f"{package}.models.classifier").ImageClassifier
        hydra_utils = importlib.import_module("hydra.utils")
        module = classifier(
            net=Net(),
            num_classes=10,
            monitor="val/accuracy",
            mode="max",
            optimizer=hydra_utils.instantiate(resolved["optimizer"]),
            scheduler=hydra_utils.instantiate(resolved["scheduler"]),
        )
        data = importlib.import_module(f"{engine}.data_module").DataModule(BATCH, num_workers=0, augment=False)
        tensors = importlib.import_module(f"{engine}.batched_tensors").BatchedTensors
        images, labels = samples()
        data.train_set = tensors(images, labels)
        data.val_set = tensors(images[:BATCH], labels[:BATCH])
        history = importlib.import_module(f"{engine}.history").keep_history(trainer, Path(directory), time.monotonic())
        importlib.import_module(f"{engine}.fast_loop").skip_empty_hooks(history)
        clock = _clock()
        trainer.callbacks.append(clock)  # after the others: it times their hooks too
        trainer.fit(module, data)
    return clock.seconds


def watching(package: str) -> float:
    """Seconds a step that a generated project takes to measure how long it waits for data.

    The calls are timed alone: 1 % of a step is far below what two trainings of this machine differ by.
    """
    import lightning.pytorch as lightning
    from lightning.pytorch.trainer.call import _call_callback_hooks

    wait = importlib.import_module(f"{package}.engine.data_wait").DataWait()
    importlib.import_module(f"{package}.engine.fast_loop").skip_empty_hooks([wait])
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.strategy.connect(lightning.LightningModule())

    def seconds(callbacks: list[Any]) -> float:
        trainer.callbacks[:] = callbacks  # type: ignore[attr-defined]
        began = time.perf_counter()
        for index in range(10 * STEPS):
            _call_callback_hooks(trainer, "on_train_batch_start", None, index)
            _call_callback_hooks(trainer, "on_train_batch_end", None, None, index)
        return (time.perf_counter() - began) / (10 * STEPS)

    return seconds([wait]) - seconds([])


def _clock() -> Any:
    from lightning.pytorch.callbacks import Callback

    class Clock(Callback):
        seconds = 0.0

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == WARMUP:
                self.began = time.perf_counter()

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == STEPS - 1:
                self.seconds = (time.perf_counter() - self.began) / (STEPS - WARMUP)

    return Clock()


def main(project: Path, package: str, rounds: int) -> dict[str, float]:
    """Medians over the rounds, in microseconds, and median ratios of the same round."""
    sys.path.insert(0, str(project / "src"))
    warnings.filterwarnings("ignore")
    for name in ("lightning.pytorch", "lightning.pytorch.utilities.rank_zero", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    torch.set_num_threads(1)
    times: dict[str, list[float]] = {"tutorial": [], "usual": [], "generated": [], "watching": []}
    for _ in range(rounds + 1):
        times["tutorial"].append(tutorial())
        times["generated"].append(generated(package))
        times["watching"].append(watching(package))
        times["usual"].append(usual())
    counted = {name: values[1:] for name, values in times.items()}
    return {
        **{name: 1e6 * statistics.median(values) for name, values in counted.items()},
        "generated_over_tutorial": _ratio(counted["generated"], counted["tutorial"]),
        "watching_over_generated": _ratio(counted["watching"], counted["generated"]),
        "generated_over_usual": _ratio(counted["generated"], counted["usual"]),
    }


def _ratio(one: list[float], other: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    result = main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[4]) if len(sys.argv) > 4 else 7)
    Path(sys.argv[3]).write_text(json.dumps(result), encoding="utf-8")

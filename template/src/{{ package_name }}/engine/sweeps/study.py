"""What a stored Optuna study needs to go on: the plugin alone would begin to count and to draw anew."""

import traceback
import warnings
from pathlib import Path

import optuna
from omegaconf import DictConfig
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError

from ..errors import UserError
from .directory import direction, others_are_busy


def prepare(config: DictConfig) -> None:
    """Sets the direction; of a study that goes on, it enqueues what did not finish and leaves out what did.

    `hydra.sweeper.n_trials` is the number of finished trials that the study shall have in the end.
    """
    warnings.simplefilter("ignore", ExperimentalWarning)
    sweeper = config.hydra.sweeper
    sweeper.direction = direction(config)
    sweeper.storage = config.sweep.get("storage") or sweeper.storage
    if sweeper.storage is None:
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        known = [summary.study_name for summary in optuna.get_all_study_summaries(sweeper.storage)]
    except (SQLAlchemyError, ImportError, ValueError) as error:
        raise UserError(f"sweep.storage={sweeper.storage} cannot be opened: {str(error).splitlines()[0]}") from error
    if sweeper.study_name not in known:
        return
    study = optuna.load_study(study_name=sweeper.study_name, storage=sweeper.storage)
    is_alone = not others_are_busy(Path(config.hydra.sweep.dir))
    finished = [trial.params for trial in study.trials if trial.state == TrialState.COMPLETE]
    waiting = [trial.system_attrs.get("fixed_params") for trial in study.trials if trial.state == TrialState.WAITING]
    names = set().union(*(trial.params for trial in study.trials))
    for trial in study.trials:
        if trial.state == TrialState.RUNNING and is_alone:  # of a sweep that was killed
            study.tell(trial.number, state=TrialState.FAIL)
        elif trial.state != TrialState.FAIL:
            continue
        if trial.params.keys() == names and trial.params not in (*finished, *waiting):  # all of them were proposed
            study.enqueue_trial(trial.params)
            waiting.append(trial.params)
    if sweeper.sampler.get("seed") is not None:
        sweeper.sampler.seed += len(study.trials)  # the same seed would propose the same values again
    sweeper.n_trials = max(0, sweeper.n_trials - len(finished))


def refusal(error: Exception, sweep: str) -> UserError | None:
    """What to say of values that Optuna cannot draw, such as those of a space that no longer fits the study's."""
    raised_by = traceback.extract_tb(error.__traceback__)[-1].filename
    if not isinstance(error, ValueError) or str(Path(optuna.__file__).parent) not in raised_by:
        return None
    return UserError(
        f"Optuna cannot search this space: {' '.join(str(error).split())} "
        f"(a space that differs from that of {sweep} needs a new sweep)"
    )

"""The loop around frameworks that have none of their own."""

from __future__ import annotations

from typing import Any, Callable

from tprimat.steps import StepRecorder
from tprimat_adapter.experiment import rank
from tprimat_adapter.profiling import last_step, note_further_step, open_window


def run_steps(experiment: Any, device: Any, run_step: Callable[[int], dict[str, Any]]) -> None:
    """run_step(step) trains one step and returns its figures, as StepRecorder.end_step takes them. Steps after the
    training's last one are profiled only."""
    recorder = StepRecorder(device, experiment.global_batch_size * experiment.sequence_length)
    window = open_window()
    for step in range(1, last_step(experiment) + 1):
        window.begin(step)
        figures = run_step(step)
        if step > experiment.steps:
            note_further_step(recorder, step)
            window.end(step)
            continue
        if figures.get("skipped"):
            figures["grad_norm"] = None  # of an overflow it is not finite
        record = recorder.end_step(step, **figures)
        window.end(step)
        if rank() == 0:
            print(f"step {step}/{experiment.steps} loss {record['loss']} grad_norm {record.get('grad_norm')} "
                  f"learning_rate {record['learning_rate']} seconds {record['time_seconds']:.4f}", flush=True)

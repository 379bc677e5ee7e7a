"""The loop around frameworks that have none of their own."""

from tprimat_adapter.experiment import rank
from tprimat_adapter.model import print_settings
from tprimat_adapter.profiling import open_window
from tprimat_adapter.steps import StepRecorder


def run_steps(framework, experiment, optimizer, device, run_step):
    """run_step(step) trains one step and returns its loss, gradient norm and learning rate."""
    if rank() == 0:
        print_settings(framework, experiment, optimizer)
    recorder = StepRecorder(device, experiment.global_batch_size * experiment.sequence_length)
    window = open_window()
    for step in range(1, experiment.steps + 1):
        window.begin(step)
        loss, norm, rate = run_step(step)
        record = recorder.end_step(step, loss=loss, grad_norm=norm, learning_rate=rate)
        window.end(step)
        if rank() == 0:
            print(f"step {step}/{experiment.steps} loss {record['loss']} grad_norm {record.get('grad_norm')} "
                  f"learning_rate {rate} seconds {record['time_seconds']:.4f}", flush=True)

#!/bin/bash
# Stands in for the start script of Primus: prints the variables that it sets, and one line for each step of the experiment
# file; a profile leaves a trace where Primus puts it.
export HSA_ENABLE_SDMA=1 GPU_MAX_HW_QUEUES=${GPU_MAX_HW_QUEUES:-2}
for name in HSA_ENABLE_SDMA HSA_NO_SCRATCH_RECLAIM GPU_MAX_HW_QUEUES; do
  echo "[NODE-0(gpu01)] [INFO] $name: ${!name}"
done
key() { sed -n "s/^ *$1: //p" "$EXP" | tr -d '"'; }
steps=$(key train_iters)
for ((step = 1; step <= steps; ++step)); do
  echo "[20260511 03:04:01][rank-1/2][INFO ] [trainer.py:2560] : iteration $step/ $steps | consumed samples: $((4 * step)) |" \
    "elapsed time per iteration (ms): 10.0/10.0 | throughput per GPU (TFLOP/s/GPU): 1.0/1.0 | learning rate: 3.000000E-04 |" \
    "global batch size: 4 | lm loss: 4.0E+00 | loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations: 0 |" \
    "number of nan iterations: 0 |"
done
echo "profile $(key profile) by PyTorch $(key use_pytorch_profiler) from $(key profile_step_start) to $(key profile_step_end)"
[ "$(key profile)" = true ] || exit 0
folder="$(key workspace)/tprimat/tprimat/$(key exp_name)/tensorboard"
mkdir -p "$folder"
echo '[{"ph": "X", "cat": "kernel", "name": "gemm_a", "pid": 3, "ts": 100.125, "dur": 10}]' | gzip \
  > "$folder/primus-megatron-exp[x]-rank[0].1.pt.trace.json.gz"

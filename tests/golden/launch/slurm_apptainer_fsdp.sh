mkdir -p /out /out/runs/train_tiny
cat > /out/runs/train_tiny/start_node.sh <<'END_OF_FILE'
#!/bin/sh
# Exports the node rank and rendezvous address of one process, then runs its arguments.
first=$(scontrol show hostnames "$SLURM_STEP_NODELIST" 2>/dev/null | head -n 1)
[ -n "$first" ] ||
  first=$(printf '%s\n' "$SLURM_STEP_NODELIST" | sed -E 's/^([^[,]*)\[([^],-]*).*/\1\2/; s/,.*//')
export NNODES=2 NODE_RANK="$SLURM_NODEID" GPUS_PER_NODE=4
export MASTER_ADDR="$first" MASTER_PORT=29500
exec python3 -m torch.distributed.run --nnodes 2 --node-rank "$NODE_RANK" --nproc-per-node 4 --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" "$@"
END_OF_FILE
cat > /out/runs/train_tiny/job.sh <<'END_OF_FILE'
#!/bin/sh
#SBATCH --job-name=tprimat_train_tiny_bf05c9db
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=/out/runs/train_tiny/job.out
#SBATCH --open-mode=append
#SBATCH '--chdir=/work dir'
#SBATCH --gres=gpu:4
export HF_HUB_OFFLINE=1
export NCCL_DEBUG=WARN
export PYTHONUNBUFFERED=1
export TPRIMAT_PROGRAM=/out/runs/train_tiny/program/tprimat
export TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl
exec srun --job-name=tprimat_train_tiny_bf05c9db --nodes=2 --ntasks=2 --ntasks-per-node=1 --export=ALL --kill-on-bad-exit=1 apptainer exec --nv --home /out/runs/train_tiny --bind /out/runs/train_tiny:/out/runs/train_tiny --bind '/work dir:/work dir' --bind /opt/tprimat:/opt/tprimat-mounted/bin/tprimat:ro --bind /opt/tprimat-train:/opt/tprimat-mounted/bin/tprimat-train:ro --pwd '/work dir' --env HF_HUB_OFFLINE=1 --env NCCL_DEBUG=WARN --env PYTHONUNBUFFERED=1 --env TPRIMAT_PROGRAM=/out/runs/train_tiny/program/tprimat --env TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl /images/pytorch.sif sh /out/runs/train_tiny/start_node.sh /out/runs/train_tiny/adapter/train_fsdp.py --spec /out/runs/train_tiny/train_spec.json
END_OF_FILE
cat > /out/runs/train_tiny/submit.sh <<'END_OF_FILE'
#!/bin/sh
# Submits the job, shows its output as it comes, and ends with its exit status. A signal cancels the job, also where
# nobody reads what the shell has to say about it any more.
trap '' PIPE
: > /out/runs/train_tiny/job.out
cancel=/out/runs/train_tiny/cancel.sh
trap 'trap "" TERM INT HUP; sh "$cancel"; kill $follower 2>/dev/null; exit 143' TERM INT HUP
sbatch --wait /out/runs/train_tiny/job.sh &
job=$!
tail -n +1 -s 0.2 -F /out/runs/train_tiny/job.out 2>/dev/null &
follower=$!
wait $job
status=$?
cat /out/runs/train_tiny/job.out >/dev/null
sleep 1
kill $follower
exit $status
END_OF_FILE
cat > /out/runs/train_tiny/cancel.sh <<'END_OF_FILE'
#!/bin/sh
# Ends the job of this run, or its step in an allocation, where it is still there; waits until it is gone.
scancel --quiet --name=tprimat_train_tiny_bf05c9db --user="$(id -un)"
list() {
  squeue --noheader --name=tprimat_train_tiny_bf05c9db --user="$(id -un)" --format=%i
  [ -z "$SLURM_JOB_ID" ] ||
    squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format='%i %j' | sed -n 's/^\([^ ]*\) tprimat_train_tiny_bf05c9db$/\1/p'
}
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  left=$(list 2>/dev/null)
  [ -n "$left" ] || exit 0
  [ "$((round % 5))" -ne 1 ] || scancel --quiet $left
  sleep 1
done
echo "still there: $left" >&2
exit 1
END_OF_FILE
cd '/work dir' &&
HF_HUB_OFFLINE=1 NCCL_DEBUG=WARN PYTHONUNBUFFERED=1 TPRIMAT_PROGRAM=/out/runs/train_tiny/program/tprimat TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl sh /out/runs/train_tiny/submit.sh > /out/training_tiny.log 2>&1
# to end it early: sh /out/runs/train_tiny/cancel.sh

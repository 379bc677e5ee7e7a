mkdir -p /out /out/runs/train_tiny
cd '/work dir' &&
HF_HUB_OFFLINE=1 NCCL_DEBUG=WARN PYTHONUNBUFFERED=1 TPRIMAT_PROGRAM=/opt/tprimat TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl /env/fsdp/bin/python -m torch.distributed.run --standalone --nproc-per-node 8 /out/runs/train_tiny/adapter/train_fsdp.py --spec /out/runs/train_tiny/train_spec.json > /out/training_tiny.log 2>&1

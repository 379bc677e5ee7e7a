mkdir -p /out /out/runs/train_tiny
cd '/work dir' &&
HF_HUB_OFFLINE=1 NCCL_DEBUG=WARN PYTHONUNBUFFERED=1 TPRIMAT_PROGRAM=tprimat TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl docker run --rm --init --name tprimat_train_tiny_bf05c9db --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 --volume /out/runs/train_tiny:/out/runs/train_tiny --volume '/work dir:/work dir' --workdir '/work dir' --env HF_HUB_OFFLINE --env NCCL_DEBUG --env PYTHONUNBUFFERED --env TPRIMAT_PROGRAM --env TPRIMAT_STEPS tprimat:nvd python3 -m torch.distributed.run --standalone --nproc-per-node 8 /out/runs/train_tiny/adapter/train_fsdp.py --spec /out/runs/train_tiny/train_spec.json > /out/training_tiny.log 2>&1
# to end it early: docker kill tprimat_train_tiny_bf05c9db

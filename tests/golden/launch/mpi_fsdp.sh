mkdir -p /out /out/runs/train_tiny
cat > /out/runs/train_tiny/start_node.sh <<'END_OF_FILE'
#!/bin/sh
# Exports the node rank and rendezvous address of one process, then runs its arguments.
export NNODES=2 NODE_RANK="$OMPI_COMM_WORLD_RANK" GPUS_PER_NODE=4
export MASTER_ADDR=node1 MASTER_PORT=29500
exec /env/fsdp/bin/python -m torch.distributed.run --nnodes 2 --node-rank "$NODE_RANK" --nproc-per-node 4 --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" "$@"
END_OF_FILE
cd '/work dir' &&
HF_HUB_OFFLINE=1 NCCL_DEBUG=WARN PYTHONUNBUFFERED=1 TPRIMAT_PROGRAM=/opt/tprimat TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl mpirun --allow-run-as-root --oversubscribe --bind-to none --map-by ppr:1:node -n 2 --host node1:4,node2:4 -x HF_HUB_OFFLINE -x NCCL_DEBUG -x PYTHONUNBUFFERED -x TPRIMAT_PROGRAM -x TPRIMAT_STEPS sh /out/runs/train_tiny/start_node.sh /out/runs/train_tiny/adapter/train_fsdp.py --spec /out/runs/train_tiny/train_spec.json > /out/training_tiny.log 2>&1

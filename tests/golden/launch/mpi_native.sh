mkdir -p /out /out/runs/train_tiny
cd '/work dir' &&
CUDA_VISIBLE_DEVICES='' HIP_VISIBLE_DEVICES='' TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl mpirun --allow-run-as-root --oversubscribe --bind-to none --map-by ppr:4:node -n 8 --host node1:4,node2:4 -x CUDA_VISIBLE_DEVICES -x HIP_VISIBLE_DEVICES -x TPRIMAT_STEPS /opt/tprimat train --spec /out/runs/train_tiny/train_spec.json > /out/training_tiny.log 2>&1

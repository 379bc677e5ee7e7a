mkdir -p /out /out/runs/train_tiny
cd '/work dir' &&
CUDA_VISIBLE_DEVICES='' HIP_VISIBLE_DEVICES='' TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl mpirun --allow-run-as-root --oversubscribe --bind-to none -n 8 /opt/tprimat train --spec /out/runs/train_tiny/train_spec.json > /out/training_tiny.log 2>&1

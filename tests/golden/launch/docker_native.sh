mkdir -p /out /out/runs/train_tiny
cd '/work dir' &&
CUDA_VISIBLE_DEVICES='' HIP_VISIBLE_DEVICES='' TPRIMAT_STEPS=/out/runs/train_tiny/steps.jsonl docker run --rm --init --name tprimat_train_tiny_bf05c9db --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 --volume /out/runs/train_tiny:/out/runs/train_tiny --volume '/work dir:/work dir' --workdir '/work dir' --env CUDA_VISIBLE_DEVICES --env HIP_VISIBLE_DEVICES --env TPRIMAT_STEPS tprimat:cpu mpirun --allow-run-as-root --oversubscribe --bind-to none -n 8 tprimat train --spec /out/runs/train_tiny/train_spec.json > /out/training_tiny.log 2>&1
# to end it early: docker kill tprimat_train_tiny_bf05c9db

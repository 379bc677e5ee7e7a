END_OF_FILE
kubectl --namespace=ml create --filename /out/runs/train_tiny/jobset.yaml
until kubectl --namespace=ml get pods --selector jobset.sigs.k8s.io/jobset-name=tprimat-train-tiny-bf05c9db --output=name | grep -q pod; do sleep 1; done
until kubectl --namespace=ml logs --follow --prefix --tail=-1 --max-log-requests=2 --selector jobset.sigs.k8s.io/jobset-name=tprimat-train-tiny-bf05c9db; do sleep 2; done
kubectl --namespace=ml delete --filename /out/runs/train_tiny/jobset.yaml

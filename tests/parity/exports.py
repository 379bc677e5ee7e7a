#!/usr/bin/env python3
"""What `tprimat export` writes, read back by the tools it is for.

usage: exports.py PROGRAM; exit status 77: none of the tools is installed
"""

import csv
import importlib.util
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from chosen_python import use_chosen_python

RUNS = pathlib.Path(__file__).resolve().parent.parent / "golden/compare/clear_winner/runs"
HOSTILE = "a\"b\\c,d\ne{f}=\"g\" </script><b> ../../etc :::MLLOG {\"key\": 1} \x1b[2J '; \u00e9\u2028\t#"
# The same where a terminal may show it.
SHOWN = HOSTILE.replace("\t", " ").replace("\x1b", "\\x1b").replace("\u2028", "\\u2028")
START = 1767225600  # 2026-01-01T00:00:00Z
NAME = "_b_x__"     # what the file "<b>x'\n.json" becomes

failures = []


def expect(what, found, expected):
    if found != expected:
        failures.append(f"{what}: found {found!r}, expected {expected!r}")


def hostile_result():
    result = json.loads((RUNS / "train_nvd_nemo_llama.json").read_text())
    result.update(timestamp="2026-01-01T00:00:00Z", dataset=HOSTILE, framework_version=HOSTILE)
    result["model_info"]["name"] = result["gpu_info"]["device_name"] = HOSTILE
    result["parallelism_config"]["strategy_name"] = result["training_config"]["optimizer"] = HOSTILE
    result["loss_values"][2] = None
    result["grad_norms"] = [1.5] * len(result["step_times"])
    return result


def step_ends(result):
    ends, now = [], START
    for seconds in result["step_times"]:
        now += seconds
        ends.append(now)
    return ends


def check_csv(folder, result):
    rows = list(csv.DictReader(open(folder / "runs.csv", newline="", encoding="utf-8")))
    expect("csv: runs", [row["run"] for row in rows], [NAME, "train_amd_prim_llama"])
    expect("csv: model", rows[0]["model"], SHOWN.replace("\n", " "))
    steps = [row for row in csv.DictReader(open(folder / "steps.csv", newline="", encoding="utf-8")) if row["run"] == NAME]
    expect("csv: step times", [float(row["step_time_seconds"]) for row in steps], result["step_times"])
    expect("csv: losses", [float(row["loss"]) if row["loss"] else None for row in steps], result["loss_values"])


def check_parquet(folder, result):
    import pyarrow as pa
    import pyarrow.parquet
    runs, steps = (pa.parquet.read_table(folder / f"{name}.parquet") for name in ("runs", "steps"))
    expect("parquet: types", [runs.schema.field(key).type for key in ("run", "sequence_length", "tokens_per_second", "mfu")],
           [pa.string(), pa.int64(), pa.float64(), pa.float64()])
    expect("parquet: step types", [steps.schema.field(key).type for key in ("run", "step", "loss", "label")],
           [pa.string(), pa.int64(), pa.float64(), pa.string()])
    expect("parquet: runs", (runs.num_rows, steps.num_rows), (2, 80))
    first = runs.to_pylist()[0]
    expect("parquet: model", first["model"], HOSTILE)
    expect("parquet: an absent figure", first["failure_kind"], None)
    own = [row for row in steps.to_pylist() if row["run"] == NAME]
    expect("parquet: losses", [row["loss"] for row in own], result["loss_values"])
    expect("parquet: step times", [row["step_time_seconds"] for row in own], result["step_times"])
    expect("parquet: steps", [row["step"] for row in own], list(range(1, 41)))
    with open(folder / "runs.csv", newline="", encoding="utf-8") as table:
        expect("parquet: columns", runs.schema.names, next(csv.reader(table)))


def check_prometheus(folder, result):
    from prometheus_client.parser import text_string_to_metric_families
    families = {family.name: family for family in
                text_string_to_metric_families((folder / "tprimat.prom").read_text(encoding="utf-8"))}
    expect("prometheus: kinds", {family.type for family in families.values()}, {"gauge"})
    info = {sample.labels["run"]: sample.labels for sample in families["tprimat_run_info"].samples}
    for label in ("model", "device", "strategy", "framework_version"):
        expect(f"prometheus: {label}", info[NAME][label], SHOWN)
    first = {sample.labels["run"]: sample.value for sample in families["tprimat_first_step_time_seconds"].samples}
    expect("prometheus: first step", first[NAME], result["step_times"][0])
    memory = {sample.labels["run"]: sample.value for sample in families["tprimat_peak_memory_allocated_bytes"].samples}
    expect("prometheus: memory", memory[NAME], result["memory_metrics"]["peak_memory_allocated_gb"] * 1e9)
    expect("prometheus: timestamps", [sample for family in families.values() for sample in family.samples if sample.timestamp], [])


def check_mllog(folder, result):
    from mlperf_logging.compliance_checker.mlp_parser import parse_file
    from mlperf_logging.mllog import constants
    for ruleset in ("2.0.0", "5.1.0"):
        lines, errors = parse_file(str(folder / "mllog" / f"{NAME}.log"), ruleset=ruleset)
        expect(f"mllog: errors of {ruleset}", errors, [])
        found = {line.key: line for line in lines}
        expect("mllog: model", found[constants.SUBMISSION_BENCHMARK].value["value"], HOSTILE)
        expect("mllog: batch", found[constants.GLOBAL_BATCH_SIZE].value["value"], result["training_config"]["global_batch_size"])
        expect("mllog: start", found[constants.RUN_START].timestamp, START * 1e3)
        expect("mllog: status", found[constants.RUN_STOP].value["metadata"]["status"], constants.SUCCESS)
        stats = [line.value for line in lines if line.key == "tracked_stats" and "step" in line.value["metadata"]]
        expect("mllog: steps", [each["metadata"]["step"] for each in stats], list(range(1, 41)))
        expect("mllog: losses", [each["value"].get("train_loss") for each in stats], result["loss_values"])


def check_tensorboard(folder, result):
    from tensorboard.backend.event_processing import event_accumulator
    events = event_accumulator.EventAccumulator(str(folder / "tensorboard" / NAME), {event_accumulator.SCALARS: 0})
    events.Reload()
    times, losses = events.Scalars("train/seconds_per_step"), events.Scalars("train/loss")
    single = [struct.unpack("f", struct.pack("f", seconds))[0] for seconds in result["step_times"]]
    expect("tensorboard: step times", [each.value for each in times], single)
    expect("tensorboard: steps", [each.step for each in losses], [step for step in range(1, 41) if step != 3])
    close = all(math.isclose(each.wall_time, end, rel_tol=0, abs_tol=1e-5) for each, end in zip(times, step_ends(result)))
    expect("tensorboard: wall times", close, True)


def check_mlflow(folder, result):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.tracking import MlflowClient
    client = MlflowClient((folder / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("tprimat")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id], "params.sequence_length != '0'")}
    expect("mlflow: runs", sorted(runs), sorted([NAME, "train_amd_prim_llama"]))
    run = runs[NAME]
    expect("mlflow: status", run.info.status, "FINISHED")
    expect("mlflow: start", run.info.start_time, START * 1000)
    expect("mlflow: batch", run.data.params["global_batch_size"], str(result["training_config"]["global_batch_size"]))
    expect("mlflow: first step", run.data.metrics["run/first_step_time"], result["step_times"][0])
    history = client.get_metric_history(run.info.run_id, "step/step_time_seconds")
    expect("mlflow: step times", [each.value for each in history], result["step_times"])
    expect("mlflow: steps", [each.step for each in history], list(range(1, 41)))
    expect("mlflow: times", [each.timestamp for each in history], [round(end * 1e3) for end in step_ends(result)])
    expect("mlflow: artifacts", [each.path for each in client.list_artifacts(run.info.run_id)], ["result.json"])


def wandb_records(path):
    """Records of W&B's datastore: the log format of LevelDB after a header of seven bytes."""
    from wandb.proto import wandb_internal_pb2
    data, at, parts = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at:at + 7])
        parts += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(parts)
            parts = b""


def check_wandb(folder, result):
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run([sys.executable, folder / "wandb-import/import_wandb.py"], cwd=work, capture_output=True, text=True,
                              timeout=300, env={**os.environ, "HOME": work})
        if done.returncode != 0:
            failures.append(f"wandb: {done.stdout}{done.stderr}")
            return
        found = {}
        for path in pathlib.Path(work).glob("wandb/offline-run-*/*.wandb"):
            rows, name, config = [], "", {}
            for record in wandb_records(path):
                if record.HasField("run"):
                    name = record.run.display_name
                    config = {item.key: json.loads(item.value_json) for item in record.run.config.update} or config
                if record.HasField("history"):
                    rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item})
            found[name] = rows, config
    expect("wandb: runs", sorted(found), sorted([NAME, "train_amd_prim_llama"]))
    rows, config = found[NAME]
    expect("wandb: losses", [row.get("train/loss") for row in rows], result["loss_values"])
    expect("wandb: steps", [row["_step"] for row in rows], list(range(1, 41)))
    close = all(math.isclose(row["_timestamp"], end, rel_tol=0, abs_tol=1e-5) for row, end in zip(rows, step_ends(result)))
    expect("wandb: times", close, True)
    expect("wandb: model", config["model"], HOSTILE)


CHECKS = {"csv": (check_csv, "csv"), "parquet": (check_parquet, "pyarrow"), "prometheus": (check_prometheus, "prometheus_client"),
          "mllog": (check_mllog, "mlperf_logging"), "tensorboard": (check_tensorboard, "tensorboard"),
          "mlflow": (check_mlflow, "mlflow"), "wandb": (check_wandb, "wandb")}


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    installed = [name for name, (_, package) in CHECKS.items() if importlib.util.find_spec(package)]
    if installed == ["csv"]:
        print(f"skipped: {sys.executable} has none of the tools: pip install -r tests/parity/requirements.txt")
        sys.exit(77)
    result = hostile_result()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "in").mkdir()
        (scratch / "in" / "<b>x'\n.json").write_text(json.dumps(result), encoding="utf-8")
        (scratch / "in" / "train_amd_prim_llama.json").write_bytes((RUNS / "train_amd_prim_llama.json").read_bytes())
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # the Python that has pyarrow
        subprocess.run([program, "export", "in", "--format", ",".join(installed), "--output", "out"], cwd=scratch, check=True,
                       env={**os.environ, "PATH": path})
        expect("files beside the export", sorted(each.name for each in scratch.iterdir()), ["in", "out"])
        for name in installed:
            CHECKS[name][0](scratch / "out", result)
            print(f"{name}: read back")
    for name in CHECKS.keys() - set(installed):
        print(f"{name}: skipped, {CHECKS[name][1]} is not installed: pip install -r tests/parity/requirements.txt")
    print("\n".join(failures) or "every export holds what the result holds")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    use_chosen_python()
    main()

"""What a program is asked about kept files of a version; make.py keeps the answers, check.py compares a program's."""

import pathlib
import shutil
import subprocess
import tempfile

# name of the answer, command; run in a copy of the version's folder
QUESTIONS = [
    ("compare.json", "tprimat compare --quiet results --json --output -"),
    ("compare.csv", "tprimat compare --quiet results --csv --output -"),
    ("compare_older.json", "tprimat compare --quiet older --json --output -"),
    ("history.json", "tprimat compare --quiet --history history --json"),
    ("history.csv", "tprimat compare --quiet --history history --csv"),
    ("history_gate.json", "tprimat compare --quiet --history history --baseline best --fail-if 'tokens_per_second < -90%' --json"),
    ("extract.json", "tprimat extract --quiet results/train_cpu_native_dense_r1.json --json --output -"),
    ("extract_sparse.json", "tprimat extract --quiet results/train_cpu_fsdp_sparse.json --json --output -"),
    ("extract_log.json", "tprimat extract --quiet results/megatron.log --json --output -"),
    ("verify.json", "tprimat archive verify archives/plain.tar.zst --json"),
    ("verify_signed.json", "tprimat archive verify archives/signed.tar.gz --signed-by archives/signer.pub --json"),
    ("export.csv", "tprimat export --quiet results --format csv --output export && cat export/runs.csv"),
    ("export_steps.csv", "cat export/steps.csv"),
    ("export.prom", "tprimat export --quiet results --format prometheus --output export && cat export/tprimat.prom"),
]


def ask(program, folder, command):
    """(exit status, stdout, stderr) of one question about `folder`, which the program may write to."""
    script = f'tprimat() {{ "{program}" "$@"; }}; {command}'
    done = subprocess.run(["/bin/sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout, done.stderr


def answers(program, kept):
    """{name: (exit status, stdout, stderr)} of all questions about a copy of the folder `kept`."""
    with tempfile.TemporaryDirectory(prefix="tprimat_kept_") as place:
        folder = pathlib.Path(place) / "kept"
        shutil.copytree(kept, folder, ignore=shutil.ignore_patterns("said"))
        return {name: ask(program, folder, command) for name, command in QUESTIONS}

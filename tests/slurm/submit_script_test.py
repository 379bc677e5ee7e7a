#!/usr/bin/env python3
"""The script that submits a job cancels it when it is told to end, also when nobody reads its output any more.

A shell says "Terminated" of a child that a signal ended; into a pipe without a reader that sentence is the shell's own end (SIGPIPE), and
the job went on for ever. Whether it comes to that is a race: each round failed three times in ten before. Fakes stand for Slurm's programs.

usage: submit_script_test.py PROGRAM
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROUNDS = 30
FAKES = {"sbatch": "exec sleep 100", "srun": "exit 1", "squeue": "exit 0", "scancel": 'touch "$CANCELLED"'}


def write_fakes(folder):
    folder.mkdir()
    for name, text in FAKES.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def submit_script(program, folder, environment):
    words = [program, "run", "--launcher", "slurm", "--output", str(folder / "out"), "--dry-run", "--json", "--framework", "native"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    for file in json.loads(done.stdout)[0]["files"]:
        path = pathlib.Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["content"])
        script = path if path.name == "submit.sh" else locals().get("script")
    return script


def is_cancelled_when_told_to_end(script, folder, environment, wait):
    mark = folder / "cancelled"
    mark.unlink(missing_ok=True)
    shell = subprocess.Popen(["sh", script], env={**environment, "CANCELLED": str(mark)}, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True)
    time.sleep(wait)
    shell.stdout.close()
    os.killpg(shell.pid, signal.SIGTERM)
    shell.wait(60)
    return mark.exists()


def main():
    with tempfile.TemporaryDirectory(prefix="tprimat_submit_") as name:
        folder = pathlib.Path(name)
        write_fakes(folder / "bin")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        environment = {**kept, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        script = submit_script(str(pathlib.Path(sys.argv[1]).resolve()), folder, environment)
        for number in range(ROUNDS):
            if not is_cancelled_when_told_to_end(script, folder, environment, 0.1 + 0.01 * (number % 5)):
                sys.exit(f"round {number + 1}: the job was not cancelled")
    print(f"{ROUNDS} rounds: the job was cancelled in each")


if __name__ == "__main__":
    main()

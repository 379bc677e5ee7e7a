#!/usr/bin/env python3
"""Every verb, its help and a small call that works, where a standard stream is full, closed or nobody reads it.

What stdout lost shows in the exit status and as a sentence on stderr; a stderr that takes nothing changes neither result nor status; nothing
is aborted, and no file takes the number of a closed stream.

usage: output_streams.py PROGRAM
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import run_cases

RUNS = '"$CASES/../golden/compare/clear_winner/runs"'
TRACE = '[{"ph": "X", "cat": "kernel", "name": "gemm_a", "pid": 3, "ts": 100.125, "dur": 10}]'
SPEC = ("tprimat run --config \"$CASES/tiny.yaml\" --dry-run --json | "
        "python3 -c 'import json, sys; print(json.load(sys.stdin)[0][\"files\"][0][\"content\"])' > spec.json")
# verb: what prepares the folder, and the call. Each prints something on stdout.
CALLS = {
    "run": [("", 'tprimat run --config "$CASES/tiny.yaml" --dry-run'), ("", 'tprimat run --config "$CASES/tiny.yaml" --steps 2')],
    "train": [(SPEC, "tprimat train --spec spec.json --steps 2 --tensorboard events")],
    "extract": [('cp -r "$CASES/../unit/extract/fixtures/picotron" old', "tprimat extract old --output new")],
    "compare": [("", f"tprimat compare {RUNS} --html=page.html --junit tests.xml"), ("", f"tprimat compare {RUNS} --csv"),
                (f"cp -r {RUNS} runs", "tprimat compare --history runs")],
    "export": [("", f"tprimat export {RUNS} --format csv,prometheus")],
    "archive": [("", f"tprimat archive {RUNS}"), (f"tprimat archive {RUNS}", "tprimat archive verify tprimat.tar.zst")],
    "profile": [(f"echo '{TRACE}' > t.json", "tprimat profile --summarise t.json")],
    "probe": [("", "tprimat probe --threads 1")],
    "estimate": [("", "tprimat estimate --flops llama"), ("", "tprimat estimate --memory llama --json")],
    "plan": [("", "tprimat plan llama3_8b --gpu H100 --gpus 64")],
    "why": [('python3 "$CASES/why_trace.py" a.json; python3 "$CASES/why_trace.py" b.json product=500',
             "tprimat why a.json b.json --what-if products=0.9x --html=why.html --plot why.svg")],
    "published": [("", "tprimat published list --gpu H200"), ("", "tprimat published list --csv --gpu H200")],
    "claim": [("", "tprimat claim llama3.1_8b --gpu H100 --gpus 8 --seq 8192 --tokens-per-second-per-gpu 11000"),
              ("", "tprimat claim llama3.1_8b --gpu H100 --gpus 8 --seq 8192 --mfu 40 --json")],
    "data": [("", "tprimat data make --prefix made --tokens 1000 --vocab 50"),
             ("tprimat data make --prefix made --tokens 1000 --vocab 50", "tprimat data info made")],
    "doctor": [("", "tprimat doctor --platform cpu")],
    "config": [("", "tprimat config show"), ("", "tprimat config get training"), ("", "tprimat config validate"),
               ("", "tprimat config export --shell")],
    "docker": [("", "tprimat docker run cpu --program docker --dry-run -- true")],
    "detect": [("", "tprimat detect"), ("", "tprimat detect --json")],
    "completion": [("", "tprimat completion bash")],
    "man": [("", "tprimat man run")],
}
SLOW = ("tprimat probe --threads", 'tprimat run --config "$CASES/tiny.yaml" --steps')  # measure for seconds: one call, with all streams closed
MADE_ALIKE = re.compile(r"(runs|steps)\.csv|tprimat\.prom|made\.(bin|idx)")  # bytes that hold no time and no chance
CLOSED_ALL = ("all closed", "<&- >&- 2>&-")


def run(program, preparation, call, streams):
    with tempfile.TemporaryDirectory(prefix="tprimat_streams_") as name:
        folder = pathlib.Path(name)
        environment = run_cases.make_environment(program, folder)
        if preparation:
            subprocess.run(["/bin/sh", "-c", preparation], cwd=folder, env=environment, check=True, capture_output=True, timeout=run_cases.SECONDS)
        done = subprocess.run(["/bin/sh", "-c", f"{call} {streams}"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=run_cases.SECONDS)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
                 if path.is_file() and MADE_ALIKE.fullmatch(path.name)}
        return done, files


def run_unread(program, preparation, call):
    """Nobody reads stdout any more before the first byte comes."""
    with tempfile.TemporaryDirectory(prefix="tprimat_streams_") as name:
        folder = pathlib.Path(name)
        environment = run_cases.make_environment(program, folder)
        if preparation:
            subprocess.run(["/bin/sh", "-c", preparation], cwd=folder, env=environment, check=True, capture_output=True, timeout=run_cases.SECONDS)
        reader, writer = os.pipe()
        os.close(reader)
        child = subprocess.Popen(["/bin/sh", "-c", f"exec {call}"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=writer,
                                 stderr=subprocess.PIPE)
        os.close(writer)
        stderr = child.stderr.read()
        return child.wait(run_cases.SECONDS), stderr


def check_lost(done, name, failures):
    if done.returncode != 1:
        failures.append(f"{name}: status {done.returncode}, not 1")
    if b"cannot write to standard output" not in done.stderr:
        failures.append(f"{name}: no word of it on stderr: {done.stderr[-200:]}")


def check_same(done, status, name, failures):
    if done.returncode != status:
        failures.append(f"{name}: status {done.returncode}, not {status}: {done.stderr[-200:]}")
    if not done.stdout:
        failures.append(f"{name}: nothing on stdout")


def check_call(program, preparation, call):
    failures = []
    plain, made = run(program, preparation, call, "")
    if not plain.stdout or plain.returncode not in (0, 1, 3):
        return [f"status {plain.returncode}, {len(plain.stdout)} bytes on stdout: {plain.stderr[-300:]}"]
    for name, streams in (("full stdout", ">/dev/full"), ("closed stdout", ">&-")):
        check_lost(run(program, preparation, call, streams)[0], name, failures)
    for name, streams in (("full stderr", "2>/dev/full"), ("closed stderr", "2>&-"), ("closed stdin", "<&-")):
        check_same(run(program, preparation, call, streams)[0], plain.returncode, name, failures)
    done, files = run(program, preparation, call, CLOSED_ALL[1])
    if done.returncode != 1:
        failures.append(f"{CLOSED_ALL[0]}: status {done.returncode}, not 1")
    if files != made:
        failures.append(f"{CLOSED_ALL[0]}: other files than with open streams: {sorted(files)} {sorted(made)}")
    status, stderr = run_unread(program, preparation, call)
    if status != -signal.SIGPIPE or b"error" in stderr:
        failures.append(f"unread stdout: status {status}: {stderr[-200:]}")
    return failures


def check_slow_call(program, preparation, call):
    done, _ = run(program, preparation, call, CLOSED_ALL[1])
    return [] if done.returncode == 1 else [f"{CLOSED_ALL[0]}: status {done.returncode}, not 1"]


def list_verbs(program):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) ", text.split("SUBCOMMANDS:")[-1], re.MULTILINE)


def check_streams_of_files(program):
    """`-` as a path reads stdin: where that is closed, it is no empty log."""
    done, _ = run(program, "", "tprimat extract - --json", "<&-")
    return [] if done.returncode == 2 and b"standard input" in done.stderr else [f"status {done.returncode}: {done.stderr[-200:]}"]


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    verbs = list_verbs(program)
    if sorted(verbs) != sorted(CALLS):
        raise SystemExit(f"verbs without a call here, or calls without a verb: {sorted(set(verbs) ^ set(CALLS))}")
    calls = [(name, "", call) for name, call in [("--version", "tprimat --version"), ("--help", "tprimat --help")]]
    calls += [(verb, "", f"tprimat {verb} --help") for verb in verbs]
    calls += [(verb, *call) for verb in verbs for call in CALLS[verb]]
    failed = 0
    for verb, preparation, call in calls:
        failures = (check_slow_call if call.startswith(SLOW) else check_call)(program, preparation, call)
        failed += bool(failures)
        print("".join(f"{call}: {failure}\n" for failure in failures), end="", flush=True)
    closed = check_streams_of_files(program)
    print("".join(f"extract -: {failure}\n" for failure in closed), end="")
    print(f"{len(calls)} calls, {failed} of them with failures")
    return 1 if failed or closed else 0


if __name__ == "__main__":
    sys.exit(main())

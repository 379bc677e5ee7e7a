#!/usr/bin/env python3
"""Runs the cases of one .test file, or the table of malformed configurations, against the program.

A .test file is a list of cases. Each starts with a command line, run by a shell in an empty folder of its own, in which `tprimat` is the
program, $CASES is this folder, $CONFIGS the project's configs/ and $FAKES the folder of the fake GPU libraries. What follows are expectations:

  $ tprimat config get training.data.seq_length
  exit 0                      the exit status; 0 when not given
  stdout: 256                 stdout holds this text
  stdout is: 256              stdout is this line and nothing else
  stderr: did you mean        stderr holds this text
  no stdout: error            stdout does not hold it; likewise `no stderr:`
  stdout is empty             likewise stderr

Lines of one case run in the same folder: several `$` lines in a row are one script, and the last one's exit status counts.
Lines that start with # are comments.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 300  # machines are busy


def hide_gpus(folder, fakes):
    """A machine's own GPUs would change what runs without a configuration: stand-ins for its libraries that list none."""
    if not any(pathlib.Path(device).exists() for device in ("/dev/nvidiactl", "/dev/kfd")):
        return {}
    libraries = folder / ".lib"
    libraries.mkdir()
    for name, fake in (("libnvidia-ml.so.1", "nvml"), ("libamd_smi.so", "amd_smi"), ("librocm_smi64.so", "rocm_smi")):
        (libraries / name).symlink_to(f"{fakes}/libfake_{fake}.so")
    return {"LD_LIBRARY_PATH": str(libraries), "FAKE_GPU_LIES": "no_devices"}


def make_environment(program, folder):
    """Nothing of the caller's settings reaches the program."""
    tools = folder / ".bin"
    tools.mkdir()
    (tools / "tprimat").symlink_to(pathlib.Path(program).resolve())
    path = f"{tools}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    kept = {k: v for k, v in os.environ.items() if k.startswith(("LSAN_", "ASAN_", "UBSAN_", "LD_"))}
    return {**kept, "PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8", "CASES": str(HERE),
            "CONFIGS": str(HERE.parent.parent / "configs"),
            "FAKES": str(pathlib.Path(program).resolve().parent / "tests/fakes")}


def run_script(program, script):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_cli_"))
    try:
        environment = make_environment(program, folder)
        if "$FAKES" not in script:
            environment.update(hide_gpus(folder, environment["FAKES"]))
        done = subprocess.run(["/bin/sh", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS)
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return "a timeout", "", f"still running after {SECONDS} s"
    finally:
        shutil.rmtree(folder)


def read_cases(path):
    """[(line number, script, [expectation])]"""
    cases = []
    open_script = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            open_script = False
        elif text.startswith("$ "):
            if open_script:
                cases[-1][1].append(text[2:])
            else:
                cases.append((number, [text[2:]], []))
            open_script = True
        elif cases:
            open_script = False
            cases[-1][2].append(text)
        else:
            raise SystemExit(f"{path}:{number}: an expectation before the first command")
    return [(number, "\n".join(script), expectations) for number, script, expectations in cases]


def split_expectation(text):
    """'stdout is: x' -> ('stdout', 'is', 'x')"""
    negated = text.startswith("no ")
    word = text[3:] if negated else text
    for stream in ("stdout", "stderr"):
        if word == f"{stream} is empty":
            return stream, "is empty", ""
        if word.startswith(f"{stream} is: "):
            return stream, "is", word[len(stream) + 5:]
        if word.startswith(f"{stream}: "):
            return stream, "lacks" if negated else "holds", word[len(stream) + 2:]
    raise SystemExit(f"cannot read the expectation '{text}'")


def is_met(text, streams):
    stream, relation, wanted = split_expectation(text)
    actual = streams[stream]
    if relation == "is empty":
        return actual == ""
    if relation == "is":
        return actual == wanted + "\n"
    return (wanted in actual) == (relation == "holds")


def failures_of(program, script, expectations):
    status, stdout, stderr = run_script(program, script)
    streams = {"stdout": stdout, "stderr": stderr}
    exits = [int(text.split()[1]) for text in expectations if text.startswith("exit ")]
    wanted = exits[0] if exits else 0
    failures = [] if status == wanted else [f"exit status is {status}, not {wanted}"]
    failures += [f"not met: {text}" for text in expectations
                 if not text.startswith("exit ") and not is_met(text, streams)]
    return failures, streams


def run_test_file(program, path):
    cases = read_cases(path)
    if not cases:
        raise SystemExit(f"{path}: no cases")
    failed = 0
    for number, script, expectations in cases:
        failures, streams = failures_of(program, script, expectations)
        if failures:
            failed += 1
            print(f"{path.name}:{number}: $ {script}")
            print("".join(f"  {failure}\n" for failure in failures), end="")
            print(f"--- stdout\n{streams['stdout'][:4000]}\n--- stderr\n{streams['stderr'][:4000]}")
    print(f"{path.name}: {len(cases) - failed} of {len(cases)} cases passed")
    return failed


def run_malformed(program, table):
    """Each file: exit status 2, nothing on stdout, as many errors as the table says, and their words."""
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    failed = 0
    for file, count, parts in rows:
        status, stdout, stderr = run_script(program, f"tprimat config validate --config \"$CASES/malformed/{file}\"")
        errors = sum(line.startswith("error: ") for line in stderr.splitlines())
        lacking = [part for part in parts.split("|") if part not in stderr]
        if status != 2 or stdout or errors != int(count) or lacking:
            failed += 1
            print(f"{file}: exit status {status}, {errors} errors instead of {count}, lacking {lacking}\n{stderr[:4000]}")
    print(f"{table.name}: {len(rows) - failed} of {len(rows)} malformed configurations refused as they should be")
    return failed


def main():
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: {sys.argv[0]} PROGRAM FILE.test|cases.tsv")
    program, path = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = run_malformed(program, path) if path.suffix == ".tsv" else run_test_file(program, path)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

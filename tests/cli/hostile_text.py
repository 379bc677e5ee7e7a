#!/usr/bin/env python3
"""Foreign text steers nothing: files, configurations, names of files and command lines full of terminal escapes, control characters, characters
that reverse or hide text, line breaks, formulas and markup give output of every verb and format without one raw control character, and with
whole structure.

usage: hostile_text.py PROGRAM
"""

import csv
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree

import run_cases

EVIL = "=1+1\x1b[31m\x07\x9b2J\r\n::error::owned\ntouch owned\u2028\u202eevil\u2066\u200b\u200f\u061c\ufeff\U000e0041\"',|`<b>&${x}\\"
IN_JSON = "\u0000" + EVIL
IN_NAME = EVIL.replace("/", "")
RUNS = pathlib.Path(run_cases.HERE, "../golden/compare/clear_winner/runs").resolve()
TEXTS = {".csv", ".md", ".html", ".xml", ".json", ".jsonl", ".prom", ".log", ".yaml", ".txt", ".tsv", ".svg", ".py"}


def find_raw(text):
    """What must not stand in output, each once."""
    return sorted({c for c in text if c not in "\n\t" and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") or c == "\ufffe")})


def begins_a_line(text):
    """A wrapped paragraph may begin a line with any word that follows a blank, but for what a runner takes for a command."""
    lines = text.split("\n")
    return any(line.startswith("::error::owned") or line.startswith("touch owned") and len(before) < 80
               for before, line in zip(["", *lines], lines))


class Cases:
    def __init__(self, program, folder):
        self.folder = folder
        self.program = program
        self.environment = {**run_cases.make_environment(program, folder), "TERM": "xterm"}
        self.failures = []
        self.count = 0

    def run(self, *words):
        return subprocess.run([self.program, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=run_cases.SECONDS)

    def fail(self, words, what):
        self.failures.append(f"{words}: {what}")

    def check_text(self, words, name, raw, is_script=False):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return self.fail(words, f"{name}: {error}")
        if bad := find_raw(text):
            self.fail(words, f"{name} holds {bad}: ...{text[max(0, text.index(bad[0]) - 80):][:160]!r}")
        if is_script:  # a line break in quotes is as good as any
            if subprocess.run(["/bin/sh", "-n"], input=raw, capture_output=True).returncode != 0:
                self.fail(words, f"{name} is no script")
        elif begins_a_line(text):
            self.fail(words, f"{name}: a line break in foreign text begins a line")

    def check(self, *words, exits=(0, 1, 2, 3), read=None, is_script=False):
        """Runs it; what it prints and every text file that it writes is looked at."""
        self.count += 1
        before = set(self.files())
        done = self.run(*words)
        shown = " ".join(word if word.isprintable() else "EVIL" for word in words)
        if done.returncode not in exits:
            self.fail(shown, f"status {done.returncode}, not of {exits}: {done.stderr[-300:]}")
        self.check_text(shown, "stdout", done.stdout, is_script)
        self.check_text(shown, "stderr", done.stderr)
        for path in set(self.files()) - before:
            self.check_text(shown, path.name, path.read_bytes())
        if read and done.returncode != 2:
            try:
                read(done.stdout.decode())
            except Exception as error:  # whatever a parser says
                self.fail(shown, f"cannot be read again: {error!r}")
        return done

    def files(self):
        return [path for path in self.folder.rglob("*") if path.is_file() and path.suffix in TEXTS and not path.is_symlink()
                and "sources" not in path.relative_to(self.folder).parts]


def read_csv(text):
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1, [len(row) for row in rows]
    for cell in itertools.chain(*rows):
        armed = cell.strip()[:1] in ("=", "+", "-", "@") and cell.strip()
        assert not armed or re.fullmatch(r"[-+][0-9.e+-]+", cell), cell


def read_markdown(text):
    columns = None
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
        assert columns is None or cells is None or cells == columns, line
        columns = cells
    assert "<b>" not in text, "raw HTML"


def string_places(value, place=()):
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key in value:
            yield from string_places(value[key], (*place, key))
    elif isinstance(value, list):
        for index, each in enumerate(value[:1]):
            yield from string_places(each, (*place, index))


def with_text(document, places, text):
    copy = json.loads(json.dumps(document))
    for place in places:
        at = copy
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = text
    return copy


def make_evil_results(cases, target):
    """Results in which every text that their reader takes is evil, but for what makes them comparable."""
    target.mkdir(parents=True)
    taken = set()
    for number, path in enumerate(sorted(RUNS.glob("*.json"))):
        document = json.loads(path.read_text())
        document["warnings"] = ["note"]
        document.setdefault("status_reason", "reason")
        probe = cases.folder / "sources" / "probe.json"
        places = []
        for place in string_places(document):
            probe.write_text(json.dumps(with_text(document, [place], IN_JSON)))
            if cases.run("export", "-q", str(probe), "--format", "csv", "--output", "sources/probed").returncode == 0:
                places.append(place)
        taken |= {place for place in places}
        (target / f"{number}{IN_NAME}.json").write_text(json.dumps(with_text(document, places, IN_JSON)))
    if len(taken) < 10:
        raise SystemExit(f"only {len(taken)} texts of a result could be replaced: {taken}")


def check_comparison(cases):
    runs = "sources/runs"
    cases.check("compare", runs, "--html=page.html", "--junit", "tests.xml", "--output", "compared", exits=(0, 1, 3))
    cases.check("compare", runs, "--markdown", "--output", "compared", read=read_markdown)
    cases.check("compare", runs, "--csv", "--output", "compared", read=read_csv)
    cases.check("compare", runs, "--json", "--output", "compared", read=json.loads)
    annotated = cases.check("compare", runs, "-q", "--annotations", "--output", "compared")
    for line in annotated.stderr.decode("utf-8", "replace").splitlines():
        if not re.match(r"::(error|warning|notice) title=", line):
            cases.fail("compare --annotations", line)
    for name in ("page.html", "tests.xml"):
        text = (cases.folder / name).read_text()
        if name.endswith("xml"):
            xml.etree.ElementTree.fromstring(text)
        elif "<b>&" in text or "<b>$" in text:
            cases.fail("compare --html", "raw markup")
    for arguments, read in (((), None), (("--csv",), read_csv), (("--json",), json.loads), (("--markdown",), read_markdown)):
        cases.check("compare", "--history", runs, *arguments, read=read)


def check_exports(cases):
    cases.check("export", "sources/runs", "--format", "csv,prometheus,mlflow,wandb,mllog", "--output", "exported", exits=(0,))
    for name in ("runs.csv", "steps.csv"):
        read_csv((cases.folder / "exported" / name).read_text())
    cases.check("export", "sources/runs", "--format", "csv", "--json", "--output", "exported", read=json.loads)
    cases.check("archive", "sources/runs", exits=(0,))
    for form in ((), ("--json",)):
        cases.check("archive", "verify", *form, "tprimat.tar.zst", read=json.loads if form else None)


def check_extraction(cases):
    lines = "".join(f" iteration {i:8d}/{9:8d} | elapsed time per iteration (ms): 100.0 | learning rate: 1.0E-4 | global batch size: 8 | "
                    f"lm loss: 1.0E+1 | grad norm: 1.0 |\n" for i in range(1, 10))
    arguments = "".join(f"  {key} ................. {value}\n" for key, value in
                        (("dataset" + EVIL.split("\r")[0], "x"), ("data_path", EVIL.replace("\r\n", " ").replace("\n", " ")), ("seq_length", 128)))
    log = cases.folder / "sources" / "logs"
    log.mkdir()
    (log / f"{IN_NAME}.log").write_text(f"------ arguments ------\n{arguments}\n{lines}{EVIL}\nRuntimeError: CUDA error {EVIL}\n")
    (log / "plain.log").write_text(lines)
    path = f"sources/logs/{IN_NAME}.log"
    cases.check("extract", path)
    cases.check("extract", path, "--json", read=json.loads)
    cases.check("extract", "sources/logs", "--output", "extracted")
    cases.check("extract", "sources/logs", "--json", read=json.loads)


def check_configuration(cases):
    text = (run_cases.HERE / "tiny.yaml").read_text()
    evil = json.dumps(EVIL).replace("${x}", "x").replace("\\udb40\\udc41", "\\U000e0041")
    path = cases.folder / "sources" / f"{IN_NAME}.yaml"
    path.write_text(text + f"\nexperiment: {{name: {evil}, description: {evil}}}\n{evil}: 1\n")
    cases.check("config", "validate", "--config", str(path), exits=(2,))
    path.write_text(text + f"\nexperiment: {{name: {evil}}}\n")
    shown = cases.check("config", "show", "--config", str(path), exits=(0,))
    document = json.loads(cases.check("config", "show", "--json", "--config", str(path), exits=(0,), read=json.loads).stdout)
    if document["settings"]["experiment"]["name"] != EVIL.replace("${x}", "x"):
        cases.fail("config show --json", "the name is another")
    (cases.folder / "sources" / "again.yaml").write_bytes(shown.stdout)
    again = json.loads(cases.check("config", "show", "--json", "--config", "sources/again.yaml", exits=(0,)).stdout)
    if again["settings"] != document["settings"]:
        cases.fail("config show", "what it prints reads as something else")
    for key in ("experiment.name", "experiment"):
        cases.check("config", "get", key, "--config", str(path), exits=(0,))
        cases.check("config", "get", key, "--json", "--config", str(path), exits=(0,), read=json.loads)
    exported = cases.check("config", "export", "--shell", "--config", str(path), exits=(0,), is_script=True).stdout.decode()
    name = subprocess.run(["/bin/sh", "-c", exported + "\nprintf %s \"$CONFIG_EXPERIMENT_NAME\""], capture_output=True, check=True).stdout
    if name.decode() != EVIL.replace("${x}", "x"):
        cases.fail("config export", f"the shell gets {name}")
    cases.check("config", "show", "--set", f"experiment.name={EVIL}")
    cases.check("config", "get", EVIL, exits=(2,))
    for form in ((), ("--verbose",), ("--json",)):
        cases.check("run", "--dry-run", "--config", str(path), "--output", f"out{IN_NAME}", "--dataset", "synthetic", *form,
                    read=json.loads if form == ("--json",) else None, is_script=form != ("--json",))
    cases.check("doctor", "--platform", "cpu", "--output", f"out{IN_NAME}")
    cases.check("plan", "llama3_8b", "--gpu", "H100", "--gpus", "8", "--yaml")


def check_tables(cases):
    table = cases.folder / "sources" / f"{IN_NAME}.tsv"
    flat = EVIL.replace("\r\n", " ").replace("\n", " ")
    table.write_text(f"model\tgpu\tnum_gpus\tmfu_pct\tsource\n{flat}\t{flat}\t{flat}\t40\t{flat}\nllama3_8b\tH100\t8\t40\t{flat}\n")
    for form in ((), ("--json",)):
        read = json.loads if form else None
        cases.check("estimate", "--validate", str(table), *form, read=read)
        cases.check("plan", "--validate", str(table), "--rows", *form, read=read)
    trace = cases.folder / "sources" / f"{IN_NAME}.json"
    trace.write_text(json.dumps({"deviceProperties": [{"id": 0, "name": IN_JSON}], "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": IN_JSON, "pid": 0, "ts": 100, "dur": 10, "args": {"device": 0}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#7" + IN_JSON, "pid": 0, "ts": 100, "dur": 20}]}))
    for form in ((), ("--json",)):
        cases.check("profile", "--summarise", str(trace), *form, exits=(0,), read=json.loads if form else None)
    for form in ((), ("--json",)):
        cases.check("data", "make", "--prefix", f"made{IN_NAME}", "--tokens", "1000", "--vocab", "50", *form, exits=(0,),
                    read=json.loads if form else None)
    cases.check("docker", "run", "cpu", "--program", "docker", "--dry-run", "--name", "x", "--volume", f"/a{IN_NAME}:/b", "--", "echo", EVIL, is_script=True)
    cases.check("detect", "--json", read=json.loads)


def check_complaints(cases):
    """What does not exist or cannot be read is named, and names nothing else."""
    (cases.folder / "sources" / "spec.json").write_text(json.dumps({IN_JSON: IN_JSON, "model": IN_JSON}))
    cases.check("train", "--spec", "sources/spec.json", exits=(2,))
    cases.check("plan", EVIL, "--gpu", "H100", "--gpus", "8", exits=(2,))
    cases.check("estimate", "--flops", EVIL, exits=(2,))
    cases.check("published", "show", EVIL, exits=(2,))
    for option in ("--model", "--gpu", "--precision", "--framework", "--kind", "--sort"):
        cases.check("published", "list", option, EVIL, exits=(2,))
    for verb, words in (("train", ("--spec",)), ("extract", ()), ("compare", ()), ("export", ("--format", "csv")), ("archive", ()),
                        ("archive", ("verify",)), ("profile", ("--summarise",)), ("data", ("info",)), ("estimate", ("--validate",)),
                        ("config", ("show", "--config")), ("run", ("--dry-run", "--config")), ("plan", ("--validate",))):
        cases.check(verb, *words, EVIL, exits=(1, 2))
    verbs = re.findall(r"^  ([a-z]+) ", cases.run("--help").stdout.decode().split("SUBCOMMANDS:")[-1], re.MULTILINE)
    for verb in verbs:
        cases.check(verb, "--" + EVIL, exits=(2,))
        cases.check(verb, EVIL, "--" + EVIL, exits=(2,))
    cases.check(EVIL, exits=(2,))


def main():
    with tempfile.TemporaryDirectory(prefix="tprimat_hostile_") as name:
        folder = pathlib.Path(name)
        cases = Cases(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        (folder / "sources").mkdir()
        make_evil_results(cases, folder / "sources" / "runs")
        for part in (check_comparison, check_exports, check_extraction, check_configuration, check_tables, check_complaints):
            try:
                part(cases)
            except Exception as error:
                cases.fail(part.__name__, repr(error))
    for failure in cases.failures:
        print(failure)
    print(f"{cases.count} calls, {len(cases.failures)} failures")
    return 1 if cases.failures else 0


if __name__ == "__main__":
    sys.exit(main())

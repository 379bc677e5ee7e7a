#!/usr/bin/env python3
"""Scripts of `tprimat run --dry-run --verbose` run nothing but what the plan says, whatever the strings of a configuration hold.

usage: hostile_scripts.py PROGRAM [ROUNDS]

Every launcher with several frameworks, hostile strings in all texts that reach a script at once: each script is parsed by bash and
sh, then executed with stand-ins for what it starts. No hostile string may run as a command (`mark` in PATH would leave a file), the
program gets the plan's words, variables, folder and files byte for byte, and every string arrives whole; or the configuration is
refused in a sentence (exit status 2).
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

STRINGS = ["x\nmark\n", "$(mark)", "`mark`", "a; mark", "a && mark", "a | mark", "'; mark; '", '"; mark; "', "'\\''; mark #", "-x", "--help",
           "*", "?[a-z]*", "%x %s %%", "~", "a\rmark\r", "\u202emark\u202c", "\u2028mark", "x" * 180, "\tmark", "\u001b[201~mark\n",
           "END_OF_FILE\nmark\n", "\nEND_OF_FILE\nmark\nEND_OF_FILE\n", "'\n'", "\\", "\\'", "a b", "!!", "{a,b}", "#mark", "FOO=bar",
           "<(mark)", ">mark", "\u0085mark", "a\\nmark", "$HOME", "a,b", "a:b", "é ü", "if", "\u007f"]
RECORD = r"""#!/bin/sh
{ printf '%s\0' "$0" "$PWD" "$#" "$@"; env -0; printf 'END\0'; } >> "$RECORD"
"""
AS_NODE = 'while [ $# -gt 0 ]; do [ "$1" = sh ] && exec "$@"; shift; done\n'  # becomes start_node.sh, where that is what is started
STAND_INS = {"mpirun": RECORD + AS_NODE, "srun": RECORD + AS_NODE, "docker": RECORD, "podman": RECORD, "python3": RECORD, "bash": RECORD,
             "sbatch": RECORD + 'for last in "$@"; do :; done\nsh "$last"\n', "mark": '#!/bin/sh\n: > "$MARK"\n', "squeue": "#!/bin/sh\n",
             "scancel": "#!/bin/sh\n", "scontrol": "#!/bin/sh\nexit 1\n", "sleep": "#!/bin/sh\n", "tail": "#!/bin/sh\n"}
SHELLS = ("/bin/bash", "/bin/sh")
ROUNDS = 6  # of each scenario; the whole table of strings comes round for every field within seven scenarios
GPU = {"nvd": "H100", "amd": "MI300X"}

# name: (platform, framework, nodes, settings of launch, texts of launch by path)
SLURM_TEXTS = ["slurm.partition", "slurm.account", "slurm.qos", "slurm.nodelist", "slurm.arguments[]"]
PYXIS = {"container_image": "image"}
PYXIS_TEXTS = ["slurm.container_image", "slurm.container_mounts[]", "slurm.container_env[]", "python_inside"]
DOCKER_TEXTS = ["docker.image", "docker.shm_size", "docker.volumes[]", "docker.environment[]", "docker.arguments[]"]
SCENARIOS = {
    "local native": ("cpu", "native", 1, {}, []),
    "local tran": ("cpu", "tran", 1, {}, []),
    "local tita": ("cpu", "tita", 1, {}, []),
    "local mega": ("nvd", "mega", 1, {}, []),
    "local mgds": ("nvd", "mgds", 1, {}, []),
    "local nemo": ("nvd", "nemo", 1, {}, []),
    "local prim": ("amd", "prim", 1, {}, []),
    "mpi native": ("cpu", "native", 2, {"launcher": "mpi"}, ["mpi.hosts[]", "mpi.arguments[]"]),
    "mpi fsdp": ("nvd", "fsdp", 2, {"launcher": "mpi"}, ["mpi.hosts[]", "mpi.arguments[]"]),
    "mpi hostfile": ("nvd", "mega", 2, {"launcher": "mpi"}, ["mpi.hostfile", "mpi.arguments[]"]),
    "mpi prim": ("amd", "prim", 2, {"launcher": "mpi"}, ["master_address", "mpi.hosts[]", "mpi.arguments[]"]),
    "sbatch native": ("cpu", "native", 1, {"launcher": "slurm", "slurm": {"start": "sbatch"}}, SLURM_TEXTS),
    "sbatch fsdp": ("nvd", "fsdp", 2, {"launcher": "slurm", "slurm": {"start": "sbatch"}}, SLURM_TEXTS),
    "sbatch mpirun": ("cpu", "native", 2, {"launcher": "slurm", "slurm": {"start": "sbatch", "mpi": "mpirun"}}, SLURM_TEXTS + ["mpi.arguments[]"]),
    "srun mega": ("nvd", "mega", 2, {"launcher": "slurm", "slurm": {"start": "srun"}}, SLURM_TEXTS + ["master_address"]),
    "pyxis deep": ("nvd", "deep", 2, {"launcher": "slurm", "slurm": {"start": "sbatch", **PYXIS}}, SLURM_TEXTS + PYXIS_TEXTS),
    "docker native": ("cpu", "native", 1, {"launcher": "docker"}, DOCKER_TEXTS + ["program_inside"]),
    "docker tran": ("nvd", "tran", 1, {"launcher": "docker"}, DOCKER_TEXTS + ["python_inside"]),
}
CHECKOUTS = {"mega": "megatron", "mgds": "megatron_deepspeed", "nemo": "nemo", "prim": "primus"}
MODEL = {"num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
         "vocab_size": 64, "max_position_embeddings": 64}
NAME_FIELDS = ("slurm.container_env[]", "docker.environment[]", "variable name")  # names of variables, and nothing else


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def put(tree, path, value):
    """put({}, "a.b[]", x) -> {"a": {"b": [x]}}"""
    *above, last = path.removesuffix("[]").split(".")
    for key in above:
        tree = tree.setdefault(key, {})
    tree[last] = [value] if path.endswith("[]") else value


class Case:
    """One scenario with a text for each of its fields, in a folder of its own."""

    def __init__(self, root, scenario, texts):
        self.platform, self.framework, self.nodes, self.launch, _ = SCENARIOS[scenario]
        self.root, self.texts, self.folder = root, texts, root / "case"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.mark, self.record = self.folder / "MARK", self.folder / "RECORD"
        self.stand_ins = root / "stand_ins"

    @staticmethod
    def fields(scenario):
        platform, framework, _, _, launch = SCENARIOS[scenario]
        fields = [f"launch:{field}" for field in launch] + ["output", "log name", "result name", "variable", "variable name", "dataset"]
        fields += ["here"] if framework not in ("mega", "mgds", "prim") else []  # these work in their checkout
        fields += ["environments"] if framework in ("tran", "fsdp", "deep", "tita") and "docker" not in scenario and "pyxis" not in scenario else []
        fields += ["alloc"] if platform == "nvd" else []
        fields += ["checkout"] if framework in CHECKOUTS else []
        return fields + (["recipe"] if framework == "nemo" else ["base", "script"] if framework == "prim" else [])

    def text(self, field, otherwise):
        return self.texts.get(field, otherwise)

    def place(self, field, otherwise):
        """A folder or file of the case that is called so."""
        return self.folder / self.text(field, otherwise).replace("/", "_")

    def config(self):
        ranks = 2 if self.nodes == 2 or self.framework != "native" else 1
        model = dict(MODEL, dataset_path=str(self.make_dataset()))
        if "recipe" in self.texts:
            model["nemo_recipe"] = self.texts["recipe"]
        if "base" in self.texts:
            model["primus_config"] = self.texts["base"]
        settings = {"environment": {self.text("variable name", "VARIABLE"): self.text("variable", "value")}}
        if "alloc" in self.texts:
            settings["cuda_alloc_conf"] = self.texts["alloc"]
        tree = {"models": {"tiny": model}, "platform_optimizations": {self.platform: settings},
                "hardware": {"platforms": {self.platform: {"gpu_model": GPU.get(self.platform, "auto"), "num_gpus": ranks}}},
                "experiment": {"methodology": "mine"}, "parallelism": {"mine": {"tiny": {self.platform: {"DP": ranks}}}},
                "training": {"data": {"seq_length": 16, "micro_batch_size": 1, "global_batch_size": 4}, "duration": {"max_steps": 3},
                             "optimizer": {"warmup_steps": 1}},
                "launch": {"nodes": self.nodes, **json.loads(json.dumps(self.launch))},
                "benchmarking": {"output": {"filename_format": self.text("result name", "result").replace("/", "_") + ".json",
                                            "log_format": self.text("log name", "log").replace("/", "_") + ".log"}}}
        self.add_launch(tree["launch"])
        if self.framework in CHECKOUTS:
            tree["paths"] = {CHECKOUTS[self.framework]: {"installation": str(self.make_checkout())}}
            if "script" in self.texts:
                tree["paths"]["primus"]["run_script"] = self.texts["script"]
        return tree

    def add_launch(self, launch):
        for field, text in self.texts.items():
            if field.startswith("launch:"):
                put(launch, field[len("launch:"):], text)
        mpi = launch.setdefault("mpi", {}) if launch.get("launcher") == "mpi" else {}
        if "hosts" in mpi:
            mpi["hosts"].append("second")
        elif "hostfile" in mpi:  # the file is called so, and so is its first host
            file = self.place("launch:mpi.hostfile", "hosts")
            file.write_text("# the nodes\n" + self.texts["launch:mpi.hostfile"].replace(" ", "${IFS}") + "\nsecond slots=1\n", encoding="utf-8")
            mpi["hostfile"] = str(file)
        elif launch.get("launcher") == "mpi":
            mpi["hosts"] = ["first", "second"]

    def make_dataset(self):
        prefix = self.place("dataset", "corpus")
        for ending in (".bin", ".idx"):
            pathlib.Path(str(prefix) + ending).touch()
        return prefix

    def make_checkout(self):
        checkout = self.place("checkout", "checkout")
        write_program(checkout / "bin/python3", RECORD)
        return checkout

    def environment(self):
        environments = self.place("environments", "environments")
        for framework in ("tran", "fsdp", "deep", "tita"):
            write_program(environments / framework / "bin/python", RECORD)
        kept = {"PATH": f"{self.stand_ins}:/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        return {**kept, "RECORD": str(self.record), "MARK": str(self.mark), "TPRIMAT_FRAMEWORKS": str(environments),
                "OMPI_COMM_WORLD_RANK": "0", "SLURM_NODEID": "0", "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_JOB_NODELIST": "n[1-2]"}

    def plan(self, program, form):
        here = self.place("here", "here")
        here.mkdir(exist_ok=True)
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(self.config(), ensure_ascii=True), encoding="utf-8")
        words = [program, "run", "--dry-run", "--config", str(path), "--platform", self.platform, "--framework", self.framework, "--output",
                 str(self.place("output", "output")), *form]
        return subprocess.run(words, cwd=here, env=self.environment(), capture_output=True, timeout=60, check=False)


def read_records(path):
    """[(program, folder, words, variables)]"""
    parts = path.read_bytes().decode("utf-8", "surrogateescape").split("\0") if path.exists() else []
    records, at = [], 0
    while at + 2 < len(parts):
        name, folder, count = parts[at], parts[at + 1], int(parts[at + 2])
        words, at = parts[at + 3:at + 3 + count], at + 3 + count
        end = parts.index("END", at)
        records.append((name, folder, words, dict(entry.split("=", 1) for entry in parts[at:end])))
        at = end + 1
    return records


def split_as_sbatch(line):
    """The words of a line as sbatch takes them: a backslash keeps what follows, also within quotes."""
    words, word, quote, kept, started = [], "", "", False, False
    for c in line:
        if kept:
            word, kept = word + c, False
        elif c == "\\":
            kept = started = True
        elif quote:
            word, quote = (word, "") if c == quote else (word + c, quote)
        elif c in "'\"":
            quote, started = c, True
        elif c == "#":
            break
        elif c.isspace():
            words, word, started = (words + [word], "", False) if started or word else (words, "", False)
        else:
            word, started = word + c, True
    return words + [word] if started or word else words


def strings_of(value):
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in [key, *strings_of(each)]]
    if isinstance(value, list):
        return [text for each in value for text in strings_of(each)]
    return [value] if isinstance(value, str) else []


def strings_of_file(file):
    content = file["content"]
    if file["path"].endswith(".json"):
        return strings_of(json.loads(content))
    if file["path"].endswith("job.sh"):
        return [word for line in content.split("\n") if line.startswith("#SBATCH ") for word in split_as_sbatch(line[8:])]
    if file["path"].endswith("start_node.sh"):
        return shlex.split(content)
    if file["path"].endswith(".yaml"):  # every text of it is written as in JSON
        return [json.loads(text) for text in (line.split(": ", 1)[-1].strip("[]") for line in content.split("\n")) if text.startswith('"')]
    return []


def execute(case, script, shell):
    for path in (case.mark, case.record):
        path.unlink(missing_ok=True)
    return subprocess.run([shell, "-c", script], cwd=case.folder, env=case.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          check=False)


def faults_of_syntax(script):
    for shell in SHELLS:
        parsed = subprocess.run([shell, "-n", "-c", script], capture_output=True, check=False)
        if parsed.returncode != 0:
            return [f"{shell} -n: {parsed.stderr.decode(errors='replace')}"]
    return []


def faults_of(case, plan, script):
    if faults := faults_of_syntax(script):
        return faults
    shell = SHELLS[len(script) % 2]
    done = execute(case, script, shell)
    faults = faults_of_execution(case, plan)
    return [f"{shell}: {fault}" for fault in faults] + [done.stderr.decode(errors="replace")[:400]] if faults else []


def faults_of_execution(case, plan):
    if case.mark.exists():
        return ["a string of the configuration ran as a command"]
    records = read_records(case.record)
    if plan["command"][0] == "sh":
        submitted = [record for record in records if record[0].endswith("/sbatch")]
        faults = [] if submitted and submitted[0][2][-1].endswith("/job.sh") else ["no job was submitted"]
    else:
        faults = faults_of_start(plan, records[0]) if records else ["nothing was started"]
    for file in plan["files"]:
        path = pathlib.Path(file["path"])
        if not path.is_file() or path.read_bytes().decode("utf-8") != file["content"]:
            faults.append(f"{path!r} is not the file of the plan")
    arrived = [text for name, folder, words, variables in records for text in [name, folder, *words, *variables, *variables.values()]]
    arrived += [text for file in plan["files"] for text in strings_of_file(file)] + [plan["result"], plan["log"], plan["working_directory"]]
    for field, text in case.texts.items():
        wanted = text.replace("/", "_") if field in ("output", "log name", "result name", "here", "dataset", "environments", "checkout") else text
        if not any(wanted in each for each in arrived):
            faults.append(f"{field} = {text!r} did not arrive whole")
    return faults


def faults_of_start(plan, record):
    name, folder, words, variables = record
    faults = [] if pathlib.Path(name).name == pathlib.Path(plan["command"][0]).name else [f"{name} was started"]
    faults += [] if words == plan["command"][1:] else [f"the words are {words}, not {plan['command'][1:]}"]
    faults += [] if folder == plan["working_directory"] else [f"in {folder!r}, not {plan['working_directory']!r}"]
    return faults + [f"{key} is {variables.get(key)!r}, not {value!r}" for key, value in plan["environment"].items() if variables.get(key) != value]


def has_control(text):
    return any(ord(c) < 0x20 or ord(c) == 0x7f for c in text)


def may_refuse(scenario, field, text):
    """What a configuration is right to refuse."""
    if field.endswith("variable name") or field.removeprefix("launch:") in NAME_FIELDS or field == "launch:mpi.hosts[]":
        return not text.isidentifier() or len(text) > 64
    if field in ("log name", "result name") and "{" in text:  # what begins a placeholder
        return True
    if field in ("launch:docker.image", "launch:program_inside", "launch:python_inside"):
        return text.startswith("-") or not text.isprintable()
    if "sbatch" in scenario or "pyxis" in scenario or field.startswith("launch:slurm"):
        if has_control(text) or "\\" in text:
            return True
    if scenario.startswith(("docker", "pyxis")) and field in ("output", "here", "dataset"):
        return ":" in text or "," in text
    if field == "launch:mpi.hostfile":  # a file that names no host
        return text.startswith("#") or not text.strip()
    return scenario.endswith("prim") and field == "dataset" and " " in text


class Fuzzer:
    def __init__(self, program, root):
        self.program, self.root, self.failed, self.refused, self.executed = program, root, 0, {}, 0
        for name, text in STAND_INS.items():
            write_program(root / "stand_ins" / name, text)
        self.copy = root / "it's here" / "tprimat"
        self.copy.parent.mkdir()

    def report(self, scenario, texts, faults):
        self.failed += 1
        if self.failed <= 20:
            print(f"{scenario}, {texts!r}:", *faults, sep="\n  ")

    def is_refused(self, scenario, field, text):
        """Whether the configuration is refused for this text alone; a fault where it should not be, or says nothing."""
        key = (scenario, field, text)
        if key not in self.refused:
            done = Case(self.root, scenario, {field: text}).plan(self.program, ["--json"])
            self.refused[key] = done.returncode != 0
            sound = done.returncode == 2 and b"\nerror: " in b"\n" + done.stderr and not done.stdout
            if done.returncode != 0 and not (sound and may_refuse(scenario, field, text)):
                self.report(scenario, {field: text}, [f"exit status {done.returncode}", done.stderr.decode(errors="replace")[:400]])
        return self.refused[key]

    def try_round(self, scenario, number):
        fields = Case.fields(scenario)
        chosen = {field: STRINGS[(number + 7 * at) % len(STRINGS)] for at, field in enumerate(fields)}
        texts = {field: text for field, text in chosen.items() if not (may_refuse(scenario, field, text) and self.is_refused(scenario, field, text))}
        self.link_program()
        case = Case(self.root, scenario, texts)
        planned, short, shown = case.plan(self.copy, ["--json"]), case.plan(self.copy, []), case.plan(self.copy, ["--verbose"])
        if planned.returncode != 0 or shown.returncode != 0:
            if not any([self.is_refused(scenario, field, text) for field, text in texts.items()]):
                self.report(scenario, texts, ["refused together", planned.stderr.decode(errors="replace")[:400]])
            return
        plan = json.loads(planned.stdout)[0]
        self.copy.unlink()
        write_program(self.copy, RECORD)  # the native trainer is started by its own path
        faults = faults_of_syntax(short.stdout.decode("utf-8")) or faults_of(case, plan, shown.stdout.decode("utf-8"))
        self.executed += 1
        if faults:
            self.report(scenario, texts, faults)

    def link_program(self):
        self.copy.unlink(missing_ok=True)
        try:
            os.link(self.program, self.copy)
        except OSError:
            shutil.copy2(self.program, self.copy)


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    with tempfile.TemporaryDirectory(prefix="tprimat_scripts_") as folder:
        fuzzer = Fuzzer(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder).resolve())
        for at, scenario in enumerate(SCENARIOS):
            for number in range(rounds):
                fuzzer.try_round(scenario, number + at * rounds)
    refused = sum(fuzzer.refused.values())
    print(f"{fuzzer.executed} scripts executed, {refused} of {len(fuzzer.refused)} texts refused, {fuzzer.failed} failures")
    return 1 if fuzzer.failed or fuzzer.executed < rounds * len(SCENARIOS) / 2 else 0


if __name__ == "__main__":
    sys.exit(main())

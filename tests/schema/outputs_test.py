#!/usr/bin/env python3
"""Runs every command that has --json, and validates what it prints against schema/.

  outputs_test.py PROGRAM            what takes milliseconds, or trains a tiny model
  outputs_test.py PROGRAM --probes   what measures this machine, about 40 s

A command that has --json and no case here fails the test, and so does a schema without a case.
"""

import importlib
import json
import pathlib
import re
import subprocess
import sys

import validate

HERE = pathlib.Path(__file__).resolve().parent
GENERATED = HERE.parent.parent / "python/tprimat/_generated"
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent.parent / "python")]
import run_cases  # noqa: E402

RUNS = "$CASES/../golden/compare/clear_winner/runs/*.json"
LOG = "$CASES/extract/megatron.log"
OWN_ROWS = (r"printf 'model\tseq\tgpu\tn_gpus\tframework\tprecision\tgbs\tmbs\ttp\tpp\ttokens_per_s_per_gpu\n"
            r"Llama3 8b\t8192\tH100\t8\tNeMo\tBF16\t128\t1\t1\t1\t9000\n"
            r"Llama3 70b\t8192\tH100\t64\tNeMo\tBF16\t128\t1\t4\t4\t1200\n' > own.tsv; ")
FAKE_PIP = ("mkdir bin; printf '#!/bin/sh\\nmkdir -p $3/bin $3/lib/python3/site-packages/transformers-9.9.dist-info\\n"
            'printf "#!/bin/sh\\\\n" > $3/bin/pip\\nchmod +x $3/bin/pip\\n'
            "cp $3/bin/pip $3/bin/python\\n' > bin/python3; chmod +x bin/python3; "
            "PATH=$PWD/bin:$PATH TPRIMAT_FRAMEWORKS=$PWD/made ")
TINY = "--config $CASES/tiny.yaml -q"
TRACE = ('echo \'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm_a", "pid": 0, "ts": 100, "dur": 10, '
         '"args": {"device": 0}}]}\' > t.json; ')

# The schema of what the last command prints, and the script.
CASES = [
    ("run", f"tprimat run {TINY} --runs 2 --json"),
    ("run", f"tprimat profile {TINY} --steps 8 --window 3:4 --json"),
    ("run_dry_run", f"tprimat run {TINY} --dry-run --json"),
    ("run_dry_run", "tprimat run -q --dry-run --config $CONFIGS/experts_64gpu.yaml --framework all --json"),
    ("result", f"tprimat run {TINY} >none; cat output/train_*.json"),
    ("extract", f"tprimat extract {LOG} -q --json"),
    ("extract", "tprimat extract $CASES/extract/oom.log -q --json"),
    ("extract_logs", f"tprimat extract {LOG} $CASES/extract/oom.log -q --json"),
    ("extract_logs", f"tprimat extract {LOG} --attempt all -q --json"),
    ("extract_folder", "tprimat extract $CASES/extract -q --json"),
    ("extract_gathered", f"cp $CASES/gather.yaml config.yaml; mkdir output; cp {LOG} output/training_mega_gpt.log; "
                         "echo text > output/other.log; tprimat extract -q --json"),
    ("extract_formats", "tprimat extract --list-formats --json"),
    ("compare", f"tprimat compare {RUNS} -q --json"),
    ("compare", f"tprimat compare {RUNS} -q --baseline nemo --fail-if 'tokens_per_second < -3%' --json"),
    ("compare", "tprimat compare $CASES/../golden/compare/different_work/runs -q --json"),
    ("compare_history", f"mkdir a; cp {RUNS} a; tprimat compare --history a -q --json"),
    ("compare_history", "cp -r $CASES/../golden/compare a; "
                        "tprimat compare --history a -q --fail-if 'tokens_per_second < -3%' --json"),
    ("export", f"tprimat export {RUNS} --format csv,prometheus --output out -q --json"),
    ("archive", f"mkdir output; cp {RUNS} output; echo hf_abcdefghijklmnopqrstuvwxyz01 > output/a.log; "
                "tprimat archive -q --json"),
    ("archive_verify", f"mkdir output; cp {RUNS} output; tprimat archive -q >none; "
                       "tprimat archive verify tprimat.tar.zst --json"),
    ("archive_verify", f"tprimat extract -q {LOG} --output output >none; "
                       "sed -i 's/\"p95\": [0-9.]*/\"p95\": 77/' output/*.json; tprimat archive -q >none; "
                       "tprimat archive verify tprimat.tar.zst --json"),
    ("archive_facts", "tprimat archive facts --json"),
    ("profile", f"{TRACE} tprimat profile --summarise t.json --json"),
    ("why", "python3 $CASES/why_trace.py a.json; python3 $CASES/why_trace.py b.json product=500; "
            "tprimat why a.json b.json --what-if overlap=full --what-if products=0.9x --json"),
    ("why_pipeline", "python3 $CASES/why_pipeline.py a last=14; tprimat why a --what-if slowest-rank=median --json"),
    ("why_what_if", "python3 $CASES/why_trace.py a.json; tprimat why a.json --what-if products=2x --json"),
    ("estimate_flops", "tprimat estimate --flops llama3.1_8b --json"),
    ("estimate_flops", "tprimat estimate --flops deepseek_v3 --json"),
    ("estimate_memory", f"tprimat estimate {TINY} --memory tiny --json"),
    ("estimate_memory", "tprimat estimate --memory llama --config $CONFIGS/compare_8gpu.yaml --json"),
    ("estimate_validation", "tprimat estimate --validate published --json"),
    ("plan", "tprimat plan llama3_8b --gpu H100 --gpus 64 --json"),
    ("plan", "tprimat plan deepseek_v3 --gpu H100,B200 --gpus 1024 --gbs 4096 --seq 4096 --top 2 --json"),
    ("plan", "tprimat plan llama3.1_8b --gpu H100 --gpus 8..64 --tokens 15T --price 2.5 --target-days 60 --json"),
    ("plan", "tprimat plan llama3.1_8b --gpu H100 --gpus 8..64 --scaling weak --top 2 --json"),
    ("plan", "tprimat plan llama3.1_405b --gpu A100 --gpus 1 --json"),
    ("plan", "tprimat plan llama3.1_8b --machine $CASES/probes/h100.json --gpus 16 --top 1 --json"),
    ("plan_validation", f"{OWN_ROWS} tprimat plan --validate own.tsv --json"),
    ("plan_validation", f"{OWN_ROWS} tprimat plan --calibrate own.tsv --folds 2 --json"),
    ("claim", "tprimat claim llama3.1_8b --gpu H100 --gpus 64 --mfu 0.45 --json"),
    ("claim", "tprimat claim llama3.1_8b --gpu H100 --gpus 64 --mfu 1.7 --json"),
    ("claim_table", f"{OWN_ROWS} tprimat claim --table own.tsv --json"),
    ("published_list", "tprimat published list --json"),
    ("published_show", "tprimat published show $(tprimat published list --csv | sed -n '2s/,.*//p') --json"),
    ("doctor", "tprimat doctor -q --json"),
    ("doctor_install", f"{FAKE_PIP} tprimat doctor --install tran -q --json"),
    ("detect", "tprimat detect --json"),
    ("config_show", "tprimat config show --json"),
    ("config_show", "tprimat config show --config $CONFIGS/experts_64gpu.yaml --json"),
    ("config_get", "tprimat config get training.data --json"),
    ("config_validate", "tprimat config validate --json"),
    ("config_validate", "echo 'training: {data: {sequence: 1}}' > config.yaml; tprimat config validate --json"),
    ("data_info", "tprimat data make --prefix a --tokens 10000 --vocab 64 --json"),
    ("data_info", "tprimat data make --prefix a --tokens 10000 --vocab 64 -q >none; tprimat data info a --json"),
    ("data_encode", "echo '{\"text\": \"one two\"}' > in.jsonl; tprimat data encode in.jsonl --output a --tokenizer "
                    "$CASES/../unit/data/fixtures/gpt2_tokenizer.json --json"),
]
# What GPUs printed when they were probed, cut to what the planner reads: members may lack.
CUT = [
    ("probe_gpu", "cat $CASES/probes/h100.json"),
    ("probe_gpu", "cat $CASES/probes/mi300x.json"),
    ("probe_collectives", "cat $CASES/probes/h100_collectives.json"),
]
PROBES = [
    ("run", "grep -v benchmarking $CASES/tiny.yaml > config.yaml; tprimat run -q --from-plan top=2 --json"),
    ("probe", "tprimat probe --json"),
    ("probe_model", f"tprimat probe {TINY} --model tiny --json"),
    ("probe_collectives", "mpirun --allow-run-as-root --oversubscribe -n 2 tprimat probe --collectives --json"),
]


def commands_with_json(program, words=()):
    """Of the program's commands and their parts: what --help shows."""
    text = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout
    parts = re.search(r"\nSubcommands:\n((?:  .*\n)+)", text)
    for name in re.findall(r"^  ([a-z][\w-]*) ", parts[1] if parts else "", re.MULTILINE):
        yield from commands_with_json(program, (*words, name))
    if re.search(r"^ +--json\b", text, re.MULTILINE):
        yield " ".join(words)


def uncovered(program):
    scripts = "\n".join(script for _, script in CASES + PROBES)
    called = re.findall(r"tprimat ([^;\n]*--json)", scripts)
    for command in commands_with_json(program):
        if not any(re.match(rf"{command} ", each) for each in called):
            yield f"tprimat {command} has --json, but no case: add its schema (documents.cpp) and a case"
    for name in sorted(validate.names() - {name for name, _ in CASES + CUT + PROBES}):
        yield f"schema/{name}.schema.json has no case"


def check(program, name, script):
    _, stdout, stderr = run_cases.run_script(program, script)
    try:
        value = json.loads(stdout)
    except ValueError as error:
        return [f"{name}: no JSON: {error}\n{stdout[-500:]}{stderr[-1500:]}"]
    found = validate.validate(name, value)
    if (name, script) in CUT:
        return [each for each in found if " lacks " not in each and "is a required property" not in each]
    return found or differences(name, value)


def differences(name, value):
    """Of the output and what its dataclass makes of it."""
    schema = validate.load(f"{name}.schema.json")
    reference = schema.get("$ref") or schema.get("items", {}).get("$ref") or ""
    if not reference.startswith("#/$defs/"):  # config get, and those that are results
        return []
    modules = [importlib.import_module(f"tprimat._generated.{each}") for each in (name, "common") if
               (GENERATED / f"{each}.py").exists()]
    kind = next(getattr(each, reference[8:]) for each in modules if hasattr(each, reference[8:]))
    records = [kind.from_json(each).to_json() for each in (value if isinstance(value, list) else [value])]
    again = records if isinstance(value, list) else records[0]
    lost = [] if without_nulls(again) == without_nulls(value) else ["the dataclass loses some of it"]
    return [f"dataclass: {each}" for each in lost + validate.validate(name, again)]


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def main():
    program = sys.argv[1]
    wrong = 0 if "--probes" in sys.argv else sum(1 for each in uncovered(program) if not print(f"FAILED: {each}"))
    for name, script in PROBES if "--probes" in sys.argv else CASES + CUT:
        found = check(program, name, script)
        wrong += bool(found)
        print(f"{'FAILED' if found else 'ok'}: {name}: {script[-120:]}", *found[:10], sep="\n    ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""The GPU's tests: in slices, each of which passes once; under compute-sanitizer too."""

import json
import re
import shutil

import parts

PROGRAMS = ("gpu_tests", "gpu_engine_tests")
ATTENTION = "*Attention*:*Cudnn*:*KernelReport*:*HeadRows*"
SLICES = (("gpu_tests", ATTENTION), ("gpu_tests", f"-{ATTENTION}"), ("gpu_engine_tests", "*"))
NEEDED = 20  # seconds: the driver starts, kernels are loaded
# Tests of one number format, or of a machine without cuDNN; any other skipped test was left undone.
EXPECTED_SKIPS = ("cuDNN is not asked for float", "cuDNN does the work here")
# Tests provoke failing calls on purpose; those are no errors of memory.
TOOLS = {"memcheck": ("--report-api-errors", "no"), "racecheck": ()}
SANITIZER_STATUS = 86
SHORT = 20  # seconds, the most for what only lists or looks
LONG = 120  # seconds after which a suite that did not end is cut into its tests


def read_skips(output):
    """Why each skipped test was: gtest prints the reason between its first and its last line."""
    skips, lines = {}, None
    for line in output.splitlines():
        if line.startswith("[ RUN      ] "):
            lines = []
        elif line.startswith("[  SKIPPED ] ") and lines is not None:
            told = [each for each in lines if each and not each.endswith(": Skipped")]
            skips[line.split()[3].rstrip(",")], lines = " ".join(told) or "no reason was given", None
        elif lines is not None:
            lines.append(line)
    return skips


def unexpected(skips):
    return {name: why for name, why in skips.items() if not why.startswith(EXPECTED_SKIPS)}


def sanitizer_errors(output):
    return re.findall(r"^========= (?:Invalid|Error|Race|Warning: Race|Potential|Misaligned).*", output, re.MULTILINE)


def judge(done):
    skips = read_skips(done.output)
    if re.search("^skipped: ", done.output, re.MULTILINE) or unexpected(skips):
        return "skipped"
    if done.late and not sanitizer_errors(done.output) and "[  FAILED  ] " not in done.output:
        return "no time"
    if done.status != 0:
        return "failed"
    return "passed" if re.search(r"\[  PASSED  \] [1-9]\d* tests?", done.output) or skips else "failed"


def describe(done):
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", done.output)
    failed = sorted(set(re.findall(r"\[  FAILED  \] ([\w./]+)", done.output)))
    found = re.findall(r"========= ((?:ERROR|RACECHECK) SUMMARY: .*)", done.output)
    well = len(re.findall(r"^\[       OK \]", done.output, re.MULTILINE))
    alone = re.search(r"^skipped: .*", done.output, re.MULTILINE)
    skipped = [f"{name} was skipped: {why}" for name, why in unexpected(read_skips(done.output)).items()]
    told = [f"{passed.group(1) if passed else well} passed", f"failed: {' '.join(failed[:8])}" if failed else "",
            alone.group(0) if alone else "", *skipped[:3], found[-1] if found else "",
            *[line.strip("= ") for line in sanitizer_errors(done.output)[:2]], done.failure() or "" if not failed else ""]
    return " ".join("; ".join(filter(None, told)).split())[:800]


def run_slice(call, program, chosen, label="", wrapper=(), others=0):
    """While others wait, a slice that hangs takes half of what is left."""
    name = f"{label}{program} {chosen}"
    path = call.programs.find(program)
    if not path.is_file() and not call.options.dry_run:
        return call.note_test(name, "missing", 0.0, f"{path} is missing; pack it with bench/device/bundle.sh")
    log = f"{len(call.part['calls'])}_{len(list(call.options.work.iterdir())):03}_" + re.sub(r"\W+", "_", name)[:80]
    most = max(NEEDED, call.runner.budget.left() / 2) if others else float("inf")
    done = call.runner.run([*wrapper, path, f"--gtest_filter={chosen}"], log, NEEDED, call.programs.environment,
                           at_most=most)
    cudnn = re.findall(r"^\[       OK \] (\S*Cudnn\S*)", done.output, re.MULTILINE)
    return call.note_test(name, judge(done), done.seconds, describe(done), cudnn=cudnn)


def ask_doctor(call):
    """What this machine has; which libraries of the GPU load is among it."""
    done = call.runner.run([call.programs.find("tprimat"), "doctor", "--platform", "nvd", "--json"], "doctor", 2,
                           call.programs.environment, at_most=SHORT)
    try:
        found = json.loads(done.output)
    except ValueError:
        found = None
    call.part["failed"].pop("doctor", None)
    if parts.fits(found, parts.DOCTOR):
        call.part["doctor"] = found
    else:
        call.part["failed"]["doctor"] = done.failure() or "tprimat doctor printed no findings"
    call.save()


def has_driver(call):
    findings = call.part.get("doctor", {}).get("findings", [])
    return not any(each["severity"] in ("missing", "broken") and each["area"] in ("platform", "driver")
                   for each in findings)


def attention(call):
    """cuDNN's attention first: the trainer's speed at long sequences is its."""
    ask_doctor(call)
    outcomes = {each: call.outcome_of(" ".join(each)) for each in SLICES}
    todo = sorted((each for each in SLICES if outcomes[each] != "passed"), key=lambda each: outcomes[each] is not None)
    for number, (program, chosen) in enumerate(todo, 1):
        run_slice(call, program, chosen, others=len(todo) - number)
    open_questions = [call.sentence_of(f"{program} {chosen}") for program, chosen in SLICES]
    if has_driver(call) and not any(each.get("cudnn") for each in call.part["tests"]):
        open_questions.append("no cuDNN attention test passed; check cuDNN and NVRTC in the doctor section above")
    return [*filter(None, open_questions), *call.part["failed"].values()]


def read_suites(listed):
    """Test names by suite, from --gtest_list_tests."""
    suites, current = {}, None
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if name.endswith(".") and not name.startswith(" "):
            current = suites.setdefault(name, [])
        elif name.startswith("  ") and current is not None:
            current.append(name.strip())
    return suites


def slices_of(call, suites, label):
    """Suites, or the single tests of one that is too long for a call: those to run, what never ran first; and all."""
    names = []
    for suite, tests in suites.items():
        earlier = call.entry(f"{label}{suite}*")
        cut = earlier and earlier["outcome"] == "no time" and earlier["seconds"] > LONG
        names += [f"{suite}{test}" for test in tests] if cut else [f"{suite}*"]
    todo = [name for name in names if call.outcome_of(label + name) != "passed"]
    return sorted(todo, key=lambda name: call.outcome_of(label + name) is not None), names


def list_suites(call, program):
    path = call.programs.find(program)
    done = call.runner.run([path, "--gtest_list_tests"], f"{program}_list", 2, call.programs.environment,
                           at_most=SHORT)
    suites = {"SUITE.": []} if call.options.dry_run else read_suites(done.output)
    call.part["failed"].pop(f"tests of {program}", None)
    if not suites:
        call.part["failed"][f"tests of {program}"] = done.failure() or f"{path} lists no tests"
    return suites


def memcheck(call):
    """Slow, so by suite: a later call resumes with the suites that are left."""
    if not shutil.which("compute-sanitizer") and not call.options.dry_run:
        return ["compute-sanitizer is not in PATH; install the CUDA toolkit and add its bin folder to PATH"]
    suites = {program: list_suites(call, program) for program in PROGRAMS}
    open_questions = list(call.part["failed"].values())
    for tool, flags in TOOLS.items():
        wrapper = ["compute-sanitizer", "--tool", tool, *flags, "--error-exitcode", str(SANITIZER_STATUS)]
        for program in PROGRAMS:
            label = f"{tool} {program} "
            todo, names = slices_of(call, suites[program], label)
            for number, chosen in enumerate(todo, 1):
                if call.runner.budget.left() >= NEEDED or call.options.dry_run:
                    run_slice(call, program, chosen, f"{tool} ", wrapper, len(todo) - number)
            open_questions += [call.sentence_of(label + name) for name in names]
    return [*filter(None, open_questions)]

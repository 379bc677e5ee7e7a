"""Who trains: the native trainer and PyTorch in its forms, each in a process of its own whose memory is watched."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
KEEP = 1 << 34

# Without these PyTorch returns its large blocks to the system at every step and faults them in again, which on virtual
# machines costs it more than half its speed. The native trainer allocates once, in huge pages, by itself.
ALLOCATOR = (f"glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold={KEEP}:glibc.malloc.trim_threshold={KEEP}:"
             "glibc.malloc.top_pad=268435456")

# PyTorch's float32 products are MKL's, which takes AVX-512 only where it finds its maker's processor. Preloaded, these
# answers let it take AVX-512 here too: twice the speed on Zen 5.
MKL_ANSWERS = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"


class Failed(Exception):
    pass


@dataclasses.dataclass
class Outcome:
    seconds: list  # of every step
    peak_bytes: int  # most memory resident at once
    output: str


def python():
    return os.environ.get("TPRIMAT_PYTHON", sys.executable)


def run_watched(command, environment, folder):
    """Runs a program; returns what it printed and its peak of resident memory, as the kernel counted it."""
    with open(folder / "stdout", "w+") as out, open(folder / "stderr", "w+") as errors:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=errors,
                                   env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise Failed(f"exit status {process.returncode}: {errors.read().strip()[-400:]}")
        return out.read(), usage.ru_maxrss * 1024


class Contender:
    """A command that trains the specification after it, each step a line of the file that TPRIMAT_STEPS names."""

    def __init__(self, command, settings):
        self.command, self.settings = command, settings

    def run(self, spec, folder):
        steps = folder / "steps.jsonl"
        steps.unlink(missing_ok=True)
        output, peak = run_watched([*self.command, spec], {**self.settings, "TPRIMAT_STEPS": str(steps)}, folder)
        return Outcome(seconds_in(steps), peak, output)


def seconds_in(steps):
    """Of every step that is whole in the file."""
    text = steps.read_text(encoding="utf-8") if steps.exists() else ""
    return [json.loads(line)["time_seconds"] for line in text.split("\n")[:-1]]


class Native(Contender):
    def __init__(self, program, settings):
        super().__init__([program, "train", "--spec"], settings)


# What keeps a contender from instructions that this processor has: products of both sides, PyTorch's own kernels, MKL's.
AVX2_ONLY = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


class Torch(Contender):
    def with_plain_allocator(self):
        return Torch(self.command, {key: value for key, value in self.settings.items() if key != "GLIBC_TUNABLES"})


def torch_settings(options, folder):
    """The environment of PyTorch's processes, and sentences that say what it is."""
    settings = {"OMP_NUM_THREADS": str(options.threads), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    said = ["PyTorch: fused AdamW, scaled_dot_product_attention, cross entropy over "
            + ("flattened logits in float32" if options.loss == "whole" else "chunks of the logits")]
    if options.allocator == "kept":
        settings["GLIBC_TUNABLES"] = ALLOCATOR
        said.append("glibc keeps PyTorch's memory, in huge pages")
    if options.instructions == "avx2":
        settings |= AVX2_ONLY
        said.append("both sides told to use AVX2 and nothing newer")
    elif options.mkl == "avx512":
        library = build_mkl_answers(folder)
        said.append("MKL told to use AVX-512 on any processor" if library else "MKL as installed (no C compiler found)")
        if library:
            settings["LD_PRELOAD"] = str(library)
    return settings, said


def build_mkl_answers(folder):
    compiler = shutil.which("cc") or shutil.which("g++")
    if not compiler:
        return None
    source, library = folder / "mkl_answers.c", folder / "libmkl_answers.so"
    source.write_text(MKL_ANSWERS)
    subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def make_contenders(options, settings, precision):
    """Name to contender. In bf16 PyTorch has two forms, named eager/autocast and so on; compare.py keeps the faster."""
    forms = ["autocast", "weights"] if options.bf16 == "faster" else [options.bf16]
    found = {}
    for name in options.contenders:
        if name == "native":
            found[name] = Native(options.program, AVX2_ONLY if options.instructions == "avx2" else {})
            continue
        command = [python(), HERE / "torch_step.py", "--loss", options.loss,
                   *(["--compile"] if name == "compile" else [])]
        if precision == "fp32":
            found[name] = Torch(command, settings)
            continue
        for form in forms:
            found[f"{name}/{form}"] = Torch([*command, "--bf16", form], settings)
    return found

#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy: size and complexity of functions, names) over src/ with the commands of a clang build.

    scripts/tidy.py [--build FOLDER] [PATH...]      FOLDER: build/asan by default; PATH: only sources below it

clang-tidy spends most of its time on the standard library's headers, so it reads sources of one folder together, sixteen
at a time. Where two of them use one name for different things, it reads each alone. Exit status: 0 no findings, 1 findings,
2 clang-tidy could not run.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOGETHER = 16
FINDING = re.compile(r"^(/.+:\d+:\d+): (?:warning|error): (.*)$", re.MULTILINE)


def flags_of(entry):
    """The command without its compiler, output and input."""
    words = shlex.split(entry["command"])[1:]
    for option in ("-o", "-MF", "-MT"):
        while option in words:
            at = words.index(option)
            del words[at:at + 2]
    return tuple(word for word in words if word not in ("-c", "-MD", entry["file"]))


def sources_of(build, below):
    """Sources below these paths, by folder and flags."""
    groups = collections.defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cpp" and any(path.is_relative_to(folder) for folder in below):
            groups[path.parent, flags_of(entry)].append(path)
    return groups


def is_read_alone(path):
    return "HWY_TARGET_INCLUDE" in path.read_text()  # includes itself


def jobs_of(groups):
    for (_, flags), paths in sorted(groups.items()):
        alone = [path for path in paths if is_read_alone(path)]
        rest = sorted(set(paths) - set(alone))
        yield from ((flags, [path]) for path in alone)
        yield from ((flags, rest[at:at + TOGETHER]) for at in range(0, len(rest), TOGETHER))


class Tidy:
    def __init__(self, program, build):
        self.program, self.build, self.scratch = program, build, build / "tidy"
        self.units = itertools.count()
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()

    def read(self, flags, paths):
        """Findings in these sources, read together; None where they cannot be read together."""
        unit = self.scratch / f"{next(self.units)}_{paths[0].name}"
        unit.write_text("".join(f'#include "{path}"\n' for path in paths))
        done = subprocess.run([self.program, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", unit, "--", *flags, "-w"],
                              cwd=self.build, capture_output=True, text=True)
        found = FINDING.findall(done.stdout)
        if any("clang-diagnostic-error" in what for _, what in found) and len(paths) > 1:
            return None
        if done.returncode != 0 and not found:
            print(f"error: {self.program} failed on {paths[0]}: {(done.stdout + done.stderr)[-2000:]}", file=sys.stderr)
            raise SystemExit(2)
        return found

    def run(self, job):
        flags, paths = job
        found = self.read(flags, paths)
        return found if found is not None else [each for path in paths for each in self.read(flags, [path])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/asan", metavar="FOLDER",
                        help="folder of a clang build, with its precompiled headers (default: build/asan)")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="PATH", help="a folder or file below src/")
    asked = parser.parse_args()
    build = asked.build.resolve()
    program = shutil.which("clang-tidy-16")
    if program is None:
        parser.error("clang-tidy-16 is not installed: sudo apt-get install clang-tidy-16")
    if not (build / "compile_commands.json").is_file():
        parser.error(f"{build} is not built: ./test.sh --stage tidy, or cmake --preset asan && "
                     "cmake --build --preset asan --target tprimat_precompiled tprimat_precompiled_hot tprimat_precompiled_upper")
    below = [path.resolve() for path in asked.paths] or [ROOT / "src"]
    for path in below:
        if not path.is_relative_to(ROOT / "src") or not path.exists():
            parser.error(f"{path} is not a file or folder below {ROOT / 'src'}")
    jobs = list(jobs_of(sources_of(build, below)))
    tidy = Tidy(program, build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = sorted({each for some in pool.map(tidy.run, jobs) for each in some})
    for place, what in found:
        print(f"{place}: {what}", file=sys.stderr)
    sources = sum(len(paths) for _, paths in jobs)
    if sources == 0:
        parser.error(f"{build} compiles no source below " + ", ".join(map(str, below)))
    print(f"clang-tidy: {len(found)} findings in {sources} sources")
    sys.exit(1 if found else 0)


main()

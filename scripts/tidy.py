#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy: size and complexity of functions, names) over src/ with the commands of a clang build.

    scripts/tidy.py [--build FOLDER] [PATH...]      FOLDER: build/asan by default; PATH: only sources below it
    scripts/tidy.py --commits 20                    only what the last 20 commits or the working tree changed: sources, and
                                                    for a header the source of its name or, without one,
                                                    all below its folder

clang-tidy spends most of its time on the standard library's headers, so all sources of a folder are checked as one; where
their names collide, the batches in which they are compiled (cmake/Together.cmake) are checked instead.
Exit status: 0 no findings, 1 findings, 2 clang-tidy could not run.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FINDING = re.compile(r"^(/.+:\d+:\d+): (?:warning|error): (.*)$", re.MULTILINE)


def flags_of(entry):
    """The command without its compiler, output and input."""
    words = shlex.split(entry["command"])[1:]
    for option in ("-o", "-MF", "-MT"):
        while option in words:
            at = words.index(option)
            del words[at:at + 2]
    return tuple(word for word in words if word not in ("-c", "-MD", entry["file"]))


def sources_of(entry):
    """What a command compiles: one source, or those of a batch."""
    path = pathlib.Path(entry["file"])
    if path.suffix == ".cxx":
        return [pathlib.Path(source) for source in re.findall('^#include "(.*)"', path.read_text(), re.MULTILINE)]
    return [path] if path.suffix == ".cpp" else []


def jobs_of(build, below):
    """(flags, units, sources) of each folder: the units are what its commands compile, each source is in one."""
    read, folders = set(), {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        paths = sources_of(entry)
        wanted = [path for path in paths if path not in read and any(path.is_relative_to(place) for place in below)]
        if wanted:
            read.update(wanted)
            units, sources = folders.setdefault((flags_of(entry), paths[0].parent), ([], []))
            units.extend([entry["file"]] if wanted == paths else wanted)
            sources.extend(wanted)
    return [(flags, *each) for (flags, _), each in folders.items()]


def findings_of(program, build, job):
    flags, units, paths = job
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as together:
        together.writelines(f'#include "{unit}"\n' for unit in units)
        together.flush()
        done = subprocess.run([program, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", together.name, "--", *flags, "-w"],
                              cwd=build, capture_output=True, text=True)
    if "[clang-diagnostic-error" in done.stdout and len(units) > 1:
        return [found for unit in units for found in findings_of(program, build, (flags, [unit], paths))]
    found = FINDING.findall(done.stdout)
    if done.returncode != 0 and not found:
        print(f"error: {program} failed on {paths[0]}: {(done.stdout + done.stderr)[-2000:]}", file=sys.stderr)
        raise SystemExit(2)
    return [(place, what) for place, what in found if place.startswith(f"{ROOT}/src/")]


def changed_places(build, commits):
    """Where git has fewer commits, as in a shallow clone, or is not there, and where the rules changed: all of src/."""
    changed = []
    for command in (["diff", "--name-only", f"HEAD~{commits}"], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True)
        changed += done.stdout.splitlines()
        if done.returncode != 0 or ".clang-tidy" in changed:
            return [ROOT / "src"]
    compiled = {path for entry in json.loads((build / "compile_commands.json").read_text()) for path in sources_of(entry)}
    places = set()
    for path in (ROOT / name for name in changed):
        place = path.with_suffix(".cpp")
        if path.suffix == ".h" and place not in compiled:
            place = path.parent
            while place.is_relative_to(ROOT / "src/") and not any(each.is_relative_to(place) for each in compiled):
                place = place.parent
        if (place in compiled or place.is_dir()) and place.is_relative_to(ROOT / "src") and place != ROOT / "src":
            places.add(place)
    return sorted(places)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/asan", metavar="FOLDER",
                        help="folder of a clang build, with its precompiled headers (default: build/asan)")
    parser.add_argument("--commits", type=int, metavar="N", help="only what the last N commits changed")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="PATH", help="a folder or file below src/")
    asked = parser.parse_args()
    build = asked.build.resolve()
    program = shutil.which("clang-tidy-16")
    if program is None:
        parser.error("clang-tidy-16 is not installed: sudo apt-get install clang-tidy-16")
    if not (build / "compile_commands.json").is_file():
        parser.error(f"{build} is not built: ./test.sh --stage tidy, or cmake --preset asan && "
                     "cmake --build --preset asan --target tprimat_precompiled tprimat_precompiled_hot tprimat_precompiled_upper")
    below = [path.resolve() for path in asked.paths] or (changed_places(build, asked.commits) if asked.commits else [ROOT / "src"])
    for path in below:
        if not path.is_relative_to(ROOT / "src") or not path.exists():
            parser.error(f"{path} is not a file or folder below {ROOT / 'src'}")
    if not below:
        print("clang-tidy: no source has changed")
        return
    jobs = sorted(jobs_of(build, below), key=lambda job: -len(job[2]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = sorted({each for some in pool.map(functools.partial(findings_of, program, build), jobs) for each in some})
    for place, what in found:
        print(f"{place}: {what}", file=sys.stderr)
    sources = sum(len(paths) for _, _, paths in jobs)
    if sources == 0:
        parser.error(f"{build} compiles no source below " + ", ".join(map(str, below)))
    print(f"clang-tidy: {len(found)} findings in {sources} sources")
    sys.exit(1 if found else 0)


main()

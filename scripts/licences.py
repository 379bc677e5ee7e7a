#!/usr/bin/env python3
"""Collects the licences of everything that a build of the programs contains of others, as share/doc/tprimat shows them.

A program contains the libraries that it is linked with statically (the linker names them), templates and inline functions of
headers (the build's records name them) and files that it embeds (the build names its inputs). Each file belongs to a Debian
package, whose copyright file is taken, or was built from Debian's sources into build/third_party (scripts/package/third_party.sh),
or to a Python package in build/cuda. A file that has none of these is an error: nothing is given away without its licence.

usage: licences.py BUILD_DIR FOLDER       writes FOLDER/copyright and FOLDER/licences/
       licences.py BUILD_DIR --list       prints the name, the version and the licences' file of each
"""

import pathlib
import re
import shlex
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["tprimat", "tprimat-train", "libtprimat_mpi.so", "libtprimat_nvd.so"]
# Interfaces of what a system brings and a program only calls: their headers are no part of it.
INTERFACES = {"libc6-dev", "linux-libc-dev", "libopenmpi-dev"}
THIRD_PARTY = SOURCE / "build/third_party"
CUDA = SOURCE / "build/cuda"
COMMON = pathlib.Path("/usr/share/common-licenses")


class Refusal(Exception):
    """What is wrong, as a sentence."""


def ask(words, folder=None):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refusal(f"{shlex.join(words[:6])} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def linked_files(build, program):
    """What the linker opens for a program: its last command again, without a result."""
    command = ask(["ninja", "-t", "commands", program], build).splitlines()[-1]
    if f" -o {program} " not in command:
        raise Refusal(f"{build}: the last command for {program} does not link it; build it first")
    traced = command.replace(f" -o {program} ", " -o /dev/null -Wl,--trace ", 1)
    for line in ask(["sh", "-c", traced], build).splitlines():
        yield re.sub(r"^\((.*)\)\S*$", r"\1", line)  # (library.a)member.o of older linkers


def foreign_files(build):
    """Files outside the build's objects and the project's sources that the programs consist of."""
    programs = [name for name in PROGRAMS if (build / name).exists()]
    if "tprimat" not in programs and "libtprimat_nvd.so" not in programs:
        raise Refusal(f"there is no program tprimat in {build}; build it first")
    inputs = ask(["ninja", "-t", "inputs", *programs], build).splitlines()
    files = {name for program in programs for name in linked_files(build, program) if name.endswith(".a")}
    files |= {name for name in inputs if name.startswith("/") and not re.search(r"\.so[.0-9]*$", name)}
    objects = [name for name in inputs if re.search(r"\.(o|gch|pch)$", name)]
    files |= set(re.findall(r"^ +(\S.*)$", ask(["ninja", "-t", "deps", *objects], build), re.M))
    return {path for path in ((build / name).resolve() for name in files) if not is_ours(path, build)}


def is_ours(path, build):
    if path.name.startswith("libtprimat_") or "CMakeFiles" in path.parts:
        return True
    return any(path.is_relative_to(SOURCE / name) for name in ("src", "cmake", "data", "frameworks", "python", "schema", "configs")) or (
        path.is_relative_to(build) and path.suffix in (".cpp", ".h", ".hxx", ".cxx"))


def debian_packages(files):
    """The package of each file, as dpkg knows it; it knows some files by their path from before /usr was merged."""
    known = {}
    wanted = sorted({str(path) for path in files} | {str(path)[4:] for path in files if str(path).startswith("/usr/lib")})
    for start in range(0, len(wanted), 500):
        done = subprocess.run(["dpkg-query", "-S", *wanted[start:start + 500]], capture_output=True, text=True, check=False)
        for packages, path in re.findall(r"^([^:\n].*): (/.*)$", done.stdout, re.M):
            known[path] = packages.split(", ")[0]
    return {path: known.get(str(path)) or known.get(str(path)[4:]) for path in files}


def licences_of_sources():
    """Of everything that was built into build/third_party: the packages' names, versions and texts."""
    for stamp in sorted(THIRD_PARTY.glob("*.version")):
        sources = THIRD_PARTY / stamp.stem / "source"
        texts = [sources / "debian/copyright"] if (sources / "debian/copyright").exists() else sorted(
            path for path in sources.rglob("*") if path.is_file() and re.match(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|THIRD-PARTY)", path.name, re.I))
        if not texts:
            raise Refusal(f"{stamp.stem} was built for the programs, but {sources} has neither debian/copyright nor a licence")
        yield stamp.stem, stamp.read_text().strip(), texts


def licence_of_package(package):
    name, version = ask(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package]).split()
    copyright_file = pathlib.Path("/usr/share/doc") / package.split(":")[0] / "copyright"
    if not copyright_file.exists():
        raise Refusal(f"the Debian package {package} is part of the programs, but {copyright_file} does not exist: install "
                      "the package again with its documentation (dpkg's path-exclude may leave it out)")
    return name, version, [copyright_file]


def licence_of_python_package(path):
    """The package in build/cuda that brought this file: its name, its version and its licences."""
    for record in sorted(CUDA.glob("lib/python3*/site-packages/*.dist-info/RECORD")):
        packages = record.parent.parent
        name = str(path.relative_to(packages.resolve())) if path.is_relative_to(packages.resolve()) else None
        if name and any(line.startswith(f"{name},") for line in record.read_text().splitlines()):
            title, version = record.parent.name.removesuffix(".dist-info").split("-")
            texts = sorted(each for each in record.parent.rglob("*") if re.match(r"(LICEN[CS]E|NOTICE)", each.name, re.I) and each.is_file())
            if not texts:
                raise Refusal(f"the Python package {title} is part of the programs, but {record.parent} has no licence")
            return title, version, texts
    raise Refusal(f"{path} is part of the programs, but no Python package in {CUDA} has it: remove that folder and build again")


def licences_of_file(path, package):
    if package:
        return [licence_of_package(package)]
    if path.is_relative_to(THIRD_PARTY):
        return licences_of_sources()
    if path.is_relative_to(CUDA.resolve()):
        return [licence_of_python_package(path)]
    raise Refusal(f"{path} is part of the programs, but no Debian package owns it: install it as one, or build it from Debian's "
                  "sources (scripts/package/third_party.sh)")


def collect(build):
    """{source: (versions, files with its licences)}, sorted."""
    found = {}
    for path, package in sorted(debian_packages(foreign_files(build)).items()):
        if package and package.split(":")[0] in INTERFACES:
            continue
        for name, version, texts in licences_of_file(path, package):
            versions, files = found.setdefault(name, ([], []))
            versions += [version] if version not in versions else []
            files += [text for text in texts if text not in files]
    return dict(sorted(found.items()))


def our_copyright(parts):
    lines = ["Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/", "Upstream-Name: tprimat",
             "Comment: The programs contain parts of other projects. The file licences/NAME beside this one has",
             " the copyright notices and licences of each, as its Debian source package states them:"]
    lines += [f"  {name} {', '.join(versions)}" for name, (versions, _) in parts.items()]
    return "\n".join(lines + ["", "Files: *", "Copyright: 2026 the authors of TensorPrimat", "License: Apache-2.0",
                              " The full text is in /usr/share/common-licenses/Apache-2.0 on a Debian system, and in",
                              " licences/common/Apache-2.0 beside this file.", ""])


def write(parts, folder):
    licences = folder / "licences"
    (licences / "common").mkdir(parents=True, exist_ok=True)
    (folder / "copyright").write_text(our_copyright(parts))
    (licences / "common/Apache-2.0").write_bytes((SOURCE / "LICENSE").read_bytes())
    for name, (_, files) in parts.items():
        text = b"\n".join(path.read_bytes() for path in files)
        (licences / name).write_bytes(text)
        for common in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text.decode(errors="replace")):
            if not (licences / "common" / common).exists():
                (licences / "common" / common).write_bytes((COMMON / common).read_bytes())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        parts = collect(pathlib.Path(sys.argv[1]).resolve())
        if sys.argv[2] == "--list":
            for name, (versions, files) in parts.items():
                print(name, ", ".join(versions), *files)
        else:
            write(parts, pathlib.Path(sys.argv[2]))
    except Refusal as refusal:
        sys.exit(f"error: {refusal}")


if __name__ == "__main__":
    main()

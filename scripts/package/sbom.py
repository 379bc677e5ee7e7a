#!/usr/bin/env python3
"""Writes FOLDER/tprimat-VERSION.spdx.json (SPDX 2.3): what the programs of a build contain of others, with versions and licences,
what building and running them takes (dependencies.txt), and the packages of this version that lie in FOLDER, with checksums.

Contents are asked of the build (scripts/licences.py); licences stand in spdx_licences.tsv beside this script. The document is the
same for the same packages: its time is that of the commit, or SOURCE_DATE_EPOCH.

usage: sbom.py BUILD_DIR FOLDER
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "scripts"))
import licences  # noqa: E402

TABLE = SOURCE / "scripts/package/spdx_licences.tsv"
# Of what dependencies.txt names for building and running: what only builds. The rest is used where it is there.
BUILD_TOOLS = {"g++", "cmake", "ninja-build", "git"}


def declared_licences():
    lines = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: expression for name, expression in lines}


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, licence="NOASSERTION", **more):
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def debian_locator(name, version, qualifier=""):
    quoted = urllib.parse.quote(version, safe="")
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
             "referenceLocator": f"pkg:deb/debian/{urllib.parse.quote(name, safe='')}@{quoted}{qualifier}"}]


def stated_names(files):
    """Short names of all licences that a machine-readable debian/copyright names: also of files that are not compiled in."""
    names = set()
    for file in files:
        names |= set(re.findall(r"^License: *(\S.*?) *$", file.read_text(encoding="utf-8", errors="replace"), re.M))
    return sorted(names)


def contained(build):
    """The packages of what the programs consist of, by their Debian sources."""
    declared = declared_licences()
    found = licences.collect(build)
    unknown = [name for name in found if name not in declared]
    if unknown:
        raise licences.Refusal(f"the programs contain {', '.join(unknown)}, whose licence {TABLE.name} does not state: read its "
                               "debian/copyright and add a line")
    for name, (versions, files) in found.items():
        names = stated_names(files)
        comments = {"licenseComments": "debian/copyright names, for all its files: " + ", ".join(names)} if names else {}
        for version in versions:
            yield package(name, version, declared[name], **comments, externalRefs=debian_locator(name, version, "?arch=source"))


def listed_dependencies():
    """The names above all groups of dependencies.txt that are not headers of what is contained."""
    for line in (SOURCE / "dependencies.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            return
        name = line.split("#")[0].split()
        if name and (not name[0].endswith("-dev") or name[0] in licences.INTERFACES) and not name[0].startswith("libjs-"):
            yield name[0]


def installed_version(name):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 and done.stdout else None


def needed():
    """(package, relationship to the programs) of what building and running takes, where this machine has it."""
    for name in listed_dependencies():
        version = installed_version(name)
        if version:
            relation = "BUILD_TOOL_OF" if name in BUILD_TOOLS else "BUILD_DEPENDENCY_OF" if name.endswith("-dev") else "OPTIONAL_DEPENDENCY_OF"
            yield package(name, version, externalRefs=debian_locator(name, version)), relation


def packed(folder, version):
    for path in sorted(folder.glob("*")):
        if re.match(rf"tprimat.*[-_]{re.escape(version)}[-.]", path.name) and not path.name.endswith(".spdx.json"):
            yield package(path.name, version, "NOASSERTION", packageFileName=path.name,
                          checksums=[{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}])


def asked(*command):
    return subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=True).stdout.strip()


def document(build, folder):
    version = re.search(r"^project\(tprimat VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M).group(1)
    programs = package("tprimat", version, "Apache-2.0", primaryPackagePurpose="APPLICATION", supplier="Organization: TensorPrimat")
    parts, needs, files = list(contained(build)), list(needed()), list(packed(folder, version))
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", programs["SPDXID"])]
    relations += [(programs["SPDXID"], "CONTAINS", part["SPDXID"]) for part in parts]
    relations += [(each["SPDXID"], relation, programs["SPDXID"]) for each, relation in needs]
    relations += [(each["SPDXID"], "GENERATED_FROM", programs["SPDXID"]) for each in files]
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or asked("git", "log", "-1", "--format=%ct"))
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    contents = {"packages": [programs, *parts, *(each for each, _ in needs), *files],
                "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                                  for one, kind, other in relations]}
    unique = hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:32]
    return version, {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"tprimat-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/tprimat-{version}-{unique}",
        "creationInfo": {"created": created, "creators": ["Tool: tprimat-sbom"]},
        **contents}


def problems_of(file):
    """What the specification's own validator says, where this Python has it (group [wheel] of dependencies.txt)."""
    try:
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    except ModuleNotFoundError:
        return []
    return [message.validation_message for message in validate_full_spdx_document(parse_file(str(file)))]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    try:
        version, written = document(build, folder)
    except licences.Refusal as refusal:
        sys.exit(f"error: {refusal}")
    target = folder / f"tprimat-{version}.spdx.json"
    partial = target.with_name(f".partial-{target.name}")  # the validator knows formats by the name's end
    partial.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    problems = problems_of(partial)
    if problems:
        sys.exit(f"error: {partial} is not valid SPDX: " + "; ".join(problems))
    partial.replace(target)
    print(f"wrote {target}: {len(written['packages'])} packages")


if __name__ == "__main__":
    main()

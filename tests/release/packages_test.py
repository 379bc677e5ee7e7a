#!/usr/bin/env python3
"""Packages are the same bytes whenever and wherever they are packed: the same build laid twice and, with --all, packed twice, and the
sources packed in two clones; each time on another day, under another umask and in another time zone. And what goes with packages:
checksums and the list of contents.

usage: packages_test.py SOURCE_DIR BUILD_DIR           the release build, with its programs
       packages_test.py SOURCE_DIR BUILD_DIR --all     what takes longer
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
ALL = "--all" in sys.argv
EPOCH = "1700000000"
# Two who pack the same.
ONE = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "umask": "022"}
OTHER = {"TZ": "Pacific/Kiritimati", "LC_ALL": "POSIX", "umask": "077"}
VALIDATOR = SOURCE / "build/packing/bin/python"  # where `scripts/package.sh wheel` has installed it


def run(command, who, folder=SOURCE, **environment):
    done = subprocess.run(["/bin/sh", "-c", f'umask {who["umask"]} && exec "$@"', "sh", *map(str, command)], cwd=folder,
                          env={**os.environ, **who, **environment}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def contents(folder):
    """{path: (mode, SHA-256)} of all files of a folder."""
    return {str(path.relative_to(folder)): (oct(path.stat().st_mode), hashlib.sha256(path.read_bytes()).hexdigest())
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Packages(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_packages_"))
        self.addCleanup(shutil.rmtree, self.place)

    def clone(self, source, name, depth):
        tree = self.place / name / ("deep/" * depth) / "tprimat"
        run(["git", "clone", "-q", "--no-local", "--depth", "1", f"file://{source}", tree], OTHER if depth else ONE)
        return tree

    def sdist(self, tree, who):
        code = "import sys; sys.path.insert(0, 'scripts/package'); import backend; print(backend.build_sdist(sys.argv[1]))"
        folder = tree.parent / "made"
        folder.mkdir()
        return folder / run([sys.executable, "-c", code, folder], who, tree).split()[-1]

    def test_sources_are_packed_alike_and_whole(self):
        if not (SOURCE / ".git").exists():
            self.skipTest("the sources are no git checkout, which they are packed from: git clone them")
        one = self.clone(SOURCE, "one", 0)
        other = self.clone(one, "the_other", 2)  # of the same commit, whatever is committed meanwhile
        first, second = self.sdist(one, ONE), self.sdist(other, OTHER)
        self.assertEqual(first.name, second.name)
        self.assertEqual(first.read_bytes(), second.read_bytes())
        with tarfile.open(first) as archive:
            archive.extractall(self.place / "unpacked", filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(
                self.place / "unpacked")
        unpacked = self.place / "unpacked" / first.name.removesuffix(".tar.gz")
        tracked = run(["git", "ls-files", "-z"], ONE, one).split("\0")[:-1]
        self.assertEqual(sorted([*tracked, "PKG-INFO", "REVISION"]), sorted(contents(unpacked)))
        self.assert_knows_its_commit(one, unpacked)

    def assert_knows_its_commit(self, clone, unpacked):
        """Without git, a build from the sources says what one in the clone says."""
        for tree in (clone, unpacked):
            run(["cmake", f"-DSOURCE_DIR={tree}", f"-DIN={tree}/src/core/base/build_info.cpp.in", f"-DOUT={tree.parent}/info.cpp",
                 "-DVERSION=1", "-DBUILD_TYPE=Release", "-DCOMPILER=gcc", "-P", tree / "cmake/WriteBuildInfo.cmake"], ONE)
        self.assertEqual((clone.parent / "info.cpp").read_text(), (unpacked.parent / "info.cpp").read_text())
        self.assertEqual(int((unpacked / "PKG-INFO").stat().st_mtime), int(run(["git", "log", "-1", "--format=%ct"], ONE, clone)))

    def lay(self, name, who):
        folder = self.place / name
        run(["cmake", "--install", BUILD, "--strip", "--prefix", folder], {**who, "umask": "022"}, SOURCE_DATE_EPOCH=EPOCH)
        return contents(folder)

    def test_a_build_is_laid_alike(self):
        first, second = self.lay("one", ONE), self.lay("the_other", OTHER)
        self.assertIn("bin/tprimat", first)
        self.assertIn("share/man/man1/tprimat.1", first)
        self.assertEqual(first, second)

    @unittest.skipUnless(ALL, "packing takes minutes: ./test.sh --stage packages")
    def test_a_build_is_packed_alike(self):
        kinds = ["tar", "deb"] + (["wheel"] if VALIDATOR.exists() else [])
        for name, who in (("one", ONE), ("the_other", OTHER)):
            run(["scripts/package.sh", "--built", BUILD.relative_to(SOURCE / "build"), "--into", self.place / name, *kinds], who,
                SOURCE_DATE_EPOCH=EPOCH)
        self.assertGreaterEqual(len(contents(self.place / "one")), len(kinds))
        self.assertEqual({path: sum256 for path, (_, sum256) in contents(self.place / "one").items()},
                         {path: sum256 for path, (_, sum256) in contents(self.place / "the_other").items()})

    def test_what_programs_contain_is_listed_with_licences(self):
        version = run(["bash", "-c", ". scripts/build.sh && project_version"], ONE).strip()
        (self.place / f"tprimat-{version}.tar.gz").write_bytes(b"sources")
        python = VALIDATOR if VALIDATOR.exists() else sys.executable
        run([python, "scripts/package/sbom.py", BUILD, self.place], ONE, SOURCE_DATE_EPOCH=EPOCH)
        listed = json.loads((self.place / f"tprimat-{version}.spdx.json").read_text())
        packages = {package["name"]: package for package in listed["packages"]}
        self.assertEqual(packages["tprimat"]["versionInfo"], version)
        self.assertEqual(packages["nlohmann-json3"]["licenseDeclared"], "MIT")
        related = {(each["spdxElementId"], each["relationshipType"], each["relatedSpdxElement"]) for each in listed["relationships"]}
        self.assertIn(("SPDXRef-tprimat", "CONTAINS", "SPDXRef-nlohmann-json3"), related)
        self.assertEqual(packages[f"tprimat-{version}.tar.gz"]["checksums"][0]["checksumValue"], hashlib.sha256(b"sources").hexdigest())
        self.assertEqual({each["SPDXID"] for each in listed["packages"]} | {"SPDXRef-DOCUMENT"},
                         {end for one, _, other in related for end in (one, other)})
        self.assertEqual(listed["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        run(["scripts/package.sh", "--into", self.place, "sums"], ONE)
        self.assertEqual(len((self.place / "SHA256SUMS").read_text().splitlines()), 2)
        run(["sha256sum", "--check", "--strict", "SHA256SUMS"], ONE, self.place)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (["Packages.test_a_build_is_packed_alike"] if ALL else []))

#!/usr/bin/env python3
"""Licences of what programs contain (scripts/licences.py): of libraries that Debian packages own, of libraries that were built
from Debian's sources, and of a library that nobody knows, which ends the packing.

The builds are real, of one C file each: ninja, gcc and its linker.

usage: bundled_licences.py SOURCE_DIR
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
NINJA = """\
rule cc
  command = gcc -MD -MF $out.d -I{include} -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = : && gcc $in -o $out {libraries} && :
build main.o: cc ../../src/main.c
build tprimat: link main.o
"""


class BundledLicences(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tprimat_licences_"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "scripts").mkdir()
        shutil.copy2(SOURCE / "scripts/licences.py", self.folder / "scripts")
        shutil.copy2(SOURCE / "LICENSE", self.folder)
        self.build = self.folder / "build/package"
        self.build.mkdir(parents=True)

    def program(self, text, libraries, include="."):
        (self.folder / "src").mkdir(exist_ok=True)
        (self.folder / "src/main.c").write_text(text)
        (self.build / "build.ninja").write_text(NINJA.format(libraries=libraries, include=include))
        subprocess.run(["ninja", "-C", str(self.build)], check=True, capture_output=True)

    def library(self, folder, name):
        folder.mkdir(parents=True)
        (folder / f"{name}.c").write_text(f"int {name}(void) {{ return 0; }}\n")
        subprocess.run(f"gcc -c {name}.c && ar crD lib{name}.a {name}.o", cwd=folder, shell=True, check=True)
        return f"{folder}/lib{name}.a"

    def collect(self):
        return subprocess.run([sys.executable, str(self.folder / "scripts/licences.py"), str(self.build), str(self.folder / "doc")],
                              capture_output=True, text=True, check=False)

    def read(self, name):
        return (self.folder / "doc" / name).read_text()

    def test_a_library_of_debian_brings_its_copyright_file(self):
        self.program("#include <zlib.h>\nint main(void) { return zlibVersion() == 0; }\n", "-l:libz.a")
        done = self.collect()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read("licences/zlib"), pathlib.Path("/usr/share/doc/zlib1g-dev/copyright").read_text())
        self.assertRegex(self.read("copyright"), r"\n  zlib \d:1\.\d+.*\n")
        self.assertIn("Copyright: 2026", self.read("copyright"))
        self.assertEqual(self.read("licences/common/Apache-2.0"), (SOURCE / "LICENSE").read_text())

    def test_a_header_is_part_of_a_program_too_and_libc_is_not(self):
        self.program("#include <zlib.h>\nint main(void) { return sizeof(z_stream) == 0; }\n", "")
        self.assertEqual(self.collect().returncode, 0)
        self.assertIn("zlib", self.read("copyright"))
        self.assertNotIn("glibc", self.read("copyright"))

    def test_what_was_built_from_debians_sources_brings_their_licence(self):
        third_party = self.folder / "build/third_party"
        library = self.library(third_party / "installed/lib", "foreign")
        (third_party / "foreign/source/src").mkdir(parents=True)
        (third_party / "foreign.version").write_text("1.2-3\n")
        self.program("int foreign(void);\nint main(void) { return foreign(); }\n", library)
        done = self.collect()
        self.assertEqual(done.returncode, 1)
        self.assertIn("foreign was built for the programs, but ", done.stderr)
        (third_party / "foreign/source/src/COPYING").write_text("do as you like; /usr/share/common-licenses/GPL-2.\n")
        done = self.collect()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\n  foreign 1.2-3\n", self.read("copyright"))
        self.assertIn("do as you like", self.read("licences/foreign"))
        self.assertIn("GNU GENERAL PUBLIC LICENSE", self.read("licences/common/GPL-2"))

    def test_a_library_of_unknown_licence_is_refused(self):
        library = self.library(self.folder / "elsewhere", "unknown")
        self.program("int unknown(void);\nint main(void) { return unknown(); }\n", library)
        done = self.collect()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{library} is part of the programs, but no Debian package owns it", done.stderr)
        self.assertFalse((self.folder / "doc").exists())

    def test_a_folder_without_programs_is_refused(self):
        done = self.collect()
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no program tprimat in", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

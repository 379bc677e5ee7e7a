"""What check.sh says of bundles that are made up."""

import os
import pathlib
import shutil
import sys
import tarfile
import unittest
from unittest import mock

from stand_ins import PROGRAM, Folder

import bundled
import check
import revision


class Check(Folder):
    def bundle(self, files):
        """Files by name: bytes, or a path to copy."""
        archive = self.folder / "programs.tar.xz"
        staged = self.folder / "staged"
        for name, content in files.items():
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            (staged / name).write_bytes(content if isinstance(content, bytes) else pathlib.Path(content).read_bytes())
            (staged / name).chmod(0o755)
        with tarfile.open(archive, "w") as packed:
            packed.add(staged, ".")
        unpacked = self.folder / "unpacked"
        unpacked.mkdir()
        return check.Bundle(archive, unpacked)

    def whole(self, **more):
        names = {name: shutil.which("true") for name in bundled.PROGRAMS}
        return self.bundle({**names, "libtprimat_nvd.so": check.CUDNN, "revision": revision.revision_of().encode(),
                            **more})

    def words(self, ask, bundle):
        return [verdict.word for verdict in ask(bundle, self.folder)]

    def test_a_whole_bundle(self):
        bundle = self.whole()
        for ask in (check.check_bundle, check.check_revision, check.check_libraries, check.check_sizes):
            self.assertEqual(self.words(ask, bundle), ["ok"], ask.__name__)
        self.assertEqual(self.words(check.check_calls, bundle), ["ok"] * 6)

    def test_a_missing_library_is_named(self):
        verdict = next(check.check_libraries(self.whole(tprimat=PROGRAM), self.folder))
        self.assertEqual(verdict.word, "missing")
        self.assertRegex(str(verdict), r"lib[\w-]+\.so.* \(for tprimat\).*bundle\.sh")

    def test_versions_of_symbols_are_named(self):
        glibc, library = check.check_versions(self.whole(tprimat=PROGRAM), self.folder)
        self.assertRegex(glibc.what, r"^requires glibc 2\.\d+ or newer on the GPU machine")
        self.assertEqual(library.word, "missing")
        self.assertIn("the bundle provides none", library.what)

    def test_another_revision(self):
        verdict = next(check.check_revision(self.whole(revision=b"abc\n"), self.folder))
        self.assertEqual(verdict.word, "missing")
        self.assertIn("the bundle is built from abc", verdict.what)
        self.assertFalse(check.is_current(self.folder / "programs.tar.xz"))

    def test_too_much_to_carry(self):
        with mock.patch.dict(os.environ, {"CARRY_LIMIT_MIB": "0.5"}):
            self.assertEqual(self.words(check.check_sizes, self.whole()), ["missing"])

    def test_a_module_that_does_not_load_is_missing(self):
        for what in ("the trainer's module (trainings on GPUs): libtprimat_nvd.so belongs to another build",
                     "the module (x): libtprimat_nvd.so is version 1 (a), the program is version 2 (b)",
                     "libx.so: undefined symbol: f"):
            for severity in ("missing", "warning"):
                finding = {"severity": severity, "area": "GPU libraries", "what": what}
                self.assertEqual(check.judge_finding(finding).word, "missing", what)
        vendor = {"severity": "warning", "area": "GPU libraries",
                  "what": "NVRTC (cuDNN's attention kernels): libnvrtc.so.13 cannot be loaded: file not found"}
        self.assertEqual(check.judge_finding(vendor).word, "not checked")
        self.assertEqual(check.judge_finding({**vendor, "severity": "ok"}).word, "ok")

    def test_a_limit_that_is_no_number(self):
        with mock.patch.dict(os.environ, {"CARRY_LIMIT_MIB": "abc"}), self.assertRaises(SystemExit) as refused:
            check.carry_limit()
        self.assertEqual(refused.exception.code, 2)

    def test_a_build_without_cudnn(self):
        bundle = self.whole(**{"libtprimat_nvd.so": b"own kernels", "gpu_tests": check.CUDNN})
        self.assertEqual(self.words(check.check_cudnn, bundle), ["missing", "ok", "missing"])
        (self.folder / "CMakeCache.txt").write_text("TPRIMAT_GPU_CUDNN:BOOL=OFF\nTPRIMAT_NVRTC_HEADERS:PATH=/none\n")
        self.assertEqual(self.words(check.check_headers, bundle), ["missing"])

    def test_a_program_that_is_not_there(self):
        bundle = self.whole()
        (bundle.folder / "gpu_tests").unlink()
        absent = [verdict for verdict in check.check_calls(bundle, self.folder) if verdict.word == "missing"]
        self.assertEqual(len(absent), 2)  # attention and memcheck
        self.assertIn("gpu_tests", absent[0].what)

    def test_no_bundle(self):
        verdicts = list(check.examine(self.folder / "none.tar.xz", self.folder))
        self.assertIn("is missing; pack it", str(next(each for each in verdicts if each.subject == "bundle")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

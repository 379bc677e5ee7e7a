"""The calls of native.sh with stand-ins: what they start, what they take from earlier results, and what they leave."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import unittest
from unittest import mock

from stand_ins import PASSED, SKIPPED, SOURCE, Folder, write_program

import command_line
import contenders
import parts
import programs
import revision
import table
import trainings

SECONDS = {"cudnn whole whole": {"seconds": [0.9]}, "cudnn whole blocks": {"seconds": [0.8]},
           "flash whole no": {"seconds": [1.0]}, "cudnn whole no": {"seconds": [1.2]}, "cudnn no": {"seconds": [1.5]}}
STORED = {"tiny:64x2:masters": {"compile": {"attention": "cudnn", "loss": "whole", "compile": "whole"},
                                "eager": {"attention": "cudnn", "loss": "whole", "compile": "no"},
                                "hf": {"attention": "cudnn", "compile": "no"}}}


class Script(Folder):
    def native(self, *words, **environment):
        done = subprocess.run([SOURCE / "bench/device/native.sh", *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "OUT": str(self.folder / "out"), "PROGRAMS": str(self.bin),
                                   "PYTHON": sys.executable, **environment}, cwd=self.folder)
        return done, [line for line in done.stdout.splitlines() if line.startswith("$ ")]

    def test_a_dry_run_prints_and_starts_nothing(self):
        wanted = {"attention": "gpu_engine_tests", "step": "train --spec", "peers": "peers.py", "parity": "--device cpu",
                  "fp8": "native-fp8", "memcheck": "--report-api-errors no"}
        for call, letter in parts.CALLS.items():
            done, lines = self.native(letter, "--dry-run")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue([line for line in lines if wanted[call] in line], (call, done.stdout))
        self.assertEqual(self.started(), [])
        self.assertFalse((self.folder / "out").exists())

    def test_a_call_that_is_not_known_builds_nothing(self):
        done, _ = self.native("tests", PROGRAMS=str(self.folder / "none"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("attention", done.stderr)

    def pack(self, *names):
        with tarfile.open(self.folder / "programs.tar.xz", "w:xz", preset=0) as packed:
            packed.add(self.bin / "tprimat", "./tprimat")
            packed.addfile(tarfile.TarInfo("./base/libold.so.6"), io.BytesIO())
            library = tarfile.TarInfo("./lib")
            library.type, library.mode = tarfile.DIRTYPE, 0o755
            packed.addfile(library)

    def copies(self, ldconfig):
        """Whether the compiler's library is put beside the others."""
        self.pack()
        tools = write_program(self.folder / "tools/ldconfig", f"#!/bin/sh\n{ldconfig}\n").parent
        self.native("d", "--dry-run", PROGRAMS=str(self.folder), PATH=f"{tools}:{os.environ['PATH']}")
        unpacked, = self.folder.glob("unpacked_*")
        copied = (unpacked / "lib/libold.so.6").exists()
        shutil.rmtree(unpacked)
        return copied

    def test_the_machines_own_library_is_found_in_a_long_list(self):
        self.assertFalse(self.copies("echo 'libold.so.6 (libc6) => /lib/libold.so.6'; seq 200000"))
        self.assertTrue(self.copies("seq 9"))


class Tests(Folder):
    def test_the_doctor_and_cudnn_come_first(self):
        status, part, _ = self.ask("attention")
        self.assertEqual(status, 0, part["open"])
        first, second, third, fourth = self.started()
        self.assertEqual(first, "tprimat doctor --platform nvd --json")
        self.assertIn("gpu_tests --gtest_filter=*Attention*", second)
        self.assertIn("gpu_tests --gtest_filter=-*Attention*", third)
        self.assertIn("gpu_engine_tests", fourth)
        self.assertEqual(part["doctor"]["findings"][0]["area"], "GPU libraries")

    def test_a_skipped_test_of_cudnn_fails_the_call(self):
        self.print_tests(SKIPPED)
        status, part, _ = self.ask("attention")
        self.assertEqual(status, 1)
        self.assertIn("GpuAttention/1.CudnnMatches was skipped: cuDNN does not start: no libcudnn.so.9", part["open"][0])
        self.assertNotIn("/0.", part["open"][0])
        self.assertIn("no cuDNN attention test passed", part["open"][-1])

    def test_what_passed_is_not_repeated(self):
        self.ask("attention")
        self.started()
        status, part, printed = self.ask("attention")
        self.assertEqual((status, self.started()), (0, ["tprimat doctor --platform nvd --json"]))
        self.assertIn("resuming from", printed)
        self.assertEqual(len(part["calls"]), 2)

    def test_results_of_another_program_are_not_taken(self):
        self.ask("attention")
        self.started()
        (self.bin / "revision").write_text("def\n")
        _, part, printed = self.ask("attention")
        self.assertIn("was measured with revision abc, this program is revision def; starting over", printed)
        self.assertEqual((part["revision"], len(self.started()), len(part["calls"])), ("def", 4, 1))

    def test_an_earlier_folder_is_taken_up_unless_again_is_asked(self):
        self.ask("attention", out=self.folder / "earlier")
        self.started()
        self.assertEqual(self.ask("attention", earlier=[self.folder / "earlier"])[0], 0)
        self.assertEqual(len(self.started()), 1)
        self.assertEqual(parts.read(self.folder / "out", "attention")["revision"], "abc")
        self.ask("attention", earlier=[self.folder / "earlier"], again=True)
        self.assertEqual(len(self.started()), 4)

    def sanitize(self):
        with mock.patch.dict(os.environ, {"PATH": f"{self.bin}:{os.environ['PATH']}"}):
            status, part, _ = self.ask("memcheck")
        return status, part, [line for line in self.started() if line.startswith("compute-sanitizer")]

    def test_memcheck_leaves_provoked_api_errors_alone(self):
        status, part, lines = self.sanitize()
        self.assertEqual(status, 0, part["open"])
        self.assertEqual(len(lines), 8)  # two tools, two programs, two suites
        for line in lines:
            self.assertEqual("--report-api-errors no" in line, "--tool memcheck" in line, line)
        self.assertIn("gpu_tests --gtest_filter=GpuAttention/0.*", lines[0])

    def test_memcheck_goes_on_with_the_suites_that_are_left(self):
        fails = self.bin / "fails_racecheck"
        fails.touch()
        status, part, _ = self.sanitize()
        self.assertEqual((status, len(part["open"])), (1, 4))
        fails.unlink()
        status, _, lines = self.sanitize()
        self.assertEqual((status, len(lines)), (0, 4))
        self.assertEqual(self.sanitize()[2], [])

    def test_a_suite_that_is_too_long_is_cut_into_its_tests(self):
        self.sanitize()
        part = parts.read(self.folder / "out", "memcheck")
        entry = next(each for each in part["tests"] if each["name"] == "memcheck gpu_tests GpuNorm.*")
        entry |= {"outcome": "no time", "seconds": 400}
        parts.write(self.folder / "out/f_memcheck.json", json.dumps(part))
        status, _, lines = self.sanitize()
        self.assertEqual([line.split("=")[-1] for line in lines], ["GpuNorm.One", "GpuNorm.Two"])
        self.assertEqual(status, 0)

    def test_nothing_starts_without_time(self):
        for call in parts.CALLS:
            with mock.patch.dict(os.environ, {"PATH": f"{self.bin}:{os.environ['PATH']}"}):
                status, part, _ = self.ask(call, budget=1)
            self.assertEqual(status, 1, call)
            self.assertRegex(" ".join(part["open"]), "of the budget are left|no time was left", call)
        self.assertEqual(self.started(), [])


class Peers(Folder):
    def ask_peers(self, **more):
        self.set_outcomes(SECONDS)
        status, part, printed = self.ask("peers", choices=STORED, **more)
        return status, part, printed, self.started()

    def test_stored_settings_run_first_and_the_others_are_tried(self):
        status, part, printed, lines = self.ask_peers()
        self.assertEqual(status, 0, part["open"])
        peers = [line for line in lines if not line.startswith("tprimat")]
        self.assertEqual(peers[:6], ["torch cudnn whole whole", "torch cudnn whole no", "hf cudnn no"] * 2)
        self.assertTrue(lines[0].startswith("tprimat") and lines[7].startswith("tprimat"), lines)  # first, then last
        self.assertEqual(peers[6], "torch cudnn whole blocks")  # the first that is not tried yet
        self.assertIn("hf flash whole", peers)
        self.assertEqual(sorted(peers[-4:]), ["torch cudnn whole blocks"] * 2 + ["torch flash whole no"] * 2)
        cell = part["trainings"][0]
        self.assertEqual({name: len(runs) for name, runs in cell["runs"].items()},
                         {"native": 4, "compile": 2, "eager": 2, "hf": 2})  # ours beside the rounds of the faster
        turns = {run["turn"] for run in cell["runs"]["native"]}
        self.assertLess({run["turn"] for run in cell["runs"]["compile"]}, turns)
        self.assertEqual(cell["untried"], {})
        self.assertIn("the best (compile), takes 1.60 times native's; settings tried: compile 8 of 8", printed)
        left = {path.name for path in (self.folder / "out").iterdir()}
        self.assertEqual(left, {"c_peers.json", "table.txt", "choices.json", "c_peers_logs.tar.gz"})

    def test_faster_settings_are_stored_and_nothing_is_repeated(self):
        self.ask_peers()
        stored = json.loads((self.folder / "out/choices.json").read_text())["choices"]["tiny:64x2:masters"]
        self.assertEqual(stored["compile"]["compile"], "blocks")
        self.assertEqual(stored["eager"]["attention"], "flash")
        status, _, _, lines = self.ask_peers()
        self.assertEqual((status, lines), (0, []))

    def test_settings_that_time_left_untried_are_said(self):
        with mock.patch.object(contenders.Peer, "try_settings"):
            status, part, printed, lines = self.ask_peers()
        self.assertEqual((status, len(lines)), (0, 8), part["open"])
        self.assertIn("the fastest of those tried (compile), takes 1.80 times native's; settings tried: compile 1 of 8, "
                      "eager 1 of 4, hf 1 of 4", printed)
        self.assertIn("untried: compile cudnn whole blocks", printed)
        _, _, printed, lines = self.ask_peers()  # a later call tries them; rounds of another day did not take turns
        self.assertEqual(lines[0], "torch cudnn whole blocks")
        self.assertNotIn("torch cudnn whole whole", lines)

    def test_no_ratio_while_the_fastest_setting_lacks_rounds(self):
        self.ask_peers()
        cell = parts.read(self.folder / "out", "peers")["trainings"][0]
        del cell["runs"]["compile"]
        self.assertIn("no ratio yet: PyTorch's compile took 800.00 ms when it was tried with cudnn whole blocks",
                      table.claim_lines(cell)[0])

    def test_a_setting_that_ends_the_process_leaves_the_others(self):
        self.set_outcomes({**SECONDS, "cudnn whole blocks": "crash"})
        _, part, _ = self.ask("peers", choices=STORED)
        tried = {" ".join(map(str, each["setting"].values())): each for each in part["trainings"][0]["tried"]["compile"]}
        self.assertIn("segmentation fault", tried["cudnn whole blocks"]["failed"])
        self.assertEqual(len(tried), 8)

    def test_what_was_measured_before_the_deadline_is_kept(self):
        self.set_outcomes({**SECONDS, "cudnn whole blocks": "hang"})
        needed = dict.fromkeys(contenders.NEEDED, 0)
        with mock.patch.object(contenders, "NEEDED", needed):
            status, part, _ = self.ask("peers", choices=STORED, rounds=1, budget=3)
        cell = part["trainings"][0]
        self.assertEqual((len(cell["runs"]["compile"]), len(cell["tried"]["compile"])), (1, 1), part["open"])
        self.assertLess(sum(run["wall_seconds"] for runs in cell["runs"].values() for run in runs), 3)
        self.assertEqual(parts.read(self.folder / "out", "peers")["trainings"][0]["runs"], cell["runs"])
        self.assertEqual(status, 0)  # all rounds are there; what is untried stands in the table

    def test_tracked_choices_are_settings_that_exist(self):
        choices = command_line.read_choices(SOURCE / "bench/device/choices.json")
        self.assertEqual(set(choices), {cell.name() for cell in trainings.CELLS})
        for cell in trainings.CELLS:
            for name, setting in choices[cell.name()].items():
                self.assertIn(setting, contenders.make(self.options("peers"), cell, name).settings()[0])


class Environment(Folder):
    def test_our_programs_find_the_libraries_of_the_chosen_python(self):
        with mock.patch.dict(os.environ, {"VIRTUAL_ENV": ""}):
            self.assertEqual(programs.Programs(self.bin).environment["VIRTUAL_ENV"], sys.prefix)
        with mock.patch.dict(os.environ, {"VIRTUAL_ENV": "/mine", "PYTHON": ""}):
            self.assertNotIn("VIRTUAL_ENV", programs.Programs(self.bin).environment)

    def test_the_revision_is_that_of_the_programs_sources(self):
        def git(*words):
            subprocess.run(["git", "-C", self.folder, "-c", "user.name=n", "-c", "user.email=e", *words], check=True,
                           capture_output=True)
        git("init", "-q")
        source, page = self.folder / "src/main.cpp", self.folder / "page.md"
        source.parent.mkdir()
        revisions = []
        for path, text in ((source, "1"), (page, "2"), (source, "3")):
            path.write_text(text)
            git("add", path)
            git("commit", "-qm", text)
            revisions.append(revision.revision_of(self.folder))
        self.assertEqual(revisions[0], revisions[1])
        self.assertNotEqual(revisions[1], revisions[2])
        source.write_text("4")
        self.assertTrue(revision.revision_of(self.folder).startswith(f"{revisions[2]}-dirty-"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

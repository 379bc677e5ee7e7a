#!/usr/bin/env python3
"""What the package says of a machine that is not this one: Arm's processors, whose names /proc/cpuinfo does not have.

  machine_test.py TPRIMAT
"""

import os
import unittest
from unittest import mock

import paths
from tprimat import machine

ARM = "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"
X86 = "processor\t: 0\nmodel name\t: AMD EPYC 9354 32-Core Processor\n"


class Processors(unittest.TestCase):
    def name(self, cpuinfo, lscpu):
        """`lscpu`: what a program of that name prints; None where there is none."""
        folder = paths.enter_empty_folder(self)
        if lscpu is not None:
            (folder / "said").write_text(lscpu)
            (folder / "lscpu").write_text(f"#!/bin/sh\nexec /bin/cat '{folder}/said'\n")
            (folder / "lscpu").chmod(0o755)
        with mock.patch.object(machine, "read_text", lambda path: cpuinfo), \
                mock.patch.dict(os.environ, PATH=str(folder)), \
                mock.patch("platform.processor", lambda: "aarch64"):
            return machine.find_processor()

    def test_names_stand_in_cpuinfo_on_x86(self):
        self.assertEqual(self.name(X86, "Model name:  another\n"), "AMD EPYC 9354 32-Core Processor")

    def test_lscpu_names_arms_processors(self):
        grace = "Architecture:  aarch64\nVendor ID:     ARM\n  Model name:  Neoverse-V2\n    Model:     0\n"
        self.assertEqual(self.name(ARM, grace), "Neoverse-V2")
        two_kinds = "  Model name:  Cortex-X925\n    Model: 1\n  Model name:  Cortex-A725\n    Model: 1\n"
        self.assertEqual(self.name(ARM, two_kinds), "Cortex-X925 + Cortex-A725")
        thirty_two_bits = "model name\t: ARMv8 Processor rev 1 (v8l)\n"
        self.assertEqual(self.name(thirty_two_bits, grace), "Neoverse-V2")

    def test_a_name_that_nobody_knows_is_the_architecture(self):
        self.assertEqual(self.name(ARM, "  Model name:  -\n    Model: 0\n"), "aarch64")  # a virtual machine on a Mac
        self.assertEqual(self.name(ARM, None), "aarch64")
        self.assertEqual(self.name(ARM + "Hardware\t: BCM2835\n", None), "aarch64")


if __name__ == "__main__":
    paths.run_tests()

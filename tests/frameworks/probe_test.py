#!/usr/bin/env python3
"""tprimat.probe measures this machine, and shows how far it is.

  probe_test.py TPRIMAT
"""

import contextlib
import io
import unittest

import paths
import tprimat


class Probe(unittest.TestCase):
    def setUp(self):
        paths.enter_empty_folder(self)

    def test_of_the_processor(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            probe = tprimat.probe(threads=1)
        self.assertGreater(max(each.flops_per_second for each in probe.matmul), 1e8)
        self.assertNotEqual(told.getvalue(), "")
        self.assertIn("matmul", str(probe))

    def test_of_a_model(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            probe = tprimat.probe(model="tiny", config=paths.HERE.parent / "cli/tiny.yaml", progress=False)
        self.assertEqual(type(probe).__name__, "ModelProbeReport")
        self.assertEqual(told.getvalue(), "")


if __name__ == "__main__":
    paths.run_tests()

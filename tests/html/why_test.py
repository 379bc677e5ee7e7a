#!/usr/bin/env python3
"""Opens the page of `tprimat why --html` in a headless Chromium and uses it as a reader does.

usage: why_test.py PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from chromium import Page, find_chromium

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = ""


def write_page(folder):
    for name, settings in (("a", []), ("b", ["product=600", "copies=1"])):
        subprocess.run([sys.executable, HERE.parent / "cli/why_trace.py", folder / f"{name}.json", *settings], check=True)
    subprocess.run([PROGRAM, "why", "-q", "a.json", "b.json", "--html", "why.html"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    return folder / "why.html"


class WhyPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="tprimat_why_page_")
        cls.file = write_page(pathlib.Path(cls.scratch.name))
        cls.page = Page().__enter__()
        cls.page.resize(1300, 900)

    @classmethod
    def tearDownClass(cls):
        cls.page.__exit__()
        cls.scratch.cleanup()

    def setUp(self):
        self.page.open(self.file.as_uri())

    def pixel(self, x, y, canvas=0):
        """red, green, blue of a point of a timeline, in pixels of the page."""
        return self.page.run(
            f"(() => {{ const c = document.querySelectorAll('#timelines canvas')[{canvas}];"
            f" const r = devicePixelRatio; return [...c.getContext('2d').getImageData({x} * r, {y} * r, 1, 1).data] }})()")

    def painted(self, canvas=0):
        return self.page.run(
            f"(() => {{ const c = document.querySelectorAll('#timelines canvas')[{canvas}];"
            " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
            " for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n / (c.width * c.height) })()")

    def test_asks_for_nothing_and_complains_of_nothing(self):
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([each for each in self.page.requests if not each.startswith(("file:", "data:"))], [])

    def test_ledger_unfolds(self):
        self.assertGreater(self.page.run("document.querySelectorAll('#ledger details').length"), 1)
        shown = "document.querySelector('#ledger details .parts').checkVisibility()"
        self.assertFalse(self.page.run(shown))
        self.page.run("document.querySelector('#ledger details summary').click()")
        self.assertTrue(self.page.run(shown))

    def test_picture_is_there(self):
        self.assertGreater(self.page.run("document.querySelector('#waterfall svg').getBoundingClientRect().height"), 200)

    def test_both_timelines_are_painted(self):
        self.assertEqual(self.page.run("document.querySelectorAll('#timelines canvas').length"), 2)
        for canvas in (0, 1):
            self.assertGreater(self.painted(canvas), 0.1)
        self.assertLess(self.page.run("page.timelines.flatMap((side) => side.lanes).flatMap((lane) => lane.spans).length"),
                        5000)

    def test_wheel_zooms_both_and_double_click_shows_all(self):
        whole = self.page.run("view.end - view.begin")
        self.page.run("(() => { const c = document.querySelector('#timelines canvas');"
                      " c.dispatchEvent(new WheelEvent('wheel', {deltaY: -100, bubbles: true, cancelable: true})) })()")
        self.assertLess(self.page.run("view.end - view.begin"), whole)
        self.page.run("document.querySelector('#timelines canvas').dispatchEvent(new MouseEvent('dblclick'))")
        self.assertEqual(self.page.run("view.end - view.begin"), whole)

    def test_a_span_states_its_name(self):
        self.page.run("document.querySelector('#timelines').scrollIntoView()")
        box = self.page.run("(() => { const c = document.querySelector('#timelines canvas').getBoundingClientRect();"
                            " return [c.left, c.top, c.width, c.height] })()")
        lanes = self.page.run("page.timelines[0].lanes.length")
        for x in range(200, int(box[2]), 40):  # along the last lane, the stream
            self.page.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + x, y=box[1] + lanes * 28 - 16)
            if "stream" in self.page.run("document.getElementById('timeline-text').textContent"):
                return
        self.fail("no span of the stream was found")

    def test_dark_theme_changes_the_colours(self):
        light = self.page.run("groupColour('matmul')")
        self.page.prefer("dark")
        self.assertNotEqual(self.page.run("groupColour('matmul')"), light)
        self.page.prefer("light")


if __name__ == "__main__":
    if find_chromium() is None:
        print("skipped: Chromium is missing: sudo apt-get install chromium")
        sys.exit(77)
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()

#!/usr/bin/env python3
"""Opens the page of `tprimat compare --html` in a headless Chromium and uses it as a reader does.

usage: page_test.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import make_results
from chromium import Page, find_chromium

PROGRAM = ""
ROWS = "[...document.querySelectorAll('#run-table tbody tr')]"


def compare(folder, results, *options):
    """The page's path and what `compare --json` says of the same results."""
    command = [PROGRAM, "compare", "-q", str(results), "--html", "--json", "--output", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(done.stderr)
    return folder / "compare.html", json.loads(done.stdout)


def figure_column(key):
    return f"document.querySelector('#run-table th[data-key={key}]').cellIndex"


def shown_values(page, key):
    value = f"Number(row.cells[{figure_column(key)}].dataset.value)"
    return page.run(f"{ROWS}.filter((row) => !row.hidden).map((row) => {value})")


def click(page, selector):
    page.run(f"document.querySelector({selector!r}).click()")


def choose(page, identity, value):
    page.run(f"(() => {{ const field = document.getElementById({identity!r}); field.value = {value!r};"
             " field.dispatchEvent(new Event('change')); field.dispatchEvent(new Event('input')); })()")


class PageTest(unittest.TestCase):
    """One browser for all; every test opens its page anew."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="tprimat_page_")
        cls.folder = pathlib.Path(cls.temporary.name)
        make_results.make_many(cls.folder / "few", 24, steps=120, repetitions=2)
        cls.few, cls.few_json = compare(cls.folder / "few_page", cls.folder / "few")
        cls.page = Page()

    @classmethod
    def tearDownClass(cls):
        cls.page.__exit__()
        cls.temporary.cleanup()

    def setUp(self):
        self.page.resize(1400, 1000)
        self.page.prefer("light")
        self.page.complaints.clear(), self.page.requests.clear()

    def tearDown(self):
        self.assertEqual(self.page.complaints, [])
        foreign = [url for url in self.page.requests if not url.startswith(("file://", "data:"))]
        self.assertEqual(foreign, [])
        self.assertEqual(len([url for url in self.page.requests if url.startswith("file://")]), 1)

    def open(self, path):
        return self.page.open(path.resolve().as_uri())

    def contenders(self):
        return [each for group in self.few_json["groups"] for each in group["contenders"]]

    def test_figures_equal_the_json(self):
        self.open(self.few)
        self.assertEqual(self.page.run("page.groups.map((group) => group.contenders.map((each) => each.figures))"),
                         [[each["figures"] for each in group["contenders"]] for group in self.few_json["groups"]])
        keys = {key for each in self.contenders() for key in each["figures"]}
        self.assertGreater(len(keys), 12)
        for key in keys:
            told = [each["figures"][key]["value"] for each in self.contenders()]
            self.assertEqual(shown_values(self.page, key), told, key)
            texts = self.page.run(f"{ROWS}.map((row) => row.cells[{figure_column(key)}].firstChild.textContent)")
            factor = 100 if key in ("mfu", "step_time_cv") or key.endswith("_share") else 1
            for text, value in zip(texts, told):
                delta = max(0.004 * abs(factor * value), 0.06)
                self.assertAlmostEqual(float(text.replace(" ", "")), factor * value, delta=delta, msg=key)

    def test_headers_sort_by_mouse_and_keyboard(self):
        self.open(self.few)
        key = "tokens_per_second_per_gpu"
        header = f"#run-table th[data-key={key}]"
        click(self.page, header + " button")
        values = shown_values(self.page, key)
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertEqual(self.page.run(f"document.querySelector('{header}').getAttribute('aria-sort')"), "descending")
        self.page.run(f"document.querySelector('{header} button').focus()")
        for kind in ("keyDown", "keyUp"):
            self.page.send("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13,
                           **({"text": "\r"} if kind == "keyDown" else {}))
        self.assertEqual(shown_values(self.page, key), sorted(values))
        self.assertEqual(self.page.run("document.querySelectorAll('#run-table [aria-sort]').length"), 1)

    def test_filters_hide_rows_and_charts_follow(self):
        self.open(self.few)
        total = len(self.contenders())
        amd = sum(each["facts"]["platform"] == "AMD" for each in self.contenders())
        self.assertTrue(0 < amd < total)
        choose(self.page, "filter-platform", "AMD")
        self.assertEqual(len(shown_values(self.page, "mfu")), amd)
        self.assertEqual(self.page.run("document.getElementById('run-count').textContent"), f"{amd} of {total} runs")
        self.page.run("document.getElementById('charts').scrollIntoView()")
        self.page.wait_for("panels[0].chart !== null")
        self.assertEqual(self.page.run("panels[0].chart.data.labels.length"), amd)
        choose(self.page, "filter-text", "deepspeed balanced")
        self.page.wait_for(f"{ROWS}.filter((row) => !row.hidden).length === 1")
        choose(self.page, "filter-text", "no such run")
        self.page.wait_for(f"{ROWS}.every((row) => row.hidden)")
        click(self.page, "#clear-filters")
        self.assertEqual(len(shown_values(self.page, "mfu")), total)

    def test_every_chart_is_drawn_when_it_is_seen(self):
        self.open(self.few)
        self.assertFalse(self.page.run("panels.every((panel) => panel.chart)"))
        count = self.page.run("panels.length")
        self.assertEqual(count, 10)
        for number in range(count):
            self.page.run(f"panels[{number}].node.scrollIntoView()")
            self.page.wait_for(f"panels[{number}].chart !== null")
            colours = self.page.run(
                f"(() => {{ const {{ canvas }} = panels[{number}]; const seen = new Set();"
                " const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
                " for (const each of new Uint32Array(data.buffer)) seen.add(each); return seen.size; })()")
            self.assertGreater(colours, 8, self.page.run(f"panels[{number}].title"))

    def test_step_times_show_warmup_and_outliers(self):
        self.open(self.few)
        self.page.run("panels[1].node.scrollIntoView()")
        self.page.wait_for("panels[1].chart !== null")
        marked = self.page.run("panels[1].chart.data.datasets.filter((each) => each.type === 'scatter')"
                               ".map((each) => each.data.length)")
        recorded = self.page.run("shownOf(0).map((each) => each.runs.flatMap((run) => run.outliers).length)")
        self.assertTrue(any(recorded))
        self.assertEqual(marked, [each for each in recorded if each])
        bands = self.page.run("panels[1].chart.options.plugins.warmupShade.bands.map((band) => band.until)")
        excluded = self.page.run("shownOf(0).map((each) => each.runs.map((run) => run.warmup.steps_excluded))")
        self.assertEqual(bands, [max(each) for each in excluded])
        top = self.page.run("panels[1].chart.scales.y.max")
        click(self.page, ".panel.wide h4 button")
        self.assertGreater(self.page.run("panels[1].chart.scales.y.max"), 3 * top)

    def test_ticks_of_constant_series_differ(self):
        run = make_results.result("nvd", "nemo", "balanced", "llama", 3.2, 0.1, 40, learning_rates=[3e-4] * 40,
                                  loss_values=[2.4375] * 40, step_times=[3.2] * 40)
        make_results.write(self.folder / "constant", "train_nvd_nemo_llama.json", run)
        path, _ = compare(self.folder / "constant_page", self.folder / "constant")
        self.open(path)
        for title in ("Learning rate", "Loss", "Step times"):
            panel = f"panels.find((each) => each.title === '{title}')"
            self.page.run(f"{panel}.node.scrollIntoView()")
            self.page.wait_for(f"{panel}.chart !== null")
            labels = self.page.run(f"{panel}.chart.scales.y.ticks.map((tick) => tick.label)")
            labels = [label for label in labels if label]
            self.assertGreaterEqual(len(labels), 3, title)
            self.assertEqual(len(labels), len(set(labels)), f"{title}: {labels}")
            low, high = self.page.run(f"[{panel}.chart.scales.y.min, {panel}.chart.scales.y.max]")
            self.assertGreaterEqual(low, 0, title)
            self.assertLess(high, 10, title)

    def test_dark_and_light(self):
        self.open(self.few)
        self.page.run("document.getElementById('charts').scrollIntoView()")
        self.page.wait_for("panels[0].chart !== null")
        ground = "getComputedStyle(document.body).backgroundColor"
        ink = "panels[0].chart.options.scales.x.ticks.color"
        light, light_ink = self.page.run(ground), self.page.run(ink)
        self.page.prefer("dark")
        self.page.wait_for(f"{ground} !== '{light}'")
        self.page.wait_for(f"{ink} !== '{light_ink}'")
        dark = self.page.run(ground)
        click(self.page, "#theme")
        self.assertEqual(self.page.run(ground), light)
        click(self.page, "#theme")
        self.assertEqual(self.page.run(ground), dark)
        click(self.page, "#theme")
        self.assertEqual(self.page.run("document.getElementById('theme').textContent"), "Theme: as the system")

    def test_formula_is_one_click_away(self):
        self.open(self.few)
        click(self.page, "#run-table th[data-key=mfu] .formula-link")
        self.page.wait_for("document.querySelectorAll('#formula-mfu[open] tbody tr').length > 0")
        text = self.page.run("document.getElementById('formula-mfu').textContent")
        self.assertIn("dense peak of one device", text)
        self.assertIn("FLOPs per token (formula causal/1) / 9.89e+14 FLOP/s (catalogue:H100-SXM-80GB:bf16)", text)

    def test_settings_that_differ_come_first(self):
        self.open(self.few)
        keys = "[...document.querySelectorAll('.settings tbody th')].map((each) => each.textContent)"
        self.assertEqual(self.page.run(keys)[0].split(":")[0], "differs")
        self.assertIn("environment: hostname", self.page.run(keys))
        self.assertNotIn("environment: kernel", self.page.run(keys))
        click(self.page, "#setting-tables button")
        self.assertIn("environment: kernel", self.page.run(keys))

    def test_withheld_verdicts_stay_withheld(self):
        golden = pathlib.Path(__file__).parent.parent / "golden/compare/different_work/runs"
        path, _ = compare(self.folder / "withheld", golden)
        self.open(path)
        text = self.page.run("document.body.textContent")
        self.assertIn("are not comparable: the sequence lengths differ", text)
        self.assertNotIn("x faster", text)
        told = self.page.run("page.groups[0].pairs.map((pair) => [pair.verdict, pair.ratio])")
        self.assertEqual(told, [[None, None]])

    def test_what_a_file_says_is_text(self):
        make_results.make_hostile(self.folder / "hostile")
        path, _ = compare(self.folder / "hostile_page", self.folder / "hostile")
        self.open(path)
        click(self.page, "#setting-tables button")
        self.page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for number in range(self.page.run("panels.length")):
            self.page.run(f"panels[{number}].node.scrollIntoView()")
            self.page.run(f"draw(panels[{number}])")
        self.assertTrue(self.page.run("document.title").startswith("Comparison of 2 runs"))
        self.assertEqual(self.page.run("document.querySelectorAll('img, svg, iframe, b').length"), 0)
        self.assertEqual(self.page.run("document.scripts.length"), 10)
        self.assertEqual(self.page.run("[...document.querySelectorAll('*')].flatMap((each) => [...each.attributes])"
                                       ".filter((each) => each.name.startsWith('on')).length"), 0)
        self.assertIn("<img src=x onerror", self.page.run("document.getElementById('run-table').textContent"))
        self.assertIn("<img src=x onerror", self.page.run("document.getElementById('setting-tables').textContent"))

    def test_injected_script_would_not_run(self):
        text = self.few.read_text(encoding="utf-8").replace("<main>", "<main><script>document.title='taken'</script>")
        changed = self.folder / "changed.html"
        changed.write_text(text, encoding="utf-8")
        self.open(changed)
        self.assertNotEqual(self.page.run("document.title"), "taken")
        self.assertTrue(any("Content Security Policy" in each for each in self.page.complaints), self.page.complaints)
        self.page.complaints.clear()

    def test_without_scripts_verdicts_and_figures_are_there(self):
        self.page.send("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.page.send("Page.navigate", url=self.few.resolve().as_uri())
            self.page.wait_for(f"document.readyState === 'complete' && {ROWS}.length === {len(self.contenders())}")
            self.assertGreater(self.page.run("document.querySelectorAll('#verdicts li').length"), 0)
            cell = "document.querySelector('#run-table td.num').getBoundingClientRect()"
            self.assertGreater(self.page.run(f"{cell}.width"), 10)
            self.assertTrue(self.page.run("document.getElementById('filters').hidden"))
            picture = "document.querySelector('#charts noscript svg')"
            self.assertGreater(self.page.run(f"{picture}.getBoundingClientRect().width"), 1000)
            self.assertEqual(self.page.run(f"{picture}.querySelectorAll('script, image, foreignObject').length"), 0)
        finally:
            self.page.send("Emulation.setScriptExecutionDisabled", value=False)

    def test_narrow_screen_and_paper(self):
        self.page.resize(400, 800)
        self.open(self.few)
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 400)
        self.assertTrue(self.page.print_pdf().startswith(b"%PDF"))
        self.assertTrue(self.page.run("panels.every((panel) => panel.node.hidden || panel.chart)"))
        self.assertIsNone(self.page.run("document.documentElement.dataset.theme ?? null"))

    def test_two_hundred_files_are_one_small_page(self):
        make_results.make_many(self.folder / "many", 200)
        path, _ = compare(self.folder / "many_page", self.folder / "many")
        size = path.stat().st_size
        seconds = self.open(path)
        print(f"200 files of 500 steps: {size / 1e6:.1f} MB, open in {seconds:.2f} s")
        self.assertLess(size, 8e6)
        self.assertEqual(self.page.run(f"{ROWS}.length"), 40)
        self.assertFalse(self.page.run("panels.some((panel) => panel.chart)"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if find_chromium() is None:
        print("skipped: no Chromium is installed; apt-get install chromium")
        sys.exit(77)
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""Runs the examples of docs/python.md, and the notebooks of examples/.

  examples_test.py TPRIMAT docs|notebooks|form     form: of the notebooks, without running them
"""

import ast
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import sys
import unittest

import paths

ROOT = paths.HERE.parent.parent
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)

FIGURE = re.compile(r"\d+\.\d+|(?<= )\d+(?= tokens)|(?<=\d )\d{3}(?= tokens)")


def run_code(code, name, names):
    """As an interpreter's cell: what it prints, and its last expression."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        value = eval(compile(ast.Expression(last.value), name, "eval"), names) if last else None
    return printed.getvalue(), value


class Docs(unittest.TestCase):
    def test_examples_print_what_the_page_says(self):
        paths.enter_empty_folder(self)
        page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        section = page.split("\n## Commands as functions\n")[1].split("\n## ")[0]
        blocks = BLOCK.findall(section)
        self.assertGreater(len(blocks), 4)
        names = {}
        for number, (code, expected) in enumerate(blocks, 1):
            if "# needs pandas" in code and importlib.util.find_spec("pandas") is None:
                print(f"left out: example {number}: this Python has no pandas")
                continue
            with self.subTest(example=number):
                self.assert_alike(run_code(code, f"docs/python.md, example {number}", names)[0], expected)

    def assert_alike(self, printed, expected):
        """Word for word; figures may differ by 2 %, as another fit of the planner changes its predictions."""
        self.assertEqual(FIGURE.sub("#", printed), FIGURE.sub("#", expected))
        for found, stated in zip(FIGURE.findall(printed), FIGURE.findall(expected), strict=True):
            self.assertAlmostEqual(float(found), float(stated), delta=0.02 * float(stated), msg=printed)


class Notebooks(unittest.TestCase):
    def test_have_the_form_of_notebooks(self):
        for path, notebook in self.notebooks():
            with self.subTest(path=path.name):
                self.assertEqual((notebook["nbformat"], notebook["nbformat_minor"]), (4, 5))
                ids = [cell["id"] for cell in notebook["cells"]]
                self.assertEqual(len(set(ids)), len(ids))
                for cell in notebook["cells"]:
                    self.assertRegex(cell["id"], r"^[\w-]{1,64}$")
                    extra = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
                    self.assertEqual(set(cell), {"cell_type", "id", "metadata", "source"} | extra)
                    self.assertEqual(cell.get("outputs", []), [], "stored without what it printed on a machine")
                if importlib.util.find_spec("nbformat"):
                    import nbformat
                    nbformat.validate(notebook)

    def test_run_from_top_to_bottom(self):
        for path, notebook in self.notebooks():
            paths.enter_empty_folder(self)
            names = {}
            for cell in (each for each in notebook["cells"] if each["cell_type"] == "code"):
                with self.subTest(path=path.name, cell=cell["id"]):
                    printed, value = run_code("".join(cell["source"]), f"{path.name}, {cell['id']}", names)
                    if "print(" in "".join(cell["source"]):
                        self.assertNotEqual(printed.strip(), "")
                    print(f"--- {cell['id']}\n{printed}", value or "")

    def notebooks(self):
        files = sorted((ROOT / "examples").glob("*.ipynb"))
        self.assertTrue(files)
        return [(path, json.loads(path.read_text(encoding="utf-8"))) for path in files]


PARTS = {"docs": "Docs", "notebooks": "Notebooks", "form": "Notebooks.test_have_the_form_of_notebooks"}

if __name__ == "__main__":
    os.environ["TPRIMAT_PROGRAM"] = str(pathlib.Path(sys.argv[1]).resolve())
    sys.argv[1:] = [PARTS[sys.argv[2]]]
    unittest.main(verbosity=2)

#!/usr/bin/python3
"""The code in docs/python.md, and the notebook, are executed.

  test_examples.py MODULE_FOLDER SOURCE_FOLDER [UNITTEST ARGUMENT]...
"""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MODULE, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(MODULE))
os.environ["MPLBACKEND"] = "Agg"
MISSING = [name for name in ("numpy", "pandas", "matplotlib")
           if importlib.util.find_spec(name) is None]
if MISSING or not os.path.exists("/usr/bin/aarch64-linux-gnu-gcc"):
    print("missing:", *MISSING or ["aarch64-linux-gnu-gcc"])
    sys.exit(77)


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_the_manual(self):
        text = (SOURCE / "docs/python.md").read_text()
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
        self.assertEqual([kind for kind, _ in blocks][:2], ["c", "sh"])
        pathlib.Path("sum.c").write_text(blocks[0][1])
        subprocess.run(["sh", "-ec", blocks[1][1]], check=True)
        names, said = {}, io.StringIO()
        with contextlib.redirect_stdout(said):
            for kind, code in blocks[2:]:
                self.assertEqual(kind, "python")
                exec(compile(code, "docs/python.md", "exec"), names)
        self.assertIn("running sum", said.getvalue())
        self.assertIn("cortex-a7", said.getvalue())

    def test_the_notebook(self):
        notebook = json.loads((SOURCE / "examples/python/from_c_to_figure.ipynb").read_text())
        names = {}
        for cell in notebook["cells"]:
            self.assertEqual(cell.get("outputs", []), [])
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), "from_c_to_figure.ipynb", "exec"), names)
        self.assertEqual(pathlib.Path("smooth.pdf").read_bytes()[:5], b"%PDF-")
        speed_up = list(names["frame"]["speed-up"])
        self.assertEqual(speed_up, sorted(speed_up))
        self.assertGreater(speed_up[-1], 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

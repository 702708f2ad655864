#!/usr/bin/env python3
"""gpusim energy validate, tune and predict (docs/accelwattch.md).

  test_accelwattch.py GPUSIM BUILD_FOLDER DEFAULT_SHARED [UNITTEST ARGUMENT]...

Published data are read from $GPUSIM_SHARED, or DEFAULT_SHARED; tests that need them are skipped
where there are none.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

TIMEOUT_S = 60


def write(name, text):
    path = Accelwattch.build / name
    path.write_text(text)
    return path


class Accelwattch(unittest.TestCase):
    gpusim: str
    build: pathlib.Path
    published: pathlib.Path

    def run_gpusim(self, *args, status=0):
        result = subprocess.run([self.gpusim, "energy", *map(str, args)], capture_output=True,
                                text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    def error_of(self, *args):
        result = self.run_gpusim(*args, status=2)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("gpusim: error: "), result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def need_published(self):
        if not self.published.is_dir():
            self.skipTest(f"no published data in {self.published}")
        return self.published


class Validate(Accelwattch):
    SHEET = ("suite,kernel,IBP,new_part,CONSTP,model_total_W,measured_W\n"
             "s,k1,10,20,70,100,80\n"
             "s,\"k<2>, again\",20,40,60,120,100\n"
             "t,k3,30,10,50,90,100\n")

    def test_a_sheet_of_ones_own(self):
        out = self.run_gpusim("validate", write("own.csv", self.SHEET)).stdout
        lines = [line for line in out.splitlines() if "MAPE" in line]
        self.assertEqual(lines, ["MAPE 18.33 +- 7.06 % (95 % confidence, 3 kernels), maximum error "
                                 "25.00 % (k1), Pearson r 0.189"])
        self.assertRegex(out, r"(?m)^k<2>, again +100\.00 +120\.00 +\+20\.00$")
        self.assertRegex(out, r"(?m)^new_part +23\.333 +22\.58 +10\.000 +40\.000$")

    def test_what_it_writes(self):
        folder = self.build / "charts"
        page, figures = self.build / "page.html", self.build / "figures.json"
        self.run_gpusim("validate", write("own.csv", self.SHEET), "--svg", folder, "--html", page,
                        "--json", figures, "--title", "A & B")
        for name in ("correlation.svg", "components.svg"):
            root = xml.etree.ElementTree.parse(folder / name).getroot()
            self.assertTrue(root.tag.endswith("svg"))
        text = page.read_text()
        self.assertIn("A &amp; B", text)
        self.assertIn("k&lt;2&gt;, again", text)
        self.assertEqual(text.count("<svg"), 2)
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertNotRegex(text, r"<script|(src|href)=")  # needs no other file
        data = json.loads(figures.read_text())
        self.assertAlmostEqual(data["accuracy"]["mape_percent"], 55 / 3)
        self.assertEqual([k["kernel"] for k in data["kernels"]], ["k1", "k<2>, again", "k3"])
        self.assertEqual(data["kernels"][0]["components_W"]["new_part"], 20)

    def test_sheets_as_spreadsheets_export_them(self):
        text = self.SHEET.replace(",", ";").replace("k<2>; again", "k2").replace(";80\n", ";80,5\n")
        out = self.run_gpusim("validate", write("de.csv", "\ufeff" + text.replace("\n", "\r\n")))
        self.assertIn("80.50", out.stdout)

    def test_published_sheets(self):
        folder = self.need_published() / "csv"
        for sheet, mape, confidence, kernels in (
                ("volta_sass_sim", 9.23, 3.12, 26), ("volta_hw", 7.46, 2.18, 25),
                ("volta_hybrid", 8.15, 2.15, 25), ("pascal_sass_sim", 10.99, 3.81, 22),
                ("turing_sass_sim", 12.95, 4.71, 26)):
            with self.subTest(sheet):
                out = self.run_gpusim("validate", folder / f"{sheet}.csv").stdout
                found = re.search(r"^MAPE ([\d.]+) \+- ([\d.]+) % \(95 % confidence, (\d+) kernels\)",
                                  out, re.M)
                self.assertIsNotNone(found, out)
                self.assertAlmostEqual(float(found[1]), mape, delta=0.0101)
                self.assertAlmostEqual(float(found[2]), confidence, delta=0.0101)
                self.assertEqual(int(found[3]), kernels)

    def test_bad_input(self):
        header = "kernel,A,model_total_W,measured_W\n"
        for name, text, message in (
                ("no_measured", "kernel,A,model_total_W\nk,1,1\n", "there is no column measured_W"),
                ("no_model", "kernel,A,measured_W\nk,1,1\n", "there is no column model_total_W"),
                ("milliwatts", "kernel,A,model_total_W,measured_mW\nk,1,1,1\n", "is in mW"),
                ("mixed", header + "k,100,100,99000\n", "are both in watts?"),
                ("nan", header + "k,nan,100,99\n", "line 2: column A: nan is not finite"),
                ("negative", header + "k,1,1,1\nl,1,-5,1\n", "line 3: column model_total_W: -5"),
                ("text", header + "k,1,1,1\nl,1,many,1\n", "many is no number"),
                ("short", header + "k,1,1\n", "3 cells, but the header has 4"),
                ("empty", "", "is empty"),
                ("header", header, "has a header, but no rows")):
            with self.subTest(name):
                self.assertIn(message, self.error_of("validate", write(f"{name}.csv", text)))
        self.assertIn("cannot be read", self.error_of("validate", self.build / "absent.csv"))

    def test_nothing_is_written_where_it_cannot_be(self):
        sheet = write("own.csv", self.SHEET)
        result = self.run_gpusim("validate", sheet, "--html", self.build / "absent" / "p.html",
                                 status=2)
        self.assertIn("--html", result.stderr)


def main():
    Accelwattch.gpusim = sys.argv[1]
    Accelwattch.build = pathlib.Path(sys.argv[2])
    shared = os.environ.get("GPUSIM_SHARED") or sys.argv[3]
    Accelwattch.published = pathlib.Path(shared) / "energy-data" / "accelwattch"
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])


if __name__ == "__main__":
    main()

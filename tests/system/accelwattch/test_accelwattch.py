#!/usr/bin/env python3
"""gpusim energy validate, tune and predict (docs/accelwattch.md).

  test_accelwattch.py GPUSIM BUILD_FOLDER PUBLISHED [UNITTEST ARGUMENT]...

PUBLISHED is tests/published/accelwattch.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree
from random import Random

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
        folder = self.published / "csv"
        for sheet, mape, confidence, kernels in (
                ("volta_sass_sim", 9.23, 3.12, 26), ("volta_hw", 7.46, 2.18, 25),
                ("volta_hybrid", 8.15, 2.15, 25), ("pascal_sass_sim", 10.99, 3.81, 22),
                ("turing_sass_sim", 12.95, 4.71, 26)):
            with self.subTest(sheet):
                out = self.run_gpusim("validate", folder / f"{sheet}.csv").stdout
                found = re.search(r"^MAPE ([\d.]+) \+- ([\d.]+) % \(95 % confidence, (\d+) "
                                  r"kernels\)",
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
        self.assertIn("absent.csv: No such file",
                      self.error_of("validate", self.build / "absent.csv"))

    def test_nothing_is_written_where_it_cannot_be(self):
        sheet = write("own.csv", self.SHEET)
        result = self.run_gpusim("validate", sheet, "--html", self.build / "absent" / "p.html",
                                 status=2)
        self.assertIn("--html", result.stderr)


def csv_of(header, rows):
    return "\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n"


def random_sheet(random, kernels, components):
    """Watts per component, measured power with 3 % noise; some components are rarely used."""
    truth = [random.choice((0.02, 0.3, 1, 4)) for _ in components]
    rows = []
    for k in range(kernels):
        watts = [random.uniform(0, 25) if random.random() < 0.7 else 0 for _ in components]
        power = 40 + sum(x * w for x, w in zip(truth, watts))
        rows.append([f"k{k}", *watts, 40, power * random.gauss(1, 0.03)])
    return csv_of(["kernel", *components, "CONSTP", "measured_W"], rows)


class Tune(Accelwattch):
    UNITS = ["INTP", "FPUP", "DPUP", "INT_MULP", "FP_MULP", "DP_MULP", "TENSORP", "RFP", "DRAMP"]

    def read(self, path):
        lines = path.read_text().splitlines()
        header = lines[0].split(",")
        rows = [dict(zip(header, line.split(","))) for line in lines[1:]]
        fixed = {"IDLE_COREP", "CONSTP", "STATICP"}
        labels = {"suite", "kernel", "model_total_W", "measured_W"}
        names = [c for c in header if c not in fixed | labels]
        a = [[float(r[c]) for c in names] for r in rows]
        b = [float(r["measured_W"]) - sum(float(r[c]) for c in fixed if c in r) for r in rows]
        return names, a, b, [float(r["measured_W"]) for r in rows]

    def tune(self, path, *options):
        out = self.build / "tuned.json"
        self.run_gpusim("tune", path, "--json", out, *options)
        result = json.loads(out.read_text())["dynamic"]
        self.assertLess(result["kkt_residual"]["worst"], 1e-8)
        return result

    def check_against_scipy(self, path, relative, lower, upper, orders):
        """The same program by two other methods: bounded-variable least squares, and SLSQP."""
        try:
            import numpy
            import scipy.optimize
        except ImportError:
            self.skipTest("scipy is not installed")
        names, a, b, measured = self.read(path)
        result = self.tune(path, "--lower", lower, "--upper", upper, "--objective",
                           "relative" if relative else "absolute", "--order", "none",
                           *(o for text in orders for o in ("--constraint", text)))
        weights = 1 / numpy.array(measured) if relative else numpy.ones(len(measured))
        a = numpy.array(a) * weights[:, None]
        b = numpy.array(b) * weights
        x = numpy.array([result["factors"][n]["factor"] for n in names])
        self.assertGreaterEqual(x.min(), lower * (1 - 1e-7))
        self.assertLessEqual(x.max(), upper * (1 + 1e-7))

        def residual(v):
            return float(((a @ v - b) ** 2).sum())

        size = float((b ** 2).sum())
        if not orders:
            other = scipy.optimize.lsq_linear(a, b, (lower, upper), method="bvls", tol=1e-14).x
        else:
            index = {n: i for i, n in enumerate(names)}
            rows = []
            for text in orders:
                left, right = text.split(" <= ")
                row = numpy.zeros(len(names))
                factor, _, name = right.rpartition(" ")
                row[index[left]] -= 1
                row[index[name]] += float(factor or 1)
                self.assertGreaterEqual(row @ x, -1e-7 * (1 + abs(row) @ abs(x)))
                rows.append(row)
            matrix = numpy.array(rows)
            scale = numpy.sqrt((a ** 2).sum(axis=0))
            scale[scale == 0] = 1
            other = scipy.optimize.minimize(
                lambda y: residual(y / scale) / size, numpy.full(len(names), lower) * scale,
                jac=lambda y: 2 * a.T @ (a @ (y / scale) - b) / scale / size, method="SLSQP",
                bounds=[(lower * s, upper * s) for s in scale],
                constraints={"type": "ineq", "fun": lambda y: matrix @ (y / scale),
                             "jac": lambda y: matrix / scale},
                options={"ftol": 1e-15, "maxiter": 2000}).x / scale
        # SLSQP stops early: it may be worse by a little, but neither may be better.
        self.assertLessEqual(residual(x), residual(other) * (1 + 1e-7) + 1e-12 * size)
        self.assertLessEqual(residual(other), residual(x) * (1 + 2e-3) + 1e-7 * size)

    ORDERS = ["INTP <= FPUP", "FPUP <= 1.5 DPUP", "FP_MULP <= DP_MULP", "FP_MULP <= 0.5 TENSORP"]

    def test_against_scipy_on_random_sheets(self):
        seed = int(os.environ.get("GPUSIM_SEED") or time.time_ns() % 2**32)
        random = Random(seed)
        for round_ in range(6):
            with self.subTest(replay=f"GPUSIM_SEED={seed}", round=round_):
                sheet = write("random.csv", random_sheet(random, 60, self.UNITS))
                self.check_against_scipy(sheet, round_ % 2 == 0, 0.1, 1000,
                                         self.ORDERS if round_ >= 3 else [])

    def test_against_scipy_on_published_sheets(self):
        folder = self.published / "csv"
        for sheet in ("volta_sass_sim", "volta_hw", "turing_sass_sim"):
            for relative in (True, False):
                for orders in ([], self.ORDERS):
                    with self.subTest(sheet, relative=relative, orders=len(orders)):
                        self.check_against_scipy(folder / f"{sheet}.csv", relative, 0.001, 1000,
                                                 orders)

    def test_the_paper_and_its_code(self):
        random = Random(5)
        sheet = write("random.csv", random_sheet(random, 60, self.UNITS))
        paper = self.tune(sheet)
        self.assertEqual((paper["objective"], paper["lower"]), ("relative", 0.001))
        self.assertIn("INTP <= FPUP", paper["constraints"])
        self.assertIn("FP_MULP <= INT_MULP", paper["constraints"])
        code = self.tune(sheet, "--objective", "absolute", "--bounds", "code", "--order", "code",
                         "--model", "gv100/sass-sim", "--leave-one-out")
        self.assertEqual(code["lower"], 0.1)
        self.assertFalse(any(c.startswith("FP_MULP") and c.endswith("INT_MULP")
                             for c in code["constraints"]))
        self.assertIn("leave_one_out", code)
        # The variant is the model's factors times the tuned ones.
        self.assertAlmostEqual(code["variant"]["scale"]["INT_ACC"],
                               14.98768151 * code["factors"]["INTP"]["factor"])
        halved = self.tune(sheet, "--linear-term", "paper")
        self.assertGreater(halved["after"]["mape_percent"], paper["after"]["mape_percent"] + 5)

    def test_constant_static_and_idle_power(self):
        frequencies = csv_of(("workload", "frequency_MHz", "power_W"),
                             [(w, f, 1e-9 * beta * f**3 + 1e-3 * tau * f + 32.5)
                              for w, beta, tau in (("int_mem", 40, 35), ("nanosleep", 1, 9))
                              for f in range(400, 1500, 100)])
        lanes = csv_of(("mix", "lanes", "frequency_MHz", "power_W"),
                       [("int_fp", y, f, 2e-9 * f**3 + 1e-3 * f * (10 + y / 4) + 32.5)
                        for y in (1, 8, 16, 24, 32) for f in range(400, 1500, 100)])
        idle = "workload,active_sms,power_W\nx,80,112.5\nx,40,82.5\n"
        out = self.build / "fits.json"
        text = self.run_gpusim("tune", "--constant", write("f.csv", frequencies), "--static",
                               write("l.csv", lanes), "--idle", write("i.csv", idle), "--clock",
                               1000, "--json", out).stdout
        self.assertIn("constant power 32.5000 W", text)
        fits = json.loads(out.read_text())
        self.assertAlmostEqual(fits["static"]["int_fp"]["first_lane_W"], 10.25, places=4)
        self.assertEqual(fits["static"]["int_fp"]["form"], "linear")
        self.assertAlmostEqual(fits["idle"]["idle_sm_W"], 0.25, places=4)

    def test_bad_input(self):
        good = write("good.csv", "kernel,A,B,measured_W\nk,1,2,3\nl,2,1,3\n")
        self.assertIn("nothing to tune", self.error_of("tune"))
        self.assertIn("column measured_W", self.error_of("tune", write("x.csv", "kernel,A\nk,1\n")))
        self.assertIn("contradict each other: A >= 3, A <= 2",
                      self.error_of("tune", good, "--constraint", "A >= 3", "--constraint",
                                    "A <= 2"))
        self.assertIn("is no order", self.error_of("tune", good, "--constraint", "A ~ B"))
        self.assertIn("there is no dynamic component X",
                      self.error_of("tune", good, "--constraint", "A <= X"))
        self.assertIn("--model", self.error_of("tune", good, "--order", "code"))
        self.assertIn("constant power",
                      self.error_of("tune", "--idle", write("i.csv", "workload,active_sms,power_W\n"
                                                                     "x,80,1\n")))
        self.assertIn("its unit right", self.error_of(
            "tune", "--constant", write("f.csv", "workload,frequency_GHz,power_W\nx,1447,90\n")))


class Predict(Accelwattch):
    COUNTERS = ("kernel,TOT_INST,INT_ACC,FP_ACC,L1_RH,SHRD_ACC,DRAM_Rd,Num_Idle_SMs,lanes,"
                "Elapsed_Cycles,measured_W\n"
                "a,1e6,2e7,1e7,1e6,1e5,1e5,10,32,1e5,150\n"
                "b,2e6,4e7,0,1e6,0,3e5,0,16,2e5,140\n")

    def test_counters_become_a_sheet_that_validates(self):
        sheet, out = self.build / "sheet.csv", self.build / "p.json"
        text = self.run_gpusim("predict", write("c.csv", self.COUNTERS), "--sheet", sheet, "--json",
                               out, "--html", self.build / "p.html", "--svg", self.build / "p.svg")
        self.assertIn("gv100/hw", text.stdout)
        first = json.loads(out.read_text())["kernels"][0]
        self.assertEqual(first["mix"], "int_fp")
        self.assertAlmostEqual(first["components_W"]["IDLE_COREP"], 10 * 0.28279166)
        self.assertAlmostEqual(first["components_W"]["STATICP"],
                               (18.6179906 + 31 * 0.645228013) * 70 / 80)
        self.assertAlmostEqual(sum(first["components_W"].values()), first["power_W"])
        line = [l for l in text.stdout.splitlines() if l.startswith("MAPE")][0]
        self.assertIn(line, self.run_gpusim("validate", sheet).stdout)
        xml.etree.ElementTree.parse(self.build / "p.svg")

    def test_power_over_time(self):
        rows = "kernel,INT_ACC,start_us,time_us\nwarm,1e8,0,10\nhot,9e8,10,10\nlate,1e8,40,10\n"
        trace, chart = self.build / "trace.json", self.build / "time.svg"
        self.run_gpusim("predict", write("t.csv", rows), "--perfetto", trace, "--svg", chart)
        events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "C"]
        total = [(e["ts"], e["args"]["W"]) for e in events if e["name"] == "total, W"]
        self.assertEqual([round(t, 6) for t, _ in total], [0, 10, 20, 40, 50])
        self.assertGreater(total[1][1], total[0][1])
        self.assertEqual(total[2][1], 0)
        xml.etree.ElementTree.parse(chart)

    def test_scaling(self):
        counters, out = write("c.csv", self.COUNTERS), self.build / "p.json"

        def watts(*options):
            self.run_gpusim("predict", counters, "--json", out, *options)
            return json.loads(out.read_text())["kernels"][0]["components_W"]

        base = watts()
        old = watts("--technology", 16)
        self.assertAlmostEqual(old["INTP"] / base["INTP"], 0.82 / 0.77)
        self.assertAlmostEqual(old["IDLE_COREP"] / base["IDLE_COREP"], 107.9 / 28)
        hot = watts("--temperature", 85, "--leakage-doubling", 20)
        self.assertAlmostEqual(hot["STATICP"] / base["STATICP"], 2)
        slow = watts("--clock", 1447 / 2, "--voltage-follows-clock")
        self.assertAlmostEqual(slow["INTP"] / base["INTP"], 1 / 8)  # V^2 f
        self.assertAlmostEqual(slow["STATICP"] / base["STATICP"], 1 / 2)
        self.assertAlmostEqual(slow["CONSTP"], base["CONSTP"])

    def test_hybrid(self):
        hw = write("hw.csv", "kernel,INT_ACC,L2_RH,time_s\nk,1e9,0,0.01\n")
        sw = write("sw.csv", "kernel,INT_ACC,L2_RH,time_s\nk,5,1e6,0.02\n")
        out = self.build / "p.json"
        self.run_gpusim("predict", hw, "--model", "gv100/hybrid", "--software", sw, "--take",
                        "L2_RH",
                        "--json", out)
        watts = json.loads(out.read_text())["kernels"][0]["components_W"]
        self.assertAlmostEqual(watts["L2CP"], 1e6 * 54.5557e-12 * 3.391355385 / 0.01)

    def test_published_counters(self):
        out = self.build / "p.json"
        self.run_gpusim("predict", self.published / "hw_perf.csv", "--json", out)
        kernels = json.loads(out.read_text())["kernels"]
        gemm = next(k for k in kernels if k["kernel"].startswith("cutlass_perf_test_k3"))
        # The sheet's values; its run of the GEMM kernels is that of the counters.
        for component, watts in (("SHRDP", 12.3639), ("DCP", 6.3777), ("DRAMP", 9.86494),
                                 ("L2CP", 24.83449), ("PIPEP", 24.6912), ("IDLE_COREP", 0.518074)):
            self.assertAlmostEqual(gemm["components_W"][component] / watts, 1, delta=0.001)

    def test_bad_input(self):
        self.assertIn("there is no column of time",
                      self.error_of("predict", write("n.csv", "kernel,INT_ACC\nk,1\n")))
        self.assertIn("is no counter",
                      self.error_of("predict", write("n.csv", "kernel,INTS,time_s\nk,1,1\n")))
        self.assertIn("is negative",
                      self.error_of("predict", write("n.csv", "kernel,INT_ACC,time_s\nk,-1,1\n")))
        good = write("c.csv", self.COUNTERS)
        self.assertIn("there is no model", self.error_of("predict", good, "--model", "tpu"))
        self.assertIn("belong together", self.error_of("predict", good, "--temperature", 80))
        self.assertIn("no scaling to 5 nm", self.error_of("predict", good, "--technology", 5))
        self.assertIn("start_s",
                      self.error_of("predict", good, "--perfetto", self.build / "x.json"))
        self.assertIn("megahertz", self.error_of("predict", good, "--clock", 1.4e9))


def use_python_with_scipy():
    """Debian's Python has Debian's scipy; another one that comes first in PATH may not."""
    debian = "/usr/bin/python3"
    try:
        import scipy  # noqa: F401
    except ImportError:
        if os.access(debian, os.X_OK) and "GPUSIM_TEST_PYTHON" not in os.environ:
            os.environ["GPUSIM_TEST_PYTHON"] = debian
            os.execv(debian, [debian, *sys.argv])


def main():
    use_python_with_scipy()
    Accelwattch.gpusim = sys.argv[1]
    Accelwattch.build = pathlib.Path(sys.argv[2])
    Accelwattch.published = pathlib.Path(sys.argv[3])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])


if __name__ == "__main__":
    main()

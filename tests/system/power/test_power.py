#!/usr/bin/env python3
"""`gpusim power` from outside: record, correct, calibrate, profile, on sources without a GPU.

  test_power.py GPUSIM FOLDER
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

GPUSIM = sys.argv[1]
FOLDER = pathlib.Path(sys.argv[2])

K20 = {"sensor": {"preset": "k20"},
       "device": {"preset": "k20", "kernel": [[0, 158], [5.346, 158]], "starts_s": [1],
                  "length_s": 16}}
C2075 = {"sensor": {"update_period_s": 0.02, "noise_W": 0.4, "quantum_W": 0.001, "poll_s": 0.0001},
         "device": {"idle_W": 76, "kernel": [[0, 170], [0.006, 170]], "seed": 4}}


class PowerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=FOLDER)
        self.at = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, content):
        path = self.at / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def power(self, *args, status=0):
        done = subprocess.run([GPUSIM, "power", *map(str, args)], capture_output=True, text=True,
                              timeout=60, cwd=self.at)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def fails(self, *args):
        text = self.power(*args, status=2)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("gpusim: error: "), text)
        return text

    def record_k20(self):
        self.write("k20.json", K20)
        self.power("record", "--source", "sim:k20.json", "--rate", 10000, "-o", "k20.csv")
        return self.at / "k20.csv"

    def fake_sysfs(self):
        """A CPU package whose counter a thread of ours would have to move: it stands still, at a
        power of 0 W; and a power sensor of 12.5 W."""
        zone = self.at / "sys/class/powercap/intel-rapl:0"
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "energy_uj").write_text("1000000\n")
        (zone / "max_energy_range_uj").write_text("262143328850\n")
        hwmon = self.at / "sys/class/hwmon/hwmon3"
        hwmon.mkdir(parents=True)
        (hwmon / "name").write_text("amdgpu\n")
        (hwmon / "power1_average").write_text("12500000\n")
        return self.at / "sys"

    def test_record_and_correct(self):
        self.record_k20()
        text = self.power("correct", "k20.csv", "--sensor", "k20", "-o", "true.csv")
        joules = float(text.split("corrected")[1].split()[0])
        self.assertAlmostEqual(joules, 158 * 5.346, delta=0.01 * 158 * 5.346)
        head = (self.at / "true.csv").read_text().splitlines()[:3]
        self.assertEqual(head[0], "# gpusim power trace")
        # What was corrected once can be read again.
        self.power("correct", "true.csv", "--sensor", "none")

    def test_calibrate(self):
        self.record_k20()
        self.power("calibrate", "k20.csv", "-o", "profile.json", "--name", "my K20")
        profile = json.loads((self.at / "profile.json").read_text())
        self.assertAlmostEqual(profile["capacitance_s"], 0.84, delta=0.01)
        self.assertAlmostEqual(profile["active_idle_W"], 52.5, delta=0.5)
        self.assertIn("my K20", self.power("correct", "k20.csv", "--sensor", "profile.json"))

    def test_profile(self):
        self.write("c.json", C2075)
        for form in ([], ["--online", "--runs", "600"]):
            self.power("profile", "--source", "sim:c.json", "--svg", "p.svg", "--html", "p.html",
                       "--json", "p.json", "-o", "p.csv", *form)
            result = json.loads((self.at / "p.json").read_text())
            self.assertAlmostEqual(result["energy_J"], 1.02, delta=0.03 * 1.02)
            self.assertAlmostEqual(result["rise_s"], 0, delta=0.0005)
        xml.dom.minidom.parse(str(self.at / "p.svg"))
        self.assertIn("</html>", (self.at / "p.html").read_text())
        self.assertGreater((self.at / "p.csv").read_text().count("\n"), 100)

    def test_sensor(self):
        self.write("c.json", {"sensor": {"update_period_s": 0.02, "lag_s": 0.1, "quantum_W": 0.01,
                                         "poll_s": 0.001, "gain": 1.05, "offset_W": -2},
                              "device": {"idle_W": 60, "kernel": [[0, 190], [1, 190]]}})
        self.power("sensor", "--source", "sim:c.json", "--seconds", 3, "--json", "r.json", "-o",
                   "p.json", "--svg", "s.svg", "--html", "s.html", "--record", "t.csv")
        report = json.loads((self.at / "r.json").read_text())
        self.assertAlmostEqual(report["update_period_s"], 0.02, delta=0.0005)
        self.assertAlmostEqual(report["reference"]["gain"], 1.05, delta=0.005)
        self.assertAlmostEqual(report["reference"]["offset_W"], -2, delta=0.3)
        self.assertAlmostEqual(report["profile"]["capacitance_s"], 0.1, delta=0.012)
        xml.dom.minidom.parse(str(self.at / "s.svg"))
        self.assertIn("C ", self.power("sensor", "--trace", "t.csv"))
        self.power("correct", "t.csv", "--sensor", "p.json", "--svg", "c.svg", "--html", "c.html")
        xml.dom.minidom.parse(str(self.at / "c.svg"))

    def test_record_passes_the_status_on(self):
        sysfs = self.fake_sysfs()
        for status in (0, 7):
            done = subprocess.run(
                [GPUSIM, "power", "record", "--source", "hwmon:amdgpu", "--sysfs", sysfs, "-o",
                 "h.csv", "--rate", "200", "--", "sh", "-c", f"sleep 0.2; echo out; exit {status}"],
                capture_output=True, text=True, timeout=60, cwd=self.at)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(done.stdout, "out\n")
            self.assertIn("mean 12.500 W", done.stderr)
        self.assertIn("# interval: ", (self.at / "h.csv").read_text())

    def test_interrupt_keeps_the_recording(self):
        sysfs = self.fake_sysfs()
        child = subprocess.Popen(
            [GPUSIM, "power", "record", "--source", "hwmon:amdgpu", "--sysfs", sysfs, "-o", "h.csv",
             "--", "sleep", "30"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            cwd=self.at)
        time.sleep(0.7)
        child.send_signal(signal.SIGINT)
        _, text = child.communicate(timeout=20)
        self.assertEqual(child.returncode, 128 + signal.SIGINT, text)
        self.assertIn("interrupted", text)
        recorded = (self.at / "h.csv").read_text()
        self.assertIn("# partial: yes", recorded)
        self.assertGreater(recorded.count("\n"), 20)
        self.power("correct", "h.csv", status=2)  # one value only: no updates to speak of

    def test_a_source_that_dies_keeps_the_recording(self):
        dying = json.loads(json.dumps(K20))
        dying["device"]["fails_at_end"] = True
        self.write("d.json", dying)
        text = self.power("record", "--source", "sim:d.json", "-o", "d.csv", status=2)
        self.assertIn("the source failed after", text)
        self.assertIn("# partial: yes", (self.at / "d.csv").read_text())
        self.power("correct", "d.csv", "--sensor", "k20")

    def test_a_sensor_that_vanishes_lets_the_command_end(self):
        sysfs = self.fake_sysfs()
        file = sysfs / "class/hwmon/hwmon3/power1_average"
        text = self.power("record", "--source", "hwmon:amdgpu", "--sysfs", sysfs, "-o", "h.csv",
                          "--", "sh", "-c", f"sleep 0.2; rm {file}; sleep 0.2; touch done; exit 4",
                          status=4)
        self.assertIn("the source failed after", text)
        self.assertTrue((self.at / "done").exists())
        self.assertGreater((self.at / "h.csv").read_text().count("\n"), 10)

    def test_errors(self):
        self.write("k20.json", K20)
        self.write("empty.csv", "")
        self.write("unsorted.csv", "time_s,power_W\n0,1\n2,2\n1,3\n3,4\n")
        self.assertIn("no such source", self.fails("record", "--source", "watts", "--", "true"))
        self.write("still.json", {"device": {"idle_W": 60}})
        self.assertIn("it never ends", self.fails("record", "--source", "sim:still.json"))
        done = subprocess.run([GPUSIM, "power", "record", "--source", "sim:still.json", "--seconds",
                               "3"], capture_output=True, text=True, timeout=60, cwd=self.at)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("how far it is off is not known", done.stderr)
        self.assertNotIn("+-", done.stderr)
        self.write("empty.json", {})
        self.assertIn("what it draws", self.fails("record", "--source", "sim:empty.json"))
        self.assertIn("virtual time",
                      self.fails("record", "--source", "sim:k20.json", "--", "true"))
        self.assertIn("No such file", self.fails("record", "--source", "csv:none.csv"))
        self.assertIn("empty", self.fails("correct", "empty.csv"))
        self.assertIn("--sort", self.fails("correct", "unsorted.csv"))
        self.power("correct", "unsorted.csv", "--sort")
        self.assertIn("no such sensor profile", self.fails("correct", "empty.csv", "--sensor", "x"))
        self.assertIn("intervals", self.fails("profile", "--trace", "unsorted.csv", "--sort",
                                              "--interval", 1))
        sysfs = self.fake_sysfs()
        self.assertIn("amdgpu", self.fails("record", "--source", "hwmon:none", "--sysfs", sysfs,
                                           "--seconds", 1))
        self.assertIn("/no/program", self.fails("record", "--source", "hwmon:amdgpu", "--sysfs",
                                                sysfs, "-o", "x.csv", "--", "/no/program"))
        self.assertFalse((self.at / "x.csv").exists())
        self.assertIn("-o", self.fails("correct", "unsorted.csv", "--sort", "-o", "/no/folder/x"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""`gpusim doctor`: what it says of this machine, and of ones that lack something.

  test_doctor.py GPUSIM [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

STATES = {"good", "limited", "absent", "broken"}


class Doctor(unittest.TestCase):
    gpusim: pathlib.Path

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.root = self.folder / "root"
        self.put("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 6291456 kB\n"
                                 "MemAvailable: 6291456 kB\n")
        self.put("proc/cpuinfo", "processor : 0\nflags : fpu avx2 fma bmi2\n")
        self.put("proc/sys/vm/max_map_count", "65530\n")
        self.put("proc/sys/vm/overcommit_memory", "0\n")
        self.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def doctor(self, *words, status=0, before=(), **variables):
        environment = {**os.environ, **variables}
        done = subprocess.run([*before, str(self.gpusim), "doctor", *map(str, words)],
                              capture_output=True, text=True, timeout=100, check=False,
                              cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def checks(self, *words, root=True, **keywords):
        words = [*words, "--json", *(["--root", self.root] if root else [])]
        answer = json.loads(self.doctor(*words, **keywords))
        for check in answer["checks"]:
            self.assertEqual(set(check), {"area", "name", "state", "value", "advice"})
            self.assertIn(check["state"], STATES)
            self.assertTrue(check["value"], check)
            for text in (check["value"], check["advice"]):
                self.assertNotIn("\n", text)
            # Who lacks something is told what to do.
            if check["state"] != "good":
                self.assertTrue(check["advice"], check)
        self.assertEqual(answer["can_run"],
                         all(check["state"] != "broken" for check in answer["checks"]))
        return {(check["area"], check["name"]): check for check in answer["checks"]}

    def test_this_machine(self):
        text = self.doctor()
        for area in ("Processor", "Memory", "Limits", "GPU", "Power sensors", "Counters",
                     "Compilers", "Other programs", "Folders"):
            self.assertIn(f"\n{area}\n", text)
        self.assertIn("gpusim can run here", text)
        self.assertLess(len(text.splitlines()), 90)
        checks = self.checks(root=False)
        for (area, name), check in checks.items():
            self.assertIn(name, text)
            if check["advice"]:
                self.assertIn("-> " + check["advice"], text)
        info = json.loads(subprocess.run([str(self.gpusim), "info", "--json"], check=True,
                                         capture_output=True, text=True).stdout)
        self.assertIn(info["processor"], checks["Processor", "processor"]["value"])
        for backend in info["backends"]:
            check = checks.get(("Processor", f"backend {backend['name']}")) or checks.get(
                ("GPU", f"backend {backend['name']}"))
            if check:
                self.assertEqual(check["state"] == "good", backend["available"])
                self.assertEqual(check["value"], backend.get("device", backend.get("reason")))

    def test_what_is_said_of_cores_is_true(self):
        self.put("proc/meminfo", "MemTotal: 1048576 kB\nMemFree: 1048576 kB\n"
                                 "MemAvailable: 1048576 kB\n")
        some = self.checks()["Memory", "cores that fit"]
        self.put("proc/meminfo", "MemTotal: 65536 kB\nMemFree: 8192 kB\nMemAvailable: 8192 kB\n")
        few = self.checks()
        self.assertEqual(few["Memory", "memory"]["state"], "limited")
        number = [int(check["value"].split()[0].replace(",", ""))
                  for check in (few["Memory", "cores that fit"], some)]
        self.assertLess(100, number[0])
        self.assertLess(number[0], number[1])

    def test_no_memory(self):
        self.put("proc/meminfo", "MemTotal: 65536 kB\nMemFree: 0 kB\nMemAvailable: 0 kB\n")
        checks = self.checks(status=1)
        self.assertEqual(checks["Memory", "cores that fit"]["state"], "broken")
        self.assertIn("cannot run here", self.doctor("--root", self.root, status=1))

    def test_a_control_group_counts(self):
        self.put("proc/self/cgroup", "0::/\n")
        self.put("sys/fs/cgroup/memory.max", f"{256 << 20}\n")
        self.put("sys/fs/cgroup/memory.current", f"{128 << 20}\n")
        self.put("sys/fs/cgroup/memory.stat", "inactive_file 0\n")
        self.assertIn("128 MiB available", self.checks()["Memory", "memory"]["value"])

    def test_settings_of_the_kernel(self):
        good = self.checks()
        for name in ("vm.max_map_count", "vm.overcommit_memory"):
            self.assertEqual(good["Limits", name]["state"], "good")
        self.assertEqual(good["Memory", "huge pages"]["value"], "transparent: madvise")
        self.put("proc/sys/vm/max_map_count", "1000\n")
        self.put("proc/sys/vm/overcommit_memory", "2\n")
        self.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
        checks = self.checks()
        self.assertIn("sysctl vm.max_map_count", checks["Limits", "vm.max_map_count"]["advice"])
        self.assertIn("vm.overcommit_memory=0",
                      checks["Limits", "vm.overcommit_memory"]["advice"])
        self.assertIn("transparent_hugepage", checks["Memory", "huge pages"]["advice"])

    def test_a_machine_without_proc(self):
        checks = self.checks("--root", self.folder / "nothing", root=False)
        self.assertEqual(checks["Memory", "memory"]["state"], "limited")
        self.assertEqual(checks["Processor", "vectors"]["state"], "limited")
        self.assertEqual(checks["Memory", "huge pages"]["state"], "limited")
        self.assertNotIn(("Limits", "vm.max_map_count"), checks)

    def test_limits_of_the_process(self):
        checks = self.checks(before=["bash", "-c", 'ulimit -n 100; ulimit -v 40000000; exec "$@"',
                                     "-"])
        self.assertIn("limits.conf", checks["Limits", "open files"]["advice"])
        self.assertTrue(checks["Limits", "open files"]["value"].startswith("100 "))
        self.assertIn("ulimit -v unlimited", checks["Limits", "address space"]["advice"])

    def test_programs_are_those_in_the_path(self):
        empty = self.checks(PATH=str(self.folder))
        for name in ("QEMU", "debugger"):
            self.assertEqual(empty["Other programs", name]["state"], "absent")
        self.assertEqual(empty["Compilers", "aarch64"]["state"], "absent")
        for name in ("qemu-system-aarch64", "gdb-multiarch", "aarch64-linux-gnu-gcc"):
            (self.folder / name).write_text("")
        # Not to be executed.
        self.assertEqual(self.checks(PATH=str(self.folder))["Compilers", "aarch64"]["state"],
                         "absent")
        for name in ("qemu-system-aarch64", "gdb-multiarch", "aarch64-linux-gnu-gcc"):
            (self.folder / name).chmod(0o755)
        checks = self.checks(PATH=f"/no/such/folder:{self.folder}")
        self.assertEqual(checks["Other programs", "QEMU"]["value"],
                         str(self.folder / "qemu-system-aarch64"))
        self.assertEqual(checks["Compilers", "aarch64"]["state"], "good")
        self.assertEqual(checks["Other programs", "debugger"]["state"], "good")

    def test_sensors(self):
        none = self.checks("--nvml-library", "/no/such/library.so")
        for name in ("RAPL", "hwmon", "NVML"):
            self.assertEqual(none["Power sensors", name]["state"], "absent")
        zone = "sys/class/powercap/intel-rapl:0/"
        self.put(zone + "name", "package-0\n")
        self.put(zone + "energy_uj", "1000000\n")
        self.put(zone + "max_energy_range_uj", "262143328850\n")
        self.put("sys/class/hwmon/hwmon0/name", "power_meter\n")
        self.put("sys/class/hwmon/hwmon0/power1_average", "120000000\n")
        self.put("sys/class/hwmon/hwmon1/name", "coretemp\n")
        self.put("sys/class/hwmon/hwmon1/temp1_input", "40000\n")
        checks = self.checks()
        self.assertEqual(checks["Power sensors", "RAPL"]["state"], "good")
        self.assertEqual(checks["Power sensors", "hwmon"]["value"], "power_meter")

    def test_the_driver_of_a_gpu(self):
        self.assertEqual(self.checks()["GPU", "driver"]["state"], "absent")
        self.put("proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56\n")
        driver = self.checks()["GPU", "driver"]
        self.assertEqual(driver["state"], "limited")
        self.assertIn("550.54.15", driver["value"])
        self.put("dev/nvidiactl", "")
        self.assertEqual(self.checks()["GPU", "driver"]["value"], "550.54.15")

    def test_the_cache_folder(self):
        place = self.folder / "cache"
        place.mkdir()
        good = self.checks(XDG_CACHE_HOME=str(place))["Folders", "cache"]
        self.assertEqual((good["state"], good["value"]), ("good", str(place / "gpusim")))
        # A file in its place; permissions do not hold root back.
        (place / "gpusim").write_text("")
        bad = self.checks(XDG_CACHE_HOME=str(place))["Folders", "cache"]
        self.assertEqual(bad["state"], "limited")
        self.assertIn("XDG_CACHE_HOME", bad["advice"])
        if os.geteuid() != 0:
            (place / "gpusim").unlink()
            place.chmod(stat.S_IRUSR | stat.S_IXUSR)
            self.assertEqual(self.checks(XDG_CACHE_HOME=str(place))["Folders", "cache"]["state"],
                             "limited")

    def test_nothing_else_is_taken(self):
        done = subprocess.run([str(self.gpusim), "doctor", "x"], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    Doctor.gpusim = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

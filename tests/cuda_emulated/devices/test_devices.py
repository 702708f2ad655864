#!/usr/bin/env python3
"""--device and --devices, on devices that are emulated.

  test_devices.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from own_program import CC, NOT_COMPARED, OwnProgram  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STOPPED, REACHED_LIMIT = 123, 124  # docs/cli.md: --checkpoint-stop, --max-instructions
PRIVATE = ["--memory", "private", "--cores", 150, "--memory-size", "1M", "--stack-size", "64K"]


class Devices(OwnProgram):
    def results(self, chips, *options):
        stats = self.folder / "stats.json"
        done = self.gpusim_run(chips, "run", "--quiet", "--stats", stats, "--per-core", *options)
        self.assertEqual(done.stderr, "")
        counts = {k: v for k, v in json.loads(stats.read_text()).items() if k not in NOT_COMPARED}
        return done.returncode, done.stdout, counts

    def test_private_cores_on_several_devices(self):
        options = [*PRIVATE, self.program]
        want = self.results("sm_90", "--backend", "scalar", *options)
        self.assertEqual(len(set(want[1].splitlines())), 150)
        for chips, devices in [("sm_90", "0"), ("sm_90,sm_90", "1"), ("sm_90,sm_90", "all"),
                               ("sm_90,sm_90,sm_90", "2,0,1")]:
            with self.subTest(devices=devices):
                self.assertEqual(self.results(chips, "--devices", devices, *options), want)

    def test_more_slices_allocate_no_more(self):
        def allocations(slice_length):
            done = self.gpusim_run(
                "sm_90", "run", "--quiet", "--backend", "cuda", "--cores", 8, "--memory", "private",
                "--memory-size", "1M", "--slice", slice_length, "--max-instructions", 200_000,
                "--timeline", "timeline.json", self.program,
                GPUSIM_EMULATED_ALLOCATIONS="allocations")
            self.assertEqual(done.returncode, REACHED_LIMIT, done.stderr)
            return int((self.folder / "allocations").read_text())

        few, many = allocations(100_000), allocations(1_000)
        self.assertGreater(few, 10)
        self.assertEqual(few, many)

    def test_a_checkpoint_goes_on_on_other_devices(self):
        options = [*PRIVATE, "--slice", 20_000, self.program]
        want = self.results("sm_90", "--backend", "scalar", *options)
        file = self.folder / "run.gsc"
        for before, after in [("0", "0,1,2"), ("0,1,2", "1"), ("all", "1,2")]:
            with self.subTest(before=before, after=after):
                done = self.gpusim_run("sm_90,sm_90,sm_90", "run", "--quiet", "--devices", before,
                                       "--stats", "before.json", "--per-core", *options,
                                       "--checkpoint", file, "--checkpoint-every", 2_000_000,
                                       "--checkpoint-stop")
                self.assertEqual((done.returncode, done.stderr), (STOPPED, ""))
                got = self.results("sm_90,sm_90,sm_90", "--devices", after, "--resume", file)
                # Which process prints first depends on where slices begin.
                lines = (done.stdout + got[1]).splitlines()
                self.assertEqual((got[0], sorted(lines), got[2]),
                                 (want[0], sorted(want[1].splitlines()), want[2]))

    def test_what_is_refused(self):
        def refused(chips, *options):
            done = self.gpusim_run(chips, "run", "--cores", 200, *options, self.program)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            return done.stderr.removeprefix("gpusim: error: ").strip()

        two = "sm_90,sm_90"
        self.assertEqual(refused(two, "--devices", "0,1"),
                         "--devices 0,1: cores that share memory stay on one GPU; several are for "
                         "--memory private")
        self.assertEqual(refused(two, "--device", "2"),
                         "--devices 2: there is no GPU 2; there are 0 to 1 (gpusim info)")
        self.assertEqual(refused(two, "--devices", "1,1"), "--devices 1,1: 1 stands there twice")
        self.assertRegex(refused("sm_90,sm_75", "--device", "1"),
                         "^--devices 1: GPU 1, emulated sm_75.*: this build has no machine code")
        self.assertRegex(refused("sm_75", "--devices", "all"),
                         "^--devices all: emulated sm_75.*: this build has no machine code for it")
        self.assertEqual(refused("none", "--device", "0"), "--devices 0: no GPU in this machine")
        self.assertEqual(refused(two, "--device", "0", "--backend", "simd"),
                         "--devices 0: backend simd has no devices to choose from; they are for "
                         "backend cuda")
        for text in ("x", "-1", "0-1", "1 "):
            self.assertIn("expected all, or numbers such as 0 or 0,2",
                          refused(two, f"--devices={text}"))
        self.assertIn("has an empty element", refused(two, "--devices=0,,1"))

    def test_a_study_is_shared_out(self):
        source, program = self.folder / "nothing.c", self.folder / "nothing"
        source.write_text("int main(void) { return 0; }\n")
        subprocess.run([*CC, source, "-o", program], check=True)

        def study(chips, *options):
            return self.gpusim_run(chips, "sweep", program, "--memory", "private", "--cores",
                                   "1,2,3", "--backend", "cuda", "--repeat", 2,
                                   "--run-option=--memory-size=1M", "--run-option=--stack-size=64K",
                                   "--scaling", "none", "--quiet", *options)

        done = study("sm_90,sm_90,sm_90", "--devices", "0,2", "-o", "two")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        points = [json.loads(p.read_text()) for p in (self.folder / "two/points").glob("*.json")]
        self.assertEqual(len(points), 6)
        named = [next(w for w in p["command"] if w.startswith("--device")) for p in points]
        self.assertEqual(set(named), {"--device=0", "--device=2"})
        # The same study on one of them has nothing left to do.
        again = study("sm_90", "--devices", "all", "-o", "two")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        # Who helps has GPUs of its own.
        lost = sorted((self.folder / "two/points").glob("*.json"))[1:]
        for point in lost:
            point.unlink()
        helped = self.gpusim_run("sm_90,sm_90,sm_90", "sweep", "--join", "two", "--devices", "0,1",
                                 "--quiet")
        self.assertEqual((helped.returncode, helped.stderr), (0, ""))
        named = [next(w for w in json.loads(p.read_text())["command"] if w.startswith("--device"))
                 for p in lost]
        self.assertEqual(set(named), {"--device=0", "--device=1"})
        refused = self.gpusim_run("sm_90", "sweep", "--join", "two", "--devices", "1", "--quiet")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("there is no GPU 1", refused.stderr)
        for options, why in [(["--devices", "3"], "there is no GPU 3"),
                             (["--devices", "0", "--run-option=--device=1"], "one of the two"),
                             (["--devices", "0", "--slurm", 2], "not with --slurm")]:
            refused = study("sm_90,sm_90,sm_90", *options, "-o", "refused")
            self.assertEqual(refused.returncode, 2)
            self.assertIn(why, refused.stderr)
            self.assertFalse((self.folder / "refused").exists())

    def test_dynamic_programs_are_for_other_backends(self):
        program = self.build / "dynamic"
        subprocess.run([CC[0], HERE / "own.c", "-o", program], check=True)
        done = self.gpusim_run("sm_90", "run", "--quiet", "--backend", "cuda", program)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"gpusim: error: {program}: a dynamically linked program does not "
                             "work on backend cuda: use simd or scalar, or link it with -static\n"))
        done = self.gpusim_run("sm_90", "run", "--quiet", "--backend", "auto", program)
        self.assertEqual(done.stderr, "")

    def test_info_lists_devices(self):
        backends = json.loads(self.gpusim_run("sm_90,sm_75", "info", "--json").stdout)["backends"]
        cuda = next(b for b in backends if b["name"] == "cuda")
        self.assertEqual([d["available"] for d in cuda["devices"]], [True, False])
        self.assertIn("no machine code", cuda["devices"][1]["state"])
        self.assertIn("device 1: emulated sm_75", self.gpusim_run("sm_90,sm_75", "info").stdout)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in ("gpusim", "build"):
        setattr(Devices, name, pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()

#!/usr/bin/env python3
"""Private machines in parts: `gpusim run --part`, `gpusim merge` (docs/many-machines.md).

  test_parts.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
Parts under mpirun only where it is installed.
"""
import json
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from shared_study import SharedStudyCase, main  # noqa: E402

MEASURED = ("seconds", "mips")


class Parts(SharedStudyCase):
    def call(self, *words, status=0):
        done = subprocess.run([self.gpusim, *map(str, words)], capture_output=True, text=True,
                              timeout=120, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def function(self, name, *arguments):
        words = [self.guest, "--entry", name, "--memory", "private", "--quiet", "--per-core"]
        for argument in ("@core", "@cores", *arguments):
            words += ["--arg", argument]
        return words

    def stats(self, name):
        return json.loads((self.folder / name).read_text())

    def parts_of(self, words, cores, count, statuses=None):
        for k in range(1, count + 1):
            self.call("run", *words, "--cores", cores, "--part", f"{k}/{count}", "--stats",
                      "s-{part}.json", status=(statuses or [0] * count)[k - 1])
        return [f"s-{k}-of-{count}.json" for k in range(1, count + 1)]

    def check_same(self, whole, merged):
        for name in MEASURED:
            self.assertGreater(merged.pop(name), 0)
            whole.pop(name)
        self.assertEqual(list(whole), list(merged))
        self.assertEqual(json.dumps(whole, indent=1), json.dumps(merged, indent=1))

    def test_parts_are_the_whole(self):
        """Also in parts that are no multiple of a group, on both backends."""
        words = self.function("spread", 65536, 100)
        for cores, count, more in ((300, 3, []), (10, 4, []), (300, 7, ["--backend", "scalar"]),
                                   (256, 1, [])):
            with self.subTest(cores=cores, count=count, more=more):
                self.call("run", *words, *more, "--cores", cores, "--stats", "whole.json")
                parts = self.parts_of([*words, *more], cores, count)
                done = self.call("merge", *reversed(parts), "-o", "all.json")
                self.assertRegex(done.stdout, rf"{cores} cores in {count} parts: \d+ guest")
                whole, merged = self.stats("whole.json"), self.stats("all.json")
                first = [self.stats(p)["part"]["first_core"] for p in parts]
                if cores == 300 and count == 3:
                    self.assertEqual(first, [0, 64, 192])
                elif cores < 64 * count:  # lanes are not the same groups
                    for stats in (whole, merged):
                        stats.pop("divergence")
                        stats.pop("waiting")
                self.check_same(whole, merged)
                # What reads statistics reads these.
                estimate = self.call("energy", "estimate", "all.json", "--target", "fermi").stdout
                self.assertIn("fermi", estimate)

    def test_processes(self):
        """Whole programs: numbers of processes and addresses are those of the whole machine."""
        source = self.folder / "who.c"
        source.write_text("#include <stdio.h>\n#include <unistd.h>\nint main(void)"
                          "{ int x; printf(\"%d %p\\n\", (int)getpid(), (void *)&x);"
                          " return getpid() % 64 == 5; }\n")
        subprocess.run(["aarch64-linux-gnu-gcc", "-static", "-O1", source, "-o",
                        self.folder / "who"], check=True)
        words = ["who", "--memory", "private", "--cores", 512, "--quiet"]
        whole = self.call("run", *words, "--stats", "whole.json", status=1)
        lines = []
        for k in (1, 2, 3, 4):
            part = self.call("run", *words, "--part", f"{k}/4", "--stats", f"p{k}.json", status=1)
            lines += part.stdout.splitlines()
        self.assertEqual(len(set(lines)), 512)
        self.assertEqual(sorted(lines), sorted(whole.stdout.splitlines()))
        self.call("merge", *[f"p{k}.json" for k in (1, 2, 3, 4)], "-o", "all.json", status=1)
        self.check_same(self.stats("whole.json"), self.stats("all.json"))

    def test_cores_that_fail(self):
        words = self.function("few", 4)  # core 1 faults
        self.call("run", *words, "--cores", 192, "--stats", "whole.json", status=139)
        parts = self.parts_of(words, 192, 3, [139, 0, 0])
        self.call("merge", *parts, "-o", "all.json", status=1)
        self.check_same(self.stats("whole.json"), self.stats("all.json"))
        # Cores have the numbers of the whole machine.
        (self.folder / "f.c").write_text("void f(long core) { if (core >= 70) "
                                         "*(volatile long *)core = 0; }\n")
        subprocess.run(["aarch64-linux-gnu-gcc", "-static", "-nostdlib", "-O1", "-Wl,--entry=f",
                        self.folder / "f.c", "-o", self.folder / "f.elf"], check=True)
        words = ["f.elf", "--entry", "f", "--arg", "@core", "--memory", "private"]
        done = self.call("run", *words, "--cores", 192, "--part", "2/3", "--stats", "s-{part}.json",
                         status=139)
        self.assertIn("cores 70-127 (58 cores): fault", done.stderr)
        self.call("run", *words, "--cores", 192, "--part", "1/3", "--stats", "s-{part}.json")
        self.call("run", *words, "--cores", 192, "--part", "3/3", "--stats", "s-{part}.json",
                  status=139)
        self.call("run", *words, "--cores", 192, "--stats", "whole.json", status=139)
        self.call("merge", *[f"s-{k}-of-3.json" for k in (1, 2, 3)], "-o", "all.json", status=1)
        self.check_same(self.stats("whole.json"), self.stats("all.json"))
        report, = self.stats("all.json")["fault_reports"]
        self.assertEqual((report["cores"], report["core_list"]), (122, "70-191"))

    def test_mpirun(self):
        if not shutil.which("mpirun"):
            return
        words = self.function("spread", 4096, 10)
        self.call("run", *words, "--cores", 256, "--stats", "whole.json")
        subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", self.gpusim,
                        "run", *map(str, words), "--cores", "256", "--part", "auto", "--stats",
                        "s-{part}.json"], check=True, cwd=self.folder, timeout=60)
        parts = sorted(p.name for p in self.folder.glob("s-*-of-3.json"))
        self.assertEqual(len(parts), 3)
        self.call("merge", *parts, "-o", "all.json", "--quiet")
        self.check_same(self.stats("whole.json"), self.stats("all.json"))
        # A rank that is missing, or another run's.
        self.assertIn("of 3 parts 2 is missing: run the same command with --part 2/3",
                      self.call("merge", parts[0], parts[2], "-o", "x.json", status=2).stderr)

    def test_a_study_has_no_parts(self):
        """Ranks that share points would each run another part of them."""
        options = ["--run-option=--memory=private", "--run-option=--part", "--run-option=auto"]
        done = self.call("sweep", self.guest, "--cores", "128", "-o", "study", *options, status=2)
        self.assertIn("no --part. Share out the cores of one run by `mpirun gpusim run --part "
                      "auto`, and put its parts together by `gpusim merge`", done.stderr)
        self.assertFalse((self.folder / "study" / "study.json").exists())

    def test_what_is_refused(self):
        words = self.function("spread", 4096, 10)
        one, two = self.parts_of(words, 128, 2)
        self.call("run", *self.function("spread", 4096, 11), "--cores", 128, "--part", "2/2",
                  "--stats", "other.json")
        self.call("run", *words, "--cores", 128, "--stats", "whole.json")
        (self.folder / "text.json").write_text("x")
        damaged = self.stats(two)
        for keys, value in ((("part", "number"), 3), (("part",), 1), (("classes",), 1),
                            (("faults",), [{"report": 7}]), (("seconds",), "x"),
                            (("functions",), [1]), (("fault_reports",), [{}])):
            copy = json.loads(json.dumps(damaged))
            place = copy
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = value
            name = "-".join(keys) + ".json"
            (self.folder / name).write_text(json.dumps(copy))
            with self.subTest(keys=keys):
                self.assertRegex(self.call("merge", one, name, "-o", "x.json", status=2).stderr,
                                 rf"\Agpusim: error: [^\n]*{name}[^\n]*\n\Z")
        for files, part in (([one], "of 2 parts 2 is missing"), ([one, one], "are the same part"),
                            ([one, "other.json"], '"call" of their "part" differs'),
                            (["whole.json"], "not the statistics of a part"),
                            (["text.json"], "text.json"), (["none.json"], "none.json")):
            with self.subTest(files=files):
                self.assertIn(part, self.call("merge", *files, "-o", "x.json", status=2).stderr)
        self.assertFalse((self.folder / "x.json").exists())
        for more, part in ((["--part", "0/2"], "expected K/N"), (["--part", "3/2"], "expected K/N"),
                           (["--part", "1"], "expected K/N"), (["--part", "1/2x"], "expected K/N"),
                           (["--part", "1/129"], "128 cores have no 129 parts"),
                           (["--part", "auto"], "no process of mpirun"),
                           (["--part", "1/2", "--energy", "fermi"], "gpusim merge"),
                           (["--part", "1/2", "--chip", "tutorial-4"], "--chip looks at a whole")):
            with self.subTest(more=more):
                self.assertIn(part, self.call("run", *words, "--cores", 128, *more,
                                              status=2).stderr)
        self.assertIn("only with --memory private",
                      self.call("run", self.guest, "--cores", 2, "--part", "1/2", status=2).stderr)


if __name__ == "__main__":
    main(Parts)

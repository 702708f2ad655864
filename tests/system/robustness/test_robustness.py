#!/usr/bin/env python3
"""What the machine refuses gpusim, and what no option takes: streams that are closed or full,
signals that end a run, limits of file sizes and memory, values of options that are none.

  test_robustness.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
TIMEOUT_S = 120
USER_ERROR = 2
SIGPIPE_STATUS = 128 + signal.SIGPIPE


class Robustness(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        harness.build_all(
            {"guests.elf": [CROSS, "-O1", "-g", "-w", *BARE, HERE.parent / "cli" / "guests.c"],
             "hungry.elf": [CROSS, "-O1", "-g", "-w", *BARE, HERE / "hungry.c"]},
            harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guests, cls.hungry = cls.build / "guests.elf", cls.build / "hungry.elf"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.stats_path = self.folder / "stats.json"
        self.full = os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
        self.addCleanup(os.close, self.full)

    def gpusim_run(self, *words, **options):
        done = subprocess.run([str(self.gpusim), *map(str, words)], stdin=subprocess.DEVNULL,
                              timeout=TIMEOUT_S, cwd=self.folder,
                              **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
        self.last = (f"{words}: status {done.returncode}\n"
                     f"{(done.stderr or b'').decode(errors='replace')[:2000]}")
        self.assertNotIn(b"Sanitizer", done.stderr or b"", self.last)
        return done

    def refused(self, *words):
        done = self.gpusim_run(*words)
        self.assertEqual(done.returncode, USER_ERROR, self.last)
        self.assertEqual(done.stdout, b"", self.last)
        self.assertRegex(done.stderr.decode(), r"\Agpusim: error: [^\n]{8,}\n\Z", self.last)
        return done.stderr.decode()

    # Streams

    LOUD = ["--profile", "--energy", "fermi,et-soc1", "--simulated-time"]

    def test_standard_error_closed_or_full(self):
        """No message is worth a run: what it computed and wrote is as ever."""
        for name, broken in (("closed", {"preexec_fn": lambda: os.close(2)}),
                             ("full", {"stderr": self.full})):
            with self.subTest(name):
                done = self.gpusim_run("run", self.guests, "--cores", 4, *self.LOUD, "--stats",
                                       self.stats_path, **{"stderr": None, **broken})
                self.assertEqual((done.returncode, done.stdout), (0, b"xxxx"))
                self.assertEqual(json.loads(self.stats_path.read_text())["exit_status"], 0)
                for words, status in ((["run", "none.elf"], USER_ERROR), (["run"], USER_ERROR),
                                      (["run", self.guests, "--entry", "fault_by_core", "--arg",
                                        "@core", "--cores", 9], 139),
                                      (["run", self.guests, "--entry", "unknown_call"], 0)):
                    done = self.gpusim_run(*words, **{"stderr": None, **broken})
                    self.assertEqual(done.returncode, status, self.last)

    def test_nothing_is_written_into_a_file_by_mistake(self):
        """With standard error closed the first file that is opened must not get its number."""
        done = self.gpusim_run("run", self.guests, "--cores", 4, *self.LOUD, "--stats",
                               self.stats_path, "--timeline", "t.json", stderr=None,
                               preexec_fn=lambda: (os.close(0), os.close(2)))
        self.assertEqual(done.returncode, 0)
        json.loads(self.stats_path.read_text())
        json.loads((self.folder / "t.json").read_text())

    def test_standard_output_closed_or_full(self):
        for words in (["info"], ["info", "--json"], ["--help"], ["run", "--help"], ["--version"],
                      ["disasm", self.guests], ["disasm", "--json", self.guests],
                      ["energy", "targets"], ["info", "--program", self.guests],
                      ["translate", self.guests, "-o", "m.gsm"]):
            with self.subTest(" ".join(map(str, words))):
                done = self.gpusim_run(*words, stdout=self.full)
                self.assertEqual(done.returncode, USER_ERROR, self.last)
                self.assertEqual(done.stderr.decode(), "gpusim: error: standard output: No space "
                                                       "left on device\n", self.last)
                done = self.gpusim_run(*words, stdout=None, preexec_fn=lambda: os.close(1))
                self.assertEqual(done.returncode, USER_ERROR, self.last)
                self.assertIn(b"standard output: Bad file descriptor", done.stderr)

    def test_a_reader_that_goes_away_is_no_error(self):
        for words in (["info"], ["disasm", self.guests]):
            read_end, write_end = os.pipe()
            os.close(read_end)
            try:
                done = self.gpusim_run(
                    *words, stdout=write_end,
                    preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
            finally:
                os.close(write_end)
            self.assertEqual((done.returncode, done.stderr), (SIGPIPE_STATUS, b""), self.last)

    def test_what_a_guest_wrote_last_is_not_lost_in_silence(self):
        done = self.gpusim_run("run", self.guests, stdout=self.full)
        self.assertEqual(done.returncode, USER_ERROR, self.last)
        self.assertIn(b"output is lost: No space left on device", done.stderr)

    # Limits

    def test_files_beyond_the_limit_of_their_size(self):
        """RLIMIT_FSIZE is an error of the option that names the file, and leaves no half of it."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

        for option, name in (("--stats", "s.json"), ("--timeline", "t.json"),
                             ("--profile=p.json", None)):
            words = [option] if name is None else [option, name]
            with self.subTest(option):
                done = self.gpusim_run("run", self.guests, *words, preexec_fn=limit)
                self.assertEqual(done.returncode, USER_ERROR, self.last)
                self.assertRegex(done.stderr.decode(),
                                 rf"error: {option.split('=')[0]} .*: File too large\n")
                self.assertEqual(list(self.folder.iterdir()), [])
        done = self.gpusim_run("translate", self.guests, "-o", "m.gsm", preexec_fn=limit)
        self.assertEqual(done.returncode, USER_ERROR, self.last)
        self.assertIn(b"File too large", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    # Memory

    def peak_mib(self, *words):
        """Runs gpusim; its status, its messages and the most memory that it had."""
        path = self.folder / "stderr"
        with open(path, "wb") as stderr:
            process = subprocess.Popen([self.gpusim, *map(str, words)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=stderr, cwd=self.folder)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        said = path.read_text()
        self.last = f"{words}: status {process.returncode}, {usage.ru_maxrss >> 10} MiB\n{said}"
        return process.returncode, said, usage.ru_maxrss >> 10

    def test_what_cannot_fit_is_refused_before_it_takes_memory(self):
        _, _, usual = self.peak_mib("run", self.guests)
        for options in (["--cores", 1 << 24], ["--stack-size", "1T"],
                        ["--stack-size", "1T", "--memory", "private", "--memory-size", "2T"],
                        ["--cores", 1_000_000, "--stats", self.stats_path, "--per-core"]):
            with self.subTest(options):
                status, said, peak = self.peak_mib("run", self.guests, "--backend", "simd",
                                                   "--host-memory", "1G", *options)
                self.assertEqual(status, USER_ERROR, self.last)
                self.assertRegex(said, r"\Agpusim: error: \d+ cores take [0-9.]+ GiB of memory "
                                       r"before they begin \(.*\), more than "
                                       r"--host-memory 1.0 GiB: [^\n]*\n\Z")
                self.assertLess(peak, usual + 200, self.last)
                self.assertFalse(self.stats_path.exists())
        status, _, _ = self.peak_mib("run", self.guests, "--cores", 1000, "--host-memory", "1G")
        self.assertEqual(status, 9, self.last)  # core 7's own

    def test_guests_that_take_too_much_end_the_run_alone(self):
        """Without end: recursion on all cores, and a store to page after page."""
        _, _, usual = self.peak_mib("run", self.guests)
        budget = usual + 150
        for backend in ("simd", "scalar"):
            for entry, options in (("recurse", ["--stack-size", "8M"]),
                                   ("recurse", ["--memory", "private", "--memory-size", "16M"]),
                                   ("touch_all", ["--memory-size", "16G"])):
                with self.subTest(f"{backend} {entry} {options}"):
                    self.stats_path.unlink(missing_ok=True)
                    status, said, peak = self.peak_mib(
                        "run", self.hungry, "--entry", entry, "--cores", 2000, "--backend", backend,
                        "--host-memory", f"{budget}M", "--stats", self.stats_path, "--profile",
                        *options)
                    self.assertEqual(status, USER_ERROR, self.last)
                    self.assertIn(f"out of memory: the guests' memory and gpusim's exceed "
                                  f"--host-memory {budget}.0 MiB", said)
                    if entry == "recurse":
                        self.assertRegex(said, r"stacks of 2000 cores [0-9.]+ [MG]iB, the deepest")
                    self.assertIn("profile of", said)
                    stats = json.loads(self.stats_path.read_text())
                    self.assertEqual(stats["exit_status"], USER_ERROR)
                    self.assertGreater(stats["guest_instructions"], 0)
                    # With room for a busy machine; without a bound each takes over 7 GiB.
                    self.assertLess(peak, 4 * budget, self.last)

    # Signals

    def begin_endless(self, *options, ignored=()):
        def ignore():
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        process = subprocess.Popen(
            [self.gpusim, "run", self.guests, "--entry", "endless", "--cores", "64", "--stats",
             self.stats_path, *options], stderr=subprocess.PIPE, cwd=self.folder, preexec_fn=ignore)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            caught = [line for line in status.read_text().splitlines() if "SigCgt" in line][0]
            if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return process
            time.sleep(0.01)
        raise AssertionError("SIGTERM is not caught")

    def test_signals_end_a_run_as_ctrl_c_does(self):
        """Batch systems send SIGTERM: what was counted so far is written."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number):
                self.stats_path.unlink(missing_ok=True)
                process = self.begin_endless(*self.LOUD, "--timeline", "t.json", "--quiet")
                time.sleep(0.3)
                process.send_signal(number)
                _, stderr = process.communicate(timeout=TIMEOUT_S)
                self.assertEqual(process.returncode, 128 + number, stderr)
                stats = json.loads(self.stats_path.read_text())
                self.assertEqual(stats["exit_status"], 128 + number)
                self.assertGreater(stats["guest_instructions"], 0)
                self.assertIn("energy", stats)
                self.assertIn(b"interrupted", stderr)
                self.assertIn(b"profile of", stderr)
                json.loads((self.folder / "t.json").read_text())

    def test_the_same_signal_twice_at_a_time_counts_once(self):
        """As timeout(1) sends it, to the process and to its group."""
        process = self.begin_endless()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertTrue(self.stats_path.exists())

    def test_a_second_signal_ends_at_once(self):
        """Also where the first cannot be served: a slice of this one takes hours."""
        process = self.begin_endless("--slice", str(1 << 40), "--threads", "1")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_nohup(self):
        process = self.begin_endless(ignored=[signal.SIGHUP])
        process.send_signal(signal.SIGHUP)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    # Values of options

    def commands(self):
        """Every command and its options, as gpusim itself describes them."""
        def visit(command):
            yield command["command"].split(), command["options"]
            for child in command["commands"]:
                yield from visit(child)

        yield from visit(json.loads(self.gpusim_run("--dump-help").stdout))

    def test_no_option_takes_an_empty_value(self):
        count = 0
        for words, options in self.commands():
            for option in options:
                if not option["takes_value"] or option["positional"]:
                    continue
                count += 1
                with self.subTest(f"{words} {option['names']}"):
                    message = self.refused(*words, option["names"][-1], "")
                    self.assertTrue(any(name in message for name in option["names"]), message)
                    self.assertRegex(message, "is empty|missing|expected")
        self.assertGreater(count, 100)

    def test_numbers_are_numbers(self):
        wrong = ["-", "+", "x", "1x", "0x", "1 ", "0x1g", "1,5", "--5"]
        count = 0
        for words, options in self.commands():
            for option in options:
                kind = option["value"].split(":")[0]
                if not option["takes_value"] or kind not in ("UINT", "INT", "FLOAT"):
                    continue
                values = [*wrong, *({"UINT": ["-1", "1.5", "1e3", str(1 << 64), "010", "nan"],
                                     "INT": ["1.5", str(1 << 64), "-" + str(1 << 64), "inf"],
                                     "FLOAT": ["nan", "inf", "-inf", "1e999", "0x1p3"]}[kind])]
                for value in values:
                    count += 1
                    with self.subTest(f"{words} {option['names']} {value}"):
                        message = self.refused(*words, f"{option['names'][-1]}={value}")
                        self.assertIn(option["names"][-1].lstrip("-"), message)
        self.assertGreater(count, 300)

    def test_lists_have_no_empty_elements(self):
        for words in (["run", self.guests, "--energy"], ["energy", "targets"],
                      ["energy", "estimate", "s.json", "--target"],
                      ["sweep", self.guests, "-o", "d", "--cores", "1", "--energy"],
                      ["power", "microbench", "--rows"], ["power", "microbench", "--optimization"],
                      ["energy", "predict", "s.json", "--take"],
                      ["sweep", self.guests, "-o", "d", "--cores"]):
            for value in (",", "fermi,", ",fermi", "fermi,,et-soc1", "1,", "1,,2"):
                with self.subTest(f"{words} {value}"):
                    self.refused(*words, value)
        self.refused("run", self.guests, "--profile=a.json,,b.json")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Robustness.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Robustness.build = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

#!/usr/bin/env python3
"""The command line's contract (docs/cli.md): statuses, messages, statistics, arguments.

  test_cli.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "differential" / "programs"
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
TIMEOUT_S = 120
STATS_KEYS = {"isa", "backend", "device", "cores", "guest_instructions", "classes", "micro_ops",
              "seconds", "mips", "exit_status", "faults", "fault_reports", "functions", "lines",
              "divergence", "waiting", "active_cores", "longest_cores"}
ECHO = r"""
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv, char** envp) {
  for (int i = 0; i < argc; ++i) printf("arg %s\n", argv[i]);
  for (; *envp; ++envp) printf("env %s\n", *envp);
  char line[100];
  while (fgets(line, sizeof line, stdin)) printf("in %s", line);
  fprintf(stderr, "to stderr\n");
  return 3;
}
"""
FILES = r"""
#include <errno.h>
#include <stdio.h>
int main(int argc, char** argv) {
  FILE* f = fopen(argv[1], argc > 2 ? "w" : "r");
  if (!f) return errno;
  if (argc > 2) return fputs(argv[2], f) < 0 || fclose(f) != 0;
  char line[100];
  while (fgets(line, sizeof line, f)) fputs(line, stdout);
  return 0;
}
"""


def wait_for_handler(process):
    """Returns once the process catches SIGINT."""
    status = pathlib.Path(f"/proc/{process.pid}/status")
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status.read_text(), re.M)
        if caught and int(caught[1], 16) >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.01)
    raise AssertionError("SIGINT is not caught")


def without_summary(text):
    """What a run wrote to standard error before the line that it ends with."""
    rest, count = re.subn(r"[\d,]+ cores? on [\w-]+ \([^\n]+\): [^\n]+ MIPS\n\Z", "", text)
    if count != 1:
        raise AssertionError(f"no summary at the end of {text!r}")
    return rest


class Cli(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        for name, text in (("echo.c", ECHO), ("files.c", FILES)):
            (cls.build / name).write_text(text)
        harness.build_all(
            {"guests.elf": [CROSS, "-O1", "-g", "-w", *BARE, HERE / "guests.c"],
             "echo.elf": [CROSS, "-O1", "-static", cls.build / "echo.c"],
             "files.elf": [CROSS, "-O1", "-static", cls.build / "files.c"]},
            harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guests, cls.echo, cls.files = (cls.build / f"{name}.elf"
                                           for name in ("guests", "echo", "files"))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.stats_path = self.folder / "stats.json"

    def gpusim_run(self, *words, stdin="", cwd=None):
        command = [str(self.gpusim), *map(str, words)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True,
                              timeout=TIMEOUT_S, cwd=cwd, env={})
        self.last = f"{' '.join(command)}: status {done.returncode}\n{done.stderr[:2000]}"
        self.assertNotRegex(done.stderr, "Sanitizer|runtime error:|terminate called", self.last)
        return done

    def run_ok(self, *words, status=0, **options):
        done = self.gpusim_run("run", *words, **options)
        self.assertEqual(done.returncode, status, self.last)
        return done

    def refused(self, *words, cwd=None):
        """gpusim's own error: status 2, one clear line, nothing else."""
        done = self.gpusim_run(*words, cwd=cwd)
        self.assertEqual(done.returncode, 2, self.last)
        self.assertEqual(done.stdout, "", self.last)
        self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]{8,}\n\Z", self.last)
        return done.stderr

    def stats(self):
        return json.loads(self.stats_path.read_text())

    # Errors of the user

    def test_bad_command_lines(self):
        for words in (["fly"], ["run"], ["run", "--cores", "4"], ["translate", self.echo],
                      ["run", self.echo, "--cores", "0"], ["run", self.echo, "--cores", "-1"],
                      ["run", self.echo, "--cores", "many"], ["run", self.echo, "--memory", "big"],
                      ["run", self.echo, "--backend", "abacus"], ["run", self.echo, "--unknown"],
                      ["run", self.echo, "--threads", "0"], ["run", self.echo, "--slice", "0"],
                      ["run", self.echo, "--group-width", "3"],
                      ["run", self.echo, "--memory-size", "12Q"],
                      ["run", self.echo, "--memory-size", "4K"],
                      ["run", self.echo, "--stack-size", "0"],
                      ["run", self.echo, "--max-instructions", "0"],
                      ["run", self.echo, "--env", "NOVALUE"],
                      ["run", self.echo, "--root", self.folder / "none"],
                      ["run", self.echo, "--per-core"], ["run", self.echo, self.echo],
                      ["run", self.echo, "--arg", "1"],
                      ["run", self.guests, "--entry", "endless", "--", "argument"],
                      ["run", self.guests, "--entry", "none"],
                      ["run", self.guests, "--entry", "endless", "--arg", "1x"],
                      ["run", self.guests, "--entry", "endless", "--arg", "&none"],
                      ["run", self.guests, "--entry", "endless", *["--arg", "1"] * 9],
                      ["disasm", self.guests, "--symbol", "none"],
                      ["info", "--", "argument"]):
            with self.subTest(" ".join(map(str, words))):
                self.refused(*words)

    def test_nearest_names_are_suggested(self):
        (self.folder / "study.json").write_text('{"programms": []}')
        (self.folder / "caches.json").write_text('{"line_byte": 64, "levels": [{"name": "L1", '
                                                 '"size": "32K", "ways": 8}]}')
        for words, meant in (
                (["rnu", self.echo], "run"),
                (["run", self.echo, "--coers", "4"], "--cores"),
                (["run", self.echo, "--max-instruction=4"], "--max-instructions"),
                (["energy", "target"], "targets"),
                (["run", self.echo, "--backend", "smid"], "simd"),
                (["run", self.echo, "--cpu", "cortex-a75"], "cortex-a57"),
                (["run", self.echo, "--energy", "fremi"], "fermi"),
                (["run", self.echo, "--caches", self.folder / "caches.json"], "line_bytes"),
                (["sweep", self.folder / "study.json", "-o", self.folder / "out"], "programs"),
                (["run", self.guests, "--entry", "show_som"], "show_sum"),
                (["run", self.guests, "--entry", "endless", "--arg", "&nubmers"], "numbers"),
                (["disasm", self.guests, "--symbol", "exit_wih_core"], "exit_with_core")):
            with self.subTest(" ".join(map(str, words))):
                self.assertIn(f"(did you mean {meant}?)", self.refused(*words))
        self.assertNotIn("did you mean", self.refused("run", self.guests, "--entry", "quite_else"))

    def test_names_of_other_programs_options_are_known(self):
        for word, ours in (("--allow-network", "--network loopback, or --network host"),
                           ("--num-cpus=4", "--cores N")):
            self.assertIn(f"(here it is {ours})", self.refused("run", self.echo, word))

    def test_a_program_that_is_not_there(self):
        (self.folder / "nosuch.elf").touch()
        for command in ("run", "disasm"):
            message = self.refused(command, self.folder / "nosuch.efl")
            self.assertIn("nosuch.efl: No such file or directory (did you mean "
                          f"{self.folder}/nosuch.elf?); expected the path of a program", message)
            self.assertIn("`gpusim info`", message)
        self.assertNotIn("did you mean", self.refused("run", "/none/at/all"))

    def test_files_that_are_not_there(self):
        (self.folder / "part.json").touch()
        missing = self.folder / "prat.json"
        for words, expected in (
                (["merge", missing, "-o", self.folder / "whole.json"], "run --part K/N --stats"),
                (["energy", "estimate", missing, "--target", "fermi"], "run --stats FILE.json"),
                (["run", "--config", missing, self.echo], "a file of options"),
                (["run", "--plugin", missing, self.echo], "gpusim_plugin.h"),
                (["run", "--resume", missing], "run --checkpoint FILE"),
                (["cuda", "--", missing], "gpusim cuda [OPTIONS] -- PROGRAM")):
            with self.subTest(words[0]):
                message = self.refused(*words)
                self.assertIn("prat.json: No such file or directory (did you mean "
                              f"{self.folder}/part.json?); expected", message)
                self.assertIn(expected, message)

    def test_a_chip_that_is_not_there(self):
        (self.folder / "chip.json").touch()
        message = self.refused("run", "--chip", self.folder / "chpi.json", self.echo)
        self.assertIn("--chip ", message)
        self.assertIn(f"(did you mean {self.folder}/chip.json?); chips are bus-8, ", message)

    def test_a_script_out_of_reach(self):
        script = self.folder / "script.py"
        script.write_text("#! /usr/bin/env  python3\nprint()\n")
        message = self.refused("run", script)
        self.assertIn("a script, which its interpreter could not read: give its folder by --root ",
                      message)

    def test_mistakes_in_commands_are_answered_with_their_usage(self):
        message = self.refused("power", "compare", "a", "b")
        self.assertIn("usage: gpusim power compare [OPTIONS] TRACE; ", message)
        self.assertIn("gpusim power compare --help tells more", message)
        self.assertIn("gpusim sweep PROGRAM --cores 1,2,4..64 -o FOLDER", self.refused("sweep"))

    def test_words_that_are_no_commands(self):
        self.assertIn("there is no command energy estimat (did you mean estimate?); there are: ",
                      self.refused("energy", "estimat", "x"))
        self.assertIn("there is no command power pic", self.refused("power", "pic", "x"))

    def test_stats_into_nowhere_is_refused_before_the_run(self):
        message = self.refused("run", self.guests, "--stats", self.folder / "none" / "s.json")
        self.assertIn("none/s.json", message)
        self.assertIn(f"mkdir -p {self.folder}/none", message)
        self.refused("run", self.guests, "--stats", self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_without_a_command_there_is_a_list(self):
        for words, some in (((), ("run", "translate", "energy", "power")),
                            (("power",), ("record", "profile")), (("energy",), ("targets",))):
            done = self.gpusim_run(*words)
            name = " ".join(("gpusim", *words))
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"gpusim: error: {name} needs one of these commands\n"))
            for command in some:
                self.assertRegex(done.stdout, rf"(?m)^  {name} {command} +[A-Z].*")

    def test_help_and_version(self):
        for words in (["--help"], ["run", "--help"], ["--version"]):
            done = self.gpusim_run(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""), self.last)
            self.assertIn("gpusim", done.stdout.lower() + "gpusim" * (words[0] == "run"))

    # A guest as a process

    def test_arguments_environment_streams_and_status(self):
        done = self.run_ok(self.echo, "--env", "A=1", "--env", "B=-2", "--", "one", "--cores", "",
                           stdin="line 1\nline 2\n", status=3)
        self.assertEqual(done.stdout, f"arg {self.echo}\narg one\narg --cores\narg \nenv A=1\n"
                                      "env B=-2\nin line 1\nin line 2\n")
        self.assertEqual(without_summary(done.stderr), "to stderr\n")
        # A repeatable option takes one value, not the program behind it.
        self.assertEqual(self.run_ok("--root", ".", "--env", "A=1", self.echo, status=3).stdout,
                         f"arg {self.echo}\nenv A=1\n")

    def test_status_is_that_of_the_lowest_failing_core(self):
        self.run_ok(self.guests, "--cores", 7)
        self.run_ok(self.guests, "--cores", 8, status=9)
        # A private core reads 0 for its number: it is alone.
        done = self.run_ok(self.guests, "--cores", 64, "--memory", "private")
        self.assertEqual(done.stdout, "x" * 64)
        for memory in ("shared", "private"):
            self.run_ok(self.guests, "--entry", "exit_with_core", "--arg", "@core", "--cores", 4,
                        "--memory", memory, status=1)

    def test_files_below_the_current_folder_and_roots_only(self):
        other = self.folder / "other"
        other.mkdir()
        here = self.folder / "here"
        here.mkdir()
        (here / "a").write_text("text of a\n")
        (other / "b").write_text("text of b\n")
        self.assertEqual(self.run_ok(self.files, "--", "a", cwd=here).stdout, "text of a\n")
        denied, absent = 13, 2
        done = self.run_ok(self.files, "--", "../other/b", cwd=here, status=denied)
        self.assertEqual(len(without_summary(done.stderr).splitlines()), 1, self.last)
        self.assertIn("--root", done.stderr)
        self.run_ok(self.files, "--", "absent", cwd=here, status=absent)
        self.run_ok(self.files, "--", "a", "new text", cwd=here, status=denied)
        self.run_ok(self.files, "--root", f"{other}:ro", "--", other / "c", "x", status=denied)
        self.run_ok(self.files, "--root", other, "--", other / "c", "x", cwd=here)
        self.assertEqual((other / "c").read_text(), "x")
        self.assertEqual((here / "a").read_text(), "text of a\n")

    def test_a_module_runs_as_its_program(self):
        module = self.folder / "echo.gsm"
        done = self.gpusim_run("translate", self.echo, "-o", module)
        self.assertEqual(done.returncode, 0, self.last)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["echo.gsm"])
        self.run_ok(self.echo, "--stats", self.stats_path, status=3)
        expected = self.stats()["guest_instructions"]
        done = self.run_ok(module, "--stats", self.stats_path, status=3)
        self.assertEqual(done.stdout, f"arg {module}\n")
        # Other than by argv[0] nothing differs.
        done = self.run_ok(module, "--argv0", self.echo, "--stats", self.stats_path, status=3)
        self.assertEqual(done.stdout, f"arg {self.echo}\n")
        self.assertAlmostEqual(self.stats()["guest_instructions"], expected, delta=500)
        self.refused("run", self.guests, "--entry", "endless", "--argv0", "x")

    def test_what_is_no_plain_file_is_written_into(self):
        plain, pipe, link = (self.folder / name for name in ("m.gsm", "pipe", "link"))
        self.assertEqual(self.gpusim_run("translate", self.echo, "-o", plain).returncode, 0)
        module = plain.read_bytes()
        os.mkfifo(pipe)
        for words in (["-o", pipe, "--quiet"], ["-o", "/dev/stdout", "--quiet"]):
            command = ["sh", "-c", 'cat "$0" & "$@"; wait', pipe, self.gpusim, "translate",
                       self.echo]
            if words[1] != pipe:
                command = command[4:]
            done = subprocess.run([*command, *words], capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith(module), words)
        self.assertTrue(pipe.is_fifo())
        link.symlink_to("target.gsm")
        self.assertEqual(self.gpusim_run("translate", self.echo, "-o", link).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual((self.folder / "target.gsm").read_bytes(), module)
        self.assertEqual(len(list(self.folder.iterdir())), 4)
        self.assertIn("No space left",
                      self.refused("run", "--quiet", self.guests, "--entry",
                                   "count_to_a_thousand", "--stats", "/dev/full"))

    def test_unknown_system_calls_are_reported_once(self):
        call = [self.guests, "--entry", "unknown_call", "--cores", 8]
        done = self.run_ok(*call)
        self.assertEqual(len(without_summary(done.stderr).splitlines()), 1, self.last)
        self.assertRegex(done.stderr, r"220.*clone.*ENOSYS")
        self.assertEqual(self.run_ok(*call, "--quiet").stderr, "")

    # Functions on many cores

    def test_arguments_of_the_entry_function(self):
        done = self.run_ok(self.guests, "--entry", "show_sum", "--cores", 3, "--arg", "0x10",
                           "--arg", "-6", "--arg", "2.75", "--arg", "&numbers", "--arg", "@core",
                           "--arg", "@cores")
        self.assertEqual(done.stdout, "30016\n30116\n30216\n")

    def test_output_order(self):
        for backend in ("scalar", "simd"):
            done = self.run_ok(self.guests, "--entry", "write_lines", "--arg", "@core", "--cores",
                               5, "--backend", backend)
            lines = done.stdout.splitlines()
            self.assertEqual(sorted(lines), sorted(f"core {c}" for c in "abcde" for _ in "12"))
            self.assertEqual(lines[:5], [f"core {c}" for c in "abcde"])
            self.assertEqual(without_summary(done.stderr), "eeeee")

    def test_a_reader_that_goes_away_ends_the_writer(self):
        for options in ([], ["--cores", "70", "--memory", "private"]):
            with subprocess.Popen([self.gpusim, "run", *options, "--entry", "write_for_ever",
                                   self.guests],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                self.assertEqual(process.stdout.readline(), b"again\n")
                process.stdout.close()
                said = process.stderr.read().decode()
            self.assertEqual(process.returncode, 141, said)
            self.assertRegex(said, r"\Acore 0: ended by its own signal 13 \(SIGPIPE\)\n")

    def test_faults(self):
        for memory in ("shared", "private"):
            done = self.run_ok(self.guests, "--entry", "fault_by_core", "--arg", "@core",
                               "--cores", 300, "--memory", memory, "--stats", self.stats_path,
                               status=139)
            lines = without_summary(done.stderr).splitlines()
            self.assertEqual(len(lines), 4, self.last)
            if lines[0].startswith("cores 2"):  # whichever came to its fault first
                lines = lines[2:] + lines[:2]
            self.assertRegex(lines[0], r"^cores 1, 4, 7, 10, 13, 16, 19, 22, \.\.\. \(100 cores\): "
                                       r"fault: load .*"
                                       r", address 0x8 \(a null pointer\?\)$")
            self.assertRegex(lines[1],
                             r"^  in fault_by_core\(\) at guests.c:\d+: ldr .* at pc 0x[0-9a-f]+ "
                             r"\(fault_by_core\+0x[0-9a-f]+\)$")
            self.assertRegex(lines[2], r"^cores 2, 5, .* \(100 cores\): fault: undefined ")
            self.assertRegex(lines[3], r"^  in fault_by_core\(\) at .* \(fault_by_core\+0x")
            faults = self.stats()["faults"]
            reports = self.stats()["fault_reports"]
            self.assertEqual([r["cores"] for r in reports], [100, 100])
            self.assertEqual({reports[f["report"]]["pc"] == f["pc"] for f in faults}, {True})
            reports.sort(key=lambda report: report["core_list"])
            self.assertTrue(reports[0]["core_list"].startswith("1, 4, 7, "))
            self.assertRegex(reports[0]["source"], r"^guests\.c:\d+$")
            self.assertEqual([f["function"] for f in reports[0]["stack"]], ["fault_by_core"])
            self.assertEqual([f["core"] for f in faults], [c for c in range(300) if c % 3])
            self.assertEqual({f["exit_status"] for f in faults}, {132, 139})
            for fault in faults:
                self.assertRegex(fault["pc"], "^0x[0-9a-f]+$")
                self.assertRegex(fault["symbol"], r"^fault_by_core\+0x")

    def test_exit_group_ends_all(self):
        entry = ["--entry", "fifth_ends_all", "--arg", "@core", "--cores", 64]
        self.run_ok(self.guests, *entry, status=3)

    def test_futexes_wake_and_deadlocks_are_found(self):
        many = ["--arg", "@core", "--cores", 100]
        for backend in ("scalar", "simd"):
            options = [*many, "--backend", backend]
            self.run_ok(self.guests, "--entry", "wait_for_first", *options)
            done = self.run_ok(self.guests, "--entry", "wait_for_ever", *options, status=125)
            self.assertRegex(done.stderr, r"deadlock: 99 of 100 cores")
            self.assertRegex(done.stderr,
                             r"  cores 1-99 \(99 cores\) wait for futex 0x[0-9a-f]+ \(flag\)\n"
                             r"    in call6\(\) at guests.c:\d+\n"
                             r"    called from wait_for_ever\(\) at guests.c:\d+\n")
            done = self.run_ok(self.guests, "--entry", "busy_wait_for_ever", *options, status=125)
            self.assertRegex(done.stderr, r"deadlock: 99 of 100 cores")
            self.assertRegex(done.stderr,
                             r"  cores 1-99 \(99 cores\) wait for an event \(busy-waiting\)\n"
                             r"    in busy_wait_for_ever\(\)")
            done = self.run_ok(self.guests, "--entry", "watch_for_ever", *options, status=125)
            self.assertRegex(without_summary(done.stderr),
                             r"deadlock: 99 of 100 cores.*\n  cores 1-99 \(99 cores\) wait for a "
                             r"store to 0x[0-9a-f]+ \(flag\)\n    in "
                             r"watch_for_ever\(\) at "
                             r"guests\.c:\d+\n\Z")

    def test_cores_sleep_together(self):
        start = time.monotonic()
        self.run_ok(self.guests, "--entry", "sleep_half_a_second", "--cores", 1000)
        elapsed = time.monotonic() - start
        self.assertGreater(elapsed, 0.5)
        self.assertLess(elapsed, 60)  # one after the other would take 500 s

    # Limits, interruption, statistics

    def test_instruction_limit(self):
        done = self.run_ok(self.guests, "--entry", "endless", "--cores", 20, "--max-instructions",
                           5000, "--per-core", "--stats", self.stats_path, status=124)
        self.assertRegex(done.stderr, r"\Acores .*: stopped: .*--max-instructions 5000, the limit "
                                      r"of each core\n  in endless\(\) at .* at pc "
                                      r"0x[0-9a-f]+ \(endless")
        self.assertEqual(self.stats()["exit_status"], 124)
        self.assertLess(abs(self.stats()["guest_instructions"] - 20 * 5000), 20 * 10)
        # Each core by itself: those that end earlier leave nothing to others.
        for core in self.stats()["per_core"]:
            self.assertIn(core["guest_instructions"], range(5000, 5010))

    def test_interrupt(self):
        with subprocess.Popen([self.gpusim, "run", self.guests, "--entry", "endless", "--cores",
                               "64", "--stats", self.stats_path],
                              stderr=subprocess.PIPE, text=True) as process:
            wait_for_handler(process)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(stderr, r"interrupted\n.*64 cores.* [1-9][0-9,]* guest instructions")
        self.assertEqual(self.stats()["exit_status"], 130)
        self.assertGreater(self.stats()["guest_instructions"], 0)

    def test_statistics(self):
        options = ["--entry", "count_to_a_thousand", "--stats", self.stats_path]
        self.run_ok(self.guests, *options)
        one = self.stats()
        self.assertEqual(set(one), STATS_KEYS)
        self.assertEqual(one["isa"], "aarch64")
        self.assertEqual((one["cores"], one["exit_status"], one["faults"]), (1, 0, []))
        self.assertEqual(sum(one["classes"].values()), one["guest_instructions"])
        self.assertGreaterEqual(one["classes"]["off_chip_memory"], 2000)
        self.assertGreater(one["seconds"], 0)
        for backend in ("scalar", "simd"):
            for memory in ("shared", "private"):
                self.run_ok(self.guests, *options, "--cores", 33, "--memory", memory, "--per-core",
                            "--backend", backend, "--slice", 777)
                many = self.stats()
                self.assertEqual(many["backend"], backend)
                self.assertEqual(many["guest_instructions"], 33 * one["guest_instructions"])
                self.assertEqual(many["micro_ops"], 33 * one["micro_ops"])
                self.assertEqual([c["core"] for c in many["per_core"]], list(range(33)))
                for core in many["per_core"]:
                    self.assertEqual(core["guest_instructions"], one["guest_instructions"])
                    self.assertEqual(core["classes"], one["classes"])
        self.assertEqual([p.name for p in self.folder.iterdir()], ["stats.json"])

    def test_info_and_disasm(self):
        done = self.gpusim_run("info")
        self.assertEqual(done.returncode, 0, self.last)
        for word in ("aarch64", "scalar", "simd", "cuda"):
            self.assertIn(word, done.stdout)
        done = self.gpusim_run("disasm", self.guests, "--symbol", "exit_with_core")
        self.assertEqual(done.returncode, 0, self.last)
        self.assertIn("svc", done.stdout)
        self.assertNotIn("<endless>", done.stdout)
        done = self.gpusim_run("disasm", self.guests, "--symbol", "add_atomically")
        self.assertRegex(done.stdout, r"ldaddal w\d+, w\d+, \[x\d+\] +\| fence")

    def test_listings_without_capstone_say_so(self):
        (self.folder / "libcapstone.so.4").write_text("no library")
        environment = os.environ | {"LD_LIBRARY_PATH": str(self.folder)}
        command = [self.gpusim, "disasm", self.guests, "--symbol", "exit_with_core"]
        without = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(without.returncode, 0)
        self.assertRegex(without.stderr,
                         r"\Agpusim: note: libcapstone\.so\.4 cannot be loaded.*\n\Z")
        self.assertIn("movz x8 ", without.stdout)
        self.assertEqual(subprocess.run(command, capture_output=True, text=True).stderr, "")

    def test_dormant_instructions_are_only_counted(self):
        """The C library's own, of extensions that it asks for first: memory tagging, SVE."""
        module = self.folder / "echo.gsm"
        done = self.gpusim_run("translate", self.echo, "-o", module)
        self.assertNotIn("unknown instruction at", done.stderr)
        self.assertRegex(done.stderr,
                         r"\A\d+ instructions of [A-Z, ]+, for processors that have it")
        done = self.gpusim_run("translate", self.echo, "-o", module, "--json")
        self.assertIn("MTE", {u["extension"] for u in json.loads(done.stdout)["unknown"]})

    def test_a_million_cores_fit(self):
        self.run_ok(self.guests, "--entry", "exit_with_core", "--arg", "0", "--cores", 1_000_000,
                    "--stats", self.stats_path)
        self.assertEqual(self.stats()["cores"], 1_000_000)
        most_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(most_kib, 8 << 20)

    def test_info_on_a_program(self):
        done = self.gpusim_run("info", "--program", self.guests, "--cores", 4096)
        self.assertEqual(done.returncode, 0, self.last)
        self.assertRegex(done.stdout, r"Each of 4096 cores:\n  context +\d+ bytes \(\d+ slots\)\n")
        self.assertRegex(done.stdout, r"stack, at most +8188 KiB")
        done = self.gpusim_run("info", "--cores", 4096)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--program", done.stderr)

    def test_seeds_change_the_interleaving_and_nothing_else(self):
        usual = None
        for seed in ([], ["--seed", 1], ["--seed", 99]):
            for backend in ("scalar", "simd"):
                self.run_ok(self.guests, "--entry", "count_to_a_thousand", "--cores", 200,
                            "--memory", "private", "--backend", backend, *seed, "--stats",
                            self.stats_path)
                stats = self.stats()
                result = (stats["guest_instructions"], stats["classes"])
                usual = usual or result
                self.assertEqual(result, usual, self.last)

    def test_progress_on_terminals_only(self):
        plain = {**os.environ, "TERM": "xterm"}
        plain.pop("NO_COLOR", None)
        for quiet, environment in (([], plain), (["--quiet"], plain),
                                   ([], {**plain, "NO_COLOR": "1"}),
                                   ([], {**plain, "TERM": "dumb"})):
            master, slave = pty.openpty()
            with subprocess.Popen([self.gpusim, "run", self.guests, "--entry", "endless", "--cores",
                                   "64", *quiet], stderr=slave, env=environment) as process:
                wait_for_handler(process)
                time.sleep(2)
                process.send_signal(signal.SIGINT)
                process.wait(TIMEOUT_S)
            os.close(slave)
            text = b""
            try:
                while piece := os.read(master, 4096):
                    text += piece
            except OSError:  # EIO: the other side is closed
                pass
            os.close(master)
            shown = re.search(rb"0 of 64 cores finished, .* MIPS", text)
            self.assertEqual(bool(shown), not quiet, text)
            self.assertEqual(b"\x1b" in text, environment is plain and not quiet, text)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Cli.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Cli.build = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

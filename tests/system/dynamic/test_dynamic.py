#!/usr/bin/env python3
"""Dynamically linked programs, code that programs write, and processes, on every backend of the
host, against qemu-user.

  test_dynamic.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...

Exit status 77: there is no cross compiler.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ISAS = {"aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
BACKENDS = (["--backend", "scalar"], ["--backend", "simd"],
            ["--backend", "simd", "--native-after", "0"])
TIMEOUT_S = 120
DEADLOCK = 125  # host/exit_status.h


class Guest:
    """A folder of programs for one ISA."""

    def __init__(self, isa, build):
        self.isa, self.triple = isa, ISAS[isa]
        self.sysroot = pathlib.Path("/usr") / self.triple
        self.folder = build / isa
        self.folder.mkdir(parents=True, exist_ok=True)

    def compile(self, source, name, *options):
        compiler = "g++" if source.endswith(".cc") else "gcc"
        subprocess.run([f"{self.triple}-{compiler}", "-O1", "-w", HERE / source, "-o",
                        self.folder / name, *options],
                       check=True)
        return self.folder / name

    def under_qemu(self, *words, **more):
        return subprocess.run([f"qemu-{self.isa}", "-L", self.sysroot, *map(str, words)],
                              capture_output=True, text=True, timeout=TIMEOUT_S, cwd=self.folder,
                              check=False, **more)


class Dynamic(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.guests = [Guest(isa, cls.build) for isa, triple in ISAS.items()
                      if shutil.which(f"{triple}-g++")]
        if not cls.guests:
            print("skipped: no cross compiler")
            sys.exit(77)
        for guest in cls.guests:
            guest.compile("hello.c", "hello", "-lm")
            guest.compile("hello.c", "hello_fixed", "-lm", "-no-pie")
            guest.compile("exceptions.cc", "exceptions", "-ldl", "-pthread")
            guest.compile("plugin.cc", "libplugin.so", "-shared", "-fPIC")
            guest.compile("openmp.c", "openmp", "-fopenmp")
            guest.compile("jit.c", "jit", "-pthread")
            guest.compile("library.c", "liblibrary.so", "-shared", "-fPIC", "-g")
            guest.compile("names.c", "names", "-g", "-pthread", "-L", guest.folder, "-llibrary",
                          "-Wl,-rpath,$ORIGIN")
            guest.compile("names.c", "names_static", "-g", "-pthread", "-static",
                          HERE / "library.c")
            guest.compile("processes.c", "processes")
            guest.compile("processes.c", "processes_static", "-static")
            guest.compile("waits.c", "waits")
            guest.compile("shared_futexes.c", "shared_futexes", "-static", "-pthread")
            (guest.folder / "bin").mkdir(exist_ok=True)
            guest.compile("interpreter.c", "bin/tell", "-static")

    def under_gpusim(self, guest, *words, options=(), status=0):
        words = map(str, (*options, *words))
        done = subprocess.run([self.gpusim, "run", "--quiet", *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT_S, cwd=guest.folder, check=False)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done

    def compare(self, program, *arguments, options=(), backends=BACKENDS):
        for guest in self.guests:
            expected = guest.under_qemu(guest.folder / program, *arguments)
            for backend in backends:
                with self.subTest(f"{guest.isa} {program} {arguments} {backend}"):
                    done = self.under_gpusim(guest, guest.folder / program, "--", *arguments,
                                             options=[*backend, *options],
                                             status=expected.returncode)
                    self.assertEqual(done.stdout, expected.stdout)

    def test_c(self):
        self.compare("hello", "b", "a", "c")
        self.compare("hello_fixed", "b", "a", "c")

    def test_exceptions_threads_and_dlopen(self):
        self.compare("exceptions", "./libplugin.so", options=["--cores", "4"])
        self.compare("exceptions", "./missing.so", options=["--cores", "4"], backends=BACKENDS[:1])

    def test_openmp_of_the_guest(self):
        self.compare("openmp", options=["--cores", "4"])

    def test_code_that_is_written(self):
        for mode in range(6):
            self.compare("jit", mode)
        self.compare("jit", 6, options=["--cores", "4"])

    def test_code_that_threads_write_into_one_page(self):
        for cores in 1, 3, 9:
            self.compare("jit", 7, options=["--cores", cores])

    # --- scripts as the program of a run

    def script(self, guest, name, first_line):
        path = guest.folder / name
        path.write_text(f"{first_line}\nthe rest\n")
        path.chmod(0o755)
        return path

    def test_a_script_is_run_by_its_interpreter(self):
        for guest in self.guests:
            at = ["--sysroot", guest.folder]
            for line, told in (("#!/bin/tell", "</bin/tell>"),
                               ("#! \t/bin/tell -a  b \t", "</bin/tell><-a  b>")):
                self.script(guest, "script", line)
                for name in "script", "./script", guest.folder / "script":
                    with self.subTest(f"{guest.isa} {line} {name}"):
                        done = self.under_gpusim(guest, name, "--", "one", "two three", status=5,
                                                 options=at)
                        self.assertEqual(done.stdout, f"{told}<{name}><one><two three>\nthe rest\n")
            # A script may be the interpreter of another one.
            self.script(guest, "bin/inner", "#!/bin/tell")
            self.script(guest, "outer", "#!/bin/inner -x")
            done = self.under_gpusim(guest, "outer", status=5, options=at)
            self.assertEqual(done.stdout, "</bin/tell></bin/inner><-x><outer>\nthe rest\n")

    def test_scripts_that_cannot_be_run(self):
        guest = self.guests[0]
        elsewhere = guest.folder / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        (elsewhere / "x86").write_bytes(pathlib.Path("/bin/true").read_bytes())
        (elsewhere / "x86").chmod(0o755)
        script = self.script(guest, "script", "#!/bin/tell")
        for line, options, why in (
                ("#!/bin/tell", [], "its interpreter /bin/tell is no program in a --sysroot"),
                ("#!/bin/none", ["--sysroot", guest.folder], "its interpreter /bin/none is no "
                 "program in --sysroot"),
                ("#!", ["--sysroot", guest.folder], "names no interpreter"),
                ("#!/x86", ["--sysroot", elsewhere], "is not of an ISA that gpusim simulates"),
                ("#!/bin/tell", ["--sysroot", guest.folder, "--entry", "main"], "--entry")):
            with self.subTest(line=line, options=options):
                self.script(guest, "script", line)
                done = self.under_gpusim(guest, script, options=options, status=2)
                self.assertRegex(done.stderr, r"\Agpusim: error: \S+/script: a script, "
                                 rf".*{why}.*\n\Z")
        self.script(guest, "script", "#!/bin/tell")
        done = subprocess.run([self.gpusim, "run", "--sysroot", elsewhere, script], cwd=elsewhere,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--root FOLDER:ro", done.stderr)

    # Under gpusim alone: an emulator of one process shares its parent's shell with it.
    def test_processes(self):
        for guest in self.guests:
            for program in ("processes", "processes_static"):
                for backend in BACKENDS:
                    with self.subTest(f"{guest.isa} {program} {backend}"):
                        path = guest.folder / program
                        done = self.under_gpusim(guest, path, "--", path,
                                                 options=[*backend, "--env", "NAME=value"])
                        self.assertEqual(done.stdout.splitlines(), [
                            "fork: 1 1 1 7", "no child: 1", "pipe: 1 5 HELLO 0 0",
                            "signals: 5 15 9 1", "vfork: 1 1 3", "shared memory: 1 2 42 1 0",
                            "exec: another name/a b/value 12",
                            "self/spawned/value", "spawn: 0 12", "popen: no shell", "missing: 1",
                            "range: 0 0 1 1 1 1", "closed: 0 13"])

    # Against the host's own Linux: qemu-user drops SA_NOCLDSTOP.
    def test_waiting_for_children_and_stopping_them(self):
        native = self.build / "waits_native"
        subprocess.run(["cc", "-O1", "-w", HERE / "waits.c", "-o", native], check=True)
        expected = subprocess.run([native], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=TIMEOUT_S, check=True, cwd=self.build).stdout
        for guest in self.guests:
            for backend in BACKENDS:
                with self.subTest(f"{guest.isa} {backend}"):
                    done = self.under_gpusim(guest, guest.folder / "waits",
                                             options=[*backend, "--root", "."])
                    self.assertEqual(done.stdout, expected)

    # Locks, semaphores, barriers and bare futexes in memory that processes share. What becomes of
    # those of a process that ends, against the host's own Linux: QEMU's user mode forgets them.
    def test_processes_wait_for_each_other(self):
        native = self.build / "shared_futexes_native"
        subprocess.run(["cc", "-O1", "-w", HERE / "shared_futexes.c", "-o", native, "-pthread"],
                       check=True)
        robust = subprocess.run([native, "robust"], capture_output=True, text=True, check=True,
                                timeout=TIMEOUT_S, cwd=self.build).stdout
        for guest in self.guests:
            path = guest.folder / "shared_futexes"
            for mode in ("all", "robust"):
                expected = robust if mode == "robust" else guest.under_qemu(path, mode,
                                                                            "names").stdout
                for backend in BACKENDS:
                    with self.subTest(f"{guest.isa} {mode} {backend}"):
                        done = self.under_gpusim(
                            guest, path, "--", mode, "names",
                            options=[*backend, "--cores", "2", "--root", ".", "--root",
                                     "/dev/shm"])
                        self.assertEqual(done.stdout, expected, done.stderr)

    # One thread of the host runs all cores of a process, but others change the word at once.
    def test_processes_change_a_word_at_once(self):
        for guest in self.guests:
            done = self.under_gpusim(guest, guest.folder / "shared_futexes", "--", "count",
                                     options=["--backend", "simd", "--no-native"])
            self.assertEqual(done.stdout, "counted: 4000000\n")

    def test_processes_that_wait_for_each_other_for_ever_are_reported(self):
        guest = self.guests[0]
        done = self.under_gpusim(guest, guest.folder / "shared_futexes", "--", "deadlock")
        self.assertEqual(done.stdout, "failed: 2\n")
        for process in 2000, 3000:
            self.assertIn(f"deadlock of process {process}: 1 of 1 cores", done.stderr)
        done = self.under_gpusim(guest, guest.folder / "shared_futexes", "--", "deadlock", "two",
                                 status=DEADLOCK)
        self.assertIn("deadlock: 1 of 1 cores", done.stderr)

    def test_locks_that_inherit_priority_are_refused_between_processes(self):
        for guest in self.guests:
            done = subprocess.run([self.gpusim, "run", guest.folder / "shared_futexes", "--",
                                   "inherit"], capture_output=True, text=True, timeout=TIMEOUT_S,
                                  check=False)
            self.assertEqual(done.stdout, "locked: 0 1\n")
            self.assertRegex(done.stderr, "note: a lock with priority inheritance .* that another "
                             "process has.*ESRCH.*PTHREAD_PRIO_NONE")

    def test_statistics_are_of_the_first_process(self):
        guest = self.guests[0]
        stats = guest.folder / "stats.json"
        path = guest.folder / "processes_static"
        self.under_gpusim(guest, path, "--", path, options=["--stats", stats])
        self.assertGreater(json.loads(stats.read_text())["guest_instructions"], 1000)

    # --- names of what is in shared objects

    def profile(self, guest, program, *options):
        path = guest.folder / "profile.json"
        self.under_gpusim(guest, guest.folder / program, options=[f"--profile={path}", *options])
        return json.loads(path.read_text())

    def test_profiles_are_those_of_the_program_linked_statically(self):
        for guest in self.guests:
            dynamic = self.profile(guest, "names")
            static = self.profile(guest, "names_static")
            functions = {f["function"]: f["guest_instructions"] for f in dynamic["functions"]}
            expected = {f["function"]: f["guest_instructions"] for f in static["functions"]}
            for name in ("library_work", "sum_up", "library_sort", "compare"):
                # Calls into other objects may need an instruction more.
                self.assertAlmostEqual(functions[f"{name} [liblibrary.so]"], expected[name],
                                       delta=2, msg=name)
                self.assertNotIn(name, functions)
            self.assertEqual(functions["fill"], expected["fill"])
            self.assertGreater(functions["qsort_r [libc.so.6]"], 0)
            # What has no symbol still has its file; nothing goes to the program's last function.
            self.assertGreater(functions["[libc.so.6]"], 10000)
            self.assertLess(sum(n for name, n in functions.items() if "[" not in name),
                            expected["fill"] + expected["main"] + 500)

            def lines_of(profile):
                return {line["line"]: line["guest_instructions"] for line in profile["lines"]
                        if line["file"].endswith("/library.c")}
            lines = lines_of(dynamic)
            self.assertEqual(set(lines), set(lines_of(static)))
            for line, count in lines_of(static).items():
                self.assertAlmostEqual(lines[line], count, delta=2, msg=line)

    def test_statistics_and_stacks_name_shared_objects(self):
        for guest in self.guests:
            stats, folded = guest.folder / "names.json", guest.folder / "names.folded"
            self.under_gpusim(guest, guest.folder / "names",
                              options=["--stats", stats, f"--profile={folded}"])
            names = {f["function"] for f in json.loads(stats.read_text())["functions"]}
            self.assertLessEqual({"fill", "compare [liblibrary.so]", "qsort_r [libc.so.6]"}, names)
            text = folded.read_text()
            self.assertIn(";main;library_work [liblibrary.so];sum_up [liblibrary.so] ", text)
            self.assertRegex(text, r";main;library_sort \[liblibrary.so\];qsort.* \[libc.so.6\];.*"
                                   r";compare \[liblibrary.so\] ")

    def test_faults_and_races_in_shared_objects_have_lines(self):
        source = (HERE / "library.c").read_text().splitlines()
        marked = {mark: number for number, line in enumerate(source, 1)
                  for mark in ("FAULT", "RACE") if line.endswith(f"// {mark}")}
        main = (HERE / "names.c").read_text().splitlines()
        call = 1 + next(i for i, line in enumerate(main) if "library_store((int*)8)" in line)
        for guest in self.guests:
            done = self.under_gpusim(guest, guest.folder / "names", "--", "fault", status=139)
            self.assertRegex(done.stderr, rf"in library_store\(\) at library.c:{marked['FAULT']}: ")
            self.assertIn(f"called from main() at names.c:{call}\n", done.stderr)
            done = self.under_gpusim(guest, guest.folder / "names", "--", "race",
                                     options=["--cores", "2", "--check", "races"], status=66)
            self.assertIn(f"in library_race() [liblibrary.so] at library.c:{marked['RACE']}",
                          done.stderr)

    def test_errors(self):
        guest = self.guests[0]
        hello = guest.folder / "hello"
        empty = guest.folder / "empty"
        empty.mkdir(exist_ok=True)
        for options, text in (
                (["--sysroot", "missing"], "--sysroot missing: not a folder"),
                (["--sysroot", empty], "its interpreter /lib/.* is neither in .*empty nor on this"),
                (["--memory", "private"], "a dynamically linked program needs --memory shared"),
                (["--cores", "5000"], "works on at most 4,096 cores"),
                (["--checkpoint", "x"], "--checkpoint: not of a dynamically linked program")):
            done = self.under_gpusim(guest, hello, options=options, status=2)
            self.assertRegex(done.stderr, text)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        library = guest.folder / "libplugin.so"
        done = self.under_gpusim(guest, library, status=2)
        self.assertRegex(done.stderr, "a shared library, not a program")

    # What the loader finds is the program's own business: its words and status are ld.so's.
    def test_missing_library(self):
        guest = self.guests[0]
        lonely = guest.folder / "lonely"
        shutil.rmtree(lonely, ignore_errors=True)
        (lonely / "lib").mkdir(parents=True)
        for name in os.listdir(guest.sysroot / "lib"):
            if re.match(r"ld-linux-.*\.so\.1$", name):
                shutil.copy(guest.sysroot / "lib" / name, lonely / "lib")
        done = self.under_gpusim(guest, guest.folder / "hello", options=["--sysroot", lonely],
                                 status=127)
        self.assertRegex(done.stderr, "error while loading shared libraries: libm?c?.so.6")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Dynamic.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Dynamic.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

#!/usr/bin/python3
"""`import gpusim` (docs/python.md), by the system's python3.

  test_python.py GPUSIM MODULE_FOLDER PLUGIN_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import gc
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import numpy
except ImportError:
    print("numpy is missing (python3-numpy)")
    sys.exit(77)

GPUSIM, MODULE, PLUGINS, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
sys.path.insert(0, str(MODULE))
import gpusim  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ISAS = {"aarch64": ("aarch64-linux-gnu-gcc", "x"), "riscv64": ("riscv64-linux-gnu-gcc", "a")}
ISAS = {isa: row for isa, row in ISAS.items() if os.path.exists("/usr/bin/" + row[0])}


def build(isa, name, *options):
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"{name}_{isa}.elf"
    subprocess.run(["/usr/bin/" + ISAS[isa][0], "-O1", "-g", "-static", *options, "-o", program,
                    HERE / f"{name}.c"], check=True)
    return program


GUEST = {isa: build(isa, "guest", "-nostdlib", "-ffreestanding", "-Wl,--entry=sum") for isa in ISAS}
WORDS = {isa: build(isa, "words") for isa in ISAS}
MAIN = next(iter(ISAS))
SUM = {"entry": "sum", "args": ["@core", "@cores"]}


class Running(unittest.TestCase):
    def command_stats(self, program, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "stats.json")
            subprocess.run([GPUSIM, "run", program, "--quiet", "--stats", path, *map(str, options)],
                           check=False, timeout=100, stderr=subprocess.DEVNULL)
            return json.loads(path.read_text())

    def assert_same(self, ours, commands):
        for stats in (ours, commands):
            for key in ("seconds", "mips"):
                stats.pop(key)
        self.assertEqual(ours, commands)

    def test_statistics_are_the_commands(self):
        for isa, program in GUEST.items():
            for cores in (1, 64, 1000):
                for memory in ("shared", "private"):
                    with self.subTest(isa=isa, cores=cores, memory=memory):
                        # One thread and one shape of groups: lanes are counted, too.
                        ours = gpusim.run(program, cores=cores, memory=memory, threads=1,
                                          energy=["et-soc1", "fermi"], **SUM)
                        commands = self.command_stats(
                            program, "--entry", "sum", "--arg", "@core", "--arg", "@cores",
                            "--cores", cores, "--memory", memory, "--threads", 1, "--energy",
                            "et-soc1,fermi")
                        self.assertGreater(commands["guest_instructions"], 1000 * cores)
                        self.assert_same(ours.stats, commands)

    def test_a_program_with_a_c_library(self):
        for isa, program in WORDS.items():
            with self.subTest(isa=isa):
                result = gpusim.run(program, ["one", 2, 3.5], env={"WORD": "word"}, stdin=b"a\nb\n")
                self.assertEqual(result.text, "one;2;3.5;word\nread a\nread b\n")
                self.assertEqual(result.errors, b"done\n")
                self.assertEqual(result.exit_status, 4)
                self.assertRaisesRegex(gpusim.Error, "status 4", result.check)
                commands = subprocess.run([GPUSIM, "run", "--quiet", program],
                                          stdin=subprocess.DEVNULL, capture_output=True,
                                          timeout=60, check=False)
                mine = gpusim.run(program)
                self.assertEqual((mine.output, mine.errors, mine.exit_status),
                                 (commands.stdout, commands.stderr, commands.returncode))

    def test_output_goes_where_it_is_told(self):
        program = WORDS[MAIN]
        with tempfile.TemporaryFile() as file:
            result = gpusim.run(program, ["x"], stdout=file, stderr=None)
            file.seek(0)
            self.assertEqual((file.read(), result.output, result.errors), (b"x;-\n", b"", b""))
        code = (f"import sys; sys.path.insert(0, {str(MODULE)!r}); import gpusim; print('before'); "
                f"r = gpusim.run({str(program)!r}, ['y'], stdin='pass', stdout='pass', "
                "stderr='pass'); "
                "print('after', r.exit_status)")
        done = subprocess.run([sys.executable, "-c", code], input="in\n", capture_output=True,
                              text=True, timeout=60, check=True)
        self.assertEqual(done.stdout, "before\ny;-\nread in\nafter 2\n")
        self.assertEqual(done.stderr, "done\n")

    def test_arguments_of_functions(self):
        with gpusim.Machine(GUEST[MAIN], ["@core", 4.0], entry="scale", cores=3) as machine:
            while machine.step():
                pass
            self.assertEqual(list(machine.array("sums", "i8", 3)), [6, 12, 18])

    def test_progress_and_stopping(self):
        seen = []
        result = gpusim.run(GUEST[MAIN], ["@core"], entry="forever", cores=8, progress_every=0,
                            progress=lambda p: seen.append(p) or len(seen) < 3)
        self.assertEqual(len(seen), 4)  # and one at the end
        self.assertTrue(result.interrupted)
        self.assertEqual(result.exit_status, 130)
        self.assertEqual((seen[0].cores, seen[0].finished), (8, 0))
        self.assertLess(seen[0].instructions, seen[2].instructions)
        self.assertEqual(seen[3].instructions, result.stats["guest_instructions"])
        limited = gpusim.run(GUEST[MAIN], ["@core"], entry="forever", cores=2,
                             max_instructions=1000)
        self.assertEqual((limited.exit_status, len(limited.faults)), (124, 2))

    def test_faults(self):
        result = gpusim.run(GUEST[MAIN], ["@core"], entry="fall", cores=4)
        self.assertEqual(result.exit_status, 139)
        self.assertEqual([f["core"] for f in result.faults], [2])
        self.assertIn("fall", result.faults[0]["symbol"])
        self.assertTrue(any("core 2" in m for m in result.messages), result.messages)

    def test_what_is_wrong_is_said(self):
        for keywords, says in (({"core": 3}, "no keyword core .did you mean cores"),
                               ({"group_with": 8}, "did you mean group_width"),
                               ({"checkpoint": "x"}, "checkpoint.* for the command only"),
                               ({"cores": 0}, "--cores"), ({"cores": "many"}, "--cores"),
                               ({"cores": True}, "cores=True: it needs a value"),
                               ({"memory": "mine"}, "--memory"), ({"backend": "no"}, "backend"),
                               ({"entry": "summ"}, "summ .did you mean sum"),
                               ({"energy": ["no-such"]}, "no-such"),
                               ({"env": ["x"]}, "NAME=VALUE"),
                               ({"timing": "fermi"}, "--timing needs"),
                               ({"plugin": ["/none.so"]}, "none.so"),
                               ({"memory_size": "no"}, "expected a size"),
                               ({"stats": "/none/stats.json"}, "--stats"),
                               ({"on_blocks": 3}, "on_blocks=3: expected a function")):
            with self.subTest(says=says):
                self.assertRaisesRegex(gpusim.Error, says, gpusim.run, GUEST[MAIN], **keywords)
        self.assertRaisesRegex(gpusim.Error, "none.elf", gpusim.run, "none.elf")
        self.assertRaisesRegex(gpusim.Error, "list of arguments", gpusim.run, WORDS[MAIN], "abc")
        self.assertRaisesRegex(gpusim.Error, str(HERE), gpusim.run, HERE / "guest.c")
        with self.assertRaisesRegex(gpusim.Error, "no symbol main"):
            gpusim.Machine(GUEST[MAIN], **SUM).read("main")

    def test_options_are_the_commands(self):
        help_text = subprocess.run([GPUSIM, "run", "--help"], capture_output=True, text=True,
                                   check=True)
        for name in ("cores", "memory", "caches", "no_regroup", "max_instructions"):
            self.assertIn("--" + name.replace("_", "-"), help_text.stdout)
            self.assertIn(name, gpusim.options())

    def test_a_profile(self):
        result = gpusim.run(GUEST[MAIN], cores=2, profile=True, **SUM)
        self.assertEqual(result.profile["functions"][0]["function"], "sum")
        self.assertEqual(result.profile["total"]["guest_instructions"],
                         result.stats["guest_instructions"])

    def test_the_process_stays_as_it_is(self):
        def state():
            return (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM),
                    pathlib.Path("/proc/self/status").read_text().split("SigIgn:")[1].split()[0],
                    resource.getrlimit(resource.RLIMIT_NOFILE), dict(os.environ), os.getcwd(),
                    sorted(os.listdir("/proc/self/fd")))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        before = state()
        gpusim.run(WORDS[MAIN], cores=3, memory="private")
        gpusim.run(GUEST[MAIN], cores=3, **SUM)
        self.assertEqual(state(), before)

    def test_control_c(self):
        code = (f"import sys; sys.path.insert(0, {str(MODULE)!r}); import gpusim\n"
                "print('ready', flush=True)\n"
                f"try:\n  gpusim.run({str(GUEST[MAIN])!r}, ['@core'], entry='forever', cores=64)\n"
                "except KeyboardInterrupt:\n  print('interrupted')\n"
                f"print(gpusim.run({str(WORDS[MAIN])!r}).text)\n")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(out.split(), ["interrupted", "-"])
        self.assertEqual(process.returncode, 0)


class Installed(unittest.TestCase):
    def test_it_is_found_where_it_is_installed(self):
        cmake = shutil.which("cmake")
        if cmake is None:
            self.skipTest("cmake is missing")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([cmake, "--install", MODULE.parent, "--component", "python", "--prefix",
                            folder], check=True, stdout=subprocess.DEVNULL, timeout=60)
            code = "import gpusim; print(gpusim.__file__, len(gpusim.targets()))"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                  check=True, timeout=60, cwd=folder,
                                  env={"PYTHONPATH": f"{folder}/lib/python3/dist-packages"})
            self.assertTrue(done.stdout.startswith(folder), done.stdout)


class Looking(unittest.TestCase):
    def test_memory(self):
        for isa, program in GUEST.items():
            with self.subTest(isa=isa), gpusim.Machine(program, ["@core", "@cores"], entry="fill",
                                                       cores=16) as machine:
                self.assertEqual(machine.isa, isa)
                self.assertEqual(machine.read("table"), bytes(8192))
                self.assertEqual(machine.array("weight", "f8")[0], 1.5)
                self.assertFalse(machine.run_until(lambda m: False))
                expected = 3 * numpy.arange(1024) + 1
                numpy.testing.assert_array_equal(machine.array("table", "<i8"), expected)
                address, size = machine.symbol("table")
                self.assertEqual(size, 8192)
                numpy.testing.assert_array_equal(machine.array(address + 8, "<i8", (2, 3)),
                                                 expected[1:7].reshape(2, 3))
                machine.write("table", numpy.arange(4, dtype="<i8"))
                machine.write(address + 32, b"\x07")
                self.assertEqual(list(machine.array("table", "<i8")[:6]), [0, 1, 2, 3, 7, 16])

    def test_what_is_written_is_computed_with(self):
        for memory in ("shared", "private"):
            with self.subTest(memory=memory), gpusim.Machine(
                    GUEST[MAIN], cores=4, memory=memory, **SUM) as machine:
                numbers = numpy.arange(1024, dtype="<i8") ** 2
                for core in range(4 if memory == "private" else 1):
                    machine.write("table", numbers, core=core)
                machine.run()
                index = numpy.arange(1024)
                for core in range(4):
                    expected = 4 * int(numpy.where(index % 4 == core, numbers, index).sum())
                    self.assertEqual(machine.array("sums", "<i8", core=core)[core], expected)
                if memory == "private":
                    self.assertEqual(machine.array("sums", "<i8", core=1)[0], 0)

    def test_memory_that_there_is_not(self):
        with gpusim.Machine(GUEST[MAIN], cores=2, **SUM) as machine:
            for action, says in (
                    (lambda: machine.read(8, 8), "no memory at 0x8"),
                    (lambda: machine.read(-8, 8), "64 bits"),
                    (lambda: machine.read(1 << 64, 8), "64 bits"),
                    (lambda: machine.read("table", 1 << 45), "."),
                    (lambda: machine.read((1 << 64) - 8, 16), "."),
                    (lambda: machine.write("sum", b"\0\0\0\0"), "that is code"),
                    (lambda: machine.write("weight", bytes(9)), "do not fit"),
                    (lambda: machine.read("tabel"), "did you mean table"),
                    (lambda: machine.cores[0]["y9"], "no register y9"),
                    (lambda: machine.cores[0].__setitem__("y9", 1), "no register y9"),
                    (lambda: machine.step(0), "positive")):
                with self.subTest(says=says):
                    self.assertRaisesRegex(gpusim.Error, says, action)
            self.assertRaises(IndexError, lambda: machine.cores[2])
            self.assertRaisesRegex(gpusim.Error, "core 2: there are 0 to 1", machine.read, "table",
                                   core=2)
            machine.run()

    def test_registers(self):
        for isa, (_, letter) in ISAS.items():
            with self.subTest(isa=isa), gpusim.Machine(GUEST[isa], cores=5, **SUM) as machine:
                for core in machine.cores:
                    self.assertEqual((core[letter + "0"], core[letter + "1"]), (core.number, 5))
                    self.assertEqual(machine.symbolize(core.pc), "sum")
                    self.assertEqual(core.state, "running")
                self.assertTrue(machine.disassemble(machine.cores[0].pc))
                machine.cores[3][letter + "0"] = 4  # core 3 does core 4's work, and nobody core 3's
                machine.run()
                sums = machine.array("sums", "<i8")
                index = numpy.arange(1024)
                self.assertEqual(sums[4], 4 * int(numpy.where(index % 5 == 4, 0, index).sum()))
                self.assertEqual(sums[3], 0)
                self.assertEqual(machine.states(), ["ended"] * 5)
                self.assertIsNone(machine.cores[0].pc)

    def test_vector_registers(self):
        if "aarch64" not in ISAS:
            self.skipTest("no cross compiler")
        with gpusim.Machine(GUEST["aarch64"], ["@core", 2.5], entry="scale", cores=2) as machine:
            core = machine.cores[1]
            self.assertEqual(core["v0"], 0x4004000000000000)
            core["v0"] = int.from_bytes(numpy.float64(10).tobytes(), "little")
            machine.run()
            self.assertEqual(list(machine.array("sums", "<i8", 2)), [3, 30])

    def test_steps(self):
        whole = gpusim.run(GUEST[MAIN], cores=64, **SUM)
        with gpusim.Machine(GUEST[MAIN], cores=64, **SUM) as machine:
            seen = [machine.instructions]
            while machine.step(1000):
                seen.append(machine.instructions)
            self.assertEqual(seen[0], 0)
            steps = numpy.diff(seen[:-1]) / 64
            self.assertGreater(len(steps), 5)
            # About what was asked for: a block more, or less where lanes were apart.
            self.assertTrue(((steps > 500) & (steps < 1500)).all(), steps)
            result = machine.finish()
            for key in ("guest_instructions", "classes", "functions", "lines", "exit_status"):
                self.assertEqual(result.stats[key], whole.stats[key])
            self.assertEqual(machine.classes(), whole.stats["classes"])
            per_core = machine.classes_per_core()
            self.assertEqual(per_core.shape, (64, 15))
            self.assertEqual(list(per_core.sum(axis=0)), list(whole.stats["classes"].values()))
            self.assertIs(machine.finish(), result)
            self.assertFalse(machine.step())

    def test_a_gate_is_opened_from_outside(self):
        with gpusim.Machine(GUEST[MAIN], ["@core"], entry="wait_for_gate", cores=8) as machine:
            self.assertTrue(machine.run_until(lambda m: (m.array("sums", "<i8", 8) > 50).all(),
                                              every=100))
            self.assertEqual(machine.alive, 8)
            machine.write("gate", numpy.int64(1))
            self.assertFalse(machine.run_until(lambda m: False))
            self.assertEqual(list(machine.array("sums", "<i8", 8)), [-1] * 8)

    def test_a_machine_that_ended_in_the_middle(self):
        machine = gpusim.Machine(GUEST[MAIN], ["@core"], entry="forever", cores=8)
        machine.step(100)
        result = machine.finish()
        self.assertTrue(result.interrupted)
        self.assertGreater(result.stats["guest_instructions"], 500)
        machine.close()
        machine.close()
        self.assertRaisesRegex(gpusim.Error, "closed", machine.step)
        self.assertRaisesRegex(gpusim.Error, "closed", machine.read, "table")

    def test_frames(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            result = gpusim.run(GUEST[MAIN], **SUM)
            self.assertRaisesRegex(gpusim.Error, "python3-pandas", result.to_frame)
            self.skipTest("pandas is missing (python3-pandas)")
        result = gpusim.run(GUEST[MAIN], cores=64, per_core=True, **SUM)
        light = gpusim.run(GUEST[MAIN], cores=64, **SUM)
        frame = result.to_frame()
        self.assertTrue((frame == light.to_frame()).all(axis=None))
        self.assertEqual(frame.shape, (64, 16))
        self.assertEqual(frame["guest_instructions"].sum(), result.stats["guest_instructions"])
        self.assertEqual(result.to_frame("functions").loc["sum", "guest_instructions"],
                         result.stats["functions"][0]["guest_instructions"])
        self.assertRaisesRegex(gpusim.Error, "cores.*functions", result.to_frame, "blocks")


class Callbacks(unittest.TestCase):
    def test_counts_are_those_of_the_plugins(self):
        cores = 5
        blocks, counts, accesses, synchronisation = {}, {}, [], []
        lock = threading.Lock()

        def on_blocks(core, numbers):
            with lock:
                for number, times in zip(*numpy.unique(numbers, return_counts=True)):
                    counts[number] = counts.get(number, 0) + times

        def on_accesses(core, some):
            with lock:
                accesses.append((core, some))

        with gpusim.Machine(GUEST[MAIN], cores=cores, group_width=2,
                            on_translation=lambda b: blocks.__setitem__(b["number"], b),
                            on_blocks=on_blocks, on_accesses=on_accesses,
                            on_synchronisation=lambda *a: synchronisation.append(a),
                            **SUM) as machine:
            result = machine.run()
            ended = machine.block_counts()
            opcodes = {}
            for number, times in counts.items():
                self.assertEqual(times, ended[number])
                for insn in blocks[number]["instructions"]:
                    name = machine.disassemble(int(insn["address"])).split()[0]
                    opcodes[name] = opcodes.get(name, 0) + int(times)
        self.assertEqual(sum(opcodes.values()), result.stats["guest_instructions"])
        code = blocks[min(counts)]
        self.assertEqual(len(code["code"]), code["end"] - code["address"])
        self.assertEqual(synchronisation, [])

        command = [GPUSIM, "run", GUEST[MAIN], "--entry", "sum", "--arg", "@core", "--arg",
                   "@cores", "--cores", str(cores), "--group-width", "2", "--quiet"]
        done = subprocess.run([*command, "--plugin", f"{PLUGINS}/opcode_histogram.so,100"],
                              capture_output=True, text=True, check=True, timeout=60)
        theirs = {line.split()[0]: int(line.split()[1]) for line in done.stderr.splitlines()}
        self.assertEqual(opcodes, theirs)

        # Arrays are copies: they are as they were, now that the machine is gone.
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "trace")
            subprocess.run([*command, "--plugin", f"{PLUGINS}/memory_trace.so,{trace}"], check=True,
                           timeout=60)
            lines = [line.split() for line in trace.read_text().splitlines()]
        for core in range(cores):
            ours = [(int(a["address"]), int(a["bytes"])) for c, some in accesses if c == core
                    for a in some]
            theirs = [(int(line[2], 16), int(line[3])) for line in lines if line[0] == str(core)]
            self.assertGreater(len(ours), 100)
            self.assertEqual(ours, theirs)

    def test_stacks_by_core(self):
        lines = gpusim.stacks_by_core(WORDS[MAIN], cores=3, memory="private").splitlines()
        result = gpusim.run(WORDS[MAIN], cores=3, memory="private", per_core=True)
        by_core, by_function = {}, {}
        for line in lines:
            core, function, count = re.fullmatch(r"core (\d);(.*) (\d+)", line).groups()
            by_core[int(core)] = by_core.get(int(core), 0) + int(count)
            by_function[function] = by_function.get(function, 0) + int(count)
        self.assertEqual(by_core, {c["core"]: c["guest_instructions"]
                                   for c in result.stats["per_core"]})
        theirs = {f["function"] or "(unknown)": f["guest_instructions"]
                  for f in result.stats["functions"]}
        self.assertEqual(by_function, theirs)

    def test_exceptions_end_the_run(self):
        class Mine(Exception):
            pass

        def raises(*_):
            raise Mine("of the callback")

        for name in ("on_translation", "on_blocks", "on_accesses"):
            with self.subTest(name=name):
                self.assertRaisesRegex(Mine, "of the callback", gpusim.run, GUEST[MAIN], cores=200,
                                       **SUM, **{name: raises})
        self.assertEqual(gpusim.run(GUEST[MAIN], cores=200, **SUM).exit_status, 0)

    def test_a_callback_may_stop_but_not_look(self):
        said = []

        def on_blocks(core, numbers):
            try:
                machine.read("table")
            except gpusim.Error as e:
                said.append(str(e))
            machine.stop()

        with gpusim.Machine(GUEST[MAIN], ["@core"], entry="forever",
                            on_blocks=on_blocks) as machine:
            self.assertTrue(machine.run().interrupted)
        self.assertIn("callback", said[0])


class Many(unittest.TestCase):
    def test_threads(self):
        expected = gpusim.run(GUEST[MAIN], cores=64, **SUM).stats
        found, errors = [], []

        def work():
            try:
                for _ in range(4):
                    found.append(gpusim.run(GUEST[MAIN], cores=64, **SUM).stats)
            except Exception as e:  # told below
                errors.append(e)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(found), 16)
        for stats in found:
            self.assertEqual(stats["classes"], expected["classes"])

    def test_python_goes_on_while_a_machine_runs(self):
        with gpusim.Machine(GUEST[MAIN], ["@core"], entry="forever", cores=64) as machine:
            thread = threading.Thread(target=machine.run)
            thread.start()
            said = ""
            for _ in range(1000):
                try:
                    machine.alive  # between two slices it is allowed
                except gpusim.Error as e:
                    said = str(e)
                    break
            machine.stop()
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertIn("another thread", said)

    def test_machines_leave_nothing(self):
        def memory():
            gc.collect()
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

        def one(i):
            machine = gpusim.Machine(GUEST[MAIN], ["@core", "@cores"], cores=256,
                                     entry=("sum", "forever")[i % 2] if i % 5 else "fall")
            machine.step(200)
            if i % 3 == 0:
                machine.finish()
            if i % 2:
                machine.close()  # else it goes with its last name

        for i in range(10):
            one(i)
        files, before = len(os.listdir("/proc/self/fd")), memory()
        threads = len(os.listdir("/proc/self/task"))
        for i in range(50):
            one(i)
        grown = memory() - before
        self.assertLess(grown, 32 << 20)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)
        self.assertLessEqual(len(os.listdir("/proc/self/task")), threads + 1)

    def test_sweeps_and_energy(self):
        seen = []
        study = gpusim.sweep(GUEST[MAIN], ["@core", "@cores"], entry="sum", energy="et-soc1",
                             over={"cores": [1, 4], "memory": ["shared", "private"]},
                             progress=lambda *a: seen.append(a))
        self.assertEqual([(r["cores"], r["memory"]) for r in study.rows()],
                         [(1, "shared"), (1, "private"), (4, "shared"), (4, "private")])
        self.assertEqual(seen[3], (3, 4, {"cores": 4, "memory": "private"}))
        one = gpusim.run(GUEST[MAIN], cores=4, energy="et-soc1", **SUM)
        row = study.rows()[2]
        self.assertEqual(row["guest_instructions"], one.stats["guest_instructions"])
        self.assertEqual(row["joules et-soc1"], one.energy()["et-soc1"]["dynamic"]["value_J"])
        for words, says in (({"over": {"core": [1]}}, "did you mean cores"),
                            ({"over": {"cores": []}}, "list of values"),
                            ({"over": {"cores": [1]}, "cores": 2}, "varies and does not")):
            self.assertRaisesRegex(gpusim.Error, says, gpusim.sweep, GUEST[MAIN], **words)

        with tempfile.TemporaryDirectory() as folder:
            stats, report = pathlib.Path(folder, "stats.json"), pathlib.Path(folder, "energy.json")
            stats.write_text(json.dumps(one.stats))
            subprocess.run([GPUSIM, "energy", "estimate", stats, "--target", "all", "--json",
                            report], check=True, stdout=subprocess.DEVNULL, timeout=60)
            theirs = {t["target"]: t for t in json.loads(report.read_text())["targets"]}
            for of in (one, one.stats, stats):
                self.assertEqual(gpusim.estimate_energy(of), theirs)
        self.assertEqual(list(gpusim.estimate_energy(one, ["fermi"])), ["fermi"])
        self.assertEqual({t["name"] for t in gpusim.targets()}, set(theirs))
        self.assertRaisesRegex(gpusim.Error, "nothing", gpusim.estimate_energy, one, "nothing")
        self.assertRaisesRegex(gpusim.Error, "classes", gpusim.estimate_energy, {})

    def test_info(self):
        theirs = subprocess.run([GPUSIM, "info", "--json"], capture_output=True, check=True).stdout
        self.assertEqual(gpusim.info(), json.loads(theirs))
        version = subprocess.run([GPUSIM, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(version.stdout.split()[1], gpusim.__version__)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

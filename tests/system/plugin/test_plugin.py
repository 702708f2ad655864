#!/usr/bin/env python3
"""`gpusim run --plugin` (docs/howto/plugin.md).

  test_plugin.py GPUSIM PLUGIN_FOLDER HEADER_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from gpusim_case import GpusimCase  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
RISCV = "/usr/bin/riscv64-linux-gnu-"
LOAD, STORE, ATOMIC, FENCE, YIELD, WAIT, SIGNAL = range(7)


class Plugins(GpusimCase):
    plugins: pathlib.Path
    headers: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.guest, cls.recorder = cls.build / "plugin.elf", cls.build / "recorder.so"
        subprocess.run([CROSS, "-nostdlib", "-static", "-Wl,--entry=work", "-o", cls.guest,
                        HERE / "guest.S"], check=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{cls.headers}", "-o",
                        cls.recorder, HERE / "recorder.c"], check=True)

    def run_gpusim(self, *words, status=0, guest=None):
        return super().run_gpusim("run", guest or self.guest, "--entry", "work", "--arg", "@core",
                                  "--arg", "&place", "--quiet", *words, status=status)

    def record(self, *options, guest=None):
        log = self.folder / "log"
        self.run_gpusim("--plugin", f"{self.recorder},{log},all", *options, guest=guest)
        kinds = collections.defaultdict(list)
        for text in log.read_text().splitlines():
            kind, rest = text.split(" ", 1)
            kinds[kind].append(rest)
        return kinds

    def test_everything_is_heard(self):
        place = int(subprocess.run(["aarch64-linux-gnu-nm", self.guest], capture_output=True, text=True,
                                   check=True).stdout.split(" B place")[0].split()[-1], 16)
        for backend in ("scalar", "simd"):
            heard = self.record("--backend", backend, "--cores", 3, "--group-width", 2)
            self.assertEqual(heard["start"], ["hello aarch64 3 cores in groups of 2, 15 classes from "
                                              "integer_arithmetic"])
            blocks = {}
            for text in heard["block"]:
                number, _, symbol, count, branch, *code = text.split()
                blocks[symbol] = int(number)
                self.assertEqual(len(code), int(count))
                self.assertTrue(all(word.endswith("/ok") for word in code))
            loop = blocks["loop"]
            for core in range(3):
                group = core // 2
                path = [text.split()[2:] for text in heard["blocks"]
                        if text.startswith(f"{group} {core} ")]
                path = [int(number) for part in path for number in part]
                # The first block runs into the loop, or ends where it begins.
                self.assertEqual(path.count(loop), 3, heard["blocks"])
                seen = [text.split() for text in heard["access"] if text.startswith(f"{group} {core} ")]
                accesses = [(int(a[3]), int(a[4], 16) - place, int(a[5])) for a in seen]
                expected = 3 * [(LOAD, 0, 8), (STORE, 16, 16)] + [(LOAD, 0, 8), (ATOMIC, 0, 8)]
                if core == 0:
                    expected.append((LOAD, 7, 1))
                self.assertEqual(accesses, expected)
                sync = [int(text.split()[3]) for text in heard["sync"]
                        if text.startswith(f"{group} {core} ")]
                self.assertEqual(sync, [FENCE, ATOMIC, SIGNAL])
            use = dict((int(a), (int(b), int(c))) for a, b, c in map(str.split, heard["use"]))
            self.assertEqual(use[loop][0], 9)
            self.assertGreaterEqual(use[loop][1], 9)

    def test_instructions_of_two_and_four_bytes(self):
        guest = self.build / "plugin_riscv.elf"
        subprocess.run([RISCV + "gcc", "-nostdlib", "-static", "-march=rv64gc", "-Wl,--entry=work",
                        "-o", guest, HERE / "guest_riscv.S"], check=True)
        listing = subprocess.run([RISCV + "objdump", "-d", guest], capture_output=True, text=True,
                                 check=True).stdout
        # objdump prints a number, the plug-in bytes as they lie in memory.
        expected = {int(address, 16): bytes.fromhex(code)[::-1].hex() for address, code in
                    re.findall(r"^ +([0-9a-f]+):\t([0-9a-f]+) ", listing, re.M)}
        self.assertEqual({len(code) // 2 for code in expected.values()}, {2, 4})
        heard = self.record("--cores", 2, guest=guest)
        self.assertEqual(heard["start"][0].split()[1], "riscv64")
        told = {}
        for text in heard["block"]:
            _, address, _, _, _, *code = text.split()
            at = int(address, 16)
            for word in code:
                digits, _, state = word.split("/")
                self.assertEqual(state, "ok", text)
                told[at] = digits
                at += len(digits) // 2
        self.assertEqual(told, expected)
        loads = [text for text in heard["access"] if text.split()[3] == str(LOAD)]
        self.assertEqual(len(loads), 2 * 3)

    def test_accesses_of_vectors(self):
        guest = self.build / "plugin_vectors.elf"
        subprocess.run([RISCV + "gcc", "-nostdlib", "-static", "-march=rv64gcv", "-Wl,--entry=work",
                        "-o", guest, HERE / "guest_vectors.S"], check=True)
        names = subprocess.run([RISCV + "nm", guest], capture_output=True, text=True,
                               check=True).stdout
        place = int(re.search(r"(\w+) B place", names)[1], 16)
        expected = [(LOAD, 0, 16), (STORE, 64, 128), (LOAD, 0, 32),
                    *((LOAD, 8 * i, 4) for i in range(4)), (LOAD, 8, 8),
                    (LOAD, 2, 1), (LOAD, 5, 3), (STORE, 16, 8)]
        for backend in ("scalar", "simd"):
            heard = self.record("--backend", backend, "--cores", 3, guest=guest)
            for core in range(3):
                seen = [a for a in map(str.split, heard["access"]) if a[1] == str(core)]
                accesses = [(int(a[3]), int(a[4], 16) - place, int(a[5])) for a in seen]
                self.assertEqual(accesses, expected)

    def test_plugins_of_other_versions_are_refused(self):
        install = "int gpusim_plugin_install(void) { return 0; }\n"
        for version, source, is_for in (
                ("none", install, "exports no gpusim_plugin_version, the version of the plug-in "
                                  "interface that it was made for"),
                (3, "const unsigned gpusim_plugin_version = 3;\n" + install,
                 "was made for version 3 of the plug-in interface")):
            plugin = self.folder / f"version{version}.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", plugin, "-"], input=source,
                           text=True, check=True)
            done = self.run_gpusim("--plugin", plugin, status=2)
            self.assertIn(f"it {is_for}; this gpusim has version 2: compile it again",
                          done.stderr)

    def test_a_run_is_the_same_with_a_plugin(self):
        stats = []
        for options in ((), ("--plugin", f"{self.recorder},{self.folder}/log,all")):
            path = self.folder / "stats.json"
            self.run_gpusim("--cores", 100, "--stats", path, *options)
            stats.append(json.loads(path.read_text()))
        for key in ("guest_instructions", "classes", "functions"):
            self.assertEqual(stats[0][key], stats[1][key])

    def test_examples(self):
        done = self.run_gpusim("--cores", 64, "--plugin", f"{self.plugins}/opcode_histogram.so,3",
                               "--plugin", f"{self.plugins}/convergence.so,1")
        self.assertRegex(done.stderr, r"\Ab.ne +192 +15\.\d\d %\nldr +192 .*\nstp +192 .*\n")
        self.assertRegex(done.stderr, r"branch +active +executions  in\n0x[0-9a-f]+ +[\d.]+/64 +\d+  ")
        trace = self.folder / "trace"
        self.run_gpusim("--plugin", f"{self.plugins}/memory_trace.so,{trace}")
        lines = trace.read_text().splitlines()
        self.assertEqual(len(lines), 9)
        self.assertRegex(lines[1], r"^0 w 0x[0-9a-f]+ 16$")

    def test_what_is_no_plugin_is_refused(self):
        text = self.folder / "text.so"
        text.write_text("text")
        empty = self.folder / "empty.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", empty, "/dev/null"], check=True)
        for plugin, says in ((self.folder / "none.so", "none.so"), (text, "text.so"),
                             (empty, "gpusim_plugin_install"), (self.recorder, "two arguments"),
                             (f"{self.recorder},x,silent", "status 7")):
            done = self.run_gpusim("--plugin", plugin, status=2)
            self.assertRegex(done.stderr, r"\Agpusim: error: --plugin [^\n]+\n\Z")
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    Plugins.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Plugins.plugins = pathlib.Path(sys.argv[2]).resolve()
    Plugins.headers = pathlib.Path(sys.argv[3]).resolve()
    Plugins.build = pathlib.Path(sys.argv[4]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])

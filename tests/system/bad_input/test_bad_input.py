#!/usr/bin/env python3
"""Bad programs, modules and guests: a clear error each, no crash, no hang, nothing half-written.

  test_bad_input.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector",
        "-fno-tree-loop-distribute-patterns"]
USER_ERROR, LIMIT = 2, 124
TIMEOUT_S = 60

# Faulting function → what the pc belongs to; None where it is in no function.
FAULTS = {
    "load_null()": "load_null", "load_wild()": "load_wild", "load_high()": "load_high",
    "store_wild()": "store_wild", "store_constant()": "store_constant",
    "store_code()": "store_code", "jump_data()": None, "jump_null()": None, "jump_odd()": None,
    "undefined()": "undefined", "privileged()": "privileged", "breakpoint()": "breakpoint",
    "exclusive_odd()": "exclusive_odd", "stack_overflow(0)": "stack_overflow",
}


def guest_name(fault):
    return fault.split("(")[0] + ".elf"


class BadInput(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        source = HERE / "guests.c"
        commands = {guest_name(fault): [CROSS, "-O1", "-w", *BARE, f"-DFAULT={fault}", source]
                    for fault in [*FAULTS, "endless()", "(void)0"]}
        plain = HERE.parents[1] / "differential" / "programs" / "libc" / "status.c"
        commands["dynamic.elf"] = [CROSS, "-O1", plain]
        commands["object.elf"] = [CROSS, "-O1", "-c", plain]
        common = harness.compiler_version(CROSS) + (
            HERE.parents[1] / "differential/programs/bare/bare.h").read_text()
        harness.build_all(commands, common, cls.build, os.cpu_count())
        cls.good = cls.build / "good.elf"
        shutil.copy(cls.build / guest_name("(void)0"), cls.good)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def execute(self, *words):
        status, stdout, stderr = harness.execute([self.gpusim, *map(str, words)], TIMEOUT_S)
        stderr = stderr.decode(errors="replace")
        where = f"gpusim {' '.join(map(str, words))}: status {status}, stderr:\n{stderr[:2000]}"
        self.assertIsInstance(status, int, where)
        self.assertGreaterEqual(status, 0, f"died of a signal: {where}")
        self.assertNotRegex(stderr, "Sanitizer|runtime error:|terminate called", where)
        return status, stdout, stderr, where

    def refused(self, *words):
        """Runs gpusim; it must end with its own status and one line that says why."""
        status, stdout, stderr, where = self.execute(*words)
        self.assertEqual(status, USER_ERROR, where)
        self.assertEqual(stdout, b"", where)
        self.assertEqual(len(stderr.strip().splitlines()), 1, where)
        return stderr

    def survives(self, path):
        """Whatever the file is worth, running it ends, and not by a crash of ours."""
        status, _, stderr, where = self.execute("run", "--quiet", "--max-instructions", 100000,
                                                "--backend", "scalar", path)
        if status == USER_ERROR:
            self.assertTrue(stderr.strip(), where)
        return status

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    # Programs

    def test_the_good_program_runs(self):
        status, stdout, _, where = self.execute("run", self.good)
        self.assertEqual((status, stdout), (0, b"before\nafter\n"), where)

    def test_no_such_file(self):
        self.assertIn("there-is-none", self.refused("run", self.folder / "there-is-none"))

    def test_folder(self):
        self.refused("run", self.folder)

    def test_not_elf(self):
        for name, content in (("empty", b""), ("byte", b"\x7f"), ("text", b"#!/bin/sh\nexit 0\n"),
                              ("magic", b"\x7fELF"), ("zeros", bytes(4096))):
            with self.subTest(name):
                self.assertIn(name, self.refused("run", self.file(name, content)))

    def test_foreign_isa(self):
        message = self.refused("run", shutil.which("true"))
        self.assertRegex(message, "(?i)x86|machine|isa")

    def test_dynamic(self):
        elf = self.build / "dynamic.elf"
        for words in (["disasm"], ["run", "--cores", 5000]):
            self.assertRegex(self.refused(*words, elf), "a dynamically linked program")

    def test_object_file(self):
        self.refused("run", self.build / "object.elf")

    def test_wrong_class_and_byte_order(self):
        content = bytearray(self.good.read_bytes())
        for offset, value in ((4, 1), (4, 9), (5, 2), (5, 0), (18, 0x3e), (18, 0xff)):
            changed = bytearray(content)
            changed[offset] = value
            with self.subTest(offset=offset, value=value):
                self.refused("run", self.file("changed.elf", changed))

    def test_truncated(self):
        content = self.good.read_bytes()
        loaded = max(offset + size for offset, size in self.load_segments(content))
        lengths = {1, 4, 15, 16, 52, 63, 64, 100, 120, 4095, loaded // 2, loaded - 1}
        for length in sorted(n for n in lengths if n < loaded):
            with self.subTest(length=length):
                self.refused("run", self.file("cut.elf", content[:length]))
        for length in (loaded, loaded + 1, len(content) - 64, len(content) - 1):
            with self.subTest(length=length):
                self.survives(self.file("cut.elf", content[:length]))

    @staticmethod
    def load_segments(content):
        table, = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        for i in range(count):
            kind, _, offset, _, _, file_size = struct.unpack_from("<IIQQQQ", content,
                                                                  table + i * size)
            if kind == 1:
                yield offset, file_size

    def test_header_fields(self):
        """Every field of the ELF header and of the program headers, with absurd values."""
        content = self.good.read_bytes()
        table, = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        fields = [(24, 8), (32, 8), (40, 8), (48, 4), (52, 2), (54, 2), (56, 2), (58, 2), (60, 2),
                  (62, 2)]
        for i in range(count):
            fields += [(table + i * size + o, n) for o, n in
                       ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8))]
        for offset, width in fields:
            for value in (0, 1, 1 << (8 * width - 1), (1 << 8 * width) - 1, 0x7ff0):
                changed = bytearray(content)
                changed[offset:offset + width] = (value & ((1 << 8 * width) - 1)).to_bytes(
                    width, "little")
                with self.subTest(offset=offset, value=hex(value)):
                    self.survives(self.file("changed.elf", changed))

    def test_random_damage(self):
        seed = int(os.environ.get("GPUSIM_SEED", random.randrange(1 << 32)))
        generator = random.Random(seed)
        content = self.good.read_bytes()
        for number in range(60):
            changed = bytearray(content)
            for _ in range(generator.choice((1, 3, 20))):
                # Half of it in the headers, where it matters most.
                end = generator.choice((240, len(changed)))
                changed[generator.randrange(end)] = generator.randrange(256)
            with self.subTest(replay=f"GPUSIM_SEED={seed}", number=number):
                self.survives(self.file("damaged.elf", changed))

    def test_no_such_entry(self):
        self.assertIn("no_such_function",
                      self.refused("run", "--entry", "no_such_function", self.good))

    # Modules

    def module(self):
        path = self.folder / "good.gsm"
        status, _, _, where = self.execute("translate", self.good, "-o", path)
        self.assertEqual(status, 0, where)
        return path

    def test_the_good_module_runs(self):
        status, stdout, _, where = self.execute("run", self.module())
        self.assertEqual((status, stdout), (0, b"before\nafter\n"), where)

    def test_damaged_module(self):
        content = self.module().read_bytes()
        step = max(1, len(content) // 60)
        for offset in [*range(24), *range(24, len(content), step), len(content) - 1]:
            changed = bytearray(content)
            changed[offset] ^= 0x41
            with self.subTest(offset=offset):
                self.refused("run", self.file("changed.gsm", changed))

    def test_truncated_module(self):
        content = self.module().read_bytes()
        for length in (0, 1, 7, 8, 16, 40, len(content) // 3, len(content) - 8, len(content) - 1):
            with self.subTest(length=length):
                self.refused("run", self.file("cut.gsm", content[:length]))
        with self.subTest("longer"):
            self.refused("run", self.file("long.gsm", content + b"more"))

    def test_nothing_half_written(self):
        kept = self.file("kept.gsm", b"what was there before")
        self.refused("translate", self.file("bad.elf", b"\x7fELF"), "-o", kept)
        self.assertEqual(kept.read_bytes(), b"what was there before")
        self.refused("translate", self.good, "-o", self.folder / "no" / "such" / "folder.gsm")
        self.refused("run", "--stats", self.folder / "no" / "such" / "folder.json", self.good)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["bad.elf", "kept.gsm"])

    # Guests

    def test_guest_faults(self):
        for fault, symbol in FAULTS.items():
            elf = self.build / guest_name(fault)
            status, _, _ = harness.execute(["/usr/bin/qemu-aarch64", elf], TIMEOUT_S)
            self.assertLess(status, 0, f"{elf} does not fault under QEMU")
            for backend in ("scalar", "simd"):
                with self.subTest(fault, backend=backend):
                    stats = self.folder / "stats.json"
                    got, stdout, stderr, where = self.execute("run", "--backend", backend,
                                                              "--stats", stats, elf)
                    self.assertEqual(got, 128 - status, where)
                    self.assertEqual(stdout, b"before\n", where)
                    self.assertRegex(stderr, r"(?i)core 0\b", where)
                    self.assertRegex(stderr, r"0x[0-9a-f]+", where)
                    if symbol:
                        self.assertRegex(stderr, rf"\b{symbol}\b", where)
                    faults = json.loads(stats.read_text())["faults"]
                    self.assertEqual(len(faults), 1, where)
                    self.assertEqual(faults[0]["core"], 0, where)
                    if symbol:
                        self.assertRegex(faults[0]["symbol"], rf"^{symbol}\b", where)

    def test_endless_loop(self):
        for backend in ("scalar", "simd"):
            with self.subTest(backend=backend):
                status, _, stderr, where = self.execute(
                    "run", "--backend", backend, "--cores", 4, "--memory", "private",
                    "--max-instructions", 100000, self.build / "endless.elf")
                self.assertEqual(status, LIMIT, where)
                self.assertTrue(stderr.strip(), where)

    def test_one_core_of_many(self):
        for backend in ("scalar", "simd"):
            with self.subTest(backend=backend):
                stats = self.folder / "stats.json"
                status, _, stderr, where = self.execute(
                    "run", "--backend", backend, "--cores", 64, "--entry", "fifth_faults",
                    "--arg", "@core", "--stats", stats, self.good)
                self.assertEqual(status, 139, where)
                self.assertRegex(stderr, r"(?i)core 5\b", where)
                faults = json.loads(stats.read_text())["faults"]
                self.assertEqual([f["core"] for f in faults], [5], where)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    BadInput.gpusim = pathlib.Path(sys.argv[1]).resolve()
    BadInput.build = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

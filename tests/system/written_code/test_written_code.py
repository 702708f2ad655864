#!/usr/bin/env python3
"""Code that a program writes where it cannot be executed is reported, on every backend.

  test_written_code.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import os
import pathlib
import struct
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-O1", "-w", "-static"]
REPORT = (r"cores? .*: fault: this code was written by the program itself{}.*\n"
          r"  in .* at pc 0x[0-9a-f]+ \(\w+")
# Why it is not executed, by what guests.c is told to do.
WHY = {"1": "; it is executed only on a CPU and with --memory shared",
       "2": " too far away; it is executed in the 512 MiB from the program on",
       "3": " in memory that may not be executed; take memory for it by mmap",
       "4": " over code of its file, which may not change"}
BACKENDS = os.environ.get("GPUSIM_TEST_BACKENDS", "simd scalar").split()
ON_DEVICE = any(name.startswith("cuda") for name in BACKENDS)


def make_code_writable(source, target):
    """Gives executable segments of an ELF file write permission."""
    image = bytearray(source.read_bytes())
    (offset,) = struct.unpack_from("<Q", image, 32)
    (count,) = struct.unpack_from("<H", image, 56)
    for i in range(count):
        kind, flags = struct.unpack_from("<II", image, offset + 56 * i)
        if kind == 1 and flags & 1:
            struct.pack_into("<I", image, offset + 56 * i + 4, flags | 3)
    target.write_bytes(image)


class WrittenCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.guest, cls.writable = cls.build / "guests.elf", cls.build / "writable.elf"
        subprocess.run([*CC, HERE / "guests.c", "-o", cls.guest], check=True)
        make_code_writable(cls.guest, cls.writable)
        cls.beside = [cls.build / f"{name}.elf" for name in ("beside", "patched", "together")]
        for elf, more in zip(cls.beside, ([], ["-DPATCH"], ["-DTOGETHER"])):
            subprocess.run([*CC, *more, "-nostdlib", "-ffreestanding", "-Wl,-N", HERE / "beside.c",
                            "-o", elf],
                           check=True, capture_output=True)

    def run_all(self, elf, arguments=(), models=("shared", "private"), shared_cores="1"):
        for backend in BACKENDS:
            for model in models:
                cores = ["--cores", shared_cores if model == "shared" else "3", "--memory", model]
                with self.subTest(f"{elf.name} {arguments} {backend} {cores}"):
                    yield subprocess.run(
                        [self.gpusim, "run", "--backend", backend, *cores, elf, "--", *arguments],
                        capture_output=True, text=True, timeout=120)

    def test_written_code_is_reported(self):
        for elf, how in ((self.guest, "1"), (self.guest, "2"), (self.guest, "3"),
                         (self.writable, "1"), (self.writable, "4")):
            is_executed = how == "1" and not ON_DEVICE  # mapped executable, of one process
            models = ["private"] if is_executed else ["shared", "private"]
            for done in self.run_all(elf, [how], models):
                is_shared = "shared" in done.args and not ON_DEVICE
                why = WHY[how if is_shared or how == "4" else "1"]
                self.assertRegex(done.stderr, REPORT.format(why))
                self.assertEqual(done.returncode, 139)
                self.assertRegex(done.stdout, r"\A(before 1\n)+\Z")

    @unittest.skipIf(ON_DEVICE, "of backends of the host")
    def test_mapped_code_is_executed(self):
        for elf in (self.guest, self.writable):
            for done in self.run_all(elf, ["1"], ["shared"]):
                self.assertEqual(done.returncode, 42, done.stderr)

    @unittest.skipIf(ON_DEVICE, "of backends of the host")
    def test_a_pair_is_stored_into_two_pages_of_code(self):
        for done in self.run_all(self.guest, ["6"], ["shared"]):
            self.assertEqual(done.returncode, 42 + 42 + 5, done.stderr)

    @unittest.skipIf(ON_DEVICE, "of backends of the host")
    def test_room_asked_for_near_the_program_may_hold_code(self):
        """Without rights at first, and larger than any library, as V8 takes it."""
        for done in self.run_all(self.guest, ["7"], ["shared"]):
            self.assertEqual(done.returncode, 42, done.stderr)

    def test_code_does_not_become_writable(self):
        for done in self.run_all(self.guest, ["5"]):
            self.assertEqual(done.returncode, 77, done.stderr)

    def test_programs_that_only_could_run(self):
        for done in self.run_all(self.writable, ["0"]):
            self.assertEqual(done.returncode, 0, done.stderr)
        for done in self.run_all(self.beside[0]):
            self.assertEqual(done.returncode, 7, done.stderr)

    def test_cores_store_beside_code_at_once(self):
        for done in self.run_all(self.beside[2], shared_cores="5"):
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertNotIn("fault", done.stderr)

    def test_code_changed_beside_data_is_reported(self):
        for done in self.run_all(self.beside[1]):
            self.assertRegex(done.stderr, "this code was written by the program itself")
            self.assertEqual(done.returncode, 139)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    WrittenCode.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    WrittenCode.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

#!/usr/bin/env python3
"""Dynamically linked programs from Debian's packages, unchanged, and the programs that they start:
the same output, status and files as under qemu-user.

  test_debian_programs.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...

Each case runs on one of two backends in turn, and those that take long on one ISA in turn; with
GPUSIM_LONG in the environment all run on all backends of the host, native code from the first
instruction on among them.
The packages are downloaded once into the build folder. Exit status 77: they cannot be had.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import debian_cases as cases

HERE = pathlib.Path(__file__).resolve().parent
DOWNLOAD = HERE.parents[2] / "scripts" / "debian-download"
PACKAGES = ["busybox", "bash", "dash", "coreutils", "mawk", "lua5.4", "sqlite3", "python3-minimal",
            "libpython3-stdlib"]
# ISA of qemu-user -> Debian's architecture and suite, and what that has beside these packages.
GUESTS = {"aarch64": ("arm64", "bookworm", ["luajit"]), "riscv64": ("riscv64", "trixie", [])}
BACKENDS = (["--backend", "scalar"], ["--backend", "simd"],
            ["--backend", "simd", "--native-after", "0"])
IS_LONG = bool(os.environ.get("GPUSIM_LONG"))
TIMEOUT_S = 300
# What a program may see of its environment: no seed that differs from run to run.
VARIABLES = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
SCRIPT = "#!/bin/sh\necho \"$# $1 $(cat)\"; ./other; exit 5\n"


def download(build):
    for architecture, suite, more in GUESTS.values():
        if (build / architecture).is_dir():
            continue
        done = subprocess.run([DOWNLOAD, "--suite", suite, "--needed", architecture,
                               build / architecture, *PACKAGES, *more], check=False)
        if done.returncode == 77:
            print("skipped: packages cannot be had")
            sys.exit(77)
        done.check_returncode()


class Guest:
    """A system of one architecture: its programs, and how each emulator starts them."""

    def __init__(self, isa, build, gpusim):
        self.isa, self.gpusim = isa, gpusim
        self.root = build / GUESTS[isa][0]
        self.shims = build / f"{isa}-shims"
        self.fill_shims()

    def program(self, name):
        """The file, and its path in the guest."""
        for folder in ("usr/bin", "bin"):
            if (self.root / folder / name).exists():
                return self.root / folder / name, f"/{folder}/{name}"
        raise FileNotFoundError(name)

    # An emulator of one process lets the host execute what its guest does: these are in the guest's
    # search path, and start the emulator again.
    def fill_shims(self):
        shutil.rmtree(self.shims, ignore_errors=True)
        self.shims.mkdir()
        for folder in ("usr/bin", "bin"):
            for program in (self.root / folder).iterdir():
                shim = self.shims / program.name
                shim.write_text(f"#!/bin/sh\nexec {self.qemu()} -0 {program.name} "
                                f"{program} \"$@\"\n")
                shim.chmod(0o755)
        (self.shims / "sh").unlink(missing_ok=True)
        shutil.copy(self.shims / "dash", self.shims / "sh")

    def qemu(self):
        return f"/usr/bin/qemu-{self.isa} -L {self.root}"

    def under_qemu(self, name, arguments):
        file, path = self.program(name)
        return ([*self.qemu().split(), "-0", path, file, *arguments],
                {**VARIABLES, "PATH": str(self.shims)})

    def under_gpusim(self, name, arguments, options):
        file, path = self.program(name)
        variables = {**VARIABLES, "PATH": "/usr/bin:/bin"}
        return ([self.gpusim, "run", "--quiet", "--sysroot", self.root, "--root", ".", "--argv0",
                 path, *options,
                 *(word for v in variables.items() for word in ("--env", "=".join(v))), file, "--",
                 *arguments], {})


def contents(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode
        else:
            found[name] = "folder"
    return found


class DebianPrograms(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        download(cls.build)

    def fill(self):
        folder = self.build / "work"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "sub").mkdir(parents=True)
        (folder / "in.txt").write_text("banana 3\napple 10\ncherry 7\napple 2\n")
        (folder / "in.csv").write_text("name,count\nb,2\n\"a, c\",1\n")
        (folder / "sub" / "n.txt").write_text("".join(f"{i}\n" for i in range(1, 201)))
        (folder / "link").symlink_to("in.txt")
        for name in ("script", "other"):
            (folder / name).write_text(SCRIPT if name == "script" else "#!/bin/sh\necho other\n")
            (folder / name).chmod(0o755)
        for path in [*folder.rglob("*"), folder]:
            os.utime(path, (1600000000, 1600000000), follow_symlinks=False)
        return folder

    def result(self, command, environment):
        folder = self.fill()
        done = subprocess.run(list(map(str, command)), input=b"one 1\ntwo 2\n", capture_output=True,
                              cwd=folder, timeout=TIMEOUT_S, env=environment, check=False)
        status = 128 - done.returncode if done.returncode < 0 else done.returncode
        return {"status": status, "stdout": done.stdout.decode(), "files": contents(folder)}, done

    def compare(self, isa):
        guest = Guest(isa, self.build, self.gpusim)
        stats = self.build / "stats.json"
        for number, (name, arguments, kind) in enumerate(cases.CASES):
            if name == "luajit" and "luajit" not in GUESTS[isa][2]:
                continue
            turn = (number + list(GUESTS).index(isa)) % 2
            if name == "python3" and turn and not IS_LONG:
                continue
            expected, from_qemu = self.result(*guest.under_qemu(name, arguments))
            counts = {}
            for backend in BACKENDS if IS_LONG else [BACKENDS[1 if name == "python3" else turn]]:
                with self.subTest(f"{isa} {name} {' '.join(arguments)[:40]!r} {backend}"):
                    options = [*backend, "--stats", stats]
                    if kind in (cases.THREADED, cases.SHARING):
                        options += ["--cores", "4"]
                    if kind == cases.SHARING:
                        options += ["--root", "/dev/shm"]
                    got, done = self.result(*guest.under_gpusim(name, arguments, options))
                    self.assertEqual(got, expected, f"{done.stderr[:2000]}\n"
                                                    f"qemu: {from_qemu.stderr[:1000]}")
                    counts[str(backend)] = json.loads(stats.read_text())["guest_instructions"]
            if kind == cases.COUNTED:
                with self.subTest(f"{isa} {name} {' '.join(arguments)[:40]!r} instructions"):
                    self.assertEqual(len(set(counts.values())), 1, counts)

    def test_aarch64(self):
        self.compare("aarch64")

    def test_riscv64(self):
        self.compare("riscv64")

    # Without GPUSIM_LONG, too. All else that is counted is compared above.
    def test_backends_count_the_same(self):
        stats = self.build / "stats.json"
        for isa in GUESTS:
            guest = Guest(isa, self.build, self.gpusim)
            for name, backends in (("bash", BACKENDS), ("sqlite3", BACKENDS[:2])):
                arguments = next(a for n, a, kind in cases.CASES
                                 if n == name and kind == cases.COUNTED)
                counts = []
                for backend in backends:
                    self.result(*guest.under_gpusim(name, arguments, [*backend, "--stats", stats]))
                    counts.append(json.loads(stats.read_text())["guest_instructions"])
                with self.subTest(f"{isa} {name}"):
                    self.assertGreater(counts[0], 1_000_000)
                    self.assertEqual(counts[1:], counts[:1] * len(counts[1:]))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    DebianPrograms.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    DebianPrograms.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

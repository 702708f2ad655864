#!/usr/bin/env python3
"""Tests of the whole chain: guest program, driver, QEMU, daemon, simulator.

usage: run_qemu.py --gpusim FILE --build FOLDER [--qemu 7.2|10|FILE] [--suite NAME]... [--only PART]
                   [--long] [--list]

A suite is one boot of a guest and the tests that share it (suites.py). After each test nothing may
be left: in the guest no process, pinned page, use of the driver or complaint of the kernel; on
the host no descriptor, process or thread more than before. Exit status 77: the guest's or QEMU's
packages cannot be had; the reason is printed.
"""
import argparse
import pathlib
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(ROOT / "scripts")]

import guest_vm  # noqa: E402
import harness  # noqa: E402
from suites import SUITES  # noqa: E402

SKIP = 77


def prepare(command, what):
    """Runs a script whose last line is a path; ends this program with status 77 if it does."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode == SKIP:
        print(f"skipped: {what}: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
        sys.exit(SKIP)
    if done.returncode != 0:
        sys.exit(f"run_qemu: {what} failed with status {done.returncode}:\n{done.stderr}")
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpusim", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path, help="the build folder")
    parser.add_argument("--logs", type=pathlib.Path)
    parser.add_argument("--qemu", default="7.2")
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), default=None)
    parser.add_argument("--only", default="", help="tests whose name has this in it")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--setup", action="store_true", help="only fetch and build what is needed")
    arguments = parser.parse_args()
    names = arguments.suite or list(SUITES)
    if arguments.list:
        for name in names:
            for test in SUITES[name].tests:
                print(f"{name}: {test.__name__}")
        return 0

    image = prepare([ROOT / "scripts" / "guest-image"], "the guest's kernel")
    patched = None
    if arguments.setup or any(not SUITES[name].stock for name in names):
        patched = (pathlib.Path(arguments.qemu) if "/" in arguments.qemu else
                   prepare([ROOT / "scripts" / "build-qemu", "--version", arguments.qemu],
                           "a patched QEMU"))
    if arguments.setup:
        print(f"guest: {image}\nQEMU: {patched}")
        return 0
    setting = harness.Setting(
        gpusim=arguments.gpusim.resolve(), build=arguments.build.resolve(), image=image,
        patched=patched, stock=guest_vm.stock_qemu(), long=arguments.long,
        logs=(arguments.logs or arguments.build / "qemu-tests").resolve())

    for path in harness.guest_files(setting.build).values():
        if not path.is_file():
            sys.exit(f"run_qemu: {path} is not there; build target gpusim_offload_guest")
    failed = passed = skipped = 0
    for name in names:
        suite = SUITES[name]
        if suite.stock and setting.stock is None:
            print("skipped: qemu-system-aarch64 (Debian package qemu-system-arm) is not installed")
            return SKIP
        with harness.Runner(setting, name, suite) as runner:
            for test in suite.tests:
                if arguments.only not in test.__name__ or (
                        getattr(test, "long", False) and not arguments.long):
                    continue
                start = time.monotonic()
                try:
                    runner.run(test)
                    result, passed = "ok", passed + 1
                except harness.Skip as reason:
                    result, skipped = f"skipped: {reason}", skipped + 1
                except Exception as error:  # whatever it is, the others can still run
                    result, failed = "FAILED", failed + 1
                    if isinstance(error, (guest_vm.GuestError, AssertionError, OSError)):
                        place = traceback.extract_tb(error.__traceback__)
                        where = next((f for f in reversed(place) if "cases_" in f.filename),
                                     place[-1])
                        text = f"{pathlib.Path(where.filename).name}:{where.lineno}: {error}"
                    else:
                        text = traceback.format_exc()
                    result += "\n" + "".join(f"    {line}\n" for line in text.splitlines())
                print(f"{name}: {test.__name__}: {result.rstrip()} "
                      f"({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

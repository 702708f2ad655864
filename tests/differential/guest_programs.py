"""Freestanding programs on libgpusim's guest runtime, for runners that compile their own."""

import pathlib

GUEST = pathlib.Path(__file__).resolve().parents[2] / "libgpusim" / "guest"
COMPILER = "/usr/bin/aarch64-linux-gnu-gcc"
FLAGS = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib", "-static",
         "-no-pie", "-fno-pic", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns",
         "-mno-outline-atomics", "-I", GUEST]
# Linked into every program.
RUNTIME = [*GUEST.glob("*.c"), *GUEST.glob("sync/*.c"), GUEST / "aarch64" / "start.S"]
HEADERS = [*GUEST.glob("*.h"), *GUEST.glob("sync/*.h"), *GUEST.glob("aarch64/*.h")]

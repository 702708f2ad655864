"""Freestanding programs on libgpusim's guest runtime, for runners that compile their own."""

import pathlib
from dataclasses import dataclass

GUEST = pathlib.Path(__file__).resolve().parents[2] / "libgpusim" / "guest"


@dataclass(frozen=True)
class Isa:
    """What freestanding programs are built with; what differs is as in GuestProgram.cmake."""

    name: str
    own_flags: tuple

    @property
    def compiler(self):
        return f"/usr/bin/{self.name}-linux-gnu-gcc"

    @property
    def flags(self):
        return ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib", "-static",
                "-no-pie", "-fno-pic", "-fno-stack-protector",
                "-fno-tree-loop-distribute-patterns", *self.own_flags, "-I", GUEST]

    @property
    def runtime(self):
        """Linked into every program."""
        return [*GUEST.glob("*.c"), *GUEST.glob("sync/*.c"), GUEST / self.name / "start.S"]

    @property
    def headers(self):
        return [*GUEST.glob("*.h"), *GUEST.glob("sync/*.h"), *GUEST.glob(f"{self.name}/*.h")]


AARCH64 = Isa("aarch64", ("-mno-outline-atomics",))
RISCV64 = Isa("riscv64", ("-Wl,-z,separate-code",))

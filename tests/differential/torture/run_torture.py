#!/usr/bin/env python3
"""Runs GCC's torture programs under gpusim and compares exit status and instruction counts.

The programs come from Debian's package gcc-12-source and are unpacked and built below --build. What
QEMU counts for them stands in manifest-a64.tsv; where another compiler built another ELF, QEMU
counts again.
"""

import fnmatch
import functools
import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import harness  # noqa: E402

COMPILER = "/usr/bin/aarch64-linux-gnu-gcc"
ARCHIVES = pathlib.Path("/usr/src/gcc-12")
TIMEOUT_S = 180

DG_OPTIONS = re.compile(r'\{ *dg-(?:additional-)?options *\{? *"([^"]*)" *\}? *\}')
X_FLAGS = re.compile(r'additional_flags="(-[^"]*)"|^ *lappend additional_flags "(-[^"]*)"', re.M)


def read_manifest():
    """name → {level: (instructions, beginning of the ELF's SHA-256)}"""
    manifest = {}
    for line in (HERE / "manifest-a64.tsv").read_text().splitlines():
        if not line.startswith("#"):
            name, count0, sha0, count2, sha2 = line.split("\t")
            manifest[name] = {"O0": (int(count0), sha0), "O2": (int(count2), sha2)}
    return manifest


def unpack(folder):
    sources = folder / "execute"
    if sources.exists():
        return sources
    archives = sorted(ARCHIVES.glob("gcc-12*-dfsg.tar.xz"))
    if not archives:
        sys.exit(f"no GCC sources in {ARCHIVES}: install the package gcc-12-source (scripts/setup)")
    partial = folder / "unpacking"
    partial.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-C", partial, "-xf", archives[-1], "--wildcards",
                    "--strip-components=4", "*/gcc/testsuite/gcc.c-torture/execute"], check=True)
    (partial / "execute").rename(sources)
    partial.rmdir()
    return sources


def program_flags(source):
    """The flags that a test asks for in itself or in the .x file beside it.

    Only those without a condition on the target: they are for other machines.
    """
    text = source.read_text(errors="replace")
    flags = " ".join(DG_OPTIONS.findall(text))
    if "SIGNAL_SUPPRESS" in text:
        flags += " -DSIGNAL_SUPPRESS"
    if source.parent.name == "ieee":
        flags += " -ffloat-store -fno-inline"
    beside = source.with_suffix(".x")
    if beside.exists():
        flags += " " + " ".join("".join(pair) for pair in X_FLAGS.findall(beside.read_text()))
    return flags.split()


def elf_name(name):
    return name.replace("/", "__") + ".elf"


def build(names, level, sources, folder, jobs):
    version = harness.compiler_version(COMPILER)
    plain = [COMPILER, "-fno-pie", "-no-pie"]
    runtime = HERE / "runtime"
    harness.build_all({
        "rt.o": [*plain, "-O2", "-ffreestanding", "-fno-tree-loop-distribute-patterns",
                 "-ffunction-sections", "-c", runtime / "rt.c"],
        "crt0.o": [COMPILER, "-c", runtime / "crt0.S"],
    }, version, folder / "runtime", jobs)
    objects = [folder / "runtime" / "crt0.o", folder / "runtime" / "rt.o"]
    runtime_text = "".join((runtime / f).read_text() for f in ("rt.c", "crt0.S"))
    commands = {}
    for name in names:
        source = sources / f"{name}.c"
        commands[elf_name(name)] = [
            *plain, f"-{level}", "-w", *program_flags(source), "-static", "-nostdlib",
            "-nostartfiles", "-Wl,--gc-sections", source, *objects, "-lgcc"]
    harness.build_all(commands, version + runtime_text, folder / level, jobs)


def expected_count(elf, known, plugin):
    count, sha = known
    if hashlib.sha256(elf.read_bytes()).hexdigest().startswith(sha):
        return count
    measured = harness.run_qemu(plugin(), elf)
    if measured.status != 0:
        raise RuntimeError(f"{elf}: status {measured.status} under qemu-aarch64")
    return measured.guest_instructions


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="O0,O2")
    manifest = read_manifest()
    names = [name for name in manifest if fnmatch.fnmatchcase(name, arguments.only)]
    sources = unpack(arguments.build)
    plugin = functools.cache(lambda: harness.build_plugin(arguments.build.parent / "plugin"))

    cases = []
    for level in arguments.levels:
        build(names, level, sources, arguments.build, arguments.jobs)
        for name in names:
            elf = arguments.build / level / elf_name(name)
            expect = functools.cache(functools.partial(expected_count, elf, manifest[name][level],
                                                       plugin))
            for mode in arguments.modes:
                def check(elf=elf, expect=expect, mode=mode):
                    got = harness.run_gpusim(arguments.gpusim, elf, mode, timeout_s=TIMEOUT_S,
                                             options=arguments.options)
                    return harness.compare(harness.Result(0, None, b"", expect()), got, mode)
                cases.append(harness.Case(name, level, mode, check))
    skips = harness.read_skips(HERE / "skip.txt")
    return harness.run_cases(cases, skips, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())

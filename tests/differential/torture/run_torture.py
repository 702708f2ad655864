#!/usr/bin/env python3
"""Runs GCC's torture programs under gpusim and compares exit status and instruction counts.

The programs come from Debian's package gcc-12-source and are unpacked and built below --build. What
QEMU counts for them stands in manifest-a64.tsv; where another compiler built another ELF, QEMU
counts again.
"""

import concurrent.futures
import fnmatch
import functools
import hashlib
import itertools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import gcc_suite  # noqa: E402
import harness  # noqa: E402
from gcc_suite import COMPILER  # noqa: E402

LEVELS = ("O0", "O1", "O2", "O3", "Os")
TIMEOUT_S = 900

DG_OPTIONS = re.compile(r'\{ *dg-(?:additional-)?options *\{? *"([^"]*)" *\}? *\}')
X_FLAGS = re.compile(r'additional_flags="(-[^"]*)"|^ *lappend additional_flags "(-[^"]*)"', re.M)


def read_manifest():
    """name → {level: (instructions, beginning of the ELF's SHA-256)}"""
    manifest = {}
    for line in (HERE / "manifest-a64.tsv").read_text().splitlines():
        if not line.startswith("#"):
            name, *fields = line.split("\t")
            counts, shas = fields[0::2], fields[1::2]
            manifest[name] = {level: (int(count), sha)
                              for level, count, sha in zip(LEVELS, counts, shas, strict=True)}
    return manifest


def sha256(elf):
    return hashlib.sha256(elf.read_bytes()).hexdigest()[:12]


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


def measure(elf, plugin):
    measured = harness.run_qemu(plugin, elf)
    if measured.status != 0:
        raise RuntimeError(f"{elf}: status {measured.status} under qemu-aarch64")
    return measured.guest_instructions


def expected_count(elf, known, plugin):
    count, sha = known
    return count if sha256(elf) == sha else measure(elf, plugin())


def write_manifest(folder, names, plugin, jobs):
    """Measures everything anew, for another compiler or a changed run-time."""
    def line(name):
        elves = [folder / level / elf_name(name) for level in LEVELS]
        return "\t".join([name, *(f"{measure(elf, plugin)}\t{sha256(elf)}" for elf in elves)])

    path = HERE / "manifest-a64.tsv"
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        path.write_text("\n".join([*comments, *pool.map(line, names)]) + "\n")


def why_not_refused(got):
    """A program that runs code which it wrote: a fault that says so, and nothing else, is right."""
    if got.status == 139 and b"written by the program itself" in got.stderr:
        return None
    return f"status {got.status}, expected a fault that tells why: {harness.first_line(got.stderr)}"


def main():
    arguments = harness.parse_arguments(
        __doc__.splitlines()[0], levels=",".join(LEVELS), more=lambda parser: parser.add_argument(
            "--write-manifest", action="store_true", help="measure with QEMU and do nothing else"))
    manifest = read_manifest()
    names = [name for name in manifest if fnmatch.fnmatchcase(name, arguments.only)]
    sources = gcc_suite.unpack(arguments.build, "gcc.c-torture/execute")
    plugin = functools.cache(lambda: harness.build_plugin(arguments.build.parent / "plugin"))
    refused = harness.read_skips(HERE / "refused.txt")

    if arguments.write_manifest:
        for level in LEVELS:
            build(names, level, sources, arguments.build, arguments.jobs)
        write_manifest(arguments.build, names, plugin(), arguments.jobs)
        return 0

    cases = []
    for level in arguments.levels:
        drawn = set(harness.sampled([f"{name} {level}" for name in names], arguments.sample))
        chosen = [name for name in names if f"{name} {level}" in drawn]
        build(chosen, level, sources, arguments.build, arguments.jobs)
        for name, engine in itertools.product(chosen, arguments.engines):
            elf = arguments.build / level / elf_name(name)
            expect = functools.cache(functools.partial(expected_count, elf, manifest[name][level],
                                                       plugin))
            for mode in arguments.modes:
                def check(elf=elf, expect=expect, mode=mode, name=name, level=level, engine=engine):
                    got = harness.run_gpusim(arguments.gpusim, elf, mode, timeout_s=TIMEOUT_S,
                                             options=arguments.options, engine=engine)
                    if harness.is_skipped(refused, name, level, mode):
                        return why_not_refused(got)
                    return harness.compare(harness.Result(0, None, b"", expect()), got, mode)
                cases.append(harness.Case(name, level, mode, check, engine))
    skips = harness.read_skips(HERE / "skip.txt")
    return harness.run_cases(cases, skips, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The .deb package: contents, dependencies, and use as a user would.

  test_package.py BUILD CPACK               unpacks it beside the build and uses what is in it
  test_package.py BUILD CPACK --bare-root   installs it in a bare Debian 12 made by debootstrap

Exit status 77: skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = r"""
#include "gpusim_guest.h"
static uint64_t sum;
int gpusim_main(void) {
  const uint32_t id = gpusim_core_id(), count = gpusim_core_count();
  uint64_t mine = 0;
  for (uint32_t i = id; i < 1000; i += count) mine += i * i;
  gpusim_fetch_add_u64(&sum, mine);
  gpusim_barrier();
  if (id == 0) {
    gpusim_line_t line;
    gpusim_line_start(&line);
    gpusim_line_str(&line, "sum of squares: ");
    gpusim_line_u64(&line, sum);
    gpusim_line_write(&line, GPUSIM_STDOUT);
  }
  return 0;
}
"""
EXPECTED = "sum of squares: 332833500\n"
OPENMP = """#include <stdio.h>
int main(void) {
  int n = 0;
#pragma omp parallel reduction(+ : n)
  n += 1;
  printf("%d threads\\n", n);
}
"""
PTHREAD = """#include <pthread.h>
#include <stdio.h>
static void* run(void* text) { return text; }
int main(void) {
  pthread_t thread;
  void* text;
  if (pthread_create(&thread, 0, run, "from a thread") != 0 || pthread_join(thread, &text) != 0)
    return 1;
  puts(text);
}
"""
COMPILERS = {"aarch64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc",
             "riscv32": "riscv64-unknown-elf-gcc"}
NO_C_LIBRARY = {"riscv32"}
FILES = ["usr/bin/gpusim", "usr/bin/gpusim-cc", "usr/share/man/man1/gpusim.1.gz",
         "usr/share/bash-completion/completions/gpusim", "usr/share/zsh/vendor-completions/_gpusim",
         "usr/share/doc/gpusim/copyright", "usr/share/doc/gpusim/cli.md",
         "usr/share/doc/gpusim/energy/targets/template.json",
         "usr/share/doc/gpusim/examples/caches/l1_l2.json",
         "usr/share/doc/gpusim/examples/plugins/memory_trace.c",
         "usr/share/doc/gpusim/examples/python/from_c_to_figure.ipynb",
         "usr/include/gpusim/gpusim_guest.h", "usr/include/gpusim/aarch64/gpusim_guest_isa.h",
         "usr/lib/gpusim/aarch64/libgpusim_guest.a", "usr/lib/gpusim/openmp/libgpusim_omp.a",
         "usr/include/gpusim/riscv64/gpusim_guest_isa.h",
         "usr/lib/gpusim/riscv64/libgpusim_guest.a",
         "usr/lib/gpusim/openmp/riscv64/libgpusim_omp.a",
         "usr/include/gpusim/riscv/gpusim_guest_common.h",
         "usr/include/gpusim/riscv32/gpusim_guest_isa.h",
         "usr/lib/gpusim/riscv32/libgpusim_guest.a",
         "usr/include/gpusim/plugin/gpusim_plugin.h"]


def call(*command, **keywords):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace",
                          check=False, **keywords)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_package(build, cpack, folder):
    call(cpack, "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder, cwd=build)
    packages = list(folder.glob("*.deb"))
    if len(packages) != 1:
        sys.exit(f"expected one package, found {packages}")
    return packages[0]


def check_contents(package):
    listing = call("dpkg-deb", "--contents", package)
    names = {line.split(" ./", 1)[1].rstrip("/") for line in listing.splitlines() if " ./" in line}
    missing = [name for name in FILES if name not in names]
    if missing:
        sys.exit(f"not in the package: {', '.join(missing)}")
    strange = [line for line in listing.splitlines()
               if not re.match(r"(d|-)rw.r-.r-. root/root|-rwxr-xr-x root/root|drwxr-xr-x root/root", line)]
    outside = [name for name in names if name and not (name + "/").startswith("usr/")]
    if strange or outside:
        sys.exit("odd owners, rights or places:\n" + "\n".join(strange + outside))
    fields = dict(line.split(": ", 1) for line in call("dpkg-deb", "--field", package).splitlines()
                  if re.match(r"[A-Z][A-Za-z-]+: ", line))
    depends = {part.split()[0] for part in fields["Depends"].split(", ")}
    for library in linked_libraries(package):
        # /lib is /usr/lib, but dpkg knows files by the name that their package has for them.
        owners = {line.split(":")[0] for name in (library, library.removeprefix("/usr"))
                  for line in subprocess.run(["dpkg-query", "--search", name], capture_output=True,
                                             text=True, check=False).stdout.splitlines()}
        if not owners & depends:
            sys.exit(f"Depends lacks {owners or library}: {fields['Depends']}")
    print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, {len(names)} entries, "
          f"depends on {fields['Depends']}")


def check_pages(folder):
    """Links of the installed pages lead somewhere, and commands name no place of a build."""
    pages = sorted(folder.rglob("*.md"))
    for page in pages:
        text = page.read_text()
        for to in re.findall(r"\]\(([^)#\s:]+)[)#]", text):
            if not (page.parent / to).exists():
                sys.exit(f"{page}: there is no {to}")
        for place in ("build/cpu/libgpusim", "build/cpu/examples", "-Ihost/plugin",
                      " energy/targets/template.json"):
            if place in text:
                sys.exit(f"{page} names {place}")
    if len(pages) < 40 or not (folder / "images/sweep.png").exists():
        sys.exit(f"too few pages in {folder}: {len(pages)}")


def linked_libraries(package):
    """Paths of the shared libraries that the packaged program names (not theirs in turn)."""
    with tempfile.TemporaryDirectory() as folder:
        call("dpkg-deb", "--extract", package, folder)
        program = f"{folder}/usr/bin/gpusim"
        names = re.findall(r"\(NEEDED\).*\[(.*)\]", call("readelf", "--dynamic", "--wide", program))
        where = dict(re.findall(r"(\S+) => (\S+)", call("ldd", program)))
    return [os.path.realpath(where[name]) for name in names if name in where]


def compile_and_run(environment, work, isa):
    """Programs of each kind, by gpusim-cc."""
    def outcome(name, source, cores, *flags):
        (work / f"{name}.c").write_text(source)
        call("gpusim-cc", "--isa", isa, "-Wall", "-Wextra", *flags, "-o", f"{name}.elf", f"{name}.c",
             env=environment, cwd=work)
        machine = call("readelf", "--file-header", work / f"{name}.elf")
        if {"aarch64": "AArch64"}.get(isa, "RISC-V") not in machine:
            sys.exit(f"{name}.elf is for another machine than {isa}:\n{machine}")
        return call("gpusim", "run", f"{name}.elf", "--cores", cores, env=environment, cwd=work)

    spmd = [("squares", SOURCE, 1, EXPECTED), ("squares", SOURCE, 1000, EXPECTED)]
    for name, source, cores, expected, *flags in spmd if isa in NO_C_LIBRARY else [
            *spmd,
            ("openmp", OPENMP, 64, "64 threads\n", "-fopenmp"),
            ("pthread", PTHREAD, 2, "from a thread\n", "-pthread"),
            ("hello", '#include <stdio.h>\nint main(void) { puts("hello"); }\n', 1, "hello\n",
             "--libc")]:
        out = outcome(name, source, cores, *flags)
        if out != expected:
            sys.exit(f"{name} for {isa} on {cores} cores: {out!r}")


def check_refusals(environment, work):
    for arguments, words in ((["--isa", "vax", "a.c"], "unknown ISA 'vax'"),
                             (["a.c", "--isa"], "--isa needs a name"),
                             (["--isa", "riscv32", "-fopenmp", "a.c"], "SPMD programs alone")):
        done = subprocess.run(["gpusim-cc", *arguments], env=environment, cwd=work, text=True,
                              capture_output=True, check=False)
        if done.returncode != 2 or words not in done.stderr:
            sys.exit(f"gpusim-cc {arguments}: status {done.returncode}, {done.stderr!r}")


def check_link_without_libraries(environment, work):
    """Objects of OpenMP linked as if they were an SPMD program: the message says how to."""
    (work / "team.c").write_text(OPENMP)
    call("gpusim-cc", "-fopenmp", "-c", "-o", "team.o", "team.c", env=environment, cwd=work)
    done = subprocess.run(["gpusim-cc", "-o", "team.elf", "team.o"], env=environment, cwd=work,
                          text=True, capture_output=True, check=False)
    if done.returncode != 1 or "is linked with --libc, -pthread or -fopenmp" not in done.stderr:
        sys.exit(f"gpusim-cc of OpenMP's objects: status {done.returncode}, {done.stderr!r}")
    call("gpusim-cc", "-fopenmp", "-o", "team.elf", "team.o", env=environment, cwd=work)


def compile_examples(environment, work, folder):
    """Of the package, as docs/howto/guest_program.md says it."""
    call("cc", "-O2", "-o", "draw_picture", folder / "image/draw_picture.c", "-lm", cwd=work)
    call("./draw_picture", "picture.raw", cwd=work)
    names = sorted(folder.glob("*.c"))
    for source in names:
        picture = ([folder / "image/picture.S", '-DPICTURE_FILE="picture.raw"']
                   if "image/picture.h" in source.read_text() else [])
        call("gpusim-cc", "-O2", "-o", f"{source.stem}.elf", source, *picture, env=environment,
             cwd=work)
    call("gpusim", "run", "sobel.elf", "--cores", 64, env=environment, cwd=work)
    # The studies of the package, of these programs.
    for study in "scaling", "examples":
        shutil.copy(folder.parent / f"studies/{study}.json", work)
        call("gpusim", "sweep", f"{study}.json", "--cores", "1,4", "-o", study, "--quiet",
             env=environment, cwd=work)
    print(f"examples compiled: {len(names)}")


def use(prefix, work, compilers):
    """As a user would, with the package's files under `prefix`; compilers are those of guest ISAs."""
    environment = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    version = call("gpusim", "--version", env=environment, cwd=work)
    if not version.startswith("gpusim "):
        sys.exit(f"--version says {version!r}")
    call("gpusim", "energy", "targets", "fermi", env=environment, cwd=work)
    check_refusals(environment, work)
    if "aarch64" in compilers:
        check_link_without_libraries(environment, work)
        compile_examples(environment, work, prefix / "share/doc/gpusim/examples")
    for isa in compilers:
        compile_and_run(environment, work, isa)
    print(f"programs compiled and run for: {', '.join(compilers) or 'no ISA'}")


def in_bare_root(package, folder):
    """debootstrap's smallest Debian 12, the package by apt, and a program run in it."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("skipped: needs root and debootstrap")
        sys.exit(77)
    root = folder / "root"
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(root)],
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        print("skipped: debootstrap failed, perhaps no mirror:\n" + (done.stdout + done.stderr)[-600:])
        sys.exit(77)
    shutil.copy(package, root / "tmp")
    (root / "tmp" / "squares.c").write_text(SOURCE)
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive",
                   "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

    def inside(*command):
        return call("chroot", root, *command, env=environment)

    install = ["apt-get", "install", "--yes", "--no-install-recommends"]
    inside(*install, f"/tmp/{package.name}")
    print(inside("gpusim", "--version").strip() + " runs in a bare root")
    inside("gpusim", "info")
    inside(*install, "gcc-aarch64-linux-gnu")
    inside("gpusim-cc", "-o", "/tmp/squares.elf", "/tmp/squares.c")
    out = inside("gpusim", "run", "/tmp/squares.elf", "--cores", "4096")
    if out != EXPECTED:
        sys.exit(f"in the bare root: {out!r}")
    inside("apt-get", "remove", "--yes", "gpusim")
    left = [name for name in FILES if (root / name).exists()]
    if left:
        sys.exit(f"left after removal: {left}")
    print("compiled, ran on 4,096 cores, removed")


def main():
    build, cpack = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        package = make_package(build, cpack, folder / "made")
        check_contents(package)
        if "--bare-root" in sys.argv:
            in_bare_root(package, folder)
            return 0
        call("dpkg-deb", "--extract", package, folder / "unpacked")
        check_pages(folder / "unpacked/usr/share/doc/gpusim")
        (folder / "work").mkdir()
        use(folder / "unpacked/usr", folder / "work",
            [isa for isa, compiler in COMPILERS.items() if shutil.which(compiler)])
    return 0


if __name__ == "__main__":
    sys.exit(main())

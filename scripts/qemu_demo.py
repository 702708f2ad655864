"""The part of scripts/qemu-demo that needs Python."""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import guest_vm  # noqa: E402

ROOT = guest_vm.ROOT
FOLDER = ROOT / "build" / "qemu-demo"
PROGRAMS = [  # name, arguments, what it does
    ("matmul", "--size 512", "matrix product"),
    ("sobel", "--size 2048", "edges of a picture"),
    ("fft", "--size 1048576", "Fourier transform"),
    ("nbody", "--size 3072", "n-body"),
]
OPENMP = ("openmp_heat", "1024 30", "heat in a plate, OpenMP")
PICTURE = "sobel"
# An emulated GPU does some 30 million instructions per second.
SMALL = {"matmul": "--size 96", "sobel": "--size 256", "fft": "--size 16384",
         "nbody": "--size 256", "openmp_heat": "96 4"}
EMULATED = "cuda-emulated"


class Failure(Exception):
    pass


class Unavailable(Failure):
    """The guest's or QEMU's packages cannot be fetched."""


SKIP = 77


class Progress:
    """One line on a terminal that says what is being done; nothing elsewhere."""

    def __init__(self):
        self.visible = sys.stderr.isatty()

    def say(self, text=""):
        if self.visible:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width) + ("" if text else "\r"), end="",
                  file=sys.stderr, flush=True)


progress = Progress()


def step(what, command, log):
    """A command whose output goes to a file; its last line of standard output is returned."""
    progress.say(what + " ...")
    start = time.monotonic()
    with open(FOLDER / log, "wb") as file:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=file, check=False)
        file.write(done.stdout)
    if done.returncode != 0:
        tail = (FOLDER / log).read_text(errors="replace").splitlines()[-15:]
        kind = Unavailable if done.returncode == SKIP else Failure
        raise kind(f"{what} failed (status {done.returncode}); the end of {FOLDER / log}:\n" +
                      "\n".join(f"  {line}" for line in tail))
    seconds = time.monotonic() - start
    if seconds > 5:
        progress.say()
        print(f"{what}: {seconds:.0f} s", flush=True)
    return (done.stdout.decode(errors="replace").strip().splitlines() or [""])[-1]


def build(arguments):
    """Whatever is missing: (gpusim, build folder, guest image, QEMU)."""
    jobs = str(os.cpu_count() or 2)
    folder = ROOT / "build" / "cpu"
    if arguments.gpusim:
        gpusim = arguments.gpusim.resolve()
        folder = (arguments.build or gpusim.parent).resolve()
    elif arguments.backend == EMULATED:
        gpusim = folder / "tests/cuda_emulated/gpusim-emulated"
        step("configuring", ["cmake", "--preset", "cpu"], "configure.log")
        step("building gpusim with an emulated GPU, and the guest's programs",
             ["cmake", "--build", "--preset", "cpu", "-j", jobs, "--target", "gpusim-emulated",
              "gpusim_offload_guest"], "build.log")
    else:
        gpusim = folder / "gpusim"
        step("configuring", ["cmake", "--preset", "cpu"], "configure.log")
        step("building gpusim and the guest's programs",
             ["cmake", "--build", "--preset", "cpu", "-j", jobs, "--target", "gpusim",
              "gpusim_offload_guest"], "build.log")
    image = step("making the guest's root file system", [ROOT / "scripts" / "guest-image"],
                 "guest-image.log")
    if arguments.stock:
        qemu = guest_vm.stock_qemu()
        if qemu is None:
            raise Failure("qemu-system-aarch64 is not installed (Debian package qemu-system-arm)")
    elif "/" in arguments.qemu:
        qemu = arguments.qemu
    else:
        qemu = step(f"building QEMU {arguments.qemu}",
                    [ROOT / "scripts" / "build-qemu", "--version", arguments.qemu],
                    "build-qemu.log")
    return gpusim, folder, image, qemu


def run_example(guest, name, parameters, cores):
    command = f"offload_{name} --cores {cores} {parameters} --open wait=sleep"
    if name == PICTURE:
        command += " --out /tmp/edges.pgm"
    result = guest.run(command, timeout=600, status=None)
    values = result.values()
    if result.status not in (0, 1) or "equal" not in values:
        raise Failure(f"{command}: status {result.status}\n{result.output}")
    return dict(device=float(values["open_seconds"]) + float(values["device_seconds"]),
                own=float(values["cpu_seconds"]), instructions=int(values["guest_instructions"]),
                mips=float(values["mips"]), copied=int(values["copied_bytes"]),
                equal=values["equal"] == "yes" and result.status == 0)


def timed(guest, command):
    result = guest.run(f"read before _ </proc/uptime; {command}; status=$?; read after _ "
                       f"</proc/uptime; "
                       "echo seconds $before $after; exit $status", timeout=600, status=None)
    lines = result.output.splitlines()
    if result.status != 0 or not lines or not lines[-1].startswith("seconds "):
        raise Failure(f"{command}: status {result.status}\n{result.output}")
    before, after = (float(word) for word in lines.pop().split()[1:])
    return lines, max(after - before, 0.01)


def run_openmp(guest, parameters, smp, cores, known):
    """`known`: what the guest's CPU gave, once it computed."""
    name = OPENMP[0]
    if not known:
        known.append(timed(guest, f"OMP_NUM_THREADS={smp} {name} {parameters}"))
    want, own = known[0]
    lines, device = timed(guest, "gpusim-offload --stats --open wait=sleep "
                                 f"--cores {cores} /bin/{name} {parameters} 2>/tmp/stats")
    stats = dict(line.split(" ", 1) for line in
                 guest.run("cat /tmp/stats; rm -f /tmp/stats").output.splitlines() if " " in line)
    return dict(device=device, own=own, instructions=int(stats.get("guest_instructions", 0)),
                mips=float(stats.get("mips", 0)), copied=int(stats.get("copied_bytes", 0)),
                equal=lines == want)


def save_picture(guest):
    """PNG files of what the device found, and of the picture it looked at."""
    made = []
    for name, command in (("edges", "cat /tmp/edges.pgm"), ("picture", "cat /tmp/picture.pgm")):
        result = guest.run(command, status=None)
        if result.status != 0:
            if name == "edges":
                raise Failure(f"no picture: {result.output}")
            continue
        part, path = FOLDER / f"{name}.part", FOLDER / f"{name}.png"
        with open(part, "wb") as file:
            subprocess.run(["pnmtopng", "-quiet"], input=result.data, stdout=file, check=True)
        part.replace(path)
        made.append(path)
    return made


def print_table(rows):
    heads = ["program", "cores", "instructions", "MIPS", "on the device, s", "in QEMU alone, s",
             "speed-up",
             "result"]
    widths = [max(len(row[i]) for row in [heads] + rows) for i in range(len(heads))]
    right = range(1, 7)
    for row in [heads, ["-" * width for width in widths]] + rows:
        print("  ".join(cell.rjust(w) if i in right else cell.ljust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))).rstrip())


def demonstrate(arguments, guest):
    rows, problems, known = [], [], []
    programs = [*PROGRAMS, OPENMP]
    if arguments.backend == EMULATED:
        programs = [(name, SMALL[name], what) for name, _, what in programs]
    for index, (name, parameters, what) in enumerate(programs):
        for cores in arguments.cores:
            progress.say(f"{index + 1}/{len(programs)} {what} on {cores:,} cores ...")
            try:
                values = (run_openmp(guest, parameters, arguments.smp, cores, known)
                          if name == OPENMP[0]
                          else run_example(guest, name, parameters, cores))
            except (Failure, guest_vm.GuestError) as problem:
                problems.append(f"{name} on {cores} cores: {problem}")
                rows.append([what, f"{cores:,}", "", "", "", "", "", "FAILED"])
                if isinstance(problem, guest_vm.GuestError) and guest.closed.is_set():
                    raise
                continue
            if not values["equal"]:
                problems.append(f"{name} on {cores} cores differs from the guest's CPU")
            rows.append([what, f"{cores:,}", f"{values['instructions']:,}",
                         f"{values['mips']:,.0f}",
                         f"{values['device']:.3f}", f"{values['own']:.3f}",
                         f"{values['own'] / values['device']:.2f}",
                         "equal" if values["equal"] else "DIFFERENT"])
    return rows, problems


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/qemu-demo",
        description="Boots Linux in QEMU and runs programs there whose parallel regions compute on "
                    "gpusim's "
                    "simulated many-core; compares with the guest's own CPU. Builds what is "
                    "missing.")
    parser.add_argument("--stock", action="store_true",
                        help="the machine's own, unpatched QEMU (virtio-serial)")
    parser.add_argument("--qemu", default="7.2", help="7.2, 10 or a program; default: 7.2")
    parser.add_argument("--smp", type=int, default=1, help="processors of the guest; default: 1")
    parser.add_argument("--memory", type=int, default=1024, help="MiB of the guest; default: 1024")
    parser.add_argument("--cores", type=lambda text: [int(word) for word in text.split(",")],
                        default=[64, 2048], help="simulated cores; default: 64,2048")
    parser.add_argument("--kernel", type=pathlib.Path, help="another kernel (docs/full-system.md)")
    parser.add_argument("--initramfs", type=pathlib.Path,
                        help="another root file system, with the driver for that kernel")
    parser.add_argument("--append", default="", help="more words for the kernel's command line")
    parser.add_argument("--gpusim", type=pathlib.Path, help="a gpusim that is built already")
    parser.add_argument("--build", type=pathlib.Path,
                        help="its build folder; default: where it lies")
    parser.add_argument("--backend", default="auto",
                        help="of gpusim daemon: simd, cuda, ...; cuda-emulated: the CUDA backend "
                        "without a GPU, and smaller inputs")
    parser.add_argument("--daemon-options", default="",
                        help="more for gpusim daemon: --guest-memory copied, ...")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("edges.png", "picture.png"):
        (FOLDER / name).unlink(missing_ok=True)

    gpusim, folder, image, qemu = build(arguments)
    files = {"/bin/gpusim-offload": folder / "libgpusim/offload/gpusim-offload.elf",
             f"/bin/{OPENMP[0]}": folder / f"examples/openmp/{OPENMP[0]}.elf"}
    for name, _, _ in PROGRAMS:
        files[f"/bin/offload_{name}"] = folder / f"examples/offload/offload_{name}.elf"
    for path in files.values():
        if not path.is_file():
            raise Failure(f"{path} is not built (target gpusim_offload_guest)")

    options = shlex.split(arguments.daemon_options)
    if arguments.backend != "auto":
        options += ["--backend", "cuda" if arguments.backend == EMULATED else arguments.backend]
    progress.say("booting the guest ...")
    start = time.monotonic()
    transport = "virtio" if arguments.stock else "semihosting"
    with guest_vm.Guest(qemu=qemu, gpusim=gpusim, image=image, folder=FOLDER, transport=transport,
                        smp=arguments.smp, memory_mib=arguments.memory, files=files,
                        kernel=arguments.kernel, initramfs=arguments.initramfs,
                        append=arguments.append, boot_timeout=180,
                        daemon_options=options) as guest:
        release = guest.run("uname -sr").output.strip()
        progress.say()
        print(f"guest: {release}, {arguments.smp} processor{'s' * (arguments.smp > 1)}, booted in "
              f"{guest.boot_seconds:.1f} s; {'virtio-serial' if arguments.stock else 'trap'} to "
              f"{gpusim.name} daemon", flush=True)
        try:
            rows, problems = demonstrate(arguments, guest)
            pictures = []
            try:
                pictures = save_picture(guest)
            except (Failure, OSError, subprocess.CalledProcessError,
                    guest_vm.GuestError) as problem:
                problems.append(str(problem))
        finally:
            progress.say()
    print_table(rows)
    print(f"\n{len(rows)} runs in {time.monotonic() - start:.1f} s. Speed-up: opening the device, "
          f"the kernel and "
          "reading the results,\nagainst the same function on the guest's CPU.")
    for path in pictures:
        print(f"picture: {path}")
    print(f"logs: {FOLDER}")
    for problem in problems:
        print(f"FAILED {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        progress.say()
        sys.exit(130)
    except (Failure, guest_vm.GuestError, OSError) as failure:
        progress.say()
        print(f"qemu-demo: {failure}", file=sys.stderr)
        sys.exit(SKIP if isinstance(failure, Unavailable) else 1)

#!/usr/bin/env python3
"""The bridge of a patched QEMU, with a bare-metal guest and a daemon that does nothing.

bridge_test.py NULL_DAEMON GUEST (--build-qemu SCRIPT [--version V] | --qemu PROGRAM)
               [--long] [--measure] [NAME]...

Exit status 77: QEMU is not built, because its source could not be fetched.
"""

import argparse
import errno
import os
import random
import signal
import subprocess
import sys
import time

from machine import Machine, is_running, wait_until

FREEZE = 1
PENDING = 1
TRAP_WAIT = "102"
NEVER_NS = 0

tests = []
long_tests = []


def test(function):
    tests.append(function)
    return function


def long_test(function):
    long_tests.append(function)
    return function


def expect(what, got, wanted):
    assert got == wanted, f"{what}: {got}, not {wanted}"


class Bench:
    def __init__(self, qemu, daemon, guest, long):
        self.qemu, self.daemon, self.guest, self.long = qemu, daemon, guest, long

    def machine(self, options="", **more):
        return Machine(self.qemu, self.guest, daemon=f"{self.daemon} {options}".strip(), **more)


def start(machine):
    generation = machine.ask("p")
    assert generation > 0, f"PROBE: {generation}\n{machine.errors()}"
    return generation


def run_command(machine, nanoseconds=NEVER_NS, flags=0):
    """-> what WAIT says."""
    machine.ask("m")
    expect("BELL", machine.ask("b"), 0)
    return machine.ask(f"w {nanoseconds:x} {flags:x}")


@test
def traps_work(bench):
    with bench.machine() as m:
        expect("ALIVE before PROBE", m.ask("a"), -errno.EIO)
        expect("BELL before PROBE", m.ask("b"), -errno.EIO)
        expect("WAIT before PROBE", m.ask("w 0 0"), -errno.EIO)
        expect("PING", m.ask("o 103 0"), 0)
        expect("daemons before PROBE", len(m.daemons()), 0)
        generation = start(m)
        expect("ALIVE", m.ask("a"), generation)
        expect("PROBE again", m.ask("p"), generation)
        expect("daemons", len(m.daemons()), 1)
        for flags in 0, FREEZE:
            expect("WAIT", run_command(m, flags=flags), 0)
            expect("status", m.ask("s"), 0)
        elapsed = m.ask("t 3e8 0")
        assert elapsed > 0, f"1000 commands: {elapsed}"
        expect("an operation that isn't there", m.ask("o 1f0 0"), -errno.ENOSYS)
        expect("standard error", m.errors(), "")


@test
def native_operations_are_refused(bench):
    sys_errno = "o 13 0"
    with bench.machine() as m:
        expect("by default with gpusim", m.ask(sys_errno), -1)
    with bench.machine(native=True) as m:
        expect("native=on", m.ask(sys_errno), 0)
    with Machine(bench.qemu, bench.guest) as m:
        expect("by default without gpusim", m.ask(sys_errno), 0)
        expect("PROBE without gpusim", m.ask("p"), -errno.ENODEV)
        assert "gpusim=COMMAND" in m.reason(), m.reason()
    with Machine(bench.qemu, bench.guest, native=False) as m:
        expect("native=off without gpusim", m.ask(sys_errno), -1)


@test
def device_tree_says_so(bench):
    for machine, wanted in (bench.machine(), True), (Machine(bench.qemu, bench.guest), False):
        with machine as m:
            path = os.path.join(m.folder.name, "dtb")
            m.qmp("pmemsave", val=0x40000000, size=1 << 20, filename=path)
            with open(path, "rb") as file:
                expect("node in the device tree", b"gpusim,semihosting" in file.read(), wanted)


@test
def memory_must_be_shared(bench):
    with bench.machine(shared=False) as m:
        expect("PROBE", m.ask("p"), -errno.ENODEV)
        assert "memory-backend-memfd" in m.errors(), m.errors()
        assert "memory-backend-memfd" in m.reason(), m.reason()


@test
def program_that_is_not_there(bench):
    with Machine(bench.qemu, bench.guest, daemon="/nonexistent/gpusim") as m:
        before = m.descriptors()
        expect("PROBE", m.ask("p"), -errno.ENODEV)
        assert "can't start /nonexistent/gpusim" in m.errors(), m.errors()
        assert "can't start /nonexistent/gpusim" in m.reason(), m.reason()
        expect("descriptors", m.descriptors(), before)


@test
def addresses_are_checked(bench):
    with bench.machine() as m:
        start(m)
        end = 0x40000000 + (64 << 20)
        for gpa in (0, 0x09000000, 0x40000000 - 1024, 0x40000020, end - 512, end, 1 << 63,
                    2**64 - 1024):
            expect(f"BELL {gpa:#x}", m.ask(f"b {gpa:x}"), -errno.EFAULT)
        for gpa in 0, end - 16, end, 2**64 - 8:
            expect(f"WAIT {gpa:#x}", m.ask(f"o {TRAP_WAIT} {gpa:x}"), -errno.EFAULT)
        expect("REASON beyond memory", m.ask(f"o 105 {1 << 63:x}"), -errno.EFAULT)
        # A wait block of zeros, in memory that the guest does not use: names a command at 0.
        expect("WAIT for 0", m.ask(f"o {TRAP_WAIT} {end - 4096:x}"), -errno.EFAULT)
        expect("WAIT", run_command(m), 0)


@test
def random_traps(bench):
    seed = int(os.environ.get("GPUSIM_SEED") or random.randrange(1, 1 << 60))
    print(f"        replay: GPUSIM_SEED={seed}")
    with bench.machine("--never") as m:
        start(m)
        assert m.ask(f"z {seed:x} {100_000:x}") > 0, "none of the traps worked"
        assert m.ask("a") > 0, "the daemon ended"


@test
def ring_fills_up(bench):
    with bench.machine("--take-none") as m:
        start(m)
        for _ in range(64):
            expect("BELL", m.ask("b"), 0)
        expect("the 65th", m.ask("b"), -errno.EAGAIN)


@test
def daemon_that_breaks_the_ring(bench):
    with bench.machine("--break-ring") as m:
        start(m)
        m.ask("m")
        expect("BELL", m.ask("b"), 0)
        expect("WAIT", m.ask(f"w {30_000_000:x} 0"), -errno.ETIMEDOUT)
        assert wait_until(lambda: m.ask("b") == -errno.EIO), "the ring's state goes unnoticed"
        expect("daemons", len(m.daemons()), 0)


@test
def daemon_fails_at_start(bench):
    for options, wanted, text in (
        ("--die-at-hello", -errno.EIO, "ended with status 4"),
        ("--refuse", -errno.ENOMEM, "refused as asked"),
        ("--garbage", -errno.EPROTO, "makes no sense"),
    ):
        with bench.machine(options) as m:
            before = m.descriptors()
            for _ in range(3):
                expect(f"PROBE, {options}", m.ask("p"), wanted)
                expect("ALIVE", m.ask("a"), -errno.EIO)
            assert text in m.errors(), m.errors()
            assert text in m.reason(), m.reason()
            # The last one's socket stays until the next PROBE.
            assert m.descriptors() <= before + 1, f"{m.descriptors()}, {before} before"
            expect("daemons", len(m.daemons()), 0)


@test
def daemon_silent_at_start(bench):
    with bench.machine("--silent") as m:
        m.send("p")
        assert wait_until(lambda: m.daemons())
        m.qmp("stop")
        m.qmp("cont")
        assert not m.has_answer(0.05), "the monitor answered only when PROBE had ended"
        m.kill_daemon()
        expect("PROBE", m.answer(), -errno.EIO)


@test
def daemon_killed(bench):
    with bench.machine() as m:
        first = start(m)
        m.kill_daemon()
        assert wait_until(lambda: not m.daemons()), "not reaped"
        expect("ALIVE", m.ask("a"), -errno.EIO)
        expect("BELL", m.ask("b"), -errno.EIO)
        expect("next generation", start(m), first + 1)
        expect("WAIT", run_command(m), 0)
        assert "ended by signal 9" in m.errors(), m.errors()
    for options in "--die-on-bell", "--never":
        for flags in 0, FREEZE:
            with bench.machine(options) as m:
                start(m)
                m.ask("m")
                expect("BELL", m.ask("b"), 0)
                m.send(f"w 0 {flags:x}")
                if options == "--never":
                    assert not m.has_answer(0.05)
                    m.kill_daemon()
                expect(f"WAIT, {options}", m.answer(), -errno.EIO)
                start(m)


@test
def command_for_the_dead(bench):
    """Its successor does not get it: whoever rang takes such a command back without an answer."""
    with bench.machine() as m:
        first = start(m)
        m.ask(f"m {first:x}")
        expect("BELL to the first", m.ask("b"), 0)
        expect("WAIT", m.ask("w 0 0"), 0)
        m.kill_daemon()
        assert wait_until(lambda: m.ask("a") == -errno.EIO)
        second = start(m)
        m.ask(f"m {first:x}")
        expect("BELL to its successor", m.ask("b"), -errno.EIO)
        expect("WAIT for it", m.ask(f"w {50_000_000:x} 0"), -errno.ETIMEDOUT)
        expect("its status", m.ask("s"), PENDING)
        m.ask(f"m {second:x}")
        expect("BELL to the second", m.ask("b"), 0)
        expect("WAIT", m.ask("w 0 0"), 0)


@test
def daemon_dies_after_its_reply(bench):
    with bench.machine("--die-after-reply") as m:
        for _ in range(10):
            start(m)
            expect("WAIT", run_command(m), 0)
            assert wait_until(lambda: m.ask("a") == -errno.EIO)


@test
def waiting_ends_in_time(bench):
    with bench.machine("--never") as m:
        start(m)
        begin = time.monotonic()
        expect("WAIT", run_command(m, nanoseconds=100_000_000), -errno.ETIMEDOUT)
        assert time.monotonic() - begin >= 0.1
        expect("status", m.ask("s"), PENDING)


@test
def guest_time(bench):
    with bench.machine("--delay-ms 300") as m:
        start(m)
        for flags in 0, FREEZE:
            elapsed = m.ask(f"t 1 {flags:x}")
            assert elapsed >= 0, f"the command: {elapsed}"
            if flags & FREEZE:
                assert elapsed < 100e6, f"{elapsed} ns passed in the guest"
            else:
                assert elapsed >= 290e6, f"{elapsed} ns passed in the guest"


@test
def monitor_while_waiting(bench):
    for flags in 0, FREEZE:
        with bench.machine("--never") as m:
            start(m)
            m.ask("m")
            expect("BELL", m.ask("b"), 0)
            m.send(f"w 0 {flags:x}")
            assert not m.has_answer(0.05)
            for _ in range(3):
                expect("status", m.qmp("query-status")["status"], "running")
                m.qmp("stop")
                expect("status", m.qmp("query-status")["status"], "paused")
                m.qmp("cont")
            assert not m.has_answer(0.05), "WAIT ended"
            (daemon,) = m.daemons()
            m.qmp("quit")
            assert wait_until(lambda: m.process.poll() is not None), "quit hung"
            assert wait_until(lambda: not is_running(daemon)), "the daemon outlived QEMU"
    with bench.machine("--never") as m:
        start(m)
        m.ask("m")
        m.ask("b")
        m.send("w 0 1")
        assert not m.has_answer(0.05)
        m.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: m.process.poll() is not None), "SIGTERM hung"


@test
def guest_clock_goes_on_after_a_stop_in_a_frozen_wait(bench):
    with bench.machine("--never") as m:
        start(m)
        m.ask("m")
        m.ask("b")
        m.send(f"w {500_000_000:x} {FREEZE:x}")
        assert not m.has_answer(0.05)
        m.qmp("stop")
        m.qmp("cont")
        expect("WAIT", m.answer(), -errno.ETIMEDOUT)
        before = m.ask("c")
        time.sleep(0.05)
        assert m.ask("c") - before >= 50e6, "the guest's clock stands still"


@test
def memory_rests_while_stopped(bench):
    with bench.machine("--delay-ms 2000") as m:
        start(m)
        gpa = m.ask("g")
        m.ask("m")
        expect("BELL", m.ask("b"), 0)
        m.qmp("stop")
        time.sleep(2.2)
        expect("status while stopped", m.guest_status(gpa), PENDING)
        m.qmp("cont")
        expect("WAIT", m.ask("w 0 0"), 0)
        m.qmp("stop")
        m.qmp("cont")
        expect("WAIT", run_command(m), 0)


@test
def stopped_and_continued_often(bench):
    with bench.machine() as m:
        start(m)
        for _ in range(30):
            m.send("t c8 0")
            m.qmp("stop")
            m.qmp("cont")
            assert m.answer() > 0


@test
def migration_while_the_daemon_lives(bench):
    with bench.machine() as m:
        start(m)
        expect("WAIT", run_command(m), 0)
        m.qmp("migrate", uri="exec:cat >/dev/null")
        assert wait_until(lambda: m.qmp("query-migrate")["status"] in ("completed", "failed"))
        expect("migration", m.qmp("query-migrate")["status"], "completed")


def add_disk(machine):
    """Somewhere for savevm to write to."""
    path = os.path.join(machine.folder.name, "disk.qcow2")

    def create(job, options):
        machine.qmp("blockdev-create", **{"job-id": job, "options": options})
        assert wait_until(
            lambda: [j["status"] for j in machine.qmp("query-jobs") if j["id"] == job]
            == ["concluded"]
        )
        machine.qmp("job-dismiss", id=job)

    size = 1 << 20
    create("file", {"driver": "file", "filename": path, "size": 0})
    machine.qmp("blockdev-add", **{"driver": "file", "node-name": "file", "filename": path})
    create("qcow2", {"driver": "qcow2", "file": "file", "size": size})
    machine.qmp("blockdev-add", **{"driver": "qcow2", "node-name": "disk", "file": "file"})


@test
def snapshots(bench):
    with bench.machine("--delay-ms 2000") as m:
        add_disk(m)
        generation = start(m)
        gpa = m.ask("g")
        m.ask("m")
        expect("BELL", m.ask("b"), 0)
        expect("about to WAIT", m.ask("v 0 1"), 0)
        expect("savevm", m.human("savevm there"), "")
        expect("the daemon after savevm", len(m.daemons()), 1)
        expect("WAIT", m.answer(), 0)
        expect("status", m.guest_status(gpa), 0)
        expect("loadvm", m.human("loadvm there"), "")
        # The guest waits again, for a daemon that is no more.
        expect("daemons after loadvm", len(m.daemons()), 0)
        expect("WAIT", m.answer(), -errno.EIO)
        expect("status", m.guest_status(gpa), PENDING)
        expect("next generation", start(m), generation + 1)
        expect("WAIT", run_command(m), 0)


@test
def reset_ends_the_daemon(bench):
    with bench.machine("--never") as m:
        generation = start(m)
        m.ask("m")
        m.ask("b")
        m.send("w 0 0")
        assert not m.has_answer(0.05)
        (daemon,) = m.daemons()
        m.qmp("system_reset")
        expect("the guest starts again", m.answer(), 0)
        assert not is_running(daemon)
        expect("ALIVE", m.ask("a"), -errno.EIO)
        expect("next generation", start(m), generation + 1)


@test
def qemu_killed(bench):
    with bench.machine() as m:
        start(m)
        (daemon,) = m.daemons()
        m.process.send_signal(signal.SIGKILL)
        m.process.wait()
        assert wait_until(lambda: not is_running(daemon)), "the daemon outlived QEMU"


@test
def daemon_starts_clean(bench):
    with bench.machine() as m:
        start(m)
        (daemon,) = m.daemons()

        def mask(name):
            with open(f"/proc/{daemon}/status") as status:
                return int(dict(line.split(":\t") for line in status if name in line)[name], 16)

        # While it starts a thread, the C library blocks signals itself.
        assert wait_until(lambda: mask("SigBlk") == 0), f"blocked signals: {mask('SigBlk'):#x}"
        # Real-time signals 32 and 33 belong to the C library.
        expect("ignored signals", mask("SigIgn") & 0x7FFFFFFF, 0)
        open_files = {}
        for fd in os.listdir(f"/proc/{daemon}/fd"):
            open_files[int(fd)] = os.readlink(f"/proc/{daemon}/fd/{fd}")
        expect("standard input", open_files[0], "/dev/null")
        for fd in 1, 2:
            assert open_files[fd].endswith("stderr"), open_files
        for fd, name in open_files.items():
            if fd >= 4:
                assert "memfd:" in name, f"descriptor {fd} of the daemon is QEMU's {name}"
        expect("process group", os.getpgid(daemon), daemon)


@test
def other_cpus_go_on(bench):
    """CPU 1 flushes TLBs, for which QEMU stops all CPUs: one that waits must not hold them up."""
    for flags in 0, FREEZE:
        with bench.machine("--never", cpus=2) as m:
            start(m)
            expect("CPU_ON", m.ask("x"), 0)
            assert wait_until(lambda: m.ask("y") > 0), "CPU 1 does not run"
            m.ask("m")
            expect("BELL", m.ask("b"), 0)
            before = m.ask("y")
            m.send(f"w 0 {flags:x}")
            assert not m.has_answer(1)
            m.kill_daemon()
            expect("WAIT", m.answer(), -errno.EIO)
            flushes, interrupted = m.ask("y") - before, m.ask("e")
            assert flushes > 10, f"CPU 1 flushed {flushes} times in a second"
            assert interrupted > 0


@test
def nothing_leaks_over_restarts(bench):
    rounds = 1000
    with bench.machine("--die-on-bell") as m:
        def restart():
            start(m)
            expect("WAIT", run_command(m), -errno.EIO)
        restart()
        wait_until(lambda: not m.daemons())
        before = m.descriptors()
        for _ in range(rounds):
            restart()
        assert wait_until(lambda: not m.daemons()), "daemons are left"
        m.ask("p")
        m.kill_daemon()
        wait_until(lambda: not m.daemons())
        assert m.descriptors() <= before, f"{m.descriptors()} descriptors, {before} before"
        assert m.mappings() <= 1


@long_test
def daemon_does_not_pause(bench):
    with bench.machine("--no-pause") as m:
        start(m)
        m.monitor.settimeout(60)
        m.qmp("stop")
        expect("daemons", len(m.daemons()), 0)
        m.qmp("cont")
        expect("ALIVE", m.ask("a"), -errno.EIO)


@long_test
def daemon_silent_for_long(bench):
    with bench.machine("--silent") as m:
        expect("PROBE", m.ask("p", seconds=60), -errno.ETIMEDOUT)
        expect("daemons", len(m.daemons()), 0)


def measure(bench):
    with bench.machine() as m:
        start(m)
        count = 20000
        m.ask(f"i {count:x}")
        print(f"PING: {m.ask(f'i {count:x}') / count / 1e3:.2f} us")
        for flags, name in (0, "BELL + WAIT"), (FREEZE, "BELL + WAIT, time frozen (its clock)"):
            begin = time.monotonic()
            elapsed = m.ask(f"t {count:x} {flags:x}")
            wall = time.monotonic() - begin
            print(f"{name}: {elapsed / count / 1e3:.2f} us, wall {wall / count * 1e6:.2f} us")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("daemon")
    parser.add_argument("guest")
    parser.add_argument("--qemu")
    parser.add_argument("--build-qemu")
    parser.add_argument("--version", default="7.2")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    qemu = options.qemu
    if not qemu:
        script = [options.build_qemu, "--version", options.version, "--print-path"]
        found = subprocess.run(script, capture_output=True, text=True, check=False)
        if found.returncode:
            print(f"skipped: {found.stderr.strip()}")
            return 77
        qemu = found.stdout.strip()
    bench = Bench(qemu, options.daemon, options.guest, options.long)
    if options.measure:
        measure(bench)
        return 0
    failed = 0
    for function in tests + (long_tests if options.long else []):
        name = function.__name__
        if options.names and name not in options.names:
            continue
        begin = time.monotonic()
        try:
            function(bench)
            print(f"ok      {name} ({time.monotonic() - begin:.2f} s)", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

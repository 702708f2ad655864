"""What goes wrong: the daemon, guest processes, kernels, memory; and that all goes on
afterwards."""
import socket
import struct
import time

from harness import check, cpu_seconds, equal, gone, until

LOST = "GPUSIM_DEVICE_LOST"


def kill_daemon(runner):
    """SIGKILL; with stock QEMU somebody starts the next one, as a service manager would."""
    for pid in runner.guest.kill_daemon():
        until(lambda pid=pid: gone(pid), "the killed daemon is reaped")
    if runner.suite.stock:
        runner.guest.start_daemon()


def text_of(result, what):
    text = result.values().get(what + "_text", "")
    check(len(text) > 10 and " " in text, f"no sentence about {what}:\n{result.output}")
    return text


# ---- The daemon is killed ----

def daemon_killed_while_idle(runner):
    for _ in range(3):
        kill_daemon(runner)
        equal(runner.case("works", timeout=20), kernel="works")


def daemon_killed_during_kernel(runner):
    for options in ("", "-o wait=frozen ") if not runner.suite.stock else ("",):
        job = runner.background(options + "spin")
        kill_daemon(runner)
        result = job.wait(20)
        equal(result, end=LOST, reopened="works")
        text_of(result, "end")


def daemon_killed_between_kernels(runner):
    job = runner.background("lost")
    kill_daemon(runner)
    runner.signal(job, "USR1")
    result = job.wait(20)
    equal(result, before="works", kernel=LOST, buffer=LOST, reopened="works")
    text_of(result, "kernel")


def daemon_killed_in_a_row_of_kernels(runner):
    """At no particular stage: before, during, after a short kernel."""
    for i in range(6 if not runner.setting.long else 100):
        job = runner.background("loop")
        time.sleep(0.013 * (i % 7))
        kill_daemon(runner)
        equal(job.wait(20), end=LOST)
    equal(runner.case("works", timeout=20), kernel="works")


def daemon_killed_during_transfer(runner):
    for i in range(3 if not runner.setting.long else 50):
        job = runner.background("transfer")
        time.sleep(0.017 * (i % 7))
        kill_daemon(runner)
        equal(job.wait(20), end=LOST)


def several_processes_lose_the_daemon(runner):
    jobs = [runner.background(case) for case in ("spin", "loop", "transfer", "block")]
    kill_daemon(runner)
    for job in jobs:
        equal(job.wait(20), end=LOST)


# ---- Guest processes are killed ----

def process_killed_during_kernel(runner):
    cases = ["block", "spin", "transfer", "loop"]
    if not runner.suite.stock:
        cases.append("-o wait=frozen block")
    pid = runner.daemon()
    for case in cases:
        for name in ("KILL", "TERM"):
            job = runner.background(case)
            runner.signal(job, name)
            result = job.wait(15)
            check(result.status == 128 + {"KILL": 9, "TERM": 15}[name],
                  f"{case}, SIG{name}: status {result.status}\n{result.output}")
    check(runner.daemon() == pid, "the daemon is another one")
    # The kernels of the dead do not go on.
    until(lambda: not is_busy(pid), "the daemon is idle")


def others_run_while_time_stands_still(runner):
    """Processes that the kernel puts behind the one that waits; nothing interrupts it for them."""
    job = runner.background("-o wait=frozen block")
    for _ in range(40):
        runner.guest.run("cat $(echo /proc/uptime)", timeout=10)
    runner.signal(job, "KILL")
    job.wait(15)


def is_busy(pid, seconds=0.4):
    """Whether a process computes; on a machine with other work, too."""
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return cpu_seconds(pid) - before > 0.025


def driver_cannot_go_while_busy(runner):
    with runner.spinning():
        result = runner.guest.run("rmmod gpusim", status=None)
        check(result.status != 0, "rmmod succeeded while a kernel ran")
    parameters = runner.guest.run("tr ' ' '\\n' </proc/cmdline | sed -n 's/^gpusim[.]//p'").output
    words = " ".join(parameters.split())
    runner.guest.run(f"rmmod gpusim && insmod /lib/modules/gpusim.ko {words}")
    equal(runner.case("works"), kernel="works")


# ---- Kernels that go wrong ----

def endless_kernel_cancelled(runner):
    result = runner.case("cancel", timeout=30)
    equal(result, cancel="GPUSIM_OK", end="GPUSIM_CANCELLED", next="works")


def endless_kernel_limited(runner):
    for limit in ("", "0.3"):
        result = runner.case(f"limit {limit}", timeout=30)
        equal(result, end="GPUSIM_KERNEL_FAILED", next="works")
        check("limit" in text_of(result, "end") or "max-instructions" in text_of(result, "end"),
              result.output)


def faulting_kernel(runner):
    for address in ("16", "0x7ffff0000000", "0xffff000000000000"):
        result = runner.case(f"fault {address}", timeout=30)
        values = equal(result, end="GPUSIM_KERNEL_FAILED", next="works", pc_in_kernel="yes")
        check(int(values["faults"]) >= 1 and values["exit_status"] == "139", result.output)
        text_of(result, "end")


def out_of_memory(runner):
    result = runner.case("memory", timeout=60)
    values = equal(result, end="GPUSIM_OUT_OF_MEMORY", next="works")
    check(values["huge"] in ("GPUSIM_OUT_OF_MEMORY", "GPUSIM_INVALID_ARGUMENT"), result.output)
    check(int(values["buffers"]) > 0, result.output)
    text_of(result, "end")
    killed = [line for line in runner.guest.dmesg().splitlines() if "Killed process" in line]
    check(not killed, "\n".join(killed))


def users_beyond_their_share(runner):
    """The library says which of the driver's limits it was; the driver's own test has all of
    them."""
    parameters = "/sys/module/gpusim/parameters"
    runner.guest.run(f"chmod 666 /dev/gpusim; echo 1 >{parameters}/contexts_per_user; "
                     f"echo 8 >{parameters}/memory_per_user_mib")
    try:
        result = runner.case("quota")
        equal(result, second="GPUSIM_OUT_OF_MEMORY", buffer="GPUSIM_OUT_OF_MEMORY")
        check("contexts_per_user" in text_of(result, "second"), result.output)
        check("memory_per_user_mib" in text_of(result, "buffer"), result.output)
        dmesg = runner.guest.dmesg()
        check("user 1000 has as many contexts" in dmesg and "user 1000 has as much memory" in dmesg,
              dmesg)
    finally:
        runner.guest.run(f"chmod 660 /dev/gpusim; echo 16 >{parameters}/contexts_per_user; "
                         f"echo 0 >{parameters}/memory_per_user_mib")


def many_cycles(runner):
    equal(runner.case("cycles 1000", timeout=120), cycles="1000")


# ---- The virtual machine stands still ----

def stopped_during_kernel(runner):
    guest, pid = runner.guest, runner.daemon()
    stock = runner.suite.stock  # whose monitor tells the daemon, some time later
    for case in ("spin",) if stock else ("spin", "-o wait=frozen spin"):
        with runner.spinning(case):
            until(lambda: is_busy(pid), "the kernel runs")
            guest.qmp("stop")
            check(guest.qmp("query-status")["running"] is False, "not stopped")
            if stock:
                until(lambda: not is_busy(pid), "the daemon stops with the machine")
            check(not is_busy(pid), "the daemon computes while the machine stands still")
            guest.qmp("cont")
            until(lambda: is_busy(pid), "the kernel goes on")


def saved_during_kernel(runner):
    """The state goes through the monitor's way of saving; guest memory must not change
    meanwhile."""
    guest = runner.guest
    with runner.spinning():
        guest.qmp("migrate-set-parameters", **{"max-bandwidth": 1 << 40, "downtime-limit": 2000})
        guest.qmp("migrate", uri="exec:cat >/dev/null")
        until(lambda: guest.qmp("query-migrate").get("status") in ("completed", "failed"),
              "the state is saved", 30)
        status = guest.qmp("query-migrate")["status"]
        if status == "completed":
            guest.qmp("cont")
        check(status == "completed", f"saving {status}")


def monitor_answers_during_kernel(runner):
    for case in ("spin", "-o wait=frozen spin"):
        with runner.spinning(case):  # which fails if the kernel has ended before
            for _ in range(5):
                runner.guest.qmp("query-status")
            # and so do the guest's other processes
            runner.guest.run("true", timeout=10)


# ---- Daemons that do not serve ----

def no_daemon(runner):
    """Stock QEMU, and nobody at the other end of the port."""
    for pid in runner.guest.kill_daemon():
        until(lambda pid=pid: gone(pid), "the daemon is gone")
    result = runner.guest.run("guest_cases open", timeout=40)
    values = result.values()
    check(values["open"] in ("GPUSIM_NO_DEVICE", LOST), result.output)
    check(values["open"] == LOST or "gpusim daemon --listen" in text_of(result, "open"),
          result.output)
    runner.guest.start_daemon()
    equal(runner.case("works", timeout=20), kernel="works")


def daemon_of_another_version(runner):
    """Stock QEMU, and at the other end one that says hello as the daemon of wire version 2 did."""
    for pid in runner.guest.kill_daemon():
        until(lambda pid=pid: gone(pid), "the daemon is gone")
    path = runner.guest.sockets / "gpusim"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(20)  # QEMU looks once a second
        qemu = listener.accept()[0]
        with qemu:
            qemu.sendall(struct.pack("<IIQ", 1, 77, 2))
            # Until the hello is there, the driver knows only that nobody answers.
            until(lambda: "the daemon speaks version 2 of the protocol, not " in text_of(
                runner.guest.run("guest_cases open", timeout=40), "open"), "the driver says so",
                  seconds=60)
    runner.guest.start_daemon()
    equal(runner.case("works", timeout=20), kernel="works")


COMMON = [daemon_killed_while_idle, daemon_killed_during_kernel, daemon_killed_between_kernels,
          daemon_killed_in_a_row_of_kernels, daemon_killed_during_transfer,
          several_processes_lose_the_daemon, process_killed_during_kernel,
          driver_cannot_go_while_busy, endless_kernel_cancelled, endless_kernel_limited,
          faulting_kernel, out_of_memory, users_beyond_their_share, many_cycles]
PATCHED = [others_run_while_time_stands_still, monitor_answers_during_kernel,
           stopped_during_kernel, saved_during_kernel]
STOCK = [no_daemon, daemon_of_another_version, stopped_during_kernel]

"""A bare-metal guest under QEMU, driven line by line through its UART, and QEMU's monitor (QMP)."""

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE_S = 20  # for anything that should be immediate; loaded machines are slow


def wait_until(condition, seconds=PATIENCE_S):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    """Its child processes, dead ones that nobody reaped included."""
    found = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as listing:
                found.update(int(child) for child in listing.read().split())
        except FileNotFoundError:
            pass
    return found


class Machine:
    """with Machine(qemu, guest, daemon="COMMAND") as m: m.ask("p")"""

    def __init__(self, qemu, guest, daemon=None, shared=True, cpus=1, native=None, more=()):
        self.folder = tempfile.TemporaryDirectory(prefix="gpusim-bridge-")
        monitor = os.path.join(self.folder.name, "qmp")
        self.errors_path = os.path.join(self.folder.name, "stderr")
        config = "enable=on,target=native"
        if daemon:
            config += ",gpusim=" + daemon.replace(",", ",,")
        if native is not None:
            config += ",native=" + ("on" if native else "off")
        memory = "memory-backend-memfd,share=on" if shared else "memory-backend-ram,share=off"
        command = [
            "setpriv", "--pdeathsig", "KILL",  # it ends when this test is killed
            qemu, "-M", "virt,memory-backend=ram", "-cpu", "cortex-a57", "-smp", str(cpus),
            "-object", f"{memory},id=ram,size=64M", "-nodefaults", "-display", "none",
            "-serial", "stdio", "-qmp", f"unix:{monitor},server=on,wait=off",
            "-semihosting-config", config, "-kernel", guest, *more,
        ]
        with open(self.errors_path, "wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self.monitor = None
        self.pending = b""
        self.events = []
        try:
            self.answer()  # the guest is up
            self.monitor = socket.socket(socket.AF_UNIX)
            self.monitor.settimeout(PATIENCE_S)
            self.monitor.connect(monitor)
            self.lines = self.monitor.makefile("rb")
            self.lines.readline()
            self.qmp("qmp_capabilities")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.monitor:
            self.lines.close()
            self.monitor.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.folder.cleanup()

    def errors(self):
        with open(self.errors_path, errors="replace") as file:
            return file.read()

    # The guest.
    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, seconds=PATIENCE_S):
        """The number that the guest prints next."""
        until = time.monotonic() + seconds
        while b"\n" not in self.pending:
            ready = select.select([self.process.stdout], [], [],
                                  max(0, until - time.monotonic()))[0]
            data = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not data:
                raise AssertionError(
                    f"the guest does not answer; QEMU's status {self.process.poll()}, "
                    f"its errors:\n{self.errors()}"
                )
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        assert line.startswith(b"= "), line
        return int(line[2:])

    def has_answer(self, seconds):
        """Whether the guest prints something within that time."""
        return bool(self.pending or select.select([self.process.stdout], [], [], seconds)[0])

    def ask(self, line, seconds=PATIENCE_S):
        self.send(line)
        return self.answer(seconds)

    # The monitor.
    def qmp(self, command, **arguments):
        request = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        self.monitor.sendall(json.dumps(request).encode() + b"\n")
        while True:
            reply = json.loads(self.lines.readline())
            if "event" in reply:
                self.events.append(reply["event"])
            elif "error" in reply:
                raise AssertionError(f"{command}: {reply['error']}")
            else:
                return reply["return"]

    def human(self, line):
        return self.qmp("human-monitor-command", **{"command-line": line})

    def guest_status(self, gpa):
        """`status` of the command at gpa, through the monitor."""
        return int(self.human(f"xp /1wd {gpa + 24:#x}").split(":")[1])

    def reason(self):
        """What the guest is told about the last PROBE that failed."""
        gpa = self.ask("g")
        assert self.ask(f"o 105 {gpa:x}") == 0, "REASON failed"
        path = os.path.join(self.folder.name, "reason")
        self.qmp("pmemsave", val=gpa, size=256, filename=path)
        with open(path, "rb") as file:
            return file.read().split(b"\0", 1)[0].decode()

    # Processes.
    def daemons(self):
        return children(self.process.pid)

    def kill_daemon(self):
        (daemon,) = self.daemons()
        os.kill(daemon, signal.SIGKILL)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def mappings(self):
        with open(f"/proc/{self.process.pid}/maps") as maps:
            return sum("gpusim-bell" in line for line in maps)

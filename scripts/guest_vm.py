"""A virtual machine with gpusim's device: QEMU, the daemon, and a shell to command the guest with.

For scripts/qemu-demo, scripts/bench and the tests of tests/system/qemu; standard library only.

    with Guest(qemu=..., gpusim=..., image=..., folder="logs",
               files={"/bin/prog": "prog.elf"}) as guest:
        print(guest.run("prog --cores 64").output)

Commands go through a virtio-serial port of their own, so that they depend on nothing that is under
test; the guest's console goes to FOLDER/console.log, and what QEMU and the daemon print to
FOLDER/host.log.
"""
import base64
import ctypes
import dataclasses
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "guest_driver" / "image"))

# Reads "ID SCRIPT-IN-BASE64" lines, runs each script as a process of its own, in the background,
# and sends back "ID STATUS BYTES", a line end and what it printed.
AGENT = """\
port=
while [ -z "$port" ]; do
  for name in /sys/class/virtio-ports/*/name; do
    [ "$(cat $name 2>/dev/null)" = control ] && port=${name%/name}
  done
  [ -n "$port" ] || sleep 0.05
done
exec 3<>/dev/${port##*/}
mkdir -p /tmp/agent
cd /tmp/agent
mkfifo ended
exec 4<>ended
while read -r id status <&4; do
  [ "$id" != ready ] || { echo ready >&3; continue; }
  { echo "$id $status $(($(wc -c <$id.out)))"; cat $id.out; } >&3
  rm -f $id.*
done &
# More than once: what is written right after a port was opened may not arrive.
while [ ! -e heard ]; do
  echo ready >&4
  sleep 0.5
done &
while :; do
  # Until the guest knows that the host's end is open, reading gives an end of file.
  read -r id script <&3 || { sleep 0.1; continue; }
  : >heard
  echo "$script" | base64 -d >$id.sh
  (
    (cd /; exec sh /tmp/agent/$id.sh >/tmp/agent/$id.out 2>&1 </dev/null 3>&- 4>&-)
    echo "$id $?" >&4
  ) &
done
"""
_PR_SET_PDEATHSIG = 1


class GuestError(Exception):
    """The guest, QEMU or the daemon did not do what it should."""


class GuestTimeout(GuestError):
    pass


@dataclasses.dataclass
class Result:
    command: str
    status: int
    output: str  # standard output and error
    data: bytes

    def values(self):
        """Its lines of the form key=value."""
        return dict(line.split("=", 1) for line in self.output.splitlines() if "=" in line)


def _die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def children_of(pid):
    """Processes that `pid` started and that still exist, ended ones that nobody waited for
    included."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            pass
    return found


def descriptors_of(pid):
    """What each open file descriptor of a process leads to."""
    found = {}
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[int(entry.name)] = os.readlink(entry)
        except OSError:
            pass
    return found


class Job:
    """A command that runs in the guest."""

    def __init__(self, guest, number, command):
        self.guest, self.number, self.command = guest, number, command
        self.done = threading.Event()
        self.result = None

    def wait(self, timeout=60.0):
        deadline = time.monotonic() + timeout
        while not self.done.wait(0.05):
            if self.guest.qemu.poll() is not None:
                raise GuestError(f"QEMU ended (status {self.guest.qemu.returncode}) during "
                                 f"`{self.command}`\n{self.guest.logs()}")
            if self.guest.closed.is_set():
                raise GuestError(f"the guest ended during `{self.command}`\n{self.guest.logs()}")
            if time.monotonic() > deadline:
                raise GuestTimeout(f"`{self.command}` takes more than {timeout:g} s\n"
                                   f"{self.guest.logs()}")
        return self.result


class Guest:
    """transport: "semihosting" (patched QEMU, which starts the daemon), "virtio" (any QEMU) or
    "none"."""

    def __init__(self, *, qemu, gpusim, image, folder, transport="semihosting", smp=1,
                 memory_mib=512, files=None, daemon_options=(), kernel=None, initramfs=None,
                 append="", cpu="cortex-a76", qemu_options=(), boot_timeout=240.0,
                 daemon_command=None, shared=True, reboots=False):
        self.gpusim, self.transport = pathlib.Path(gpusim), transport
        self.image, self.folder = pathlib.Path(image), pathlib.Path(folder)
        self.boot_timeout = boot_timeout
        self.memory_mib, self.shared, self.reboots = memory_mib, shared, reboots
        self.daemon_command = [str(word) for word in
                               daemon_command or [gpusim, "daemon", *daemon_options]]
        self.qemu = self.daemon = None
        self.closed = threading.Event()
        self.jobs, self.next_job, self.lock = {}, 1, threading.Lock()
        self.qmp_replies = queue.Queue()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sockets = pathlib.Path(tempfile.mkdtemp(prefix="gpusim-vm-"))
        self.ram_file = None
        try:
            self._start(qemu, smp, files or {}, kernel, initramfs, append, cpu, qemu_options)
        except BaseException:
            self.stop()
            raise

    # ---- Life ----

    def _start(self, qemu, smp, files, kernel, initramfs, append, cpu, qemu_options):
        self.host_log = open(self.folder / "host.log", "wb")
        (self.folder / "console.log").write_bytes(b"")
        memory = f"size={self.memory_mib}M,share={'on' if self.shared else 'off'}"
        if self.transport == "virtio":
            free = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
            where = "/dev/shm" if free > (self.memory_mib + 64) << 20 else None
            descriptor, self.ram_file = tempfile.mkstemp(prefix="gpusim-ram-", dir=where)
            os.truncate(descriptor, self.memory_mib << 20)
            os.close(descriptor)
            backend = f"memory-backend-file,id=ram,mem-path={self.ram_file},{memory}"
            self.start_daemon()
        else:
            kind = "memfd" if self.shared else "ram"
            backend = f"memory-backend-{kind},id=ram,{memory}"
        command = [
            str(qemu), "-nodefaults", "-no-user-config", "-M", "virt,memory-backend=ram",
            "-cpu", cpu, "-smp", str(smp), "-m", f"{self.memory_mib}M", "-object", backend,
            "-display", "none", *([] if self.reboots else ["-no-reboot"]),
            "-kernel", str(kernel or self.image / "vmlinuz"),
            "-initrd", str(self._initramfs(files, initramfs)),
            "-append", f"console=ttyAMA0 {append}".strip(),
            "-serial", f"file:{self.folder}/console.log",
            "-qmp", f"unix:{self.sockets}/qmp,server=on,wait=off",
            "-device", "virtio-serial-device,id=commands",
            "-chardev", f"socket,id=control,path={self.sockets}/control,server=on,wait=off",
            "-device", "virtserialport,bus=commands.0,chardev=control,name=control",
        ]
        if self.transport == "virtio":
            command += ["-chardev", f"socket,id=daemon,path={self.sockets}/gpusim,reconnect=1",
                        "-device", "virtio-serial-device,id=gpusim,max_ports=2",
                        "-device", "virtserialport,bus=gpusim.0,chardev=daemon,name=org.gpusim.0",
                        "-qmp", f"unix:{self.sockets}/daemon-qmp,server=on,wait=off"]
        elif self.transport == "semihosting":
            spoken = " ".join("'" + word.replace("'", "'\\''") + "'"
                              for word in self.daemon_command)
            command += ["-semihosting-config",
                        "enable=on,target=native,gpusim=" + spoken.replace(",", ",,")]
        command += qemu_options
        (self.folder / "qemu-command.txt").write_text("\n".join(command) + "\n")
        self.qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.host_log,
                                     stderr=self.host_log, preexec_fn=_die_with_parent)
        self.control = self._connect("control")
        self._connect_qmp()
        self.boot_started = time.monotonic()
        self.ready = threading.Event()
        threading.Thread(target=self._receive, daemon=True).start()
        self.wait_until_ready()
        self.boot_seconds = time.monotonic() - self.boot_started

    def reset(self):
        """Restarts the guest, which needs reboots=True."""
        self.ready.clear()
        self.qmp("system_reset")
        self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + self.boot_timeout
        while not self.ready.wait(0.05):
            if self.qemu.poll() is not None:
                raise GuestError(f"QEMU ended with status {self.qemu.returncode}\n{self.logs()}")
            if time.monotonic() > deadline:
                raise GuestTimeout(f"the guest does not boot\n{self.logs()}")

    def _initramfs(self, files, initramfs):
        import pack  # guest_driver/image/pack, by the name that load_pack gives it
        mine = self.folder / "programs.cpio.gz"
        agent = self.folder / "agent.sh"
        agent.write_text(AGENT)
        pack.pack(str(mine), [("/run.sh", str(agent)), *((k, str(v)) for k, v in files.items())])
        whole = self.folder / "initramfs.gz"
        with open(whole, "wb") as out:
            for part in (initramfs or self.image / "base.cpio.gz", mine):
                out.write(pathlib.Path(part).read_bytes())
        mine.unlink()
        return whole

    def _connect(self, name):
        deadline = time.monotonic() + 20
        while True:
            try:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(str(self.sockets / name))
                return connection
            except OSError:
                connection.close()
                if self.qemu.poll() is not None or time.monotonic() > deadline:
                    raise GuestError(f"QEMU does not start\n{self.logs()}") from None
                time.sleep(0.02)

    def start_daemon(self):
        """virtio: a daemon, the first or after one died."""
        path = self.sockets / "gpusim"
        path.unlink(missing_ok=True)
        self.daemon = subprocess.Popen(
            [*self.daemon_command, "--listen", str(path), "--ram", self.ram_file,
             "--qmp", str(self.sockets / "daemon-qmp")],
            stdin=subprocess.DEVNULL, stdout=self.host_log, stderr=self.host_log,
            preexec_fn=_die_with_parent)
        deadline = time.monotonic() + 20
        while not path.exists():
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                raise GuestError(f"the daemon does not start\n{self.logs()}")
            time.sleep(0.01)

    def stop(self):
        for process in (self.qemu, self.daemon):
            if process and process.poll() is None:
                process.kill()
            if process:
                process.wait()
        for name in ("control", "qmp_socket", "host_log"):
            if hasattr(self, name):
                getattr(self, name).close()
        shutil.rmtree(self.sockets, ignore_errors=True)
        if self.ram_file:
            pathlib.Path(self.ram_file).unlink(missing_ok=True)
            self.ram_file = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def logs(self, lines=15):
        text = ""
        for name in ("console.log", "host.log"):
            try:
                tail = (self.folder / name).read_text(errors="replace").splitlines()[-lines:]
            except OSError:
                tail = []
            text += f"--- {self.folder}/{name}\n" + "".join(f"  {line}\n" for line in tail)
        return text

    # ---- Commands for the guest ----

    def _receive(self):
        stream = self.control.makefile("rb")
        try:
            for line in stream:
                words = line.split()
                if words == [b"ready"]:
                    self.ready.set()
                    continue
                number, status, size = (int(word) for word in words)
                data = stream.read(size)
                job = self.jobs.pop(number)
                job.result = Result(job.command, status, data.decode(errors="replace"), data)
                job.done.set()
        except (OSError, ValueError, KeyError):
            pass
        self.closed.set()

    def start(self, script):
        """Starts a shell script in the guest."""
        with self.lock:
            job = Job(self, self.next_job, script)
            self.next_job += 1
            self.jobs[job.number] = job
            encoded = base64.b64encode(script.encode()).decode()
            try:
                self.control.sendall(f"{job.number} {encoded}\n".encode())
            except OSError as error:
                raise GuestError(f"the guest takes no commands: {error}\n{self.logs()}") from None
        return job

    def run(self, script, timeout=60.0, status=0):
        """Runs a shell script; GuestError if it ends with a status other than `status` (None:
        any)."""
        result = self.start(script).wait(timeout)
        if status is not None and result.status != status:
            raise GuestError(f"`{script}` ended with status {result.status}, not {status}:\n"
                             f"{result.output}\n{self.logs()}")
        return result

    def dmesg(self):
        return self.run("dmesg").output

    # ---- QEMU's monitor ----

    def _connect_qmp(self):
        self.qmp_socket = self._connect("qmp")
        stream = self.qmp_socket.makefile("rb")
        stream.readline()  # the greeting

        def receive():
            try:
                for line in stream:
                    message = json.loads(line)
                    if "event" not in message:
                        self.qmp_replies.put(message)
            except (OSError, ValueError):
                pass

        threading.Thread(target=receive, daemon=True).start()
        self.qmp("qmp_capabilities")

    def qmp(self, command, timeout=10.0, **arguments):
        self.qmp_socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        try:
            reply = self.qmp_replies.get(timeout=timeout)
        except queue.Empty:
            if self.qemu.poll() is not None:
                raise GuestError(f"QEMU ended with status {self.qemu.returncode}\n"
                                 f"{self.logs()}") from None
            raise GuestTimeout(f"QEMU's monitor does not answer {command} within {timeout:g} s\n"
                               f"{self.logs()}") from None
        if "error" in reply:
            raise GuestError(f"{command}: {reply['error']['desc']}")
        return reply["return"]

    # ---- The daemon ----

    def daemon_pids(self):
        if self.transport == "virtio":
            return [self.daemon.pid] if self.daemon.poll() is None else []
        return children_of(self.qemu.pid)

    def kill_daemon(self):
        pids = self.daemon_pids()
        if not pids:
            raise GuestError(f"no daemon runs\n{self.logs()}")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if self.transport == "virtio":
            self.daemon.wait()
        return pids


def stock_qemu():
    """The machine's own QEMU, or None."""
    found = shutil.which("qemu-system-aarch64")
    return pathlib.Path(found) if found else None


def _load_pack():
    from importlib import machinery, util
    loader = machinery.SourceFileLoader("pack", str(ROOT / "guest_driver" / "image" / "pack"))
    module = util.module_from_spec(util.spec_from_loader("pack", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    sys.modules["pack"] = module


_load_pack()

"""A run of gpusim that waits for a debugger."""

import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

TIMEOUT_S = 120
GDB = shutil.which("gdb-multiarch")


def interrupt(process, ready):
    while not ready.exists() and process.poll() is None:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)


class Run:
    """gpusim run --gdb; `socket` is its address. Used with `with`."""

    def __init__(self, gpusim, *words, address=None, stdin=subprocess.DEVNULL):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = address or str(pathlib.Path(self.folder.name) / "s")
        self.process = subprocess.Popen(
            [str(gpusim), "run", "--quiet", "--gdb", self.socket, *map(str, words)], stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        self.first_lines = []
        while not self.first_lines or "waits for" not in self.first_lines[-1]:
            line = self.process.stderr.readline()
            if not line:
                break
            self.first_lines.append(line)
        if self.first_lines and "target remote " in self.first_lines[-1]:
            self.socket = self.first_lines[-1].split("target remote ")[1].split("`")[0]
        self.output = self.errors = ""

    def finish(self):
        """The exit status, once it has ended; its output and errors."""
        self.output, self.errors = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        self.process.wait()
        self.folder.cleanup()

    def gdb(self, *commands, program=None, before=(), interrupts=False):
        """What gdb-multiarch says to these commands, after it connected. `interrupts`: Ctrl-C a
        second after the first of them began."""
        ready = pathlib.Path(self.folder.name) / "ready"
        words = [GDB, "-nx", "-batch"]
        settings = ["set confirm off", "set pagination off", "set width 0",
                    "set debuginfod enabled off", *before]
        connect = [f"target remote {self.socket}", f"shell touch {ready}"]
        for command in [*settings, *connect, *commands]:
            words += ["-ex", command]
        if program:
            words.append(str(program))
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL) as process:
            if interrupts:
                threading.Thread(target=interrupt, args=(process, ready), daemon=True).start()
            try:
                text, _ = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                text, _ = process.communicate()
                text += "\n(gdb did not end)"
        return text

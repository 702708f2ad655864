"""A run of gpusim that waits for a debugger."""

import pathlib
import shutil
import subprocess
import tempfile
import threading

TIMEOUT_S = 120
GDB = shutil.which("gdb-multiarch")


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

    def gdb(self, *commands, program=None, before=(), interrupt_after_s=None):
        """What gdb-multiarch says to these commands, after it connected."""
        words = [GDB, "-nx", "-batch"]
        settings = ["set confirm off", "set pagination off", "set width 0",
                    "set debuginfod enabled off", *before]
        for command in [*settings, f"target remote {self.socket}", *commands]:
            words += ["-ex", command]
        if program:
            words.append(str(program))
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL) as process:
            timer = None
            if interrupt_after_s is not None:
                timer = threading.Timer(interrupt_after_s, process.send_signal, [2])
                timer.start()
            try:
                text, _ = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                text, _ = process.communicate()
                text += "\n(gdb did not end)"
            finally:
                if timer:
                    timer.cancel()
        return text

"""The guest's standard files."""

import os
import sys
from typing import Any, List, Optional


class Capture:
    """A file in memory that the guest writes to and Python reads."""

    def __init__(self, name: str) -> None:
        self._fd = os.memfd_create("gpusim-" + name)
        # Its own position, at the end, and for writing only, as a pipe would be.
        self.writer = os.open(f"/proc/self/fd/{self._fd}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def read(self) -> bytes:
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def close(self) -> None:
        os.close(self._fd)
        os.close(self.writer)


class StandardFiles:
    """stdin: None (empty), bytes or text, "pass", or a file; stdout and stderr: "capture", "pass",
    None (thrown away), or a file."""

    def __init__(self, stdin: Any, stdout: Any, stderr: Any) -> None:
        self._own: List[int] = []
        self._captures: List[Optional[Capture]] = [None, None]
        self._last = [b"", b""]
        self.closed = False
        self.numbers: List[int] = []
        try:
            self.numbers.append(self._input(stdin))
            for i, (name, what) in enumerate((("stdout", stdout), ("stderr", stderr))):
                self.numbers.append(self._output(i, name, what))
        except BaseException:
            self.close()
            raise

    def _null(self) -> int:
        fd = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._own.append(fd)
        return fd

    def _input(self, what: Any) -> int:
        if what is None:
            return self._null()
        if isinstance(what, str) and what == "pass":
            return 0
        if hasattr(what, "fileno"):
            return int(what.fileno())
        data = what.encode() if isinstance(what, str) else bytes(what)
        fd = os.memfd_create("gpusim-stdin")
        self._own.append(fd)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def _output(self, i: int, name: str, what: Any) -> int:
        if what is None:
            return self._null()
        if isinstance(what, str) and what == "pass":
            stream = (sys.stdout, sys.stderr)[i]
            if stream is not None:
                stream.flush()
            return i + 1
        if isinstance(what, str) and what == "capture":
            capture = self._captures[i] = Capture(name)
            return capture.writer
        if hasattr(what, "fileno"):
            what.flush()
            return int(what.fileno())
        raise ValueError(f'{name}={what!r}: expected "capture", "pass", None or a file')

    def captured(self, i: int) -> bytes:
        """What was written to standard output (0) or error (1) so far."""
        capture = self._captures[i]
        if capture is not None and not self.closed:
            self._last[i] = capture.read()
        return self._last[i]

    def close(self) -> None:
        if self.closed:
            return
        for i in (0, 1):
            self.captured(i)
        self.closed = True
        for fd in self._own:
            os.close(fd)
        for capture in self._captures:
            if capture is not None:
                capture.close()

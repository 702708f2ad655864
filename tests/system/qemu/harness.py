"""What a test gets, and what is checked after each."""
import contextlib
import dataclasses
import os
import pathlib
import time

import guest_vm

# A kernel that complains, whatever it is about.
COMPLAINTS = ("BUG:", "WARNING:", "Oops", "Call trace", "rcu_sched", "rcu_preempt", "hung_task",
              "blocked for more than", "refcount_t", "Unable to handle", "Bad page")


class Skip(Exception):
    """The test cannot run here; the text says why."""


@dataclasses.dataclass
class Setting:
    gpusim: pathlib.Path
    build: pathlib.Path
    image: pathlib.Path
    patched: pathlib.Path
    stock: pathlib.Path
    long: bool
    logs: pathlib.Path


@dataclasses.dataclass
class Suite:
    tests: list
    stock: bool = False
    smp: int = 1
    own_boots: bool = False  # its tests boot guests themselves, by Runner.boot()
    daemon_options: tuple = ()


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(values, **wanted):
    """Compares key=value lines of a guest program's output."""
    got = values.values()
    for key, value in wanted.items():
        check(got.get(key) == value,
              f"{key} is {got.get(key)!r}, not {value!r}; the whole output:\n{values.output}")
    return got


def until(condition, what, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        check(time.monotonic() < deadline, f"not within {seconds:g} s: {what}")
        time.sleep(0.05)
    return result


def guest_files(build):
    """What the guest gets, by its path there."""
    files = {"/bin/guest_cases": build / "tests/system/qemu/guest_cases.elf",
             "/bin/offload_test": build / "libgpusim/offload/test/offload_test.elf",
             "/bin/gpusim-offload": build / "libgpusim/offload/gpusim-offload.elf",
             "/bin/openmp_heat": build / "examples/openmp/openmp_heat.elf"}
    for name in ("matmul", "sobel", "fft", "nbody"):
        files[f"/bin/offload_{name}"] = build / f"examples/offload/offload_{name}.elf"
    return files


class Runner:
    def __init__(self, setting, name, suite):
        self.setting, self.name, self.suite = setting, name, suite
        self.guest = self.baseline = None
        self.boots = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.guest:
            self.guest.stop()
            self.guest = None

    # ---- Boots ----

    def boot(self, **changes):
        """A guest as the suite wants it, or otherwise; the caller stops it."""
        setting, suite = self.setting, self.suite
        self.boots += 1
        options = dict(
            qemu=setting.stock if suite.stock else setting.patched, gpusim=setting.gpusim,
            image=setting.image, transport="virtio" if suite.stock else "semihosting",
            smp=suite.smp, files=guest_files(setting.build), daemon_options=suite.daemon_options,
            folder=setting.logs / f"{self.name}.{self.boots}")
        options.update(changes)
        return guest_vm.Guest(**options)

    def run(self, test):
        if self.suite.own_boots:
            test(self)
            return
        if self.guest is None:
            self.guest = self.boot()
            equal(self.case("works"), kernel="works")
            self.baseline = self.state()
        try:
            test(self)
            self.check_nothing_left()
        except BaseException:
            # The next test gets a guest that nothing has happened to.
            self.guest.stop()
            self.guest = None
            raise

    # ---- What is left ----

    def state(self):
        """(descriptors of QEMU, of the daemon; the daemon's threads and mappings)"""
        guest = self.guest
        pids = guest.daemon_pids()
        check(len(pids) <= 1, f"{len(pids)} daemons: {pids}")
        state = {"QEMU's descriptors": len(guest_vm.descriptors_of(guest.qemu.pid))}
        for pid in pids:
            state["the daemon's descriptors"] = len(guest_vm.descriptors_of(pid))
            state["the daemon's processes"] = len(guest_vm.children_of(pid))
            with contextlib.suppress(OSError):
                threads = len(os.listdir(f"/proc/{pid}/task"))
                # The simulator starts its workers when there is work for them.
                state["the daemon's threads"] = max(0, threads - 2 * os.cpu_count() - 2)
        return state

    def check_nothing_left(self):
        guest = self.guest

        def guest_is_clean():
            out = guest.run("grep nr_foll_pin /proc/vmstat; lsmod | grep '^gpusim ';"
                            "ps | grep -E 'guest_cases|offload_' | grep -v grep; true").output
            words = dict(line.split()[:2] for line in out.splitlines()
                         if line.startswith("nr_foll"))
            pinned = int(words["nr_foll_pin_acquired"]) - int(words["nr_foll_pin_released"])
            module = next(line for line in out.splitlines() if line.startswith("gpusim "))
            problems = [f"{pinned} pinned pages"] if pinned else []
            if module.split()[2] != "0":
                problems.append(f"uses of the driver: {module}")
            problems += [line for line in out.splitlines() if "guest_cases" in line]
            return problems

        def wait_for(problems_of, where):
            deadline = time.monotonic() + 5
            while problems := problems_of():
                check(time.monotonic() < deadline, f"left {where}: {'; '.join(problems)}")
                time.sleep(0.1)

        wait_for(guest_is_clean, "in the guest")
        equal(self.case("works"), kernel="works")
        wait_for(guest_is_clean, "in the guest")
        wait_for(lambda: [f"{what}: {now}, not {self.baseline.get(what, 0)}"
                          for what, now in self.state().items()
                          if now > self.baseline.get(what, 0)], "on the host")
        complaints = [line for line in guest.dmesg().splitlines()
                      if any(word in line for word in COMPLAINTS)]
        check(not complaints, "the guest's kernel complains:\n" + "\n".join(complaints))

    # ---- What several tests do ----

    def patience(self):
        """Stock QEMU looks for its daemon once a second."""
        return "-p 8" if self.suite.stock else ""

    def case(self, case, timeout=60.0, status=0):
        return self.guest.run(f"guest_cases {self.patience()} {case}", timeout, status)

    def background(self, case, ready="running="):
        """Starts guest_cases CASE in the guest; waits until it said that it runs."""
        out = f"/tmp/case.{case.split()[-1]}.{time.monotonic_ns()}"
        # The agent's number of the process would be the shell's.
        job = self.guest.start(f"guest_cases {self.patience()} {case} >{out} 2>&1 & echo $! "
                               f">{out}.pid; wait $!; "
                               f"status=$?; cat {out}; rm -f {out} {out}.pid; exit $status")
        job.out = out
        deadline = time.monotonic() + 20
        while True:
            if job.done.is_set():
                raise AssertionError(f"{case} ended at once: {job.result.output}")
            if self.guest.run(f"grep -q {ready} {out} 2>/dev/null", status=None).status == 0:
                return job
            check(time.monotonic() < deadline, f"{case} does not come to run")
            time.sleep(0.02)

    def signal(self, job, name):
        self.guest.run(f"kill -{name} $(cat {job.out}.pid)")

    @contextlib.contextmanager
    def spinning(self, case="spin"):
        """An endless kernel; it is ended at the end, which must succeed."""
        job = self.background(case)
        yield job
        self.signal(job, "USR1")
        equal(job.wait(20), end="GPUSIM_OK", reopened="works")

    def daemon(self):
        pids = self.guest.daemon_pids()
        check(len(pids) == 1, f"daemons: {pids}")
        return pids[0]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gone(pid):
    """Whether a process ended (a zombie counts as there: somebody must reap it)."""
    return not os.path.exists(f"/proc/{pid}")

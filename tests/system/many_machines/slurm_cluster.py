"""A cluster of Slurm on this machine: munged, slurmctld and a slurmd per node, in a folder of its
own, gone at the end. For any user; no systemd."""
import contextlib
import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PLACES = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "srun")


def find(name):
    return shutil.which(name, path=PLACES)


def missing():
    return [name for name in NEEDED if not find(name)]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


CONFIGURATION = """
ClusterName=gpusim-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
"""


class Cluster:
    """`environment` is that of commands. Two nodes with two processors each."""

    def __init__(self, nodes=("n1", "n2")):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusim-slurm-"))
        self.folder.chmod(0o755)  # munged's socket is for all
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))
        self.processes = []
        try:
            self.start(nodes)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, nodes):
        folder, host = self.folder, socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(folder=folder, host=host, port=free_port(),
                                    user=pwd.getpwuid(os.getuid()).pw_name)
        for node in nodes:
            text += (f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} "
                     "CPUs=2 State=UNKNOWN\n")
            (folder / f"spool-{node}").mkdir()
        text += "PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP\n"
        (folder / "slurm.conf").write_text(text)
        # Nothing here uses control groups, but a plug-in has to be there; this one asks nothing of
        # the machine.
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.run("munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
                 f"--key-file={key}", f"--pid-file={folder}/munged.pid",
                 f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
        self.wait_until((folder / "munge.socket").exists)
        self.run("slurmctld", "-D", "-f", folder / "slurm.conf")
        for node in nodes:
            self.run("slurmd", "-D", "-N", node, "-f", folder / "slurm.conf")
        self.wait_until(lambda: self.ask("sinfo", "-N", "-h", "-o", "%T").split() ==
                        ["idle"] * len(nodes))

    def run(self, name, *words):
        with open(self.folder / f"{name}-{len(self.processes)}.out", "wb") as out:
            self.processes.append(subprocess.Popen(
                [find(name), *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, preexec_fn=die_with_parent))

    def ask(self, name, *words):
        return subprocess.run([find(name), *map(str, words)], env=self.environment, text=True,
                              capture_output=True, timeout=60, check=False).stdout

    def wait_until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or any(p.poll() is not None for p in self.processes):
                raise RuntimeError("the cluster does not come up:\n" + self.logs())
            time.sleep(0.05)

    def logs(self):
        return "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
                       for pattern in ("*.log", "*.out")
                       for path in sorted(self.folder.glob(pattern)))

    def jobs(self):
        return self.ask("squeue", "-h", "-o", "%A_%K %T").splitlines()

    def close(self):
        if len(self.processes) > 2:
            self.ask("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name)
            deadline = time.monotonic() + 10
            while self.jobs() and time.monotonic() < deadline:
                time.sleep(0.1)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # What daemons started is not their child any more; it names our configuration.
        for entry in os.listdir("/proc"):
            if entry.isdigit() and entry != str(os.getpid()):
                with contextlib.suppress(OSError):
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        if f"SLURM_CONF={self.folder}/".encode() in file.read():
                            os.kill(int(entry), signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

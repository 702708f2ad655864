"""The virtual machine's own ends, and daemons that do not start; each boots what it needs."""

from harness import check, equal, gone, until

SCRIPT = """\
#!/bin/sh
# What QEMU starts as the daemon: what the file beside it says.
shift
case "$(cat {folder}/mode)" in
  works) exec {gpusim} daemon "$@" ;;
  ends) exit 3 ;;
  silent) exec sleep 1000 ;;
  babbles) head -c 256 /dev/zero >&3; exec sleep 1000 ;;
esac
"""


def wait_for_end(guest, what, seconds=10):
    until(lambda: guest.qemu.poll() is not None, what, seconds)


def quit_during_kernel(runner):
    with runner.boot() as guest:
        runner.guest = guest
        runner.background("spin")
        pid = runner.daemon()
        guest.qmp("quit")
        wait_for_end(guest, "QEMU quits")
        until(lambda: gone(pid), "the daemon ends with QEMU")
        check(guest.qemu.returncode == 0, f"QEMU's status is {guest.qemu.returncode}")
    runner.guest = None


def qemu_killed_during_kernel(runner):
    with runner.boot() as guest:
        runner.guest = guest
        runner.background("spin")
        pid = runner.daemon()
        guest.qemu.kill()
        wait_for_end(guest, "QEMU dies")
        until(lambda: gone(pid), "the daemon ends with QEMU")
    runner.guest = None


def guest_restarted_during_kernel(runner):
    with runner.boot(reboots=True) as guest:
        runner.guest = guest
        runner.background("spin")
        pid = runner.daemon()
        guest.reset()
        until(lambda: gone(pid), "the daemon of before is gone")
        equal(guest.run("guest_cases works", timeout=20), kernel="works")
    runner.guest = None


def daemons_that_do_not_start(runner):
    folder = runner.setting.logs / "daemon_script"
    folder.mkdir(parents=True, exist_ok=True)
    script, mode = folder / "daemon", folder / "mode"
    script.write_text(SCRIPT.format(folder=folder, gpusim=runner.setting.gpusim))
    script.chmod(0o755)
    mode.write_text("ends")
    with runner.boot(daemon_command=[script, "serve"]) as guest:
        runner.guest = guest
        for what, why in (("ends", "ended with status 3"), ("silent", "does not answer"),
                          ("babbles", "makes no sense")):
            mode.write_text(what)
            result = guest.run("guest_cases open", timeout=60)
            values = result.values()
            check(values["open"] in ("GPUSIM_NO_DEVICE", "GPUSIM_TIMED_OUT") and
                  why in values.get("open_text", ""), f"a daemon that {what}:\n{result.output}")
            check("no context: " in guest.dmesg() and why in guest.dmesg(), guest.dmesg())
            until(lambda: not guest.daemon_pids(), f"a daemon that {what} is reaped", 15)
        mode.write_text("works")
        equal(guest.run("guest_cases works"), kernel="works")
    runner.guest = None


def daemon_killed_during_posted_kernel(runner):
    """The driver knows nothing of such a kernel. Every launch is posted to a daemon that looks for
    them without a pause."""
    with runner.boot(daemon_options=("--spin-us", "1e6")) as guest:
        runner.guest = guest
        job = runner.background("posted_spin")
        guest.kill_daemon()
        equal(job.wait(20), posted="1", end="GPUSIM_DEVICE_LOST")
        equal(runner.case("works", timeout=20), kernel="works")
    runner.guest = None


def no_device(runner):
    """Machines without a daemon, and with memory that cannot be shared: the guest hears why."""
    for changes, why in ((dict(transport="none"), "neither the patch nor a virtio-serial port"),
                         (dict(shared=False), "memory-backend-memfd")):
        with runner.boot(**changes) as guest:
            result = guest.run("guest_cases open", timeout=30)
            values = result.values()
            check(values["open"] == "GPUSIM_NO_DEVICE" and why in values.get("open_text", ""),
                  f"{changes}:\n{result.output}")
            check(why in guest.dmesg() and "Kernel panic" not in guest.dmesg(), guest.dmesg())


ALL = [quit_during_kernel, qemu_killed_during_kernel, guest_restarted_during_kernel,
       daemons_that_do_not_start, daemon_killed_during_posted_kernel, no_device]

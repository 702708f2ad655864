"""Programs that work: end to end, several at once, what is copied."""
from harness import check, equal

CORES = (64, 2048)


def example_programs(runner):
    """Each computes on the device and on the guest's CPU and compares."""
    for program, size in (("matmul", 96), ("sobel", 0), ("fft", 4096), ("nbody", 512)):
        for cores in CORES:
            arguments = f"--cores {cores}" + (f" --size {size}" if size else "")
            result = runner.guest.run(f"offload_{program} {arguments}", timeout=60)
            values = equal(result, equal="yes", cores=str(cores), setting="guest")
            check(int(values["guest_instructions"]) > 0, result.output)


def library_tests(runner):
    result = runner.guest.run("offload_test", timeout=90, status=None)
    failed = [line for line in result.output.splitlines() if line.startswith("FAILED")]
    check(result.status == 0 and not failed and " 0 failed" in result.output,
          "\n".join(failed) or result.output)


def several_processes(runner):
    """Eight, four of them under another user; each finds only its own numbers."""
    jobs = [runner.guest.start(f"guest_cases many {5 + i}") for i in range(8)]
    for i, job in enumerate(jobs):
        result = job.wait(60)
        check(result.status == 0, f"process {i}: {result.output}")
        equal(result, kernels=str(5 + i))
    # One that never ends must not keep the others waiting.
    with runner.spinning():
        equal(runner.case("many 5", timeout=20), kernels="5")


def openmp_program(runner):
    own = runner.guest.run("OMP_NUM_THREADS=2 openmp_heat 64 10", timeout=60).output
    for cores in CORES:
        ours = runner.guest.run(f"gpusim-offload --cores {cores} /bin/openmp_heat 64 10",
                                timeout=60).output
        check(ours == own, f"on {cores} cores:\n{ours}\nbut on the guest's CPU:\n{own}")


def nothing_is_copied(runner):
    result = runner.case("region 10 2048", timeout=60)
    values = equal(result, equal="yes", copied_bytes="0")
    check(int(values["mapped_bytes"]) >= 2048 * 8, result.output)


def posted_launches(runner):
    """Without a system call, unless time is to stand still meanwhile."""
    values = runner.case("posted").values()
    check(0 < int(values["posted"]) <= int(values["kernels"]), str(values))
    equal(runner.case("-o wait=frozen posted 200"), kernels="200", posted="0")


def counted_launches(runner):
    """None is lost, and none happens twice."""
    launches = 3000 if not runner.setting.long else 100000
    values = runner.case(f"counted {launches}", timeout=600).values()
    check(int(values["launches"]) >= launches, str(values))
    check(values["counted"] == values["kernels"] == values["launches"], str(values))
    check(0 < int(values["posted"]) < int(values["launches"]), str(values))


def shared_atomics(runner):
    """A processor's atomic accesses are atomic for simulated cores, too; also if it is the only
    one."""
    values = equal(runner.case("atomics", timeout=60), lost="0")
    check(int(values["own"]) > 1000, str(values))


def forked_processes(runner):
    values = equal(runner.case("forked", timeout=60), counted="201")
    check("child" not in values, str(values))


def frozen_clock(runner):
    """With wait=frozen the guest's clocks stand still while a kernel runs."""
    equal(runner.case("-o wait=frozen works"), kernel="works")
    frozen = runner.case("-o wait=frozen limit 1.5", timeout=20)
    sleeping = runner.case("-o wait=sleep limit 1.5", timeout=20)
    for result, least, most in ((frozen, 0, 0.7), (sleeping, 1.2, 15)):
        seconds = float(equal(result, end="GPUSIM_KERNEL_FAILED", next="works")["seconds"])
        check(least <= seconds <= most, f"{seconds} s passed in the guest:\n{result.output}")

"""Which tests share a boot."""
import cases_faults as faults
import cases_machine as machine
import cases_work as work
from harness import Suite

EVERYDAY = [work.example_programs, work.library_tests, work.several_processes, work.openmp_program,
            work.nothing_is_copied]

SUITES = {
    "patched": Suite(EVERYDAY + [work.posted_launches, work.counted_launches, work.shared_atomics,
                                 work.forked_processes, work.frozen_clock]),
    "patched_smp4": Suite([work.example_programs, work.several_processes, work.openmp_program],
                          smp=4),
    "stock": Suite(EVERYDAY, stock=True),
    "stock_smp4": Suite([work.several_processes, work.nothing_is_copied], stock=True, smp=4),
    "faults": Suite(faults.COMMON + faults.PATCHED, smp=2),
    "faults_stock": Suite(faults.COMMON + faults.STOCK, stock=True, smp=2),
    "machine": Suite(machine.ALL, own_boots=True),
}

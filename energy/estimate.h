/* SPDX-License-Identifier: MIT */
/*
 * Joules of instruction counts, in plain C: for programs that cannot read target files. The table
 * is generated from energy/targets when gpusim is built.
 */
#ifndef GPUSIM_ENERGY_ESTIMATE_H
#define GPUSIM_ENERGY_ESTIMATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sum of counts times energies, above idle. `classes`: 15 counts in the order of
 * device_sim/uir/insn_class.h; memory accesses are those of a run without a cache model. Returns 0,
 * or -1 for an unknown target.
 */
int gpusim_energy_joules(const char* target, const uint64_t* classes, double* joules);
/* "fermi, et-soc1, ...": one name per target and variant. */
const char* gpusim_energy_target_names(void);

#ifdef __cplusplus
}
#endif

#endif

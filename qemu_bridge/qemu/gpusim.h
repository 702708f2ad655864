/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gpusim's semihosting operations (enum gpusim_trap) as the rest of QEMU sees them. */
#ifndef SEMIHOSTING_GPUSIM_H
#define SEMIHOSTING_GPUSIM_H

/*
 * -semihosting-config gpusim=COMMAND,native=on|off: what starts the daemon, split as a shell
 * would; NULL: no daemon. One word alone is gpusim's program, to be called as "COMMAND daemon".
 * @native: whether the guest may use semihosting's other operations, which reach the host's
 * files. False: COMMAND cannot be split; it was reported.
 */
bool gpusim_configure(const char *command, bool native);

bool gpusim_configured(void);

/*
 * With the big lock held, by the vCPU's own thread. True: the operation is done or refused, and
 * *result goes to the guest.
 */
bool gpusim_semihosting(CPUState *cs, uint32_t op, uint64_t argument, int64_t *result);

#endif

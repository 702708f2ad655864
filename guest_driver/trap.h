/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The semihosting trap: all that depends on the guest's ISA. README.md says how others are made.
 */
#ifndef GPUSIM_TRAP_H
#define GPUSIM_TRAP_H

#include <linux/errno.h>
#include <linux/types.h>

#if defined(CONFIG_ARM64)

#define GPUSIM_HAVE_TRAP 1

/* Memory is read and written meanwhile. Returns QEMU's result: >= 0 or a negative errno. */
static inline long gpusim_trap(unsigned long operation, unsigned long argument)
{
	register unsigned long x0 asm("x0") = operation;
	register unsigned long x1 asm("x1") = argument;

	asm volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
	return (long)x0;
}

#else

#define GPUSIM_HAVE_TRAP 0

static inline long gpusim_trap(unsigned long operation, unsigned long argument)
{
	return -ENODEV;
}

#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What changed its name between Linux 6.1 and today. */
#ifndef GPUSIM_COMPAT_H
#define GPUSIM_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

static inline void gpusim_vma_fix_size(struct vm_area_struct *vma)
{
#if KERNEL_VERSION(6, 3, 0) <= LINUX_VERSION_CODE
	vm_flags_set(vma, VM_DONTEXPAND);
#else
	vma->vm_flags |= VM_DONTEXPAND;
#endif
}

#endif

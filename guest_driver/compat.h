/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What changed its name between Linux 6.1 and today. */
#ifndef GPUSIM_COMPAT_H
#define GPUSIM_COMPAT_H

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

static inline void gpusim_vma_fix_size(struct vm_area_struct *vma)
{
#if KERNEL_VERSION(6, 3, 0) <= LINUX_VERSION_CODE
	vm_flags_set(vma, VM_DONTEXPAND);
#else
	vma->vm_flags |= VM_DONTEXPAND;
#endif
}

static inline int gpusim_find_vqs(struct virtio_device *device, unsigned int count,
				  struct virtqueue *queues[], vq_callback_t *callbacks[],
				  const char *const names[])
{
#if KERNEL_VERSION(6, 11, 0) <= LINUX_VERSION_CODE
	struct virtqueue_info *infos = kcalloc(count, sizeof(*infos), GFP_KERNEL);
	unsigned int i;
	int error;

	if (!infos)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		infos[i].name = names[i];
		infos[i].callback = callbacks[i];
	}
	error = virtio_find_vqs(device, count, queues, infos, NULL);
	kfree(infos);
	return error;
#else
	return virtio_find_vqs(device, count, queues, callbacks, names, NULL);
#endif
}

#endif

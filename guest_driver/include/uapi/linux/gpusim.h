/* SPDX-License-Identifier: (GPL-2.0-or-later WITH Linux-syscall-note) OR MIT */
/*
 * /dev/gpusim: the simulated many-core as a device.
 *
 * Each open file is a context of its own: an address space, programs, kernels. Nothing of it
 * reaches another file. What a context's cores see at a device address is memory that was given
 * to it here, by ALLOC (the driver's pages, also mapped into the process) or PIN (the process's
 * own).
 *
 * Requests and replies of SUBMIT are those of gpusim_wire.h; the driver does not look into them.
 */
#ifndef _UAPI_LINUX_GPUSIM_H
#define _UAPI_LINUX_GPUSIM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GPUSIM_DRIVER_VERSION 1

enum gpusim_transport {
	GPUSIM_TRANSPORT_SEMIHOSTING = 1, /* a patched QEMU */
	GPUSIM_TRANSPORT_VIRTIO = 2,      /* virtio-serial of any QEMU */
};

struct gpusim_ioc_info {
	__u32 driver_version; /* out, as all */
	__u32 wire_version;
	__u32 transport; /* enum gpusim_transport */
	__u32 generation; /* of the daemon that this file talks to; see -EIO below */
	__u64 pinned_bytes; /* of this file, by PIN */
	__u64 allocated_bytes; /* of this file, by ALLOC */
	__u64 reserved[4];
};

#define GPUSIM_ALLOC_READ_ONLY 1u /* for cores */

/*
 * Memory of the driver's. Map it with mmap(fd, offset = mmap_offset), as often as wanted; zero at
 * first. It stays until FREE and until nothing maps it.
 */
struct gpusim_ioc_alloc {
	__u64 size_bytes; /* in; whole pages */
	__u64 device_address; /* in; whole pages */
	__u64 mmap_offset; /* out */
	__u32 handle; /* out, > 0 */
	__u32 flags; /* in; GPUSIM_ALLOC_READ_ONLY */
};

#define GPUSIM_PIN_READ_ONLY 1u /* for cores */

/*
 * Memory of the process. Whole pages: the caller decides what else lies in the first and last
 * one.
 */
struct gpusim_ioc_pin {
	__u64 user_address; /* in */
	__u64 size_bytes; /* in */
	__u64 device_address; /* in */
	__u32 flags; /* in; GPUSIM_PIN_READ_ONLY */
	__u32 handle; /* out, > 0 */
	__u32 extents; /* out: pieces in physical memory */
	__u32 reserved;
};

/*
 * Hands an operation (gpusim_wire.h: LOAD, UNLOAD, SYMBOL, CHECK, LAUNCH, COUNTERS, RESET, DIRECT,
 * HELLO and CLASSES for the properties) to the daemon. Comes back when that is done or after a few
 * microseconds, whichever is first: `done` says which. Where the file's context cannot be opened
 * (-ENODEV and others), the reply's text, if there is a reply, says why.
 */
struct gpusim_ioc_submit {
	__u32 op; /* in; enum gpusim_op */
	__u32 done; /* out: 1 if status and the reply are valid; nothing is left to wait for */
	__s32 status; /* out: 0 or a negative errno */
	__u32 reserved;
	__u64 request; /* in: pointer to a union gpusim_request */
	__u64 reply; /* in: pointer to a struct gpusim_reply, or 0 */
	__u64 ticket; /* out: for WAIT and CANCEL; 0 if done */
};

#define GPUSIM_WAIT_FROZEN 1u /* the guest's clocks stand still while waiting */

/* Signals interrupt it: -ERESTARTSYS, the command goes on. -ETIMEDOUT: likewise. */
struct gpusim_ioc_wait {
	__u64 ticket; /* in; given back when done */
	__u64 timeout_ns; /* in; 0: look only; ~0: no limit */
	__u64 reply; /* in: pointer to a struct gpusim_reply, or 0 */
	__u32 flags; /* in; GPUSIM_WAIT_FROZEN */
	__s32 status; /* out: 0 or a negative errno: what became of the command */
};

/*
 * poll(2): POLLIN when a command whose ticket SUBMIT gave is done; POLLERR when one never will be,
 * because the daemon is gone. What the transport does not announce is noticed within a few
 * milliseconds.
 */

#define GPUSIM_IOC_INFO _IOR('G', 0x00, struct gpusim_ioc_info)
#define GPUSIM_IOC_ALLOC _IOWR('G', 0x01, struct gpusim_ioc_alloc)
#define GPUSIM_IOC_PIN _IOWR('G', 0x02, struct gpusim_ioc_pin)
#define GPUSIM_IOC_FREE _IOW('G', 0x03, __u32) /* pointer to a handle */
#define GPUSIM_IOC_SUBMIT _IOWR('G', 0x04, struct gpusim_ioc_submit)
#define GPUSIM_IOC_WAIT _IOWR('G', 0x05, struct gpusim_ioc_wait)
#define GPUSIM_IOC_CANCEL _IOW('G', 0x06, __u64) /* pointer to a ticket */
#define GPUSIM_IOC_PING _IO('G', 0x07) /* a trap that does nothing: what the way costs */

/*
 * Errors of all calls: -EIO: the daemon that this file talked to is gone, with all that was in
 * it; close the file and open another. -ENODEV: there is no daemon to be had. -EINTR,
 * -ERESTARTSYS: a signal came. -EDQUOT: the user who opened the file has as many contexts, as much
 * memory or as many commands as the module's parameters contexts_per_user, memory_per_user_mib and
 * commands_per_user allow; open(2) gives it, too. -EINVAL: a field out of range, or a reserved one that is not
 * zero.
 */

#endif

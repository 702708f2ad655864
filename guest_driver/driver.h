/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the driver's parts know of each other. */
#ifndef GPUSIM_DRIVER_H
#define GPUSIM_DRIVER_H

#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/linux/gpusim.h>

#include "gpusim_wire.h"

/*
 * A command block and what the driver keeps beside it. From a successful bell until it is done
 * or its daemon is dead it belongs to the daemon: nobody frees it.
 */
struct gpusim_call {
	struct gpusim_command wire __aligned(64);
	struct gpusim_file *file;
	refcount_t users;
	struct hlist_node ticket_link; /* gpusim_file.tickets */
	struct list_head orphan_link; /* gpusim_file.orphans */
};

/* How the driver reaches a daemon. All but alive() may sleep. */
struct gpusim_transport_ops {
	const char *name;
	u32 id; /* enum gpusim_transport */
	/* Before the device appears, and after it went. */
	int (*init)(void);
	void (*exit)(void);
	/* Starts a daemon if none runs. -ENODEV: there is none to be had. */
	int (*probe)(u32 *generation);
	/* Writes why probe() failed last, a sentence, or leaves `text` as it is. */
	void (*reason)(char *text, size_t size);
	/*
	 * -EAGAIN: later; -EIO: that daemon is dead; after any error it does not know the
	 * command.
	 */
	int (*bell)(u32 generation, phys_addr_t command);
	/* 0, or -EIO: that daemon is dead and touches no guest memory any more. */
	int (*alive)(u32 generation);
	/* Waits with the guest's clocks stopped: 0, -ETIMEDOUT, -EIO, -ERESTARTSYS. Or NULL. */
	int (*wait_frozen)(struct gpusim_call *call, u64 timeout_ns);
	int (*ping)(void);
};

extern const struct gpusim_transport_ops gpusim_semihosting;
extern const struct gpusim_transport_ops gpusim_virtio;

bool gpusim_semihosting_found(void);

/*
 * The one in use. Replies that are announced wake gpusim_wait_queue; others must be looked for.
 */
extern const struct gpusim_transport_ops *gpusim_transport;
extern wait_queue_head_t gpusim_wait_queue;

/* For sysfs; 0 when nobody uses the device. */
struct gpusim_totals {
	atomic_long_t files; /* open, or closed and not yet forgotten by the daemon */
	atomic_long_t calls;
	atomic_long_t pinned_pages;
	atomic_long_t allocated_pages;
};

extern struct gpusim_totals gpusim_totals;

struct gpusim_user;

struct gpusim_file {
	struct gpusim_user *user; /* whose limits hold; NULL: none do */

	/* Memory operations, and whatever opens or empties the context. Never taken by mmap. */
	struct mutex mutex;

	/* The context in the daemon. Written under the mutex; is_open last. */
	u32 generation; /* 0: no daemon was asked yet */
	u32 context;
	bool is_open;
	bool is_dead; /* the daemon is; never becomes false again */
	u64 look_alive_ns; /* when to ask next whether it lives */
	struct gpusim_call *opening; /* in flight, or NULL */
	struct gpusim_call *closing; /* made beforehand, so that closing needs no memory */
	bool closing_told;
	char refusal[sizeof_field(struct gpusim_reason, text)]; /* why it could not be opened */

	atomic64_t last_ticket;
	struct gpusim_call *spare; /* a call that is free again, or NULL */

	spinlock_t calls_lock; /* what follows */
	DECLARE_HASHTABLE(tickets, 5); /* calls that SUBMIT came back from before they were done */
	unsigned int ticket_count;
	struct list_head orphans; /* calls in flight that nobody waits for any more */

	struct xarray buffers; /* handle -> gpusim_buffer */
	u64 next_mmap_offset;
	atomic64_t pinned_bytes;
	atomic64_t allocated_bytes;

	struct delayed_work end;
};

#define GPUSIM_FOREVER (~0ull)

static inline u32 gpusim_to_wire32(u32 value)
{
	return (__force u32)cpu_to_le32(value);
}

static inline u64 gpusim_to_wire64(u64 value)
{
	return (__force u64)cpu_to_le64(value);
}

static inline u64 gpusim_from_wire64(u64 value)
{
	return le64_to_cpu((__force __le64)value);
}

/* The reply's status, or GPUSIM_PENDING. After another value the reply may be read. */
static inline s32 gpusim_call_status(const struct gpusim_call *call)
{
	/* The daemon writes it last. */
	return le32_to_cpu((__force __le32)smp_load_acquire(&call->wire.status));
}

static inline bool gpusim_call_is_done(const struct gpusim_call *call)
{
	return gpusim_call_status(call) != GPUSIM_PENDING;
}

/* call.c */
int gpusim_calls_init(void);
void gpusim_calls_exit(void);
struct gpusim_call *gpusim_call_new(struct gpusim_file *file, u16 op);
void gpusim_call_put(struct gpusim_call *call);
void gpusim_call_free(struct gpusim_call *call);
u64 gpusim_call_ticket(const struct gpusim_call *call);
/*
 * Gives it to the daemon. -EIO marks the file dead. Where the daemon takes no more, signals that
 * would end a sleep in `state` end it: -ERESTARTSYS, and the daemon knows nothing of it.
 */
int gpusim_call_ring(struct gpusim_file *file, struct gpusim_call *call, unsigned int state);
/* Asks from time to time whether the daemon lives, and marks the file dead if not. */
bool gpusim_file_is_lost(struct gpusim_file *file);
/* Looks for the reply without sleeping, for some microseconds. */
bool gpusim_call_spin(const struct gpusim_call *call);
/*
 * Sleeps in `state` until the reply is there. -ETIMEDOUT, -ERESTARTSYS: the command goes on;
 * -EIO: the daemon is dead.
 */
int gpusim_call_await(struct gpusim_file *file, const struct gpusim_call *call, unsigned int state,
		      u64 timeout_ns);
/*
 * An operation of the driver's own, from bell to reply, which only a fatal signal interrupts.
 * Gives up the caller's reference to the call in any case; 0 or a negative errno, the daemon's
 * or the driver's.
 */
int gpusim_call_sync(struct gpusim_file *file, struct gpusim_call *call);

/* context.c */
int gpusim_contexts_init(void);
void gpusim_contexts_exit(void);
struct gpusim_file *gpusim_file_new(void);
/* The file is closed: ends its context and, when the daemon is done with it, frees everything. */
void gpusim_file_end(struct gpusim_file *file);
/* Opens the context in the daemon if that has not happened yet. */
int gpusim_file_connect(struct gpusim_file *file);
int gpusim_file_connect_locked(struct gpusim_file *file);
long gpusim_submit(struct gpusim_file *file, struct gpusim_ioc_submit *submit);
long gpusim_wait(struct gpusim_file *file, struct gpusim_ioc_wait *wait);
long gpusim_cancel(struct gpusim_file *file, u64 ticket);
__poll_t gpusim_poll(struct gpusim_file *file, struct file *opened, poll_table *table);

/* limits.c; -EDQUOT: it would be more than the user may have */
int gpusim_user_open(struct gpusim_user **user); /* counts a file; NULL: has no limits */
void gpusim_user_close(struct gpusim_user *user);
int gpusim_charge_allocated(struct gpusim_user *user, unsigned long pages); /* -ENOMEM: of all */
void gpusim_uncharge_allocated(struct gpusim_user *user, unsigned long pages);
int gpusim_charge_pinned(struct gpusim_user *user, unsigned long pages);
void gpusim_uncharge_pinned(struct gpusim_user *user, unsigned long pages);
int gpusim_charge_command(struct gpusim_user *user);
void gpusim_uncharge_command(struct gpusim_user *user);

/* memory.c */
long gpusim_alloc(struct gpusim_file *file, struct gpusim_ioc_alloc *alloc);
long gpusim_pin(struct gpusim_file *file, struct gpusim_ioc_pin *pin);
long gpusim_free(struct gpusim_file *file, u32 handle);
int gpusim_mmap(struct gpusim_file *file, struct vm_area_struct *vma);
/* All buffers, which the daemon has forgotten. */
void gpusim_drop_buffers(struct gpusim_file *file);

#endif

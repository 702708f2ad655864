// SPDX-License-Identifier: GPL-2.0-or-later
/* Commands on their way to the daemon and back. */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "driver.h"

static uint spin_us = 50;
module_param(spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "how long to look for a reply before sleeping, microseconds (50)");

static uint poll_max_us = 1000;
module_param(poll_max_us, uint, 0644);
MODULE_PARM_DESC(poll_max_us, "longest sleep between looks for a reply, microseconds (1000)");

#define POLL_MIN_NS (20 * NSEC_PER_USEC)
#define ALIVE_PERIOD_NS (50 * NSEC_PER_MSEC)

static struct kmem_cache *gpusim_call_cache;

/* Request and reply, which are copied from and to the process, follow each other. */
int gpusim_calls_init(void)
{
	const size_t offset = offsetof(struct gpusim_call, wire.request);
	const size_t size = sizeof(union gpusim_request) + sizeof(struct gpusim_reply);

	gpusim_call_cache = kmem_cache_create_usercopy("gpusim_call", sizeof(struct gpusim_call),
						       __alignof__(struct gpusim_call),
						       SLAB_ACCOUNT, offset, size, NULL);
	return gpusim_call_cache ? 0 : -ENOMEM;
}

void gpusim_calls_exit(void)
{
	kmem_cache_destroy(gpusim_call_cache);
}

struct gpusim_call *gpusim_call_new(struct gpusim_file *file, u16 op)
{
	struct gpusim_call *call = xchg(&file->spare, NULL);

	if (call) {
		memset(call, 0, sizeof(*call));
	} else {
		call = kmem_cache_zalloc(gpusim_call_cache, GFP_KERNEL);
		if (!call)
			return NULL;
		atomic_long_inc(&gpusim_totals.calls);
	}
	call->file = file;
	call->wire.magic = gpusim_to_wire32(GPUSIM_COMMAND_MAGIC);
	call->wire.version = (__force u16)cpu_to_le16(GPUSIM_WIRE_VERSION);
	call->wire.op = (__force u16)cpu_to_le16(op);
	call->wire.context = gpusim_to_wire32(file->context);
	call->wire.generation = gpusim_to_wire32(file->generation);
	call->wire.ticket = gpusim_to_wire64(atomic64_inc_return(&file->last_ticket));
	call->wire.status = (__force s32)cpu_to_le32(GPUSIM_PENDING);
	refcount_set(&call->users, 1);
	INIT_HLIST_NODE(&call->ticket_link);
	INIT_LIST_HEAD(&call->orphan_link);
	return call;
}

void gpusim_call_free(struct gpusim_call *call)
{
	if (call) {
		kmem_cache_free(gpusim_call_cache, call);
		atomic_long_dec(&gpusim_totals.calls);
	}
}

void gpusim_call_put(struct gpusim_call *call)
{
	if (call && refcount_dec_and_test(&call->users) &&
	    cmpxchg(&call->file->spare, NULL, call))
		gpusim_call_free(call);
}

u64 gpusim_call_ticket(const struct gpusim_call *call)
{
	return gpusim_from_wire64(call->wire.ticket);
}

int gpusim_call_ring(struct gpusim_file *file, struct gpusim_call *call, unsigned int state)
{
	int error;

	for (;;) {
		if (READ_ONCE(file->is_dead))
			return -EIO;
		/* The daemon sees what was written before. */
		wmb();
		error = gpusim_transport->bell(file->generation, virt_to_phys(&call->wire));
		if (error == -EIO)
			WRITE_ONCE(file->is_dead, true);
		if (error != -EAGAIN)
			return error;
		if (signal_pending_state(state, current))
			return -ERESTARTSYS;
		usleep_range(20, 100);
	}
}

bool gpusim_call_spin(const struct gpusim_call *call)
{
	const u64 end_ns = ktime_get_ns() + (u64)READ_ONCE(spin_us) * NSEC_PER_USEC;

	while (!gpusim_call_is_done(call)) {
		if (need_resched() || ktime_get_ns() >= end_ns)
			return gpusim_call_is_done(call);
		cpu_relax();
	}
	return true;
}

/* One sleep of at most `for_ns`. */
static int gpusim_call_sleep(const struct gpusim_call *call, unsigned int state, u64 for_ns)
{
	ktime_t expires = ns_to_ktime(for_ns);
	DEFINE_WAIT(entry);
	int error = 0;

	prepare_to_wait(&gpusim_wait_queue, &entry, state);
	if (!gpusim_call_is_done(call)) {
		if (signal_pending_state(state, current))
			error = -ERESTARTSYS;
		else
			schedule_hrtimeout_range(&expires, for_ns / 8, HRTIMER_MODE_REL);
	}
	finish_wait(&gpusim_wait_queue, &entry);
	return error;
}

bool gpusim_file_is_lost(struct gpusim_file *file)
{
	const u64 now_ns = ktime_get_ns();

	if (READ_ONCE(file->is_dead))
		return true;
	if (now_ns < READ_ONCE(file->look_alive_ns))
		return false;
	WRITE_ONCE(file->look_alive_ns, now_ns + ALIVE_PERIOD_NS);
	if (!gpusim_transport->alive(file->generation))
		return false;
	WRITE_ONCE(file->is_dead, true);
	return true;
}

int gpusim_call_await(struct gpusim_file *file, const struct gpusim_call *call, unsigned int state,
		      u64 timeout_ns)
{
	const u64 start_ns = ktime_get_ns();

	for (;;) {
		/*
		 * A dead daemon's last words count, so `is_dead` comes first. The longer a
		 * command takes the less it matters when its end is noticed.
		 */
		const bool is_dead = READ_ONCE(file->is_dead);
		u64 waited_ns, sleep_ns, most_ns;
		int error;

		if (gpusim_call_is_done(call))
			return 0;
		if (is_dead)
			return -EIO;
		/* Before giving up: some wait again and again for a moment. */
		if (gpusim_file_is_lost(file))
			continue;
		waited_ns = ktime_get_ns() - start_ns;
		if (waited_ns >= timeout_ns)
			return -ETIMEDOUT;
		most_ns = max_t(u64, (u64)READ_ONCE(poll_max_us) * NSEC_PER_USEC, POLL_MIN_NS);
		sleep_ns = clamp_t(u64, waited_ns / 8, POLL_MIN_NS, most_ns);
		error = gpusim_call_sleep(call, state, min(sleep_ns, timeout_ns - waited_ns));
		if (error)
			return gpusim_call_is_done(call) ? 0 : error;
	}
}

int gpusim_call_sync(struct gpusim_file *file, struct gpusim_call *call)
{
	int error = gpusim_call_ring(file, call, TASK_KILLABLE);

	if (!error && !gpusim_call_spin(call)) {
		error = gpusim_call_await(file, call, TASK_KILLABLE, GPUSIM_FOREVER);
		if (error == -ERESTARTSYS) {
			/* The daemon has it still. */
			spin_lock(&file->calls_lock);
			list_add(&call->orphan_link, &file->orphans);
			spin_unlock(&file->calls_lock);
			return -EINTR;
		}
	}
	if (!error) {
		error = gpusim_call_status(call);
		/* A new daemon refuses what was meant for another generation. */
		if (error == -EIO && gpusim_transport->alive(file->generation))
			WRITE_ONCE(file->is_dead, true);
		if (error > 0) /* nonsense */
			error = -EPROTO;
	}
	gpusim_call_put(call);
	return error;
}

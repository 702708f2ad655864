// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Life of an open file and of its context in the daemon.
 *
 * The context is opened by the first operation that needs it. When the file is closed the daemon
 * may still be writing into its memory, so everything stays until the daemon has answered
 * CONTEXT_CLOSE or is known to be dead; if that takes long a work item waits for it, not the
 * closing process. The module stays loaded meanwhile.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "driver.h"

#define MOST_FILES 1024
#define MOST_TICKETS 4096
#define PROBES 3

/*
 * How long the closing process waits itself: one that ends, not to delay it; another, so that what
 * it had pinned does not count any more when close(2) comes back.
 */
#define EXIT_PATIENCE_NS (5 * NSEC_PER_MSEC)
#define CLOSE_PATIENCE_NS (1000 * NSEC_PER_MSEC)
#define END_DELAY_MS 10

static struct workqueue_struct *gpusim_end_queue;

static void gpusim_file_end_work(struct work_struct *work);

/* Replies wake nobody where the transport does not announce them: those who poll look again. */
static void gpusim_poll_again(struct work_struct *work)
{
	wake_up_all(&gpusim_wait_queue);
}

static DECLARE_DELAYED_WORK(gpusim_poll_work, gpusim_poll_again);

int gpusim_contexts_init(void)
{
	gpusim_end_queue = alloc_workqueue("gpusim", WQ_UNBOUND, 0);
	return gpusim_end_queue ? 0 : -ENOMEM;
}

void gpusim_contexts_exit(void)
{
	cancel_delayed_work_sync(&gpusim_poll_work);
	destroy_workqueue(gpusim_end_queue);
}

struct gpusim_file *gpusim_file_new(void)
{
	struct gpusim_user *user;
	struct gpusim_file *file;
	int error;

	error = gpusim_user_open(&user);
	if (error)
		return ERR_PTR(error);
	error = -ENFILE;
	if (atomic_long_inc_return(&gpusim_totals.files) > MOST_FILES)
		goto uncount;
	error = -ENOMEM;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		goto uncount;
	file->user = user;
	mutex_init(&file->mutex);
	xa_init_flags(&file->buffers, XA_FLAGS_ALLOC1);
	spin_lock_init(&file->calls_lock);
	hash_init(file->tickets);
	INIT_LIST_HEAD(&file->orphans);
	INIT_DELAYED_WORK(&file->end, gpusim_file_end_work);
	__module_get(THIS_MODULE);
	return file;

uncount:
	atomic_long_dec(&gpusim_totals.files);
	gpusim_user_close(user);
	return ERR_PTR(error);
}

/* ---- Opening ---- */

/* `text`: what the other side says about it. */
static void gpusim_file_refuse(struct gpusim_file *file, int error, const char *text)
{
	strscpy(file->refusal, text, sizeof(file->refusal));
	pr_err_ratelimited("gpusim: no context: %s (error %d)\n",
			   file->refusal[0] ? file->refusal : "nobody says why", error);
}

/* Starts the daemon if need be. */
static int gpusim_file_probe(struct gpusim_file *file, u32 *generation)
{
	int error = gpusim_transport->probe(generation);

	if (error && error != -ERESTARTSYS) {
		char text[sizeof(file->refusal)] = "";

		gpusim_transport->reason(text, sizeof(text));
		gpusim_file_refuse(file, error, text);
	}
	return error;
}

static int gpusim_file_start_opening(struct gpusim_file *file)
{
	int error = 0;
	int probe;

	if (!file->closing) {
		file->closing = gpusim_call_new(file, GPUSIM_OP_CONTEXT_CLOSE);
		if (!file->closing)
			return -ENOMEM;
	}
	/* The daemon may die between the two; the next one may do. */
	for (probe = 0; probe < PROBES; probe++) {
		struct gpusim_call *call;
		u32 generation = 0;

		error = gpusim_file_probe(file, &generation);
		if (error)
			return error;
		file->generation = generation;
		call = gpusim_call_new(file, GPUSIM_OP_CONTEXT_OPEN);
		if (!call)
			return -ENOMEM;
		error = gpusim_call_ring(file, call, TASK_KILLABLE);
		if (!error) {
			file->opening = call;
			return 0;
		}
		gpusim_call_put(call);
		if (error != -EIO)
			return error;
		WRITE_ONCE(file->is_dead, false); /* it had nothing of ours */
	}
	return error;
}

/* `opening` is done. */
static int gpusim_file_finish_opening(struct gpusim_file *file)
{
	struct gpusim_call *call = file->opening;
	int error = gpusim_call_status(call);

	file->opening = NULL;
	if (!error) {
		file->context = gpusim_from_wire64(call->wire.reply.word[0]);
		file->closing->wire.context = gpusim_to_wire32(file->context);
		file->closing->wire.generation = gpusim_to_wire32(file->generation);
		/* Whoever sees it sees context and generation. */
		smp_store_release(&file->is_open, true);
	} else {
		gpusim_file_refuse(file, error, call->wire.reply.text);
	}
	gpusim_call_put(call);
	return error;
}

int gpusim_file_connect_locked(struct gpusim_file *file)
{
	int error;

	if (READ_ONCE(file->is_dead))
		return -EIO;
	if (file->is_open)
		return 0;
	if (!file->opening) {
		error = gpusim_file_start_opening(file);
		if (error)
			return error;
	}
	if (!gpusim_call_spin(file->opening)) {
		error = gpusim_call_await(file, file->opening, TASK_KILLABLE, GPUSIM_FOREVER);
		if (error == -ERESTARTSYS)
			return -EINTR; /* the next one goes on from here, or the file's end */
		if (error) {
			gpusim_call_put(file->opening);
			file->opening = NULL;
			return error;
		}
	}
	return gpusim_file_finish_opening(file);
}

int gpusim_file_connect(struct gpusim_file *file)
{
	int error;

	/* With it come context and generation. */
	if (smp_load_acquire(&file->is_open))
		return READ_ONCE(file->is_dead) ? -EIO : 0;
	if (mutex_lock_killable(&file->mutex))
		return -EINTR;
	error = gpusim_file_connect_locked(file);
	mutex_unlock(&file->mutex);
	return error;
}

/* ---- The end ---- */

static bool gpusim_file_calls_are_done(struct gpusim_file *file)
{
	struct gpusim_call *call;
	int bucket;

	hash_for_each(file->tickets, bucket, call, ticket_link)
		if (!gpusim_call_is_done(call))
			return false;
	list_for_each_entry(call, &file->orphans, orphan_link)
		if (!gpusim_call_is_done(call))
			return false;
	return true;
}

/* Does what can be done without waiting. True: the daemon has nothing of the file any more. */
static bool gpusim_file_is_forgotten(struct gpusim_file *file)
{
	int error;

	if (!file->opening && !file->is_open)
		return true;
	if (file->is_dead)
		return true;
	if (file->opening) {
		if (!gpusim_call_is_done(file->opening))
			return false;
		if (gpusim_file_finish_opening(file))
			return true;
	}
	if (!file->closing_told) {
		wmb(); /* the daemon sees the command */
		error = gpusim_transport->bell(file->generation,
					       virt_to_phys(&file->closing->wire));
		if (error)
			return error == -EIO;
		file->closing_told = true;
	}
	return gpusim_call_is_done(file->closing) && gpusim_file_calls_are_done(file);
}

static void gpusim_file_free(struct gpusim_file *file)
{
	struct gpusim_call *call, *next;
	struct hlist_node *next_node;
	int bucket;

	hash_for_each_safe(file->tickets, bucket, next_node, call, ticket_link) {
		gpusim_call_free(call);
		gpusim_uncharge_command(file->user);
	}
	list_for_each_entry_safe(call, next, &file->orphans, orphan_link)
		gpusim_call_free(call);
	gpusim_call_free(file->opening);
	gpusim_call_free(file->closing);
	gpusim_call_free(file->spare);
	gpusim_drop_buffers(file);
	xa_destroy(&file->buffers);
	gpusim_user_close(file->user);
	kfree(file);
	atomic_long_dec(&gpusim_totals.files);
	/* Unloading waits for the work queue, and so for this function's last instructions. */
	module_put(THIS_MODULE);
}

static void gpusim_file_end_work(struct work_struct *work)
{
	struct gpusim_file *file = container_of(to_delayed_work(work), struct gpusim_file, end);

	if (gpusim_file_is_forgotten(file) || gpusim_transport->alive(file->generation))
		gpusim_file_free(file);
	else
		queue_delayed_work(gpusim_end_queue, &file->end, msecs_to_jiffies(END_DELAY_MS));
}

void gpusim_file_end(struct gpusim_file *file)
{
	const bool is_exit = current->flags & PF_EXITING;
	const u64 end_ns = ktime_get_ns() + (is_exit ? EXIT_PATIENCE_NS : CLOSE_PATIENCE_NS);
	bool is_forgotten = gpusim_file_is_forgotten(file);

	if (!is_forgotten) {
		const struct gpusim_call *call = file->opening ?: file->closing;

		gpusim_call_spin(call);
		is_forgotten = gpusim_file_is_forgotten(file);
	}
	while (!is_forgotten && ktime_get_ns() < end_ns && (is_exit || !signal_pending(current))) {
		usleep_range(100, 300);
		is_forgotten = gpusim_file_is_forgotten(file);
	}
	if (is_forgotten)
		gpusim_file_free(file);
	else
		queue_delayed_work(gpusim_end_queue, &file->end, 1);
}

/* ---- Operations ---- */

/* Gives a finished command's reply to the process. */
static long gpusim_call_reply(struct gpusim_file *file, const struct gpusim_call *call, u64 reply,
			      s32 *status)
{
	*status = gpusim_call_status(call);
	/* A new daemon refuses what was meant for another generation. */
	if (*status == -EIO && gpusim_transport->alive(file->generation)) {
		WRITE_ONCE(file->is_dead, true);
		return -EIO;
	}
	if (reply && copy_to_user(u64_to_user_ptr(reply), &call->wire.reply,
				  sizeof(call->wire.reply)))
		return -EFAULT;
	return 0;
}

static void gpusim_remember_ticket(struct gpusim_file *file, struct gpusim_call *call)
{
	refcount_inc(&call->users); /* the table's */
	spin_lock(&file->calls_lock);
	hash_add(file->tickets, &call->ticket_link, gpusim_call_ticket(call));
	file->ticket_count++;
	spin_unlock(&file->calls_lock);
}

/* The ticket is worth nothing any more. Another thread may have had the same idea. */
static void gpusim_forget_ticket(struct gpusim_file *file, struct gpusim_call *call)
{
	bool was_known;

	spin_lock(&file->calls_lock);
	was_known = hash_hashed(&call->ticket_link);
	if (was_known) {
		hash_del(&call->ticket_link);
		file->ticket_count--;
	}
	spin_unlock(&file->calls_lock);
	if (was_known) {
		gpusim_call_put(call);
		gpusim_uncharge_command(file->user);
	}
}

static struct gpusim_call *gpusim_find_call(struct gpusim_file *file, u64 ticket)
{
	struct gpusim_call *call, *found = NULL;

	spin_lock(&file->calls_lock);
	hash_for_each_possible(file->tickets, call, ticket_link, ticket) {
		if (gpusim_call_ticket(call) == ticket) {
			refcount_inc(&call->users);
			found = call;
			break;
		}
	}
	spin_unlock(&file->calls_lock);
	return found;
}

/* Everything but the context's number goes, in the daemon and here. */
static long gpusim_reset(struct gpusim_file *file, struct gpusim_ioc_submit *submit)
{
	struct gpusim_call *call;
	long error;

	if (mutex_lock_killable(&file->mutex))
		return -EINTR;
	error = gpusim_file_connect_locked(file);
	if (error)
		goto unlock;
	call = gpusim_call_new(file, GPUSIM_OP_RESET);
	if (!call) {
		error = -ENOMEM;
		goto unlock;
	}
	refcount_inc(&call->users);
	error = gpusim_call_sync(file, call);
	if (!error)
		gpusim_drop_buffers(file);
	if (gpusim_call_is_done(call)) {
		submit->done = 1;
		error = gpusim_call_reply(file, call, submit->reply, &submit->status);
	}
	gpusim_call_put(call);
unlock:
	mutex_unlock(&file->mutex);
	return error;
}

/* Lets the process know why it has no context. */
static void gpusim_give_refusal(struct gpusim_file *file, u64 reply)
{
	struct gpusim_reply __user *user = u64_to_user_ptr(reply);
	char text[sizeof(file->refusal)];

	if (!reply || mutex_lock_killable(&file->mutex))
		return;
	memcpy(text, file->refusal, sizeof(text));
	mutex_unlock(&file->mutex);
	if (text[0] && copy_to_user(user->text, text, sizeof(text)))
		pr_debug("gpusim: the reply is not writable\n");
}

static bool gpusim_is_for_processes(u32 op)
{
	switch (op) {
	case GPUSIM_OP_HELLO:
	case GPUSIM_OP_LOAD:
	case GPUSIM_OP_UNLOAD:
	case GPUSIM_OP_SYMBOL:
	case GPUSIM_OP_CHECK:
	case GPUSIM_OP_LAUNCH:
	case GPUSIM_OP_RESET:
	case GPUSIM_OP_COUNTERS:
	case GPUSIM_OP_DIRECT:
	case GPUSIM_OP_CLASSES:
		return true;
	default:
		return false;
	}
}

long gpusim_submit(struct gpusim_file *file, struct gpusim_ioc_submit *submit)
{
	struct gpusim_call *call;
	long error;

	submit->done = 0;
	submit->status = 0;
	submit->ticket = 0;
	if (submit->reserved || !gpusim_is_for_processes(submit->op))
		return -EINVAL;
	if (submit->op == GPUSIM_OP_RESET)
		return gpusim_reset(file, submit);
	error = gpusim_file_connect(file);
	if (error) {
		gpusim_give_refusal(file, submit->reply);
		return error;
	}
	if (READ_ONCE(file->ticket_count) >= MOST_TICKETS)
		return -EBUSY;
	error = gpusim_charge_command(file->user);
	if (error)
		return error;
	call = gpusim_call_new(file, submit->op);
	if (!call) {
		gpusim_uncharge_command(file->user);
		return -ENOMEM;
	}
	if (copy_from_user(&call->wire.request, u64_to_user_ptr(submit->request),
			   sizeof(call->wire.request))) {
		error = -EFAULT;
		goto put;
	}
	if (submit->op == GPUSIM_OP_HELLO)
		call->wire.request.words.word[0] = gpusim_to_wire64(GPUSIM_WIRE_VERSION);
	error = gpusim_call_ring(file, call, TASK_INTERRUPTIBLE);
	if (error)
		goto put;
	if (gpusim_call_spin(call)) {
		submit->done = 1;
		error = gpusim_call_reply(file, call, submit->reply, &submit->status);
	} else {
		submit->ticket = gpusim_call_ticket(call);
		gpusim_remember_ticket(file, call); /* and what it was charged */
		gpusim_call_put(call);
		return 0;
	}
put:
	gpusim_call_put(call);
	gpusim_uncharge_command(file->user);
	return error;
}

long gpusim_wait(struct gpusim_file *file, struct gpusim_ioc_wait *wait)
{
	struct gpusim_call *call;
	long error;

	if (wait->flags & ~GPUSIM_WAIT_FROZEN)
		return -EINVAL;
	if (wait->flags & GPUSIM_WAIT_FROZEN && !gpusim_transport->wait_frozen)
		return -EOPNOTSUPP;
	call = gpusim_find_call(file, wait->ticket);
	if (!call)
		return -ENOENT;
	wait->status = 0;
	if (gpusim_call_is_done(call))
		error = 0;
	else if (READ_ONCE(file->is_dead))
		error = -EIO;
	else if (wait->flags & GPUSIM_WAIT_FROZEN && wait->timeout_ns)
		error = gpusim_transport->wait_frozen(call, wait->timeout_ns);
	else
		error = gpusim_call_await(file, call, TASK_INTERRUPTIBLE, wait->timeout_ns);
	if (error == -EIO)
		WRITE_ONCE(file->is_dead, true);
	if (gpusim_call_is_done(call))
		error = gpusim_call_reply(file, call, wait->reply, &wait->status);
	/* Else the command goes on, and the ticket stays good. */
	if (!error || error == -EIO)
		gpusim_forget_ticket(file, call);
	gpusim_call_put(call);
	return error;
}

long gpusim_cancel(struct gpusim_file *file, u64 ticket)
{
	struct gpusim_call *call;

	/* Of what was posted past the driver the daemon knows whether it still runs. */
	if (ticket & GPUSIM_DIRECT_TICKET) {
		if (!smp_load_acquire(&file->is_open))
			return -ENOENT;
	} else {
		struct gpusim_call *cancelled = gpusim_find_call(file, ticket);

		if (!cancelled)
			return -ENOENT;
		gpusim_call_put(cancelled);
	}
	call = gpusim_call_new(file, GPUSIM_OP_CANCEL);
	if (!call)
		return -ENOMEM;
	call->wire.request.words.word[0] = gpusim_to_wire64(ticket);
	return gpusim_call_sync(file, call);
}

__poll_t gpusim_poll(struct gpusim_file *file, struct file *opened, poll_table *table)
{
	bool is_pending = false;
	struct gpusim_call *call;
	__poll_t result = 0;
	int bucket;

	poll_wait(opened, &gpusim_wait_queue, table);
	spin_lock(&file->calls_lock);
	hash_for_each(file->tickets, bucket, call, ticket_link) {
		if (gpusim_call_is_done(call))
			result |= EPOLLIN | EPOLLRDNORM;
		else
			is_pending = true;
	}
	spin_unlock(&file->calls_lock);
	if (is_pending && gpusim_file_is_lost(file))
		result |= EPOLLERR;
	else if (is_pending && !result)
		queue_delayed_work(gpusim_end_queue, &gpusim_poll_work, 1);
	return result;
}

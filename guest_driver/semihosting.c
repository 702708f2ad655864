// SPDX-License-Identifier: GPL-2.0-or-later
/* The patched QEMU: traps. */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/of.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>

#include "driver.h"
#include "trap.h"

#define FROZEN_LOOK_NS (2 * NSEC_PER_MSEC)

/*
 * A QEMU without the patch ends at the first trap, so it has to say in its device tree that it
 * has it.
 */
bool gpusim_semihosting_found(void)
{
	struct device_node *node = of_find_compatible_node(NULL, NULL, "gpusim,semihosting");

	of_node_put(node);
	return GPUSIM_HAVE_TRAP && node;
}

static void gpusim_semihosting_exit(void)
{
}

static int gpusim_semihosting_init(void)
{
	return GPUSIM_HAVE_TRAP ? 0 : -ENODEV;
}

static int gpusim_semihosting_probe(u32 *generation)
{
	long result;

	/* -EINTR: something else wants QEMU's attention. */
	while ((result = gpusim_trap(GPUSIM_TRAP_PROBE, 0)) == -EINTR) {
		if (signal_pending(current))
			return -ERESTARTSYS;
		cond_resched();
	}
	if (result < 0)
		return result == -EIO ? -ENODEV : result;
	if (result == 0 || result > U32_MAX)
		return -EPROTO;
	*generation = result;
	return 0;
}

static void gpusim_semihosting_reason(char *text, size_t size)
{
	/* Not on the stack, which need not be contiguous. */
	struct gpusim_reason *reason = kzalloc(sizeof(*reason), GFP_KERNEL);

	/* An older QEMU does not know the trap. */
	if (reason && !gpusim_trap(GPUSIM_TRAP_REASON, virt_to_phys(reason))) {
		reason->text[sizeof(reason->text) - 1] = 0;
		strscpy(text, reason->text, size);
	}
	kfree(reason);
}

static int gpusim_semihosting_bell(u32 generation, phys_addr_t command)
{
	return gpusim_trap(GPUSIM_TRAP_BELL, command);
}

static int gpusim_semihosting_alive(u32 generation)
{
	return gpusim_trap(GPUSIM_TRAP_ALIVE, 0) == generation ? 0 : -EIO;
}

/*
 * Stopped clocks preempt nobody. So before each trap the clocks run as long as there is anybody
 * else to be run here. Another processor may queue a task here without an interrupt, and none
 * takes it away, so no trap lasts longer than FROZEN_LOOK_NS.
 */
static void gpusim_let_others_run(const struct gpusim_call *call)
{
	while (!single_task_running() && !signal_pending(current) && !gpusim_call_is_done(call))
		usleep_range(100, 300);
}

static int gpusim_semihosting_wait(struct gpusim_call *call, u64 timeout_ns)
{
	/* Not on the stack, which need not be contiguous. */
	struct gpusim_wait *wait = kzalloc(sizeof(*wait), GFP_KERNEL);
	const u64 start_ns = ktime_get_ns();
	u64 frozen_ns = 0; /* passed outside, while the clocks stood still */
	int error;

	if (!wait)
		return -ENOMEM;
	wait->command_gpa = gpusim_to_wire64(virt_to_phys(&call->wire));
	wait->flags = gpusim_to_wire32(GPUSIM_WAIT_FREEZE_TIME);
	for (;;) {
		u64 waited_ns, look_ns;

		gpusim_let_others_run(call);
		error = gpusim_call_is_done(call) ? 0 : -ERESTARTSYS;
		if (!error || signal_pending(current))
			break;
		waited_ns = ktime_get_ns() - start_ns + frozen_ns;
		error = -ETIMEDOUT;
		if (waited_ns >= timeout_ns)
			break;
		look_ns = min_t(u64, timeout_ns - waited_ns, FROZEN_LOOK_NS);
		wait->timeout_ns = gpusim_to_wire64(look_ns);
		/* Another process may have started the next daemon, which does not know it. */
		error = gpusim_semihosting_alive(call->file->generation);
		if (error)
			break;
		error = gpusim_trap(GPUSIM_TRAP_WAIT, virt_to_phys(wait));
		if (error == -ETIMEDOUT)
			frozen_ns += look_ns;
		else if (error != -EINTR)
			break;
	}
	kfree(wait);
	return error;
}

static int gpusim_semihosting_ping(void)
{
	return gpusim_trap(GPUSIM_TRAP_PING, 0);
}

const struct gpusim_transport_ops gpusim_semihosting = {
	.name = "semihosting",
	.id = GPUSIM_TRANSPORT_SEMIHOSTING,
	.init = gpusim_semihosting_init,
	.exit = gpusim_semihosting_exit,
	.probe = gpusim_semihosting_probe,
	.reason = gpusim_semihosting_reason,
	.bell = gpusim_semihosting_bell,
	.alive = gpusim_semihosting_alive,
	.wait_frozen = gpusim_semihosting_wait,
	.ping = gpusim_semihosting_ping,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What processes may have: all together, and each user, so that nobody is left without. A file
 * counts for the user who opened it. Whoever may exceed limits anyway (CAP_SYS_RESOURCE) is not
 * counted.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "driver.h"

static ulong memory_limit_mib;
module_param(memory_limit_mib, ulong, 0644);
MODULE_PARM_DESC(memory_limit_mib, "most that all processes may ALLOC together (0: 3/4 of memory)");

static ulong memory_per_user_mib;
module_param(memory_per_user_mib, ulong, 0644);
MODULE_PARM_DESC(memory_per_user_mib,
		 "most that one user may ALLOC and PIN (0: half of what all may ALLOC)");

static uint contexts_per_user = 16;
module_param(contexts_per_user, uint, 0644);
MODULE_PARM_DESC(contexts_per_user,
		 "open files of one user (16; 0: no limit); the daemon has 64 contexts");

static uint commands_per_user = 1024;
module_param(commands_per_user, uint, 0644);
MODULE_PARM_DESC(commands_per_user,
		 "commands of one user that wait, run or were not asked about (1024; 0: no limit)");

struct gpusim_user {
	struct list_head link; /* gpusim_users */
	kuid_t uid;
	unsigned int files; /* under gpusim_users_lock; without any it goes */
	atomic_long_t pages;
	atomic_long_t commands;
};

static DEFINE_MUTEX(gpusim_users_lock);
static LIST_HEAD(gpusim_users);

/* Of all: what ALLOC was asked for, fulfilled or not yet. */
static atomic_long_t gpusim_allocated_pages;

/* False, and nothing is counted: it would be more than `limit`. */
static bool gpusim_charge(atomic_long_t *used, unsigned long count, unsigned long limit)
{
	long old = atomic_long_read(used);

	do {
		if (old > limit || count > limit - old)
			return false;
	} while (!atomic_long_try_cmpxchg(used, &old, old + count));
	return true;
}

static unsigned long gpusim_pages_of_mib(unsigned long mib, unsigned long otherwise)
{
	return mib ? min(mib, ULONG_MAX >> 20) << (20 - PAGE_SHIFT) : otherwise;
}

static unsigned long gpusim_page_limit(void)
{
	return gpusim_pages_of_mib(READ_ONCE(memory_limit_mib), totalram_pages() / 4 * 3);
}

static int gpusim_refuse_user(const struct gpusim_user *user, const char *what)
{
	pr_notice_ratelimited("gpusim: user %u has as %s\n", from_kuid(&init_user_ns, user->uid),
			      what);
	return -EDQUOT;
}

static struct gpusim_user *gpusim_find_user(kuid_t uid)
{
	struct gpusim_user *user;

	list_for_each_entry(user, &gpusim_users, link)
		if (uid_eq(user->uid, uid))
			return user;
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return NULL;
	user->uid = uid;
	list_add(&user->link, &gpusim_users);
	return user;
}

int gpusim_user_open(struct gpusim_user **result)
{
	const unsigned int limit = READ_ONCE(contexts_per_user);
	struct gpusim_user *user;
	int error = 0;

	*result = NULL;
	if (capable(CAP_SYS_RESOURCE))
		return 0;
	mutex_lock(&gpusim_users_lock);
	user = gpusim_find_user(current_uid());
	if (!user)
		error = -ENOMEM;
	else if (limit && user->files >= limit)
		error = gpusim_refuse_user(user, "many contexts as contexts_per_user allows");
	else
		user->files++;
	mutex_unlock(&gpusim_users_lock);
	if (!error)
		*result = user;
	return error;
}

void gpusim_user_close(struct gpusim_user *user)
{
	if (!user)
		return;
	mutex_lock(&gpusim_users_lock);
	if (!--user->files) {
		list_del(&user->link);
		kfree(user);
	}
	mutex_unlock(&gpusim_users_lock);
}

int gpusim_charge_pinned(struct gpusim_user *user, unsigned long pages)
{
	if (!user || gpusim_charge(&user->pages, pages,
				   gpusim_pages_of_mib(READ_ONCE(memory_per_user_mib),
						       gpusim_page_limit() / 2)))
		return 0;
	return gpusim_refuse_user(user, "much memory as memory_per_user_mib allows");
}

void gpusim_uncharge_pinned(struct gpusim_user *user, unsigned long pages)
{
	if (user)
		atomic_long_sub(pages, &user->pages);
}

int gpusim_charge_allocated(struct gpusim_user *user, unsigned long pages)
{
	int error = gpusim_charge_pinned(user, pages);

	if (error)
		return error;
	if (gpusim_charge(&gpusim_allocated_pages, pages, gpusim_page_limit()))
		return 0;
	gpusim_uncharge_pinned(user, pages);
	return -ENOMEM;
}

void gpusim_uncharge_allocated(struct gpusim_user *user, unsigned long pages)
{
	atomic_long_sub(pages, &gpusim_allocated_pages);
	gpusim_uncharge_pinned(user, pages);
}

int gpusim_charge_command(struct gpusim_user *user)
{
	const unsigned long limit = READ_ONCE(commands_per_user) ?: LONG_MAX;

	if (!user || gpusim_charge(&user->commands, 1, limit))
		return 0;
	return gpusim_refuse_user(user, "many commands as commands_per_user allows");
}

void gpusim_uncharge_command(struct gpusim_user *user)
{
	if (user)
		atomic_long_dec(&user->commands);
}

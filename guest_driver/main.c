// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/module.h>

static int __init gpusim_init(void)
{
	return 0;
}

static void __exit gpusim_exit(void)
{
}

module_init(gpusim_init);
module_exit(gpusim_exit);
MODULE_DESCRIPTION("Simulated many-core");
MODULE_LICENSE("GPL");

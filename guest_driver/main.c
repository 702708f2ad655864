// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /dev/gpusim: its file operations, and the module. include/uapi/linux/gpusim.h is the
 * interface.
 */
#include <linux/compat.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "driver.h"

static char *transport = "auto";
module_param(transport, charp, 0444);
MODULE_PARM_DESC(transport,
		 "semihosting (only under the patched QEMU: others end), virtio, or auto (auto)");

const struct gpusim_transport_ops *gpusim_transport;
struct gpusim_totals gpusim_totals;
DECLARE_WAIT_QUEUE_HEAD(gpusim_wait_queue);

static int gpusim_fops_open(struct inode *inode, struct file *file)
{
	struct gpusim_file *context = gpusim_file_new();

	if (IS_ERR(context))
		return PTR_ERR(context);
	file->private_data = context;
	return 0;
}

static int gpusim_fops_release(struct inode *inode, struct file *file)
{
	gpusim_file_end(file->private_data);
	return 0;
}

static int gpusim_fops_mmap(struct file *file, struct vm_area_struct *vma)
{
	return gpusim_mmap(file->private_data, vma);
}

static __poll_t gpusim_fops_poll(struct file *file, poll_table *table)
{
	return gpusim_poll(file->private_data, file, table);
}

static void gpusim_info(struct gpusim_file *file, struct gpusim_ioc_info *info)
{
	info->driver_version = GPUSIM_DRIVER_VERSION;
	info->wire_version = GPUSIM_WIRE_VERSION;
	info->transport = gpusim_transport->id;
	/* As gpusim_file_finish_opening() released it. */
	info->generation = smp_load_acquire(&file->is_open) ? file->generation : 0;
	info->pinned_bytes = atomic64_read(&file->pinned_bytes);
	info->allocated_bytes = atomic64_read(&file->allocated_bytes);
}

union gpusim_ioc {
	struct gpusim_ioc_info info;
	struct gpusim_ioc_alloc alloc;
	struct gpusim_ioc_pin pin;
	struct gpusim_ioc_submit submit;
	struct gpusim_ioc_wait wait;
	u32 handle;
	u64 ticket;
};

static long gpusim_fops_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct gpusim_file *context = file->private_data;
	void __user *user = (void __user *)argument;
	const size_t size = _IOC_SIZE(command);
	union gpusim_ioc ioc;
	long error = 0;

	if (size > sizeof(ioc))
		return -ENOTTY;
	memset(&ioc, 0, sizeof(ioc));
	if (_IOC_DIR(command) & _IOC_WRITE && copy_from_user(&ioc, user, size))
		return -EFAULT;
	switch (command) {
	case GPUSIM_IOC_INFO:
		gpusim_info(context, &ioc.info);
		break;
	case GPUSIM_IOC_ALLOC:
		error = gpusim_alloc(context, &ioc.alloc);
		break;
	case GPUSIM_IOC_PIN:
		error = gpusim_pin(context, &ioc.pin);
		break;
	case GPUSIM_IOC_FREE:
		error = gpusim_free(context, ioc.handle);
		break;
	case GPUSIM_IOC_SUBMIT:
		error = gpusim_submit(context, &ioc.submit);
		break;
	case GPUSIM_IOC_WAIT:
		error = gpusim_wait(context, &ioc.wait);
		break;
	case GPUSIM_IOC_CANCEL:
		error = gpusim_cancel(context, ioc.ticket);
		break;
	case GPUSIM_IOC_PING:
		error = gpusim_transport->ping();
		break;
	default:
		return -ENOTTY;
	}
	if (!error && _IOC_DIR(command) & _IOC_READ && copy_to_user(user, &ioc, size))
		error = -EFAULT;
	return error;
}

static const struct file_operations gpusim_fops = {
	.owner = THIS_MODULE,
	.open = gpusim_fops_open,
	.release = gpusim_fops_release,
	.mmap = gpusim_fops_mmap,
	.poll = gpusim_fops_poll,
	.unlocked_ioctl = gpusim_fops_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* ---- sysfs: what is in use, /sys/class/misc/gpusim/ ---- */

static ssize_t transport_show(struct device *device, struct device_attribute *attribute,
			      char *buffer)
{
	return sysfs_emit(buffer, "%s\n", gpusim_transport->name);
}
static DEVICE_ATTR_RO(transport);

#define GPUSIM_TOTAL(name)                                                                         \
	static ssize_t name##_show(struct device *device, struct device_attribute *attribute,      \
				   char *buffer)                                                   \
	{                                                                                          \
		return sysfs_emit(buffer, "%ld\n", atomic_long_read(&gpusim_totals.name));         \
	}                                                                                          \
	static DEVICE_ATTR_RO(name)

GPUSIM_TOTAL(files);
GPUSIM_TOTAL(calls);
GPUSIM_TOTAL(pinned_pages);
GPUSIM_TOTAL(allocated_pages);

static struct attribute *gpusim_attrs[] = {
	&dev_attr_transport.attr,    &dev_attr_files.attr,
	&dev_attr_calls.attr,	     &dev_attr_pinned_pages.attr,
	&dev_attr_allocated_pages.attr, NULL,
};
ATTRIBUTE_GROUPS(gpusim);

static struct miscdevice gpusim_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gpusim",
	.fops = &gpusim_fops,
	.mode = 0660,
	.groups = gpusim_groups,
};

static int gpusim_choose_transport(void)
{
	if (sysfs_streq(transport, "semihosting"))
		gpusim_transport = &gpusim_semihosting;
	else if (sysfs_streq(transport, "virtio"))
		gpusim_transport = &gpusim_virtio;
	else if (sysfs_streq(transport, "auto"))
		gpusim_transport = gpusim_semihosting_found() ? &gpusim_semihosting :
								&gpusim_virtio;
	else
		return -EINVAL;
	return 0;
}

static int __init gpusim_init(void)
{
	int error;

	error = gpusim_choose_transport();
	if (error) {
		pr_err("gpusim: transport=%s: not semihosting, virtio or auto\n", transport);
		return error;
	}
	error = gpusim_calls_init();
	if (error)
		return error;
	error = gpusim_contexts_init();
	if (error)
		goto calls_exit;
	error = gpusim_transport->init();
	if (error)
		goto contexts_exit;
	error = misc_register(&gpusim_device);
	if (error)
		goto transport_exit;
	pr_info("gpusim: reaches its daemon by %s\n", gpusim_transport->name);
	return 0;

transport_exit:
	gpusim_transport->exit();
contexts_exit:
	gpusim_contexts_exit();
calls_exit:
	gpusim_calls_exit();
	return error;
}

static void __exit gpusim_exit(void)
{
	misc_deregister(&gpusim_device);
	gpusim_contexts_exit();
	gpusim_transport->exit();
	gpusim_calls_exit();
}

module_init(gpusim_init);
module_exit(gpusim_exit);
MODULE_DESCRIPTION("gpusim: a simulated many-core as a device");
MODULE_LICENSE("GPL");

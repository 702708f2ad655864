// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stock QEMU: messages (struct gpusim_message) through the port org.gpusim.0 of a virtio-
 * serial device, which this driver drives itself, because virtio_console offers its ports to
 * processes only. It takes no other device: one whose ports have other names is left to
 * virtio_console. Where that has the device already, unbind it there and bind it here
 * (README.md).
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_console.h>

#include "compat.h"
#include "driver.h"

#define PORT_NAME "org.gpusim.0"

/* Room for a control message with a name; for some messages of ours. */
#define BUFFER_BYTES 256
#define PORT_BUFFERS 16

#define NAME_PATIENCE (HZ / 2)
#define HELLO_PATIENCE (5 * HZ)

struct gpusim_port {
	struct virtio_device *device;
	struct virtqueue **queues;
	u32 port_count;
	struct virtqueue *in, *out; /* the port's; set when its name is known */
	struct virtqueue *control_in, *control_out;
	u32 id;
	struct mutex control_mutex; /* control_out */
	struct work_struct control_work;
	struct completion named;

	/* Guarded by gpusim_port_lock. */
	bool is_connected;
	u32 generation; /* 0: no hello yet */
	u64 foreign_version; /* that the daemon speaks and we don't; 0: ours, or no hello yet */
	u32 hellos;
	u64 pongs;
	u8 partial[sizeof(struct gpusim_message)];
	size_t partial_bytes;
};

/* Guards the port in use and its output queue. */
static DEFINE_SPINLOCK(gpusim_port_lock);
static struct gpusim_port *gpusim_port;
static u64 gpusim_last_ping;

/* A daemon that was left without a word: nobody knows what it does. */
static u32 gpusim_left_generation;

/* ---- Out ---- */

static int gpusim_send_locked(struct gpusim_port *port, u32 kind, u32 generation, u64 value)
{
	struct gpusim_message *message;
	struct scatterlist sg;
	unsigned int length;
	int error;

	while ((message = virtqueue_get_buf(port->out, &length)))
		kfree(message);
	message = kmalloc(sizeof(*message), GFP_ATOMIC);
	if (!message)
		return -EAGAIN;
	message->kind = gpusim_to_wire32(kind);
	message->generation = gpusim_to_wire32(generation);
	message->value = gpusim_to_wire64(value);
	sg_init_one(&sg, message, sizeof(*message));
	error = virtqueue_add_outbuf(port->out, &sg, 1, message, GFP_ATOMIC);
	if (error) {
		kfree(message);
		return error == -ENOSPC || error == -ENOMEM ? -EAGAIN : error;
	}
	virtqueue_kick(port->out);
	return 0;
}

/* Waits until the host has taken it. Only for control messages, which are rare. */
static int gpusim_send_control(struct gpusim_port *port, u32 id, u16 event, u16 value)
{
	struct virtio_console_control *message = kmalloc(sizeof(*message), GFP_KERNEL);
	struct scatterlist sg;
	unsigned int length;
	int error;

	if (!message)
		return -ENOMEM;
	message->id = cpu_to_virtio32(port->device, id);
	message->event = cpu_to_virtio16(port->device, event);
	message->value = cpu_to_virtio16(port->device, value);
	sg_init_one(&sg, message, sizeof(*message));
	mutex_lock(&port->control_mutex);
	error = virtqueue_add_outbuf(port->control_out, &sg, 1, message, GFP_KERNEL);
	if (!error) {
		virtqueue_kick(port->control_out);
		while (!virtqueue_get_buf(port->control_out, &length) &&
		       !virtqueue_is_broken(port->control_out))
			cond_resched();
	}
	mutex_unlock(&port->control_mutex);
	kfree(message);
	return error;
}

/* ---- In ---- */

static int gpusim_add_in_buffer(struct virtqueue *queue, void *buffer, gfp_t gfp)
{
	struct scatterlist sg;

	sg_init_one(&sg, buffer, BUFFER_BYTES);
	return virtqueue_add_inbuf(queue, &sg, 1, buffer, gfp);
}

static int gpusim_fill(struct virtqueue *queue, unsigned int most)
{
	unsigned int count;

	for (count = 0; count < most; count++) {
		void *buffer = kmalloc(BUFFER_BYTES, GFP_KERNEL);

		if (!buffer)
			break;
		if (gpusim_add_in_buffer(queue, buffer, GFP_KERNEL)) {
			kfree(buffer);
			break;
		}
	}
	virtqueue_kick(queue);
	return count ? 0 : -ENOMEM;
}

static void gpusim_on_message(struct gpusim_port *port, const struct gpusim_message *message)
{
	const u32 generation = le32_to_cpu((__force __le32)message->generation);
	const u64 value = gpusim_from_wire64(message->value);

	switch (le32_to_cpu((__force __le32)message->kind)) {
	case GPUSIM_MESSAGE_HELLO:
		port->foreign_version = value == GPUSIM_WIRE_VERSION ? 0 : value;
		port->generation = value == GPUSIM_WIRE_VERSION ? generation : 0;
		port->hellos++;
		break;
	case GPUSIM_MESSAGE_PING:
		port->pongs = max(port->pongs, value);
		break;
	default: /* DONE: the reply is in memory */
		break;
	}
}

/* The host's bytes come in pieces of any size. */
static void gpusim_on_bytes(struct gpusim_port *port, const u8 *bytes, size_t count)
{
	while (count) {
		const size_t part = min(count, sizeof(port->partial) - port->partial_bytes);

		memcpy(port->partial + port->partial_bytes, bytes, part);
		port->partial_bytes += part;
		bytes += part;
		count -= part;
		if (port->partial_bytes == sizeof(port->partial)) {
			struct gpusim_message message;

			memcpy(&message, port->partial, sizeof(message));
			port->partial_bytes = 0;
			gpusim_on_message(port, &message);
		}
	}
}

static void gpusim_on_input(struct virtqueue *queue)
{
	struct gpusim_port *port = queue->vdev->priv;
	unsigned long flags;
	unsigned int length;
	void *buffer;

	if (queue != READ_ONCE(port->in))
		return;
	spin_lock_irqsave(&gpusim_port_lock, flags);
	while ((buffer = virtqueue_get_buf(queue, &length))) {
		gpusim_on_bytes(port, buffer, min_t(unsigned int, length, BUFFER_BYTES));
		if (gpusim_add_in_buffer(queue, buffer, GFP_ATOMIC))
			kfree(buffer);
	}
	virtqueue_kick(queue);
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	wake_up_all(&gpusim_wait_queue);
}

/* ---- Control messages ---- */

static void gpusim_on_name(struct gpusim_port *port, u32 id)
{
	if (port->in || !id || id >= port->port_count)
		return;
	port->id = id;
	port->out = port->queues[2 * id + 3];
	WRITE_ONCE(port->in, port->queues[2 * id + 2]);
	if (gpusim_fill(port->in, PORT_BUFFERS))
		return;
	gpusim_send_control(port, id, VIRTIO_CONSOLE_PORT_OPEN, 1);
	complete(&port->named);
}

static void gpusim_on_connection(struct gpusim_port *port, bool is_connected)
{
	unsigned long flags;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	port->is_connected = is_connected;
	port->generation = 0;
	port->partial_bytes = 0;
	/* Whatever the daemon knows is from an earlier life of this guest. */
	if (is_connected)
		gpusim_send_locked(port, GPUSIM_MESSAGE_HELLO, 0, GPUSIM_WIRE_VERSION);
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	wake_up_all(&gpusim_wait_queue);
}

static void gpusim_on_control_message(struct gpusim_port *port, const u8 *bytes, size_t length)
{
	const struct virtio_console_control *message = (const void *)bytes;
	const size_t name_length = length - sizeof(*message);
	u32 id;

	if (length < sizeof(*message))
		return;
	id = virtio32_to_cpu(port->device, message->id);
	switch (virtio16_to_cpu(port->device, message->event)) {
	case VIRTIO_CONSOLE_PORT_ADD:
		gpusim_send_control(port, id, VIRTIO_CONSOLE_PORT_READY, 1);
		break;
	case VIRTIO_CONSOLE_PORT_NAME:
		if (strnlen(bytes + sizeof(*message), name_length) == strlen(PORT_NAME) &&
		    !memcmp(bytes + sizeof(*message), PORT_NAME, strlen(PORT_NAME)))
			gpusim_on_name(port, id);
		break;
	case VIRTIO_CONSOLE_PORT_OPEN:
		if (port->in && id == port->id)
			gpusim_on_connection(port, virtio16_to_cpu(port->device, message->value));
		break;
	case VIRTIO_CONSOLE_PORT_REMOVE:
		if (port->in && id == port->id)
			gpusim_on_connection(port, false);
		break;
	}
}

static void gpusim_control_work(struct work_struct *work)
{
	struct gpusim_port *port = container_of(work, struct gpusim_port, control_work);
	unsigned int length;
	void *buffer;

	while ((buffer = virtqueue_get_buf(port->control_in, &length))) {
		gpusim_on_control_message(port, buffer, min_t(unsigned int, length, BUFFER_BYTES));
		if (gpusim_add_in_buffer(port->control_in, buffer, GFP_KERNEL))
			kfree(buffer);
		virtqueue_kick(port->control_in);
	}
}

static void gpusim_on_control(struct virtqueue *queue)
{
	struct gpusim_port *port = queue->vdev->priv;

	schedule_work(&port->control_work);
}

static void gpusim_on_nothing(struct virtqueue *queue)
{
}

/* ---- The device ---- */

/* Queues 2 and 3 are for control messages, 0 and 1 for port 0, 4 and 5 for port 1, and so on. */
static int gpusim_port_find_queues(struct gpusim_port *port)
{
	const u32 count = 2 * (port->port_count + 1);
	vq_callback_t **callbacks = kcalloc(count, sizeof(*callbacks), GFP_KERNEL);
	const char **names = kcalloc(count, sizeof(*names), GFP_KERNEL);
	int error = -ENOMEM;
	u32 i;

	port->queues = kcalloc(count, sizeof(*port->queues), GFP_KERNEL);
	if (!callbacks || !names || !port->queues)
		goto free;
	for (i = 0; i < count; i += 2) {
		names[i] = i == 2 ? "gpusim-control-in" : "gpusim-in";
		names[i + 1] = i == 2 ? "gpusim-control-out" : "gpusim-out";
		callbacks[i] = i == 2 ? gpusim_on_control : gpusim_on_input;
		callbacks[i + 1] = gpusim_on_nothing;
	}
	error = gpusim_find_vqs(port->device, count, port->queues, callbacks, names);
	if (!error) {
		port->control_in = port->queues[2];
		port->control_out = port->queues[3];
	}
free:
	kfree(callbacks);
	kfree(names);
	return error;
}

static void gpusim_port_free(struct gpusim_port *port)
{
	const u32 count = 2 * (port->port_count + 1);
	void *buffer;
	u32 i;

	virtio_reset_device(port->device);
	cancel_work_sync(&port->control_work);
	for (i = 0; port->control_in && i < count; i++)
		while ((buffer = virtqueue_detach_unused_buf(port->queues[i])))
			kfree(buffer);
	port->device->config->del_vqs(port->device);
	kfree(port->queues);
	kfree(port);
}

static int gpusim_virtio_device_probe(struct virtio_device *device)
{
	struct gpusim_port *port;
	unsigned long flags;
	int error;

	if (READ_ONCE(gpusim_port) || !virtio_has_feature(device, VIRTIO_CONSOLE_F_MULTIPORT))
		return -ENODEV;
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return -ENOMEM;
	port->device = device;
	device->priv = port;
	mutex_init(&port->control_mutex);
	INIT_WORK(&port->control_work, gpusim_control_work);
	init_completion(&port->named);
	virtio_cread(device, struct virtio_console_config, max_nr_ports, &port->port_count);
	if (port->port_count < 2 || port->port_count > 512) {
		kfree(port);
		return -ENODEV;
	}
	error = gpusim_port_find_queues(port);
	if (error) {
		kfree(port->queues);
		kfree(port);
		return error;
	}
	virtio_device_ready(device);
	error = gpusim_fill(port->control_in, UINT_MAX);
	if (!error)
		error = gpusim_send_control(port, VIRTIO_CONSOLE_BAD_ID,
					    VIRTIO_CONSOLE_DEVICE_READY, 1);
	if (!error && !wait_for_completion_timeout(&port->named, NAME_PATIENCE))
		error = -ENODEV; /* somebody else's */
	spin_lock_irqsave(&gpusim_port_lock, flags);
	if (!error && gpusim_port)
		error = -ENODEV;
	if (!error)
		gpusim_port = port;
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	if (error)
		gpusim_port_free(port);
	return error;
}

static bool gpusim_port_hellos_passed(struct gpusim_port *port, u32 before)
{
	unsigned long flags;
	bool result;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	result = port->hellos != before || !port->is_connected;
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	return result;
}

static void gpusim_virtio_device_remove(struct virtio_device *device)
{
	struct gpusim_port *port = device->priv;
	unsigned long flags;
	u32 hellos, generation;

	/* After another hello the daemon has forgotten all that it had from us. */
	spin_lock_irqsave(&gpusim_port_lock, flags);
	hellos = port->hellos;
	generation = port->generation;
	if (port->is_connected)
		gpusim_send_locked(port, GPUSIM_MESSAGE_HELLO, 0, GPUSIM_WIRE_VERSION);
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	if (!wait_event_timeout(gpusim_wait_queue, gpusim_port_hellos_passed(port, hellos),
				HELLO_PATIENCE)) {
		dev_warn(&device->dev, "the daemon does not answer: memory that it has stays as it is\n");
		gpusim_left_generation = generation;
	}
	spin_lock_irqsave(&gpusim_port_lock, flags);
	gpusim_port = NULL;
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	gpusim_send_control(port, port->id, VIRTIO_CONSOLE_PORT_OPEN, 0);
	gpusim_port_free(port);
	wake_up_all(&gpusim_wait_queue);
}

static const struct virtio_device_id gpusim_virtio_ids[] = {
	{ VIRTIO_ID_CONSOLE, VIRTIO_DEV_ANY_ID },
	{ 0 },
};

static const unsigned int gpusim_virtio_features[] = { VIRTIO_CONSOLE_F_MULTIPORT };

/* Without a module alias: nobody should load it for each console. */
static struct virtio_driver gpusim_virtio_driver = {
	.driver.name = "gpusim",
	.driver.owner = THIS_MODULE,
	.id_table = gpusim_virtio_ids,
	.feature_table = gpusim_virtio_features,
	.feature_table_size = ARRAY_SIZE(gpusim_virtio_features),
	.probe = gpusim_virtio_device_probe,
	.remove = gpusim_virtio_device_remove,
};

/* ---- The transport ---- */

static int gpusim_virtio_init(void)
{
	return register_virtio_driver(&gpusim_virtio_driver);
}

static void gpusim_virtio_exit(void)
{
	unregister_virtio_driver(&gpusim_virtio_driver);
}

/* Sends to the daemon of this generation; 0: to any. */
static int gpusim_send(u32 kind, u32 generation, u64 value)
{
	unsigned long flags;
	int error = -EIO;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	if (gpusim_port && gpusim_port->is_connected &&
	    (!generation || gpusim_port->generation == generation))
		error = gpusim_send_locked(gpusim_port, kind, gpusim_port->generation, value);
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	return error;
}

/* The daemon's generation; 0: it has not said hello yet; -ENODEV. */
static s64 gpusim_virtio_generation(void)
{
	unsigned long flags;
	s64 result = -ENODEV;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	if (gpusim_port && gpusim_port->is_connected)
		result = gpusim_port->generation;
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	return result;
}

static int gpusim_virtio_probe(u32 *generation)
{
	long left;
	s64 result;

	left = wait_event_interruptible_timeout(gpusim_wait_queue,
						(result = gpusim_virtio_generation()) != 0,
						HELLO_PATIENCE);
	if (left < 0)
		return left;
	if (result <= 0)
		return -ENODEV;
	*generation = result;
	return 0;
}

static void gpusim_virtio_reason(char *text, size_t size)
{
	unsigned long flags;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	if (!gpusim_port)
		strscpy(text, "QEMU has neither the patch nor a virtio-serial port " PORT_NAME, size);
	else if (!gpusim_port->is_connected)
		strscpy(text, "nobody is at the other end of port " PORT_NAME
			": start gpusim daemon --listen SOCKET --ram FILE on the host", size);
	else if (gpusim_port->foreign_version)
		snprintf(text, size, "the daemon speaks version %llu of the protocol, not %u",
			 gpusim_port->foreign_version, GPUSIM_WIRE_VERSION);
	else
		strscpy(text, "the daemon does not answer", size);
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
}

static int gpusim_virtio_bell(u32 generation, phys_addr_t command)
{
	return gpusim_send(GPUSIM_MESSAGE_BELL, generation, command);
}

static int gpusim_virtio_alive(u32 generation)
{
	if (generation == READ_ONCE(gpusim_left_generation))
		return 0;
	return gpusim_virtio_generation() == generation ? 0 : -EIO;
}

static bool gpusim_virtio_ponged(u64 value)
{
	unsigned long flags;
	bool result;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	result = !gpusim_port || !gpusim_port->is_connected || gpusim_port->pongs >= value;
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	return result;
}

static int gpusim_virtio_ping(void)
{
	unsigned long flags;
	u64 value;
	long left;
	int error;

	spin_lock_irqsave(&gpusim_port_lock, flags);
	value = ++gpusim_last_ping;
	spin_unlock_irqrestore(&gpusim_port_lock, flags);
	error = gpusim_send(GPUSIM_MESSAGE_PING, 0, value);
	if (error)
		return error;
	left = wait_event_interruptible_timeout(gpusim_wait_queue, gpusim_virtio_ponged(value),
						HELLO_PATIENCE);
	if (left <= 0)
		return left ? left : -ETIMEDOUT;
	return gpusim_virtio_generation() < 0 ? -EIO : 0;
}

const struct gpusim_transport_ops gpusim_virtio = {
	.name = "virtio",
	.id = GPUSIM_TRANSPORT_VIRTIO,
	.init = gpusim_virtio_init,
	.exit = gpusim_virtio_exit,
	.probe = gpusim_virtio_probe,
	.reason = gpusim_virtio_reason,
	.bell = gpusim_virtio_bell,
	.alive = gpusim_virtio_alive,
	.ping = gpusim_virtio_ping,
};

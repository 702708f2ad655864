// SPDX-License-Identifier: GPL-2.0-or-later
/* A stock QEMU: messages through a port of a virtio-serial device. */
#include "driver.h"

static int gpusim_virtio_init(void)
{
	return 0;
}

static void gpusim_virtio_exit(void)
{
}

static int gpusim_virtio_probe(u32 *generation)
{
	return -ENODEV;
}

static int gpusim_virtio_bell(u32 generation, phys_addr_t command)
{
	return -EIO;
}

static int gpusim_virtio_alive(u32 generation)
{
	return -EIO;
}

static int gpusim_virtio_ping(void)
{
	return -ENODEV;
}

const struct gpusim_transport_ops gpusim_virtio = {
	.name = "virtio",
	.id = GPUSIM_TRANSPORT_VIRTIO,
	.init = gpusim_virtio_init,
	.exit = gpusim_virtio_exit,
	.probe = gpusim_virtio_probe,
	.bell = gpusim_virtio_bell,
	.alive = gpusim_virtio_alive,
	.ping = gpusim_virtio_ping,
};

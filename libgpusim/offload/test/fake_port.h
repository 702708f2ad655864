// SPDX-License-Identifier: MIT
#ifndef GPUSIM_OFFLOAD_FAKE_PORT_H
#define GPUSIM_OFFLOAD_FAKE_PORT_H

#include <stdatomic.h>
#include <stdbool.h>

// The kernels: "nothing", "add" (atomically, argument 1 to the word at argument 0), "forever" and
// "fail".
enum { kFakeNothing = 16, kFakeAdd, kFakeForever, kFakeFail };

extern atomic_uint fake_live_things;  // open ports
extern atomic_uint fake_seed;
extern atomic_bool fake_is_lost;  // launches find no device

#endif  // GPUSIM_OFFLOAD_FAKE_PORT_H

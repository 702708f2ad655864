// SPDX-License-Identifier: MIT
// Existing memory of the caller that kernels reach in place.
#include <stdlib.h>

#include "internal.h"

struct gpusim_offload_region {
  struct gpusim_offload_region* next;
  uint64_t first, last;
  bool read_only;
  unsigned references;  // 0: to be freed once no kernel runs
  struct gpusim_port_memory memory;
};

static bool overlaps(const struct gpusim_offload_region* region, uint64_t first, uint64_t last) {
  return region->first < last && first < region->last;
}

// With the regions' lock. Frees what nobody wants any more, as far as kernels allow.
static void sweep(gpusim_device* device) {
  struct gpusim_offload_region** place = &device->regions;
  while (*place != NULL) {
    struct gpusim_offload_region* const region = *place;
    if (region->references == 0 && PORT->free(device->port, &region->memory) != GPUSIM_BUSY) {
      *place = region->next;
      free(region);
    } else {
      place = &region->next;
    }
  }
}

void gpusim_offload_sweep_regions(gpusim_device* device) {
  pthread_mutex_lock(&device->regions_mutex);
  sweep(device);
  pthread_mutex_unlock(&device->regions_mutex);
}

static int add_region(gpusim_device* device, struct gpusim_offload_region** place, uint64_t first,
                      uint64_t last, bool read_only) {
  struct gpusim_offload_region* const region = calloc(1, sizeof *region);
  if (region == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "out of memory");
  const int status =
      PORT->attach(device->port, (void*)(uintptr_t)first, last - first, read_only, &region->memory);
  if (status != GPUSIM_OK) {
    free(region);
    return status;
  }
  region->first = first;
  region->last = last;
  region->read_only = read_only;
  region->references = 1;
  region->next = *place;
  *place = region;
  return GPUSIM_OK;
}

static void let_go(gpusim_device* device, uint64_t first, uint64_t last) {
  for (struct gpusim_offload_region* r = device->regions; r != NULL; r = r->next) {
    if (overlaps(r, first, last)) --r->references;
  }
}

// What stands in the way of sharing the regions in [first, last).
static int check_regions(gpusim_device* device, uint64_t first, uint64_t last, bool read_only) {
  bool has_stale = false;
  for (struct gpusim_offload_region* r = device->regions; r != NULL; r = r->next) {
    if (overlaps(r, first, last) && r->references == 0) has_stale = true;
  }
  if (has_stale) sweep(device);
  for (struct gpusim_offload_region* r = device->regions; r != NULL; r = r->next) {
    if (!overlaps(r, first, last)) continue;
    if (r->references == 0) {
      return fail(GPUSIM_BUSY,
                  "a buffer over this memory was released and is still attached, because a kernel "
                  "runs; wait for it first");
    }
    if (r->read_only && !read_only) {
      return fail(GPUSIM_INVALID_ARGUMENT,
                  "memory at %#llx is read-only for kernels through another buffer or because the "
                  "program may not write it",
                  (unsigned long long)r->first);
    }
  }
  return GPUSIM_OK;
}

int gpusim_offload_attach(gpusim_device* device, uint64_t first, uint64_t last, bool read_only,
                          struct gpusim_offload_range* range) {
  range->first = first;
  range->last = last;
  range->is_shared = last <= device->properties.address_space_bytes;
  if (!range->is_shared) {
    const int status = PORT->attach(device->port, (void*)(uintptr_t)first, last - first, read_only,
                                    &range->memory);
    range->device_address = range->memory.device_address;
    return status;
  }
  range->device_address = first;
  pthread_mutex_lock(&device->regions_mutex);
  int status = check_regions(device, first, last, read_only);
  uint64_t at = first;
  struct gpusim_offload_region** place = &device->regions;
  while (status == GPUSIM_OK && at < last) {
    while (*place != NULL && (*place)->last <= at) place = &(*place)->next;
    if (*place != NULL && (*place)->first <= at) {
      ++(*place)->references;
      at = (*place)->last;
      continue;
    }
    const uint64_t end = *place != NULL && (*place)->first < last ? (*place)->first : last;
    status = add_region(device, place, at, end, read_only);
    if (status == GPUSIM_OK) at = end;
  }
  if (status != GPUSIM_OK && at > first) {
    let_go(device, first, at);
    sweep(device);
  }
  pthread_mutex_unlock(&device->regions_mutex);
  return status;
}

void gpusim_offload_detach(gpusim_device* device, const struct gpusim_offload_range* range) {
  if (!range->is_shared) {
    gpusim_offload_free_memory(device, &range->memory);
    return;
  }
  pthread_mutex_lock(&device->regions_mutex);
  let_go(device, range->first, range->last);
  sweep(device);
  pthread_mutex_unlock(&device->regions_mutex);
}

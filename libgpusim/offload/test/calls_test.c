// SPDX-License-Identifier: MIT
// Devices, buffers, commands on memory, arguments.
#include <limits.h>

#include "offload_test.h"

static void texts(struct fixture* f) {
  (void)f;
  CHECK(strcmp(gpusim_status_name(GPUSIM_OK), "GPUSIM_OK") == 0);
  CHECK(strcmp(gpusim_status_name(GPUSIM_INTERNAL), "GPUSIM_INTERNAL") == 0);
  CHECK(strcmp(gpusim_status_name(GPUSIM_BUSY), "GPUSIM_BUSY") == 0);
  CHECK(strcmp(gpusim_status_name(-99), "unknown status") == 0);
  CHECK(strcmp(gpusim_status_name(99), "unknown status") == 0);
  CHECK(strcmp(gpusim_class_name(0), "integer_arithmetic") == 0);
  CHECK(strcmp(gpusim_class_name(GPUSIM_CLASS_COUNT - 1), "other") == 0);
  CHECK(gpusim_class_name(GPUSIM_CLASS_COUNT) == NULL);
}

static void opening(struct fixture* f) {
  (void)f;
  gpusim_device* device = NULL;
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open(NULL, NULL));
  EXPECT(GPUSIM_NOT_FOUND, gpusim_open("colour=red", &device));
  CHECK(device == NULL && strstr(gpusim_last_error(), "colour") != NULL);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open("nonsense", &device));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open("=3", &device));
#ifdef GPUSIM_NATIVE
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open("backend=abacus", &device));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open("threads=many", &device));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open("regions=maybe", &device));
  CHECK(strstr(gpusim_last_error(), "regions=maybe: there are off") != NULL);
  OK(gpusim_open("backend=scalar,threads=1,regions=off", &device));
  gpusim_properties p;
  OK(gpusim_device_properties(device, &p));
  CHECK(strcmp(p.backend, "scalar") == 0);
  OK(gpusim_close(device));
#else
  EXPECT(GPUSIM_NO_DEVICE, gpusim_open("device=/dev/nowhere", &device));
  EXPECT(GPUSIM_NO_DEVICE, gpusim_open("device=/dev/null", &device));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_open("wait=never", &device));
  // Through virtio-serial nothing can stop the guest's clocks.
  const int frozen = gpusim_open("device=/dev/gpusim,wait=frozen", &device);
  CHECK(frozen == GPUSIM_OK || frozen == GPUSIM_NOT_SUPPORTED);
  if (frozen == GPUSIM_OK) OK(gpusim_close(device));
#endif
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_close(NULL));
}

static void properties(struct fixture* f) {
  gpusim_properties p;
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_device_properties(NULL, &p));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_device_properties(f->device, NULL));
  OK(gpusim_device_properties(f->device, &p));
  CHECK(p.api_version == GPUSIM_API_VERSION);
  CHECK(p.most_cores >= 2048);
  CHECK(p.address_space_bytes >= UINT64_C(1) << 32);
  CHECK(p.memory_bytes > 0);
  CHECK(p.page_size_bytes >= 4096 && (p.page_size_bytes & (p.page_size_bytes - 1)) == 0);
  CHECK(strcmp(p.isa, "aarch64") == 0);
  CHECK(strstr(p.isas, "aarch64") != NULL);
  CHECK(p.backend[0] != 0 && strstr(p.backends, p.backend) != NULL);
  CHECK(strstr(p.description, p.backend) != NULL);
#ifdef GPUSIM_NATIVE
  CHECK(strcmp(p.transport, "native") == 0);
#else
  CHECK(strcmp(p.transport, "semihosting") == 0 || strcmp(p.transport, "virtio") == 0);
#endif
}

static void buffers(struct fixture* f) {
  gpusim_buffer* b;
  char content[100];
  memset(content, 'x', sizeof content);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(NULL, 0, 1, NULL, &b));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(f->device, 0, 1, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(f->device, 0, 0, NULL, &b));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(f->device, 1u << 20, 1, NULL, &b));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 1, NULL, &b));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(f->device, 0, 1, content, &b));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR | GPUSIM_BUFFER_COPY_HOST_PTR,
                              1, content, &b));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, SIZE_MAX - 4, content, &b));
  EXPECT(GPUSIM_OUT_OF_MEMORY, gpusim_buffer_create(f->device, 0, SIZE_MAX, NULL, &b));
  EXPECT(GPUSIM_OUT_OF_MEMORY, gpusim_buffer_create(f->device, 0, SIZE_MAX / 4, NULL, &b));
  CHECK(b == NULL);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_release(NULL));
  CHECK(gpusim_buffer_size(NULL) == 0 && gpusim_buffer_pointer(NULL) == NULL);

  b = new_buffer(f->device, 5000);
  const char* const zeroes = gpusim_buffer_pointer(b);
  CHECK(gpusim_buffer_size(b) == 5000);
  for (size_t i = 0; i < 5000; ++i) CHECK(zeroes[i] == 0);
  CHECK(gpusim_buffer_is_unified(b));
  CHECK(gpusim_buffer_device_address(b) == (uint64_t)(uintptr_t)zeroes);
  OK(gpusim_buffer_release(b));

  OK(gpusim_buffer_create(f->device, GPUSIM_BUFFER_COPY_HOST_PTR, sizeof content, content, &b));
  CHECK(memcmp(gpusim_buffer_pointer(b), content, sizeof content) == 0);
  CHECK(gpusim_buffer_pointer(b) != content);
  OK(gpusim_buffer_release(b));

  // Addresses that were used before can be used again.
  for (int i = 0; i < 200; ++i) OK(gpusim_buffer_release(new_buffer(f->device, 1 << 20)));
}

static void memory_commands(struct fixture* f) {
  enum { kSize = 10000 };
  static uint8_t in[kSize];
  static uint8_t out[kSize];
  gpusim_queue* const q = f->queue;
  gpusim_buffer* const a = new_buffer(f->device, kSize);
  gpusim_buffer* const b = new_buffer(f->device, kSize);
  for (size_t i = 0; i < kSize; ++i) in[i] = (uint8_t)(i * 7 + i / 256);

  OK(gpusim_enqueue_write(q, a, 0, kSize, in, 0, NULL, NULL));
  OK(gpusim_enqueue_copy(q, a, 100, b, 1, kSize - 200, 0, NULL, NULL));
  OK(gpusim_enqueue_read(q, b, 1, kSize - 200, out, 0, NULL, NULL));
  OK(gpusim_queue_finish(q));
  CHECK(memcmp(out, in + 100, kSize - 200) == 0);

  // Onto itself, shifted.
  OK(gpusim_enqueue_copy(q, a, 0, a, 3, kSize - 3, 0, NULL, NULL));
  OK(gpusim_enqueue_read(q, a, 3, kSize - 3, out, 0, NULL, NULL));
  OK(gpusim_queue_finish(q));
  CHECK(memcmp(out, in, kSize - 3) == 0);

  const char pattern[7] = "abcdefg";
  OK(gpusim_enqueue_fill(q, a, pattern, 7, 2, 7 * 1000, 0, NULL, NULL));
  OK(gpusim_enqueue_fill(q, a, pattern, 1, 0, 1, 0, NULL, NULL));
  OK(gpusim_enqueue_fill(q, a, pattern, 7, 5, 0, 0, NULL, NULL));
  gpusim_event* event;
  void* mapped;
  OK(gpusim_enqueue_map(q, a, 2, 7000, &mapped, 0, NULL, &event));
  OK(gpusim_event_finish(event, -1));
  CHECK(gpusim_event_status(event) == GPUSIM_OK);
  OK(gpusim_event_release(event));
  for (size_t i = 0; i < 7000; ++i) CHECK(((const char*)mapped)[i] == pattern[i % 7]);
  CHECK(((const char*)mapped)[-2] == 'a');
  OK(gpusim_enqueue_unmap(q, a, mapped, 0, NULL, NULL));

  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(q, a, 1, kSize, in, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(q, a, SIZE_MAX, 2, in, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(q, a, 0, 1, NULL, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(NULL, a, 0, 1, in, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_read(q, NULL, 0, 1, out, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_read(q, a, 0, 1, NULL, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_read(q, a, 2, SIZE_MAX, out, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_copy(q, a, 0, b, 1, kSize, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_copy(q, a, 0, NULL, 0, 1, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_fill(q, a, pattern, 7, 0, 10, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_fill(q, a, pattern, 0, 0, 10, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_fill(q, a, in, 129, 0, 129, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_map(q, a, 0, 1, NULL, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_map(q, a, 0, kSize + 1, &mapped, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_unmap(q, a, in, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_marker(NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(q, a, 0, 1, in, 1, NULL, NULL));
  gpusim_event* none = NULL;
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_write(q, a, 0, 1, in, 1, &none, NULL));
  OK(gpusim_queue_finish(q));
  OK(gpusim_buffer_release(a));
  OK(gpusim_buffer_release(b));
}

static void adding(struct fixture* f) {
  enum { kN = 5000 };
  gpusim_buffer* const buffer = new_buffer(f->device, 3 * kN * sizeof(int32_t));
  int32_t* const a = gpusim_buffer_pointer(buffer);
  gpusim_kernel* const kernel = KERNEL(f->program, add);
  OK(gpusim_kernel_set_core_id(kernel, 0));
  OK(gpusim_kernel_set_core_count(kernel, 1));
  OK(gpusim_kernel_set_buffer(kernel, 2, buffer, 0));
  OK(gpusim_kernel_set_buffer(kernel, 3, buffer, kN * 4));
  OK(gpusim_kernel_set_buffer(kernel, 4, buffer, 2 * kN * 4));
  OK(gpusim_kernel_set_u64(kernel, 5, kN));
  static const uint32_t counts[] = {1, 2, 7, 64, 65, 1000, 6000};
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
    for (int32_t i = 0; i < kN; ++i) {
      a[i] = i * 3;
      a[kN + i] = INT32_MIN + i + (int32_t)counts[c];
      a[2 * kN + i] = 0;
    }
    gpusim_event* event;
    OK(gpusim_enqueue_kernel(f->queue, kernel, counts[c], 0, NULL, &event));
    OK(gpusim_event_finish(event, -1));
    for (int32_t i = 0; i < kN; ++i) CHECK(a[2 * kN + i] == a[i] + a[kN + i]);
    gpusim_statistics s;
    OK(gpusim_event_statistics(event, &s));
    CHECK(s.cores == counts[c] && s.faults == 0 && s.exit_status == 0 && s.output_bytes == 0);
    CHECK(s.guest_instructions >= 5 * kN && s.seconds > 0 && s.mips > 0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < GPUSIM_CLASS_COUNT; ++i) sum += s.classes[i];
    CHECK(sum == s.guest_instructions);
    OK(gpusim_event_release(event));
  }
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(f->queue, kernel, 0, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_enqueue_kernel(f->queue, kernel, UINT32_MAX, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(NULL, kernel, 1, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(f->queue, NULL, 1, 0, NULL, NULL));
  OK(gpusim_kernel_release(kernel));
  OK(gpusim_buffer_release(buffer));
}

static void arguments(struct fixture* f) {
  enum { kCores = 100 };
  gpusim_buffer* const out = new_buffer(f->device, kCores * sizeof(double));
  uint64_t words[kCores];
  double numbers[kCores];
  for (unsigned i = 0; i < kCores; ++i) {
    words[i] = (i * 37) % 101;
    numbers[i] = 0.25 * i - 3;
  }
  gpusim_kernel* const k = KERNEL(f->program, all_kinds);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_core_count(k, 1));
  OK(gpusim_kernel_set_affine(k, 3, 5, 2));
  OK(gpusim_kernel_set_per_core_u64(k, 4, words, kCores));
  OK(gpusim_kernel_set_buffer(k, 5, out, 0));
  OK(gpusim_kernel_set_float(k, 6, 1.5f));
  OK(gpusim_kernel_set_double(k, 7, -1e-5));
  OK(gpusim_kernel_set_per_core_double(k, 8, numbers, kCores));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(f->queue, k, kCores, 0, NULL, NULL));
  CHECK(strstr(gpusim_last_error(), "argument 2") != NULL);
  OK(gpusim_kernel_set_i64(k, 2, -12345));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_enqueue_kernel(f->queue, k, kCores + 1, 0, NULL, NULL));
  // Twice: with the tables that are there, changed.
  for (int round = 0; round < 2; ++round) {
    // Copied when set, and when enqueued.
    gpusim_event* event;
    OK(gpusim_enqueue_kernel(f->queue, k, kCores, 0, NULL, &event));
    uint64_t next_words[kCores];
    for (unsigned i = 0; i < kCores; ++i) next_words[i] = words[i] + 1;
    OK(gpusim_kernel_set_per_core_u64(k, 4, next_words, kCores));
    OK(gpusim_event_finish(event, -1));
    OK(gpusim_event_release(event));
    const double* const got = gpusim_buffer_pointer(out);
    for (unsigned i = 0; i < kCores; ++i) {
      const double wanted = -12345.0 + (double)(5 + 2 * i) * 1e3 + (double)words[i] * 1e6 + 1.5 +
                            -1e-5 + numbers[i] + kCores * 1e-3;
      CHECK(got[i] == wanted);
    }
    memcpy(words, next_words, sizeof words);
  }
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_u64(k, 16, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_u64(NULL, 0, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_buffer(k, 0, NULL, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_buffer(k, 0, out, kCores * 8 + 1));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_per_core_u64(k, 4, words, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_per_core_u64(k, 4, NULL, 1));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_per_core_double(k, 99, numbers, 1));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_limits(k, NULL));
  const gpusim_limits negative = {0, 0, -1};
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_limits(k, &negative));
  OK(gpusim_kernel_release(k));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_release(NULL));

  gpusim_kernel* const many = KERNEL(f->program, eight_and_eight);
  for (unsigned i = 0; i < 7; ++i) OK(gpusim_kernel_set_u64(many, i, 100 + i));
  OK(gpusim_kernel_set_buffer(many, 7, out, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_u64(many, 8, 0));
  for (unsigned i = 8; i < 16; ++i) OK(gpusim_kernel_set_double(many, i, 1.0 / i));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_float(many, 0, 0));
  OK(run_kernel(f->queue, many, 1));
  const double* const got = gpusim_buffer_pointer(out);
  for (unsigned i = 0; i < 7; ++i) CHECK(got[i] == 100 + i);
  for (unsigned i = 8; i < 16; ++i) CHECK(got[i - 1] == 1.0 / i);
  OK(gpusim_kernel_release(many));
  OK(gpusim_buffer_release(out));
}

// A list that the caller built, walked by cores through the caller's own pointers.
static void unified_pointers(struct fixture* f) {
  enum { kNodes = 1000 };
  gpusim_buffer* const list = new_buffer(f->device, (kNodes + 1) * sizeof(struct node));
  gpusim_buffer* const result = new_buffer(f->device, sizeof(uint64_t));
  CHECK(gpusim_buffer_is_unified(list));
  struct node* const nodes = gpusim_buffer_pointer(list);
  uint64_t sum = 0;
  for (unsigned i = 0; i < kNodes; ++i) {
    // Not in order.
    const unsigned here = (i * 7) % kNodes;
    const unsigned next = ((i + 1) * 7) % kNodes;
    nodes[here].value = i * i;
    nodes[here].next = i + 1 < kNodes ? &nodes[next] : NULL;
    sum += i * i;
  }
  gpusim_kernel* const k = KERNEL(f->program, sum_list);
  OK(gpusim_kernel_set_u64(k, 0, (uint64_t)(uintptr_t)&nodes[0]));
  OK(gpusim_kernel_set_buffer(k, 1, result, 0));
  OK(run_kernel(f->queue, k, 1));
  CHECK(*(uint64_t*)gpusim_buffer_pointer(result) == sum);
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(list));
  OK(gpusim_buffer_release(result));
}

static void existing_memory(struct fixture* f) {
  enum { kN = 100000 };
  int32_t* const memory = malloc(3 * kN * sizeof *memory + 4096);
  CHECK(memory != NULL);
  int32_t* const a = memory + 17;  // no page begins here
  for (int32_t i = 0; i < kN; ++i) {
    a[i] = i;
    a[kN + i] = 2 * i;
    a[2 * kN + i] = -1;
  }
  a[3 * kN] = 4711;
  gpusim_counters before;
  OK(gpusim_device_counters(f->device, &before));
  gpusim_buffer* buffer;
  OK(gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 3 * kN * sizeof *a, a, &buffer));
  CHECK(gpusim_buffer_pointer(buffer) == a);
  gpusim_properties p;
  OK(gpusim_device_properties(f->device, &p));
  const uint64_t own = (uint64_t)(uintptr_t)a;
  CHECK(gpusim_buffer_device_address(buffer) % p.page_size_bytes == own % p.page_size_bytes);
  CHECK(gpusim_buffer_is_unified(buffer) == (own < p.address_space_bytes - 3 * kN * sizeof *a));
  gpusim_kernel* const k = KERNEL(f->program, add);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_core_count(k, 1));
  OK(gpusim_kernel_set_buffer(k, 2, buffer, 0));
  OK(gpusim_kernel_set_buffer(k, 3, buffer, kN * sizeof *a));
  OK(gpusim_kernel_set_buffer(k, 4, buffer, 2 * kN * sizeof *a));
  OK(gpusim_kernel_set_u64(k, 5, kN));
  OK(run_kernel(f->queue, k, 64));
  for (int32_t i = 0; i < kN; ++i) CHECK(a[2 * kN + i] == 3 * i);
  CHECK(a[3 * kN] == 4711);

  // One within the other, in both orders.
  gpusim_buffer* inner;
  OK(gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 100, a + 2000, &inner));
  OK(gpusim_kernel_set_buffer(k, 4, inner, 0));
  OK(gpusim_kernel_set_u64(k, 5, 10));
  OK(gpusim_buffer_release(buffer));
  OK(run_kernel(f->queue, k, 3));
  for (int32_t i = 0; i < 10; ++i) CHECK(a[2000 + i] == 3 * i);
  OK(gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 3 * kN * sizeof *a, a, &buffer));
  OK(gpusim_buffer_release(inner));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(buffer));

  gpusim_counters after;
  OK(gpusim_device_counters(f->device, &after));
  CHECK(after.copied_bytes == 0);
  CHECK(after.kernels == before.kernels + 2);
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_device_counters(f->device, NULL));
  // Not memory of the caller's.
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 8192,
                                                       (void*)0x10000000000, &buffer));
  free(memory);
}

static void mapped_bytes(struct fixture* f) {
  gpusim_counters c[3];
  OK(gpusim_device_counters(f->device, &c[0]));
  gpusim_buffer* const b = new_buffer(f->device, 1 << 20);
  OK(gpusim_device_counters(f->device, &c[1]));
  OK(gpusim_buffer_release(b));
  OK(gpusim_device_counters(f->device, &c[2]));
  CHECK(c[1].mapped_bytes == c[0].mapped_bytes + (1 << 20));
  CHECK(c[2].mapped_bytes == c[0].mapped_bytes);
}

// What kernels may only read.
static void check_read_only(struct fixture* f, gpusim_buffer* buffer, const uint32_t* first) {
  gpusim_kernel* const writing = KERNEL(f->program, store);
  OK(gpusim_kernel_set_core_id(writing, 0));
  OK(gpusim_kernel_set_u64(writing, 1, 0));
  OK(gpusim_kernel_set_buffer(writing, 2, buffer, 0));
  EXPECT(GPUSIM_KERNEL_FAILED, run_kernel(f->queue, writing, 1));
  CHECK(*first == 0);
  OK(gpusim_kernel_release(writing));
}

static void read_only(struct fixture* f) {
  static _Alignas(65536) uint32_t page[16384 * 2];
  page[5] = 42;
  gpusim_buffer* source;
  gpusim_buffer* const out = new_buffer(f->device, 4);
  OK(gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR | GPUSIM_BUFFER_READ_ONLY, 65536,
                          page, &source));
  gpusim_kernel* const reading = KERNEL(f->program, load);
  OK(gpusim_kernel_set_buffer(reading, 0, source, 5 * 4));
  OK(gpusim_kernel_set_buffer(reading, 1, out, 0));
  OK(run_kernel(f->queue, reading, 1));
  CHECK(*(uint32_t*)gpusim_buffer_pointer(out) == 42);
  gpusim_buffer* fresh;
  OK(gpusim_buffer_create(f->device, GPUSIM_BUFFER_READ_ONLY, 65536, NULL, &fresh));
  uint32_t* const words = gpusim_buffer_pointer(fresh);
  words[5] = 43;
  OK(gpusim_kernel_set_buffer(reading, 0, fresh, 5 * 4));
  OK(run_kernel(f->queue, reading, 1));
  CHECK(*(uint32_t*)gpusim_buffer_pointer(out) == 43);
  check_read_only(f, fresh, words);
  OK(gpusim_buffer_release(fresh));
#ifdef GPUSIM_NATIVE  // else the program's own data, which is writable for its kernels already
  check_read_only(f, source, page);
  gpusim_buffer* other;
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 100, page, &other));
  // Memory that the process itself cannot write.
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_buffer_create(f->device, GPUSIM_BUFFER_USE_HOST_PTR, 8,
                                                       (void*)(uintptr_t) "text", &other));
#endif
  OK(gpusim_kernel_release(reading));
  OK(gpusim_buffer_release(source));
  OK(gpusim_buffer_release(out));
}

static void open_and_close(struct fixture* f) {
  // 1,000 times, with a kernel in some.
  for (int i = 0; i < 1000; ++i) {
    gpusim_device* const device = open_device();
    if (i % 100 == 0) {
      gpusim_queue* queue;
      gpusim_program* const program = load_kernels(device);
      gpusim_kernel* const kernel = KERNEL(program, nothing);
      OK(gpusim_queue_create(device, &queue));
      OK(run_kernel(queue, kernel, 3));
      OK(gpusim_kernel_release(kernel));
      OK(gpusim_program_release(program));
      OK(gpusim_queue_release(queue));
    }
    OK(gpusim_close(device));
  }
  gpusim_kernel* const kernel = KERNEL(f->program, nothing);
  OK(run_kernel(f->queue, kernel, 1));
  OK(gpusim_kernel_release(kernel));
}

const struct test tests_of_calls[] = {
    {"texts", texts},
    {"opening", opening},
    {"properties", properties},
    {"buffers", buffers},
    {"memory_commands", memory_commands},
    {"adding", adding},
    {"arguments", arguments},
    {"unified_pointers", unified_pointers},
    {"existing_memory", existing_memory},
    {"mapped_bytes", mapped_bytes},
    {"read_only", read_only},
    {"open_and_close", open_and_close},
    {NULL, NULL},
};

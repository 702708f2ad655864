// SPDX-License-Identifier: MIT
// Arguments of kernels: what the caller sets, checked against the function's parameters where debug
// information knows them, in the registers that the ABI gives them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// ---- What the function takes -------------------------------------------------------------------

static const char* name_of(enum gpusim_offload_type type) {
  switch (type) {
    case kTypeInteger:
      return "an integer or a pointer";
    case kTypeFloat:
      return "a float";
    case kTypeDouble:
      return "a double";
    case kTypeStructure:
      return "a structure";
    case kTypeFloats:
      return "a structure of floats";
    case kTypeDoubles:
      return "a structure of doubles";
    case kTypeUnknown:
      break;
  }
  return "something else";
}

// " \"factor\" of scale()", as far as it is known.
static const char* describe(const gpusim_kernel* kernel, unsigned index, char* text, size_t room) {
  const struct gpusim_offload_signature* const s = &kernel->signature;
  text[0] = 0;
  if (!s->is_known) return text;
  if (index < s->count && index < kMostSignature && s->parameters[index].name[0] != 0) {
    snprintf(text, room, " \"%s\" of %s()", s->parameters[index].name, s->name);
  } else {
    snprintf(text, room, " of %s()", s->name);
  }
  return text;
}

static bool is_structure(enum gpusim_offload_type type) {
  return type == kTypeStructure || type == kTypeFloats || type == kTypeDoubles;
}

// Whether the function takes this as its argument `index`; `size_bytes`: of a structure.
static int check_type(const gpusim_kernel* kernel, unsigned index, enum gpusim_offload_type type,
                      size_t size_bytes) {
  const struct gpusim_offload_signature* const s = &kernel->signature;
  char where[2 * kNameBytes + 16];
  if (!s->is_known || (index >= s->count && s->is_open)) return GPUSIM_OK;
  if (index >= s->count) {
    return fail(GPUSIM_INVALID_ARGUMENT, "argument %u: %s() takes %u", index, s->name, s->count);
  }
  if (index >= kMostSignature) return GPUSIM_OK;
  const enum gpusim_offload_type wanted = s->parameters[index].type;
  const uint64_t wanted_bytes = s->parameters[index].size_bytes;
  describe(kernel, index, where, sizeof where);
  if (is_structure(type) && wanted_bytes != 0 && wanted_bytes != size_bytes &&
      (is_structure(wanted) || wanted == kTypeUnknown)) {
    return fail(GPUSIM_INVALID_ARGUMENT, "argument %u%s has %llu bytes, not %zu", index, where,
                (unsigned long long)wanted_bytes, size_bytes);
  }
  if (wanted == kTypeUnknown || wanted == type) return GPUSIM_OK;
  return fail(GPUSIM_INVALID_ARGUMENT, "argument %u%s is %s; it was set as %s", index, where,
              name_of(wanted), name_of(type));
}

int gpusim_offload_parameters_check(const gpusim_kernel* kernel,
                                    const struct gpusim_offload_parameters* parameters) {
  const struct gpusim_offload_signature* const s = &kernel->signature;
  unsigned needed = parameters->count;
  if (s->is_known && s->count > needed) needed = s->count;
  char where[2 * kNameBytes + 16];
  for (unsigned i = 0; i < needed; ++i) {
    if (i < parameters->count && parameters->list[i].is_set) continue;
    return fail(GPUSIM_INVALID_ARGUMENT, "argument %u%s is not set", i,
                s->is_known ? describe(kernel, i, where, sizeof where) : " of the kernel");
  }
  return GPUSIM_OK;
}

// ---- Putting them in their places --------------------------------------------------------------

void gpusim_offload_parameters_release(struct gpusim_offload_parameters* parameters) {
  for (unsigned i = 0; i < parameters->count; ++i) {
    if (parameters->list[i].buffer != NULL) gpusim_buffer_release(parameters->list[i].buffer);
  }
  parameters->count = 0;
}

static bool is_float(enum gpusim_offload_type type) {
  return type == kTypeFloat || type == kTypeDouble || type == kTypeFloats || type == kTypeDoubles;
}

// Takes over the reference to the parameter's buffer.
static int put(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all, unsigned index,
               size_t size_bytes, struct gpusim_offload_parameter* p) {
  int status = GPUSIM_OK;
  unsigned same_kind = p->word_count;
  if (index >= GPUSIM_MOST_ARGUMENTS) {
    status =
        fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: arguments are numbered from 0 to %d",
             index, GPUSIM_MOST_ARGUMENTS - 1);
  } else {
    status = check_type(kernel, index, p->type, size_bytes);
    for (unsigned i = 0; i < all->count; ++i) {
      const struct gpusim_offload_parameter* const other = &all->list[i];
      if (i != index && other->is_set && is_float(other->type) == is_float(p->type)) {
        same_kind += other->word_count;
      }
    }
    if (status == GPUSIM_OK && same_kind > kMostKinds) {
      status = fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: %s", index,
                    is_float(p->type) ? "at most eight floating-point numbers"
                                      : "at most eight words of integers, pointers and structures");
    }
  }
  if (status != GPUSIM_OK) {
    if (p->buffer != NULL) gpusim_buffer_release(p->buffer);
    return status;
  }
  p->is_set = true;
  for (unsigned i = 0; i < p->word_count; ++i) p->words[i].is_float = is_float(p->type);
  for (; all->count <= index; ++all->count) {
    memset(&all->list[all->count], 0, sizeof all->list[all->count]);
  }
  gpusim_buffer* const old = all->list[index].buffer;
  all->list[index] = *p;
  if (old != NULL) gpusim_buffer_release(old);
  return GPUSIM_OK;
}

static int put_word(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all,
                    unsigned index, enum gpusim_offload_type type, int kind, uint64_t value,
                    uint64_t step) {
  struct gpusim_offload_parameter p = {.word_count = 1, .type = type};
  p.words[0].kind = (gpusim_u8)kind;
  p.words[0].value = value;
  p.words[0].step = step;
  return put(kernel, all, index, 0, &p);
}

static int put_shape(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all,
                     unsigned index, enum gpusim_offload_shape shape) {
  struct gpusim_offload_parameter p = {.word_count = 1, .type = kTypeInteger, .shape = shape};
  return put(kernel, all, index, 0, &p);
}

static int put_buffer(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all,
                      unsigned index, gpusim_buffer* buffer, size_t offset_bytes) {
  if (buffer == NULL) {
    return fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: the buffer is NULL", index);
  }
  if (buffer->device != kernel->program->device) {
    return fail(GPUSIM_INVALID_ARGUMENT,
                "setting argument %u: the buffer belongs to another device than the kernel", index);
  }
  if (gpusim_offload_check_range(buffer, offset_bytes, 0) != GPUSIM_OK) {
    return GPUSIM_INVALID_ARGUMENT;
  }
  struct gpusim_offload_parameter p = {.word_count = 1, .type = kTypeInteger};
  p.words[0].value = buffer->device_address + offset_bytes;
  p.buffer = gpusim_offload_buffer_retain(buffer);
  return put(kernel, all, index, 0, &p);
}

// A buffer with these bytes, for the kernel alone.
static int new_copy(const gpusim_kernel* kernel, const void* bytes, size_t size_bytes,
                    gpusim_buffer** copy) {
  const int status = gpusim_buffer_create(kernel->program->device, 0, size_bytes, NULL, copy);
  if (status == GPUSIM_OK) memcpy((*copy)->pointer, bytes, size_bytes);
  return status;
}

// One register for each of the numbers.
static int put_numbers(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all,
                       unsigned index, bool is_double, const void* numbers, size_t count) {
  if (numbers == NULL || count == 0 || count > kMostWords) {
    return fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: a structure of %zu numbers: 1 to %d",
                index, numbers == NULL ? 0 : count, kMostWords);
  }
  const size_t each_bytes = is_double ? sizeof(double) : sizeof(float);
  struct gpusim_offload_parameter p = {.word_count = (uint8_t)count,
                                       .type = is_double ? kTypeDoubles : kTypeFloats};
  for (size_t i = 0; i < count; ++i) {
    memcpy(&p.words[i].value, (const uint8_t*)numbers + i * each_bytes, each_bytes);
  }
  return put(kernel, all, index, count * each_bytes, &p);
}

// Up to 16 bytes go into one or two registers, more into memory of each core's own. "Procedure Call
// Standard for the Arm 64-bit Architecture", 6.8.2, rules B.4 and C.12.
static int put_structure(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all,
                         unsigned index, const void* bytes, size_t size_bytes) {
  if (bytes == NULL || size_bytes == 0 || size_bytes > GPUSIM_MOST_COPY_BYTES) {
    return fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: a structure of %zu bytes: 1 to %u",
                index, bytes == NULL ? 0 : size_bytes, GPUSIM_MOST_COPY_BYTES);
  }
  const struct gpusim_offload_signature* const s = &kernel->signature;
  if (s->is_known && index < s->count && index < kMostSignature) {
    const enum gpusim_offload_type wanted = s->parameters[index].type;
    if (wanted == kTypeFloats || wanted == kTypeDoubles) {
      const bool is_double = wanted == kTypeDoubles;
      const size_t each_bytes = is_double ? sizeof(double) : sizeof(float);
      if (size_bytes == s->parameters[index].size_bytes) {
        return put_numbers(kernel, all, index, is_double, bytes, size_bytes / each_bytes);
      }
    }
  }
  struct gpusim_offload_parameter p = {.type = kTypeStructure};
  const size_t in_registers = 2 * sizeof(uint64_t);
  if (size_bytes <= in_registers) {
    uint64_t words[2] = {0, 0};
    memcpy(words, bytes, size_bytes);
    p.word_count = size_bytes > sizeof(uint64_t) ? 2 : 1;
    for (unsigned i = 0; i < p.word_count; ++i) p.words[i].value = words[i];
    return put(kernel, all, index, size_bytes, &p);
  }
  const int status = new_copy(kernel, bytes, size_bytes, &p.buffer);
  if (status != GPUSIM_OK) return status;
  p.word_count = 1;
  p.words[0].kind = GPUSIM_ARGUMENT_COPY;
  p.words[0].value = p.buffer->device_address;
  p.words[0].step = size_bytes;
  return put(kernel, all, index, size_bytes, &p);
}

static int put_table(const gpusim_kernel* kernel, struct gpusim_offload_parameters* all,
                     unsigned index, enum gpusim_offload_type type, const void* values,
                     uint32_t count) {
  if (values == NULL || count == 0) {
    return fail(GPUSIM_INVALID_ARGUMENT, "setting argument %u: no values", index);
  }
  const size_t size_bytes = (size_t)count * sizeof(uint64_t);
  struct gpusim_offload_parameter* const old = index < all->count ? &all->list[index] : NULL;
  // The table that is there, if no enqueued command uses it.
  if (old != NULL && old->table_count != 0 && old->type == type &&
      old->buffer->size_bytes >= size_bytes && atomic_load(&old->buffer->references) == 1) {
    memcpy(old->buffer->pointer, values, size_bytes);
    old->table_count = count;
    return GPUSIM_OK;
  }
  struct gpusim_offload_parameter p = {.word_count = 1, .type = type, .table_count = count};
  const int status = new_copy(kernel, values, size_bytes, &p.buffer);
  if (status != GPUSIM_OK) return status;
  p.words[0].kind = GPUSIM_ARGUMENT_PER_CORE;
  p.words[0].value = p.buffer->device_address;
  return put(kernel, all, index, 0, &p);
}

// ---- The calls ---------------------------------------------------------------------------------

static uint64_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

#define NEED_KERNEL(kernel) \
  if ((kernel) == NULL) return fail(GPUSIM_INVALID_ARGUMENT, "%s: the kernel is NULL", __func__)

int gpusim_kernel_set_u64(gpusim_kernel* kernel, unsigned index, uint64_t value) {
  NEED_KERNEL(kernel);
  return put_word(kernel, &kernel->parameters, index, kTypeInteger, GPUSIM_ARGUMENT_VALUE, value,
                  0);
}

int gpusim_kernel_set_i64(gpusim_kernel* kernel, unsigned index, int64_t value) {
  return gpusim_kernel_set_u64(kernel, index, (uint64_t)value);
}

int gpusim_kernel_set_float(gpusim_kernel* kernel, unsigned index, float value) {
  NEED_KERNEL(kernel);
  return put_word(kernel, &kernel->parameters, index, kTypeFloat, GPUSIM_ARGUMENT_VALUE,
                  bits_of_float(value), 0);
}

int gpusim_kernel_set_double(gpusim_kernel* kernel, unsigned index, double value) {
  NEED_KERNEL(kernel);
  return put_word(kernel, &kernel->parameters, index, kTypeDouble, GPUSIM_ARGUMENT_VALUE,
                  bits_of_double(value), 0);
}

int gpusim_kernel_set_buffer(gpusim_kernel* kernel, unsigned index, gpusim_buffer* buffer,
                             size_t offset_bytes) {
  NEED_KERNEL(kernel);
  return put_buffer(kernel, &kernel->parameters, index, buffer, offset_bytes);
}

int gpusim_kernel_set_structure(gpusim_kernel* kernel, unsigned index, const void* bytes,
                                size_t size_bytes) {
  NEED_KERNEL(kernel);
  return put_structure(kernel, &kernel->parameters, index, bytes, size_bytes);
}

int gpusim_kernel_set_floats(gpusim_kernel* kernel, unsigned index, const float* numbers,
                             size_t count) {
  NEED_KERNEL(kernel);
  return put_numbers(kernel, &kernel->parameters, index, false, numbers, count);
}

int gpusim_kernel_set_doubles(gpusim_kernel* kernel, unsigned index, const double* numbers,
                              size_t count) {
  NEED_KERNEL(kernel);
  return put_numbers(kernel, &kernel->parameters, index, true, numbers, count);
}

int gpusim_kernel_set_core_id(gpusim_kernel* kernel, unsigned index) {
  return gpusim_kernel_set_affine(kernel, index, 0, 1);
}

int gpusim_kernel_set_core_count(gpusim_kernel* kernel, unsigned index) {
  NEED_KERNEL(kernel);
  return put_word(kernel, &kernel->parameters, index, kTypeInteger, GPUSIM_ARGUMENT_CORES, 0, 0);
}

int gpusim_kernel_set_core_x(gpusim_kernel* kernel, unsigned index) {
  NEED_KERNEL(kernel);
  return put_shape(kernel, &kernel->parameters, index, kShapeX);
}

int gpusim_kernel_set_core_y(gpusim_kernel* kernel, unsigned index) {
  NEED_KERNEL(kernel);
  return put_shape(kernel, &kernel->parameters, index, kShapeY);
}

int gpusim_kernel_set_columns(gpusim_kernel* kernel, unsigned index) {
  NEED_KERNEL(kernel);
  return put_shape(kernel, &kernel->parameters, index, kShapeColumns);
}

int gpusim_kernel_set_rows(gpusim_kernel* kernel, unsigned index) {
  NEED_KERNEL(kernel);
  return put_shape(kernel, &kernel->parameters, index, kShapeRows);
}

int gpusim_kernel_set_affine(gpusim_kernel* kernel, unsigned index, uint64_t base, uint64_t step) {
  NEED_KERNEL(kernel);
  return put_word(kernel, &kernel->parameters, index, kTypeInteger, GPUSIM_ARGUMENT_AFFINE, base,
                  step);
}

int gpusim_kernel_set_per_core_u64(gpusim_kernel* kernel, unsigned index, const uint64_t* values,
                                   uint32_t count) {
  NEED_KERNEL(kernel);
  return put_table(kernel, &kernel->parameters, index, kTypeInteger, values, count);
}

int gpusim_kernel_set_per_core_double(gpusim_kernel* kernel, unsigned index, const double* values,
                                      uint32_t count) {
  NEED_KERNEL(kernel);
  return put_table(kernel, &kernel->parameters, index, kTypeDouble, values, count);
}

int gpusim_offload_parameters_add(const gpusim_kernel* kernel,
                                  struct gpusim_offload_parameters* all,
                                  const gpusim_value* value) {
  const unsigned index = all->count;
  float number;
  switch (value->kind) {
    case GPUSIM_VALUE_INTEGER:
      return put_word(kernel, all, index, kTypeInteger, GPUSIM_ARGUMENT_VALUE, value->word, 0);
    case GPUSIM_VALUE_FLOAT:
      number = (float)value->number;
      return put_word(kernel, all, index, kTypeFloat, GPUSIM_ARGUMENT_VALUE, bits_of_float(number),
                      0);
    case GPUSIM_VALUE_DOUBLE:
      return put_word(kernel, all, index, kTypeDouble, GPUSIM_ARGUMENT_VALUE,
                      bits_of_double(value->number), 0);
    case GPUSIM_VALUE_BUFFER:
      return put_buffer(kernel, all, index, value->buffer, value->word);
    case GPUSIM_VALUE_STRUCTURE:
      return put_structure(kernel, all, index, value->bytes, value->word);
    case GPUSIM_VALUE_AFFINE:
      return put_word(kernel, all, index, kTypeInteger, GPUSIM_ARGUMENT_AFFINE, value->word,
                      value->step);
    case GPUSIM_VALUE_CORES:
      return put_word(kernel, all, index, kTypeInteger, GPUSIM_ARGUMENT_CORES, 0, 0);
    case GPUSIM_VALUE_X:
      return put_shape(kernel, all, index, kShapeX);
    case GPUSIM_VALUE_Y:
      return put_shape(kernel, all, index, kShapeY);
    case GPUSIM_VALUE_COLUMNS:
      return put_shape(kernel, all, index, kShapeColumns);
    case GPUSIM_VALUE_ROWS:
      return put_shape(kernel, all, index, kShapeRows);
    default:
      return fail(GPUSIM_INVALID_ARGUMENT, "argument %u of a launch: no kind %u of value", index,
                  (unsigned)value->kind);
  }
}

/* SPDX-License-Identifier: MIT */
/*
 * Launching in one line; part of gpusim.h.
 *
 *   gpusim_launch(queue, kernel, cores, argument...)
 *   gpusim_launch_2d(queue, kernel, columns, rows, argument...)
 *   gpusim_launch_event(queue, kernel, &event, cores, argument...)
 *
 * enqueue the kernel with these arguments, up to 16; what gpusim_kernel_set_... set is not used. An
 * argument is an integer, a float, a double, a pointer (which cores can follow only where addresses
 * are unified), a buffer (its device address), or one of
 *
 *   GPUSIM_CORE, GPUSIM_CORES, GPUSIM_X, GPUSIM_Y, GPUSIM_COLUMNS, GPUSIM_ROWS
 *   GPUSIM_AFFINE(base, step)           base + core * step
 *   GPUSIM_AT(buffer, offset_bytes)     an address in a buffer
 *   GPUSIM_STRUCTURE(variable)          a structure by value
 *
 * Macros in C11. In C++ they are function templates: gpusim::launch, launch_2d, launch_event. They
 * return a status.
 */
#ifndef GPUSIM_LAUNCH_H
#define GPUSIM_LAUNCH_H

#include "gpusim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpusim_value_kind {
	GPUSIM_VALUE_INTEGER = 1,
	GPUSIM_VALUE_FLOAT,
	GPUSIM_VALUE_DOUBLE,
	GPUSIM_VALUE_BUFFER,
	GPUSIM_VALUE_STRUCTURE,
	GPUSIM_VALUE_AFFINE,
	GPUSIM_VALUE_CORES,
	GPUSIM_VALUE_X,
	GPUSIM_VALUE_Y,
	GPUSIM_VALUE_COLUMNS,
	GPUSIM_VALUE_ROWS,
};

typedef struct gpusim_value {
	uint32_t kind; /* enum gpusim_value_kind */
	uint64_t word; /* an integer, a base, an offset, a size in bytes */
	uint64_t step;
	double number;
	gpusim_buffer *buffer;
	const void *bytes;
} gpusim_value;

/* The function behind them. `rows` is 1 unless the cores are a rectangle. */
int gpusim_launch_values(gpusim_queue *queue, gpusim_kernel *kernel, uint32_t columns,
			 uint32_t rows, unsigned value_count, const gpusim_value *values,
			 gpusim_event **event);

static inline gpusim_value gpusim_value_make(uint32_t kind, uint64_t word, uint64_t step,
					     double number, gpusim_buffer *buffer,
					     const void *bytes)
{
	gpusim_value value;

	value.kind = kind;
	value.word = word;
	value.step = step;
	value.number = number;
	value.buffer = buffer;
	value.bytes = bytes;
	return value;
}

#define GPUSIM_VALUE_OF_KIND(kind, word, step) gpusim_value_make(kind, word, step, 0, NULL, NULL)
#define GPUSIM_AFFINE(base, step) \
	GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_AFFINE, (uint64_t)(base), (uint64_t)(step))
#define GPUSIM_CORE GPUSIM_AFFINE(0, 1)
#define GPUSIM_CORES GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_CORES, 0, 0)
#define GPUSIM_X GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_X, 0, 0)
#define GPUSIM_Y GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_Y, 0, 0)
#define GPUSIM_COLUMNS GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_COLUMNS, 0, 0)
#define GPUSIM_ROWS GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_ROWS, 0, 0)
#define GPUSIM_AT(buffer, offset_bytes) \
	gpusim_value_make(GPUSIM_VALUE_BUFFER, (uint64_t)(offset_bytes), 0, 0, (buffer), NULL)
#define GPUSIM_STRUCTURE(variable) \
	gpusim_value_make(GPUSIM_VALUE_STRUCTURE, sizeof(variable), 0, 0, NULL, &(variable))

#ifdef __cplusplus
} /* extern "C" */

namespace gpusim
{

inline gpusim_value value_of(float number)
{
	return gpusim_value_make(GPUSIM_VALUE_FLOAT, 0, 0, static_cast<double>(number), nullptr, nullptr);
}
inline gpusim_value value_of(double number)
{
	return gpusim_value_make(GPUSIM_VALUE_DOUBLE, 0, 0, number, nullptr, nullptr);
}
inline gpusim_value value_of(gpusim_buffer *buffer) { return GPUSIM_AT(buffer, 0); }
inline gpusim_value value_of(const gpusim_value &value) { return value; }
template <class T>
inline gpusim_value value_of(T *pointer)
{
	return gpusim_value_make(GPUSIM_VALUE_INTEGER, reinterpret_cast<uintptr_t>(pointer), 0, 0,
				 nullptr, nullptr);
}
template <class T>
inline gpusim_value value_of(T integer)
{
	return gpusim_value_make(GPUSIM_VALUE_INTEGER, static_cast<uint64_t>(integer), 0, 0, nullptr,
				 nullptr);
}

template <class... Arguments>
inline int launch_2d(gpusim_queue *queue, gpusim_kernel *kernel, uint32_t columns,
		     uint32_t rows, const Arguments &...arguments)
{
	const gpusim_value values[] = {value_of(arguments)..., GPUSIM_CORES};
	return gpusim_launch_values(queue, kernel, columns, rows, sizeof...(arguments), values,
				    nullptr);
}
template <class... Arguments>
inline int launch_event(gpusim_queue *queue, gpusim_kernel *kernel, gpusim_event **event,
			uint32_t cores, const Arguments &...arguments)
{
	const gpusim_value values[] = {value_of(arguments)..., GPUSIM_CORES};
	return gpusim_launch_values(queue, kernel, cores, 1, sizeof...(arguments), values, event);
}
template <class... Arguments>
inline int launch(gpusim_queue *queue, gpusim_kernel *kernel, uint32_t cores,
		  const Arguments &...arguments)
{
	return launch_event(queue, kernel, nullptr, cores, arguments...);
}

} /* namespace gpusim */
#else

static inline gpusim_value gpusim_value_integer(int64_t integer)
{
	return GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_INTEGER, (uint64_t)integer, 0);
}
static inline gpusim_value gpusim_value_unsigned(uint64_t integer)
{
	return GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_INTEGER, integer, 0);
}
static inline gpusim_value gpusim_value_float(float number)
{
	return gpusim_value_make(GPUSIM_VALUE_FLOAT, 0, 0, (double)number, NULL, NULL);
}
static inline gpusim_value gpusim_value_double(double number)
{
	return gpusim_value_make(GPUSIM_VALUE_DOUBLE, 0, 0, number, NULL, NULL);
}
static inline gpusim_value gpusim_value_buffer(gpusim_buffer *buffer)
{
	return GPUSIM_AT(buffer, 0);
}
static inline gpusim_value gpusim_value_pointer(const volatile void *pointer)
{
	return GPUSIM_VALUE_OF_KIND(GPUSIM_VALUE_INTEGER, (uint64_t)(uintptr_t)pointer, 0);
}
static inline gpusim_value gpusim_value_itself(gpusim_value value) { return value; }

#define GPUSIM_VALUE_(x) \
	_Generic((x), \
		gpusim_value: gpusim_value_itself, gpusim_buffer *: gpusim_value_buffer, \
		float: gpusim_value_float, double: gpusim_value_double, \
		_Bool: gpusim_value_unsigned, char: gpusim_value_integer, \
		signed char: gpusim_value_integer, unsigned char: gpusim_value_unsigned, \
		short: gpusim_value_integer, unsigned short: gpusim_value_unsigned, \
		int: gpusim_value_integer, unsigned: gpusim_value_unsigned, \
		long: gpusim_value_integer, unsigned long: gpusim_value_unsigned, \
		long long: gpusim_value_integer, unsigned long long: gpusim_value_unsigned, \
		default: gpusim_value_pointer)(x)

/* The number of what follows the first one, and that as a list. */
#define GPUSIM_COUNT_(...) \
	GPUSIM_17TH_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define GPUSIM_17TH_(h, a, b, c, d, e, f, g, i, j, k, l, m, n, o, p, q, count, ...) count
#define GPUSIM_JOIN_(a, b) GPUSIM_JOIN2_(a, b)
#define GPUSIM_JOIN2_(a, b) a##b
#define GPUSIM_FIRST_(...) GPUSIM_FIRST2_(__VA_ARGS__, 0)
#define GPUSIM_FIRST2_(first, ...) first
#define GPUSIM_VALUES_(...) GPUSIM_JOIN_(GPUSIM_V_, GPUSIM_COUNT_(__VA_ARGS__))(__VA_ARGS__)
#define GPUSIM_V_0(h) GPUSIM_CORES
#define GPUSIM_V_1(h, x) GPUSIM_VALUE_(x)
#define GPUSIM_V_2(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_1(h, __VA_ARGS__)
#define GPUSIM_V_3(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_2(h, __VA_ARGS__)
#define GPUSIM_V_4(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_3(h, __VA_ARGS__)
#define GPUSIM_V_5(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_4(h, __VA_ARGS__)
#define GPUSIM_V_6(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_5(h, __VA_ARGS__)
#define GPUSIM_V_7(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_6(h, __VA_ARGS__)
#define GPUSIM_V_8(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_7(h, __VA_ARGS__)
#define GPUSIM_V_9(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_8(h, __VA_ARGS__)
#define GPUSIM_V_10(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_9(h, __VA_ARGS__)
#define GPUSIM_V_11(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_10(h, __VA_ARGS__)
#define GPUSIM_V_12(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_11(h, __VA_ARGS__)
#define GPUSIM_V_13(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_12(h, __VA_ARGS__)
#define GPUSIM_V_14(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_13(h, __VA_ARGS__)
#define GPUSIM_V_15(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_14(h, __VA_ARGS__)
#define GPUSIM_V_16(h, x, ...) GPUSIM_VALUE_(x), GPUSIM_V_15(h, __VA_ARGS__)

/* `...` begins with the last number of cores, so that there may be no argument. */
#define GPUSIM_LAUNCH_(queue, kernel, event, columns, rows, ...) \
	gpusim_launch_values(queue, kernel, columns, rows, GPUSIM_COUNT_(__VA_ARGS__), \
			     (const gpusim_value[]){GPUSIM_VALUES_(__VA_ARGS__)}, event)
#define gpusim_launch(queue, kernel, ...) \
	GPUSIM_LAUNCH_(queue, kernel, NULL, GPUSIM_FIRST_(__VA_ARGS__), 1, __VA_ARGS__)
#define gpusim_launch_event(queue, kernel, event, ...) \
	GPUSIM_LAUNCH_(queue, kernel, event, GPUSIM_FIRST_(__VA_ARGS__), 1, __VA_ARGS__)
#define gpusim_launch_2d(queue, kernel, columns, ...) \
	GPUSIM_LAUNCH_(queue, kernel, NULL, columns, GPUSIM_FIRST_(__VA_ARGS__), __VA_ARGS__)
#endif

#endif

/* What a program without a C library needs: start-up, two system calls, output by the line.
 * One translation unit per program, so everything may be static. */
#ifndef GPUSIM_TESTS_BARE_H
#define GPUSIM_TESTS_BARE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NOINLINE __attribute__((noinline))

int main(); /* with or without parameters */

/* Linux's convention: the number and three arguments in the ISA's registers. */
#if defined(__aarch64__)
#define NUMBER_REGISTER "x8"
#define ARGUMENT_REGISTER(n) "x" #n
#define CALL_INSTRUCTION "svc #0"
#elif defined(__riscv)
#define NUMBER_REGISTER "a7"
#define ARGUMENT_REGISTER(n) "a" #n
#define CALL_INSTRUCTION "ecall"
#endif

static long system_call(long number, long a, long b, long c) {
  register long n __asm__(NUMBER_REGISTER) = number;
  register long r0 __asm__(ARGUMENT_REGISTER(0)) = a;
  register long r1 __asm__(ARGUMENT_REGISTER(1)) = b;
  register long r2 __asm__(ARGUMENT_REGISTER(2)) = c;
  __asm__ volatile(CALL_INSTRUCTION : "+r"(r0) : "r"(n), "r"(r1), "r"(r2) : "memory");
  return r0;
}

static char out_buffer[1024];
static size_t out_used;

static void out_flush(void) {
  system_call(64, 1, (long)out_buffer, (long)out_used);
  out_used = 0;
}

static void out_char(char c) {
  out_buffer[out_used++] = c;
  if (c == '\n' || out_used == sizeof out_buffer) out_flush();
}

__attribute__((noreturn, used)) static void bare_exit(int status) {
  if (out_used) out_flush();
  for (;;) system_call(94, status, 0, 0);
}

__attribute__((noreturn, used)) static void bare_start(long* stack) {
  bare_exit(main((int)stack[0], (char**)(stack + 1)));
}

#if defined(__aarch64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  b bare_start\n");
#elif defined(__riscv)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  .option push\n"
    "  .option norelax\n"
    "  la gp, __global_pointer$\n"
    "  .option pop\n"
    "  mv a0, sp\n"
    "  j bare_start\n");
#endif

/* The compiler calls these four by name. */
void* memcpy(void* restrict to, const void* restrict from, size_t count) {
  unsigned char* d = to;
  const unsigned char* s = from;
  while (count--) *d++ = *s++;
  return to;
}

void* memmove(void* to, const void* from, size_t count) {
  unsigned char* d = to;
  const unsigned char* s = from;
  if (d <= s) {
    while (count--) *d++ = *s++;
  } else {
    while (count--) d[count] = s[count];
  }
  return to;
}

void* memset(void* to, int value, size_t count) {
  unsigned char* d = to;
  while (count--) *d++ = (unsigned char)value;
  return to;
}

int memcmp(const void* left, const void* right, size_t count) {
  const unsigned char *a = left, *b = right;
  for (; count--; a++, b++) {
    if (*a != *b) return *a - *b;
  }
  return 0;
}

__attribute__((unused)) static size_t length_of(const char* text) {
  size_t n = 0;
  while (text[n]) n++;
  return n;
}

static void out_text(const char* text) {
  while (*text) out_char(*text++);
}

static void out_unsigned(uint64_t value, unsigned base, int width) {
  char digits[64];
  int n = 0;
  do {
    digits[n++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value);
  while (n < width) digits[n++] = '0';
  while (n) out_char(digits[--n]);
}

/* %d %u %x (32 bits, with l: 64), %s %c; a width counts for %x and %u and fills with zeros. */
__attribute__((unused)) static void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  for (; *format; format++) {
    if (*format != '%') {
      out_char(*format);
      continue;
    }
    int width = 0, is_long = 0;
    for (format++; *format >= '0' && *format <= '9'; format++) width = width * 10 + *format - '0';
    if (*format == 'l') is_long = 1, format++;
    switch (*format) {
      case 'd': {
        int64_t value = is_long ? va_arg(arguments, int64_t) : va_arg(arguments, int);
        if (value < 0) out_char('-');
        out_unsigned(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 0);
        break;
      }
      case 'u':
      case 'x':
        out_unsigned(is_long ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned),
                     *format == 'u' ? 10 : 16, width);
        break;
      case 's':
        out_text(va_arg(arguments, const char*));
        break;
      case 'c':
        out_char((char)va_arg(arguments, int));
        break;
      default:
        out_char(*format);
    }
  }
  va_end(arguments);
}

/* A linear congruential generator: the tests' source of numbers. */
static uint64_t random_state = 0x2545f4914f6cdd1dULL;

__attribute__((unused)) static uint32_t next_random(void) {
  random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (uint32_t)(random_state >> 33);
}

/* Keeps a value from being computed at compile time. */
#define OPAQUE(value)                \
  ({                                 \
    __typeof__(value) v_ = (value);  \
    __asm__ volatile("" : "+r"(v_)); \
    v_;                              \
  })

#endif

// Text output: the same in the guest and natively.
#include "gpusim_guest.h"

// ---- Text ------------------------------------------------------------------------------------

static void add_char(gpusim_line_t* line, char c) {
  // One place is kept for the newline.
  if (line->length + 1 < sizeof line->text) line->text[line->length++] = c;
}

void gpusim_line_start(gpusim_line_t* line) { line->length = 0; }

void gpusim_line_str(gpusim_line_t* line, const char* text) {
  for (; *text != 0; ++text) add_char(line, *text);
}

static void add_decimal(gpusim_line_t* line, uint64_t value, int min_digits) {
  char digits[20];
  int n = 0;
  do {
    digits[n++] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  for (int i = n; i < min_digits; ++i) add_char(line, '0');
  while (n > 0) add_char(line, digits[--n]);
}

void gpusim_line_u64(gpusim_line_t* line, uint64_t value) { add_decimal(line, value, 1); }

void gpusim_line_i64(gpusim_line_t* line, int64_t value) {
  if (value < 0) add_char(line, '-');
  add_decimal(line, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void gpusim_line_hex(gpusim_line_t* line, uint64_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    add_char(line, "0123456789abcdef"[i < 16 ? (value >> (4 * i)) & 15 : 0]);
  }
}

void gpusim_line_f64(gpusim_line_t* line, double value, int decimals) {
  uint64_t scale = 1;
  for (int i = 0; i < decimals && i < 9; ++i) scale *= 10;
  if (value < 0) add_char(line, '-');
  const double magnitude = value < 0 ? -value : value;
  const uint64_t scaled = (uint64_t)(magnitude * (double)scale + 0.5);
  add_decimal(line, scaled / scale, 1);
  if (scale == 1) return;
  add_char(line, '.');
  add_decimal(line, scaled % scale, decimals < 9 ? decimals : 9);
}

int gpusim_line_write(gpusim_line_t* line, int fd) {
  line->text[line->length++] = '\n';
  const int result = gpusim_write_all(fd, line->text, line->length);
  line->length = 0;
  return result;
}

int gpusim_puts(const char* text) {
  size_t n = 0;
  while (text[n] != 0) ++n;
  return gpusim_write_all(GPUSIM_STDOUT, text, n);
}

// gpusim_printf(): text from a format, made on the core, without locks and without a C library.
#include <stdarg.h>

#include "gpusim_guest.h"

// ---- Output ----------------------------------------------------------------------------------

typedef struct {
  char* to;
  size_t room;    // with the zero at the end
  size_t length;  // of the whole text
} text_t;

static void put(text_t* t, char c) {
  if (t->length + 1 < t->room) t->to[t->length] = c;
  ++t->length;
}

static void put_many(text_t* t, char c, int count) {
  for (; count > 0; --count) put(t, c);
}

// ---- What stands behind a % ------------------------------------------------------------------

typedef struct {
  int left, plus, space, alternative, zero;  // flags
  int width;
  int precision;  // -1: none
} spec_t;

// `prefix` (sign, 0x) and `body_length` characters, which the caller puts behind this; afterwards
// pad_right().
static void pad_left(text_t* t, const spec_t* s, const char* prefix, int body_length, int zero) {
  int length = body_length;
  for (const char* p = prefix; *p != 0; ++p) ++length;
  if (!s->left && !zero) put_many(t, ' ', s->width - length);
  for (const char* p = prefix; *p != 0; ++p) put(t, *p);
  if (!s->left && zero) put_many(t, '0', s->width - length);
}

static void pad_right(text_t* t, const spec_t* s, size_t begin) {
  if (s->left) put_many(t, ' ', s->width - (int)(t->length - begin));
}

static const char* sign_of(const spec_t* s, int is_negative) {
  return is_negative ? "-" : s->plus ? "+" : s->space ? " " : "";
}

static void put_integer(text_t* t, const spec_t* s, uint64_t value, unsigned base, int is_upper,
                        const char* prefix) {
  char digits[24];
  int count = 0;
  const size_t begin = t->length;
  for (uint64_t v = value; v != 0; v /= base) {
    digits[count++] = (is_upper ? "0123456789ABCDEF" : "0123456789abcdef")[v % base];
  }
  int wanted = s->precision < 0 ? 1 : s->precision;
  if (base == 8 && s->alternative && wanted <= count) wanted = count + 1;
  const int zeroes = wanted > count ? wanted - count : 0;
  pad_left(t, s, prefix, count + zeroes, s->zero && s->precision < 0);
  put_many(t, '0', zeroes);
  while (count > 0) put(t, digits[--count]);
  pad_right(t, s, begin);
}

static void put_string(text_t* t, const spec_t* s, const char* text) {
  const size_t begin = t->length;
  if (text == 0) text = "(null)";
  int length = 0;
  while (length != s->precision && text[length] != 0) ++length;
  pad_left(t, s, "", length, 0);
  for (int i = 0; i < length; ++i) put(t, text[i]);
  pad_right(t, s, begin);
}

// ---- Floating point, exact -------------------------------------------------------------------

// m * 2^e has finitely many decimal digits: those of m * 2^e, or of m * 5^-e with -e of them behind
// the point. 767 is the most that a double can have.
enum { kWords = 90, kMostDigits = 9 * kWords, kBase = 1000000000 };

typedef struct {
  char digit[kMostDigits + 1];  // 0 to 9, the first one not 0; one more for a carry
  int count;
  int point;  // the value is 0.ddd * 10^point
} decimal_t;

static void multiply(uint32_t* words, int* count, uint32_t factor) {
  uint64_t carry = 0;
  for (int i = 0; i < *count; ++i) {
    carry += (uint64_t)words[i] * factor;
    words[i] = (uint32_t)(carry % kBase);
    carry /= kBase;
  }
  for (; carry != 0; carry /= kBase) words[(*count)++] = (uint32_t)(carry % kBase);
}

// Finite, not negative.
static void to_decimal(uint64_t bits, decimal_t* d) {
  uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
  int exponent = (int)(bits >> 52);
  if (exponent != 0) {
    mantissa |= UINT64_C(1) << 52;
  } else {
    exponent = 1;
  }
  exponent -= 1075;
  d->count = d->point = 0;
  if (mantissa == 0) return;
  for (; (mantissa & 1) == 0; mantissa >>= 1) ++exponent;
  uint32_t words[kWords];
  int count = 0;
  for (uint64_t m = mantissa; m != 0; m /= kBase) words[count++] = (uint32_t)(m % kBase);
  const int behind = exponent < 0 ? -exponent : 0;
  const uint32_t two_29 = UINT32_C(1) << 29, five_13 = UINT32_C(1220703125);
  for (; exponent >= 29; exponent -= 29) multiply(words, &count, two_29);
  for (; exponent > 0; --exponent) multiply(words, &count, 2);
  for (; exponent <= -13; exponent += 13) multiply(words, &count, five_13);
  for (; exponent < 0; ++exponent) multiply(words, &count, 5);
  for (int i = count; i-- > 0;) {
    for (uint32_t place = kBase / 10; place != 0; place /= 10) {
      const char digit = (char)(words[i] / place % 10);
      if (d->count != 0 || digit != 0) d->digit[d->count++] = digit;
    }
  }
  d->point = d->count - behind;
}

// To so many digits, half to even.
static void round_to(decimal_t* d, int digits) {
  if (digits >= d->count) return;
  if (digits < 0) {
    d->count = 0;
    return;
  }
  int up = d->digit[digits] > 5;
  if (d->digit[digits] == 5) {
    up = digits > 0 && d->digit[digits - 1] % 2 != 0;
    for (int k = digits + 1; k < d->count; ++k) up |= d->digit[k] != 0;
  }
  d->count = digits;
  if (!up) return;
  int i = digits - 1;
  for (; i >= 0 && d->digit[i] == 9; --i) d->digit[i] = 0;
  if (i >= 0) {
    ++d->digit[i];
    return;
  }
  // All were nines, or there were none: 10...
  d->digit[0] = 1;
  for (int k = 1; k < digits; ++k) d->digit[k] = 0;
  d->count = digits > 0 ? digits : 1;
  ++d->point;
}

static char digit_at(const decimal_t* d, int place) {
  return (char)('0' + (place >= 0 && place < d->count ? d->digit[place] : 0));
}

// ddd.ddd
static void put_fixed(text_t* t, const spec_t* s, const decimal_t* d, int precision,
                      const char* sign) {
  const int before = d->point > 0 && d->count > 0 ? d->point : 1;
  const int has_point = precision > 0 || s->alternative;
  pad_left(t, s, sign, before + has_point + precision, s->zero);
  const int first = d->count > 0 ? d->point - before : 0;  // of digits, before the point
  for (int i = 0; i < before; ++i) put(t, digit_at(d, first + i));
  if (has_point) put(t, '.');
  for (int i = 0; i < precision; ++i) put(t, digit_at(d, first + before + i));
}

// d.ddde+dd
static void put_scientific(text_t* t, const spec_t* s, const decimal_t* d, int precision,
                           int is_upper, const char* sign) {
  int exponent = d->count > 0 ? d->point - 1 : 0;
  const int has_point = precision > 0 || s->alternative;
  const int magnitude = exponent < 0 ? -exponent : exponent;
  pad_left(t, s, sign, 1 + has_point + precision + (magnitude >= 100 ? 5 : 4), s->zero);
  put(t, digit_at(d, 0));
  if (has_point) put(t, '.');
  for (int i = 1; i <= precision; ++i) put(t, digit_at(d, i));
  put(t, is_upper ? 'E' : 'e');
  put(t, exponent < 0 ? '-' : '+');
  if (magnitude >= 100) put(t, (char)('0' + magnitude / 100));
  put(t, (char)('0' + magnitude / 10 % 10));
  put(t, (char)('0' + magnitude % 10));
}

static void put_double(text_t* t, const spec_t* s, double value, char conversion) {
  const size_t begin = t->length;
  const int is_upper = conversion < 'a';
  if (is_upper) conversion = (char)(conversion - 'A' + 'a');
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const char* const sign = sign_of(s, (int)(bits >> 63));
  bits &= ~(UINT64_C(1) << 63);
  const uint64_t infinity = UINT64_C(0x7ff) << 52;
  if (bits >= infinity) {
    const char* const name = bits > infinity ? (is_upper ? "NAN" : "nan")
                             : is_upper      ? "INF"
                                             : "inf";
    pad_left(t, s, sign, 3, 0);
    for (int i = 0; i < 3; ++i) put(t, name[i]);
    pad_right(t, s, begin);
    return;
  }
  decimal_t d;
  to_decimal(bits, &d);
  int precision = s->precision < 0 ? 6 : s->precision;
  if (conversion == 'e') {
    round_to(&d, precision + 1);
    put_scientific(t, s, &d, precision, is_upper, sign);
  } else if (conversion == 'f') {
    // What is rounded away as a whole leaves zero or one.
    if (d.count > 0) round_to(&d, d.point + precision);
    put_fixed(t, s, &d, precision, sign);
  } else {
    // C11 7.21.6.1: of P significant digits; without zeroes at the end unless there is a #.
    if (precision == 0) precision = 1;
    round_to(&d, precision);
    const int exponent = d.count > 0 ? d.point - 1 : 0;
    const int is_fixed = exponent >= -4 && exponent < precision;
    int shown = is_fixed ? precision - 1 - exponent : precision - 1;
    if (!s->alternative) {
      while (d.count > 0 && d.digit[d.count - 1] == 0) --d.count;
      const int needed = is_fixed ? d.count - 1 - exponent : d.count - 1;
      if (needed < shown) shown = needed > 0 ? needed : 0;
    }
    if (is_fixed) {
      put_fixed(t, s, &d, shown, sign);
    } else {
      put_scientific(t, s, &d, shown, is_upper, sign);
    }
  }
  pad_right(t, s, begin);
}

// ---- The format ------------------------------------------------------------------------------

static const char* read_flags(const char* f, spec_t* s) {
  for (;; ++f) {
    switch (*f) {
      case '-':
        s->left = 1;
        break;
      case '+':
        s->plus = 1;
        break;
      case ' ':
        s->space = 1;
        break;
      case '#':
        s->alternative = 1;
        break;
      case '0':
        s->zero = 1;
        break;
      default:
        return f;
    }
  }
}

// At most 9,999: a core's text is short.
static const char* read_number(const char* f, int* number) {
  for (*number = 0; *f >= '0' && *f <= '9'; ++f) {
    *number = *number * 10 + (*f - '0');
    if (*number > 9999) *number = 9999;
  }
  return f;
}

// Of an integer: hh -2, h -1, none 0, l and what has its size 1, ll and j 2.
static const char* read_length(const char* f, int* length) {
  for (*length = 0;; ++f) {
    if (*f == 'h') {
      --*length;
    } else if (*f == 'j' || (*f == 'l' && *length == 1)) {
      *length = 2;
    } else if (*f == 'l' || *f == 'z' || *f == 't') {
      *length = 1;
    } else {
      return f;
    }
  }
}

static uint64_t narrowed(uint64_t value, int length, int is_signed) {
  if (length > 1) return value;
  if (is_signed) {
    const int64_t v = length == 1 ? (long)value : length == 0 ? (int32_t)value : length == -1 ? (int16_t)value : (int8_t)value;
    return (uint64_t)v;
  }
  return length == 1 ? (unsigned long)value : length == 0 ? (uint32_t)value : length == -1 ? (uint16_t)value : (uint8_t)value;
}

int gpusim_vsnprintf(char* to, size_t size_bytes, const char* format, va_list arguments) {
  _Static_assert(sizeof(size_t) == sizeof(long) && sizeof(ptrdiff_t) == sizeof(long) &&
                     sizeof(intmax_t) == sizeof(long long),
                 "read_length");
  text_t t = {to, size_bytes, 0};
  va_list args;
  va_copy(args, arguments);
  for (const char* f = format; *f != 0; ++f) {
    if (*f != '%') {
      put(&t, *f);
      continue;
    }
    const char* const begin = f;
    spec_t s = {0, 0, 0, 0, 0, 0, -1};
    f = read_flags(f + 1, &s);
    if (*f == '*') {
      s.width = va_arg(args, int);
      if (s.width < 0) s.left = 1;
      if (s.width < 0) s.width = s.width < -9999 ? 9999 : -s.width;
      ++f;
    } else {
      f = read_number(f, &s.width);
    }
    if (*f == '.' && f[1] == '*') {
      s.precision = va_arg(args, int);
      if (s.precision < 0) s.precision = -1;
      if (s.precision > 9999) s.precision = 9999;
      f += 2;
    } else if (*f == '.') {
      f = read_number(f + 1, &s.precision);
    }
    int length;
    f = read_length(f, &length);
    if (*f == 'd' || *f == 'i') {
      const int64_t read = length > 1   ? va_arg(args, long long)
                           : length > 0 ? va_arg(args, long)
                                        : va_arg(args, int);
      const int64_t v = (int64_t)narrowed((uint64_t)read, length, 1);
      put_integer(&t, &s, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10, 0, sign_of(&s, v < 0));
    } else if (*f == 'u' || *f == 'o' || *f == 'x' || *f == 'X') {
      const uint64_t read = length > 1   ? va_arg(args, unsigned long long)
                            : length > 0 ? va_arg(args, unsigned long)
                                         : va_arg(args, unsigned);
      const uint64_t v = narrowed(read, length, 0);
      const int is_hex = *f == 'x' || *f == 'X';
      const char* const prefix = !is_hex || !s.alternative || v == 0 ? "" : *f == 'x' ? "0x" : "0X";
      put_integer(&t, &s, v, is_hex ? 16 : *f == 'o' ? 8 : 10, *f == 'X', prefix);
    } else if (*f == 'p') {
      put_integer(&t, &s, (uint64_t)(uintptr_t)va_arg(args, void*), 16, 0, "0x");
    } else if (*f == 'c') {
      const char text[2] = {(char)va_arg(args, int), 0};
      s.precision = -1;
      const size_t start = t.length;
      pad_left(&t, &s, "", 1, 0);
      put(&t, text[0]);
      pad_right(&t, &s, start);
    } else if (*f == 's') {
      put_string(&t, &s, va_arg(args, const char*));
    } else if (*f == 'f' || *f == 'F' || *f == 'e' || *f == 'E' || *f == 'g' || *f == 'G') {
      put_double(&t, &s, va_arg(args, double), *f);
    } else if (*f == '%') {
      put(&t, '%');
    } else {
      // Nothing that is known here: as it stands, and whatever follows, whose arguments are lost.
      for (f = begin; *f != 0; ++f) put(&t, *f);
      break;
    }
  }
  va_end(args);
  if (size_bytes != 0) to[t.length < size_bytes ? t.length : size_bytes - 1] = 0;
  return (int)t.length;
}

int gpusim_snprintf(char* to, size_t size_bytes, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = gpusim_vsnprintf(to, size_bytes, format, arguments);
  va_end(arguments);
  return length;
}

int gpusim_vprintf(const char* format, va_list arguments) {
  char text[GPUSIM_MOST_PRINTED + 1];
  const int length = gpusim_vsnprintf(text, sizeof text, format, arguments);
  size_t size = (size_t)length;
  if (size > GPUSIM_MOST_PRINTED) {
    size = GPUSIM_MOST_PRINTED;
    __builtin_memcpy(text + size - 4, "...\n", 4);
  }
  return gpusim_write_all(GPUSIM_STDOUT, text, size) == 0 ? length : -1;
}

int gpusim_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = gpusim_vprintf(format, arguments);
  va_end(arguments);
  return length;
}

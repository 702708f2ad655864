// A recursive-descent JSON parser that prints what it finds, and refuses what is wrong.
#include "bare.h"

static const char* at;
static int depth_limit;

static NOINLINE int value(int depth);

static void blanks(void) {
  while (*at == ' ' || *at == '\n' || *at == '\t') at++;
}

static NOINLINE int string(void) {
  at++;
  out_char('"');
  for (; *at != '"'; at++) {
    if (!*at) return 0;
    if (*at == '\\') {
      at++;
      if (*at == 'n')
        out_text("<nl>");
      else if (*at == 'u') {
        unsigned code = 0;
        for (int i = 0; i < 4; i++) {
          char c = *++at;
          if (c >= '0' && c <= '9')
            code = code * 16 + (unsigned)(c - '0');
          else if (c >= 'a' && c <= 'f')
            code = code * 16 + (unsigned)(c - 'a') + 10;
          else
            return 0;
        }
        print("<u%x>", code);
      } else
        out_char(*at);
    } else
      out_char(*at);
  }
  at++;
  out_char('"');
  return 1;
}

static NOINLINE int number(void) {
  int64_t n = 0;
  int negative = *at == '-', digits = 0, exponent = 0;
  at += negative;
  for (; *at >= '0' && *at <= '9'; at++, digits++) n = n * 10 + *at - '0';
  if (*at == '.')
    for (at++; *at >= '0' && *at <= '9'; at++, digits++, exponent--) n = n * 10 + *at - '0';
  print("%ldE%d", negative ? -n : n, exponent);
  return digits > 0;
}

static int word(const char* w) {
  size_t n = length_of(w);
  if (memcmp(at, w, n) != 0) return 0;
  at += n;
  print("<%s>", w);
  return 1;
}

static NOINLINE int list(int depth, char close, int keyed) {
  out_char(*at++);
  blanks();
  if (*at == close) return out_char(*at++), 1;
  for (;;) {
    if (keyed) {
      blanks();
      if (*at != '"' || !string()) return 0;
      blanks();
      if (*at++ != ':') return 0;
      out_char('=');
    }
    if (!value(depth + 1)) return 0;
    blanks();
    if (*at == close) return out_char(*at++), 1;
    if (*at++ != ',') return 0;
    out_char(';');
  }
}

static int value(int depth) {
  if (depth > depth_limit) return 0;
  blanks();
  switch (*at) {
    case '{':
      return list(depth, '}', 1);
    case '[':
      return list(depth, ']', 0);
    case '"':
      return string();
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      return number();
  }
}

int main(void) {
  static const char* const documents[] = {
      "{\"name\": \"core\", \"ids\": [1, 2, -3.25, 4e], \"on\": true}",
      "{\"a\": {\"b\": {\"c\": [[], {}, [null, false, \"x\\ny\\u00e9\"]]}}, \"n\": 12345678901}",
      "[1, 2, 3.1415, -0, 1000000]",
      "[1, 2",
      "{\"k\" 1}",
      "[[[[[[[[[[[[]]]]]]]]]]]]",
      "  \"alone\"  ",
      "nul0000"};
  depth_limit = 8;
  for (size_t i = 0; i < LENGTH(documents); i++) {
    at = documents[i];
    int ok = value(0);
    print(" -> %s after %d\n", ok ? "good" : "bad", (int)(at - documents[i]));
  }
  return 0;
}

// A backtracking matcher for . * + ? ^ $ [a-z] [^x] and groups of alternatives.
#include "bare.h"

static NOINLINE int match_here(const char* re, const char* s);

static const char* item_end(const char* re) {
  if (*re == '\\') return re + 2;
  if (*re != '[') return re + 1;
  re += re[1] == '^' ? 3 : 2;
  while (*re != ']') re++;
  return re + 1;
}

static NOINLINE int match_item(const char* re, char c) {
  if (!c) return 0;
  if (*re == '.') return 1;
  if (*re == '\\') return re[1] == 'd' ? c >= '0' && c <= '9' : re[1] == c;
  if (*re != '[') return *re == c;
  int negate = re[1] == '^', in = 0;
  for (re += 1 + negate; *re != ']'; re++) {
    if (re[1] == '-' && re[2] != ']') {
      in |= re[0] <= c && c <= re[2];
      re += 2;
    } else {
      in |= *re == c;
    }
  }
  return in != negate;
}

static NOINLINE int match_repeat(const char* re, const char* rest, const char* s, int least,
                                 int most) {
  int n = 0;
  while (n < most && match_item(re, s[n])) n++;
  for (; n >= least; n--)
    if (match_here(rest, s + n)) return 1;
  return 0;
}

static int match_here(const char* re, const char* s) {
  if (!*re) return 1;
  if (re[0] == '$' && !re[1]) return !*s;
  const char* end = item_end(re);
  switch (*end) {
    case '*':
      return match_repeat(re, end + 1, s, 0, 1000);
    case '+':
      return match_repeat(re, end + 1, s, 1, 1000);
    case '?':
      return match_repeat(re, end + 1, s, 0, 1);
    default:
      return match_item(re, *s) && match_here(end, s + 1);
  }
}

static NOINLINE int match(const char* re, const char* s) {
  if (*re == '^') return match_here(re + 1, s) ? 0 : -1;
  for (int i = 0;; i++) {
    if (match_here(re, s + i)) return i;
    if (!s[i]) return -1;
  }
}

int main(void) {
  static const char* const patterns[] = {"abc",     "^a.*z$",        "[0-9]+",        "x?y+z*",
                                         "[^a-z ]", "a*a*a*b",       "\\d\\d:\\d\\d", "^$",
                                         "o.o",     "[aeiou][aeiou]"};
  static const char* const texts[] = {"abc",
                                      "",
                                      "a quick brown fox",
                                      "time 12:34 now",
                                      "xyzzy",
                                      "aaaaaaaaaaaaaab",
                                      "aaaaaaaaaaaaaa",
                                      "fooboo",
                                      "az",
                                      "Hello World 42"};
  for (size_t i = 0; i < LENGTH(patterns); i++) {
    print("%s:", patterns[i]);
    for (size_t j = 0; j < LENGTH(texts); j++) print(" %d", match(patterns[i], texts[j]));
    print("\n");
  }
  return 0;
}

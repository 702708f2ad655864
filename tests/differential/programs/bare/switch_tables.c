// Dense, sparse and nested switches; a state machine over text.
#include "bare.h"

static NOINLINE int dense(int x) {
  switch (x) {
    case 0:
      return 17;
    case 1:
      return 4;
    case 2:
      return x * 9;
    case 3:
      return -x;
    case 4:
      return 1 << x;
    case 5:
      return 99;
    case 6:
      return x ^ 0x55;
    case 7:
      return 3;
    case 8:
    case 9:
      return x + 1000;
    case 10:
      return 12345678;
    case 11:
      return -1;
    case 12:
      return x * x * x;
    default:
      return 0;
  }
}

static NOINLINE int sparse(int64_t x) {
  switch (x) {
    case -1000000:
      return 1;
    case -3:
      return 2;
    case 40:
      return 3;
    case 4000:
      return 4;
    case 400000:
      return 5;
    case 40000000:
      return 6;
    case 4000000000:
      return 7;
    case 400000000000:
      return 8;
    default:
      return 9;
  }
}

static NOINLINE int range(char c) {
  switch (c) {
    case '0' ... '9':
      return c - '0';
    case 'a' ... 'f':
      return c - 'a' + 10;
    case 'A' ... 'F':
      return c - 'A' + 10;
    case '_':
      return 100;
    default:
      return -1;
  }
}

enum State { kStart, kWord, kNumber, kString, kComment, kStates };

static NOINLINE void machine(const char* text) {
  int counts[kStates] = {0};
  enum State state = kStart;
  for (; *text; text++) {
    counts[state]++;
    switch (state) {
      case kStart:
        if (*text >= 'a' && *text <= 'z')
          state = kWord;
        else if (*text >= '0' && *text <= '9')
          state = kNumber;
        else if (*text == '"')
          state = kString;
        else if (*text == '#')
          state = kComment;
        break;
      case kWord:
        if (*text == ' ' || *text == '\n') state = kStart;
        break;
      case kNumber:
        if (*text < '0' || *text > '9') state = *text == ' ' ? kStart : kWord;
        break;
      case kString:
        if (*text == '"') state = kStart;
        break;
      default:
        if (*text == '\n') state = kStart;
    }
  }
  for (int i = 0; i < kStates; i++) print("state %d: %d\n", i, counts[i]);
}

int main(void) {
  for (int i = -2; i < 16; i++) print("%d -> %d\n", i, dense(i));
  static const int64_t keys[] = {-1000000, -3,       0,          40,           4000,
                                 400000,   40000000, 4000000000, 400000000000, 5};
  for (size_t i = 0; i < LENGTH(keys); i++) print("%ld -> %d\n", keys[i], sparse(keys[i]));
  for (const char* p = "09afAFgG_ /:@`"; *p; p++) print("%c %d\n", *p, range(*p));
  machine("alpha 12 \"a string\" # a comment\nbeta 7x gamma \"12\" 99 # end\n0");
  return 0;
}

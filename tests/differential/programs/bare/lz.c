// A small LZ77 compressor and run-length coder, both undone again.
#include "bare.h"

static uint8_t input[1200], packed[4000], output[1200];

static NOINLINE size_t compress(const uint8_t* in, size_t n, uint8_t* out) {
  uint16_t head[256];
  size_t at = 0, used = 0;
  memset(head, 0xff, sizeof head);
  while (at < n) {
    size_t best = 0, from = 0;
    unsigned key = at + 2 < n ? (in[at] * 33u ^ in[at + 1] * 7u ^ in[at + 2]) & 255 : 0;
    if (at + 2 < n && head[key] != 0xffff) {
      size_t candidate = head[key], length = 0;
      while (at + length < n && length < 255 && in[candidate + length] == in[at + length]) length++;
      if (length >= 4) best = length, from = candidate;
    }
    if (at + 2 < n) head[key] = (uint16_t)at;
    if (best) {
      size_t distance = at - from;
      out[used++] = 0xff;
      out[used++] = (uint8_t)best;
      out[used++] = (uint8_t)distance;
      out[used++] = (uint8_t)(distance >> 8);
      at += best;
    } else {
      if (in[at] == 0xff)
        out[used++] = 0xff, out[used++] = 0;
      else
        out[used++] = in[at];
      at++;
    }
  }
  return used;
}

static NOINLINE size_t expand(const uint8_t* in, size_t n, uint8_t* out) {
  size_t used = 0;
  for (size_t i = 0; i < n;) {
    if (in[i] != 0xff) {
      out[used++] = in[i++];
    } else if (in[i + 1] == 0) {
      out[used++] = 0xff;
      i += 2;
    } else {
      size_t length = in[i + 1], distance = (size_t)in[i + 2] | (size_t)in[i + 3] << 8;
      for (size_t k = 0; k < length; k++, used++) out[used] = out[used - distance];
      i += 4;
    }
  }
  return used;
}

int main(void) {
  int wrong = 0;
  for (int kind = 0; kind < 4; kind++) {
    for (size_t i = 0; i < sizeof input; i++) {
      uint32_t r = next_random();
      input[i] = (uint8_t)(kind == 0   ? r
                           : kind == 1 ? "abracadabra"[i % 11]
                           : kind == 2 ? i / 100
                           : r % 3     ? 'x'
                                       : r >> 9);
    }
    size_t n = compress(input, sizeof input, packed);
    memset(output, 0, sizeof output);
    size_t m = expand(packed, n, output);
    wrong += m != sizeof input || memcmp(input, output, sizeof input) != 0;
    uint32_t h = 0;
    for (size_t i = 0; i < n; i++) h = h * 131 + packed[i];
    print("kind %d: %u -> %u -> %u, %8x\n", kind, (unsigned)sizeof input, (unsigned)n, (unsigned)m,
          h);
  }
  return wrong;
}

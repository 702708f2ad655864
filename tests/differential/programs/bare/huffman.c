// Huffman codes: frequencies, tree, code lengths, encode, decode.
#include "bare.h"

struct Node {
  unsigned weight;
  int16_t left, right;
};
static struct Node nodes[128];
static uint32_t codes[32];
static uint8_t lengths[32];

static NOINLINE void assign(int node, uint32_t code, uint8_t length) {
  if (nodes[node].left < 0) {
    codes[node] = code;
    lengths[node] = length ? length : 1;
    return;
  }
  assign(nodes[node].left, code << 1, length + 1);
  assign(nodes[node].right, code << 1 | 1, length + 1);
}

static NOINLINE int build(const unsigned* counts, int symbols) {
  int alive[64], n = 0, next = symbols;
  for (int i = 0; i < symbols; i++) {
    nodes[i] = (struct Node){counts[i], -1, -1};
    if (counts[i]) alive[n++] = i;
  }
  while (n > 1) {
    for (int pick = 0; pick < 2; pick++) {
      int best = pick;
      for (int i = pick + 1; i < n; i++)
        if (nodes[alive[i]].weight < nodes[alive[best]].weight) best = i;
      int t = alive[pick];
      alive[pick] = alive[best];
      alive[best] = t;
    }
    nodes[next] = (struct Node){nodes[alive[0]].weight + nodes[alive[1]].weight, (int16_t)alive[0],
                                (int16_t)alive[1]};
    alive[0] = next++;
    alive[1] = alive[--n];
  }
  return alive[0];
}

int main(void) {
  static uint8_t text[600], packed[600], back[600];
  unsigned counts[32] = {0};
  size_t bits = 0;
  for (size_t i = 0; i < sizeof text; i++) {
    uint32_t r = next_random();
    text[i] = (uint8_t)(__builtin_ctz(r | 1 << 20) + (r >> 22 & 3));
    counts[text[i]]++;
  }
  int top = build(counts, 32);
  assign(top, 0, 0);
  for (size_t i = 0; i < sizeof text; i++)
    for (int k = lengths[text[i]] - 1; k >= 0; k--, bits++)
      packed[bits / 8] = (uint8_t)(packed[bits / 8] | (codes[text[i]] >> k & 1) << bits % 8);
  size_t at = 0;
  for (size_t i = 0; i < sizeof text; i++) {
    int node = top;
    while (nodes[node].left >= 0) {
      int bit = packed[at / 8] >> at % 8 & 1;
      at++;
      node = bit ? nodes[node].right : nodes[node].left;
    }
    back[i] = (uint8_t)node;
  }
  for (int i = 0; i < 32; i++)
    if (counts[i]) print("%d: %u times, %d bits, code %x\n", i, counts[i], lengths[i], codes[i]);
  int wrong = memcmp(text, back, sizeof text) != 0;
  print("%u bits, wrong %d\n", (unsigned)bits, wrong);
  return wrong;
}

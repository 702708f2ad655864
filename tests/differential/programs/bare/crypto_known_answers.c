// isa: aarch64
// flags: -march=armv8.2-a+crypto+sha3+sm4
// cpu: max
// The cryptographic instructions in what they are for, on published test vectors: FIPS 197, 180-4 and
// 202, GB/T 32905 and 32907, and the GCM specification's second test case.
#include <arm_neon.h>

#include "bare.h"

static int wrong;

static NOINLINE void check(const char* name, const void* got, const char* want, int bytes) {
  const uint8_t* p = got;
  print("%s ", name);
  for (int i = 0; i < bytes; i++) {
    print("%2x", p[i]);
    for (int k = 0; k < 2; k++) {
      if ("0123456789abcdef"[p[i] >> (4 - 4 * k) & 15] != want[2 * i + k]) wrong++;
    }
  }
  print("\n");
}

// --- AES-128

static uint32_t sub_word(uint32_t w) {
  uint8x16_t same = vreinterpretq_u8_u32(vdupq_n_u32(w));  // columns alike: rows don't shift
  return vgetq_lane_u32(vreinterpretq_u32_u8(vaeseq_u8(same, vdupq_n_u8(0))), 0);
}

static void aes_expand(const uint8_t* key, uint8x16_t out[11]) {
  uint32_t w[44];
  memcpy(w, key, 16);
  uint32_t round = 1;
  for (int i = 4; i < 44; i++) {
    uint32_t t = w[i - 1];
    if (i % 4 == 0) {
      t = sub_word(t >> 8 | t << 24) ^ round;
      round = round << 1 ^ (round >> 7) * 0x11b;
    }
    w[i] = w[i - 4] ^ t;
  }
  for (int i = 0; i < 11; i++) out[i] = vreinterpretq_u8_u32(vld1q_u32(w + 4 * i));
}

static NOINLINE uint8x16_t aes_encrypt(const uint8x16_t k[11], uint8x16_t x) {
  for (int i = 0; i < 9; i++) x = vaesmcq_u8(vaeseq_u8(x, k[i]));
  return veorq_u8(vaeseq_u8(x, k[9]), k[10]);
}

static NOINLINE uint8x16_t aes_decrypt(const uint8x16_t k[11], uint8x16_t x) {
  x = vaesdq_u8(x, k[10]);
  for (int i = 9; i > 0; i--) x = vaesdq_u8(vaesimcq_u8(x), vaesimcq_u8(k[i]));
  return veorq_u8(x, k[0]);
}

static void test_aes(void) {
  uint8_t key[16], text[16], out[16];
  for (int i = 0; i < 16; i++) key[i] = (uint8_t)i, text[i] = (uint8_t)(i * 0x11);
  uint8x16_t k[11];
  aes_expand(key, k);
  uint8x16_t x = aes_encrypt(k, vld1q_u8(text));
  vst1q_u8(out, x);
  check("AES-128", out, "69c4e0d86a7b0430d8cdb78070b4c55a", 16);
  vst1q_u8(out, aes_decrypt(k, x));
  check("AES-128 back", out, "00112233445566778899aabbccddeeff", 16);
}

// --- GCM: bits of every byte reversed, a block is a polynomial of 128 coefficients

static poly128_t product(uint64_t a, uint64_t b) { return vmull_p64((poly64_t)a, (poly64_t)b); }

static NOINLINE uint8x16_t ghash_step(uint8x16_t sum, uint8x16_t block, uint8x16_t h) {
  uint64x2_t a = vreinterpretq_u64_u8(vrbitq_u8(veorq_u8(sum, block)));
  uint64x2_t b = vreinterpretq_u64_u8(vrbitq_u8(h));
  unsigned __int128 low = product(a[0], b[0]), middle = product(a[0], b[1]) ^ product(a[1], b[0]);
  unsigned __int128 high = (unsigned __int128)vmull_high_p64(vreinterpretq_p64_u64(a),
                                                             vreinterpretq_p64_u64(b));
  low ^= middle << 64;
  high ^= middle >> 64;
  // x^128 = x^7 + x^2 + x + 1, twice.
  unsigned __int128 fold = product((uint64_t)(high >> 64), 0x87);
  low ^= fold << 64;
  low ^= product((uint64_t)high ^ (uint64_t)(fold >> 64), 0x87);
  uint64x2_t r = {(uint64_t)low, (uint64_t)(low >> 64)};
  return vrbitq_u8(vreinterpretq_u8_u64(r));
}

static void test_gcm(void) {
  uint8_t counter[16] = {0}, lengths[16] = {0}, out[16];
  uint8x16_t k[11], zero = vdupq_n_u8(0);
  aes_expand(counter, k);
  uint8x16_t h = aes_encrypt(k, zero);
  counter[15] = 1;
  uint8x16_t mask = aes_encrypt(k, vld1q_u8(counter));
  counter[15] = 2;
  uint8x16_t cipher = aes_encrypt(k, vld1q_u8(counter));
  vst1q_u8(out, cipher);
  check("AES-GCM text", out, "0388dace60b6a392f328c2b971b2fe78", 16);
  lengths[15] = 128;
  uint8x16_t sum = ghash_step(ghash_step(zero, cipher, h), vld1q_u8(lengths), h);
  vst1q_u8(out, veorq_u8(sum, mask));
  check("AES-GCM tag", out, "ab6e47d42cec13bdf53a67b21257bddf", 16);
}

// --- SHA-1 and SHA-2 of "abc", one block

// Fractions of the cube roots of the first 80 primes, and of the square roots of the first 8.
static const uint64_t constants[80] = {
    0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
    0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
    0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
    0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
    0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
    0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
    0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
    0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
    0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
    0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
    0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
    0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
    0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
    0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};
static const uint64_t initial[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static void pad_abc(uint8_t* block, int size) {
  memset(block, 0, (size_t)size);
  memcpy(block, "abc\x80", 4);
  block[size - 1] = 24;
}

static NOINLINE void test_sha1(void) {
  uint8_t block[64];
  pad_abc(block, 64);
  uint32x4_t w[4], abcd = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, start = abcd;
  uint32_t e = 0xc3d2e1f0, start_e = e;
  for (int i = 0; i < 4; i++) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * i)));
  static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
  for (int i = 0; i < 20; i++) {
    uint32x4_t x = vaddq_u32(w[i & 3], vdupq_n_u32(k[i / 5]));
    uint32_t next_e = vsha1h_u32(vgetq_lane_u32(abcd, 0));
    abcd = i < 5                ? vsha1cq_u32(abcd, e, x)
           : i >= 10 && i < 15 ? vsha1mq_u32(abcd, e, x)
                                : vsha1pq_u32(abcd, e, x);
    e = next_e;
    w[i & 3] = vsha1su1q_u32(vsha1su0q_u32(w[i & 3], w[(i + 1) & 3], w[(i + 2) & 3]), w[(i + 3) & 3]);
  }
  uint8_t out[20];
  vst1q_u8(out, vrev32q_u8(vreinterpretq_u8_u32(vaddq_u32(abcd, start))));
  e = __builtin_bswap32(e + start_e);
  memcpy(out + 16, &e, 4);
  check("SHA-1", out, "a9993e364706816aba3e25717850c26c9cd0d89d", 20);
}

static NOINLINE void test_sha256(void) {
  uint8_t block[64], out[32];
  uint32_t h[8], k[64];
  pad_abc(block, 64);
  for (int i = 0; i < 8; i++) h[i] = (uint32_t)(initial[i] >> 32);
  for (int i = 0; i < 64; i++) k[i] = (uint32_t)(constants[i] >> 32);
  uint32x4_t w[4], abcd = vld1q_u32(h), efgh = vld1q_u32(h + 4);
  for (int i = 0; i < 4; i++) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * i)));
  for (int i = 0; i < 16; i++) {
    uint32x4_t x = vaddq_u32(w[i & 3], vld1q_u32(k + 4 * i)), old = abcd;
    abcd = vsha256hq_u32(abcd, efgh, x);
    efgh = vsha256h2q_u32(efgh, old, x);
    w[i & 3] = vsha256su1q_u32(vsha256su0q_u32(w[i & 3], w[(i + 1) & 3]), w[(i + 2) & 3],
                               w[(i + 3) & 3]);
  }
  vst1q_u8(out, vrev32q_u8(vreinterpretq_u8_u32(vaddq_u32(abcd, vld1q_u32(h)))));
  vst1q_u8(out + 16, vrev32q_u8(vreinterpretq_u8_u32(vaddq_u32(efgh, vld1q_u32(h + 4)))));
  check("SHA-256", out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 32);
}

static NOINLINE void test_sha512(void) {
  uint8_t block[128], out[64];
  pad_abc(block, 128);
  uint64x2_t w[8], s[4];
  for (int i = 0; i < 8; i++) w[i] = vreinterpretq_u64_u8(vrev64q_u8(vld1q_u8(block + 16 * i)));
  for (int i = 0; i < 4; i++) s[i] = vld1q_u64(initial + 2 * i);  // ab cd ef gh
  for (int i = 0; i < 40; i++) {
    uint64x2_t x = vaddq_u64(w[i & 7], vld1q_u64(constants + 2 * i));
    x = vaddq_u64(vextq_u64(x, x, 1), s[3]);
    uint64x2_t t = vsha512hq_u64(x, vextq_u64(s[2], s[3], 1), vextq_u64(s[1], s[2], 1));
    uint64x2_t next = vsha512h2q_u64(t, s[1], s[0]);
    s[3] = s[2];
    s[2] = vaddq_u64(s[1], t);
    s[1] = s[0];
    s[0] = next;
    w[i & 7] = vsha512su1q_u64(vsha512su0q_u64(w[i & 7], w[(i + 1) & 7]), w[(i + 7) & 7],
                               vextq_u64(w[(i + 4) & 7], w[(i + 5) & 7], 1));
  }
  for (int i = 0; i < 4; i++) {
    uint64x2_t sum = vaddq_u64(s[i], vld1q_u64(initial + 2 * i));
    vst1q_u8(out + 16 * i, vrev64q_u8(vreinterpretq_u8_u64(sum)));
  }
  check("SHA-512", out,
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f", 64);
}

// --- SHA3-256 of nothing, twice at once: each lane of the state in both halves of a vector

static const uint64_t round_constants[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
    0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

static uint64x2_t rotate_xor(uint64x2_t a, uint64x2_t b, int left) {
  uint64x2_t r;
#define ROTATION(n) case n: r = vxarq_u64(a, b, (64 - (n)) & 63); break;
#define ROTATIONS(n) ROTATION(n) ROTATION(n + 1) ROTATION(n + 2) ROTATION(n + 3) \
  ROTATION(n + 4) ROTATION(n + 5) ROTATION(n + 6) ROTATION(n + 7)
  switch (left) {
    ROTATIONS(0) ROTATIONS(8) ROTATIONS(16) ROTATIONS(24)
    ROTATIONS(32) ROTATIONS(40) ROTATIONS(48) ROTATIONS(56)
    default: r = a;
  }
  return r;
}

static NOINLINE void test_sha3(void) {
  uint64x2_t a[25], b[25], c[5];  // lane x + 5 y
  for (int i = 0; i < 25; i++) a[i] = vdupq_n_u64(i == 0 ? 6 : i == 16 ? 1ull << 63 : 0);
  for (int round = 0; round < 24; round++) {
    for (int x = 0; x < 5; x++) {
      c[x] = veor3q_u64(veor3q_u64(a[x], a[x + 5], a[x + 10]), a[x + 15], a[x + 20]);
    }
    // rho and pi walk through the lanes together; theta's parity goes in on the way.
    uint64x2_t parity[5];
    for (int x = 0; x < 5; x++) parity[x] = vrax1q_u64(c[(x + 4) % 5], c[(x + 1) % 5]);
    b[0] = veorq_u64(a[0], parity[0]);
    int x = 1, y = 0;
    for (int t = 0; t < 24; t++) {
      int to_x = y, to_y = (2 * x + 3 * y) % 5;
      b[to_x + 5 * to_y] = rotate_xor(a[x + 5 * y], parity[x], (t + 1) * (t + 2) / 2 % 64);
      x = to_x;
      y = to_y;
    }
    for (y = 0; y < 25; y += 5) {
      for (x = 0; x < 5; x++) a[x + y] = vbcaxq_u64(b[x + y], b[(x + 2) % 5 + y], b[(x + 1) % 5 + y]);
    }
    a[0] = veorq_u64(a[0], vdupq_n_u64(round_constants[round]));
  }
  for (int copy = 0; copy < 2; copy++) {
    uint64_t out[4];
    for (int i = 0; i < 4; i++) out[i] = a[i][copy];
    check("SHA3-256", out, "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a", 32);
  }
}

// --- SM3 of "abc", SM4. Element 3 is the first word of a state of SM3.

static NOINLINE void test_sm3(void) {
  uint8_t block[64], out[32];
  pad_abc(block, 64);
  uint32x4_t s[4], abcd = {0xda8a0600, 0x172442d7, 0x4914b2b9, 0x7380166f};
  uint32x4_t efgh = {0xb0fb0e4e, 0xe38dee4d, 0x163138aa, 0xa96f30bc};
  uint32x4_t first = abcd, second = efgh;
  for (int i = 0; i < 4; i++) s[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * i)));
  for (int j = 0; j < 64; j += 4) {
    uint32x4_t w = s[0], xored = veorq_u32(s[0], s[1]);
#define ROUND(i, A, B) {                                                                          \
    uint32_t t = j < 16 ? 0x79cc4519 : 0x7a879d8a;                                                \
    int n = (j + i) % 32;                                                                         \
    uint32x4_t k = vsetq_lane_u32(n == 0 ? t : t << n | t >> (32 - n), vdupq_n_u32(0), 3);        \
    uint32x4_t ss1 = vsm3ss1q_u32(abcd, efgh, k);                                                 \
    abcd = A(abcd, ss1, xored, i);                                                                \
    efgh = B(efgh, ss1, w, i);                                                                    \
  }
    if (j < 16) {
      ROUND(0, vsm3tt1aq_u32, vsm3tt2aq_u32) ROUND(1, vsm3tt1aq_u32, vsm3tt2aq_u32)
      ROUND(2, vsm3tt1aq_u32, vsm3tt2aq_u32) ROUND(3, vsm3tt1aq_u32, vsm3tt2aq_u32)
    } else {
      ROUND(0, vsm3tt1bq_u32, vsm3tt2bq_u32) ROUND(1, vsm3tt1bq_u32, vsm3tt2bq_u32)
      ROUND(2, vsm3tt1bq_u32, vsm3tt2bq_u32) ROUND(3, vsm3tt1bq_u32, vsm3tt2bq_u32)
    }
    uint32x4_t next = vsm3partw1q_u32(s[0], vextq_u32(s[1], s[2], 3), s[3]);
    next = vsm3partw2q_u32(next, vextq_u32(s[2], s[3], 2), vextq_u32(s[0], s[1], 3));
    s[0] = s[1], s[1] = s[2], s[2] = s[3], s[3] = next;
  }
  uint8x16_t high = vreinterpretq_u8_u32(veorq_u32(abcd, first));
  uint8x16_t low = vreinterpretq_u8_u32(veorq_u32(efgh, second));
  // All 16 bytes backwards.
  vst1q_u8(out, vrev64q_u8(vextq_u8(high, high, 8)));
  vst1q_u8(out + 16, vrev64q_u8(vextq_u8(low, low, 8)));
  check("SM3", out, "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0", 32);
}

static NOINLINE void test_sm4(void) {
  static const uint8_t text[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                   0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
  uint32x4_t fk = {0xa3b1bac6, 0x56aa3350, 0x677d9197, 0xb27022dc};
  uint32x4_t block = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(text))), key = veorq_u32(block, fk);
  for (int i = 0; i < 32; i += 4) {
    uint32_t ck[4];
    for (int k = 0; k < 4; k++) {
      ck[k] = 0;
      for (int n = 0; n < 4; n++) ck[k] = ck[k] << 8 | ((uint32_t)(4 * (i + k) + n) * 7 & 0xff);
    }
    key = vsm4ekeyq_u32(key, vld1q_u32(ck));
    block = vsm4eq_u32(block, key);
  }
  uint8_t out[16];
  uint8x16_t bytes = vreinterpretq_u8_u32(block);
  vst1q_u8(out, vrev64q_u8(vextq_u8(bytes, bytes, 8)));
  check("SM4", out, "681edf34d206965e86b3e94f536e4246", 16);
}

int main(void) {
  test_aes();
  test_gcm();
  test_sha1();
  test_sha256();
  test_sha512();
  test_sha3();
  test_sm3();
  test_sm4();
  print("wrong: %d\n", wrong);
  return wrong != 0;
}

// Products of matrices: exact ones against plain sums through mma and ldmatrix as kernels have
// them, and the rounding of tensor cores against a statement of it in __float128.
#include "host/ptx/matrix_products.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// A row-major 16 x 16, B row-major 16 x 8 of halves; C and D 16 x 8 of singles. Fragments by
// ldmatrix, B's transposed.
const std::string kHalves = kHead + R"(
.visible .entry k(.param .u64 ab, .param .u64 cd)
{
  .shared .align 16 .b8 room[768];
  .reg .b32 %r<30>;
  .reg .b64 %rd<9>;
  .reg .f32 %f<9>;
  ld.param.u64 %rd1, [ab];
  ld.param.u64 %rd2, [cd];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd3, %r1, 24, %rd1;
  mov.u32 %r2, room;
  mad.lo.u32 %r3, %r1, 24, %r2;
  ld.global.u64 %rd4, [%rd3];
  ld.global.u64 %rd5, [%rd3+8];
  ld.global.u64 %rd6, [%rd3+16];
  st.shared.u64 [%r3], %rd4;
  st.shared.u64 [%r3+8], %rd5;
  st.shared.u64 [%r3+16], %rd6;
  bar.sync 0;
  // Lanes 0 to 15: rows; behind them the same, 8 columns on.
  and.b32 %r4, %r1, 15;
  shr.u32 %r5, %r1, 4;
  shl.b32 %r6, %r4, 5;
  shl.b32 %r5, %r5, 4;
  add.u32 %r6, %r6, %r5;
  add.u32 %r6, %r6, %r2;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r6];
  shl.b32 %r7, %r4, 4;
  add.u32 %r7, %r7, %r2;
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r7+512];
  shr.u32 %r8, %r1, 2;
  and.b32 %r9, %r1, 3;
  shl.b32 %r8, %r8, 5;
  shl.b32 %r9, %r9, 3;
  add.u32 %r8, %r8, %r9;
  cvt.u64.u32 %rd7, %r8;
  add.u64 %rd7, %rd2, %rd7;
  ld.global.v2.f32 {%f1, %f2}, [%rd7];
  ld.global.v2.f32 {%f3, %f4}, [%rd7+256];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8},
    {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f1, %f2, %f3, %f4};
  st.global.v2.f32 [%rd7+512], {%f5, %f6};
  st.global.v2.f32 [%rd7+768], {%f7, %f8};
  ret;
}
.visible .entry alone()
{
  .reg .b32 %r<9>;
  .reg .f64 %d<9>;
  mov.f64 %d1, 0d0000000000000000;
  mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d2, %d3}, {%d1}, {%d1}, {%d1, %d1};
  ret;
}
)";

uint16_t half(double x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }

// --- the statement: terms as exact numbers, cut off at a power of two

double value_of(uint64_t bits, MatrixType t) {
  if (t == MatrixType::kF16)
    return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  const uint64_t single = t == MatrixType::kBf16 ? bits << 16 : bits & ~uint64_t{0x1fff};
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(single)));
}
// Where the leading bit of a normal number is; subnormals have the least exponent.
int exponent_of(double x, MatrixType t) {
  const int least = t == MatrixType::kF16 ? -14 : -126;
  return x == 0 ? -100000 : std::max(std::ilogb(x), least);
}
__extension__ typedef __int128 Wide;

__float128 cut(__float128 x, int last) {
  const __float128 unit = std::ldexp(1.0, last);
  return static_cast<__float128>(static_cast<Wide>(x / unit)) * unit;
}
float stated(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b, float c,
             MatrixType t) {
  const size_t block = t == MatrixType::kTf32 ? 4 : 8;  // Ampere's
  for (size_t first = 0; first < a.size(); first += block) {
    int most = exponent_of(c, MatrixType::kF32);
    for (size_t k = first; k < std::min(first + block, a.size()); ++k)
      most = std::max(most, exponent_of(value_of(a[k], t), t) + exponent_of(value_of(b[k], t), t));
    if (most < -50000) continue;
    __float128 sum = cut(__float128{c}, most - 24);
    for (size_t k = first; k < std::min(first + block, a.size()); ++k)
      sum += cut(__float128{value_of(a[k], t)} * value_of(b[k], t), most - 24);
    const auto rounded = static_cast<float>(sum);
    __float128 nearest = rounded;
    c = rounded;
    if ((sum > 0 && nearest > sum) || (sum < 0 && nearest < sum)) c = std::nextafterf(rounded, 0);
  }
  return c == 0 ? 0.0f : c;
}

}  // namespace

TEST_CASE("a warp multiplies matrices whose products are exact") {
  std::mt19937 random(3);
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint16_t> ab(16 * 16 + 16 * 8);
    std::vector<float> cd(2 * 16 * 8);
    int a[16][16], b[16][8];
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 16; ++k)
        ab[static_cast<size_t>(16 * i + k)] =
            half(a[i][k] = static_cast<int>(random() % 201) - 100);
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j)
        ab[static_cast<size_t>(256 + 8 * k + j)] =
            half(b[k][j] = static_cast<int>(random() % 201) - 100);
    for (size_t n = 0; n < 128; ++n) cd[n] = static_cast<float>(n * 1000);
    Engine engine({.backend = backend, .threads = 1});
    LoadedModule& module = engine.load(kHalves, "test.ptx");
    engine.add_memory(ab.data(), ab.size() * 2, "ab");
    engine.add_memory(cd.data(), cd.size() * 4, "cd");
    const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "k"),
                                          .grid = {},
                                          .block = {32, 1, 1},
                                          .params = pack(ab.data(), cd.data())});
    if (r.fault) FAIL(r.fault->text);
    int wrong = 0;
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        int sum = 1000 * (8 * i + j);
        for (int k = 0; k < 16; ++k) sum += a[i][k] * b[k][j];
        wrong += cd[static_cast<size_t>(128 + 8 * i + j)] != static_cast<float>(sum);
      }
    CHECK(wrong == 0);
    CHECK(counts_of(r).at("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 32);
    const LaunchResult few = engine.launch({.kernel = engine.find_kernel(module, "alone"),
                                            .grid = {},
                                            .block = {20, 1, 1},
                                            .params = {}});
    REQUIRE(few.fault);
    CHECK(few.fault->text.find("without all 32 threads") != std::string::npos);
  }
}

TEST_CASE("fragments hold each element once") {
  for (const MatrixOp& m :
       {MatrixOp{16, 8, 16}, MatrixOp{16, 16, 16}, MatrixOp{32, 8, 16}, MatrixOp{8, 32, 16},
        MatrixOp{8, 8, 4, MatrixType::kF64, MatrixType::kF64, MatrixType::kF64, MatrixType::kF64},
        MatrixOp{16, 8, 32, MatrixType::kS8, MatrixType::kS8, MatrixType::kS32,
                 MatrixType::kS32}}) {
    std::map<std::pair<int, int>, int> a, b, c;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const auto add = [&](auto& to, int registers, int elements, auto at) {
        for (int r = 0; r < registers; ++r)
          for (int e = 0; e < elements; ++e) {
            const Element x = at(r, e);
            ++to[{x.row, x.column}];
          }
      };
      add(a, registers_of_a(m), per_register(m.a),
          [&](int r, int e) { return element_of_a(m, Lane(lane), r, e); });
      add(b, registers_of_b(m), per_register(m.b),
          [&](int r, int e) { return element_of_b(m, Lane(lane), r, e); });
      add(c, registers_of_sum(m, m.c), per_register(m.c),
          [&](int r, int e) { return element_of_sum(m, m.c, Lane(lane), r, e); });
    }
    const auto is_whole = [](const auto& x, int rows, int columns) {
      bool fine = x.size() == static_cast<size_t>(rows * columns);
      for (const auto& [at, count] : x)
        fine &= count == 1 && at.first < rows && at.second < columns;
      return fine;
    };
    CHECK(is_whole(a, m.rows, m.depth));
    CHECK(is_whole(b, m.depth, m.columns));
    CHECK(is_whole(c, m.rows, m.columns));
  }
}

TEST_CASE("sums of tensor cores are cut off where the model says") {
  std::mt19937_64 random(11);
  for (const MatrixType t : {MatrixType::kF16, MatrixType::kBf16, MatrixType::kTf32}) {
    const int bits = bits_of(t);
    MatrixOp m{16, 8, static_cast<uint8_t>(t == MatrixType::kTf32 ? 8 : 16), t, t};
    int wrong = 0;
    for (int round = 0; round < 300; ++round) {
      // Exponents near each other, or all over; some subnormals; no infinities.
      const auto draw = [&]() -> uint64_t {
        const uint64_t x = random();
        const bool is_near = round % 2 == 0;
        if (t == MatrixType::kF16)
          return (x & 0x83ff) | (is_near ? 12 + x % 7 : x >> 16 & 30) << 10;
        if (t == MatrixType::kBf16)
          return (x & 0x807f) | (is_near ? 120 + x % 11 : 64 + (x >> 16) % 100) << 7;
        return (x & 0x807fffff) | (is_near ? 120 + x % 11 : 64 + (x >> 32) % 100) << 23;
      };
      uint64_t a[16][16] = {}, b[16][8] = {};
      float c[16][8] = {};
      for (auto& row : a)
        for (uint64_t& x : row) x = draw();
      for (auto& row : b)
        for (uint64_t& x : row) x = draw();
      for (auto& row : c)
        for (float& x : row) x = static_cast<float>(static_cast<int64_t>(random())) * 0x1p-60f;
      std::array<MatrixWords, 32> lanes{};
      for (uint32_t n = 0; n < 32; ++n) {
        size_t word = 0;
        const auto put = [&](int registers, int elements, int width, auto value) {
          for (int r = 0; r < registers; ++r, ++word)
            for (int e = 0; e < elements; ++e) lanes[n][word] |= value(r, e) << e * width;
        };
        put(registers_of_a(m), per_register(t), bits, [&](int r, int e) {
          const Element x = element_of_a(m, Lane(n), r, e);
          return a[x.row][x.column];
        });
        put(registers_of_b(m), per_register(t), bits, [&](int r, int e) {
          const Element x = element_of_b(m, Lane(n), r, e);
          return b[x.row][x.column];
        });
        put(4, 1, 32, [&](int r, int e) {
          const Element x = element_of_sum(m, m.c, Lane(n), r, e);
          return uint64_t{std::bit_cast<uint32_t>(c[x.row][x.column])};
        });
      }
      multiply(m, tensor_cores_of(80), lanes);
      for (uint32_t n = 0; n < 32; ++n)
        for (int r = 0; r < 4; ++r) {
          const Element x = element_of_sum(m, m.d, Lane(n), r, 0);
          std::vector<uint64_t> row, column;
          for (int k = 0; k < m.depth; ++k) {
            row.push_back(a[x.row][k]);
            column.push_back(b[k][x.column]);
          }
          const float expected = stated(row, column, c[x.row][x.column], t);
          wrong += lanes[n][static_cast<size_t>(r)] != std::bit_cast<uint32_t>(expected);
        }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("products are those of an H100") {
  std::ifstream file(GPUSIM_H100_PRODUCTS);
  int count = 0, wrong = 0, as_ampere = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string factors, sums, bar;
    words >> factors >> sums >> std::hex;
    const bool is_of_group = factors.starts_with("group-");
    if (is_of_group) factors.erase(0, 6);
    const MatrixType t = factors == "f16"    ? MatrixType::kF16
                         : factors == "bf16" ? MatrixType::kBf16
                         : factors == "tf32" ? MatrixType::kTf32
                         : factors == "e4m3" ? MatrixType::kE4m3
                                             : MatrixType::kE5m2;
    const MatrixType of_sum = sums == "f16" ? MatrixType::kF16 : MatrixType::kF32;
    const int depth = 256 / bits_of(t);
    TensorCores hopper = tensor_cores_of(90);
    hopper.widens_8_bits = !is_of_group;
    const MatrixOp m{16, 8, static_cast<uint8_t>(depth), t, t, of_sum, of_sum};
    Matrix a(m.rows, depth), b(depth, m.columns);
    uint64_t c = 0, expected = 0;
    for (int k = 0; k < depth; ++k) words >> a.at({0, k});
    words >> bar;
    for (int k = 0; k < depth; ++k) words >> b.at({k, 0});
    words >> bar >> c >> expected;
    REQUIRE(words);
    ++count;
    wrong += element_of_product(m, hopper, a, b, c, 0, 0) != expected;
    as_ampere +=
        bits_of(t) > 8 && element_of_product(m, tensor_cores_of(80), a, b, c, 0, 0) == expected;
  }
  CHECK(count == 288);
  CHECK(wrong == 0);
  CHECK(as_ampere < 180);
}

TEST_CASE("whole products have the bits that the statement of one element gives") {
  const uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  using enum MatrixType;
  struct Form {
    MatrixType factor, sum;
  };
  for (const Form form :
       {Form{kF16, kF32}, Form{kF16, kF16}, Form{kBf16, kF32}, Form{kTf32, kF32}, Form{kE4m3, kF32},
        Form{kU8, kS32}, Form{kS8, kS32}, Form{kU4, kS32}, Form{kB1, kS32}, Form{kF64, kF64}})
    for (const uint32_t capability : {80u, 90u})
      for (int round = 0; round < 60; ++round) {
        CAPTURE(int(form.factor));
        const MatrixOp op{.rows = 16,
                          .columns = 8,
                          .depth = static_cast<uint16_t>(form.factor == kB1 ? 128 : 32),
                          .a = form.factor,
                          .b = form.factor,
                          .c = form.sum,
                          .d = form.sum,
                          .saturates = round % 2 != 0};
        // Of floats all bits, those near one, or with infinities and NaNs among the others.
        const auto bits = [&](MatrixType t) {
          const int most = bits_of(t);
          uint64_t x = random();
          if (t == kTf32 || t == kF32) {
            if (round % 3 == 1) x = 0x3f000000 | (x & 0x80ffe000);
          } else if (t == kF16 && round % 3 == 1) {
            x = 0x3800 | (x & 0x87ff);
          } else if (t == kBf16 && round % 3 == 1) {
            x = 0x3f00 | (x & 0x80ff);
          } else if (t == kF64) {
            x = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(x)) * 0x1p-40);
          }
          if (random() % 9 == 0) x = 0;
          if (round % 3 == 2 && t != kF64 && form.sum != kS32 && random() % 4 != 0)
            x &= ~(uint64_t{1} << (most - 2));  // seldom special
          return most == 64 ? x : x & ((uint64_t{1} << most) - 1);
        };
        Matrix a(op.rows, op.depth), b(op.depth, op.columns);
        for (int k = 0; k < op.depth; ++k) {
          for (int row = 0; row < op.rows; ++row) a.at({row, k}) = bits(op.a);
          for (int column = 0; column < op.columns; ++column) b.at({k, column}) = bits(op.b);
        }
        const TensorCores cores = tensor_cores_of(capability);
        const Products products(op, cores, a, b, op.rows);
        for (int row = 0; row < op.rows; ++row)
          for (int column = 0; column < op.columns; ++column) {
            const uint64_t c = bits(op.c);
            REQUIRE(products.element(c, row, column) ==
                    element_of_product(op, cores, a, b, c, row, column));
          }
      }
}

// Every form of mma on whole numbers, whose results are exact: which lane has which element is
// stated as the PTX ISA's sections on fragments do, element by element.
#include <fmt/format.h>

#include <array>

#include "tests/isa/ptx/launch_text.h"
#include "tests/isa/ptx/matrix_elements.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

struct Place {
  int row, column;
};

// A form, and the elements of its matrices.
struct Form {
  std::string head;  // the opcode's part before the shape
  int m, n, k;
  std::string middle, a, b, c, d, tail;
  bool is_sparse = false;
  uint32_t selector = 0;

  std::string opcode() const {
    return fmt::format("{}.m{}n{}k{}{}.{}.{}.{}.{}{}", head, m, n, k, middle, d, a, b, c, tail);
  }
  bool is_by_quads() const { return m == 8 && n == 8 && k == 4 && a == "f16"; }
};

int per_register(const std::string& type) { return std::max(1, 32 / width_of(type)); }

// Of element i of the lane's fragment.
Place place_of_a(const Form& f, int lane, int i) {
  if (f.is_by_quads()) {
    const int upper = lane < 16 ? 0 : 4;
    if (f.middle.starts_with(".row")) return {lane % 4 + upper, i};
    return {i % 4 + upper, lane % 4};
  }
  const int group = lane / 4, member = lane % 4, n = per_register(f.a);
  const int step = i / n;  // the register
  if (f.m == 8) return {group, member * n + i % n + 4 * n * step};
  return {group + (step % 2 == 0 ? 0 : 8), member * n + i % n + 4 * n * (step / 2)};
}
Place place_of_b(const Form& f, int lane, int i) {
  if (f.is_by_quads()) {
    const int upper = lane < 16 ? 0 : 4;
    if (f.middle.ends_with(".row")) return {lane % 4, i + upper};
    return {i, lane % 4 + upper};
  }
  const int n = per_register(f.b);
  return {lane % 4 * n + i % n + 4 * n * (i / n), lane / 4};
}
Place place_of_sum(const Form& f, const std::string& type, int lane, int i) {
  if (f.is_by_quads()) {
    const int upper = lane < 16 ? 0 : 4;
    if (type == "f16") return {lane % 4 + upper, i};
    return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + i % 2};
  }
  return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + i % 2};
}

void check_form(const Form& f, std::mt19937& random) {
  const int of_lanes = f.is_by_quads() ? 8 : 32;
  const int stored = f.is_sparse ? f.k / 2 : f.k;
  const int registers_a = f.m * stored / of_lanes / per_register(f.a),
            registers_b = f.k * f.n / of_lanes / per_register(f.b),
            registers_c = f.m * f.n / of_lanes / per_register(f.c),
            registers_d = f.m * f.n / of_lanes / per_register(f.d);
  const int products = f.is_by_quads() ? 4 : 1;
  const auto product_of = [&](int lane) { return f.is_by_quads() ? lane / 4 % 4 : 0; };

  std::vector<std::vector<SparseRow>> a(static_cast<size_t>(products));
  std::vector<std::vector<std::vector<int>>> b(a.size()), c(a.size());
  const auto fill = [&](auto& matrix, int rows, int columns, auto draw) {
    matrix.assign(static_cast<size_t>(rows), std::vector<int>(static_cast<size_t>(columns)));
    for (auto& row : matrix)
      for (int& x : row) x = draw();
  };
  for (size_t p = 0; p < a.size(); ++p) {
    for (int row = 0; row < f.m; ++row) {
      if (f.is_sparse) {
        a[p].push_back(draw_sparse_row(f.a, f.k, random));
        continue;
      }
      std::vector<int> whole;
      for (int k = 0; k < f.k; ++k) whole.push_back(draw_element(f.a, random));
      a[p].push_back({whole, whole, {}});
    }
    fill(b[p], f.k, f.n, [&] { return draw_element(f.b, random); });
    fill(c[p], f.m, f.n, [&] { return static_cast<int>(random() % 201) - 100; });
  }

  // Words of a lane: a, b, c, metadata, d.
  const int words = registers_a + registers_b + registers_c + 1 + registers_d;
  std::vector<uint64_t> memory(static_cast<size_t>(32 * words));
  const auto at = [&](int lane, int word) -> uint64_t& {
    return memory[static_cast<size_t>(lane * words + word)];
  };
  for (int lane = 0; lane < 32; ++lane) {
    const auto p = static_cast<size_t>(product_of(lane));
    const auto put = [&](int first, int registers, const std::string& type, auto value) {
      const int n = per_register(type);
      for (int i = 0; i < registers * n; ++i)
        at(lane, first + i / n) |= encode(type, value(i)) << i % n * width_of(type) % 64;
    };
    put(0, registers_a, f.a, [&](int i) {
      const Place x = place_of_a(f, lane, i);
      return a[p][static_cast<size_t>(x.row)].kept[static_cast<size_t>(x.column)];
    });
    put(registers_a, registers_b, f.b, [&](int i) {
      const Place x = place_of_b(f, lane, i);
      return b[p][static_cast<size_t>(x.row)][static_cast<size_t>(x.column)];
    });
    put(registers_a + registers_b, registers_c, f.c, [&](int i) {
      const Place x = place_of_sum(f, f.c, lane, i);
      return c[p][static_cast<size_t>(x.row)][static_cast<size_t>(x.column)];
    });
    if (f.is_sparse)
      at(lane, registers_a + registers_b + registers_c) =
          metadata_of_lane(f.a, a[0].data(), static_cast<uint32_t>(lane), f.selector, random);
  }

  int next = 0;
  std::string loads, stores;
  const auto fragment = [&](const std::string& type, int registers) {
    std::string list;
    const char* kind = type == "f64" ? "fd" : type == "f32" ? "f" : "r";
    for (int r = 0; r < registers; ++r, ++next) {
      list += fmt::format("{}%{}{}", r == 0 ? "" : ", ", kind, next);
      const char* width = type == "f64" ? "f64" : type == "f32" ? "f32" : "b32";
      loads += fmt::format("ld.global.{} %{}{}, [%rd1+{}];\n", width, kind, next, 8 * next);
      if (next >= words - registers_d)
        stores += fmt::format("st.global.{} [%rd1+{}], %{}{};\n", width, 8 * next, kind, next);
    }
    return "{" + list + "}";
  };
  const std::string va = fragment(f.a, registers_a), vb = fragment(f.b, registers_b),
                    vc = fragment(f.c, registers_c), vm = fragment("b32", 1),
                    vd = fragment(f.d, registers_d);
  const std::string metadata =
      f.is_sparse ? fmt::format(", {}, {}", vm.substr(1, vm.size() - 2), f.selector) : "";
  const std::string text =
      kHead + fmt::format(
                  ".visible .entry k(.param .u64 at)\n{{\n.reg .b32 %r<99>;\n"
                  ".reg .f32 %f<99>;\n.reg .f64 %fd<99>;\n.reg .b64 %rd<9>;\n"
                  "ld.param.u64 %rd1, [at];\nmov.u32 %r98, %tid.x;\n"
                  "mad.wide.u32 %rd1, %r98, {}, %rd1;\n{}{} {}, {}, {}, {}{};\n{}ret;\n}}\n",
                  8 * words, loads, f.opcode(), vd, va, vb, vc, metadata, stores);
  const std::vector<uint64_t> before = memory;
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    CAPTURE(f.opcode());
    memory = before;
    const LaunchResult r =
        run_text(text, "k", {.backend = backend, .grid = {}, .block = {32, 1, 1}},
                 pack(memory.data()), memory);
    if (r.fault) FAIL(r.fault->text);
    int wrong = 0;
    for (int lane = 0; lane < 32; ++lane) {
      const auto p = static_cast<size_t>(product_of(lane));
      const int n = per_register(f.d);
      for (int i = 0; i < registers_d * n; ++i) {
        const Place x = place_of_sum(f, f.d, lane, i);
        int sum = c[p][static_cast<size_t>(x.row)][static_cast<size_t>(x.column)];
        for (size_t k = 0; k < static_cast<size_t>(f.k); ++k) {
          const int left = a[p][static_cast<size_t>(x.row)].whole[k],
                    right = b[p][k][static_cast<size_t>(x.column)];
          sum += f.opcode().find("xor") != std::string::npos ? left ^ right : left * right;
        }
        const uint64_t word = at(lane, words - registers_d + i / n);
        const int shift = i % n * width_of(f.d) % 64;
        const uint64_t got =
            width_of(f.d) == 64 ? word : word >> shift & ((uint64_t{1} << width_of(f.d)) - 1);
        wrong += got != encode(f.d, sum);
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("every form of mma multiplies whole numbers") {
  std::mt19937 random(17);
  const std::string mma = "mma.sync.aligned", rc = ".row.col";
  std::vector<Form> forms;
  const auto add = [&](int m, int n, int k, const std::string& of, const std::string& sum,
                       const std::string& tail = "") {
    forms.push_back({mma, m, n, k, rc, of, of, sum, sum, tail});
  };
  for (const char* sum : {"f16", "f32"}) {
    add(16, 8, 8, "f16", sum);
    add(16, 8, 16, "f16", sum);
    for (const char* a : {"e4m3", "e5m2"})
      for (const char* b : {"e4m3", "e5m2"})
        for (const int k : {16, 32}) forms.push_back({mma, 16, 8, k, rc, a, b, sum, sum, ""});
  }
  for (const int k : {8, 16}) add(16, 8, k, "bf16", "f32");
  for (const int k : {4, 8}) add(16, 8, k, "tf32", "f32");
  add(8, 8, 4, "f64", "f64");
  for (const int k : {4, 8, 16}) add(16, 8, k, "f64", "f64");
  for (const char* a : {"u", "s"})
    for (const char* b : {"u", "s"})
      for (const auto& [m, k, bits] :
           {std::array{8, 16, 8}, std::array{16, 16, 8}, std::array{16, 32, 8},
            std::array{8, 32, 4}, std::array{16, 32, 4}, std::array{16, 64, 4}})
        for (const char* limit : {"", ".satfinite"})
          forms.push_back({mma, m, 8, k, rc + limit, fmt::format("{}{}", a, bits),
                           fmt::format("{}{}", b, bits), "s32", "s32", ""});
  for (const char* operation : {".and.popc", ".xor.popc"}) {
    add(8, 8, 128, "b1", "s32", operation);
    add(16, 8, 128, "b1", "s32", operation);
    add(16, 8, 256, "b1", "s32", operation);
  }
  for (const char* layout : {".row.col", ".row.row", ".col.row", ".col.col"})
    for (const auto& [c, d] :
         {std::pair{"f16", "f16"}, std::pair{"f32", "f32"}, std::pair{"f16", "f32"}})
      forms.push_back({mma, 8, 8, 4, layout, "f16", "f16", c, d, ""});
  for (const Form& f : forms) check_form(f, random);
}

TEST_CASE("every form of sparse mma multiplies whole numbers") {
  std::mt19937 random(18);
  const std::string rc = ".row.col";
  for (const char* head : {"mma.sp.sync.aligned", "mma.sp::ordered_metadata.sync.aligned"}) {
    const auto check = [&](int k, const std::string& a, const std::string& b,
                           const std::string& sum, uint32_t selectors) {
      for (uint32_t s = 0; s < selectors; ++s)
        check_form({head, 16, 8, k, rc, a, b, sum, sum, "", true, s}, random);
    };
    for (const char* sum : {"f16", "f32"}) {
      check(16, "f16", "f16", sum, 4);
      check(32, "f16", "f16", sum, 2);
    }
    check(16, "bf16", "bf16", "f32", 4);
    check(32, "bf16", "bf16", "f32", 2);
    check(8, "tf32", "tf32", "f32", 4);
    check(16, "tf32", "tf32", "f32", 2);
    check(64, "e4m3", "e5m2", "f32", 1);
    check(64, "e5m2", "e4m3", "f32", 1);
    check(32, "u8", "s8", "s32", 2);
    check(64, "s8", "u8", "s32", 1);
    check(64, "u4", "s4", "s32", 2);
    check(128, "s4", "u4", "s32", 1);
  }
}

TEST_CASE("wmma of four bits and of one takes the fragments that its loads make") {
  // Rows of a and columns of b are next to each other; c and d are row-major.
  std::mt19937 random(19);
  struct Small {
    const char *type, *shape, *mma;
    int depth;
  };
  for (const Small& s :
       {Small{"s4", "m8n8k32", "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32", 32},
        Small{"u4", "m8n8k32", "wmma.mma.sync.aligned.row.col.m8n8k32.satfinite.s32.u4.u4.s32", 32},
        Small{"b1", "m8n8k128", "wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
              128},
        Small{"b1", "m8n8k128", "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
              128}}) {
    CAPTURE(s.mma);
    const bool is_xor = std::string(s.mma).find("xor") != std::string::npos;
    const int width = width_of(s.type), row_words = s.depth * width / 32;
    std::vector<uint32_t> memory(static_cast<size_t>(2 * 2 * 8 * row_words + 2 * 64));
    std::vector<std::vector<int>> a(8, std::vector<int>(static_cast<size_t>(s.depth))), b = a;
    // Rows are two of their lengths apart.
    const auto put = [&](std::vector<std::vector<int>>& rows, int first) {
      for (size_t row = 0; row < 8; ++row)
        for (size_t k = 0; k < rows[row].size(); ++k) {
          rows[row][k] = draw_element(s.type, random);
          memory[static_cast<size_t>(first) + row * static_cast<size_t>(2 * row_words) +
                 k * static_cast<size_t>(width) / 32] |=
              static_cast<uint32_t>(encode(s.type, rows[row][k]))
              << k * static_cast<size_t>(width) % 32;
        }
    };
    const int words = 16 * row_words;
    put(a, 0);
    put(b, words);
    for (size_t n = 0; n < 64; ++n)
      memory[static_cast<size_t>(2 * words) + n] = static_cast<uint32_t>(n) * 1000;
    const std::string text =
        kHead + fmt::format(
                    ".visible .entry k(.param .u64 at)\n{{\n.reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n"
                    "ld.param.u64 %rd1, [at];\n"
                    "wmma.load.a.sync.aligned.row.{0}.global.{1} {{%r0}}, [%rd1], {2};\n"
                    "mov.u32 %r9, {2};\n"
                    "wmma.load.b.sync.aligned.col.{0}.global.{1} {{%r1}}, [%rd1+{3}], %r9;\n"
                    "wmma.load.c.sync.aligned.row.{0}.global.s32 {{%r2, %r3}}, [%rd1+{4}];\n"
                    "{5} {{%r4, %r5}}, {{%r0}}, {{%r1}}, {{%r2, %r3}};\n"
                    "wmma.store.d.sync.aligned.row.{0}.global.s32 [%rd1+{6}], {{%r4, %r5}}, 8;\n"
                    "ret;\n}}\n",
                    s.shape, s.type, 2 * s.depth, 4 * words, 8 * words, s.mma, 8 * words + 256);
    const LaunchResult r = run_text(text, "k", {.backend = "simd", .grid = {}, .block = {32, 1, 1}},
                                    pack(memory.data()), memory);
    if (r.fault) FAIL(r.fault->text);
    int wrong = 0;
    for (size_t row = 0; row < 8; ++row)
      for (size_t column = 0; column < 8; ++column) {
        int sum = static_cast<int>(8 * row + column) * 1000;
        for (size_t k = 0; k < a[row].size(); ++k)
          sum += is_xor ? a[row][k] ^ b[column][k] : a[row][k] * b[column][k];
        wrong += memory[static_cast<size_t>(2 * words) + 64 + 8 * row + column] !=
                 static_cast<uint32_t>(sum);
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("movmatrix transposes") {
  const std::string text = kHead + R"(
.visible .entry k(.param .u64 at)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [at];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  ld.global.b32 %r2, [%rd1];
  movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;
  st.global.b32 [%rd1+128], %r3;
  ret;
}
)";
  for (const char* backend : kBackends) {
    std::vector<uint16_t> memory(128);
    for (size_t n = 0; n < 64; ++n) memory[n] = static_cast<uint16_t>(n * 1021);
    const LaunchResult r =
        run_text(text, "k", {.backend = backend, .grid = {}, .block = {32, 1, 1}},
                 pack(memory.data()), memory);
    if (r.fault) FAIL(r.fault->text);
    int wrong = 0;
    for (size_t row = 0; row < 8; ++row)
      for (size_t column = 0; column < 8; ++column)
        wrong += memory[64 + 8 * row + column] != memory[8 * column + row];
    CHECK(wrong == 0);
  }
}

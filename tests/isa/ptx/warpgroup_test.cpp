// Forms of wgmma on whole numbers, whose results are exact: a in registers or in shared memory, b
// in shared memory, without swizzle (PTX ISA, "Matrix Descriptor", "Canonical Layouts"): pieces of
// eight rows of 16 bytes.
#include <fmt/format.h>

#include "tests/isa/ptx/launch_text.h"
#include "tests/isa/ptx/matrix_elements.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

struct Form {
  int k;
  std::string a, b, d, tail, rest;  // behind the types; operands behind the predicate
  bool is_sparse = false;
  uint32_t selector = 0;
};

constexpr int kRows = 64, kColumns = 8, kThreads = 128;

void check_form(const Form& f, bool a_in_registers, std::mt19937& random) {
  const int stored = f.is_sparse ? f.k / 2 : f.k, width = width_of(f.a);
  const int row_bytes_a = stored * width / 8, row_bytes_b = f.k * width_of(f.b) / 8;
  std::vector<SparseRow> a;
  for (int row = 0; row < kRows; ++row) {
    if (f.is_sparse) {
      a.push_back(draw_sparse_row(f.a, f.k, random));
      continue;
    }
    std::vector<int> whole;
    for (int k = 0; k < f.k; ++k) whole.push_back(draw_element(f.a, random));
    a.push_back({whole, whole, {}});
  }
  std::vector<std::vector<int>> columns(kColumns);
  for (auto& column : columns)
    for (int k = 0; k < f.k; ++k) column.push_back(draw_element(f.b, random));

  // Memory: an image of shared memory, then words of each lane: a, metadata, sums.
  const size_t bytes_of_a = static_cast<size_t>(kRows * row_bytes_a);
  std::vector<uint8_t> image(bytes_of_a + static_cast<size_t>(kColumns * row_bytes_b));
  const auto put = [&](size_t base, int row_bytes, int row, int k, const std::string& type, int x) {
    const int byte = k * width_of(type) / 8;
    const size_t at = base + static_cast<size_t>(byte / 16 * 128 + byte % 16 +
                                                 row / 8 * 128 * (row_bytes / 16) + row % 8 * 16);
    uint64_t bits = encode(type, x);
    if (type == "b1") bits = image[at] | bits << k % 8;
    for (size_t n = 0; n < static_cast<size_t>(std::max(8, width_of(type)) / 8); ++n)
      image[at + n] = static_cast<uint8_t>(bits >> 8 * n);
  };
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < stored; ++k)
      put(0, row_bytes_a, row, k, f.a, a[static_cast<size_t>(row)].kept[static_cast<size_t>(k)]);
  for (int column = 0; column < kColumns; ++column)
    for (int k = 0; k < f.k; ++k)
      put(bytes_of_a, row_bytes_b, column, k, f.b,
          columns[static_cast<size_t>(column)][static_cast<size_t>(k)]);

  const int of_a = 4, per_a = 32 / width, per_d = 32 / width_of(f.d), of_d = 4 / per_d;
  const int lane_words = of_a + 1 + of_d;
  std::vector<uint32_t> memory(image.size() / 4 + static_cast<size_t>(kThreads * lane_words));
  std::memcpy(memory.data(), image.data(), image.size());
  const auto word = [&](int lane, int n) -> uint32_t& {
    return memory[image.size() / 4 + static_cast<size_t>(lane * lane_words + n)];
  };
  const auto row_of = [&](int lane, int half) { return lane / 32 * 16 + lane % 32 / 4 + 8 * half; };
  const auto sum_before = [](int row, int column) { return row - 8 * column; };
  for (int lane = 0; lane < kThreads; ++lane) {
    for (int i = 0; i < of_a * per_a; ++i) {
      const int r = i / per_a;
      const auto row = static_cast<size_t>(row_of(lane, r % 2));
      const auto k = static_cast<size_t>(lane % 4 * per_a + i % per_a + 4 * per_a * (r / 2));
      word(lane, r) |= static_cast<uint32_t>(encode(f.a, a[row].kept[k])) << i % per_a * width % 32;
    }
    if (f.is_sparse)
      word(lane, of_a) = metadata_of_lane(f.a, &a[static_cast<size_t>(lane / 32 * 16)],
                                          static_cast<uint32_t>(lane % 32), f.selector, random);
    for (int i = 0; i < 4; ++i)
      word(lane, of_a + 1 + i / per_d) |=
          static_cast<uint32_t>(encode(f.d, sum_before(row_of(lane, i / 2), lane % 4 * 2 + i % 2)))
          << i % per_d * width_of(f.d) % 32;
  }

  std::string sums, loads, stores;
  const std::string kind = f.d == "f32" ? "f" : "r", width_name = f.d == "f32" ? "f32" : "b32";
  for (int r = 0; r < of_d; ++r) {
    sums += fmt::format("{}%{}{}", r == 0 ? "" : ", ", kind, 60 + r);
    loads += fmt::format("ld.global.{} %{}{}, [%rd2+{}];\n", width_name, kind, 60 + r,
                         4 * (of_a + 1 + r));
    stores += fmt::format("st.global.{} [%rd2+{}], %{}{};\n", width_name, 4 * (of_a + 1 + r), kind,
                          60 + r);
  }
  const auto descriptor = [](const std::string& name, size_t at, int row_bytes) {
    const uint64_t rest =
        uint64_t{128 >> 4} << 16 | static_cast<uint64_t>(128 * (row_bytes / 16) >> 4) << 32;
    return fmt::format(
        "mov.u32 %r1, room;\nadd.u32 %r1, %r1, {};\nshr.u32 %r1, %r1, 4;\n"
        "and.b32 %r1, %r1, 16383;\ncvt.u64.u32 {}, %r1;\nor.b64 {}, {}, {};\n",
        at, name, name, name, rest);
  };
  const std::string opcode = fmt::format("wgmma.mma_async{}.sync.aligned.m64n8k{}.{}.{}.{}{}",
                                         f.is_sparse ? ".sp" : "", f.k, f.d, f.a, f.b, f.tail);
  std::string rest = f.rest;
  // Whether a is transposed cannot be said of registers.
  if (a_in_registers && rest == ", 1, 1, 0, 0") rest = ", 1, 1, 0";
  const std::string text = fmt::format(
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 at)\n{{\n.shared .align 128 .b8 room[{}];\n"
      ".reg .b32 %r<99>;\n.reg .f32 %f<99>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\n"
      "ld.param.u64 %rd1, [at];\nmov.u32 %r0, %tid.x;\nmov.u32 %r2, room;\n"
      "shl.b32 %r3, %r0, 2;\nMORE:\nsetp.ge.u32 %p1, %r3, {};\n@%p1 bra DONE;\n"
      "cvt.u64.u32 %rd3, %r3;\nadd.u64 %rd3, %rd1, %rd3;\nld.global.b32 %r4, [%rd3];\n"
      "add.u32 %r5, %r2, %r3;\nst.shared.b32 [%r5], %r4;\nadd.u32 %r3, %r3, 512;\nbra MORE;\n"
      "DONE:\nbar.sync 0;\nmad.wide.u32 %rd2, %r0, {}, %rd1;\nadd.u64 %rd2, %rd2, {};\n"
      "ld.global.b32 %r50, [%rd2];\nld.global.b32 %r51, [%rd2+4];\nld.global.b32 %r52, [%rd2+8];\n"
      "ld.global.b32 %r53, [%rd2+12];\nld.global.b32 %r54, [%rd2+16];\n{}{}{}"
      "setp.eq.u32 %p2, 0, 0;\nwgmma.fence.sync.aligned;\n"
      "{} {{{}}}, {}, %rd5, {}%p2{};\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n{}ret;\n}}\n",
      image.size(), image.size(), 4 * lane_words, image.size(), loads,
      descriptor("%rd4", 0, row_bytes_a), descriptor("%rd5", bytes_of_a, row_bytes_b), opcode, sums,
      a_in_registers ? "{%r50, %r51, %r52, %r53}" : "%rd4",
      f.is_sparse ? fmt::format("%r54, {}, ", f.selector) : "", rest, stores);
  CAPTURE(opcode);
  CAPTURE(a_in_registers);
  std::vector<std::byte> params(sizeof(void*));
  const uint32_t* const address = memory.data();
  std::memcpy(params.data(), &address, sizeof address);
  const LaunchResult r = run_text(
      text, "k", {.backend = "simd", .grid = {}, .block = {kThreads, 1, 1}}, params, memory);
  if (r.fault) FAIL(r.fault->text);
  int wrong = 0;
  for (int lane = 0; lane < kThreads; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = row_of(lane, i / 2), column = lane % 4 * 2 + i % 2;
      int sum = sum_before(row, column);
      for (size_t k = 0; k < static_cast<size_t>(f.k); ++k)
        sum += a[static_cast<size_t>(row)].whole[k] * columns[static_cast<size_t>(column)][k];
      const uint64_t got = word(lane, of_a + 1 + i / per_d) >> i % per_d * width_of(f.d) % 32;
      wrong += (got & ((uint64_t{1} << width_of(f.d)) - 1)) != encode(f.d, sum);
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every kind of wgmma multiplies whole numbers") {
  std::mt19937 random(23);
  const std::string halves = ", 1, 1, 0, 0", floats = ", 1, 1";
  std::vector<Form> forms;
  for (const bool is_sparse : {false, true}) {
    const int twice = is_sparse ? 2 : 1;
    const auto add = [&](int bytes, const std::string& a, const std::string& b,
                         const std::string& d, const std::string& rest) {
      // Where all lanes have metadata, there is one selector.
      const uint32_t selectors = is_sparse && width_of(a) >= 16 ? 2 : 1;
      for (uint32_t s = 0; s < selectors; ++s)
        forms.push_back({twice * bytes * 8 / width_of(a), a, b, d, "", rest, is_sparse, s});
    };
    for (const char* d : {"f16", "f32"}) {
      add(32, "f16", "f16", d, halves);
      for (const char* a : {"e4m3", "e5m2"})
        for (const char* b : {"e4m3", "e5m2"}) add(32, a, b, d, floats);
    }
    add(32, "bf16", "bf16", "f32", halves);
    add(32, "tf32", "tf32", "f32", floats);
    for (const char* a : {"u8", "s8"})
      for (const char* b : {"u8", "s8"}) add(32, a, b, "s32", "");
  }
  forms.push_back({256, "b1", "b1", "s32", ".and.popc", ""});
  for (const Form& f : forms)
    for (const bool a_in_registers : {false, true}) check_form(f, a_in_registers, random);
}

#include "energy/power/microbench/ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "device_sim/base/error.h"

namespace gpusim::power {
namespace {

constexpr uint32_t kMostUnrolled = 4096;

// Registers that {names} stand for, by the type of the instruction's chain.
std::string register_of(std::string_view name, char type) {
  static constexpr std::pair<std::string_view, std::string_view> kCommon[] = {
      {"p", "%p"},
      {"q", "%q"},
      {"ft", "%ft"},
      {"sh", "%shared"},
      {"o", "%offset"},
      {"addr", "%addr"},
      {"stride", "%stride"},
      {"mask", "%mask"},
      {"base", "%base"},
      {"z", "%z"},
      {"lanemask", "%members"},
      {"even", "%ueven"},
  };
  for (const auto& [key, reg] : kCommon)
    if (key == name) return std::string(reg);
  return fmt::format("%{}{}", type, name);
}

std::string fill_in(std::string_view text, const Instruction& i, bool is_overhead) {
  const bool has_result = i.measured.find("{t}") != std::string_view::npos;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at);
    // A brace with a space behind it would be PTX's own; there is none in the catalogue.
    out += text.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos) break;
    const size_t close = text.find('}', open);
    std::string_view name = text.substr(open + 1, close - open - 1);
    if (name == "v") name = has_result && !is_overhead ? "t" : "x";
    out += register_of(name, i.type);
    at = close + 1;
  }
  return out;
}

// "a; b;" as lines.
void add_lines(std::string& ptx, const std::string& statements) {
  std::istringstream in(statements);
  for (std::string line; std::getline(in, line, ';');) {
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos) ptx += fmt::format("\t{};\n", line.substr(first));
  }
}

constexpr const char* kHeader = R"(.version 6.3
.target sm_75
.address_size 64

.shared .align 4 .b8 exchange[4096];

.visible .entry gpusim_bench(
	.param .u64 out, .param .u64 buffer, .param .u64 stride, .param .u64 mask,
	.param .u32 iterations, .param .u32 lanes,
	.param .u32 int_a, .param .u32 int_b, .param .u32 int_c, .param .u32 int_y,
	.param .u32 int_even, .param .u32 int_x,
	.param .f32 float_a, .param .f32 float_b, .param .f32 float_c, .param .f32 float_y,
	.param .f32 float_x,
	.param .f64 double_a, .param .f64 double_b, .param .f64 double_c, .param .f64 double_y,
	.param .u64 long_a, .param .u64 long_b)
{
	.reg .pred %p, %q, %again;
	.reg .b32 %ux, %uy, %us, %ut, %uu, %ua, %ub, %uc, %ueven, %shared, %members;
	.reg .b32 %thread, %block, %size, %index, %lane, %lanes, %left, %bits;
	.reg .f32 %fx, %fy, %fs, %ft, %fa, %fb, %fc, %small;
	.reg .f64 %dx, %dy, %ds, %dt, %da, %db, %dc;
	.reg .b16 %hx, %hy, %hs, %ht, %ha, %hb, %hc;
	.reg .b64 %lx, %ls, %lt, %la, %lb, %z, %offset, %addr, %base, %stride, %mask, %out, %wide;

	mov.u32 %thread, %tid.x;
	mov.u32 %block, %ctaid.x;
	mov.u32 %size, %ntid.x;
	mad.lo.u32 %index, %block, %size, %thread;
	ld.param.u64 %out, [out];
	ld.param.u64 %base, [buffer];
	ld.param.u64 %stride, [stride];
	ld.param.u64 %mask, [mask];
	ld.param.u32 %left, [iterations];
	ld.param.u32 %lanes, [lanes];
	cvta.to.global.u64 %out, %out;
	cvta.to.global.u64 %base, %base;
	mul.wide.u32 %wide, %index, 4;
	and.b64 %offset, %wide, %mask;
	mul.wide.u32 %wide, %index, 8;
	add.u64 %out, %out, %wide;
	mov.u64 %z, 0;
)";

constexpr const char* kInts = R"(
	ld.param.u32 %ua, [int_a];
	ld.param.u32 %ub, [int_b];
	ld.param.u32 %uc, [int_c];
	ld.param.u32 %uy, [int_y];
	ld.param.u32 %ueven, [int_even];
	ld.param.u32 %ux, [int_x];
	mad.lo.u32 %ux, %index, 2654435761, %ux;
	or.b32 %ux, %ux, 1;
	mov.u32 %us, %index;
	mov.u32 %uu, %thread;
	setp.eq.u32 %p, %index, 7;
)";
constexpr const char* kFloats = R"(
	ld.param.f32 %fa, [float_a];
	ld.param.f32 %fb, [float_b];
	ld.param.f32 %fc, [float_c];
	ld.param.f32 %fy, [float_y];
	ld.param.f32 %fx, [float_x];
	and.b32 %bits, %index, 1023;
	cvt.rn.f32.u32 %small, %bits;
	fma.rn.f32 %fx, %small, 0f39800000, %fx;
	mov.f32 %fs, %fx;
	setp.eq.u32 %p, %index, 7;
)";
constexpr const char* kDoubles = R"(
	ld.param.f64 %da, [double_a];
	ld.param.f64 %db, [double_b];
	ld.param.f64 %dc, [double_c];
	ld.param.f64 %dy, [double_y];
	cvt.f64.f32 %dx, %fx;
	mov.f64 %ds, %dx;
)";
constexpr const char* kHalves = R"(
	cvt.rn.f16.f32 %ha, %fa;
	cvt.rn.f16.f32 %hb, %fb;
	cvt.rn.f16.f32 %hc, %fc;
	cvt.rn.f16.f32 %hy, %fy;
	cvt.rn.f16.f32 %hx, %fx;
	mov.b16 %hs, %hx;
)";
constexpr const char* kLongs = R"(
	ld.param.u64 %la, [long_a];
	ld.param.u64 %lb, [long_b];
	cvt.u64.u32 %lx, %index;
	mov.u64 %ls, %lx;
)";
// Each word of `exchange` holds the address of the one that lies 32 words on, in the block: no two
// lanes of a warp meet in a bank.
constexpr const char* kShared = R"(
	mov.u32 %shared, exchange;
	add.u32 %bits, %thread, 32;
	rem.u32 %bits, %bits, %size;
	mad.lo.u32 %bits, %bits, 4, %shared;
	mad.lo.u32 %shared, %thread, 4, %shared;
	st.shared.u32 [%shared], %bits;
	bar.sync 0;
)";
constexpr const char* kSharedChain = "\tmov.u32 %ux, %shared;\n";
constexpr const char* kLeave = R"(
	mov.u32 %lane, %laneid;
	setp.ge.u32 %q, %lane, %lanes;
	@%q bra LEAVE;
	activemask.b32 %members;
)";
constexpr const char* kLoopEnd = R"(	sub.u32 %left, %left, 1;
	setp.ne.u32 %again, %left, 0;
	@%again bra LOOP;
OUT:
)";

bool uses(const KernelSpec& spec, std::string_view types) {
  return std::any_of(spec.instructions.begin(), spec.instructions.end(),
                     [&](const auto* i) { return types.find(i->type) != std::string_view::npos; });
}

// All values flow into one word that is stored.
std::string results(const KernelSpec& spec) {
  std::string text = "\tmov.u64 %wide, %z;\n";
  const auto fold = [&](const char* as_long) {
    text += fmt::format("\t{}\n\txor.b64 %wide, %wide, %offset;\n", as_long);
  };
  if (uses(spec, "u"))
    for (const char* line :
         {"cvt.u64.u32 %offset, %ux;", "cvt.u64.u32 %offset, %us;", "cvt.u64.u32 %offset, %uu;"})
      fold(line);
  if (uses(spec, "f"))
    for (const char* line : {"mov.b32 %bits, %fx; cvt.u64.u32 %offset, %bits;",
                             "mov.b32 %bits, %fs; cvt.u64.u32 %offset, %bits;"})
      fold(line);
  if (uses(spec, "d"))
    for (const char* line : {"mov.b64 %offset, %dx;", "mov.b64 %offset, %ds;"}) fold(line);
  if (uses(spec, "h"))
    for (const char* line : {"cvt.u64.u16 %offset, %hx;", "cvt.u64.u16 %offset, %hs;"}) fold(line);
  if (uses(spec, "l"))
    for (const char* line : {"mov.u64 %offset, %lx;", "mov.u64 %offset, %ls;"}) fold(line);
  if (uses(spec, "ufd")) fold("selp.u64 %offset, 1, 0, %p;");
  return text + "\tst.global.u64 [%out], %wide;\nLEAVE:\n\tret;\n}\n";
}

}  // namespace

std::vector<void*> KernelParameters::pointers() {
  return {&out,     &buffer,   &stride,   &mask,     &iterations, &lanes,   &int_a,   &int_b,
          &int_c,   &int_y,    &int_even, &int_x,    &float_a,    &float_b, &float_c, &float_y,
          &float_x, &double_a, &double_b, &double_c, &double_y,   &long_a,  &long_b};
}

KernelShape default_shape(const Instruction& instruction) {
  return {instruction.takes_many ? 8u : 64u};
}

std::string kernel_ptx(const KernelSpec& spec) {
  if (spec.shape.unroll == 0 || spec.shape.unroll > kMostUnrolled)
    throw Error(fmt::format("--unroll {}: 1 to {} instructions per iteration", spec.shape.unroll,
                            kMostUnrolled));
  std::string ptx = kHeader;
  if (uses(spec, "u")) ptx += kInts;
  if (uses(spec, "fdh")) ptx += kFloats;
  if (uses(spec, "d")) ptx += kDoubles;
  if (uses(spec, "h")) ptx += kHalves;
  if (uses(spec, "l")) ptx += kLongs;
  bool has_shared = false, has_chain = false;
  for (const Instruction* i : spec.instructions) {
    has_shared |= i->memory == MemoryUse::kShared;
    has_chain |= i->measured.find("[{x}]") != std::string_view::npos;
  }
  if (has_shared) ptx += kShared;
  if (has_chain) ptx += kSharedChain;
  ptx += kLeave;
  ptx += "LOOP:\n\t.pragma \"nounroll\";\n";
  for (uint32_t step = 0; step < spec.shape.unroll && !spec.instructions.empty(); ++step) {
    const Instruction& i = *spec.instructions[step % spec.instructions.size()];
    add_lines(ptx, fill_in(i.before, i, spec.is_overhead));
    add_lines(ptx, fill_in(spec.is_overhead ? i.instead : i.measured, i, spec.is_overhead));
    add_lines(ptx, fill_in(i.after, i, spec.is_overhead));
  }
  ptx += kLoopEnd;
  return ptx + results(spec);
}

std::vector<std::string> loop_body(const std::string& ptx) {
  std::vector<std::string> body;
  std::istringstream in(ptx);
  bool is_inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "LOOP:") {
      is_inside = true;
    } else if (line.find("bra LOOP;") != std::string::npos) {
      return body;
    } else if (is_inside && line.find(".pragma") == std::string::npos) {
      body.push_back(line.substr(line.find_first_not_of('\t')));
    }
  }
  throw Error("the PTX text has no loop");
}

}  // namespace gpusim::power

// What one micro-op costs per simulated core: a loop of copies of it, on each backend that can run
// here, with operands that are the same in all lanes, grow evenly from lane to lane, or differ.
//
// Names are backend/micro-op/cores/operands. "items" are micro-ops times cores; the loop's own two
// micro-ops are not counted and make up about 3 %.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>

#include "device_sim/core/backend.h"

namespace gpusim {
namespace {

enum class Operands { kUniform, kAffine, kLanes };
constexpr const char* kOperandNames[] = {"uniform", "affine", "lanes"};

struct Row {
  Op op;
  uint64_t imm = 0;
  uint8_t aux = 0;
  Slot e = 0;
};
constexpr Row kRows[] = {
    {Op::mov},
    {Op::addi64, 3},
    {Op::add64},
    {Op::add32},
    {Op::add_lsl64, 2},
    {Op::and64},
    {Op::lsli64, 3},
    {Op::lsl64},
    {Op::ubfx, 0xff, 4},
    {Op::mul64},
    {Op::mul32},
    {Op::madd32},
    {Op::madd64},
    {Op::udiv64},
    {Op::clz64},
    {Op::fl_sub64},
    {.op = Op::csel64, .aux = 0xf0, .e = 0xf0},
    {Op::fadd32},
    {Op::fmul64},
    {Op::fdiv64},
    {Op::fma64},
    {Op::ldu8},
    {Op::ldu32},
    {Op::ld64},
    {Op::st32},
    {Op::st64},
};

constexpr Slot kCounter = 1, kA = 2, kB = 3, kC = 4, kD = 5, kFpState = 6, kSlotCount = 7;
constexpr uint32_t kCopies = 64, kRounds = 1000;
constexpr uint64_t kLinearBase = 0x10000, kLinearSize = uint64_t{1} << 22;

bool is_memory(Op op) {
  const Shape s = op_info(op).shape;
  return s == Shape::kLdI || s == Shape::kStI;
}

// Block 0: copies of the row, then counter - 1 and round again. Block 1: stop for the host.
Module make_module(const Row& row) {
  Uop u{
      .op = row.op, .d = kD, .a = kA, .b = kB, .c = kC, .e = row.e, .aux = row.aux, .imm = row.imm};
  if (shape_info(op_info(row.op).shape).fp_state) u.e = kFpState;
  Module m;
  m.isa = "aarch64";
  m.slot_count = kSlotCount;
  m.uops.assign(kCopies, u);
  m.uops.push_back({.op = Op::addi64, .d = kCounter, .a = kCounter, .imm = ~uint64_t{0}});
  m.uops.push_back({.op = Op::bri_ne64, .a = kCounter, .imm = Uop::pack_target(0, 0)});
  const auto loop_uops = static_cast<uint32_t>(m.uops.size());
  m.uops.push_back({.op = Op::service, .imm = Uop::pack_target(1, 0)});
  m.uop_insn.assign(m.uops.size(), 0);
  m.uop_block.assign(m.uops.size(), 0);
  m.uop_block.back() = 1;
  Block loop{.pc = 0x1000, .insn_count = loop_uops, .first_uop = 0, .uop_count = loop_uops};
  loop.classes[static_cast<size_t>(InsnClass::kOther)] = loop_uops;
  Block stop{.pc = 0x2000, .insn_count = 1, .first_uop = loop_uops, .uop_count = 1};
  stop.classes[static_cast<size_t>(InsnClass::kOther)] = 1;
  m.blocks = {loop, stop};
  return m;
}

uint64_t operand(const Row& row, Slot slot, Operands kind, uint32_t core) {
  // Scattered addresses lie within a page of each other: caches are not what is measured.
  // A product alone would be an affine value.
  uint64_t mixed = (core + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 29;
  if (is_memory(row.op) && slot == kA) {
    const uint64_t base = kLinearBase + 4096;
    if (kind == Operands::kUniform) return base;
    const uint64_t size = row.op == Op::ldu8 ? 1 : row.op == Op::ld64 || row.op == Op::st64 ? 8 : 4;
    return kind == Operands::kAffine ? base + core * size : base + (mixed >> 52 & ~uint64_t{7});
  }
  if (shape_info(op_info(row.op).shape).fp_state) {  // 1.0 or so; both halves for either format
    const bool is_double = row.op == Op::fmul64 || row.op == Op::fdiv64 || row.op == Op::fma64;
    const uint64_t one = is_double ? 0x3ff0000000000000 : 0x3f800000;
    const uint64_t step = is_double ? 0x1000000000 : 0x10;
    if (kind == Operands::kUniform) return one + slot * step;
    return one + (kind == Operands::kAffine ? (core + slot) * step : (mixed >> 54) * step);
  }
  switch (kind) {
    case Operands::kUniform:
      return 1000 + slot;
    case Operands::kAffine:
      return 1000 + slot + 4 * core;
    case Operands::kLanes:
      return mixed * slot;
  }
  return 0;
}

void run_rows(benchmark::State& state, const BackendInfo& info, const Row& row, uint32_t cores,
              Operands kind) {
  const Module module = make_module(row);
  MachineConfig config;
  config.cores = cores;
  config.linear_base = kLinearBase;
  config.linear_size = kLinearSize;
  config.window_base = uint64_t{1} << 32;
  const std::unique_ptr<Backend> backend = info.create();
  backend->configure(module, config);
  backend->set_permissions_all(kLinearBase, kLinearSize, kRead | kWrite);
  for (uint32_t core = 0; core < cores; ++core)
    for (const Slot slot : {kA, kB, kC, kD})
      backend->set_slot(core, slot, operand(row, slot, kind, core));
  for (auto _ : state) {
    for (uint32_t core = 0; core < cores; ++core) {
      backend->set_slot(core, kCounter, kRounds);
      backend->start(core, 0);
    }
    uint32_t ended = 0;
    while (backend->runnable() != 0) {
      for (const Event& event : backend->run_slice(uint64_t{1} << 20)) {
        if (event.status == CoreStatus::kService) ++ended;
      }
    }
    if (ended != cores) {
      state.SkipWithError("not every core came to its end");
      return;
    }
  }
  const double uops = static_cast<double>(state.iterations()) * kCopies * kRounds * cores;
  state.SetItemsProcessed(static_cast<int64_t>(uops));
}

void register_all() {
  for (const BackendInfo& info : all_backends()) {
    std::string why_not;
    if (!info.available(&why_not)) {
      std::fprintf(stderr, "%s: not measured: %s\n", info.name, why_not.c_str());
      continue;
    }
    const std::string name = info.name;
    const uint32_t cores = name == "scalar" ? 1 : name == "simd" ? 64 : 65536;
    for (const Row& row : kRows) {
      for (const Operands kind : {Operands::kUniform, Operands::kAffine, Operands::kLanes}) {
        if (cores == 1 && kind != Operands::kUniform) continue;  // there are no lanes
        auto* b = benchmark::RegisterBenchmark(
            (name + "/" + op_info(row.op).name + "/" + std::to_string(cores) + "/" +
             kOperandNames[static_cast<int>(kind)])
                .c_str(),
            [&info, &row, cores, kind](benchmark::State& state) {
              run_rows(state, info, row, cores, kind);
            });
        if (name == "cuda") b->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace gpusim

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  gpusim::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

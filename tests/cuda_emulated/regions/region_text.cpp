// Writes what the CUDA backend would compile of a program: scripts/gpu-regions.
//
//   region_text FOLDER CORES all|hot ELF [ARGUMENT...]
//
// The program runs to its end on backend simd. FOLDER gets regions.cu (the kernel of regions
// alone), kernel.cu (with the interpreter), and blocks.json: of each block with code in a region
// its number, where it begins, guest instructions and executions. `all`: all code, not what is hot.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "device_sim/cuda/regions.h"
#include "host/simulation.h"

namespace {

using namespace gpusim;

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("writing " + file.string());
}

bool has_vectors(const Module& module) {
  return std::ranges::any_of(module.uops,
                             [](const Uop& u) { return op_info(u.op).shape == Shape::kVector; });
}

int run(char** arguments) {
  const std::filesystem::path folder = arguments[0];
  const bool all = std::string(arguments[2]) == "all";
  host::RunOptions options;
  options.cores = static_cast<uint32_t>(std::stoul(arguments[1]));
  options.backend = "simd";
  options.quiet = true;
  options.program = arguments[3];
  for (char** argument = arguments + 4; *argument; ++argument)
    options.program_args.push_back(*argument);
  host::Simulation simulation(options);
  simulation.make_ready();
  std::optional<host::Checkpointer> none;
  simulation.execute(none, 0);
  const Module& module = simulation.module();
  const std::vector<uint64_t> counts = simulation.backend().block_counts();
  const std::vector<cuda::CodeRegion> regions =
      cuda::choose_regions(module, all ? std::vector<uint64_t>(module.blocks.size(), 1) : counts);
  const std::string text = cuda::text_of(module, regions);
  write(folder / "regions.cu", cuda::regions_source(text, false));
  write(folder / "kernel.cu", cuda::kernel_source(text, has_vectors(module), false));
  uint64_t total = 0;
  for (size_t b = 0; b < counts.size(); ++b) total += counts[b] * module.blocks[b].insn_count;
  std::string json = fmt::format("{{\"instructions\": {}, \"blocks\": [", total);
  const char* comma = "";
  for (const cuda::CodeRegion& region : regions)
    for (const uint32_t b : region.blocks) {
      const Block& block = module.blocks[b];
      json += fmt::format(
          "{}\n{{\"block\": {}, \"first\": {}, \"pc\": {}, \"insns\": {}, "
          "\"uops\": {}, \"count\": {}}}",
          comma, b, block.first_uop, block.pc, block.insn_count, block.uop_count, counts[b]);
      comma = ",";
    }
  write(folder / "blocks.json", json + "\n]}\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fputs("region_text FOLDER CORES all|hot ELF [ARGUMENT...]\n", stderr);
    return 2;
  }
  try {
    return run(arguments + 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "region_text: %s\n", error.what());
    return 1;
  }
}

// Compilers of regions: text into a kernel, while the interpreter goes on.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "device_sim/core/compiled_regions.h"
#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

// What is compiled: what is hot, or everything before the first slice, where that has loops or also
// where it has none.
enum class RegionExtent : uint8_t { kHot, kLoops, kAll };

class RegionCompiler {
 public:
  virtual ~RegionCompiler() = default;

  // `text`: of regions.h. `has_vectors`, `in_place`: which kernel it belongs to. What was begun
  // before is forgotten.
  virtual void begin(const std::string& text, bool has_vectors, bool in_place) = 0;
  virtual RegionExtent extent() const { return RegionExtent::kHot; }
  // Entries are null of what is not there. Kernels stay for as long as the compiler lives, or until
  // it begins anew.
  struct Code {
    Kernel beside{};                    // the interpreter with the regions in it
    Kernel alone{};                     // the regions, without the interpreter
    const void* region_code = nullptr;  // Machine::region_code
    bool is_all = true;                 // nothing more will come
  };
  // All that is there by now, if there is more than at the last call. Throws std::runtime_error if
  // nothing will be.
  virtual std::optional<Code> take() = 0;
};

// Null: regions are not compiled.
std::unique_ptr<RegionCompiler> make_region_compiler(CompiledRegions wanted);

}  // namespace gpusim::cuda

// Compilers of regions: text into a kernel, while the interpreter goes on.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "device_sim/cuda/kernel.cuh"

namespace gpusim::cuda {

class RegionCompiler {
 public:
  virtual ~RegionCompiler() = default;

  // `text`: of regions.h. `has_vectors`, `in_place`: which kernel it belongs to. What was begun
  // before is forgotten.
  virtual void begin(const std::string& text, bool has_vectors, bool in_place) = 0;
  // Whether everything is compiled before the first slice, whatever is hot.
  virtual bool compiles_all() const { return false; }
  struct Code {
    Kernel kernel;
    const void* region_code;  // Machine::region_code
  };
  // Once it is done, and then for as long as the compiler lives. Throws std::runtime_error.
  virtual std::optional<Code> take() = 0;
};

// Null: regions are not compiled.
std::unique_ptr<RegionCompiler> make_region_compiler();

}  // namespace gpusim::cuda

// Hot code that a backend compiles for its device while the program runs: docs/gpu.md, ADR 0045.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "device_sim/core/backend.h"

namespace gpusim {

enum class CompiledRegions : uint8_t {
  kAuto,  // as GPUSIM_COMPILED_REGIONS says; off where it says nothing
  kOff,
  kOn,    // compiled beside the run
  kWait,  // the run goes on when it is compiled
};
inline constexpr char kCompiledRegionsWords[] = "off, on, wait";

inline std::optional<CompiledRegions> compiled_regions_of(std::string_view word) {
  if (word == "off") return CompiledRegions::kOff;
  if (word == "on") return CompiledRegions::kOn;
  if (word == "wait") return CompiledRegions::kWait;
  return {};
}

// Backends that can.
class CompilesRegions {
 public:
  virtual ~CompilesRegions() = default;
  virtual void compile_regions(CompiledRegions wanted) = 0;  // before configure()
};

// Of no consequence where the backend compiles none.
inline void compile_regions(Backend& backend, CompiledRegions wanted) {
  if (auto* const compiles = dynamic_cast<CompilesRegions*>(&backend))
    compiles->compile_regions(wanted);
}

}  // namespace gpusim

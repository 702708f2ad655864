// What Translator keeps of a program that is translated where cores come.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "translator/common/limits.h"
#include "translator/common/link.h"
#include "translator/common/translator.h"

namespace gpusim {

struct Translator::OnDemand {
  static constexpr size_t kNearBlocks = 16;  // are translated together

  bool starts_block(const CodeMap& code, uint64_t pc) const {
    const uint64_t unit = code.unit_of(pc);
    return code.is_aligned(pc) && unit < leaders.size() && leaders[unit];
  }

  std::vector<bool> leaders;  // by unit of the code map
  OpenTargets open;
  std::unordered_map<uint64_t, bool> reads_flags;  // answers given so far
};

}  // namespace gpusim

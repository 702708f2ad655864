// Products of matrices of a warpgroup: operands in shared memory, and the arithmetic of matrix.h.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "host/ptx/matrix.h"
#include "translator/ptx/warpgroup_op.h"

namespace gpusim::ptx {

using GroupWords = std::array<uint64_t, kGroupRoomBytes / 8>;

/// Per lane, the words of warpgroup_op.h; the first become those of d. `shared`: of the CTA.
/// Returns an offset beyond it that an operand would be at; nothing: all is well.
std::optional<uint64_t> multiply_group(const WarpgroupOp& op, TensorCores cores,
                                       std::span<const uint8_t> shared,
                                       std::span<GroupWords, kGroupThreads> lanes);

}  // namespace gpusim::ptx

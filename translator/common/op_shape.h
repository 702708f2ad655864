// The shape's properties per micro-op, as a table.
#pragma once
#include <array>

#include "device_sim/uir/uop.h"

namespace gpusim {

inline constexpr std::array<ShapeInfo, kOpCount> kOpShapes = [] {
  std::array<ShapeInfo, kOpCount> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = shape_info(kOpInfo[i].shape);
  return table;
}();

constexpr const ShapeInfo& shape_of(Op op) { return kOpShapes[static_cast<size_t>(op)]; }

}  // namespace gpusim

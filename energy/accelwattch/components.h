// The components of the model, as its sheets name them, and how charts group them.
#pragma once
#include <span>
#include <string_view>

namespace gpusim::accelwattch {

struct ComponentInfo {
  std::string_view name;   // the sheets' column
  std::string_view title;  // what it is
  std::string_view group;  // of charts
};

// 22 dynamic components (paper, table 1), then idle SMs, constant and static power.
inline constexpr size_t kDynamicComponents = 22;
std::span<const ComponentInfo> all_components();
// nullptr for a name that the model does not have.
const ComponentInfo* find_component(std::string_view name);

inline constexpr std::string_view kIdle = "IDLE_COREP", kConstant = "CONSTP", kStatic = "STATICP";

}  // namespace gpusim::accelwattch

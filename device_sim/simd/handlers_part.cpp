// Handlers for groups some of whose lanes wait.
#include "device_sim/core/cpu_backend.h"
#include "device_sim/simd/group.h"
#include "device_sim/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device_sim/simd/handlers_part.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device_sim/simd/handlers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpusim {
namespace HWY_NAMESPACE {
extern const HandlerTable kPartTable = make_table<false>();
}  // namespace HWY_NAMESPACE
}  // namespace gpusim
HWY_AFTER_NAMESPACE();

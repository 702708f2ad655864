// Helpers for textures and surfaces (helpers.def). What objects there are is the host's: whoever
// has such says where, by functions that take any operands. Where nobody has any, and in kernels
// of a device that do without (textures/device.h), results are zero.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"
#include "device_sim/uir/uop.h"

namespace gpusim {
#ifndef GPUSIM_DEVICE_TEXTURE_UNIT
#define GPUSIM_DEVICE_TEXTURE_UNIT(name, ...) 0
#endif
struct TextureUnit {
  uint64_t (*object)(uint64_t handle, uint64_t what);
  uint64_t (*query)(uint64_t handle, uint64_t level, uint64_t what);
  uint64_t (*level)(uint64_t xy, uint64_t z, uint64_t handle);
  uint64_t (*fetch)(uint64_t xy, uint64_t z_and_level, uint64_t layer_and_handle, uint64_t op);
  uint64_t (*surface)(uint64_t xy, uint64_t z, uint64_t handle, uint64_t op);
};

#if !defined(__CUDACC_RTC__)
/// Handles are addresses of the process: so there is one for all machines, set before they run.
inline const TextureUnit* texture_unit = nullptr;
#endif

#if defined(__CUDA_ARCH__) || defined(__CUDACC_RTC__)
#define GPUSIM_TEXTURE_UNIT GPUSIM_DEVICE_TEXTURE_UNIT
#else
#define GPUSIM_TEXTURE_UNIT(name, ...) \
  (texture_unit != nullptr ? texture_unit->name(__VA_ARGS__) : 0)
#endif

namespace helpers {

GPUSIM_HD inline uint64_t texture_object([[maybe_unused]] uint64_t a, const Uop& u) {
  static_cast<void>(u);
  return GPUSIM_TEXTURE_UNIT(object, a, u.imm);
}
GPUSIM_HD inline uint64_t texture_query([[maybe_unused]] uint64_t a, [[maybe_unused]] uint64_t b,
                                        const Uop& u) {
  static_cast<void>(u);
  return GPUSIM_TEXTURE_UNIT(query, a, b, u.imm);
}
GPUSIM_HD inline uint64_t texture_level([[maybe_unused]] uint64_t a, [[maybe_unused]] uint64_t b,
                                        [[maybe_unused]] uint64_t c, const Uop&) {
  return GPUSIM_TEXTURE_UNIT(level, a, b, c);
}
GPUSIM_HD inline uint64_t texture_fetch([[maybe_unused]] uint64_t a, [[maybe_unused]] uint64_t b,
                                        [[maybe_unused]] uint64_t c, const Uop& u) {
  static_cast<void>(u);
  return GPUSIM_TEXTURE_UNIT(fetch, a, b, c, u.imm);
}
GPUSIM_HD inline uint64_t surface_address([[maybe_unused]] uint64_t a, [[maybe_unused]] uint64_t b,
                                          [[maybe_unused]] uint64_t c, const Uop& u) {
  static_cast<void>(u);
  return GPUSIM_TEXTURE_UNIT(surface, a, b, c, u.imm);
}

}  // namespace helpers

#undef GPUSIM_TEXTURE_UNIT

}  // namespace gpusim

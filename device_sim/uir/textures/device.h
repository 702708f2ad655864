// Textures and surfaces in kernels of a device (helpers_texture.h). A source file whose kernels
// have them includes this before all else.
#pragma once
#include "device_sim/uir/textures/calls.h"

#ifndef GPUSIM_DEVICE_VARIABLE
#define GPUSIM_DEVICE_VARIABLE static __device__
#endif

namespace gpusim {
/// textures::Room::base, or 0: there are none.
GPUSIM_DEVICE_VARIABLE uint64_t device_textures = 0;
}  // namespace gpusim

#define GPUSIM_DEVICE_TEXTURE_UNIT(name, ...) \
  (device_textures != 0 ? textures::name(textures::Room{device_textures}, __VA_ARGS__) : 0)

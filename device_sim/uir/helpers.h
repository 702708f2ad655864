// Calls a helper of uir/helpers.def by its number.
#pragma once
#include <cstdint>

#include "device_sim/uir/helpers_bf16.h"
#include "device_sim/uir/helpers_bits.h"
#include "device_sim/uir/helpers_crypto.h"
#include "device_sim/uir/helpers_fp.h"
#include "device_sim/uir/helpers_int.h"
#include "device_sim/uir/helpers_texture.h"
#include "device_sim/uir/helpers_vector.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

#define GPUSIM_HELPER1(name, fields)
#define GPUSIM_HELPER2(name, fields)
#define GPUSIM_HELPER3(name, fields)
#define GPUSIM_FHELPER1(name, fields)
#define GPUSIM_FHELPER2(name, fields)
#define GPUSIM_FHELPER3(name, fields)

// A helper's number, one enumeration per kind.
#define GPUSIM_LISTED(name, fields) name,
#undef GPUSIM_HELPER1
#define GPUSIM_HELPER1 GPUSIM_LISTED
enum class Helper1 : uint8_t {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER1
#define GPUSIM_HELPER1(name, fields)
#undef GPUSIM_HELPER2
#define GPUSIM_HELPER2 GPUSIM_LISTED
enum class Helper2 : uint8_t {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER2
#define GPUSIM_HELPER2(name, fields)
#undef GPUSIM_HELPER3
#define GPUSIM_HELPER3 GPUSIM_LISTED
enum class Helper3 : uint8_t {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_HELPER3
#define GPUSIM_HELPER3(name, fields)
#undef GPUSIM_FHELPER1
#define GPUSIM_FHELPER1 GPUSIM_LISTED
enum class FpHelper1 : uint8_t {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_FHELPER1
#define GPUSIM_FHELPER1(name, fields)
#undef GPUSIM_FHELPER2
#define GPUSIM_FHELPER2 GPUSIM_LISTED
enum class FpHelper2 : uint8_t {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_FHELPER2
#define GPUSIM_FHELPER2(name, fields)
#undef GPUSIM_FHELPER3
#define GPUSIM_FHELPER3 GPUSIM_LISTED
enum class FpHelper3 : uint8_t {
#include "device_sim/uir/helpers.def"
};
#undef GPUSIM_FHELPER3
#define GPUSIM_FHELPER3(name, fields)
#undef GPUSIM_LISTED

template <class Helper>
constexpr uint8_t helper_number(Helper h) {
  return static_cast<uint16_t>(h);
}

namespace helpers {

#undef GPUSIM_HELPER1
#define GPUSIM_HELPER1(name, fields) \
  case Helper1::name:                \
    return name(a, u);
GPUSIM_HD_NOINLINE uint64_t call1(uint64_t a, Uop u) {
  switch (static_cast<Helper1>(u.e)) {
#include "device_sim/uir/helpers.def"
  }
  return 0;
}
#undef GPUSIM_HELPER1
#define GPUSIM_HELPER1(name, fields)

#undef GPUSIM_HELPER2
#define GPUSIM_HELPER2(name, fields) \
  case Helper2::name:                \
    return name(a, b, u);
GPUSIM_HD_NOINLINE uint64_t call2(uint64_t a, uint64_t b, Uop u) {
  switch (static_cast<Helper2>(u.e)) {
#include "device_sim/uir/helpers.def"
  }
  return 0;
}
#undef GPUSIM_HELPER2
#define GPUSIM_HELPER2(name, fields)

#undef GPUSIM_HELPER3
#define GPUSIM_HELPER3(name, fields) \
  case Helper3::name:                \
    return name(a, b, c, u);
GPUSIM_HD_NOINLINE uint64_t call3(uint64_t a, uint64_t b, uint64_t c, Uop u) {
  switch (static_cast<Helper3>(u.e)) {
#include "device_sim/uir/helpers.def"
  }
  return 0;
}
#undef GPUSIM_HELPER3
#define GPUSIM_HELPER3(name, fields)

#undef GPUSIM_FHELPER1
#define GPUSIM_FHELPER1(name, fields) \
  case FpHelper1::name:               \
    return name(a, u, fp);
GPUSIM_HD_NOINLINE uint64_t fcall1(uint64_t a, Uop u, uint64_t& fp) {
  switch (static_cast<FpHelper1>(u.imm & 0xffff)) {
#include "device_sim/uir/helpers.def"
  }
  return 0;
}
#undef GPUSIM_FHELPER1
#define GPUSIM_FHELPER1(name, fields)

#undef GPUSIM_FHELPER2
#define GPUSIM_FHELPER2(name, fields) \
  case FpHelper2::name:               \
    return name(a, b, u, fp);
GPUSIM_HD_NOINLINE uint64_t fcall2(uint64_t a, uint64_t b, Uop u, uint64_t& fp) {
  switch (static_cast<FpHelper2>(u.imm & 0xffff)) {
#include "device_sim/uir/helpers.def"
  }
  return 0;
}
#undef GPUSIM_FHELPER2
#define GPUSIM_FHELPER2(name, fields)

#undef GPUSIM_FHELPER3
#define GPUSIM_FHELPER3(name, fields) \
  case FpHelper3::name:               \
    return name(a, b, c, u, fp);
GPUSIM_HD_NOINLINE uint64_t fcall3(uint64_t a, uint64_t b, uint64_t c, Uop u, uint64_t& fp) {
  switch (static_cast<FpHelper3>(u.imm & 0xffff)) {
#include "device_sim/uir/helpers.def"
  }
  return 0;
}

}  // namespace helpers

#undef GPUSIM_HELPER1
#undef GPUSIM_HELPER2
#undef GPUSIM_HELPER3
#undef GPUSIM_FHELPER1
#undef GPUSIM_FHELPER2
#undef GPUSIM_FHELPER3

}  // namespace gpusim

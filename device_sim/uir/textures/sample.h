// What a fetch from a texture gives, the same on the host and on devices. It follows the CUDA C++
// Programming Guide, appendix "Texture Fetching". Everything but the stated roundings is exact in
// double; they are those of an H100 (docs/ptx.md).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "device_sim/uir/textures/object.h"

namespace gpusim::textures {

inline constexpr int64_t kOutside = -1;  // of an index: the border's color
// What processors make of numbers that are none differs: it is said here.
inline constexpr uint32_t kNan = 0x7fc00000;

// Coordinates that are far away, or no numbers, stay ones that integers can hold.
GPUSIM_HD inline double within(double x) {
  constexpr double kFar = 1 << 30;
  if (x > -kFar && x < kFar) return x;
  return std::isnan(x) ? 0 : std::clamp(x, -kFar, kFar);
}

GPUSIM_HD inline int64_t resolve(int64_t i, int64_t size, AddressMode mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case AddressMode::kWrap: {
      const int64_t rest = i % size;
      return rest < 0 ? rest + size : rest;
    }
    case AddressMode::kMirror: {
      const int64_t period = 2 * size, rest = (i % period + period) % period;
      return rest < size ? rest : period - 1 - rest;
    }
    case AddressMode::kBorder:
      return kOutside;
    default:
      return std::clamp<int64_t>(i, 0, size - 1);
  }
}

// Of what is within().
GPUSIM_HD inline int64_t floor_of(double x) {
  const auto cut = static_cast<int64_t>(x);
  return cut - (static_cast<double>(cut) > x ? 1 : 0);
}

// The two texels of one dimension, and how much of the second there is: 0 to 256.
struct Footprint {
  int64_t first = 0, second = 0;
  uint32_t weight = 0;
  GPUSIM_HD int64_t texel(uint32_t number) const { return number == 0 ? first : second; }
};

// The weights of the eight texels, whose dimensions' bits say whether it is the second one; their
// sum is `all`, at most 256. What a texel shares with those behind it in some dimensions is a whole
// number, rounded, halves up.
GPUSIM_HD inline std::array<int32_t, 8> weights_of(const std::array<Footprint, 3>& f,
                                                   uint32_t all) {
  std::array<int32_t, 8> w{};
  for (uint32_t texel = 0; texel < 8; ++texel) {
    uint64_t share = all, divisor = 1;
    for (uint32_t d = 0; d < 3; ++d)
      if ((texel >> d & 1) != 0) {
        share *= f[d].weight;
        divisor *= 256;
      }
    w[texel] = static_cast<int32_t>((2 * share + divisor) / (2 * divisor));
  }
  for (uint32_t d = 0; d < 3; ++d)
    for (uint32_t texel = 0; texel < 8; ++texel)
      if ((texel >> d & 1) == 0) w[texel] -= w[texel | 1u << d];
  return w;
}

// --- texels

GPUSIM_HD inline double half_value(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24)
                      : exponent == 31
                          ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                          : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

// To the nearest, ties to even.
GPUSIM_HD inline double rounded_to_half(double x) {
  const double size = std::fabs(x);
  if (!(size < 65520)) return std::isnan(x) ? x : std::copysign(HUGE_VAL, x);
  const double last = std::ldexp(1, std::max(size == 0 ? -24 : std::ilogb(size) - 10, -24));
  return std::nearbyint(x / last) * last;
}

class Sampler {
 public:
  /// `linear`: Room's.
  GPUSIM_HD Sampler(const TextureObject& t, const double* linear, const TextureLevel& level,
                    Geometry geometry)
      : t_(t), linear_(linear), level_(level), geometry_(geometry) {}

  GPUSIM_HD bool is_float() const { return t_.kind == ChannelKind::kFloat || t_.reads_normalized; }

  GPUSIM_HD Footprint footprint(int dimension, uint32_t bits, bool is_integer, bool filters) const {
    const auto [size, mode] = extent(dimension, is_integer);
    Footprint f;
    if (is_integer) {
      f.first = f.second = resolve(static_cast<int32_t>(bits), size, mode);
      return f;
    }
    const double x = coordinate(bits, size, mode);
    if (!filters) {
      f.first = f.second = resolve(floor_of(x), size, mode);
      return f;
    }
    const double place = x - 0.5;
    const int64_t whole = floor_of(place);
    // Halves go up.
    const double shares = (place - static_cast<double>(whole)) * 256;
    f.weight = static_cast<uint32_t>(floor_of(shares + 0.5));
    f.first = resolve(whole, size, mode);
    f.second = resolve(whole + 1, size, mode);
    return f;
  }

  // Of a channel that is there; its bits, zero-extended.
  GPUSIM_HD double value(uint32_t bits, uint32_t number) const {
    const double x = steps(bits);
    if (t_.kind == ChannelKind::kFloat || !t_.reads_normalized) return x;
    return t_.is_srgb && number < 3 ? linear_[bits & 255] : x / top();
  }

  GPUSIM_HD uint32_t channel(int64_t x, int64_t y, int64_t z, uint32_t number) const {
    const uint8_t* const at = level_.data + static_cast<uint64_t>(z) * level_.slice_bytes +
                              static_cast<uint64_t>(y) * level_.row_bytes +
                              static_cast<uint64_t>(x) * t_.texel_bytes() +
                              number * (t_.channel_bits / 8u);
    uint32_t bits = 0;
    // Not from what another thread had here before; and a device's words are aligned.
    if (t_.channel_bits == 32 && (reinterpret_cast<uintptr_t>(at) & 3) == 0)
      bits = *reinterpret_cast<const volatile uint32_t*>(at);
    else
      for (uint32_t k = 0; k < t_.channel_bits / 8u; ++k)
        bits |= uint32_t{*static_cast<const volatile uint8_t*>(at + k)} << 8 * k;
    return bits;
  }

  // As one fetch without a filter gives it. A channel that is lacking is zero.
  GPUSIM_HD uint32_t word(int64_t x, int64_t y, int64_t z, uint32_t number) const {
    if (number >= t_.channels) return 0;
    if (x == kOutside || y == kOutside || z == kOutside) return border_word(number);
    const uint32_t bits = channel(x, y, z, number);
    if (t_.channel_bits == 32) return bits;
    if (t_.kind == ChannelKind::kFloat && (bits & 0x7fff) > 0x7c00)
      return (bits & 0x8000) << 16 | kNan;
    if (is_float()) return std::bit_cast<uint32_t>(static_cast<float>(value(bits, number)));
    return t_.kind == ChannelKind::kSigned ? static_cast<uint32_t>(extended(bits)) : bits;
  }

  GPUSIM_HD double number_at(int64_t x, int64_t y, int64_t z, uint32_t number) const {
    if (number >= t_.channels) return 0;
    const bool is_outside = x == kOutside || y == kOutside || z == kOutside;
    if (has_steps()) return is_outside ? border_steps(number) : steps(channel(x, y, z, number));
    return is_outside ? border_number(number) : value(channel(x, y, z, number), number);
  }

  // The average of up to eight texels, times `all` / 256; in steps, if there are some.
  GPUSIM_HD double filtered(const std::array<Footprint, 3>& f, uint32_t number,
                            uint32_t all) const {
    const std::array<int32_t, 8> weights = weights_of(f, all);
    double sum = 0;
    for (uint32_t texel = 0; texel < 8; ++texel)
      if (weights[texel] != 0)
        sum += weights[texel] * number_at(f[0].texel(texel & 1), f[1].texel(texel >> 1 & 1),
                                          f[2].texel(texel >> 2), number);
    return sum / 256;
  }
  // An average as a fetch gives it: with the channel's format, integers with 16 bits.
  GPUSIM_HD uint32_t rounded(double x) const {
    if (t_.kind == ChannelKind::kFloat && t_.channel_bits == 16) x = rounded_to_half(x);
    if (has_steps()) {
      const double top16 = t_.kind == ChannelKind::kSigned ? 32767 : 65535;
      x = std::floor(x * top16 / top() + 0.5) / top16;
    }
    if (std::isnan(x)) return kNan;
    return std::bit_cast<uint32_t>(static_cast<float>(x));
  }

  // The texels of all dimensions; those of a layer or a face are one slice.
  GPUSIM_HD std::array<Footprint, 3> footprints(const std::array<uint32_t, 3>& coordinates,
                                                bool is_integer, bool filters,
                                                int64_t slice) const {
    std::array<Footprint, 3> f{};
    const int dimensions = geometry_ == Geometry::kCube || geometry_ == Geometry::kCubeLayers
                               ? 2
                               : dimensions_of(geometry_);
    for (int d = 0; d < dimensions; ++d)
      f[static_cast<size_t>(d)] =
          footprint(d, coordinates[static_cast<size_t>(d)], is_integer, filters);
    if (dimensions < 3) f[2].first = f[2].second = slice;
    return f;
  }

 private:
  struct Side {
    int64_t size;
    AddressMode mode;
  };
  GPUSIM_HD Side extent(int dimension, bool is_integer) const {
    const int64_t size = dimension == 0   ? level_.width
                         : dimension == 1 ? level_.height
                                          : level_.depth;
    if (t_.is_linear_memory) return {size, AddressMode::kBorder};
    const AddressMode mode = t_.modes[static_cast<size_t>(dimension)];
    // Without normalized coordinates there is nothing to repeat.
    if ((!t_.is_normalized || is_integer) && repeats(mode)) return {size, AddressMode::kClamp};
    return {size, mode};
  }
  GPUSIM_HD static bool repeats(AddressMode mode) {
    return mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  }
  // Averages of integers that are read as floats are of whole numbers: exact.
  GPUSIM_HD bool has_steps() const {
    return t_.kind != ChannelKind::kFloat && t_.reads_normalized && !t_.is_srgb;
  }
  // What is read as 1.
  GPUSIM_HD double top() const {
    const int bits = t_.channel_bits - (t_.kind == ChannelKind::kSigned ? 1 : 0);
    return static_cast<double>((uint64_t{1} << bits) - 1);
  }
  // The number that is stored.
  GPUSIM_HD double steps(uint32_t bits) const {
    if (t_.kind == ChannelKind::kFloat)
      return t_.channel_bits == 16 ? half_value(bits) : std::bit_cast<float>(bits);
    if (t_.kind == ChannelKind::kUnsigned) return bits;
    const double x = extended(bits);
    return t_.reads_normalized ? std::max(-top(), x) : x;
  }
  // The border's color has the texture's format.
  GPUSIM_HD double border_steps(uint32_t number) const {
    const double x = std::bit_cast<float>(t_.border[number]);
    const double least = t_.kind == ChannelKind::kSigned ? -1 : 0;
    return std::trunc(std::clamp(std::isnan(x) ? 0 : x, least, 1.0) * top());
  }
  GPUSIM_HD double border_number(uint32_t number) const {
    if (t_.kind != ChannelKind::kFloat) return border_steps(number) / top();
    const double x = std::bit_cast<float>(t_.border[number]);
    return t_.channel_bits == 16 ? rounded_to_half(x) : x;
  }
  GPUSIM_HD uint32_t border_word(uint32_t number) const {
    const uint32_t bits = t_.border[number];
    if (t_.kind == ChannelKind::kFloat && std::isnan(std::bit_cast<float>(bits)))
      return bits | kNan;
    if (is_float()) return std::bit_cast<uint32_t>(static_cast<float>(border_number(number)));
    if (t_.kind == ChannelKind::kSigned) return static_cast<uint32_t>(extended(bits));
    return t_.channel_bits == 32 ? bits : bits & ((1u << t_.channel_bits) - 1);
  }
  // In texels.
  GPUSIM_HD double coordinate(uint32_t bits, int64_t size, AddressMode mode) const {
    double x = std::bit_cast<float>(bits);
    if (t_.is_normalized) {
      // What repeats does so after one or two units.
      if (repeats(mode) && std::isfinite(x)) x -= 2 * std::floor(x / 2);
      constexpr double kUnits = 1 << 20;  // the coordinate is cut off there
      x = std::floor(x * kUnits) / kUnits * static_cast<double>(size);
    }
    return within(x);
  }
  GPUSIM_HD int32_t extended(uint32_t bits) const {
    const int up = 32 - t_.channel_bits;
    return static_cast<int32_t>(bits << up) >> up;
  }

  const TextureObject& t_;
  const double* const linear_;
  const TextureLevel& level_;
  Geometry geometry_;
};

// The face that a direction meets, and where: normalized coordinates on it.
struct Face {
  uint32_t number;
  float x, y;
};
GPUSIM_HD inline Face face_of(const std::array<uint32_t, 3>& bits) {
  const float x = std::bit_cast<float>(bits[0]), y = std::bit_cast<float>(bits[1]),
              z = std::bit_cast<float>(bits[2]);
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  uint32_t number = 0;
  float m = ax, s = 0, t = 0;
  if (ax >= ay && ax >= az) {
    number = std::signbit(x) ? 1 : 0;
    s = number == 0 ? -z : z;
    t = -y;
  } else if (ay >= az) {
    number = std::signbit(y) ? 3 : 2;
    m = ay;
    s = x;
    t = number == 2 ? z : -z;
  } else {
    number = std::signbit(z) ? 5 : 4;
    m = az;
    s = number == 4 ? x : -x;
    t = -y;
  }
  const auto place = [m](float a) { return m == 0 ? 0.5f : (a / m + 1) / 2; };
  return {number, place(s), place(t)};
}

/// One word of a texel that a texture gives; `given` are coordinates as bits of registers.
GPUSIM_HD inline uint32_t sample(const TextureObject& t, const double* linear, const TextureOp& op,
                                 const std::array<uint32_t, 3>& given, float level,
                                 uint32_t layer) {
  std::array<uint32_t, 3> coordinates = given;
  int64_t slice = 0;
  if (t.layers != 0 && op.geometry != Geometry::k3d) {
    const uint32_t faces =
        op.geometry == Geometry::kCube || op.geometry == Geometry::kCubeLayers ? 6 : 1;
    const uint32_t cubes = std::max(1u, t.layers / faces);
    slice = has_layers(op.geometry) ? int64_t{std::min(layer, cubes - 1)} * faces : 0;
    if (faces == 6) {
      const Face face = face_of(given);
      slice += std::min(face.number, t.layers - 1);
      coordinates = {std::bit_cast<uint32_t>(face.x), std::bit_cast<uint32_t>(face.y), 0};
    }
  }
  const bool filters = t.filters && !op.is_integer;
  const auto of_level = [&](uint32_t n, uint32_t share) {
    const Sampler s(t, linear, t.levels[n], op.geometry);
    return s.filtered(s.footprints(coordinates, op.is_integer, filters, slice), op.component,
                      share);
  };
  uint32_t number = 0;
  if (op.has_level) {
    float lod = std::isnan(level) ? 0 : level + t.level_bias;
    lod = std::clamp(lod, std::min(t.least_level, t.most_level), t.most_level);
    const double last = t.level_count - 1;
    if (t.filters_levels && Sampler(t, linear, t.levels[0], op.geometry).is_float()) {
      // Cut off to 1/256.
      const auto fixed =
          static_cast<uint32_t>(std::clamp(static_cast<double>(lod), 0.0, last) * 256);
      const uint32_t weight = fixed & 255;
      number = fixed >> 8;
      if (weight != 0)
        return Sampler(t, linear, t.levels[number], op.geometry)
            .rounded(of_level(number, 256 - weight) + of_level(number + 1, weight));
    } else {
      number =
          static_cast<uint32_t>(std::clamp(std::floor(static_cast<double>(lod) + 0.5), 0.0, last));
    }
  }
  const Sampler s(t, linear, t.levels[number], op.geometry);
  if (op.gathers) {
    // Against the clock from the lower left, y downwards.
    const auto f = s.footprints(coordinates, op.is_integer, true, slice);
    const bool is_right = op.texel == 1 || op.texel == 2, is_low = op.texel < 2;
    return s.word(is_right ? f[0].second : f[0].first, is_low ? f[1].second : f[1].first,
                  f[2].first, op.component);
  }
  const auto f = s.footprints(coordinates, op.is_integer, filters, slice);
  if (!filters || !s.is_float()) return s.word(f[0].first, f[1].first, f[2].first, op.component);
  return s.rounded(s.filtered(f, op.component, 256));
}

// Of a positive number; the same on every device, and within four units of the last place of
// double.
GPUSIM_HD inline double log2_of(double x) {
  if (!(x > 0) || !(x < HUGE_VAL)) return x == 0 ? -HUGE_VAL : x;
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = -1023;
  if (bits >> 52 == 0) {
    bits = std::bit_cast<uint64_t>(x * 0x1p64);
    exponent -= 64;
  }
  exponent += static_cast<int64_t>(bits >> 52);
  double m = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1023} << 52);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++exponent;
  }
  // log m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 ...), where s is at most 0.172.
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  constexpr double kLog2E = 1.4426950408889634;
  return static_cast<double>(exponent) + 2 * kLog2E * (s * sum);
}

/// Level of detail for one of a fetch's gradients.
GPUSIM_HD inline float level_for(const TextureObject& t, const std::array<float, 3>& gradient) {
  const TextureLevel& first = t.levels[0];
  const double sizes[] = {static_cast<double>(first.width), static_cast<double>(first.height),
                          static_cast<double>(first.depth)};
  double sum = 0;
  for (size_t d = 0; d < 3; ++d) {
    const double texels = t.is_normalized ? gradient[d] * sizes[d] : gradient[d];
    sum += texels * texels;
  }
  return static_cast<float>(log2_of(sum) / 2);
}

}  // namespace gpusim::textures

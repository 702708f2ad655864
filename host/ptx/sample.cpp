// What a fetch from a texture gives. Everything but the stated roundings is exact in double.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/ptx/texture.h"

namespace gpusim::ptx {
namespace {

constexpr int64_t kOutside = -1;  // of an index: the border's color

// Coordinates that are far away, or no numbers, stay ones that integers can hold.
double within(double x) {
  constexpr double kFar = 1 << 30;
  if (x > -kFar && x < kFar) return x;
  return std::isnan(x) ? 0 : std::clamp(x, -kFar, kFar);
}

int64_t resolve(int64_t i, int64_t size, AddressMode mode) {
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
int64_t floor_of(double x) {
  const auto cut = static_cast<int64_t>(x);
  return cut - (static_cast<double>(cut) > x ? 1 : 0);
}

// The two texels of one dimension, and how much of the second there is: 0 to 256.
struct Footprint {
  int64_t first = 0, second = 0;
  uint32_t weight = 0;
  int64_t texel(uint32_t number) const { return number == 0 ? first : second; }
  uint32_t share(uint32_t number) const { return number == 0 ? 256 - weight : weight; }
};

// --- texels

double half_value(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24)
                      : exponent == 31
                          ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                          : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

// IEC 61966-2-1
double linear_of_srgb(double x) {
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

struct Channel {
  uint32_t bits = 0;  // zero-extended
  bool is_there = false;
};

class Sampler {
 public:
  Sampler(const TextureObject& t, const TextureLevel& level, Geometry geometry)
      : t_(t), level_(level), geometry_(geometry) {}

  bool is_float() const { return t_.kind == ChannelKind::kFloat || t_.reads_normalized; }

  Footprint footprint(int dimension, uint32_t bits, bool is_integer, bool filters) const {
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

  // Of a channel that is there.
  double value(const Channel& c, uint32_t number) const {
    if (t_.kind == ChannelKind::kFloat)
      return t_.channel_bits == 16 ? half_value(c.bits) : std::bit_cast<float>(c.bits);
    const auto top = static_cast<double>((uint64_t{1} << (t_.channel_bits - 1)) - 1);
    switch (t_.kind) {
      case ChannelKind::kSigned: {
        const double x = static_cast<double>(extended(c.bits));
        return t_.reads_normalized ? std::max(-1.0, x / top) : x;
      }
      default: {
        const double x = c.bits;
        if (!t_.reads_normalized) return x;
        const double share = x / (2 * top + 1);
        return t_.is_srgb && number < 3 ? linear_of_srgb(share) : share;
      }
    }
  }

  Channel channel(int64_t x, int64_t y, int64_t z, uint32_t number) const {
    if (number >= t_.channels) return {0, false};
    const uint8_t* const at = level_.data + static_cast<uint64_t>(z) * level_.slice_bytes +
                              static_cast<uint64_t>(y) * level_.row_bytes +
                              static_cast<uint64_t>(x) * t_.texel_bytes();
    uint32_t bits = 0;
    if (t_.channel_bits == 32)
      std::memcpy(&bits, at + number * 4, 4);
    else if (t_.channel_bits == 8)
      bits = at[number];
    else
      bits = at[2 * number] | uint32_t{at[2 * number + 1]} << 8;
    return {bits, true};
  }

  // As one fetch without a filter gives it. A channel that is lacking is zero.
  uint32_t word(int64_t x, int64_t y, int64_t z, uint32_t number) const {
    if (x == kOutside || y == kOutside || z == kOutside) return t_.border[number];
    const Channel c = channel(x, y, z, number);
    if (!c.is_there) return 0;
    if (t_.channel_bits == 32) return c.bits;
    if (is_float()) return std::bit_cast<uint32_t>(static_cast<float>(value(c, number)));
    return t_.kind == ChannelKind::kSigned ? static_cast<uint32_t>(extended(c.bits)) : c.bits;
  }

  double number_at(int64_t x, int64_t y, int64_t z, uint32_t number) const {
    if (x == kOutside || y == kOutside || z == kOutside)
      return number < t_.channels ? std::bit_cast<float>(t_.border[number]) : 0;
    const Channel c = channel(x, y, z, number);
    return c.is_there ? value(c, number) : 0;
  }

  // The average of up to eight texels.
  double filtered(const std::array<Footprint, 3>& f, uint32_t number) const {
    double sum = 0;
    // A dimension without a second texel has none of its weight.
    for (uint32_t z = 0; z < (f[2].weight != 0 ? 2u : 1u); ++z)
      for (uint32_t y = 0; y < (f[1].weight != 0 ? 2u : 1u); ++y)
        for (uint32_t x = 0; x < (f[0].weight != 0 ? 2u : 1u); ++x) {
          const auto weight = static_cast<double>(f[0].share(x) * f[1].share(y) * f[2].share(z));
          sum += weight * number_at(f[0].texel(x), f[1].texel(y), f[2].texel(z), number);
        }
    return sum / (1 << 24);
  }

  // The texels of all dimensions; those of a layer or a face are one slice.
  std::array<Footprint, 3> footprints(const std::array<uint32_t, 3>& coordinates, bool is_integer,
                                      bool filters, int64_t slice) const {
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
  Side extent(int dimension, bool is_integer) const {
    const int64_t size = dimension == 0   ? level_.width
                         : dimension == 1 ? level_.height
                                          : level_.depth;
    if (t_.is_linear_memory) return {size, AddressMode::kBorder};
    const AddressMode mode = t_.modes[static_cast<size_t>(dimension)];
    // Without normalized coordinates there is nothing to repeat.
    if ((!t_.is_normalized || is_integer) && repeats(mode)) return {size, AddressMode::kClamp};
    return {size, mode};
  }
  static bool repeats(AddressMode mode) {
    return mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  }
  // In texels.
  double coordinate(uint32_t bits, int64_t size, AddressMode mode) const {
    double x = std::bit_cast<float>(bits);
    if (t_.is_normalized) {
      // What repeats does so after one or two units.
      if (repeats(mode) && std::isfinite(x)) x -= 2 * std::floor(x / 2);
      x *= static_cast<double>(size);
    }
    return within(x);
  }
  int32_t extended(uint32_t bits) const {
    const int up = 32 - t_.channel_bits;
    return static_cast<int32_t>(bits << up) >> up;
  }

  const TextureObject& t_;
  const TextureLevel& level_;
  Geometry geometry_;
};

// The face that a direction meets, and where: normalized coordinates on it.
struct Face {
  uint32_t number;
  float x, y;
};
Face face_of(const std::array<uint32_t, 3>& bits) {
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

}  // namespace

uint32_t sample(const TextureObject& t, const TextureOp& op, const std::array<uint32_t, 3>& given,
                float level, uint32_t layer) {
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
  const auto of_level = [&](uint32_t n) {
    const Sampler s(t, t.levels[n], op.geometry);
    return s.filtered(s.footprints(coordinates, op.is_integer, filters, slice), op.component);
  };
  const auto rounded = [](double x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); };
  uint32_t number = 0;
  if (op.has_level) {
    float lod = std::isnan(level) ? 0 : level + t.level_bias;
    lod = std::clamp(lod, std::min(t.least_level, t.most_level), t.most_level);
    const double last = t.level_count - 1;
    if (t.filters_levels && Sampler(t, t.levels[0], op.geometry).is_float()) {
      const auto fixed = static_cast<uint32_t>(
          std::floor(std::clamp(static_cast<double>(lod), 0.0, last) * 256 + 0.5));
      const uint32_t weight = fixed & 255;
      number = fixed >> 8;
      if (weight != 0)
        return rounded((of_level(number) * (256 - weight) + of_level(number + 1) * weight) / 256);
    } else {
      number =
          static_cast<uint32_t>(std::clamp(std::floor(static_cast<double>(lod) + 0.5), 0.0, last));
    }
  }
  const Sampler s(t, t.levels[number], op.geometry);
  if (op.gathers) {
    // Against the clock from the lower left, y downwards.
    const auto f = s.footprints(coordinates, op.is_integer, true, slice);
    const bool is_right = op.texel == 1 || op.texel == 2, is_low = op.texel < 2;
    return s.word(is_right ? f[0].second : f[0].first, is_low ? f[1].second : f[1].first,
                  f[2].first, op.component);
  }
  const auto f = s.footprints(coordinates, op.is_integer, filters, slice);
  if (!filters || !s.is_float()) return s.word(f[0].first, f[1].first, f[2].first, op.component);
  return rounded(s.filtered(f, op.component));
}

float level_for(const TextureObject& t, const std::array<float, 3>& gradient) {
  const TextureLevel& first = t.levels[0];
  const double sizes[] = {static_cast<double>(first.width), static_cast<double>(first.height),
                          static_cast<double>(first.depth)};
  double sum = 0;
  for (size_t d = 0; d < 3; ++d) {
    const double texels = t.is_normalized ? gradient[d] * sizes[d] : gradient[d];
    sum += texels * texels;
  }
  return static_cast<float>(std::log2(sum) / 2);
}

}  // namespace gpusim::ptx

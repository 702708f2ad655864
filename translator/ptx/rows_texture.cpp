// Textures and surfaces. A fetch is a helper per word of its result (device_sim/uir/textures),
// behind a load from the object's description, which faults where there is no such object. For
// surfaces a helper says where the element lies; loads, stores and atomics are those of global
// memory.
#include <iterator>
#include <optional>

#include "device_sim/uir/helpers.h"
#include "device_sim/uir/textures/operands.h"
#include "translator/ptx/emitter.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_common.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

using namespace textures;

using I = const Instruction&;

constexpr Type kB32{Kind::kBits, 32}, kF32{Kind::kFloat, 32};

Geometry geometry_of(I i) {
  static constexpr std::pair<const char*, Geometry> kAll[] = {
      {"1d", Geometry::k1d},           {"2d", Geometry::k2d},        {"3d", Geometry::k3d},
      {"a1d", Geometry::k1dLayers},    {"a2d", Geometry::k2dLayers}, {"cube", Geometry::kCube},
      {"acube", Geometry::kCubeLayers}};
  for (const auto& [name, geometry] : kAll)
    if (i.has(name)) return geometry;
  return Geometry::k1d;
}

// The handle in [handle, {coordinates}].
Slot handle_of(Emitter& e, I i, const Operand& address) {
  const Operand& base = address.elements[0];
  if (!base.is(Operand::Kind::kRegister))
    e.unsupported(i,
                  "variables of textures and surfaces (.texref, .surfref) are not supported: "
                  "use texture and surface objects");
  return e.reg(base);
}

// Behind it the object is there.
void need_object(Emitter& e, Slot handle, ObjectKind kind) {
  const Slot description = e.temp(), nothing = e.temp();
  e.b.help1(description, handle, static_cast<uint64_t>(kind), 0,
            helper_number(Helper1::texture_object));
  e.b.emit(Op::ldu8, nothing, description, 0, 0, 0);
}

// y << 32 | x
Slot pair_of(Emitter& e, Slot x, std::optional<Slot> y) {
  if (!y) return x;
  const Slot both = e.temp();
  e.b.add_lsl64(both, x, *y, 32);
  return both;
}

// The words of coordinates, without a layer.
struct Coordinates {
  Slot xy, z;
};
Coordinates coordinates_of(Emitter& e, const std::vector<Operand>& parts, size_t first,
                           int dimensions, Type t) {
  const auto word = [&](int d) { return e.src(parts[first + static_cast<size_t>(d)], t); };
  const Slot x = word(0);
  const Slot xy = dimensions > 1 ? pair_of(e, x, word(1)) : x;
  return {xy, dimensions > 2 ? word(2) : kZeroSlot};
}

Slot with_layer(Emitter& e, Slot handle, const Operand& layer) {
  const Slot number = e.temp(), both = e.temp();
  e.b.sel_cmpi(number, e.src(layer, kB32), e.konst(kMostLayer), e.src(layer, kB32), kMostLayer,
               kBelow64);
  e.b.add_lsl64(both, handle, number, kLayerShift);
  return both;
}

// The larger of two levels of detail, one for each gradient.
Slot level_of(Emitter& e, Slot handle, const Operand& dx, const Operand& dy, int dimensions) {
  Slot levels[2] = {e.temp(), e.temp()};
  const Operand* const gradients[] = {&dx, &dy};
  for (size_t k = 0; k < 2; ++k) {
    const Coordinates g = coordinates_of(e, gradients[k]->elements, 0, dimensions, kF32);
    e.b.help3(levels[k], g.xy, g.z, handle, 0, 0, helper_number(Helper3::texture_level));
  }
  const Slot larger = e.temp();
  e.fp(Op::fminmax, Emitter::kExact, larger, levels[0], levels[1], 0,
       static_cast<uint8_t>(static_cast<uint8_t>(FpFormat::kF32) |
                            static_cast<uint8_t>(FpMinMax::kMaximumNumber) << 2));
  return larger;
}

// A source that the words of a result do not write over: they come one after the other.
Slot kept(Emitter& e, const Operand& results, Slot source) {
  for (const Operand& d : results.elements) {
    if (e.is_sink(d) || e.reg(d) != source) continue;
    const Slot copy = e.temp();
    e.b.mov(copy, source);
    return copy;
  }
  return source;
}

// operands: d{|p}, [t, {...}] {, level | , dx, dy}
void fetch(Emitter& e, I i, TextureOp op) {
  op.geometry = geometry_of(i);
  const Operand& address = i.operands[1];
  const Slot handle = handle_of(e, i, address);
  const std::vector<Operand>& parts = address.elements[1].elements;
  const int dimensions = dimensions_of(op.geometry);
  need_object(e, handle, ObjectKind::kTexture);
  Coordinates at =
      coordinates_of(e, parts, has_layers(op.geometry) ? 1 : 0, dimensions, i.types[1]);
  if (i.has("level") || i.has("grad")) {
    op.has_level = true;
    const Slot level = i.has("level")
                           ? e.src(i.operands[2], kF32)
                           : level_of(e, handle, i.operands[2], i.operands[3], dimensions);
    at.z = pair_of(e, at.z, level);
  }
  const Slot what = has_layers(op.geometry) ? with_layer(e, handle, parts[0]) : handle;
  const bool has_predicate = i.operands[0].is(Operand::Kind::kPair);
  const Operand& d = has_predicate ? i.operands[0].elements[0] : i.operands[0];
  at = {kept(e, d, at.xy), kept(e, d, at.z)};
  for (size_t k = 0; k < 4; ++k) {
    if (e.is_sink(d.elements[k])) continue;
    (op.gathers ? op.texel : op.component) = static_cast<uint8_t>(k);
    e.b.help3(e.dst(d.elements[k]), at.xy, at.z, what, op.pack(), 0,
              helper_number(Helper3::texture_fetch));
  }
  // All of a texture is in memory.
  if (has_predicate && !e.is_sink(i.operands[0].elements[1]))
    e.b.mov(e.dst(i.operands[0].elements[1]), kOneSlot);
}

void texture(Emitter& e, I i) { fetch(e, i, {.is_integer = i.types[1].kind != Kind::kFloat}); }

void gather(Emitter& e, I i) {
  const uint8_t component = i.has("g") ? 1 : i.has("b") ? 2 : i.has("a") ? 3 : 0;
  fetch(e, i, {.gathers = true, .component = component});
}

// --- surfaces

Slot element_of(Emitter& e, I i, const Operand& address, size_t bytes, bool is_store) {
  SurfaceOp op{.geometry = geometry_of(i),
               .outside = i.has("clamp")  ? Outside::kClamp
                          : i.has("zero") ? Outside::kZero
                                          : Outside::kTrap,
               .is_store = is_store,
               .bytes = static_cast<uint8_t>(bytes)};
  const Slot handle = handle_of(e, i, address);
  const std::vector<Operand>& parts = address.elements[1].elements;
  const size_t first = has_layers(op.geometry) ? 1 : 0;
  Coordinates at = coordinates_of(e, parts, first, dimensions_of(op.geometry), kB32);
  if (first != 0) at.z = e.src(parts[0], kB32);
  const Slot place = e.temp();
  e.b.help3(place, at.xy, at.z, handle, op.pack(), 0, helper_number(Helper3::surface_address));
  return place;
}

size_t count_of(I i) { return i.has("v2") ? 2 : i.has("v4") ? 4 : 1; }
const Operand& part_of(const Operand& o, size_t k) {
  return o.is(Operand::Kind::kVector) ? o.elements[k] : o;
}

void surface_load(Emitter& e, I i) {
  const Type t = i.type();
  const size_t count = count_of(i);
  const Slot place = element_of(e, i, i.operands[1], count * t.bytes(), false);
  const Op op = t.bits == 8    ? Op::ldu8
                : t.bits == 16 ? Op::ldu16
                : t.bits == 32 ? Op::ldu32
                               : Op::ld64;
  for (size_t k = 0; k < count; ++k)
    e.b.emit(op, e.dst(part_of(i.operands[0], k)), place, 0, 0, k * t.bytes());
}

void surface_store(Emitter& e, I i) {
  const Type t = i.type();
  const size_t count = count_of(i);
  const Slot place = element_of(e, i, i.operands[0], count * t.bytes(), true);
  const Op op = t.bits == 8    ? Op::st8
                : t.bits == 16 ? Op::st16
                : t.bits == 32 ? Op::st32
                               : Op::st64;
  for (size_t k = 0; k < count; ++k)
    e.b.emit(op, e.src(part_of(i.operands[1], k), t), place, 0, 0, k * t.bytes());
}

void surface_reduce(Emitter& e, I i) {
  const Type t = i.type();
  const Slot place = element_of(e, i, i.operands[0], t.bytes(), true);
  Slot value = e.src(i.operands[1], t);
  Op op = Op::amo_add;
  if (i.has("and")) {
    op = Op::amo_clr;
    const Slot inverse = e.temp();
    e.b.xori64(inverse, value, ~uint64_t{0});
    value = inverse;
  } else if (i.has("or")) {
    op = Op::amo_or;
  } else if (i.has("min")) {
    op = t.is_signed() ? Op::amo_smin : Op::amo_umin;
  } else if (i.has("max")) {
    op = t.is_signed() ? Op::amo_smax : Op::amo_umax;
  }
  e.b.emit(op, e.temp(), place, value, 0, 0, t.bits == 32 ? 2 : 3);
}

// --- questions

void query(Emitter& e, I i) {
  static constexpr std::pair<const char*, TextureQuery> kAll[] = {
      {"width", TextureQuery::kWidth},
      {"height", TextureQuery::kHeight},
      {"depth", TextureQuery::kDepth},
      {"channel_data_type", TextureQuery::kChannelType},
      {"channel_order", TextureQuery::kChannelOrder},
      {"normalized_coords", TextureQuery::kNormalized},
      {"array_size", TextureQuery::kLayers},
      {"num_mipmap_levels", TextureQuery::kLevels},
      {"num_samples", TextureQuery::kSamples},
      {"memory_layout", TextureQuery::kMemoryLayout}};
  const Slot handle = handle_of(e, i, i.operands[1]);
  need_object(e, handle, i.base == "txq" ? ObjectKind::kTexture : ObjectKind::kSurface);
  const Slot level = i.has("level") ? e.src(i.operands[2], kB32) : kZeroSlot;
  for (const auto& [name, what] : kAll)
    if (i.has(name))
      e.b.help2(e.dst(i.operands[0]), handle, level, static_cast<uint64_t>(what), 0,
                helper_number(Helper2::texture_query));
}

// A handle has its sampler with it.
void is_type(Emitter& e, I i) {
  const ObjectKind kind = i.has("surfref") ? ObjectKind::kSurface : ObjectKind::kTexture;
  const Slot truth = e.temp();
  e.b.help1(truth, e.src(i.operands[1], {Kind::kBits, 64}), static_cast<uint64_t>(kind) + kAsks, 0,
            helper_number(Helper1::texture_object));
  e.set_predicates(i.operands[0], truth);
}

#define GPUSIM_PTX_SURFACE "(1d|2d|3d|a1d|a2d)"
#define GPUSIM_PTX_OUTSIDE "(trap|clamp|zero)"

}  // namespace

const RowList& texture_rows() {
  using enum RowClass;
  static const RowList rows = {
      {"tex {base} (1d|2d|3d|a1d|a2d) (v4) .u32|.s32|.f32 .s32|.f32", "dt tx", kMemory, texture},
      {"tex {base} (cube|acube) (v4) .u32|.s32|.f32 .f32", "dt tx", kMemory, texture},
      {"tex (level) (1d|2d|3d|a1d|a2d|cube|acube) (v4) .u32|.s32|.f32 .f32", "dt tx s1", kMemory,
       texture},
      {"tex (grad) (1d|2d|3d|a1d|a2d) (v4) .u32|.s32|.f32 .f32", "dt tx gv gv", kMemory, texture},
      {"tld4 (r|g|b|a) (2d|a2d) (v4) .u32|.s32|.f32 .f32", "dt tx", kMemory, gather},
      {"txq (width|height|depth|channel_data_type|channel_order|normalized_coords|array_size|"
       "num_mipmap_levels|num_samples) .b32",
       "d0 m", kMemory, query},
      {"txq (level) (width|height|depth) .b32", "d0 m s32", kMemory, query},
      {"suld (b) " GPUSIM_PTX_SURFACE
       " {ca|cg|cs|cv} {v2|v4} .b8|.b16|.b32|.b64 " GPUSIM_PTX_OUTSIDE,
       "dx tx", kMemory, surface_load},
      {"sust (b) " GPUSIM_PTX_SURFACE
       " {wb|cg|cs|wt} {v2|v4} .b8|.b16|.b32|.b64 " GPUSIM_PTX_OUTSIDE,
       "tx sx", kMemory, surface_store},
      {"sured (b) (add) (1d|2d|3d) .u32|.s32|.u64 " GPUSIM_PTX_OUTSIDE, "tx s0", kParallel,
       surface_reduce},
      {"sured (b) (min|max) (1d|2d|3d) .u32|.s32|.u64|.s64 " GPUSIM_PTX_OUTSIDE, "tx s0", kParallel,
       surface_reduce},
      {"sured (b) (and|or) (1d|2d|3d) .b32 " GPUSIM_PTX_OUTSIDE, "tx s0", kParallel,
       surface_reduce},
      {"suq (width|height|depth|channel_data_type|channel_order|array_size|memory_layout) .b32",
       "d0 m", kMemory, query},
      {"istypep (texref|samplerref|surfref)", "dp s64", kOther, is_type},
  };
  return rows;
}

}  // namespace gpusim::ptx

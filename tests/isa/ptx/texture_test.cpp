// Textures and surfaces in kernels of text: values worked out by hand from the formulas of the CUDA
// C++ Programming Guide, and what faults. Random fetches: tests/system/cuda/test_cuda_textures.py.
#include "host/ptx/texture.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "device_sim/uir/textures/sample.h"
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// One thread per pair of coordinates: four words each.
const std::string kFetch = kHead + R"(
.visible .entry fetch(.param .u64 t, .param .u64 at, .param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<9>;
  .reg .f32 %f<9>;
  ld.param.u64 %rd1, [t];
  ld.param.u64 %rd2, [at];
  ld.param.u64 %rd3, [out];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd4, %r1, 8, %rd2;
  mad.wide.u32 %rd5, %r1, 16, %rd3;
  ld.global.v2.f32 {%f1, %f2}, [%rd4];
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
  st.global.v4.f32 [%rd5], {%f3, %f4, %f5, %f6};
  ret;
}
// Literals of all forms as coordinates.
.visible .entry literal(.param .u64 t, .param .u64 out)
{
  .reg .b64 %rd<9>;
  .reg .f32 %f<9>;
  ld.param.u64 %rd1, [t];
  ld.param.u64 %rd2, [out];
  tex.2d.v4.f32.f32 {%f1, _, _, _}, [%rd1, {2.5, 0f3FC00000}];
  tex.level.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {0d3FE0000000000000, 1.5}], 0.0;
  st.global.v2.f32 [%rd2], {%f1, %f2};
  ret;
}
// Results in the registers of the coordinates.
.visible .entry in_place(.param .u64 t, .param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .f32 %f<9>;
  ld.param.u64 %rd1, [t];
  ld.param.u64 %rd2, [out];
  mov.f32 %f1, 0f3FC00000;
  tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}];
  mov.f32 %f5, 0f3F000000;
  mov.f32 %f7, 0f3FC00000;
  tex.3d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd1, {%f5, %f5, %f7, %f7}];
  st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
  st.global.v4.f32 [%rd2+16], {%f5, %f6, %f7, %f8};
  ret;
}
.visible .entry store(.param .u64 s, .param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .reg .pred %p;
  ld.param.u64 %rd1, [s];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  add.u32 %r3, %r1, 100;
  sust.b.1d.b32.zero [%rd1, {%r2}], {%r3};
  suld.b.1d.b32.clamp {%r4}, [%rd1, {%r2}];
  ld.param.u64 %rd2, [out];
  mad.wide.u32 %rd3, %r1, 4, %rd2;
  setp.eq.u32 %p, %r1, 1;
  @%p mov.u32 %r4, 7;
  @!%p suld.b.1d.b32.zero {%r4}, [%rd1, {%r2}];
  st.global.u32 [%rd3], %r4;
  ret;
}
)";

struct Owned {
  ObjectKind kind;
  uint64_t handle;
  Owned(ObjectKind k, const TextureObject& t)
      : kind(k), handle(TextureObjects::instance().add(k, t, "made by the test")) {}
  ~Owned() { TextureObjects::instance().remove(kind, handle, "destroyed by the test"); }
};

TextureObject texture_of(void* data, uint32_t width, uint32_t height) {
  TextureObject t;
  t.kind = ChannelKind::kFloat;
  t.channel_bits = 32;
  t.memory = data;
  t.levels[0] = {.data = static_cast<uint8_t*>(data),
                 .width = width,
                 .height = height,
                 .row_bytes = width * 4,
                 .slice_bytes = width * height * 4};
  return t;
}

std::vector<float> fetch(const TextureObject& t, const std::string& backend,
                         std::vector<float> at) {
  const Owned owned(ObjectKind::kTexture, t);
  std::vector<float> memory = at;
  memory.resize(at.size() * 3);
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  const LaunchResult r = run_text(
      kFetch, "fetch", {.backend = backend, .block = {static_cast<uint32_t>(at.size() / 2), 1, 1}},
      pack(owned.handle, address, address + at.size() * 4), memory);
  CHECK_FALSE(r.fault.has_value());
  CHECK(counts_of(r)["tex.2d.v4.f32.f32"] == at.size() / 2);
  return {memory.begin() + static_cast<ptrdiff_t>(at.size()), memory.end()};
}

}  // namespace

TEST_CASE("texels and their averages are those of the guide's formulas") {
  float texels[6] = {1, 2, 4, 8, 16, 32};  // 3 x 2
  for (const std::string backend : kBackends) {
    TextureObject t = texture_of(texels, 3, 2);
    t.modes = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
    CHECK(fetch(t, backend, {0.0f, 0.0f, 2.9f, 1.0f, -5.0f, 9.0f}) ==
          std::vector<float>{1, 0, 0, 0, 32, 0, 0, 0, 8, 0, 0, 0});
    // x - 0.5 = 0.5: half of two; y - 0.5 = 0.25: a quarter of the next row.
    t.filters = true;
    CHECK(fetch(t, backend, {1.0f, 0.75f}) ==
          std::vector<float>{0.75f * 1.5f + 0.25f * 12, 0, 0, 0});
    // A weight has 8 bits: 0.3 is 77/256.
    CHECK(fetch(t, backend, {0.8f, 0.5f}) == std::vector<float>{1 + 77.0f / 256, 0, 0, 0});
    t.filters = false;
    t.is_normalized = true;
    t.modes = {AddressMode::kWrap, AddressMode::kMirror, AddressMode::kClamp};
    // x = 1.5 is 0.5; y = 1.25 is 0.75.
    CHECK(fetch(t, backend, {4.5f / 3, 1.25f}) == std::vector<float>{16, 0, 0, 0});
    t.modes[0] = AddressMode::kBorder;
    t.border[0] = std::bit_cast<uint32_t>(0.5f);
    CHECK(fetch(t, backend, {4.5f / 3, 1.25f})[0] == 0.5f);
  }
}

// The same text on every device: so no function of a mathematical library.
TEST_CASE("the logarithm of gradients is one") {
  using gpusim::textures::log2_of;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponents(-1070, 1020);
  for (int k = 0; k < 100'000; ++k) {
    const double x =
        k % 2 != 0 ? std::exp2(exponents(random)) : 1 + std::exp2(exponents(random) / 30);
    const double wanted = std::log2(x);
    CAPTURE(x);
    REQUIRE(std::fabs(log2_of(x) - wanted) <= 8e-16 * std::max(std::fabs(wanted), 0.25));
  }
  for (int e = -1074; e < 1024; ++e) REQUIRE(log2_of(std::ldexp(1, e)) == e);
  CHECK(log2_of(0) == -HUGE_VAL);
  CHECK(log2_of(HUGE_VAL) == HUGE_VAL);
  CHECK(std::isnan(log2_of(std::nan(""))));
}

TEST_CASE("coordinates are literals, too") {
  float texels[6] = {1, 2, 4, 8, 16, 32};
  for (const std::string backend : kBackends) {
    const Owned owned(ObjectKind::kTexture, texture_of(texels, 3, 2));
    std::vector<float> out(2);
    const LaunchResult r =
        run_text(kFetch, "literal", {.backend = backend},
                 pack(owned.handle, reinterpret_cast<uint64_t>(out.data())), out);
    CHECK_FALSE(r.fault.has_value());
    CHECK(out == std::vector<float>{32, 8});
  }
}

TEST_CASE("surfaces: what lies outside is clamped, zero, or left alone") {
  for (const std::string backend : kBackends) {
    uint32_t elements[3] = {};
    TextureObject s = texture_of(elements, 3, 1);
    s.kind = ChannelKind::kUnsigned;
    const Owned owned(ObjectKind::kSurface, s);
    Engine engine({.backend = backend, .threads = 1});
    LoadedModule& module = engine.load(kFetch, "test.ptx");
    std::vector<uint32_t> out(5, 99);
    engine.add_memory(out.data(), 20, "results");
    engine.add_memory(elements, 12, "elements");
    const auto params = pack(owned.handle, reinterpret_cast<uint64_t>(out.data()));
    const LaunchResult r = engine.launch(
        {.kernel = engine.find_kernel(module, "store"), .block = {5, 1, 1}, .params = params});
    CHECK_FALSE(r.fault.has_value());
    CHECK(elements[2] == 102);
    CHECK(out == std::vector<uint32_t>{100, 7, 102, 0, 0});
  }
}

TEST_CASE("handles that are none, and memory that is gone, fault with what they were") {
  for (const std::string backend : kBackends) {
    float texels[6] = {};
    const TextureObject t = texture_of(texels, 3, 2);
    std::vector<float> memory(8);
    const auto address = reinterpret_cast<uint64_t>(memory.data());
    const auto text_of = [&](uint64_t handle) {
      const LaunchResult r = run_text(kFetch, "fetch", {.backend = backend},
                                      pack(handle, address, address + 16), memory);
      REQUIRE(r.fault.has_value());
      CHECK(r.fault->reason == Fault::Reason::kAddress);
      CHECK(r.fault->text.find("tex.2d.v4.f32.f32") != std::string::npos);
      return r.fault->text;
    };
    TextureObjects& all = TextureObjects::instance();
    const uint64_t handle = all.add(ObjectKind::kTexture, t, "made by the test");
    CHECK(text_of(handle + 8).find("is the handle of no texture") != std::string::npos);
    CHECK(text_of(~uint64_t{0}).find("is the handle of no texture") != std::string::npos);
    CHECK(text_of(handle | uint64_t{1} << 50).find("48 bits are 0x") != std::string::npos);
    all.memory_freed(&memory, "freed by nobody");
    all.memory_freed(texels, "freed by the test");
    CHECK(text_of(handle).find("(made by the test, whose memory was freed by the test)") !=
          std::string::npos);
    CHECK(all.remove(ObjectKind::kTexture, handle, "destroyed by the test"));
    CHECK_FALSE(all.remove(ObjectKind::kTexture, handle, "destroyed by the test"));
    CHECK(text_of(handle).find("destroyed by the test") != std::string::npos);
    const Owned surface(ObjectKind::kSurface, t);
    const LaunchResult r = run_text(kFetch, "store", {.backend = backend},
                                    pack(surface.handle | uint64_t{1} << 50, address), memory);
    REQUIRE(r.fault.has_value());
    CHECK(r.fault->text.find("48 bits are 0x") != std::string::npos);
    CHECK(text_of(surface.handle).find("is a surface, not a texture") != std::string::npos);
  }
}

TEST_CASE("a fetch may write over its own coordinates") {
  float texels[16];  // 2 x 1 x 2 of four channels
  for (size_t k = 0; k < 16; ++k) texels[k] = static_cast<float>(k);
  TextureObject t = texture_of(texels, 2, 1);
  t.channels = 4;
  t.levels[0].depth = 2;
  t.levels[0].row_bytes = t.levels[0].slice_bytes = 32;
  t.modes = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  for (const std::string backend : kBackends) {
    const Owned owned(ObjectKind::kTexture, t);
    std::vector<float> out(8);
    const LaunchResult r =
        run_text(kFetch, "in_place", {.backend = backend},
                 pack(owned.handle, reinterpret_cast<uint64_t>(out.data())), out);
    CHECK_FALSE(r.fault.has_value());
    CHECK(out == std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11});
  }
}

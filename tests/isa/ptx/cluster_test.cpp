// Clusters: special registers, addresses, launches that cannot be.
#include "device_sim/base/error.h"
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

const std::string kClusterHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

// Each thread writes eight words: what it is told, and what addresses are.
const std::string kTold = kClusterHead + R"(
.visible .entry told(.param .u64 out)
{
  .shared .align 4 .b8 here[16];
  .reg .b32 %r<20>;
  .reg .b64 %rd<20>;
  .reg .pred %p<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r1, 32;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r4, %cluster_ctarank;
  mov.u32 %r5, %cluster_nctarank;
  st.global.v2.u32 [%rd1], {%r4, %r5};
  mov.u32 %r6, %clusterid.x;
  mov.u32 %r7, %nclusterid.x;
  st.global.v2.u32 [%rd1+8], {%r6, %r7};
  mov.pred %p1, %is_explicit_cluster;
  selp.u32 %r8, 1, 0, %p1;
  st.global.u32 [%rd1+16], %r8;
  mapa.shared::cluster.u32 %r9, here+4, %r3;
  getctarank.shared::cluster.u32 %r10, %r9;
  st.global.u32 [%rd1+20], %r10;
  mov.u32 %r11, here;
  add.u32 %r11, %r11, 4;
  setp.eq.u32 %p2, %r11, %r9;
  selp.u32 %r12, 1, 0, %p2;
  st.global.u32 [%rd1+24], %r12;
  cvt.u64.u32 %rd3, %r9;
  cvta.shared::cluster.u64 %rd4, %rd3;
  mapa.u64 %rd5, %rd4, %r4;
  getctarank.u64 %r13, %rd5;
  st.global.u32 [%rd1+28], %r13;
  ret;
}
)";

TEST_CASE("threads are told their cluster, and addresses have ranks") {
  for (const char* backend : kBackends)
    for (const uint32_t of : {1u, 2u, 5u}) {
      CAPTURE(backend);
      CAPTURE(of);
      std::vector<uint32_t> out(10 * 8 * 8);
      Engine engine({.backend = backend, .threads = 2});
      LoadedModule& module = engine.load(kTold, "test.ptx");
      engine.add_memory(out.data(), out.size() * 4, "the test's memory");
      Launch launch{
          .kernel = engine.find_kernel(module, "told"), .grid = {10, 1, 1}, .block = {8, 1, 1}};
      std::vector<std::byte> params(sizeof(void*));
      const uint32_t* const address = out.data();
      std::memcpy(params.data(), &address, sizeof address);
      launch.params = params;
      if (of != 1) launch.cluster = Dim3{of, 1, 1};
      const LaunchResult r = engine.launch(launch);
      REQUIRE(!r.fault);
      for (uint32_t block = 0; block < 10; ++block)
        for (uint32_t t = 0; t < 8; ++t) {
          const uint32_t* const got = &out[(block * 8 + t) * 8];
          CHECK(got[0] == block % of);
          CHECK(got[1] == of);
          CHECK(got[2] == block / of);
          CHECK(got[3] == 10 / of);
          CHECK(got[4] == (of != 1));
          CHECK(got[5] == t);
          CHECK(got[6] == (t == block % of));  // one's own has the address that it always has
          CHECK(got[7] == block % of);
        }
      CHECK(counts_of(r).at("mapa.u64") == 80);
    }
}

std::string why_not(const std::string& text, const Dim3& grid, std::optional<Dim3> cluster,
                    uint32_t shared_bytes = 0) {
  Engine engine({.backend = "scalar", .threads = 1});
  LoadedModule& module = engine.load(text, "test.ptx");
  try {
    const Kernel* const kernel = engine.find_kernel(module, "k");
    engine.launch({.kernel = kernel,
                   .grid = grid,
                   .block = {32, 1, 1},
                   .dynamic_shared_bytes = shared_bytes,
                   .params = {},
                   .cluster = cluster});
  } catch (const gpusim::Error& e) {
    return e.what();
  }
  return {};
}

TEST_CASE("launches whose clusters cannot be say what can") {
  const auto kernel = [](const std::string& directives) {
    return kClusterHead + ".visible .entry k()\n" + directives + "\n{ ret; }\n";
  };
  const std::string plain = kernel("");
  CHECK(why_not(plain, {6, 1, 1}, Dim3{3, 1, 1}).empty());
  CHECK(why_not(plain, {6, 1, 1}, Dim3{4, 1, 1}).find("not made of clusters of 4 x 1 x 1") !=
        std::string::npos);
  CHECK(why_not(plain, {34, 1, 1}, Dim3{17, 1, 1}).find("at most 16") != std::string::npos);
  CHECK(why_not(plain, {64, 64, 1}, Dim3{65536, 65536, 1}).find("at most 16") != std::string::npos);
  CHECK(why_not(plain, {2, 1, 1}, Dim3{2, 1, 1}, 2 << 20).find("of shared memory") !=
        std::string::npos);
  const std::string fixed = kernel(".explicitcluster .reqnctapercluster 2, 1, 1");
  CHECK(why_not(fixed, {2, 1, 1}, std::nullopt).empty());
  CHECK(why_not(fixed, {2, 1, 1}, Dim3{2, 1, 1}).empty());
  CHECK(why_not(fixed, {3, 1, 1}, std::nullopt).find("clusters of 2 x 1 x 1") != std::string::npos);
  CHECK(why_not(fixed, {4, 1, 1}, Dim3{4, 1, 1}).find(".reqnctapercluster") != std::string::npos);
  CHECK(why_not(kernel(".explicitcluster"), {4, 1, 1}, std::nullopt).find("--cluster") !=
        std::string::npos);
  CHECK(why_not(kernel(".maxclusterrank 4"), {8, 1, 1}, Dim3{8, 1, 1}).find(".maxclusterrank") !=
        std::string::npos);
}

// Each thread stores to its block's word, and reads the next block's; what happens between is
// `between`, and afterwards.
std::vector<gpusim::ptx::Finding> findings_of(const std::string& backend, const std::string& store,
                                              const std::string& between,
                                              const std::string& behind) {
  const std::string text = kClusterHead + R"(
.visible .entry k()
{
  .shared .align 4 .b8 word[256];
  .reg .b32 %r<20>;
  .reg .pred %p<4>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, word;
  shl.b32 %r3, %r1, 2;
  add.u32 %r3, %r2, %r3;
  mov.u32 %r4, %cluster_ctarank;
  mov.u32 %r5, %cluster_nctarank;
  add.u32 %r6, %r4, 1;
  rem.u32 %r6, %r6, %r5;
  mapa.shared::cluster.u32 %r7, %r3, %r6;
  )" + store + "\n" + between +
                           R"(
  ld.shared::cluster.u32 %r8, [%r7];
  )" + behind + "\nret;\n}\n";
  Engine engine({.backend = backend,
                 .threads = 1,
                 .checks = {.memory = true, .races = true, .barriers = true, .uninitialised = true},
                 .has_profile = false});
  LoadedModule& module = engine.load(text, "test.ptx");
  const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "k"),
                                        .grid = {8, 1, 1},
                                        .block = {64, 1, 1},
                                        .params = {},
                                        .cluster = Dim3{4, 1, 1}});
  if (r.fault) FAIL(r.fault->text);
  return r.findings;
}

TEST_CASE("races between blocks of a cluster are found") {
  const std::string own = "st.shared.u32 [%r3], %r4;";
  const std::string barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    CHECK(findings_of(backend, own, barrier, barrier).empty());
    // A barrier of the block alone orders no other block.
    const auto found = findings_of(backend, own, "bar.sync 0;", barrier);
    REQUIRE(found.size() >= 1);
    CHECK(found[0].kind == FindingKind::kRace);
    CHECK(found[0].text.find("race on shared memory: kernel 'k', memory of block (") !=
          std::string::npos);
    CHECK(found[0].text.find(": word+0x") != std::string::npos);
    CHECK(found[0].text.find("ld.shared::cluster.u32 at test.ptx") != std::string::npos);
    CHECK(found[0].text.find("the cluster's barrier orders its blocks") != std::string::npos);
    // A store behind a load of another block that only has not waited yet.
    CHECK(
        findings_of(
            backend, own, barrier,
            "barrier.cluster.arrive;\nst.shared.u32 [%r3], %r1;\nbarrier.cluster.wait;\n" + barrier)
            .size() == 1);
    // Between two barriers, and atomically, it is none.
    CHECK(findings_of(backend, own, barrier, barrier + "st.shared.u32 [%r3], %r1;\n" + barrier)
              .empty());
    CHECK(findings_of(backend, "st.shared.u32 [%r3], 0;\n" + barrier,
                      "atom.shared::cluster.add.u32 %r9, [%r7], 1;\n"
                      "atom.shared.add.u32 %r9, [%r3], 1;\n" +
                          barrier,
                      barrier)
              .empty());
  }
}

}  // namespace

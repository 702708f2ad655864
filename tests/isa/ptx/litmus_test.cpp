// Litmus tests of PTX's memory model (PTX ISA, "Memory Consistency Model"). Each role of a test is
// a thread of another block, or of another warp of one block; roles meet before each instance, so
// that they run at once on two host threads. What the model forbids is never seen.
#include <fmt/format.h>

#include <functional>

#include "tests/isa/ptx/launch_text.h"

using namespace gpusim;
using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// What the roles read in %r0 and %r1, and what x and y are in the end.
struct State {
  uint32_t r[4][2];
  uint32_t x, y;
};

struct Litmus {
  const char* name;
  std::vector<const char*> roles;  // of %x and %y, which are addresses
  std::function<bool(const State&)> is_forbidden;
};

bool is_stale(const State& s, int reader) { return s.r[reader][0] == 1 && s.r[reader][1] == 0; }

std::vector<Litmus> tests() {
  std::vector<Litmus> all = {
      {"MP+release+acquire",
       {"st.relaxed.gpu.global.u32 [%x], 1; st.release.gpu.global.u32 [%y], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%y]; ld.relaxed.gpu.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"MP+weak data",
       {"st.global.u32 [%x], 1; st.release.gpu.global.u32 [%y], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%y]; ld.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"MP+fence.acq_rel",
       {"st.global.u32 [%x], 1; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%y], 1;",
        "ld.relaxed.gpu.global.u32 %r0, [%y]; fence.acq_rel.gpu; ld.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"MP+membar.gl+volatile",
       {"st.global.u32 [%x], 1; membar.gl; st.volatile.global.u32 [%y], 1;",
        "ld.volatile.global.u32 %r0, [%y]; membar.gl; ld.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"MP+atom.exch.release+atom.acquire",
       {"st.global.u32 [%x], 1; atom.release.gpu.global.exch.b32 %r0, [%y], 1;",
        "atom.acquire.gpu.global.add.u32 %r0, [%y], 0; ld.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"MP+red, release pattern",
       {"st.global.u32 [%x], 1; fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%y], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%y]; ld.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"SB+fence.sc",
       {"st.relaxed.gpu.global.u32 [%x], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r0, [%y];",
        "st.relaxed.gpu.global.u32 [%y], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r0, [%x];"},
       [](const State& s) { return s.r[0][0] == 0 && s.r[1][0] == 0; }},
      {"SB+membar.sys",
       {"st.volatile.global.u32 [%x], 1; membar.sys; ld.volatile.global.u32 %r0, [%y];",
        "st.volatile.global.u32 [%y], 1; membar.sys; ld.volatile.global.u32 %r0, [%x];"},
       [](const State& s) { return s.r[0][0] == 0 && s.r[1][0] == 0; }},
      {"SB+atoms+fence.sc",
       {"atom.relaxed.gpu.global.exch.b32 %r1, [%x], 1; fence.sc.gpu; "
        "ld.relaxed.gpu.global.u32 %r0, [%y];",
        "atom.relaxed.gpu.global.exch.b32 %r1, [%y], 1; fence.sc.gpu; "
        "ld.relaxed.gpu.global.u32 %r0, [%x];"},
       [](const State& s) { return s.r[0][0] == 0 && s.r[1][0] == 0; }},
      {"LB+data",  // no value comes out of nothing
       {"ld.relaxed.gpu.global.u32 %r0, [%x]; st.relaxed.gpu.global.u32 [%y], %r0;",
        "ld.relaxed.gpu.global.u32 %r0, [%y]; st.relaxed.gpu.global.u32 [%x], %r0;"},
       [](const State& s) { return s.r[0][0] != 0 || s.r[1][0] != 0 || s.x != 0 || s.y != 0; }},
      {"LB+acquire+release",
       {"ld.acquire.gpu.global.u32 %r0, [%x]; st.release.gpu.global.u32 [%y], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%y]; st.release.gpu.global.u32 [%x], 1;"},
       [](const State& s) { return s.r[0][0] == 1 && s.r[1][0] == 1; }},
      {"S+release+acquire",
       {"st.relaxed.gpu.global.u32 [%x], 2; st.release.gpu.global.u32 [%y], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%y]; st.relaxed.gpu.global.u32 [%x], 1;"},
       [](const State& s) { return s.r[1][0] == 1 && s.x == 2; }},
      {"R+fence.sc",
       {"st.relaxed.gpu.global.u32 [%x], 1; fence.sc.gpu; st.relaxed.gpu.global.u32 [%y], 1;",
        "st.relaxed.gpu.global.u32 [%y], 2; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r0, [%x];"},
       [](const State& s) { return s.y == 2 && s.r[1][0] == 0; }},
      {"2+2W+fence.sc",
       {"st.relaxed.gpu.global.u32 [%x], 1; fence.sc.gpu; st.relaxed.gpu.global.u32 [%y], 2;",
        "st.relaxed.gpu.global.u32 [%y], 1; fence.sc.gpu; st.relaxed.gpu.global.u32 [%x], 2;"},
       [](const State& s) { return s.x == 1 && s.y == 1; }},
      {"CoRR",
       {"st.relaxed.gpu.global.u32 [%x], 1;",
        "ld.relaxed.gpu.global.u32 %r0, [%x]; ld.relaxed.gpu.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 1); }},
      {"CoWR",
       {"st.relaxed.gpu.global.u32 [%x], 1; ld.relaxed.gpu.global.u32 %r0, [%x];",
        "st.relaxed.gpu.global.u32 [%x], 2;"},
       [](const State& s) { return s.r[0][0] == 0 || (s.r[0][0] == 2 && s.x == 1); }},
      {"CoRW",
       {"ld.relaxed.gpu.global.u32 %r0, [%x]; st.relaxed.gpu.global.u32 [%x], 1;",
        "st.relaxed.gpu.global.u32 [%x], 2;"},
       [](const State& s) { return s.r[0][0] == 1 || (s.r[0][0] == 2 && s.x == 2); }},
      {"WRC+release+acquire",
       {"st.relaxed.gpu.global.u32 [%x], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%x]; st.release.gpu.global.u32 [%y], 1;",
        "ld.acquire.gpu.global.u32 %r0, [%y]; ld.relaxed.gpu.global.u32 %r1, [%x];"},
       [](const State& s) { return s.r[1][0] == 1 && is_stale(s, 2); }},
      {"IRIW+fence.sc",
       {"st.relaxed.gpu.global.u32 [%x], 1;", "st.relaxed.gpu.global.u32 [%y], 1;",
        "ld.relaxed.gpu.global.u32 %r0, [%x]; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r1, [%y];",
        "ld.relaxed.gpu.global.u32 %r0, [%y]; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r1, [%x];"},
       [](const State& s) { return is_stale(s, 2) && is_stale(s, 3); }},
      {"atomicity of atom",
       {"atom.global.add.u32 %r0, [%x], 1;", "atom.global.add.u32 %r0, [%x], 1;",
        "red.global.add.u32 [%x], 1;", "atom.global.inc.u32 %r0, [%x], 100;"},
       [](const State& s) {
         return s.x != 4 || s.r[0][0] == s.r[1][0] || s.r[0][0] == s.r[3][0] ||
                s.r[1][0] == s.r[3][0];
       }},
      {"atomicity of atom.cas",
       {"atom.global.cas.b32 %r0, [%x], 0, 1;", "atom.global.cas.b32 %r0, [%x], 0, 2;"},
       [](const State& s) { return (s.r[0][0] == 0) == (s.r[1][0] == 0); }},
      {"a lock: cas.acquire, release",
       {"LOCK0: atom.acquire.gpu.global.cas.b32 %r0, [%y], 0, 1; setp.ne.u32 %p, %r0, 0; "
        "@%p bra LOCK0; ld.global.u32 %r1, [%x]; add.u32 %r0, %r1, 1; st.global.u32 [%x], %r0; "
        "st.release.gpu.global.u32 [%y], 0;",
        "LOCK1: atom.acquire.gpu.global.cas.b32 %r0, [%y], 0, 1; setp.ne.u32 %p, %r0, 0; "
        "@%p bra LOCK1; ld.global.u32 %r1, [%x]; add.u32 %r0, %r1, 1; st.global.u32 [%x], %r0; "
        "st.release.gpu.global.u32 [%y], 0;"},
       [](const State& s) { return s.x != 2 || s.r[0][1] == s.r[1][1]; }},
  };
  return all;
}

constexpr uint32_t kLanes = 32, kRounds = 8, kGroups = 4;
constexpr uint32_t kInstances = kLanes * kRounds * kGroups;
constexpr uint32_t kRoles = 4, kApart = 16;  // words between instances: a line of the host's cache

// Words of memory: x, y and the meeting point of each instance, then %r0 and %r1 of each role.
constexpr uint32_t kXAt = 0, kYAt = kInstances * kApart, kMeetAt = 2 * kYAt, kOutAt = 3 * kYAt;
constexpr uint32_t kWords = kOutAt + kInstances * kRoles * 2;

// Role of a block: its number modulo that of roles; of a warp, if all are in one block.
std::string kernel(const Litmus& test, bool is_one_block) {
  const size_t roles = test.roles.size();
  std::string text = kHead + fmt::format(R"(
.visible .entry litmus(.param .u64 memory) {{
.reg .pred %p, %q; .reg .b32 %r0, %r1, %i, %round, %role, %group, %t, %n; 
.reg .b64 %m, %x, %y, %meet, %out;
ld.param.u64 %m, [memory];
mov.u32 %t, {0};
rem.u32 %role, %t, {1};
div.u32 %group, %t, {1};
mov.u32 %round, 0;
ROUND:
mad.lo.u32 %i, %group, {2}, %round;
mov.u32 %t, %laneid;
mad.lo.u32 %i, %i, {3}, %t;
mul.lo.u32 %t, %i, {4};
mad.wide.u32 %x, %t, 4, %m;
add.u64 %y, %x, {5};
add.u64 %meet, %x, {6};
mov.u32 %r0, 0;
mov.u32 %r1, 0;
red.global.add.u32 [%meet], 1;
WAIT:
ld.relaxed.gpu.global.u32 %n, [%meet];
setp.lt.u32 %q, %n, {1};
@%q bra WAIT;
)",
                                         is_one_block ? "%warpid" : "%ctaid.x", roles, kRounds,
                                         kLanes, kApart, 4 * kYAt, 4 * kMeetAt);
  for (size_t k = 0; k < roles; ++k)
    text += fmt::format("setp.eq.u32 %q, %role, {0};\n@%q bra ROLE{0};\n", k);
  for (size_t k = 0; k < roles; ++k)
    text += fmt::format("ROLE{}:\n{}\nbra DONE;\n", k, test.roles[k]);
  return text + fmt::format(R"(
DONE:
mad.lo.u32 %t, %i, {0}, %role;
shl.b32 %t, %t, 1;
mad.wide.u32 %out, %t, 4, %m;
st.global.u32 [%out+{1}], %r0;
st.global.u32 [%out+{2}], %r1;
add.u32 %round, %round, 1;
setp.lt.u32 %q, %round, {3};
@%q bra ROUND;
ret;
}}
)",
                            kRoles, 4 * kOutAt, 4 * kOutAt + 4, kRounds);
}

State state_of(const std::vector<uint32_t>& memory, uint32_t instance) {
  State s{};
  for (uint32_t role = 0; role < kRoles; ++role)
    for (uint32_t k = 0; k < 2; ++k)
      s.r[role][k] = memory[kOutAt + (instance * kRoles + role) * 2 + k];
  s.x = memory[kXAt + instance * kApart];
  s.y = memory[kYAt + instance * kApart];
  return s;
}

// How many instances end as the test says, of how many.
std::pair<uint32_t, uint32_t> seen(const Litmus& test, const char* backend, bool is_one_block) {
  const auto roles = static_cast<uint32_t>(test.roles.size());
  const uint32_t groups = is_one_block ? 1 : kGroups;
  std::vector<uint32_t> memory(kWords);
  const uint32_t* const address = memory.data();
  std::vector<std::byte> arguments(sizeof address);
  std::memcpy(arguments.data(), &address, sizeof address);
  Engine engine({.backend = backend, .threads = 2});
  LoadedModule& module = engine.load(kernel(test, is_one_block), "litmus.ptx");
  engine.add_memory(memory.data(), memory.size() * sizeof memory[0], "the test's memory");
  // Blocks that spin for each other give way soon where the grid is cooperative.
  const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "litmus"),
                                        .grid = {is_one_block ? 1 : groups * roles, 1, 1},
                                        .block = {is_one_block ? kLanes * roles : kLanes, 1, 1},
                                        .params = arguments,
                                        .cooperative = true});
  if (r.fault) FAIL(r.fault->text);
  const uint32_t instances = groups * kLanes * kRounds;
  uint32_t count = 0;
  for (uint32_t i = 0; i < instances; ++i) count += test.is_forbidden(state_of(memory, i));
  return {count, instances};
}

}  // namespace

TEST_CASE("what PTX's memory model forbids is never seen") {
  for (const Litmus& test : tests())
    for (const char* backend : kBackends)
      for (const bool is_one_block : {false, true}) {
        CAPTURE(test.name);
        CAPTURE(backend);
        CAPTURE(is_one_block);
        CHECK(seen(test, backend, is_one_block).first == 0);
      }
}

TEST_CASE("what litmus tests must end with is seen in every instance") {
  Litmus always = tests().front();
  always.is_forbidden = [](const State& s) { return s.x == 1 && s.y == 1 && s.r[0][0] == 0; };
  for (const char* backend : kBackends)
    for (const bool is_one_block : {false, true}) {
      const auto [count, instances] = seen(always, backend, is_one_block);
      CHECK(count == instances);
    }
}

// The self-test passes on every backend, and notices faults of many kinds.
#include <doctest/doctest.h>

#include <algorithm>

#include "device_sim/scalar/scalar_backend.h"
#include "device_sim/self_test/self_test.h"
#include "device_sim/self_test/value_program.h"

namespace gpusim {
namespace {

TEST_CASE("the self-test passes") {
  for (const BackendInfo& info : all_backends()) {
    std::string why_not;
    if (!info.available(&why_not)) continue;
    CAPTURE(std::string(info.name));
    CHECK(self_test::run_self_test(info.create) == "");
  }
}

enum class Flaw { kValue, kFault, kTally, kStore, kStuck };

// Scalar, but for one flaw.
class Flawed : public ScalarBackend {
 public:
  explicit Flawed(Flaw flaw) : flaw_(flaw) {}
  uint64_t slot(uint32_t core, Slot slot) override {
    return ScalarBackend::slot(core, slot) ^ (flaw_ == Flaw::kValue && core == 33 && slot == 8);
  }
  CoreTally tally(uint32_t core) override {
    CoreTally t = ScalarBackend::tally(core);
    if (flaw_ == Flaw::kTally && core == 5) ++t.classes[0];
    return t;
  }
  bool read_memory(uint32_t core, uint64_t address, std::span<uint8_t> out) override {
    const bool done = ScalarBackend::read_memory(core, address, out);
    if (flaw_ == Flaw::kStore && core == 3) ++out[100];
    return done;
  }
  std::span<const Event> run_slice(uint64_t instructions) override {
    if (flaw_ == Flaw::kStuck) return {};
    const auto events = ScalarBackend::run_slice(instructions);
    events_.assign(events.begin(), events.end());
    if (flaw_ == Flaw::kFault)
      for (Event& e : events_) e.address ^= e.core == 61;
    return events_;
  }

 private:
  Flaw flaw_;
  std::vector<Event> events_;
};

TEST_CASE("the self-test notices flaws") {
  const auto said_of = [](Flaw flaw) {
    return self_test::run_self_test([=] { return std::make_unique<Flawed>(flaw); });
  };
  CHECK(said_of(Flaw::kValue).starts_with("values, 70 cores: core 33: register 8: expected "));
  CHECK(said_of(Flaw::kFault).starts_with("values, 70 cores: core 61: expected stop"));
  CHECK(said_of(Flaw::kTally) == "values, 70 cores: core 5: its instructions are counted wrongly");
  CHECK(said_of(Flaw::kStore)
            .starts_with("values, 70 cores: memory of core 3, byte 100: expected 0"));
  CHECK(said_of(Flaw::kStuck) == "values, 1 cores: it does not end");
}

// A row of a new shape that nobody executes would make the test worth less.
TEST_CASE("the self-test executes most rows") {
  const Module module = self_test::value_program();
  std::vector<bool> executed(kOpCount);
  for (const Uop& u : module.uops) executed[static_cast<size_t>(u.op)] = true;
  CHECK(std::count(executed.begin(), executed.end(), true) >= 120);
}

}  // namespace
}  // namespace gpusim

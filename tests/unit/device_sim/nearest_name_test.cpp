#include "device_sim/base/nearest_name.h"

#include <doctest/doctest.h>

namespace gpusim {
namespace {

TEST_CASE("the distance of two names is the least number of mistakes") {
  CHECK(edit_distance("cores", "cores", 3) == 0);
  CHECK(edit_distance("Cores", "cORES", 3) == 0);
  CHECK(edit_distance("coers", "cores", 3) == 1);  // swapped
  CHECK(edit_distance("core", "cores", 3) == 1);
  CHECK(edit_distance("cxres", "cores", 3) == 1);
  CHECK(edit_distance("", "abc", 3) == 3);
  CHECK(edit_distance("kitten", "sitting", 9) == 3);
  CHECK(edit_distance("kitten", "sitting", 2) == 3);  // more than 2
  CHECK(edit_distance("ab", "ba", 0) == 1);
  CHECK(edit_distance("abcdef", "badcfe", 3) == 3);
}

TEST_CASE("only near names are suggested") {
  const std::vector<std::string> names{"run", "translate", "disasm", "", "run"};
  CHECK(did_you_mean("rnu", names) == " (did you mean run?)");
  CHECK(did_you_mean("DISASM", names) == " (did you mean disasm?)");
  CHECK(did_you_mean("tranlsat", names) == " (did you mean translate?)");
  CHECK(did_you_mean("fly", names) == "");
  CHECK(did_you_mean("", names) == "");
  CHECK(did_you_mean(std::string(1000, 'x'), std::vector{std::string(1000, 'x')}) == "");
  // The nearest one, not the first.
  CHECK(did_you_mean("fermi2", std::vector{"ferma", "fermi"}) == " (did you mean fermi?)");
}

}  // namespace
}  // namespace gpusim

#define DOCTEST_CONFIG_IMPLEMENT
#include "helpers.h"

namespace gpusim::energy {
bool a_table_is_missing = false;
}

// 77 where nothing failed, but a published table was not at hand: ctest calls that skipped.
int main(int argc, char** argv) {
  const int result = doctest::Context(argc, argv).run();
  return result == 0 && gpusim::energy::a_table_is_missing ? 77 : result;
}

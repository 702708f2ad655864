#include <string>

static thread_local int calls = 0;
// Larger than anonymous mappings that lie near the program.
extern const char large[6 << 20];
const char large[6 << 20] = {1, 2};

extern "C" int twice_or_throw(int n) {
  if (++calls % 3 == 0) throw std::string("third call");
  return 2 * n;
}

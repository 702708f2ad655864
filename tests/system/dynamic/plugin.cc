#include <string>

static thread_local int calls = 0;
extern "C" int twice_or_throw(int n) {
  if (++calls % 3 == 0) throw std::string("third call");
  return 2 * n;
}

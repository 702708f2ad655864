#include "host/ptx/error_texts.h"

namespace gpusim::ptx {

const ErrorText* find_error(int number) {
  static constexpr ErrorText kErrors[] = {
#define ERROR(...) {__VA_ARGS__},
#include "host/ptx/errors.def"
#undef ERROR
  };
  for (const ErrorText& e : kErrors)
    if (e.number == number) return &e;
  return nullptr;
}

}  // namespace gpusim::ptx

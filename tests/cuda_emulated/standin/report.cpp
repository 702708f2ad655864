#include "standin/report.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "standin/random.h"

namespace cuda_emulated {
namespace {

int sticky = 0;
bool lost = false;
std::string text;

void fail_at_exit() {
  if (sticky == 0 || lost) return;
  std::fflush(nullptr);
  _exit(kReportedStatus);
}

}  // namespace

void report(int code, const std::string& sentence) {
  static const bool registered = std::atexit(fail_at_exit) == 0;
  static_cast<void>(registered);
  text = "cuda-emulated: " + sentence + " (replay: GPUSIM_EMULATED_SEED=" + std::to_string(seed()) +
         ")";
  sticky = code;
  lost = false;
  std::fprintf(stderr, "%s\n", text.c_str());
}

int sticky_error() { return sticky; }
const char* sticky_text() { return text.c_str(); }
void forget_reports() {
  sticky = 0;
  lost = false;
}
void lose_device(int code) {
  text = "error " + std::to_string(code) + ", which the environment asked for";
  sticky = code;
  lost = true;
}
bool is_lost() { return lost; }

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 0) : otherwise;
}

}  // namespace cuda_emulated

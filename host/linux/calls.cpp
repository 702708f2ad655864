#include "host/linux/calls.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace gpusim::host {
namespace {

constexpr size_t kNumbers = 512;

constexpr std::array<Handler, kNumbers> make_handlers() {
  std::array<Handler, kNumbers> table{};
#define GPUSIM_CALL(number, function) table[number] = function;
#include "host/linux/calls.def"
#undef GPUSIM_CALL
  return table;
}
constexpr std::array<const char*, kNumbers> make_names() {
  std::array<const char*, kNumbers> table{};
#define GPUSIM_SYSCALL_NAME(number, name) table[number] = #name;
#include "host/linux/syscall_names.def"
#undef GPUSIM_SYSCALL_NAME
  return table;
}
constexpr Handler kApart[] = {
#define GPUSIM_CALL(number, function)
#define GPUSIM_CALL_APART(number, function) function,
#include "host/linux/calls.def"
#undef GPUSIM_CALL
};
constexpr auto kHandlers = make_handlers();
constexpr auto kNames = make_names();

}  // namespace

Handler find_handler(uint64_t number) { return number < kNumbers ? kHandlers[number] : nullptr; }
bool is_apart(Handler handler) { return std::ranges::find(kApart, handler) != std::end(kApart); }
const char* syscall_name(uint64_t number) { return number < kNumbers ? kNames[number] : nullptr; }

}  // namespace gpusim::host

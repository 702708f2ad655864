// Round trips by the bell page, as the daemon's peer sees them.
// daemon_bench [--aims [--small]] [DAEMON OPTION]...
// --aims: what scripts/gpu_aims.py looks at; with --small as an emulated device can.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/system/daemon/fake_guest.h"

using namespace gpusim::test;
using Clock = std::chrono::steady_clock;

namespace {

// What fails is not to be measured.
[[noreturn]] void fail(int status, const char* text) {
  std::printf("failed: %d %s\n", status, text);
  std::exit(1);
}

// Nanoseconds from the bell to the status, which is watched without sleeping. The ring counts, but
// not what writing the command costs.
double round_trip(Guest& guest, const gpusim_command& command, uint64_t gpa) {
  auto* block = guest.ram.at<gpusim_command>(gpa);
  *block = command;
  const auto begin = Clock::now();
  guest.link.ring(gpa);
  while (std::atomic_ref<int32_t>(block->status).load(std::memory_order_acquire) == GPUSIM_PENDING)
    if (Clock::now() - begin < std::chrono::microseconds(20))
      __builtin_ia32_pause();
    else
      guest.link.wait();
  const auto end = Clock::now();
  if (block->status != 0) fail(block->status, block->reply.text);
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

std::vector<double> sorted_times(Guest& guest, const gpusim_command& command, int count,
                                 std::chrono::microseconds gap = {}) {
  const uint64_t gpa = guest.ram.pages(1);
  gpusim_command c = command;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    if (gap.count() != 0) std::this_thread::sleep_for(gap);
    c.ticket = guest.next_ticket++;
    times.push_back(round_trip(guest, c, gpa));
  }
  std::sort(times.begin(), times.end());
  return times;
}

void measure(Guest& guest, const char* name, const gpusim_command& command, int count,
             std::chrono::microseconds gap) {
  const std::vector<double> times = sorted_times(guest, command, count, gap);
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))] / 1000;
  };
  std::printf("%-32s %8.2f %8.2f %8.2f us  (5 %%, median, 95 %%)\n", name, at(0.05), at(0.5),
              at(0.95));
}

// An empty kernel, and 100 M instructions on 65,536 cores: work in memory and values.
void measure_aims(Guest& guest, uint32_t context, uint32_t program, bool is_small) {
  const auto print = [&](const std::string& name, const gpusim_command& command, int count) {
    const Reply first = guest.run(command);  // what is compiled is there then
    if (first.status != 0) fail(first.status, first.text);
    const std::vector<double> times = sorted_times(guest, command, count);
    std::printf("%s: median %.1f us, least %.1f us\n", name.c_str(), times[times.size() / 2] / 1000,
                times.front() / 1000);
  };
  const uint64_t nothing = guest.symbol(context, program, "nothing");
  print("empty kernel, 1 core", guest.launch(context, program, nothing, 1), is_small ? 5 : 2000);
  const uint32_t cores = is_small ? 96 : 65536;
  print("empty kernel, " + std::to_string(cores) + " cores",
        guest.launch(context, program, nothing, cores), is_small ? 3 : 100);
  // Six instructions per turn of the loop.
  const uint64_t turns = 100'000'000 / 65536 / 6;
  const uint64_t out = 0x2000'0000, bytes = (uint64_t{cores} * 8 + kPage - 1) / kPage * kPage;
  guest.map(context, out, {{guest.ram.pages(bytes / kPage), bytes}});
  const gpusim_command work =
      guest.launch(context, program, guest.symbol(context, program, "churn"), cores,
                   {core_number(), value(out), value(turns)});
  const Reply reply = guest.run(work);
  if (reply.status != 0) fail(reply.status, reply.text);
  if (reply.report.guest_instructions < 6 * turns * cores) fail(0, "too few instructions");
  print("work, " + std::to_string(cores) + " cores", work, is_small ? 3 : 50);
  std::printf("%llu instructions\n",
              static_cast<unsigned long long>(reply.report.guest_instructions));
}

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  std::vector<std::string> options(argv + 1, argv + argc);
  const auto take = [&](const char* option) { return std::erase(options, option) != 0; };
  const bool aims = take("--aims"), is_small = take("--small");
  Ram ram;
  BellLink link(ram, options);
  if (link.ready().status != 0) {
    std::printf("the daemon failed: %s\n", link.ready().text);
    return 1;
  }
  std::printf("%s\n", link.ready().text);
  Guest guest(link, ram);
  const uint32_t c = guest.open();
  const uint32_t program = guest.load(c, read_file(kernels_file()));
  if (aims) {
    measure_aims(guest, c, program, is_small);
    return 0;
  }
  const uint64_t nothing = guest.symbol(c, program, "nothing");
  const gpusim_command hello = guest.command(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION});
  const auto launch = [&](uint32_t cores) { return guest.launch(c, program, nothing, cores); };
  using std::chrono::microseconds;
  measure(guest, "HELLO, busy", hello, 100'000, microseconds(0));
  measure(guest, "HELLO, after sleep", hello, 500, microseconds(2000));
  measure(guest, "empty kernel, 1 core, busy", launch(1), 100'000, microseconds(0));
  measure(guest, "empty kernel, 1 core, after sleep", launch(1), 500, microseconds(2000));
  measure(guest, "empty kernel, 64 cores, busy", launch(64), 10'000, microseconds(0));
  measure(guest, "empty kernel, 2048 cores, busy", launch(2048), 1'000, microseconds(0));
  return 0;
}

#include "host/run/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device_sim/uir/uop.h"
#include "host/run/lock_holder.h"
#include "host/run/stop_report.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

constexpr size_t kMostPlaces = 16, kMostStackLines = 6;

class Waits {
 public:
  Waits(const Module& module, Backend& backend, Kernel& kernel, CallFrames& frames)
      : module_(module), backend_(backend), kernel_(kernel), frames_(frames) {}

  // Of the threads with these numbers, those of cores or beyond.
  std::vector<std::string> text(uint32_t first, uint32_t last) {
    for (uint32_t core = first; core < last; ++core)
      if (kernel_.is_alive(core)) cores_of_[place_of(core)].push_back(core);
    // Where most cores wait comes first: the others are more often the reason.
    std::vector<std::pair<Place, std::vector<uint32_t>>> places;
    for (auto& [place, list] : cores_of_) places.emplace_back(place, std::move(list));
    std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return a.second.size() > b.second.size();
    });
    std::vector<std::string> text;
    for (size_t i = 0; i < std::min(places.size(), kMostPlaces); ++i)
      describe(places[i].first, places[i].second, text);
    if (places.size() > kMostPlaces)
      text.push_back(fmt::format("  and {} more places", places.size() - kMostPlaces));
    return text;
  }

 private:
  struct Place {
    enum class What : uint8_t { kWord, kEvent, kFutex, kSignal, kOutside, kCore };
    What what = What::kEvent;
    uint64_t address = 0;           // kWord, kFutex
    std::vector<uint64_t> callers;  // addresses of the call stack
    auto operator<=>(const Place&) const = default;
  };

  Place place_of(uint32_t core) {
    Place p;
    uint32_t uop = kNoUop;
    if (const Waiter* const waiter = kernel_.waits().find(core)) {
      p.what = waiter->address ? Place::What::kFutex : Place::What::kSignal;
      p.address = waiter->address;
      uop = waiter->resume_uop;
    } else if (kernel_.is_parked(core)) {
      p.what = Place::What::kOutside;
      uop = kernel_.parked_at(core).value_or(kNoUop);
    } else if (const auto queued = kernel_.queued_at(core)) {
      p.what = Place::What::kCore;
      uop = *queued;
    } else {
      const int monitor = module_.abi.monitor;
      const uint64_t marked =
          monitor == kNoSlot ? kNoMonitor : backend_.slot(core, static_cast<Slot>(monitor));
      if (marked != kNoMonitor && marked != kLocalEvent && backend_.permissions(core, marked)) {
        p.what = Place::What::kWord;
        p.address = marked;
      }
      uop = backend_.place(core);
    }
    if (uop >= module_.uops.size()) return p;
    // Waiting ends a block: the core goes on behind the instruction that waits.
    const CallStack stack = frames_.stack(
        core, {.pc = place_pc(module_, uop), .is_return = p.what != Place::What::kCore});
    for (const CallPlace& place : stack.places) p.callers.push_back(place.pc);
    stacks_.try_emplace(p.callers, stack);
    return p;
  }

  void describe(const Place& place, const std::vector<uint32_t>& cores,
                std::vector<std::string>& text) {
    const std::vector<CallFrame> frames =
        place.callers.empty() ? std::vector<CallFrame>{}
                              : frames_.frames(stacks_.at(place.callers));
    text.push_back(fmt::format("  {} wait{} for {}", thread_list(kernel_, cores),
                               cores.size() == 1 ? "s" : "", what(place, cores, frames)));
    for (const std::string& line : stack_text(frames, {}, kMostStackLines))
      text.push_back("    " + line);
  }

  std::string what(const Place& place, const std::vector<uint32_t>& cores,
                   const std::vector<CallFrame>& frames) {
    const auto object = [&](const std::string& kind) {
      const std::string name = symbolize(module_, place.address);
      return name.starts_with("0x") ? fmt::format("{} {}", kind, name)
                                    : fmt::format("{} {:#x} ({})", kind, place.address, name);
    };
    switch (place.what) {
      case Place::What::kWord:
        return object("a store to");
      case Place::What::kEvent:
        return "an event (busy-waiting)";
      case Place::What::kFutex: {
        const FutexUse use = futex_use(kernel_, cores.front(), place.address, frames);
        return object(use.kind) + use.holder;
      }
      case Place::What::kSignal:
        return "a signal";
      case Place::What::kOutside:
        return "a pipe or a signal";
      case Place::What::kCore:
        return "a core";
    }
    return {};
  }

  const Module& module_;
  Backend& backend_;
  Kernel& kernel_;
  CallFrames& frames_;
  std::map<Place, std::vector<uint32_t>> cores_of_;
  std::map<std::vector<uint64_t>, CallStack> stacks_;
};

}  // namespace

std::vector<std::string> describe_waits(const Module& module, Backend& backend, Kernel& kernel,
                                        CallFrames& frames) {
  return Waits(module, backend, kernel, frames).text(0, kernel.thread_numbers());
}

std::vector<std::string> describe_threads_without_core(const Module& module, Backend& backend,
                                                       Kernel& kernel, CallFrames& frames) {
  return Waits(module, backend, kernel, frames)
      .text(kernel.plan().config.cores, kernel.thread_numbers());
}

std::string thread_list(const Kernel& kernel, const std::vector<uint32_t>& numbers) {
  std::vector<uint32_t> cores, others;
  for (const uint32_t number : numbers) {
    if (kernel.has_core(number))
      cores.push_back(number);
    else
      others.push_back(static_cast<uint32_t>(kernel.tid(number)));
  }
  if (others.empty()) return core_list(std::move(cores));
  const std::string text =
      others.size() == 1
          ? fmt::format("thread {} without a core", others.front())
          : fmt::format("{} threads without a core ({})", others.size(), core_ranges(others));
  return cores.empty() ? text : core_list(std::move(cores)) + " and " + text;
}

}  // namespace gpusim::host

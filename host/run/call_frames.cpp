#include "host/run/call_frames.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

// Names come from the program's file: no control characters, and not without end.
std::string printable(std::string_view name) {
  constexpr size_t kMost = 120;
  std::string text(name.substr(0, kMost));
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  if (name.size() > kMost) text += "...";
  return text;
}

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text ? text.get() : name;
}

// Without the offset; "0x401234" where no symbol covers the address.
std::string name_at(const Module& module, uint64_t pc) {
  const std::string symbol = symbolize(module, pc);
  return symbol.substr(0, symbol.find('+'));
}

}  // namespace

std::string CallFrame::text() const {
  std::string text = function;
  if (!function.starts_with("0x") && function.find('(') == std::string::npos) text += "()";
  if (!source.empty())
    text += " at " + source;
  else if (!object.empty())
    text += " from " + object;
  return text;
}

bool has_library_name(const std::string& function) {
  if (function == "gpusim_main") return false;  // the program's, which our run-time calls
  static constexpr std::string_view kPrefixes[] = {
      "__",   "_IO_", "_int_", "_dl_",    "_nl_",     "pthread_", "futex_", "lll_",
      "mtx_", "cnd_", "sem_",  "malloc_", "posix_",   "GOMP_",    "gomp_",  "omp_",
      "std::", "gpusim_"};
  static constexpr std::string_view kNames[] = {
      "_start", "_exit",  "_Exit",        "abort",        "raise",     "gsignal",    "kill",
      "tgkill", "start",  "clone",        "exit",         "syscall",   "pause",      "read",
      "write",  "poll",   "ppoll",        "wait",         "waitpid",   "sigsuspend", "sleep",
      "usleep", "malloc", "calloc",       "free",         "realloc",   "nanosleep",
      "start_thread",     "thread_start", "clock_nanosleep"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view p) { return function.starts_with(p); }) ||
         std::find(std::begin(kNames), std::end(kNames), function) != std::end(kNames);
}

void find_library_frames(std::vector<CallFrame>& frames) {
  bool program_has_lines = false;
  for (CallFrame& f : frames) {
    f.is_library = has_library_name(f.function);
    program_has_lines |= !f.is_library && !f.source.empty();
  }
  if (!program_has_lines) return;
  for (CallFrame& f : frames) f.is_library |= f.source.empty();
}

CallFrames::CallFrames(const Module& module, Kernel& kernel, const std::string& program)
    : module_(module),
      kernel_(kernel),
      inlined_(program, &module),
      debug_info_(program, &module),
      unwinder_(module, kernel, &debug_info_) {}

CallStack CallFrames::stack(uint32_t core, CallPlace place) {
  const int link = module_.abi.link;
  const std::pair key(place.pc, link == kNoSlot ? 0 : kernel_.slot(core, static_cast<Slot>(link)));
  if (unwound_ == kMostUnwound) {
    const auto known = stacks_.find(key);
    return known != stacks_.end() ? known->second : CallStack{.places = {place}, .bad_return = {}};
  }
  ++unwound_;
  return stacks_[key] = unwinder_.stack(core, place);
}

void CallFrames::tell_lines(const LineTable& lines) {
  lines_ = lines;
  known_.clear();
}

const std::vector<CallFrame>& CallFrames::frames_at(uint64_t pc) {
  constexpr size_t kMostKnown = 1 << 16;
  if (known_.size() >= kMostKnown) known_.clear();
  const auto [it, is_new] = known_.try_emplace(pc);
  if (!is_new) return it->second;
  const std::string symbol = name_at(module_, pc);
  const auto told = lines_.find(pc);
  for (const Frame& f : told != lines_.end() ? told->second : inlined_.at(pc)) {
    CallFrame frame{.pc = pc, .function = printable(f.function), .source = {}};
    if (!f.file.empty())
      frame.source = printable(
          fmt::format("{}:{}", std::filesystem::path(f.file).filename().string(), f.line));
    it->second.push_back(std::move(frame));
  }
  if (it->second.empty()) it->second.push_back({.pc = pc, .function = {}, .source = {}});
  // Of the function that was compiled the symbol tells more: its class, its arguments.
  CallFrame& compiled = it->second.back();
  if (compiled.function.empty() || symbol.starts_with("_Z"))
    compiled.function = printable(demangled(symbol));
  if (const SharedObject* const object = shared_object_at(module_, pc))
    for (CallFrame& frame : it->second) frame.object = printable(object->name());
  return it->second;
}

std::vector<CallFrame> CallFrames::frames(const CallStack& stack) {
  std::vector<CallFrame> frames;
  for (const CallPlace& place : stack.places) {
    const size_t first = frames.size();
    const std::vector<CallFrame>& here = frames_at(place.inside());
    frames.insert(frames.end(), here.begin(), here.end());
    for (size_t i = first; i < frames.size(); ++i) frames[i].pc = place.pc;
    frames[first].was_interrupted = place.was_interrupted;
  }
  find_library_frames(frames);
  // What the library does before main() and before a thread's function concerns nobody.
  const auto outermost = std::find_if(frames.rbegin(), frames.rend(), [](const CallFrame& f) {
    return !f.is_library;
  });
  if (outermost != frames.rend()) frames.erase(outermost.base(), frames.end());
  return frames;
}

std::vector<std::string> stack_text(const std::vector<CallFrame>& frames,
                                    const std::string& detail, size_t most_lines) {
  std::vector<std::string> lines;
  if (frames.empty()) return lines;
  const auto in_program = std::find_if(frames.begin(), frames.end(), [](const CallFrame& f) {
    return !f.is_library || f.was_interrupted;
  });
  size_t at = 0;
  // Of a call into the library its name, as the program knows it.
  if (in_program != frames.end() && in_program != frames.begin())
    at = static_cast<size_t>(in_program - frames.begin()) - 1;
  const auto is_like = [&](const CallFrame& a, const CallFrame& b) {
    return a.function == b.function && a.source == b.source && !b.was_interrupted;
  };
  for (size_t end; at < frames.size(); at = end) {
    if (lines.size() == most_lines) {
      lines.push_back(fmt::format("and {} more callers", frames.size() - at));
      break;
    }
    for (end = at + 1; end < frames.size() && is_like(frames[at], frames[end]); ++end) {
    }
    std::string line = lines.empty()                ? "in "
                       : frames[at].was_interrupted ? "interrupted by a signal: "
                                                    : "called from ";
    line += frames[at].text();
    if (lines.empty()) line += detail;
    if (end - at > 1) line += fmt::format(" ({} times)", end - at);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusim::host

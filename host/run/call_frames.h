// Call stacks for the user: functions, inlined ones among them, and source lines.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/run/line_table.h"
#include "host/run/profile_frames.h"
#include "host/run/unwinder.h"

namespace gpusim::host {

struct CallFrame {
  uint64_t pc = 0;       // the same for functions inlined into each other
  std::string function;  // "fill", "Grid::fill(int)"; "0x401234" where no symbol is known
  std::string source;    // "grid.c:41"; "" where that is not known
  bool was_interrupted = false;  // by the signal handler that the frame before belongs to
  bool is_library = false;       // of a C library or a run-time system, not of the program
  std::string object{};          // the shared object that it lies in, if it does: "libc.so.6"
  bool operator==(const CallFrame&) const = default;

  std::string text() const;  // "fill() at grid.c:41", "qsort() from libc.so.6"
};

// Whether a function has a name that C libraries and run-time systems use for theirs.
bool has_library_name(const std::string& function);

// Sets is_library: libraries come without debug information, and have names of their own. Only names
// tell in a stack in which no function of the program has a source line.
void find_library_frames(std::vector<CallFrame>& frames);

class CallFrames {
 public:
  // `program`: the file that tells names and lines; "" if there is none.
  CallFrames(const Module& module, Kernel& kernel, const std::string& program);
  CallFrames(const CallFrames&) = delete;
  CallFrames& operator=(const CallFrames&) = delete;

  // Stacks of many cores take time. After kMostUnwound cores a core is taken to have the
  // callers of one with the same place and link register, or none.
  static constexpr size_t kMostUnwound = 1024;
  CallStack stack(uint32_t core, CallPlace place);
  // The innermost function first; without the library's frames below the program's outermost one.
  std::vector<CallFrame> frames(const CallStack& stack);
  // Of a program whose file this cannot read.
  void tell_lines(const LineTable& lines);

 private:
  const std::vector<CallFrame>& frames_at(uint64_t pc);

  const Module& module_;
  Kernel& kernel_;
  InlineFrames inlined_;
  LineTable lines_;  // what was told instead
  DebugInfo debug_info_;
  Unwinder unwinder_;
  size_t unwound_ = 0;
  std::map<std::pair<uint64_t, uint64_t>, CallStack> stacks_;  // by place and link register
  std::unordered_map<uint64_t, std::vector<CallFrame>> known_;  // by address
};

// Lines for the user: where the core is, and what called that. Innermost frames of the library are
// one line, the function that the program called. Frames that repeat are counted. `detail` follows
// the first frame.
std::vector<std::string> stack_text(const std::vector<CallFrame>& frames,
                                    const std::string& detail, size_t most_lines);

}  // namespace gpusim::host

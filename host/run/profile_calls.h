// Who called whom, and what that took: from the nodes of a call tree to calls between functions.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "host/run/call_tree.h"
#include "host/run/profile_report.h"

namespace gpusim::host {

class CallCollector {
 public:
  // Calls the functions in which cores began. Valgrind has "(below main)" there.
  static constexpr const char* kStart = "(start)";

  // `calls`: has to live as long.
  explicit CallCollector(const CallStacks& calls) : calls_(calls) {}

  // What the instruction at `pc` took in a node of the tree; `compiled`: the function and file that
  // it was compiled into.
  void add(uint32_t node, uint64_t pc, const Frame& compiled, const PlaceUse& use);
  std::map<ProfileCall, CallUse> take(const InlineFrames& frames) const;

 private:
  struct Own {
    PlaceUse use;
    std::string file;
  };
  const CallStacks& calls_;
  std::map<std::pair<uint32_t, std::string>, Own> own_;  // by node and function
  std::unordered_map<uint32_t, std::string> names_;      // of nodes, by the instructions there
};

}  // namespace gpusim::host

// Who called whom while a program ran: a tree of functions, and how often each block was executed
// in which of its nodes. It follows calls and returns in the journals of cores, which for that need
// blocks and stack pointers (TranslateOptions::stack_pointers).
//
// A call puts a frame on the core's stack here: where it returns to, and the stack pointer. A jump
// to that place with that stack pointer is the return. Any other indirect jump stays in its
// function, begins another one in the place of its own (a tail call), or goes back to a function
// that is still on the stack (longjmp, an exception); the stack pointer tells which frames are left
// then.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "host/journal/journals.h"
#include "host/run/profile_frames.h"

namespace gpusim::host {

// After the run: in which stacks the instruction at an address was executed how often.
struct CallStacks {
  static constexpr uint32_t kAllCores = ~uint32_t{0};
  struct Part {
    uint32_t core = kAllCores;
    uint32_t callers = 0;
    uint64_t executions = 0;
  };
  std::vector<std::string> names;
  // By Part::callers: functions as numbers of names, the outermost first, with those inlined into
  // them at the call.
  std::vector<std::vector<uint32_t>> callers;
  std::unordered_map<uint64_t, std::vector<Part>> by_pc;

  // The tree of functions as they were compiled, by Part::callers; the first is above all of them.
  struct Node {
    uint32_t parent = 0;
    uint32_t function = 0;            // a number of names
    std::optional<uint32_t> through;  // a name of gpusim's own that stands between both: kSignal
  };
  std::vector<Node> nodes;
  // How often a node was entered, from which call: by the address that it returns to, 0 where that
  // is not known. Tail calls count for the call that is still open.
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> calls;
};

class CallTree final : public JournalReader {
 public:
  // Stacks have no more functions than that, nor the tree more nodes: what is beyond counts in
  // nodes of these names.
  static constexpr uint32_t kMostDepth = 128, kMostNodes = 1 << 17;
  static constexpr const char* kDeeper = "(deeper calls)";
  static constexpr const char* kOther = "(other stacks)";
  static constexpr const char* kSignal = "(signal)";

  // `program`: the file that tells which functions were inlined. `by_core`: cores are told apart.
  CallTree(const Module& module, const MachineConfig& config, const std::string& program,
           bool by_core);
  ~CallTree() override;

  // Before each slice. One thread.
  void look_at_new_blocks();
  void read(uint32_t core, std::span<const uint64_t> words,
            std::span<const BlockSites> blocks) override;
  void started(uint32_t child, uint32_t parent) override;
  // A signal handler was begun at `pc`, or ended. Between slices.
  void handler_begins(uint32_t core, uint64_t pc, uint64_t handler, uint64_t stack_pointer);
  void handler_ends(uint32_t core);

  CallStacks stacks() const;

 private:
  enum class End : uint8_t { kPlain, kCall, kIndirect };
  struct BlockInfo {
    uint64_t pc = 0, end_pc = 0;
    uint32_t function = 0;
    End end = End::kPlain;
    bool starts_function = false, has_symbol = false;
  };
  // A function on a stack; the same one with other callers is another node.
  struct Node {
    uint32_t parent = 0;
    uint32_t chain = 0;  // at the call: the caller, and what was inlined into it
    uint32_t function = 0;
    uint32_t depth = 0;
  };
  struct Place {
    uint32_t node = 0, function = 0;
  };
  struct Frame {
    uint64_t stack_pointer = 0, return_pc = 0;
    Place caller;
    bool is_signal = false;
  };
  struct Core {
    std::vector<Frame> frames;
    Place place;  // node 0: nothing was executed yet
    uint64_t stack_pointer = 0;
    uint32_t last_block = 0;
    End end = End::kPlain;  // of that block
  };
  class Counts;
  struct Shard;  // of the cores of a group, which one thread reads at a time

  uint32_t function_id(const std::string& name);
  uint32_t chain_id(const std::vector<std::string>& names);
  std::vector<std::string> frames_at(uint64_t pc) const;
  uint32_t chain_of_call(uint32_t block);
  uint32_t node(uint32_t parent, uint32_t chain, uint32_t function);
  uint32_t callee(Shard& shard, uint32_t parent, uint32_t block, uint32_t function);
  uint32_t sibling(Shard& shard, uint32_t of, uint32_t function);
  void enter(Shard& shard, Core& core, const BlockInfo& block);
  void jump(Core& core, const BlockInfo& block);
  uint32_t shard_of(uint32_t core) const;
  Shard& shard_for(uint32_t core);
  static void count_call(Shard& shard, const Core& core);

  const Module& module_;
  const MachineConfig config_;
  const bool by_core_;
  std::vector<BlockInfo> blocks_;
  std::vector<Core> cores_;
  std::vector<std::unique_ptr<Shard>> shards_;  // by core, or group of cores
  // Returns of signal handlers, by core and node.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> handler_returns_;

  // All that follows is shared by threads.
  mutable std::mutex mutex_;
  InlineFrames inlined_;
  std::unordered_map<std::string, uint32_t> function_ids_;
  std::vector<std::string> function_names_;
  std::map<std::vector<uint32_t>, uint32_t> chain_ids_;  // of functions
  std::vector<const std::vector<uint32_t>*> chains_;
  std::unordered_map<uint32_t, uint32_t> chains_of_calls_;  // by block
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> node_ids_;
  std::vector<Node> nodes_;  // the first is above all functions
};

}  // namespace gpusim::host

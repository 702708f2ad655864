#include "host/run/call_tree.h"

#include <algorithm>

#include "host/run/profile.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

constexpr size_t kMostFrames = 1 << 20;  // of a core; a program that only calls has no more

// Of what stands in stacks, but is no function of the program.
bool is_own_name(const std::string& name) {
  return name == CallTree::kDeeper || name == CallTree::kOther || name == CallTree::kSignal;
}

}  // namespace

// Numbers by a pair of keys, with open addressing: one is looked at for each block that a core
// executes.
class CallTree::Counts {
 public:
  struct Entry {
    uint64_t a = 0;
    uint32_t b = 0;
    bool is_used = false;
    uint64_t value = 0;
  };

  // 0 where it is new.
  uint64_t& at(uint64_t a, uint32_t b) {
    if (used_ * 2 >= entries_.size()) grow();
    Entry& entry = find(entries_, a, b);
    if (!entry.is_used) {
      entry = {a, b, true, 0};
      ++used_;
    }
    return entry.value;
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  static Entry& find(std::vector<Entry>& in, uint64_t a, uint32_t b) {
    constexpr uint64_t kMixA = 0x9e3779b97f4a7c15, kMixB = 0xc2b2ae3d27d4eb4f;
    uint64_t hash = a * kMixA ^ b * kMixB;
    hash ^= hash >> 32;
    for (size_t i = hash;; ++i) {
      Entry& entry = in[i & (in.size() - 1)];
      if (!entry.is_used || (entry.a == a && entry.b == b)) return entry;
    }
  }
  void grow() {
    std::vector<Entry> larger(std::max<size_t>(64, entries_.size() * 2));
    for (const Entry& entry : entries_)
      if (entry.is_used) find(larger, entry.a, entry.b) = entry;
    entries_ = std::move(larger);
  }

  std::vector<Entry> entries_;
  size_t used_ = 0;
};

struct CallTree::Shard {
  Counts executions;         // by node and block
  Counts callees, siblings;  // nodes that were looked up already
  Counts calls;              // by return address and node
};

CallTree::CallTree(const Module& module, const MachineConfig& config, const std::string& program,
                   bool by_core)
    : module_(module),
      config_(config),
      by_core_(by_core),
      cores_(config.cores),
      inlined_(program, &module),
      nodes_(1) {
  chain_id({});
  function_id("");
  shards_.resize(size_t{shard_of(config.cores - 1)} + 1);
}

CallTree::~CallTree() = default;

uint32_t CallTree::shard_of(uint32_t core) const {
  return by_core_ ? core : core / config_.group_width;
}

CallTree::Shard& CallTree::shard_for(uint32_t core) {
  std::unique_ptr<Shard>& shard = shards_[shard_of(core)];
  if (!shard) shard = std::make_unique<Shard>();
  return *shard;
}

// A core has just come to its node.
void CallTree::count_call(Shard& shard, const Core& core) {
  ++shard.calls.at(core.frames.empty() ? 0 : core.frames.back().return_pc, core.place.node);
}

uint32_t CallTree::function_id(const std::string& name) {
  const auto [it, is_new] =
      function_ids_.try_emplace(name, static_cast<uint32_t>(function_names_.size()));
  if (is_new) function_names_.push_back(name);
  return it->second;
}

uint32_t CallTree::chain_id(const std::vector<std::string>& names) {
  std::vector<uint32_t> functions;
  for (const std::string& name : names) functions.push_back(function_id(name));
  const auto [it, is_new] =
      chain_ids_.try_emplace(std::move(functions), static_cast<uint32_t>(chains_.size()));
  if (is_new) chains_.push_back(&it->first);
  return it->second;
}

void CallTree::look_at_new_blocks() {
  for (size_t b = blocks_.size(); b < module_.blocks.size(); ++b) {
    const Block& block = module_.blocks[b];
    BlockInfo info{.pc = block.pc};
    info.end_pc = block.insn_count != 0 ? gpusim::end_pc(module_, block) : block.pc;
    info.function = function_id(function_at(module_, block.pc));
    const std::string symbol = symbolize(module_, block.pc);
    info.has_symbol = !symbol.starts_with("0x");
    info.starts_function = info.has_symbol && symbol.find("+0x") == std::string::npos;
    if (block.uop_count != 0) {
      const Uop& last = module_.uops[block.first_uop + block.uop_count - 1];
      if ((last.op == Op::jmp || last.op == Op::jmp_reg) &&
          static_cast<JumpHint>(last.aux) == JumpHint::kCall)
        info.end = End::kCall;
      else if (last.op == Op::jmp_reg)
        info.end = End::kIndirect;
    }
    blocks_.push_back(info);
  }
}

// The function as it was compiled, then what was inlined into it there.
std::vector<std::string> CallTree::frames_at(uint64_t pc) const {
  std::vector<gpusim::host::Frame> chain = inlined_.at(pc);
  std::vector<std::string> names{function_at(module_, pc)};
  if (chain.empty()) return names;
  if (names.front().empty()) names.front() = chain.back().function;
  for (auto frame = chain.rbegin() + 1; frame != chain.rend(); ++frame)
    names.push_back(frame->function);
  return names;
}

uint32_t CallTree::chain_of_call(uint32_t number) {
  const auto [it, is_new] = chains_of_calls_.try_emplace(number, 0);
  if (!is_new) return it->second;
  const Block& block = module_.blocks[number];
  const uint64_t pc =
      block.insn_count != 0 ? insn_pc(module_, block, block.insn_count - 1) : block.pc;
  return it->second = chain_id(frames_at(pc));
}

uint32_t CallTree::node(uint32_t parent, uint32_t chain, uint32_t function) {
  if (nodes_[parent].depth > kMostDepth) parent = nodes_[parent].parent;
  if (nodes_[parent].depth == kMostDepth) chain = chain_id({kDeeper});
  std::tuple<uint32_t, uint32_t, uint32_t> key{parent, chain, function};
  auto it = node_ids_.find(key);
  if (it != node_ids_.end()) return it->second;
  if (nodes_.size() >= kMostNodes) {
    key = {0, chain_id({kOther}), function};
    it = node_ids_.find(key);
    if (it != node_ids_.end()) return it->second;
  }
  const auto number = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(
      {std::get<0>(key), std::get<1>(key), function, nodes_[std::get<0>(key)].depth + 1});
  node_ids_.emplace(key, number);
  return number;
}

uint32_t CallTree::callee(Shard& shard, uint32_t parent, uint32_t block, uint32_t function) {
  uint64_t& known = shard.callees.at(uint64_t{parent} << 32 | block, function);
  if (known == 0) {
    const std::lock_guard lock(mutex_);
    known = node(parent, chain_of_call(block), function);
  }
  return static_cast<uint32_t>(known);
}

// Another function in the place of one.
uint32_t CallTree::sibling(Shard& shard, uint32_t of, uint32_t function) {
  uint64_t& known = shard.siblings.at(of, function);
  if (known == 0) {
    const std::lock_guard lock(mutex_);
    known = node(nodes_[of].parent, nodes_[of].chain, function);
  }
  return static_cast<uint32_t>(known);
}

// Finds the frame that an indirect jump comes back to, if it leaves its function.
void CallTree::jump(Core& core, const BlockInfo& to) {
  std::vector<Frame>& frames = core.frames;
  const auto leave = [&](size_t frame) {
    core.place = frames[frame].caller;
    frames.resize(frame);
  };
  const uint64_t sp = core.stack_pointer;
  // Functions that save registers for others return with another stack pointer.
  if (!frames.empty() && frames.back().return_pc == to.pc && !frames.back().is_signal)
    return leave(frames.size() - 1);
  for (size_t i = frames.size(); i-- != 0 && frames[i].stack_pointer <= sp;)
    if (frames[i].stack_pointer == sp && frames[i].return_pc == to.pc && !frames[i].is_signal)
      return leave(i);
  if (to.function == core.place.function || to.starts_function) return;
  // Where a function without a name begins, nobody knows: one that is reached with the stack of the
  // last call is taken for a tail call's. So procedure linkage tables get to what binds symbols.
  if (!to.has_symbol && !frames.empty() && frames.back().stack_pointer == sp &&
      (frames.size() == 1 || frames[frames.size() - 2].stack_pointer > sp))
    return;
  // The outermost one: a handler's stack may be elsewhere.
  for (size_t i = 0; i < frames.size(); ++i)
    if (frames[i].stack_pointer <= sp) return leave(i);
}

void CallTree::enter(Shard& shard, Core& core, const BlockInfo& block) {
  if (core.place.node == 0) {
    const std::lock_guard lock(mutex_);
    core.place = {node(0, 0, block.function), block.function};
    count_call(shard, core);
    return;
  }
  if (core.end == End::kCall) {
    if (core.frames.size() >= kMostFrames) core.frames.clear();
    core.frames.push_back({.stack_pointer = core.stack_pointer,
                           .return_pc = blocks_[core.last_block].end_pc,
                           .caller = core.place});
    core.place = {callee(shard, core.place.node, core.last_block, block.function), block.function};
    count_call(shard, core);
    return;
  }
  if (core.end == End::kIndirect) jump(core, block);
  if (core.place.function == block.function) return;
  core.place = {sibling(shard, core.place.node, block.function), block.function};
  count_call(shard, core);
}

void CallTree::read(uint32_t number, std::span<const uint64_t> words,
                    std::span<const BlockSites> blocks) {
  Shard& shard = shard_for(number);
  Core& core = cores_[number];
  uint64_t* executions = nullptr;  // of the last block
  for_each_word(
      words, blocks,
      [&](uint32_t block, const BlockSites&) {
        if (block == core.last_block && core.end == End::kPlain && executions) {  // a loop
          ++*executions;
          return;
        }
        enter(shard, core, blocks_[block]);
        executions = &shard.executions.at(uint64_t{core.place.node} << 32 | block, 0);
        ++*executions;
        core.last_block = block;
        core.end = blocks_[block].end;
      },
      [](const AccessSite&, uint64_t) {}, [&](uint64_t word) { core.stack_pointer = word; });
}

void CallTree::started(uint32_t child, uint32_t) { cores_[child] = {}; }

void CallTree::handler_begins(uint32_t number, uint64_t pc, uint64_t handler,
                              uint64_t stack_pointer) {
  Core& core = cores_[number];
  std::vector<std::string> chain = frames_at(pc);
  chain.emplace_back(kSignal);
  core.frames.push_back({.stack_pointer = stack_pointer & ~kBlockMark,
                         .return_pc = 0,
                         .caller = core.place,
                         .is_signal = true});
  const uint32_t function = function_id(function_at(module_, handler));
  core.place = {node(core.place.node, chain_id(chain), function), function};
  core.end = End::kPlain;
  count_call(shard_for(number), core);
}

void CallTree::handler_ends(uint32_t number) {
  Core& core = cores_[number];
  core.end = End::kPlain;
  for (size_t i = core.frames.size(); i-- != 0;) {
    if (!core.frames[i].is_signal) continue;
    ++handler_returns_[{by_core_ ? number : CallStacks::kAllCores, core.place.node}];
    core.place = core.frames[i].caller;
    core.frames.resize(i);
    return;
  }
}

CallStacks CallTree::stacks() const {
  CallStacks stacks{.names = function_names_,
                    .callers = std::vector<std::vector<uint32_t>>(nodes_.size()),
                    .by_pc = {},
                    .nodes = std::vector<CallStacks::Node>(nodes_.size()),
                    .calls = {}};
  for (size_t n = 1; n < nodes_.size(); ++n) {  // parents come before their children
    std::vector<uint32_t>& callers = stacks.callers[n];
    callers = stacks.callers[nodes_[n].parent];
    const std::vector<uint32_t>& chain = *chains_[nodes_[n].chain];
    callers.insert(callers.end(), chain.begin(), chain.end());
    CallStacks::Node& to = stacks.nodes[n];
    to = {.parent = nodes_[n].parent, .function = nodes_[n].function, .through = std::nullopt};
    if (!chain.empty() && is_own_name(function_names_[chain.back()])) to.through = chain.back();
  }
  for (size_t s = 0; s < shards_.size(); ++s) {
    if (!shards_[s]) continue;
    for (const Counts::Entry& entry : shards_[s]->calls.entries())
      if (entry.is_used) stacks.calls[{entry.b, entry.a}] += entry.value;
    const uint32_t core = by_core_ ? static_cast<uint32_t>(s) : CallStacks::kAllCores;
    for (const Counts::Entry& entry : shards_[s]->executions.entries()) {
      if (!entry.is_used) continue;
      const Block& block = module_.blocks[static_cast<uint32_t>(entry.a)];
      for (uint32_t i = 0; i < block.insn_count; ++i)
        stacks.by_pc[insn_pc(module_, block, i)].push_back(
            {core, static_cast<uint32_t>(entry.a >> 32), entry.value});
    }
  }
  // The host executes the code that handlers return to: it has no address (profile_places).
  for (const auto& [place, count] : handler_returns_)
    stacks.by_pc[0].push_back({place.first, place.second, count});
  // Groups of cores are told apart no more, nor are blocks that overlap.
  for (auto& [pc, parts] : stacks.by_pc) {
    std::sort(parts.begin(), parts.end(), [](const CallStacks::Part& a, const CallStacks::Part& b) {
      return std::tie(a.core, a.callers) < std::tie(b.core, b.callers);
    });
    size_t last = 0;
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].core == parts[last].core && parts[i].callers == parts[last].callers)
        parts[last].executions += parts[i].executions;
      else
        parts[++last] = parts[i];
    }
    parts.resize(last + 1);
  }
  return stacks;
}

}  // namespace gpusim::host

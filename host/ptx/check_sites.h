// What each word of the journals of a kernel's threads stands for (translator/ptx/notes.h).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "translator/ptx/kernel.h"

namespace gpusim::ptx {

struct CheckSite {
  enum class Kind : uint8_t {
    kLoad,
    kStore,
    kAtomic,
    kValue,  // of the store before it, or what a barrier names
    kFence,  // a stamp, as those that follow
    kArrive,
    kPass,
  };
  Kind kind = Kind::kLoad;
  uint8_t bytes = 0;       // accessed; of a value: stored
  bool is_strong = false;  // volatile, relaxed and stronger
  bool acquires = false, releases = false;
  bool is_access = false;  // the instruction says so; else of a frame of calls or a matrix's room
  // kArrive: whether it is a barrier of the warp, and not of the CTA; whether the thread waits.
  bool is_of_warp = false, waits = true;
  uint8_t values = 0;  // kArrive: words that follow, in the order barrier, threads
  bool barrier_in_word = false, threads_in_word = false;
  uint8_t barrier = 0;
  uint16_t threads = 0;  // 0: all
  // The cluster's barrier, behind those of the CTA.
  static constexpr uint8_t kClusterBarrier = 16;
  bool is_of_cluster() const { return barrier == kClusterBarrier; }
  const StaticInstruction* insn = nullptr;

  bool is_stamp() const { return kind >= Kind::kFence; }
  bool writes() const { return kind == Kind::kStore || kind == Kind::kAtomic; }
  // "reads", "writes", "updates atomically"
  const char* verb() const;
};

/// By block of the kernel's module.
using CheckSites = std::vector<std::vector<CheckSite>>;
CheckSites check_sites(const KernelCode& code);

/// Whether threads meet at barriers in shared memory (mbarrier), whose order is not followed.
bool has_barriers_in_memory(const KernelCode& code);

/// A number for a line of the source, or of the text where the source is not known: loops that are
/// unrolled have one line at many places.
uint64_t line_number(const StaticInstruction& insn);
/// "sum(int*)::part" of a mangled name, or the name itself.
std::string readable(const std::string& name);

/// "st.shared.f32 at saxpy.ptx:32 (saxpy.cu:12)".
std::string place_text(const StaticInstruction& insn, const std::string& origin,
                       const std::map<uint32_t, std::string>& files);

}  // namespace gpusim::ptx

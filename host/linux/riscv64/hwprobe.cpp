// Numbers and rules: Linux, arch/riscv/include/uapi/asm/hwprobe.h and
// Documentation/arch/riscv/hwprobe.rst, as of 6.12, without the highest address (7) and the
// frequency of `time` (8), which get the answer of older kernels: unknown. All cores are alike.
#include "host/linux/riscv64/hwprobe.h"

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <vector>

namespace gpusim::host::riscv64 {
namespace {

struct Pair {
  int64_t key;
  uint64_t value;
};

constexpr uint64_t kWhichCpus = 1;  // flag: which processors are so, not: how they are
constexpr int64_t kUnknownKey = -1;

constexpr uint64_t bits(std::initializer_list<int> numbers) {
  uint64_t all = 0;
  for (const int n : numbers) all |= uint64_t{1} << n;
  return all;
}

// The extensions that translator/riscv/isa.cpp names in /proc/cpuinfo. C implies Zca and Zcd, Zfh
// implies Zfhmin, V the extensions Zve*, Zvfh Zvfhmin.
constexpr uint64_t kExtensions = bits({
    0,   // F and D
    1,   // C
    2,   // V
    3,   // Zba
    4,   // Zbb
    5,   // Zbs
    7,   // Zbc
    27,  // Zfh
    28,  // Zfhmin
    30,  // Zvfh
    31,  // Zvfhmin
    32,  // Zfa
    34,  // Zacas
    35,  // Zicond
    36,  // Zihintpause
    37,  // Zve32x
    38,  // Zve32f
    39,  // Zve64x
    40,  // Zve64f
    41,  // Zve64d
    43,  // Zca
    45,  // Zcd
    48,  // Zawrs
});

struct KnownKey {
  int64_t key;
  uint64_t value;
  bool is_set_of_bits;
};
constexpr KnownKey kKnown[] = {
    {0, 0, false},           // mvendorid: none
    {1, 0, false},           // marchid: none
    {2, 0, false},           // mimpid: none
    {3, 1, true},            // base behaviour: IMA
    {4, kExtensions, true},  // IMA_EXT_0
    {5, 3, true},            // CPUPERF_0: misaligned accesses are fast
    {6, 0, false},           // block size of Zicboz: there is no Zicboz
    {9, 3, false},           // misaligned scalar accesses are fast
    {10, 3, false},          // misaligned vector accesses are fast
};

const KnownKey* find(int64_t key) {
  for (const KnownKey& k : kKnown)
    if (k.key == key) return &k;
  return nullptr;
}

// A set of processors as the guest gives it; false is EFAULT.
bool read_set(const Call& call, uint64_t cores, std::vector<uint8_t>* set) {
  set->resize(std::min(call.args[2], (cores + 7) / 8));
  return call.memory.read(call.args[3], *set);
}

// Drops what is no processor here; whether any is left.
bool keep_existing(uint64_t cores, std::vector<uint8_t>& set) {
  bool any = false;
  for (uint64_t i = 0; i < set.size(); ++i) {
    if (8 * i + 8 > cores) set[i] &= static_cast<uint8_t>((1u << (cores - 8 * i)) - 1);
    any |= set[i] != 0;
  }
  return any;
}

Reply tell_values(const Call& call, uint64_t cores) {
  if (call.args[2] != 0 || call.args[3] != 0) {
    std::vector<uint8_t> set;
    if (!read_set(call, cores, &set)) return Reply::error(EFAULT);
    if (!keep_existing(cores, set)) return Reply::error(EINVAL);
  }
  for (uint64_t i = 0; i < call.args[1]; ++i) {
    const uint64_t at = call.args[0] + i * sizeof(Pair);
    Pair pair;
    if (!call.memory.load(at, &pair.key)) return Reply::error(EFAULT);
    const KnownKey* known = find(pair.key);
    pair = known ? Pair{known->key, known->value} : Pair{kUnknownKey, 0};
    if (!call.memory.store(at, pair)) return Reply::error(EFAULT);
  }
  return Reply::result(0);
}

// Keeps in the set the processors that match all pairs: all of them, or none.
Reply which_processors(const Call& call, uint64_t cores) {
  if (call.args[2] == 0 || call.args[3] == 0) return Reply::error(EINVAL);
  std::vector<uint8_t> set;
  if (!read_set(call, cores, &set)) return Reply::error(EFAULT);
  bool any = false;
  for (const uint8_t byte : set) any |= byte != 0;
  if (!any) set.assign(set.size(), 0xff);  // an empty set asks for all
  keep_existing(cores, set);
  bool matches = true;
  for (uint64_t i = 0; i < call.args[1]; ++i) {
    const uint64_t at = call.args[0] + i * sizeof(Pair);
    Pair pair;
    if (!call.memory.load(at, &pair)) return Reply::error(EFAULT);
    const KnownKey* known = find(pair.key);
    if (!known) {
      matches = false;
      if (!call.memory.store(at, Pair{kUnknownKey, 0})) return Reply::error(EFAULT);
    } else if (known->is_set_of_bits) {
      matches &= (known->value & pair.value) == pair.value;
    } else {
      matches &= known->value == pair.value;
    }
  }
  if (!matches) set.assign(set.size(), 0);
  return call.memory.write(call.args[3], set) ? Reply::result(0) : Reply::error(EFAULT);
}

}  // namespace

Reply hwprobe(Kernel& kernel, Call& call) {
  const uint64_t cores = kernel.is_private() ? 1 : kernel.plan().config.cores;
  const uint64_t flags = call.args[4] & 0xffffffff;
  if (flags == 0) return tell_values(call, cores);
  return flags == kWhichCpus ? which_processors(call, cores) : Reply::error(EINVAL);
}

}  // namespace gpusim::host::riscv64

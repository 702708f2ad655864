// Accesses of generated code that the host's page protection stops: the thread goes on where the
// code handles accesses that are not allowed, as if it had looked permissions up.
#pragma once
#include <cstdint>
#include <vector>

namespace gpusim::native {

// Places in code, relative to where it starts.
struct Trap {
  uint32_t begin = 0, end = 0;  // instructions of one access
  uint32_t slow = 0;
};

class Traps {
 public:
  void set_code(uint64_t base) { base_ = base; }
  // Behind all that were added before. While no thread runs the code.
  void add(Trap trap);
  void clear() { traps_.clear(); }
  // Where a thread goes on that was stopped at this address; 0: it is not in an access.
  uint64_t slow_path(uint64_t address) const;

 private:
  uint64_t base_ = 0;
  std::vector<Trap> traps_;  // by place
};

// While it lives, this thread's faults in accesses that `traps` knows go to their slow paths. All
// others are left to whoever handled SIGSEGV before.
class Trapping {
 public:
  explicit Trapping(const Traps& traps);
  ~Trapping();
  Trapping(const Trapping&) = delete;
  Trapping& operator=(const Trapping&) = delete;
};

// Installs the handler, if it is not the process's any more.
void handle_faults();

}  // namespace gpusim::native

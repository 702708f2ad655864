// Which process runs which point: a claim is a file, POINT.1, that only one process can create.
// Whoever takes a point from a process that died creates POINT.2: no claim is ever removed or
// changed owner, so no two can believe that a point is theirs, on any file system on which creating
// a file is exclusive (POSIX; NFS from version 3 on).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gpusim::sweep {

class Claims {
 public:
  // `folder`: "STUDY/claims", made if missing. `worker`: what others find in our claims.
  // Throws Error, as all others here.
  Claims(std::string folder, std::string worker);

  // Whether it was free.
  bool take(const std::string& point, uint32_t generation);
  // Of one of ours: given back, so that others need not wonder.
  void give_back(const std::string& point, uint32_t generation);

  struct Holder {
    std::string worker;  // empty: it is just being written
    bool gave_back = false;
  };
  std::optional<Holder> holder(const std::string& point, uint32_t generation) const;
  // The last generation of each point's claims, as they are now.
  std::map<std::string, uint32_t> last() const;
  // How many of the claims of generations from `first` to `last` were not given back.
  uint32_t lost(const std::string& point, uint32_t first, uint32_t last) const;

 private:
  std::string path(const std::string& point, uint32_t generation) const;
  std::string folder_, worker_;
};

}  // namespace gpusim::sweep

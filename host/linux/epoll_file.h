// An epoll instance of a guest: one of the host's, over the host files behind the guest's.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "host/linux/file_table.h"

namespace gpusim::host {

class EpollFile final : public OpenFile {
 public:
  explicit EpollFile(int host_fd) : OpenFile(host_fd, /*owned=*/true, Kind::kEpoll) {}

  // epoll_ctl for the file that the guest knows as `fd`; 0 or an error number.
  int control(int operation, const FileRef& file, int64_t fd, uint32_t events, uint64_t data);
  // A file in the set does.
  bool changes_by_itself() const override;
  void prepare_look(uint64_t pending_signals) override;

 private:
  // Linux tells files in a set apart by the open file and the number by which it was added.
  using Key = std::pair<const OpenFile*, int64_t>;
  struct Member {
    std::weak_ptr<OpenFile> file;
    int host_fd = -1;  // the file's own, or a duplicate that belongs to it
  };
  int add(const FileRef& file, const Key& key, uint32_t events, uint64_t data);

  std::map<Key, Member> members_;
};

}  // namespace gpusim::host

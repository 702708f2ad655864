// Who works on a study: one file per process in the study's folder, which tells others of it and
// that it lives. Made for file systems of a network: nothing here relies on locks, on clocks of
// two machines, or on one machine seeing at once what another wrote.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/launch.h"

namespace gpusim::sweep {

using host::Launch;

class Workers {
 public:
  struct Limits {
    double beat_seconds = 5;     // between signs of life
    double silent_seconds = 90;  // without one a worker of another machine is taken for dead;
                                 // NFS may show old attributes for 60
    double open_seconds = 30;    // ranks wait that long for the one that opens the study
  };
  // Begins to be seen in `folder`, "STUDY/workers". `is_opener`: it leads the study and will put
  // results together. Throws Error where it cannot write there.
  Workers(std::string folder, const Launch& launch, bool is_opener)
      : Workers(std::move(folder), launch, is_opener, Limits()) {}
  Workers(std::string folder, const Launch& launch, bool is_opener, const Limits& limits);
  // Ended without end(): its file goes, too.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  const std::string& id() const { return id_; }  // a file's name
  const Launch& launch() const { return launch_; }
  void beat();            // a sign of life, if one is due
  void say_opened();      // the study is there: ranks may begin
  void end(int status);   // its file stays and tells of it
  void leave_no_trace();  // its file goes

  // kUnknown: of another machine, and not watched long enough.
  enum class Life { kAlive, kEnded, kDead, kUnknown };
  Life life(const std::string& id);
  struct Card {
    std::string id, session, name, node;
    uint32_t number = 0;
    bool is_opener = false, has_opened = false;
    std::optional<int> status;  // it ended by itself
    std::string text() const;   // "task 3 of job 17 at n4"
  };
  // All but our own whose `id` has this beginning.
  std::vector<Card> cards(const std::string& beginning = "") const;
  std::optional<Card> card(const std::string& id) const;
  // Others that live, or gave a sign of life so lately that they may.
  std::vector<Card> working();
  bool opener_works();  // one that does not belong to our session
  bool is_opener() const { return is_opener_; }
  // Until rank 0 of our launch has opened the study. Throws Error that says why it may not be seen.
  void wait_for_opener(const std::string& study_folder);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    uint64_t beat = 0;
    Clock::time_point since;
    bool has_changed = false;
  };
  void write();
  std::string path(const std::string& id) const { return folder_ + "/" + id + ".json"; }

  std::string folder_;
  Launch launch_;
  Limits limits_;
  std::string id_, boot_, pids_;
  uint64_t started_ = 0, beats_ = 0;
  bool is_opener_, has_opened_ = false, is_gone_ = false;
  std::optional<int> status_;
  Clock::time_point next_ = {};
  std::map<std::string, Seen> seen_;
};

}  // namespace gpusim::sweep

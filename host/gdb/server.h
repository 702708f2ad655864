// gpusim run --gdb: waits for a debugger, and lets it stop and go on with a run.
#pragma once
#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "host/gdb/connection.h"
#include "host/gdb/session.h"

namespace gpusim::host::gdb {

class Server {
 public:
  struct Options {
    std::string address;  // of --gdb
    std::string program;
    std::function<void(const std::string&)> line;  // one for the user
    const volatile std::sig_atomic_t* interrupted = nullptr;
  };
  // Listens. Throws Error.
  explicit Server(Options options);
  ~Server();

  // To the end of the run; before its first instruction it waits for a debugger.
  void run(const MonitorSources& sources);
  // The debugger ended the run.
  bool was_killed() const { return was_killed_; }
  // Tells the debugger how the run ended: an exit status, or the signal that ended it.
  void tell_end(int exit_status, int signal);

 private:
  bool is_interrupted() const { return options_.interrupted && *options_.interrupted != 0; }
  // False: the run is over.
  bool wait_for_first();
  bool run_alone(RunControl& control);
  bool serve(DebuggedRun& run);
  void leave(DebuggedRun& run, const std::string& why);

  Options options_;
  Listener listener_;
  std::optional<Connection> connection_;
  std::optional<Session> session_;
  bool is_first_ = true, was_killed_ = false;
};

}  // namespace gpusim::host::gdb

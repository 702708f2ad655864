#include "host/gdb/server.h"

#include <fmt/format.h>

#include "host/gdb/debugged_run.h"

namespace gpusim::host::gdb {

Server::Server(Options options) : options_(std::move(options)), listener_(options_.address) {}
Server::~Server() = default;

bool Server::wait_for_first() {
  options_.line(fmt::format("gpusim: gdb: waits for `target remote {}`", listener_.address()));
  if (listener_.is_open())
    options_.line("gpusim: gdb: note: whoever reaches this address can read and change the run");
  while (!is_interrupted())
    if ((connection_ = listener_.accept(-1))) return true;
  return false;
}

// Until another debugger comes.
bool Server::run_alone(RunControl& control) {
  while (control.step())
    if ((connection_ = listener_.accept(0))) return true;
  return false;
}

void Server::run(const MonitorSources& sources) {
  DebuggedRun run(sources.translator, sources.backend, sources.plan, sources.kernel,
                  sources.control);
  sources.control.set_debugger(&run);
  bool goes_on = wait_for_first();
  while (goes_on) {
    run.attach();
    session_.emplace(*connection_, run, sources, options_.program, is_first_);
    goes_on = serve(run);
    if (goes_on && !connection_)
      goes_on = is_first_ ? wait_for_first() : run_alone(sources.control);
  }
  session_.reset();
  sources.control.set_debugger(nullptr);
  if (is_interrupted()) sources.control.step();  // takes note of it
}

// Until the debugger leaves (true) or the run is over.
bool Server::serve(DebuggedRun& run) {
  for (;;) {
    switch (session_->serve()) {
      case Session::End::kResume: {
        is_first_ = false;
        const std::optional<Stop> stop =
            run.go(session_->resume(), [this] { return connection_->wants_stop(); });
        if (!stop) return false;
        if (connection_->lost().empty()) session_->report(*stop);
        break;
      }
      case Session::End::kDetach:
        is_first_ = false;
        leave(run, "the debugger detached: the run goes on without it");
        return true;
      case Session::End::kKill:
        was_killed_ = true;
        options_.line("gpusim: gdb: the debugger ended the run");
        return false;
      case Session::End::kLost:
        if (is_interrupted()) return false;
        if (connection_->lost().empty()) break;  // some other signal
        is_first_ = is_first_ && !connection_->has_spoken();
        leave(run, fmt::format("lost the debugger: {}; the run {}", connection_->lost(),
                               is_first_ ? "still waits for one" : "goes on without it"));
        return true;
    }
  }
}

void Server::leave(DebuggedRun& run, const std::string& why) {
  options_.line("gpusim: gdb: " + why);
  session_.reset();
  connection_.reset();
  if (!is_first_) run.let_go();
}

void Server::tell_end(int exit_status, int signal) {
  if (!connection_ || was_killed_) return;
  connection_->send(signal != 0 ? fmt::format("X{:02x}", signal)
                                : fmt::format("W{:02x}", exit_status & 0xff));
}

}  // namespace gpusim::host::gdb

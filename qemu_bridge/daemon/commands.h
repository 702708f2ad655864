// Commands of the guest: decoded, checked, served by the engine, answered in guest memory.
//
// Nothing that a guest writes is trusted. A block is copied out once and only the copy is looked
// at; what it names is checked here (addresses in guest RAM, numbers, reserved fields) or by the
// engine (device addresses, programs, kernels). Whatever is wrong becomes a negative errno and a
// sentence in the reply.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "host/offload/simulator.h"
#include "qemu_bridge/daemon/guest_memory.h"
#include "qemu_bridge/daemon/log.h"
#include "qemu_bridge/wire/gpusim_wire.h"

namespace gpusim::daemon {

struct CommandOptions {
  uint32_t generation = 1;
  std::string backends;  // HELLO's text
  // Pieces of files that all contexts together may have mapped.
  uint64_t most_pieces = 1u << 15;
  uint64_t most_program_bytes = uint64_t{1} << 28;
  uint64_t most_loading_bytes = uint64_t{1} << 29;  // of all programs that are being loaded
  uint32_t most_programs = 256;                     // of a context
};

/// "LAUNCH"; null: there is no such operation.
const char* operation_name(uint16_t op);

class Commands {
 public:
  /// `done`: there is a reply at this gpa. It is called from serve(), or from the engine's step()
  /// where a command takes time. The references must outlive this object.
  Commands(const GuestMemory& memory, offload::Simulator& service, CommandOptions options, Log& log,
           std::function<void(uint64_t gpa)> done);
  /// As abandon().
  ~Commands();
  Commands(const Commands&) = delete;

  /// A bell rang for the command at `gpa`. One that already has its reply, and one that is being
  /// served, are left alone.
  void serve(uint64_t gpa);

  /// Launches that processes posted (gpusim_direct). False: there was none.
  bool serve_posted();
  /// Tells processes whether what they post is noticed.
  void listen(bool listens);

  /// Closes all contexts; commands that were waiting end with -ECANCELED.
  void close_all();
  /// The guest is gone, or another one: closes all contexts and writes nothing any more.
  void abandon();

  static const char* name(uint16_t op);  // as operation_name()
  uint64_t served() const { return served_; }
  size_t in_flight() const;

 private:
  struct Operation;
  struct Mapping {
    uint64_t size_bytes = 0, pieces = 0;
  };
  struct Context {
    std::map<uint64_t, Mapping> mappings;  // by device address
    std::unordered_set<uint64_t> tickets;  // in flight
    uint32_t programs = 0;                 // with those that are being loaded
    uint64_t direct_address = 0;           // of a gpusim_direct; 0: none
    bool direct_runs = false;
    uint64_t posted = 0;
  };
  enum class Answer { kNow, kLater };
  using Request = gpusim_command;  // the copy; its reply is not used
  struct Label {
    uint64_t gpa = 0, ticket = 0;
    uint32_t context = 0;
    uint16_t op = 0;
    size_t size_bytes = sizeof(gpusim_command);  // of the version that it is of
    bool is_direct = false;                      // its gpa is a device address
  };

  static const Operation kOperations[];
  static const Operation* operation(uint16_t op);

  void run(const Request& request, const Label& label);
  Answer dispatch(const Request& request, const Label& label, gpusim_reply& reply);
  void check(const Request& request, const Operation& operation) const;

  Answer hello(const Request& request, const Label& label, gpusim_reply& reply);
  Answer context_open(const Request& request, const Label& label, gpusim_reply& reply);
  Answer context_close(const Request& request, const Label& label, gpusim_reply& reply);
  Answer map(const Request& request, const Label& label, gpusim_reply& reply);
  Answer unmap(const Request& request, const Label& label, gpusim_reply& reply);
  Answer load(const Request& request, const Label& label, gpusim_reply& reply);
  Answer unload(const Request& request, const Label& label, gpusim_reply& reply);
  Answer symbol(const Request& request, const Label& label, gpusim_reply& reply);
  Answer check_function(const Request& request, const Label& label, gpusim_reply& reply);
  Answer launch(const Request& request, const Label& label, gpusim_reply& reply);
  Answer cancel(const Request& request, const Label& label, gpusim_reply& reply);
  Answer reset(const Request& request, const Label& label, gpusim_reply& reply);
  Answer counters(const Request& request, const Label& label, gpusim_reply& reply);
  Answer direct(const Request& request, const Label& label, gpusim_reply& reply);
  Answer classes(const Request& request, const Label& label, gpusim_reply& reply);

  void begin(const Label& label);
  void end(const Label& label);
  void forget_contents(uint32_t number, Context& context);
  /// Where the context's processes post launches; null: nowhere. Mappings and programs come and go:
  /// valid until the next command.
  gpusim_direct* direct_of(uint32_t number);
  void silence(uint32_t number);
  void forget_direct(uint32_t number, Context& context);
  void answer(const Label& label, int status, const gpusim_reply& reply);

  const GuestMemory& memory_;
  offload::Simulator& service_;
  CommandOptions options_;
  Log& log_;
  std::function<void(uint64_t gpa)> done_;
  std::map<uint32_t, Context> contexts_;
  std::unordered_set<uint64_t> in_flight_;  // gpas of commands that are answered later
  std::vector<uint32_t> direct_;            // contexts
  uint64_t pieces_ = 0, loading_bytes_ = 0, served_ = 0;
  bool abandoned_ = false;
};

}  // namespace gpusim::daemon

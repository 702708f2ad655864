// One debugger at a run: GDB's remote serial protocol (GDB manual, "GDB Remote Serial Protocol").
// Every core whose thread lives is a thread; its number is the core's plus one.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/gdb/connection.h"
#include "host/gdb/debugged_run.h"
#include "host/gdb/program_file.h"

namespace gpusim::host::gdb {

// What commands of `monitor` tell about.
struct MonitorSources {
  Translator& translator;
  Backend& backend;
  const MemoryPlan& plan;
  Kernel& kernel;
  RunControl& control;
  // Cycles that a core has taken, in simulated time; empty: that is not on.
  std::function<double(uint32_t core)> cycles;
};

class Session {
 public:
  Session(Connection& connection, DebuggedRun& run, const MonitorSources& sources,
          const std::string& program, bool is_first);

  enum class End : uint8_t { kResume, kDetach, kKill, kLost };
  // Answers until cores are to run, as resume() says, or the debugger leaves.
  End serve();
  const Resume& resume() const { return resume_; }
  void report(const Stop& stop);
  // Text on the debugger's console, while cores run.
  void say(const std::string& text);

 private:
  // Packets by their first letter. An answer, or nothing if serve() ends.
  std::optional<std::string> answer(std::string_view packet);
  std::string read_registers();
  std::string write_registers(Words words);
  std::string read_register(Words words);
  std::string write_register(Words words);
  std::string read_memory(Words words);
  std::string write_memory(Words words, bool is_binary);
  std::string set_thread(Words words);
  std::string set_point(Words words, bool is_set);
  std::string query(std::string_view packet);
  std::string set(std::string_view packet);
  std::string supported(Words words);
  std::string transfer(Words words);
  std::string threads(bool begins);
  std::string thread_list() const;
  std::string pass_signals(Words words);
  std::string monitor(const std::string& command);
  std::string deadlock_text();
  std::string groups_text();
  // `waiting`: only cores that wait.
  std::string places_text(uint32_t begin, uint32_t end, const char* indent, bool waiting = false);
  std::optional<std::string> resume_one(std::string_view packet);
  std::optional<std::string> resume_many(Words words);

  // Of "-1" (all) nothing; "0" is any.
  struct ThreadId {
    bool is_valid = false, is_all = false;
    uint32_t core = 0;
  };
  ThreadId thread_id(std::string_view text) const;
  std::string stop_reply(const Stop& stop);
  uint32_t core();  // that registers and memory are of

  Connection& connection_;
  DebuggedRun& run_;
  MonitorSources sources_;
  ProgramFile program_;
  bool is_first_;
  bool knows_swbreak_ = false;
  Resume resume_;
  Stop last_;
  std::optional<uint32_t> general_, running_;  // Hg and Hc
  uint32_t next_thread_ = 0;                   // of a list that is asked for in pieces
  std::string list_;                           // the same, as XML
  std::map<uint64_t, DebuggedRun::Conditions> breakpoints_;
  std::vector<Watch> watches_;
};

}  // namespace gpusim::host::gdb

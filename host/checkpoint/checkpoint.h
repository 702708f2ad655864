// Checkpoints of `gpusim run`: the whole state of a run between two slices, in a file from which another
// process goes on. docs/checkpoints.md tells users, docs/adr/ why it is as it is.
#pragma once
#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "host/checkpoint/chunk_file.h"
#include "host/linux/kernel.h"
#include "host/options.h"
#include "host/run/run_control.h"

namespace gpusim::host {

// What a run is, beside what its machine and its kernel hold.
struct RunIdentity {
  std::string program;                    // absolute path; also what /proc/self/exe names
  std::array<uint64_t, 2> program_hash{};  // of the file's contents
  std::string cpu;
  std::string backend;                    // that it was on, and lanes per group
  uint32_t group_width = 0;
  bool starts_alone = false;
  bool returns_end_cores = false;
  bool has_core_tallies = false;
  bool translated_whole = false;          // before it began
  MemoryPlan plan;
  uint64_t slice = 0, max_instructions = 0, seed = 0;  // as asked for
  double seconds = 0;                     // of simulation so far
  std::vector<AllowedRoot> roots;         // canonical
};

std::array<uint64_t, 2> hash_of_file(const std::string& path);

// Writes the file anew, whole or not at all. Throws Error if the run has something that cannot be
// saved; it goes on as before. Returns the size of the file.
uint64_t write_checkpoint(const OutputFile& output, RunIdentity& identity, Translator& translator,
                          Backend& backend, Kernel& kernel, RunControl& control);

// A run that goes on from a checkpoint. All errors are Errors.
class ResumedRun {
 public:
  explicit ResumedRun(const std::string& path);

  const RunIdentity& identity() const { return identity_; }
  // What the command line says now, completed by what it said then. Checks that its --root options
  // allow what those of then did.
  RunOptions options(RunOptions now) const;
  // For checkpoints of the run that goes on.
  RunIdentity identity_now(const Backend& backend, const RunOptions& options) const;
  // Brings a translator of the same program to where it was.
  void grow(Translator& translator);
  // After configure(): memory, registers and tallies.
  void restore_machine(const Module& module, const MemoryPlan& plan, Backend& backend);
  // The rest. Opens the guest's files.
  void restore_run(Kernel& kernel, RunControl& control);

 private:
  std::string path_;
  ChunkReader file_;
  RunIdentity identity_;
  bool same_machine_ = false;
  std::vector<bool> runnable_;
};

// When to write checkpoints. SIGUSR1 asks for one as long as this lives.
class Checkpointer {
 public:
  struct Options {
    OutputFile file;
    uint64_t every = 0;  // instructions of all cores; 0: only on SIGUSR1
    bool stop = false;   // the first one ends the run
    bool quiet = false;
  };
  explicit Checkpointer(Options options);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // The run begins. `identity` without its seconds.
  void start(RunIdentity identity, Translator& translator, Backend& backend, Kernel& kernel,
             RunControl& control);
  // After each step of the run. True: it is to end here.
  bool after_step();
  bool has_stopped() const { return stopped_; }

 private:
  bool is_due();
  bool write(bool asked_for);

  Options options_;
  struct sigaction old_action_ {};
  RunIdentity identity_;
  Translator* translator_ = nullptr;
  Backend* backend_ = nullptr;
  Kernel* kernel_ = nullptr;
  RunControl* control_ = nullptr;
  double seconds_before_ = 0;
  Clock::time_point begin_;
  uint64_t last_ = 0;  // instructions at the last checkpoint
  std::string last_refusal_;
  bool stopped_ = false;
};

}  // namespace gpusim::host

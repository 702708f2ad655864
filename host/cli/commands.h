// The subcommands of the program `gpusim`. Each adds itself to the parser; `action` becomes what is
// to be done once the command line has been read.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace gpusim::host {

struct RunOptions;

using Action = std::function<int()>;

inline constexpr uint32_t kMostCores = 1u << 24;

// `guest_args`: what stood after `--`. `run`: what is done with the options, else simulate().
void add_run_command(CLI::App& app, const std::vector<std::string>& guest_args, Action& action,
                     std::function<int(const RunOptions&)> run);
void add_run_command(CLI::App& app, const std::vector<std::string>& guest_args, Action& action);
// Likewise.
void add_sweep_command(CLI::App& app, const std::vector<std::string>& guest_args, Action& action);
// `merge`: statistics of parts of a machine.
void add_merge_command(CLI::App& app, Action& action);
void add_translate_command(CLI::App& app, Action& action);
void add_disasm_command(CLI::App& app, Action& action);
void add_info_command(CLI::App& app, Action& action);
std::string info_json();  // what `info --json` prints
void add_energy_command(CLI::App& app, Action& action);
// `energy validate`, `tune` and `predict`.
void add_accelwattch_commands(CLI::App& energy, Action& action);
void add_energy_tune(CLI::App& energy, Action& action);
void add_energy_predict(CLI::App& energy, Action& action);
// `energy estimate`, `targets`, `trace`, `timeline` and `log`.
void add_energy_model_commands(CLI::App& energy, Action& action);
// `power ...`: host/cli/power_commands.h. `command`: what stood after `--`.
void add_power_command(CLI::App& app, const std::vector<std::string>& command, Action& action);
void add_daemon_command(CLI::App& app, Action& action);
// Where the build has an engine for PTX (GPUSIM_HAVE_PTX). `command`: what stood after `--`.
void add_cuda_command(CLI::App& app, const std::vector<std::string>& command, Action& action);
void add_self_test_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);

// Those of a program that has more than `run`, `translate`, `disasm`, `info` and `self-test`
// (other_commands.cpp; none in no_other_commands.cpp).
void add_other_commands(CLI::App& app, const std::vector<std::string>& guest_args, Action& action);

// One value each time it is given, so that what follows it is not taken for another.
inline void repeatable(CLI::Option* option) {
  option->expected(1)->allow_extra_args(false)->take_all();
}

// "65536", "64K", "64KiB", "8M", "2G". Throws gpusim::Error naming `option`.
uint64_t parse_size(const std::string& option, const std::string& text);

}  // namespace gpusim::host

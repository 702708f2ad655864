// `gpusim merge`: statistics of parts of a machine, put together. docs/many-machines.md.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "host/cli/commands.h"
#include "host/console.h"
#include "host/output_file.h"
#include "host/stats.h"
#include "host/stats_merge.h"

namespace gpusim::host {

void add_merge_command(CLI::App& app, Action& action) {
  using Json = nlohmann::ordered_json;
  CLI::App* command = app.add_subcommand(
      "merge",
      "Put together what `run --part` counted on several machines, as one run's statistics");
  struct Options {
    std::vector<std::string> parts;
    std::string output;
    bool quiet = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("PART", options->parts, "Statistics of a part, by `run --part K/N --stats`")
      ->required();
  command->add_option("-o,--output", options->output, "Where those of the whole go: .json or .csv")
      ->required();
  command->add_flag("--quiet", options->quiet, "No summary");
  command->callback([options, &action] {
    action = [options] {
      const OutputFile file("-o", options->output);
      std::vector<std::pair<std::string, Json>> parts;
      for (const std::string& path : options->parts) {
        const std::string text = read_text_of(
            path,
            "the statistics of a part, which `gpusim run --part K/N --stats FILE.json` writes");
        parts.emplace_back(path, parse_json(text, path));
      }
      const size_t count = parts.size();
      const Json merged = merged_stats(std::move(parts));
      file.write(options->output.ends_with(".csv")
                     ? stats_csv(merged)
                     : merged.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
      if (!options->quiet)
        console::out("{} cores in {} parts: {} guest instructions\n",
                     merged.at("cores").get<uint64_t>(), count,
                     merged.at("guest_instructions").get<uint64_t>());
      return merged.at("exit_status").get<int>() == 0 ? 0 : 1;
    };
  });
}

}  // namespace gpusim::host

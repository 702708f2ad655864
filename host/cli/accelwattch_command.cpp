// `gpusim energy validate`: a model's power beside measured power. docs/accelwattch.md.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "energy/accelwattch/accuracy.h"
#include "energy/accelwattch/charts.h"
#include "energy/accelwattch/report.h"
#include "energy/accelwattch/sheet.h"
#include "host/cli/commands.h"
#include "host/console.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace aw = accelwattch;

struct ValidateOptions {
  std::string sheet, html, svg_folder, json, title;
};

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int validate(const ValidateOptions& options) {
  const aw::Sheet sheet = aw::read_sheet(options.sheet);
  const aw::Accuracy accuracy = aw::accuracy(sheet);
  const std::string title =
      options.title.empty() ? std::filesystem::path(options.sheet).stem().string() : options.title;
  console::out("{}\n{}\n", aw::kernel_table(sheet), aw::component_table(sheet));
  console::out("{}\n", aw::accuracy_line(sheet, accuracy));
  console::out("{} of {} kernels have less than 10 % error; mean signed error {:+.2f} %\n",
               accuracy.within_10, accuracy.kernels, accuracy.bias);
  for (const auto& note : sheet.notes) console::out("note: {}\n", note);
  if (!options.svg_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.svg_folder, error);
    if (error) throw Error(fmt::format("--svg {}: {}", options.svg_folder, error.message()));
    const std::filesystem::path folder = options.svg_folder;
    write_output_file("--svg", folder / "correlation.svg",
                      aw::correlation_chart(sheet, accuracy, title));
    write_output_file("--svg", folder / "components.svg", aw::component_chart(sheet, title));
  }
  if (!options.html.empty())
    write_output_file("--html", options.html, aw::validation_page(sheet, accuracy, title));
  if (!options.json.empty())
    write_output_file("--json", options.json, json_text(aw::validation_json(sheet, accuracy)));
  return 0;
}

}  // namespace

void add_accelwattch_commands(CLI::App& energy, Action& action) {
  const auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = energy.add_subcommand(
      "validate", "Compare modelled with measured power: tables, MAPE, charts");
  command
      ->add_option("SHEET", options->sheet,
                   "CSV: a row per kernel; a column of watts per component; model_total_W, "
                   "measured_W")
      ->required();
  command->add_option("--html", options->html, "Write one page with charts and tables");
  command->add_option("--svg", options->svg_folder,
                      "Write correlation.svg and components.svg into this folder");
  command->add_option("--json", options->json, "Write all figures");
  command->add_option("--title", options->title, "Of charts and page (the file's name)");
  command->callback([options, &action] { action = [options] { return validate(*options); }; });
  add_energy_tune(energy, action);
  add_energy_predict(energy, action);
}

}  // namespace gpusim::host

// translate and disasm: what can be done with a program without running it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "host/cli/commands.h"
#include "host/console.h"
#include "host/output_file.h"
#include "translator/common/isa_list.h"
#include "translator/common/listing.h"
#include "translator/common/translator.h"
#include "translator/module_io.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

// Instructions of extensions that the simulated CPU lacks are only counted: libraries hold them for
// other processors, and ask before they execute them.
void list_unknown(const Module& module) {
  constexpr size_t kMost = 20;
  const GuestIsa& isa = *find_isa(module.isa);
  size_t listed = 0;
  std::vector<uint64_t> absent;
  std::set<std::string> extensions;
  for (const uint64_t pc : module.unknown) {
    const GuestInsn insn = instruction_at(module, pc);
    if (const char* extension = isa.absent_extension(insn)) {
      absent.push_back(pc);
      extensions.insert(extension);
    } else if (++listed <= kMost) {
      console::err("unknown instruction at {:#x} ({}): {} {}\n", pc, symbolize(module, pc),
                   encoding_text(insn), describe_instruction(module, pc));
    }
  }
  if (listed > kMost) console::err("and {} more\n", listed - kMost);
  if (!absent.empty())
    console::err("{} instructions of {}, for processors that have it; {} has not (first: {})\n",
                 absent.size(), fmt::join(extensions, ", "), module.cpu,
                 symbolize(module, absent.front()));
  if (!module.unknown.empty())
    console::err("a core that reaches one of these {} stops with status 132\n",
                 module.unknown.size());
}

void print_json_summary(const Module& module, const std::string& output, uint64_t instructions) {
  Json unknown = Json::array();
  for (const uint64_t pc : module.unknown) {
    const GuestInsn insn = instruction_at(module, pc);
    const char* extension = find_isa(module.isa)->absent_extension(insn);
    unknown.push_back({{"pc", fmt::format("{:#x}", pc)},
                       {"symbol", symbolize(module, pc)},
                       {"word", encoding_text(insn)},
                       {"text", describe_instruction(module, pc)},
                       {"extension", extension ? Json(extension) : Json()}});
  }
  const Json json = {{"module", output},
                     {"isa", module.isa},
                     {"blocks", module.blocks.size()},
                     {"instructions", instructions},
                     {"micro_ops", module.uops.size()},
                     {"context_slots", module.slot_count},
                     {"unknown", unknown}};
  console::out("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

int translate(const std::string& program, const std::string& output, const std::string& cpu,
              bool quiet, bool json) {
  const OutputFile file("-o", output);
  const Module module = load_program(program, {.cpu = cpu});
  const std::vector<uint8_t> bytes = module_bytes(module);
  file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  uint64_t instructions = 0;
  for (const Block& b : module.blocks) instructions += b.insn_count;
  if (json) print_json_summary(module, output, instructions);
  if (quiet || json) return 0;
  list_unknown(module);
  console::out("{}: {}, {} blocks, {} instructions, {} micro-ops, {} registers per core\n", output,
               module.isa, module.blocks.size(), instructions, module.uops.size(),
               module.slot_count);
  return 0;
}

// One array of blocks, a block per line.
void print_json_listing(std::ostream& out, const Module& module, const std::string& symbol) {
  const char* separator = "[";
  for_each_listed_block(module, {.symbol = symbol}, [&](const ListedBlock& block) {
    Json instructions = Json::array();
    for (const ListedInstruction& insn : block.instructions)
      instructions.push_back({{"pc", fmt::format("{:#x}", insn.pc)},
                              {"word", insn.encoding},
                              {"text", insn.text},
                              {"micro_ops", insn.uops}});
    const Json json = {{"block", block.number},           {"pc", fmt::format("{:#x}", block.pc)},
                       {"functions", block.functions},    {"instructions", std::move(instructions)},
                       {"end_micro_ops", block.end_uops}, {"link_micro_ops", block.link_uops}};
    out << separator << json.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n";
  });
  out << (*separator == '[' ? "[" : "") << "]\n";
}

int disassemble(const std::string& program, const std::string& symbol, bool json) {
  const Module module = load_program(program);
  if (const std::string why = missing_disassembler(module); !why.empty())
    console::err("gpusim: note: {}\n", why);
  console::OutputStream out;
  if (json)
    print_json_listing(out, module, symbol);
  else
    print_listing(out, module, {.symbol = symbol});
  return 0;
}

}  // namespace

void add_translate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("translate", "Translate a program into a module file");
  struct Options {
    std::string program, output, cpu;
    bool quiet = false, json = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("PROGRAM", options->program, "Static ELF file")->required();
  command->add_option("-o,--output", options->output, "Module file to write (.gsm)")->required();
  command->add_option("--cpu", options->cpu,
                      "Processor that the guest finds: one that `gpusim info` lists");
  command->add_flag("--quiet", options->quiet, "No summary, no list of unknown instructions");
  command->add_flag("--json", options->json, "Print both as JSON");
  command->callback([options, &action] {
    action = [options] {
      return translate(options->program, options->output, options->cpu, options->quiet,
                       options->json);
    };
  });
}

void add_disasm_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("disasm", "Print guest instructions side by side with their micro-ops");
  struct Options {
    std::string program, symbol;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("PROGRAM", options->program, "Static ELF file or module (.gsm)")->required();
  command->add_option("--symbol", options->symbol, "Only this function");
  command->add_flag("--json", options->json, "Print an array of blocks as JSON");
  command->callback([options, &action] {
    action = [options] { return disassemble(options->program, options->symbol, options->json); };
  });
}

}  // namespace gpusim::host

// A stand-in for the engine, for tests of everything else: reads names, parameters, variables and
// shared memory off PTX text with regular expressions, and has the test programs' kernels as
// functions of the host. Other kernels do nothing.
#include <algorithm>
#include <cstring>
#include <map>
#include <regex>

#include "device_sim/base/error.h"
#include "host/cuda_api/kernel_engine.h"

namespace gpusim::cuda_api {
namespace {

struct Text {
  std::string ptx;
  std::map<std::string, std::vector<char>, std::less<>> variables;
};

struct Arguments {
  std::span<const std::byte> bytes;
  template <typename T>
  T at(size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
};

uint32_t size_of(const std::string& type) { return static_cast<uint32_t>(std::stoul(type) / 8); }

class DoubleEngine final : public KernelEngine {
 public:
  std::string backend() const override { return "double"; }

  Module load(std::vector<NamedText> units) override {
    auto text = std::make_unique<Text>();
    for (const NamedText& unit : units) {
      if (unit.text.find(".entry") == std::string::npos &&
          unit.text.find(".func") == std::string::npos)
        throw Error(unit.name + ": neither kernel nor function in it");
      text->ptx += unit.text;
    }
    const std::regex form(R"(\.(global|const)[^;]*?\.[ubsf](\d+) (\w+)(\[(\d+)\])?)");
    for (std::sregex_iterator at(text->ptx.begin(), text->ptx.end(), form), end; at != end; ++at) {
      const std::smatch& m = *at;
      text->variables[m[3]].resize(size_of(m[2]) * (m[5].matched ? std::stoul(m[5]) : 1));
    }
    return text.release();
  }
  void unload(Module module) override { delete static_cast<Text*>(module); }

  std::vector<std::string> kernel_names(Module module) override {
    const std::string& ptx = static_cast<Text*>(module)->ptx;
    const std::regex form(R"(\.entry (\w+)\()");
    std::vector<std::string> names;
    for (std::sregex_iterator at(ptx.begin(), ptx.end(), form), end; at != end; ++at)
      names.push_back((*at)[1]);
    return names;
  }

  std::unique_ptr<KernelFacts> find_kernel(Module module, std::string_view name) override {
    const std::string& ptx = static_cast<Text*>(module)->ptx;
    const size_t begin = ptx.find(".entry " + std::string(name) + "(");
    if (begin == std::string::npos) return nullptr;
    const std::string head = ptx.substr(begin, ptx.find(')', begin) - begin);
    const std::string body = ptx.substr(begin, ptx.find("ret;", begin) - begin);
    auto facts = std::make_unique<KernelFacts>();
    facts->name = name;
    facts->registers = 16;
    facts->handle = module;
    const std::regex param(R"(\.param[^,]*?\.[ubsf](\d+))"), most(R"(\.maxntid (\d+))"),
        shared(R"(\.shared[^;]*?\.[ubsf](\d+) \w+\[(\d+)\])");
    for (std::sregex_iterator at(head.begin(), head.end(), param), end; at != end; ++at) {
      const uint32_t size = size_of((*at)[1]);
      const uint32_t offset = (facts->param_bytes + size - 1) / size * size;
      facts->params.push_back({.offset_bytes = offset, .size_bytes = size});
      facts->param_bytes = offset + size;
    }
    std::smatch m;
    if (std::regex_search(body, m, most)) facts->max_threads = static_cast<uint32_t>(stoul(m[1]));
    if (std::regex_search(body, m, shared))
      facts->static_shared_bytes = size_of(m[1]) * static_cast<uint32_t>(std::stoul(m[2]));
    return facts;
  }

  std::optional<Variable> find_variable(Module module, std::string_view name) override {
    auto& variables = static_cast<Text*>(module)->variables;
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return Variable{at->second.data(), at->second.size()};
  }

  LaunchOutcome launch(const Launch& l) override {
    const uint64_t threads =
        uint64_t{l.grid.x} * l.grid.y * l.grid.z * l.block.x * l.block.y * l.block.z;
    const Arguments a{l.params};
    const std::string& name = l.kernel->name;
    const auto each = [&](uint64_t count, auto change) {
      int* const values = a.at<int*>(0);
      for (uint64_t i = 0; i < count; ++i) values[i] = change(values[i]);
    };
    if (name == "_Z4fillPii") each(threads, [&](int) { return a.at<int>(8); });
    if (name == "_Z6add_toPiii")
      each(static_cast<uint64_t>(a.at<int>(12)), [&](int v) { return v + a.at<int>(8); });
    if (name == "_Z10double_allPii")
      each(static_cast<uint64_t>(a.at<int>(8)), [](int v) { return v * 2; });
    if (name == "add_bias") {
      int bias = 0;
      auto& variables = static_cast<Text*>(const_cast<void*>(l.kernel->handle))->variables;
      std::memcpy(&bias, variables.find("bias")->second.data(), sizeof bias);
      each(static_cast<uint64_t>(a.at<int>(8)), [&](int v) { return v + bias; });
    }
    LaunchOutcome outcome;
    outcome.threads = threads;
    return outcome;
  }

  void add_memory(const void*, size_t, std::string_view, std::string_view, bool) override {}
  void remove_memory(const void*, std::string_view) override {}
  void mark_written(const void*, size_t) override {}
  void copy_written(const void*, const void*, size_t) override {}
};

}  // namespace

std::unique_ptr<KernelEngine> make_engine(const EngineSettings&) {
  return std::make_unique<DoubleEngine>();
}

}  // namespace gpusim::cuda_api

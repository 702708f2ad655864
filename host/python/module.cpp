// The extension module `gpusim._gpusim`. The package `gpusim` beside it is what users see.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "device_sim/base/error.h"
#include "energy/activity.h"
#include "energy/model.h"
#include "energy/report.h"
#include "energy/target.h"
#include "host/cli/commands.h"
#include "host/python/callbacks.h"
#include "host/python/machine.h"
#include "host/python/run_options.h"

namespace py = pybind11;

namespace gpusim::python {
namespace {

// One thread at a time is in a machine, and no callback: it comes in the middle of a slice.
class Shared {
 public:
  Shared(const Settings& settings, py::dict functions)
      : callbacks_(std::make_unique<Callbacks>(std::move(functions))) {
    std::vector<host::PluginHost::OwnPlugin> plugins;
    if (!callbacks_->empty())
      plugins.emplace_back([this](const gpusim_host_t& host) { callbacks_->install(host); });
    {
      const py::gil_scoped_release no_gil;
      machine_ = std::make_unique<Machine>(settings, plugins);
    }
    callbacks_->rethrow();
    callbacks_->on_error = [this] { machine_->stop(); };
  }
  ~Shared() {  // nobody else has it any more
    const py::gil_scoped_release no_gil;
    machine_.reset();
  }

  // Calls f(machine), without the GIL.
  template <class F>
  auto use(F f) {
    const Turn turn(*this);
    return [&] {
      const py::gil_scoped_release no_gil;
      return f(*machine_);
    }();
  }
  // What functions of the user raised meanwhile is raised.
  template <class F>
  auto run(F f) {
    auto result = use(f);
    callbacks_->rethrow();
    return result;
  }
  void stop() {
    if (machine_) machine_->stop();
  }
  void close() {
    if (!machine_) return;
    const Turn turn(*this);
    std::unique_ptr<Machine> gone = std::move(machine_);
    const py::gil_scoped_release no_gil;
    gone.reset();
  }
  bool is_closed() const { return machine_ == nullptr; }

 private:
  struct Turn {
    explicit Turn(Shared& shared) : of(shared) {
      if (!of.machine_) throw Error("the machine is closed");
      if (of.is_busy_.exchange(true))
        throw Error("the machine is at work: another thread, or a callback, cannot use it now");
    }
    ~Turn() { of.is_busy_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Shared& of;
  };

  std::unique_ptr<Callbacks> callbacks_;
  std::unique_ptr<Machine> machine_;
  std::atomic<bool> is_busy_ = false;
};

template <auto method, class... Args>
auto plain() {
  return [](Shared& s, Args... args) {
    return s.use([&](Machine& m) { return (m.*method)(args...); });
  };
}

py::array_t<uint64_t> classes_per_core(Shared& s) {
  std::vector<uint64_t> counts;
  const uint32_t cores = s.use([&](Machine& m) {
    for (uint32_t core = 0; core < m.cores(); ++core) {
      const ClassCounts classes = m.classes_of(core);
      counts.insert(counts.end(), classes.begin(), classes.begin() + kInsnClassCount);
    }
    return m.cores();
  });
  return py::array_t<uint64_t>({static_cast<py::ssize_t>(cores), py::ssize_t{kInsnClassCount}},
                               counts.data());
}

std::string estimate_energy(const std::string& stats, const std::string& targets) {
  const energy::Activity activity = energy::parse_stats(stats, "stats");
  const std::vector<energy::Target> list = energy::find_targets(targets);
  std::vector<energy::Estimate> estimates;
  for (const energy::Target& target : list)
    estimates.push_back(energy::estimate(target, activity, {}));
  return energy::report_json(activity, estimates)
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

py::list targets() {
  py::list list;
  for (const energy::Target& t : energy::find_targets("all")) {
    py::dict target;
    target["name"] = t.name;
    target["title"] = t.title;
    target["conditions"] = t.conditions;
    target["uncertainty"] = t.uncertainty;
    list.append(target);
  }
  return list;
}

void add_machine(py::module_& module) {
  py::class_<Shared>(module, "Machine")
      .def(py::init([](std::vector<std::string> words, std::vector<std::string> guest_args,
                       std::array<int, 3> files, bool stats, bool per_core, py::dict functions) {
        return std::make_unique<Shared>(
            Settings{std::move(words), std::move(guest_args), files, stats, per_core},
            std::move(functions));
      }))
      .def("step",
           [](Shared& s, uint64_t most) {
             const Machine::Step step = s.run([&](Machine& m) { return m.step(most); });
             return py::make_tuple(step.goes_on, step.instructions);
           })
      .def("finish",
           [](Shared& s) {
             const Outcome o = s.run([](Machine& m) { return m.finish(); });
             py::dict outcome;
             outcome["stats"] = o.stats;
             outcome["exit_status"] = o.exit_status;
             outcome["interrupted"] = o.was_interrupted;
             outcome["deadlocked"] = o.was_deadlocked;
             outcome["out_of_memory"] = o.ran_out_of_memory;
             return outcome;
           })
      .def("stop", &Shared::stop)
      .def("close", &Shared::close)
      .def_property_readonly("closed", &Shared::is_closed)
      .def("cores", plain<&Machine::cores>())
      .def("alive", plain<&Machine::alive>())
      .def("seconds", plain<&Machine::seconds>())
      .def("state", plain<&Machine::state, uint32_t>())
      .def("pc", plain<&Machine::pc, uint32_t>())
      .def("registers", plain<&Machine::registers, uint32_t>())
      .def("set_register", plain<&Machine::set_register, uint32_t, std::string, uint64_t>())
      .def("read",
           [](Shared& s, uint32_t core, uint64_t address, uint64_t size) {
             return py::bytes(s.use([&](Machine& m) { return m.read(core, address, size); }));
           })
      .def("write",
           [](Shared& s, uint32_t core, uint64_t address, const py::bytes& bytes) {
             const std::string_view view(bytes);
             s.use([&](Machine& m) {
               m.write(core, address, {reinterpret_cast<const uint8_t*>(view.data()), view.size()});
               return 0;
             });
           })
      .def("symbol",
           [](Shared& s, const std::string& name) {
             const Machine::Place place = s.use([&](Machine& m) { return m.symbol(name); });
             return py::make_tuple(place.address, place.size_bytes);
           })
      .def("symbolize", plain<&Machine::symbolize, uint64_t>())
      .def("disassemble", plain<&Machine::disassemble, uint64_t>())
      .def("classes",
           [](Shared& s) {
             const ClassCounts counts = s.use([](Machine& machine) { return machine.classes(); });
             return std::vector<uint64_t>(counts.begin(), counts.begin() + kInsnClassCount);
           })
      .def("classes_per_core", &classes_per_core)
      .def("block_counts",
           [](Shared& s) {
             const auto counts = s.use([](Machine& machine) { return machine.block_counts(); });
             return py::array_t<uint64_t>(counts.size(), counts.data());
           })
      .def("isa",
           [](Shared& s) { return s.use([](Machine& machine) { return machine.module().isa; }); })
      .def("backend", plain<&Machine::backend_name>())
      .def("take_messages", plain<&Machine::take_messages>());
}

}  // namespace
}  // namespace gpusim::python

PYBIND11_MODULE(_gpusim, m) {
  using namespace gpusim::python;
  // It lives as long as the process: translators may be called until then.
  static PyObject* error_type = nullptr;
  error_type = py::exception<gpusim::Error>(m, "Error", PyExc_RuntimeError).release().ptr();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const py::builtin_exception&) {
      throw;
    } catch (const std::runtime_error& e) {
      PyErr_SetString(error_type, e.what());
    }
  });
  add_machine(m);
  m.attr("version") = GPUSIM_VERSION;
  py::list classes;
  for (int c = 0; c < gpusim::kInsnClassCount; ++c) classes.append(gpusim::kInsnClassNames[c]);
  m.attr("classes") = classes;
  m.def("run_options", [] {
    py::list list;
    for (const OptionInfo& o : run_option_infos())
      list.append(py::make_tuple(o.name, o.help, o.is_flag, o.is_repeatable));
    return list;
  });
  m.def("estimate_energy", &estimate_energy);
  m.def("targets", &targets);
  m.def("info_json", &gpusim::host::info_json);
}

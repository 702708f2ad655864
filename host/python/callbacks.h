// Python functions as a plug-in (host/plugin/gpusim_plugin.h).
#pragma once
#include <pybind11/pybind11.h>

#include <exception>
#include <functional>

#include "host/plugin/plugin_host.h"

namespace gpusim::python {

// Arrays that the functions get are copies, theirs to keep. The first exception ends the run.
class Callbacks {
 public:
  // "translation", "blocks", "accesses", "synchronisation" -> function.
  explicit Callbacks(pybind11::dict functions) : functions_(std::move(functions)) {}
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  bool empty() const { return functions_.empty(); }
  // The GIL is not needed, and the functions take it.
  void install(const gpusim_host_t& host);
  // Called when a function raises.
  std::function<void()> on_error;
  // Raises what a function raised. With the GIL.
  void rethrow();

 private:
  template <class F>
  void call(F f);
  pybind11::object function(const char* name) const;

  pybind11::dict functions_;
  pybind11::object translation_, blocks_, accesses_, synchronisation_;  // null: none
  std::exception_ptr error_;                                            // the GIL guards it
};

}  // namespace gpusim::python

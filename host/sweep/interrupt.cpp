#include "host/sweep/interrupt.h"

#include <iterator>

namespace gpusim::sweep {
namespace {

volatile std::sig_atomic_t stop_signal = 0;
void note_signal(int number) { stop_signal = number; }

}  // namespace

SignalWatch::SignalWatch() {
  stop_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;  // without SA_RESTART: poll shall return
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &old_[i]);
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
}

bool is_interrupted() { return stop_signal != 0; }

}  // namespace gpusim::sweep

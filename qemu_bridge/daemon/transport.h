// How bells come in and completions go out. One thread owns a transport; only wake() is for others.
#pragma once
#include <cstdint>
#include <string>

#include "qemu_bridge/daemon/guest_memory.h"

namespace gpusim::daemon {

class Transport {
 public:
  virtual ~Transport() = default;

  enum class Event {
    kNothing,
    kBell,
    kNewGuest,   // memory() and generation() are valid from now on
    kWoken,      // wake() was called
    kGuestGone,  // nothing of it may be touched any more; the next poll() unmaps its memory
    kEnd,
  };
  struct Report {
    Event event = Event::kNothing;
    uint64_t gpa = 0;  // of the command that a bell is for
  };
  /// Comes back at once, and is cheap enough to be asked all the time.
  virtual Report poll() = 0;
  /// As of the last poll(): the virtual machine stands still, and so must its memory.
  virtual bool is_paused() const { return false; }

  virtual const GuestMemory& memory() const = 0;
  virtual uint32_t generation() const = 0;

  /// Replies are in guest memory; `flush` after each group of them.
  virtual void done(uint64_t gpa) = 0;
  virtual void flush() = 0;

  /// The daemon serves from now on, or will not: an errno, negative, and a sentence.
  virtual void ready(int status, const std::string& text) = 0;
  /// Until poll() has something.
  virtual void sleep() = 0;
  virtual void wake() = 0;  // from any thread
};

}  // namespace gpusim::daemon

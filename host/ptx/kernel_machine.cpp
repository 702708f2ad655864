#include "host/ptx/kernel_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "device_sim/base/error.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/core/cta.h"
#include "device_sim/core/ctas.h"
#include "device_sim/core/devices.h"
#include "host/ptx/check.h"
#include "host/ptx/device_launches.h"
#include "host/ptx/printf.h"
#include "host/ptx/tensor_copy.h"
#include "host/ptx/texture.h"
#include "host/ptx/warpgroup.h"
#include "translator/common/link.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {
namespace {

// Threads that are resident on one machine: their registers stay in the host's caches, or are as
// many as a GPU has at once.
constexpr uint32_t kResidentThreads = 1024, kResidentOnDevice = 1 << 16;
constexpr uint64_t kSlice = 1 << 20;
// CTAs of a cooperative grid, or of a cluster, spin until the last one has come: none may do so for
// long.
constexpr uint64_t kCooperativeSlice = 1 << 12;

Dim3 coordinates(uint64_t n, const Dim3& of) {
  return {static_cast<uint32_t>(n % of.x), static_cast<uint32_t>(n / of.x % of.y),
          static_cast<uint32_t>(n / of.x / of.y)};
}

std::string text(const Dim3& d) { return fmt::format("({},{},{})", d.x, d.y, d.z); }

// Why a thread stopped, and whether an address belongs to it.
struct Reason {
  Fault::Reason kind;
  const char* text;
  bool has_address;
};
Reason reason_of(gpusim::Fault fault) {
  using enum Fault::Reason;
  switch (fault) {
    case gpusim::Fault::kLoadAccess:
      return {kAddress, "loads from an address that it may not read,", true};
    case gpusim::Fault::kStoreAccess:
      return {kAddress, "writes to an address that it may not write,", true};
    case gpusim::Fault::kAlignment:
      return {kMisaligned, "makes a misaligned atomic access at", true};
    case gpusim::Fault::kDeadlock:
      return {kDeadlock, "waits for ever: no thread that it waits for can come there", false};
    case gpusim::Fault::kBarrier:
      return {kOther, "is at a barrier whose number or count of threads is not allowed", false};
    default:
      return {kOther, "cannot go on", false};
  }
}

std::unique_ptr<Backend> make_backend_in(const std::string& name, const DevicePlace& device) {
  if (device.space) device.space->enter();
  if (device.number) return make_backend_on(name, std::array{*device.number});
  return make_backend(name, {.in_place = true, .warps = true});
}

}  // namespace

KernelMachine::KernelMachine(const KernelCode& code, const std::string& origin,
                             const std::map<uint32_t, std::string>& files, ProcessMemory& memory,
                             const EngineOptions& options, const DevicePlace& device,
                             const Dim3& block, const Dim3& cluster, uint32_t shared_bytes,
                             uint64_t ctas, bool all_resident, const StackBytes& stack,
                             WarpCaches* caches)
    : code_(code),
      origin_(origin),
      files_(files),
      memory_(memory),
      tensor_cores_(tensor_cores_of(options.compute_capability)),
      space_(device.space),
      backend_(make_backend_in(options.backend, device)),
      slices_(async_slices_of(*backend_)),
      block_(block),
      cluster_(cluster),
      cluster_ctas_(static_cast<uint32_t>(cluster.count())),
      shared_bytes_(shared_bytes),
      stack_(stack),
      resident_threads_(traits_of(options.backend).is_on_device ? kResidentOnDevice
                                                                : kResidentThreads) {
  const auto threads = static_cast<uint32_t>(block.count());
  shift_ = cta_shift_of(threads);
  places_ = places_for(block, cluster, ctas, all_resident);
  MachineConfig config;
  memory.configure(config);
  config.cores = places_ << shift_;
  config.memory_model = MemoryModel::kPrivate;
  config.window_base = kLocalWindowBase;
  const uint64_t local_bytes = code.local_bytes + stack.allocas + stack.frames;
  config.window_shift =
      std::max(12u, static_cast<uint32_t>(std::bit_width(std::max<uint64_t>(local_bytes, 1) - 1)));
  config.cta_threads = threads;
  config.cta_base = kCtaBase;
  config.cta_bytes = (std::max(shared_bytes, 8u) + 7u) & ~7u;
  config.cluster_ctas = cluster_ctas_;
  config.cluster_base = kClusterBase;
  config.cluster_shift = kClusterShift;
  config.threads = 1;
  if (options.checks.any()) {
    config.journal_words = MachineCheck::kJournalWords;
    check_ = std::make_unique<MachineCheck>(
        code, origin, files, memory, options.checks,
        MachineCheck::Shape{block, places_, shift_, cluster_ctas_, shared_bytes, local_bytes});
  }
  if (options.has_profile) {
    config.journal_words = MachineProfile::kJournalWords;
    profile_ = std::make_unique<MachineProfile>(code, config.cores, caches);
  }
  if (auto* const takes = dynamic_cast<TakesLinearSpace*>(backend_.get()); takes && space_)
    takes->use(*space_);
  backend_->configure(code.module, config);
  if (local_bytes != 0)
    backend_->set_permissions_all(kLocalWindowBase, uint64_t{1} << config.window_shift,
                                  kRead | kWrite);
  entry_ = find_block(code.module.code, code.module.entry);
  cta_at_.assign(places_, 0);
  running_.assign(places_ / cluster_ctas_, 0);
  at_product_.assign(config.cores / kWarpLanes, 0);
  at_group_product_.assign(config.cores / kWarpLanes, 0);
  set_constant_slots();
}

// A device that failed says so to every call, and its memory is gone already.
KernelMachine::~KernelMachine() {
  try {
    enter();
  } catch (const std::runtime_error&) {
  }
}

uint32_t KernelMachine::places_for(const Dim3& block, const Dim3& cluster, uint64_t ctas,
                                   bool all_resident) const {
  const uint32_t shift = cta_shift_of(static_cast<uint32_t>(block.count()));
  if (all_resident) return static_cast<uint32_t>(ctas);
  const uint64_t of_cluster = cluster.count();
  const uint64_t clusters = std::clamp<uint64_t>(
      ctas / of_cluster, 1, std::max<uint64_t>(1, (resident_threads_ >> shift) / of_cluster));
  return static_cast<uint32_t>(clusters * of_cluster);
}

namespace {

uint64_t pair_of(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

}  // namespace

void KernelMachine::set_all(Special what, uint64_t value) {
  const int slot = code_.specials[static_cast<int>(what)];
  if (slot != kNoSlot) backend_->set_slots(static_cast<Slot>(slot), {value, 0});
}

void KernelMachine::set_of_cta(uint32_t place, Special what, uint64_t value) {
  const int slot = code_.specials[static_cast<int>(what)];
  if (slot != kNoSlot) backend_->set_cta_slots(place, static_cast<Slot>(slot), {value, 0});
}

void KernelMachine::set_constant_slots() {
  using enum Special;
  set_all(kNtidX, block_.x);
  set_all(kNtidY, block_.y);
  set_all(kNtidZ, block_.z);
  set_all(kNwarpid, (block_.count() + 31) / 32);
  set_all(kNsmid, 1);
  set_all(kSmid, 0);
  set_all(kGridid, 1);
  set_all(kTotalSharedSize, shared_bytes_);
  set_all(kDynamicSharedSize, shared_bytes_ - std::min(shared_bytes_, code_.dynamic_shared_offset));
  const auto each = [&](Special what, auto value_of, bool is_affine = false) {
    const int slot = code_.specials[static_cast<int>(what)];
    if (slot == kNoSlot) return;
    for (uint32_t p = 0; p < places_; ++p) {
      // What all threads have alike, or one more than their neighbour, is cheap as such.
      if (is_affine || block_.count() == 1) {
        const uint64_t step = block_.count() == 1 ? 0 : 1;
        backend_->set_cta_slots(p, static_cast<Slot>(slot), {value_of(0), step});
        continue;
      }
      for (uint32_t t = 0; t < block_.count(); ++t)
        backend_->set_slot((p << shift_) + t, static_cast<Slot>(slot), value_of(t));
    }
  };
  set_all(kClusterNctaidXY, pair_of(cluster_.x, cluster_.y));
  set_all(kClusterNctaidZCount, pair_of(cluster_.z, cluster_ctas_));
  for (uint32_t p = 0; p < places_; ++p) {
    const uint32_t rank = p % cluster_ctas_;
    const Dim3 at = coordinates(rank, cluster_);
    set_of_cta(p, kClusterCtaidXY, pair_of(at.x, at.y));
    set_of_cta(p, kClusterCtaidZRank, pair_of(at.z, rank));
  }
  const bool is_line = block_.y == 1 && block_.z == 1;
  each(
      kTidX, [&](uint32_t t) { return coordinates(t, block_).x; }, is_line);
  each(kTidY, [&](uint32_t t) { return coordinates(t, block_).y; });
  each(kTidZ, [&](uint32_t t) { return coordinates(t, block_).z; });
  each(kLaneid, [](uint32_t t) { return t % 32; });
  each(kWarpid, [](uint32_t t) { return t / 32; });
  each(kLanemaskEq, [](uint32_t t) { return uint64_t{1} << t % 32; });
  each(kLanemaskLt, [](uint32_t t) { return (uint64_t{1} << t % 32) - 1; });
  each(kLanemaskLe, [](uint32_t t) { return (uint64_t{2} << t % 32) - 1; });
  each(kLanemaskGe, [](uint32_t t) { return uint64_t{0xffffffffu << t % 32}; });
  each(kLanemaskGt, [](uint32_t t) { return uint64_t{0xfffffffeu << t % 32}; });
}

void KernelMachine::set_launch_slots(const Grid& grid) {
  using enum Special;
  set_all(kNctaidX, grid.launch.grid.x);
  set_all(kNctaidY, grid.launch.grid.y);
  set_all(kNctaidZ, grid.launch.grid.z);
  set_all(kWorkspace, grid.workspace_address);
  const Dim3& g = grid.launch.grid;
  set_all(kNclusteridXY, pair_of(g.x / cluster_.x, g.y / cluster_.y));
  set_all(kNclusteridZ, g.z / cluster_.z);
  if (code_.param_base != kNoSlot)
    backend_->set_slots(static_cast<Slot>(code_.param_base), {grid.param_address, 0});
}

// The grid's next cluster takes the places from that one on.
bool KernelMachine::start_next(Grid& grid, uint32_t first_place) {
  if (grid.stops.load(std::memory_order_relaxed)) return false;
  const uint64_t number = grid.next_cluster.fetch_add(1, std::memory_order_relaxed);
  const Dim3& of = grid.launch.grid;
  const Dim3 clusters{of.x / cluster_.x, of.y / cluster_.y, of.z / cluster_.z};
  if (number >= clusters.count()) return false;
  const Dim3 at = coordinates(number, clusters);
  for (uint32_t rank = 0; rank < cluster_ctas_; ++rank) start_cta(grid, first_place + rank, at);
  running_[first_place / cluster_ctas_] = cluster_ctas_;
  return true;
}

void KernelMachine::start_cta(Grid& grid, uint32_t place, const Dim3& cluster_at) {
  const Dim3 in_cluster = coordinates(place % cluster_ctas_, cluster_), &of = grid.launch.grid;
  const Dim3 at{cluster_at.x * cluster_.x + in_cluster.x, cluster_at.y * cluster_.y + in_cluster.y,
                cluster_at.z * cluster_.z + in_cluster.z};
  const uint64_t cta = at.x + uint64_t{of.x} * (at.y + uint64_t{of.y} * at.z);
  cta_at_[place] = cta;
  set_of_cta(place, Special::kCtaidX, at.x);
  set_of_cta(place, Special::kCtaidY, at.y);
  set_of_cta(place, Special::kCtaidZ, at.z);
  set_of_cta(place, Special::kClusteridXY, pair_of(cluster_at.x, cluster_at.y));
  set_of_cta(place, Special::kClusteridZExplicit, pair_of(cluster_at.z, grid.has_clusters ? 1 : 0));
  set_of_cta(place, Special::kClock, grid.clock);
  set_of_cta(place, Special::kStackTop, stack_bottom() + stack_.allocas);
  if (shared_bytes_ > kReservedSharedBytes) {
    const std::span<uint8_t> shared = backend_->cta_memory(place);
    std::fill(shared.begin(), shared.end(), uint8_t{0});
  }
  if (check_) check_->start_cta(place, cta);
  backend_->start_cta(place, entry_);
}

void KernelMachine::begin(Grid& grid, uint64_t most_clusters) {
  enter();
  if (needs_reset_ || removals_ != memory_.removals()) {
    backend_->reset(0);
    set_constant_slots();
    needs_reset_ = false;
    std::fill(at_product_.begin(), at_product_.end(), 0);
    std::fill(at_group_product_.begin(), at_group_product_.end(), 0);
    removals_ = memory_.removals();
  }
  set_launch_slots(grid);
  if (check_) check_->begin(grid.launch.grid, *grid.findings);
  if (profile_) profile_->begin();
  active_ = 0;
  const uint64_t places = std::min<uint64_t>(places_, most_clusters * cluster_ctas_);
  for (uint32_t p = 0; p < places; p += cluster_ctas_) active_ += start_next(grid, p);
  slice_ = grid.launch.cooperative || cluster_ctas_ > 1 ? kCooperativeSlice : kSlice;
  if (check_) slice_ = std::min(slice_, check_->longest_slice());
  if (profile_) slice_ = std::min(slice_, profile_->longest_slice());
}

void KernelMachine::begin_slice() {
  if (!slices_) return;
  enter();
  slices_->begin_slice(slice_);
}

void KernelMachine::end_slice(Grid& grid) {
  enter();
  const std::span<const Event> events =
      slices_ ? slices_->end_slice() : backend_->run_slice(slice_);
  if (check_) {
    check_->after_slice(*backend_);
    check_->deadlocks(events);
  }
  if (profile_) profile_->after_slice(*backend_, cta_at_, shift_);
  for (const Event& e : events) {
    if (e.status == CoreStatus::kCtaEnd) {
      const uint32_t place = e.core >> shift_, cluster = place / cluster_ctas_;
      note_clock(grid, place);
      if (check_) check_->end_cta(place);
      // Others of the cluster may access the memory of one that ended.
      if (--running_[cluster] == 0) active_ -= !start_next(grid, cluster * cluster_ctas_);
    } else {
      serve(grid, e);
    }
  }
  if (events.empty() && backend_->runnable() == 0) {
    report_lone_products(grid);
    active_ = 0;
  }
}

void KernelMachine::end(Grid& grid) {
  if (check_) check_->end();
  if (grid.stops.load(std::memory_order_relaxed)) needs_reset_ = true;
}

// nanosleep moves clocks beyond the number of instructions.
void KernelMachine::note_clock(Grid& grid, uint32_t place) {
  const int slot = code_.specials[static_cast<int>(Special::kClock)];
  if (slot == kNoSlot) return;
  uint64_t latest = 0;
  for (uint32_t t = 0; t < block_.count(); ++t)
    latest = std::max(latest, backend_->slot((place << shift_) + t, static_cast<Slot>(slot)));
  const std::lock_guard lock(grid.mutex);
  grid.latest_clock = std::max(grid.latest_clock, latest);
}

void KernelMachine::serve(Grid& grid, const Event& event) {
  if (event.status == CoreStatus::kFault) {
    const Reason r = reason_of(event.fault);
    std::string why = r.text;
    const Uop& row = code_.module.uops[event.uop];
    if (event.fault == gpusim::Fault::kBarrier && is_of_cluster(row))
      why = row.aux == static_cast<uint8_t>(CtaSync::kClusterArrive)
                ? "arrives at the cluster's barrier again before it has waited there"
                : "waits at the cluster's barrier without having arrived there";
    if (TextureObjects::is_complaint(event.address) && r.kind == Fault::Reason::kAddress)
      return report(
          grid, event, r.kind,
          "uses a texture or surface: " + TextureObjects::instance().describe(event.address));
    if (r.has_address) why += fmt::format(" {:#x}: {}", event.address, describe(event.address));
    return report(grid, event, r.kind, std::move(why));
  }
  if (event.status == CoreStatus::kJump)
    return report(grid, event, Fault::Reason::kAddress,
                  fmt::format("calls {:#x}, where no function begins that takes and gives the same",
                              event.address));
  if (event.status != CoreStatus::kService)
    return report(grid, event, Fault::Reason::kOther, "cannot go on");
  switch (static_cast<HostCall>(event.slot)) {
    case HostCall::kPrintf:
      print(grid, event);
      set_result(event, 1);
      return backend_->start(event.core, event.uop);
    case HostCall::kAssertFail:
      return report(grid, event, Fault::Reason::kAssert, assertion(event));
    case HostCall::kMalloc:
      set_result(event, grid.heap->allocate(argument(event, 0)));
      return backend_->start(event.core, event.uop);
    case HostCall::kFree:
      if (!grid.heap->free(argument(event, 0)))
        return report(grid, event, Fault::Reason::kOther,
                      fmt::format("frees {:#x}, where no block of the device's heap begins",
                                  argument(event, 0)));
      return backend_->start(event.core, event.uop);
    case HostCall::kMisalignedBulk:
      return report(grid, event, Fault::Reason::kMisaligned,
                    "copies in bulk, and both addresses and the number of bytes have to be "
                    "multiples of 16");
    case HostCall::kStackOverflow: {
      const int top = code_.specials[static_cast<int>(Special::kStackTop)];
      return report(grid, event, Fault::Reason::kStack,
                    fmt::format("overflows its stack: alloca of {} bytes, and {} of {} bytes are "
                                "left; cudaDeviceSetLimit(cudaLimitStackSize, ...), or "
                                "--stack-size of `gpusim run`, makes it larger",
                                argument(event, 0),
                                backend_->slot(event.core, static_cast<Slot>(top)) - stack_bottom(),
                                stack_.allocas));
    }
    case HostCall::kMatrix:
      return multiply_matrices(event);
    case HostCall::kWarpgroup:
      return multiply_of_group(grid, event);
    case HostCall::kTensor:
      return copy_tensor(grid, event);
    case HostCall::kDevice:
      return call_device(grid, event);
    default:
      return report(grid, event, Fault::Reason::kTrap, "executes trap");
  }
}

std::string KernelMachine::describe(uint64_t address) const {
  const uint64_t offset = address - kClusterBase;
  if (offset >= kSharedEnd - kClusterBase) return memory_.describe(address);
  const uint64_t rank = offset >> kClusterShift;
  if (rank >= cluster_ctas_)
    return fmt::format("shared memory of the cluster's block {}, and there are {} ({})", rank,
                       cluster_ctas_, "mapa and map_shared_rank take ranks below that");
  return fmt::format("beyond the shared memory of the cluster's block {}, {} bytes", rank,
                     shared_bytes_ - kReservedSharedBytes);
}

// Lanes come one after the other, and go on when the last one has come.
void KernelMachine::multiply_matrices(const Event& event) {
  const uint32_t warp = event.core / kWarpLanes, first = warp * kWarpLanes;
  at_product_[warp] |= 1u << event.core % kWarpLanes;
  if (at_product_[warp] != ~uint32_t{0}) return;
  at_product_[warp] = 0;
  const MatrixOp op = MatrixOp::unpack(argument(event, 0));
  const uint64_t room = argument(event, 1);
  std::array<MatrixWords, kWarpLanes> lanes;
  const auto bytes = [&](uint32_t lane) {
    return std::span(reinterpret_cast<uint8_t*>(lanes[lane].data()), sizeof(MatrixWords));
  };
  const auto handed = 8 * static_cast<size_t>(words_handed_over(op));
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
    read(first + lane, room, bytes(lane).first(handed));
  multiply(op, tensor_cores_, lanes);
  const auto size = 8 * static_cast<size_t>(registers_of_sum(op, op.d));
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    backend_->write_memory(first + lane, room, bytes(lane).first(size));
    backend_->start(first + lane, event.uop);
  }
}

// Threads of four warps come one after the other, likewise.
void KernelMachine::multiply_of_group(Grid& grid, const Event& event) {
  at_group_product_[event.core / kWarpLanes] |= 1u << event.core % kWarpLanes;
  const uint32_t first = event.core & ~(kGroupThreads - 1);
  const auto begin = at_group_product_.begin() + first / kWarpLanes;
  if (block_.count() % kGroupThreads != 0)
    return report(grid, event, Fault::Reason::kOther,
                  "multiplies matrices of a warpgroup, and the block has no whole ones: its "
                  "threads have to be a multiple of 128");
  if (!std::all_of(begin, begin + kGroupWarps, [](uint32_t lanes) { return lanes == ~0u; })) return;
  std::fill(begin, begin + kGroupWarps, 0);
  const WarpgroupOp op = WarpgroupOp::unpack(argument(event, 0));
  const uint64_t room = argument(event, 1);
  std::array<GroupWords, kGroupThreads> lanes;
  const auto bytes = [&](uint32_t lane) {
    return std::span(reinterpret_cast<uint8_t*>(lanes[lane].data()), sizeof(GroupWords));
  };
  const auto handed = 8 * static_cast<size_t>(words_handed_over(op));
  for (uint32_t lane = 0; lane < kGroupThreads; ++lane)
    read(first + lane, room, bytes(lane).first(handed));
  const std::span<uint8_t> shared = backend_->cta_memory(event.core >> shift_).first(shared_bytes_);
  if (const auto beyond = multiply_group(op, tensor_cores_, shared, lanes))
    return report(grid, event, Fault::Reason::kAddress,
                  fmt::format("multiplies matrices, and a descriptor leads {} bytes behind the "
                              "block's shared memory: it has bits 4 to 17 of an address of "
                              "shared::cta",
                              *beyond + 1 - shared_bytes_));
  for (uint32_t lane = 0; lane < kGroupThreads; ++lane) {
    backend_->write_memory(first + lane, room,
                           bytes(lane).first(8 * static_cast<size_t>(words_of_sum(op))));
    backend_->start(first + lane, event.uop);
  }
}

// The result is in the first slot. cudaSuccess is 0.
void KernelMachine::call_device(Grid& grid, const Event& event) {
  constexpr uint64_t kVersion = 13000;
  std::array<uint64_t, kDeviceCallBytes / 8> word{};
  read(event.core, argument(event, 0),
       std::span(reinterpret_cast<uint8_t*>(word.data()), sizeof word));
  uint64_t result = 0;
  DeviceError error = DeviceError::kNone;
  bool is_stopped = false;
  const auto store = [&](uint64_t to, uint64_t value, size_t size) {
    std::array<uint8_t, 8> bytes;
    for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(value >> 8 * k);
    const bool may_write = (backend_->permissions(event.core, to) & kWrite) != 0 &&
                           (backend_->permissions(event.core, to + size - 1) & kWrite) != 0;
    if (may_write && backend_->write_memory(event.core, to, std::span(bytes).first(size))) return;
    is_stopped = true;
    report(grid, event, Fault::Reason::kAddress,
           fmt::format("has a result written to {:#x}: {}", to, memory_.describe(to)));
  };
  const auto dimensions = [&](size_t first) {
    return Dim3{static_cast<uint32_t>(word[first]), static_cast<uint32_t>(word[first + 1]),
                static_cast<uint32_t>(word[first + 2])};
  };
  const uint64_t cta = cta_at_[event.core >> shift_];
  const DeviceCaller caller{cta, event.core & ((1u << shift_) - 1), grid.device_depth};
  switch (static_cast<DeviceCall>(argument(event, 1))) {
    case DeviceCall::kGetParameterBuffer:
      result = grid.device->parameter_buffer(caller, grid.kernels, word[0], dimensions(1),
                                             dimensions(4), static_cast<uint32_t>(word[7]));
      break;
    case DeviceCall::kLaunch:
      error = grid.device->launch(caller, word[0], word[1]);
      break;
    case DeviceCall::kMakeHandle:
      store(word[0], grid.device->make_handle(), 8);
      break;
    case DeviceCall::kMalloc: {
      const uint64_t block = grid.heap->allocate(word[1]);
      store(word[0], block, 8);
      if (block == 0) error = DeviceError::kMemoryAllocation;
      break;
    }
    case DeviceCall::kFree:
      if (!grid.heap->free(word[0])) error = DeviceError::kInvalidValue;
      break;
    case DeviceCall::kTakeError:
    case DeviceCall::kPeekError:
      result = static_cast<uint64_t>(grid.device->last_error(
          caller, static_cast<DeviceCall>(argument(event, 1)) == DeviceCall::kTakeError));
      break;
    case DeviceCall::kNameError:
      result = grid.device->name_of(static_cast<int>(word[0]));
      break;
    case DeviceCall::kDescribeError:
      result = grid.device->text_of(static_cast<int>(word[0]));
      break;
    case DeviceCall::kTellDevice:
      store(word[0], 0, 4);
      break;
    case DeviceCall::kTellDeviceCount:
      store(word[0], 1, 4);
      break;
    case DeviceCall::kTellVersion:
      store(word[0], kVersion, 4);
      break;
    case DeviceCall::kSet:
      grid.device->add({.kind = DeviceWork::Kind::kSet,
                        .cta = cta,
                        .to = word[0],
                        .from = word[1],
                        .size_bytes = word[2]});
      break;
    case DeviceCall::kCopy:
      grid.device->add({.kind = DeviceWork::Kind::kCopy,
                        .cta = cta,
                        .to = word[0],
                        .from = word[1],
                        .size_bytes = word[2]});
      break;
    default:
      break;
  }
  if (is_stopped) return;
  grid.device->keep(caller, error);
  set_result(event, error == DeviceError::kNone ? result : static_cast<uint64_t>(error));
  backend_->start(event.core, event.uop);
}

// A box between global memory and the shared memory of CTAs of the cluster.
void KernelMachine::copy_tensor(Grid& grid, const Event& event) {
  std::array<uint64_t, kTensorWords> word{};
  read(event.core, argument(event, 0),
       std::span(reinterpret_cast<uint8_t*>(word.data()), sizeof word));
  const TensorOp op = TensorOp::unpack(argument(event, 1));
  const auto fault = [&](uint64_t address, const std::string& why) {
    Event at = event;
    at.address = address;
    report(grid, at, Fault::Reason::kAddress, why);
  };
  std::array<uint8_t, TensorMap::kBytes> bytes{};
  const uint64_t map_address = word[kTensorMapAddress];
  const bool is_there = map_address % 64 == 0 && may_read(event.core, map_address) &&
                        read(event.core, map_address, bytes);
  const std::optional<TensorMap> map = is_there ? TensorMap::read(bytes.data()) : std::nullopt;
  if (!map || map->rank != op.rank)
    return fault(
        map_address,
        map ? fmt::format("copies a box of {} dimensions, and the tensor map has {}", op.rank,
                          map->rank)
            : fmt::format("uses a tensor map at {:#x}, where none is: "
                          "cuTensorMapEncodeTiled and ...Im2col make them, and their addresses are "
                          "multiples of 64",
                          map_address));
  if ((map->is_of_images != 0) != op.is_of_images)
    return fault(map_address, op.is_of_images
                                  ? "copies pixels (.im2col), and the tensor map is of tiles: "
                                    "cuTensorMapEncodeIm2col makes those of images"
                                  : "copies a tile, and the tensor map is of images (.im2col)");
  BoxCopy copy{.map = *map, .op = op};
  for (uint32_t d = 0; d < op.rank; ++d)
    copy.first[d] = static_cast<int32_t>(word[kTensorCoordinates + d]);
  for (uint32_t d = 0; op.copy == TensorCopy::kLoad && d < copy.offsets.size(); ++d)
    copy.offsets[d] = static_cast<uint16_t>(word[kTensorOffsets + d]);
  copy.is_accessible = [&](uint64_t address, uint64_t size_bytes) {
    const uint8_t need = op.copy == TensorCopy::kLoad ? kRead : kWrite;
    const ProcessMemory::Found found = memory_.find(address);
    return found.begin != found.end && size_bytes <= found.end - address &&
           (backend_->permissions(event.core, address) & need) == need;
  };
  copy.written = [&](uint64_t address, uint64_t size_bytes) {
    if (!memory_.has_shadows()) return;
    const std::lock_guard lock(grid.mutex);
    memory_.mark_written(address, size_bytes);
  };
  const uint32_t own = event.core >> shift_, first = own - own % cluster_ctas_;
  const auto place_of = [&](uint64_t address, uint64_t& offset) -> std::optional<uint32_t> {
    offset = address - kCtaBase;
    if (offset < kMostCtaBytes) return own;
    offset = (address - kClusterBase) & (kClusterCtaBytes - 1);
    const uint64_t rank = (address - kClusterBase) >> kClusterShift;
    if (rank >= cluster_ctas_) return std::nullopt;
    return first + static_cast<uint32_t>(rank);
  };
  uint64_t shared = 0, barrier = 0;
  const auto place = place_of(word[kTensorShared], shared);
  const bool loads = op.copy == TensorCopy::kLoad;
  auto barrier_place = loads ? place_of(word[kTensorBarrier], barrier) : place;
  const uint64_t box = map->box_bytes();
  const auto fits = [&](uint64_t at, uint64_t size_bytes) {
    return at >= kReservedSharedBytes && at + size_bytes <= shared_bytes_;
  };
  if (!place || !barrier_place || !fits(shared, box) || (loads && !fits(barrier, 8)))
    return fault(word[kTensorShared],
                 fmt::format("copies a box of {} bytes at {:#x}, or counts them at {:#x}: beyond "
                             "the shared memory of the block, {} bytes",
                             box, word[kTensorShared], word[kTensorBarrier],
                             shared_bytes_ - kReservedSharedBytes));
  if (shared % 128 != 0)
    return report(grid, event, Fault::Reason::kMisaligned,
                  fmt::format("copies a box of a tensor at {:#x}: in shared memory it has to lie "
                              "at a multiple of 128",
                              word[kTensorShared]));
  // A chip calls that an illegal instruction.
  const int64_t behind = int64_t{copy.first[0]} * bytes_of(map->type);
  if (behind % 16 != 0)
    return report(grid, event, Fault::Reason::kMisaligned,
                  fmt::format("copies a box of a tensor that begins {} bytes behind the first "
                              "element of a row: it has to be a multiple of 16",
                              behind));
  const auto run = [&](uint32_t to, uint32_t signals) {
    copy.shared = backend_->cta_memory(to);
    copy.at = shared;
    if (const auto wrong = copy.run()) {
      fault(*wrong, fmt::format("copies a box of a tensor, {} {:#x}: {}",
                                loads ? "reads" : "writes", *wrong, memory_.describe(*wrong)));
      return false;
    }
    if (loads) count_bytes(backend_->cta_memory(signals).subspan(barrier, 8), box);
    return true;
  };
  if (!op.is_multicast) {
    if (!run(*place, *barrier_place)) return;
  } else {
    for (uint32_t rank = 0; rank < kMostClusterCtas; ++rank) {
      if ((word[kTensorMask] >> rank & 1) == 0) continue;
      if (rank >= cluster_ctas_)
        return fault(word[kTensorShared],
                     fmt::format("copies a box to the cluster's block {}, and there are {}", rank,
                                 cluster_ctas_));
      if (!run(first + rank, first + rank)) return;
    }
  }
  backend_->start(event.core, event.uop);
}

// Nobody else comes: other lanes of the warp are elsewhere, have ended, or never were.
void KernelMachine::report_lone_products(Grid& grid) {
  for (uint32_t warp = 0; warp < at_group_product_.size(); ++warp) {
    if (at_group_product_[warp] == 0) continue;
    const auto lane = static_cast<uint32_t>(std::countr_zero(at_group_product_[warp]));
    at_group_product_[warp] = 0;
    report(grid, {.core = warp * kWarpLanes + lane, .status = CoreStatus::kService},
           Fault::Reason::kOther, "multiplies matrices without all 128 threads of its warpgroup");
  }
  for (uint32_t warp = 0; warp < at_product_.size(); ++warp) {
    if (at_product_[warp] == 0) continue;
    const auto lane = static_cast<uint32_t>(std::countr_zero(at_product_[warp]));
    at_product_[warp] = 0;
    report(grid, {.core = warp * kWarpLanes + lane, .status = CoreStatus::kService},
           Fault::Reason::kOther, "multiplies matrices without all 32 threads of its warp");
  }
}

// The first in the order of CTAs and threads counts, of those that were met.
void KernelMachine::report(Grid& grid, const Event& event, Fault::Reason reason, std::string why) {
  const uint64_t cta = cta_at_[event.core >> shift_];
  const uint32_t thread = event.core & ((1u << shift_) - 1);
  Fault f{.reason = reason,
          .kernel = code_.name,
          .block = coordinates(cta, grid.launch.grid),
          .thread = coordinates(thread, block_),
          .address = event.address,
          .text = {}};
  const std::lock_guard lock(grid.mutex);
  grid.stops = true;
  if (grid.fault && grid.fault_cta <= cta) return;
  std::string where;
  // A call of the host has ended its block: the place is where the thread would go on.
  if (event.status == CoreStatus::kFault) {
    if (const StaticInstruction* const known = code_.instruction_of(event.uop)) {
      const StaticInstruction& insn = *known;
      f.line = insn.line;
      where = fmt::format("\n  at {}:{}: {}", origin_, insn.line, insn.opcode);
      const auto file = files_.find(insn.location.file);
      if (insn.location.line != 0 && file != files_.end())
        where += fmt::format(" ({}:{})", file->second, insn.location.line);
    }
  }
  f.text = fmt::format("kernel '{}', block {}, thread {}: {}{}", f.kernel, text(f.block),
                       text(f.thread), why, where);
  grid.fault = std::move(f);
  grid.fault_cta = cta;
}

uint64_t KernelMachine::argument(const Event& event, int number) {
  const int slot = code_.call_slots[number];
  return slot == kNoSlot ? 0 : backend_->slot(event.core, static_cast<Slot>(slot));
}

void KernelMachine::set_result(const Event& event, uint64_t value) {
  if (code_.call_slots[0] != kNoSlot)
    backend_->set_slot(event.core, static_cast<Slot>(code_.call_slots[0]), value);
}

std::string KernelMachine::read_string(uint32_t core, uint64_t address) {
  constexpr size_t kMost = 1 << 16;
  std::string out;
  for (uint8_t c = 0; out.size() < kMost && may_read(core, address + out.size());
       out += static_cast<char>(c))
    if (!read(core, address + out.size(), {&c, 1}) || c == 0) break;
  return out;
}

bool KernelMachine::may_read(uint32_t core, uint64_t address) {
  return (backend_->permissions(core, address) & kRead) != 0;
}

void KernelMachine::print(Grid& grid, const Event& event) {
  const uint64_t arguments = argument(event, 1);
  const PrintfMemory memory{
      .argument =
          [&](uint64_t offset, uint32_t size) {
            std::array<uint8_t, 8> bytes{};
            const uint64_t at = arguments + offset;
            if (may_read(event.core, at) && may_read(event.core, at + size - 1))
              read(event.core, at, std::span(bytes).first(size));
            uint64_t value = 0;
            for (uint32_t k = 0; k < size; ++k) value |= uint64_t{bytes[k]} << 8 * k;
            return value;
          },
      .string = [&](uint64_t address) { return read_string(event.core, address); }};
  std::string text = format_printf(read_string(event.core, argument(event, 0)), memory);
  const std::lock_guard lock(grid.mutex);
  grid.printed.push_back({cta_at_[event.core >> shift_], std::move(text)});
}

std::string KernelMachine::assertion(const Event& event) {
  return fmt::format("{}:{}: {}: Assertion `{}` failed",
                     read_string(event.core, argument(event, 1)), argument(event, 2),
                     read_string(event.core, argument(event, 3)),
                     read_string(event.core, argument(event, 0)));
}

}  // namespace gpusim::ptx

// CTAs, of backends without them and of all others.
#include "device_sim/core/backend.h"

#include <stdexcept>

#include "device_sim/core/check_ctas.h"
#include "device_sim/core/cta.h"

namespace gpusim {

void Backend::start_cta(uint32_t, uint32_t) { throw std::logic_error("this backend has no CTAs"); }
void Backend::set_cta_slots(uint32_t, Slot, CoreWord) {
  throw std::logic_error("this backend has no CTAs");
}
std::span<uint8_t> Backend::cta_memory(uint32_t) {
  throw std::logic_error("this backend has no CTAs");
}

void check_ctas(const Module& module, const MachineConfig& config) {
  const bool has_ctas = config.cta_threads != 0;
  if (has_ctas != (module.warp_size != 0))
    throw std::runtime_error(has_ctas ? "only programs with warps run in CTAs"
                                      : "this program has warps: its kernels run in CTAs, of which "
                                        "the launch says the size");
  if (!has_ctas) return;
  if (config.cta_threads > kMostCtaThreads)
    throw std::runtime_error("a CTA has at most " + std::to_string(kMostCtaThreads) +
                             " threads, not " + std::to_string(config.cta_threads));
  const uint32_t place = 1u << cta_shift_of(config.cta_threads);
  if (config.cores == 0 || config.cores % place != 0)
    throw std::logic_error("cores of CTAs come in places of " + std::to_string(place));
  if (config.cta_bytes % 8 != 0) throw std::logic_error("memory of CTAs is whole words");
  if (config.cluster_ctas == 0 || config.cores / place % config.cluster_ctas != 0)
    throw std::logic_error("places of CTAs come in whole clusters");
  if (config.cluster_ctas > 1 && config.threads != 1)
    throw std::logic_error("one host thread runs a machine of clusters");
}

}  // namespace gpusim

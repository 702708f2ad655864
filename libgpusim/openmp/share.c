// Work-sharing constructs: who comes first sets one up, who leaves last gives its place back.
// A team has a ring of them, so that threads may run ahead past `nowait`.
#include <stdlib.h>

#include "omp_internal.h"

// Threads outside of all regions: a share of their own.
static __thread struct share orphan;

void omp_share_free(struct share* share) {
  free(share->memory);
  share->memory = 0;
  if (share->doacross != 0) omp_doacross_free(share->doacross);
  share->doacross = 0;
  share->reductions = 0;
}

// `first` says whether the caller has to set the share up and call omp_share_ready.
struct share* omp_share_begin(struct thread* me, bool* first) {
  struct thread_state* const now = &me->now;
  struct team* const team = now->team;
  now->static_next = 0;
  now->is_ordered = now->has_ordered_chunk = false;
  if (team == 0) {
    omp_share_free(&orphan);
    *first = true;
    return now->share = &orphan;
  }
  const uint32_t number = now->share_count++;
  struct share* const share = now->share = &team->shares[number & team->share_mask];
  *first = false;
  for (;;) {
    const uint32_t ready = LOAD(&share->ready);
    if (ready == number + 1) return share;
    const uint32_t claim = LOAD(&share->claim);
    if (claim == number && compare_and_set_u32(&share->claim, number, number + 1)) {
      *first = true;
      return share;
    }
    if (claim == number + 1) {
      wait_while_u32(&share->ready, ready);
    } else {  // threads of an earlier construct are still in it
      wait_while_u32(&share->claim, claim);
    }
  }
}

void omp_share_ready(struct thread* me, struct share* share) {
  if (me->now.team == 0) return;
  STORE(&share->ready, me->now.share_count);
  wake_u32(&share->ready);
}

void omp_share_leave(struct thread* me) {
  struct team* const team = me->now.team;
  if (team == 0) return;
  struct share* const share = me->now.share;
  if (FETCH_ADD(&share->left, 1) + 1 != team->size) return;
  omp_share_free(share);
  share->left = 0;
  STORE(&share->claim, RELAXED(&share->ready) + team->share_mask);
  wake_u32(&share->claim);
}

// ---- Sections ------------------------------------------------------------------------------

unsigned GOMP_sections_next(void) {
  struct thread* const me = self();
  struct share* const share = me->now.share;
  const uint64_t section = FETCH_ADD(&share->next, 1);
  return section < share->count ? (unsigned)section + 1 : 0;
}

static void zero_memory(struct share* share, void** memory) {
  if (memory != 0) share->memory = omp_get_zeroed((size_t)*memory);
}

unsigned GOMP_sections2_start(unsigned count, uintptr_t* reductions, void** memory) {
  struct thread* const me = self();
  bool first;
  struct share* const share = omp_share_begin(me, &first);
  if (first) {
    omp_loop_init(share, 1, 0, 1, count, kDynamic, 1);
    zero_memory(share, memory);
  }
  if (reductions != 0) omp_share_reductions(me, share, reductions, first);
  if (first) omp_share_ready(me, share);
  if (memory != 0) *memory = share->memory;
  return GOMP_sections_next();
}

unsigned GOMP_sections_start(unsigned count) { return GOMP_sections2_start(count, 0, 0); }

void GOMP_scope_start(uintptr_t* reductions) {
  struct thread* const me = self();
  bool first;
  struct share* const share = omp_share_begin(me, &first);
  omp_share_reductions(me, share, reductions, first);
  if (first) omp_share_ready(me, share);
  omp_share_leave(me);
}

// ---- Ends ----------------------------------------------------------------------------------

static void end_nowait(void) {
  struct thread* const me = self();
  if (me->now.is_ordered) omp_ordered_pass(me);
  omp_share_leave(me);
}

static void end(void) {
  end_nowait();
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (team != 0) omp_barrier(me, team, &team->inner, false);
}

static bool end_cancel(void) {
  end_nowait();
  struct thread* const me = self();
  struct team* const team = me->now.team;
  return team != 0 && omp_barrier(me, team, &team->inner, true);
}

void GOMP_loop_end(void) { end(); }
void GOMP_loop_end_nowait(void) { end_nowait(); }
bool GOMP_loop_end_cancel(void) { return end_cancel(); }
void GOMP_sections_end(void) { end(); }
void GOMP_sections_end_nowait(void) { end_nowait(); }
bool GOMP_sections_end_cancel(void) { return end_cancel(); }

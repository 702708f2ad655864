// Semaphore, condition variable, events.
#include "waiters.h"

// ---- Semaphore -------------------------------------------------------------------------------

void gpusim_semaphore_init(gpusim_semaphore_t* semaphore, uint32_t units) {
  const gpusim_semaphore_t fresh = GPUSIM_SEMAPHORE_INIT(units);
  *semaphore = fresh;
}

void gpusim_semaphore_wait(gpusim_semaphore_t* semaphore) {
  if ((int32_t)__atomic_fetch_sub(&semaphore->units, 1, __ATOMIC_ACQUIRE) > 0) return;
  // The unit for this core comes from a post() that found units below 0: it wakes a core that
  // queues already, or leaves the unit for one that is on its way here.
  gpusim_waiter_t me;
  gpusim_mutex_lock(&semaphore->waiters.guard);
  const int waits = semaphore->owed == 0;
  if (waits) {
    gpusim_waiters_add(&semaphore->waiters, &me);
  } else {
    --semaphore->owed;
  }
  gpusim_mutex_unlock(&semaphore->waiters.guard);
  if (waits) gpusim_wait_while_equal(&me.waiting, 1);
}

int gpusim_semaphore_trywait(gpusim_semaphore_t* semaphore) {
  uint32_t units = __atomic_load_n(&semaphore->units, __ATOMIC_RELAXED);
  while ((int32_t)units > 0) {
    if (__atomic_compare_exchange_n(&semaphore->units, &units, units - 1, 0, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return 1;
    }
  }
  return 0;
}

void gpusim_semaphore_post(gpusim_semaphore_t* semaphore) {
  if ((int32_t)__atomic_fetch_add(&semaphore->units, 1, __ATOMIC_RELEASE) >= 0) return;
  gpusim_mutex_lock(&semaphore->waiters.guard);
  gpusim_waiter_t* const waiter = gpusim_waiters_take(&semaphore->waiters);
  if (waiter == 0) ++semaphore->owed;
  gpusim_mutex_unlock(&semaphore->waiters.guard);
  if (waiter != 0) gpusim_wake(waiter);
}

// ---- Condition variable ----------------------------------------------------------------------

void gpusim_cond_wait(gpusim_cond_t* condition, gpusim_mutex_t* mutex) {
  gpusim_waiter_t me;
  gpusim_mutex_lock(&condition->waiters.guard);
  gpusim_waiters_add(&condition->waiters, &me);
  gpusim_mutex_unlock(&condition->waiters.guard);
  gpusim_mutex_unlock(mutex);
  gpusim_wait_while_equal(&me.waiting, 1);
  gpusim_mutex_lock(mutex);
}

// A core whose condition the caller has made true was in the queue before it let go of the mutex,
// so the caller, which has had the mutex since, sees it there without taking the guard.
static int nobody_waits(const gpusim_cond_t* condition) {
  return __atomic_load_n(&condition->waiters.first, __ATOMIC_RELAXED) == 0;
}

void gpusim_cond_signal(gpusim_cond_t* condition) {
  if (nobody_waits(condition)) return;
  gpusim_mutex_lock(&condition->waiters.guard);
  gpusim_waiter_t* const waiter = gpusim_waiters_take(&condition->waiters);
  gpusim_mutex_unlock(&condition->waiters.guard);
  if (waiter != 0) gpusim_wake(waiter);
}

void gpusim_cond_broadcast(gpusim_cond_t* condition) {
  if (nobody_waits(condition)) return;
  gpusim_mutex_lock(&condition->waiters.guard);
  gpusim_waiter_t* waiter = gpusim_waiters_take_all(&condition->waiters);
  gpusim_mutex_unlock(&condition->waiters.guard);
  while (waiter != 0) {
    gpusim_waiter_t* const behind = (gpusim_waiter_t*)waiter->next;  // read while it is there
    gpusim_wake(waiter);
    waiter = behind;
  }
}

// ---- Event that stays set --------------------------------------------------------------------

// Makes the low bit `set`, unless it is that already.
static void change(gpusim_event_t* event, uint32_t set) {
  uint32_t changes = __atomic_load_n(&event->changes, __ATOMIC_RELAXED);
  while ((changes & 1) != set) {
    if (__atomic_compare_exchange_n(&event->changes, &changes, changes + 1, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      return;
    }
  }
}

void gpusim_event_set(gpusim_event_t* event) { change(event, 1); }
void gpusim_event_reset(gpusim_event_t* event) { change(event, 0); }

void gpusim_event_wait(gpusim_event_t* event) {
  // Any change of an even number goes through being set.
  const uint32_t changes = __atomic_load_n(&event->changes, __ATOMIC_ACQUIRE);
  if ((changes & 1) == 0) gpusim_wait_while_equal(&event->changes, changes);
}

int gpusim_event_is_set(const gpusim_event_t* event) {
  return (int)(__atomic_load_n(&event->changes, __ATOMIC_ACQUIRE) & 1);
}

// ---- Event that resets itself ----------------------------------------------------------------

void gpusim_auto_event_set(gpusim_auto_event_t* event) {
  gpusim_mutex_lock(&event->waiters.guard);
  gpusim_waiter_t* const waiter = gpusim_waiters_take(&event->waiters);
  if (waiter == 0) __atomic_store_n(&event->set, 1, __ATOMIC_RELEASE);
  gpusim_mutex_unlock(&event->waiters.guard);
  if (waiter != 0) gpusim_wake(waiter);
}

// Resets the event if it is set; returns whether it was.
static int take_event(gpusim_auto_event_t* event) {
  return __atomic_load_n(&event->set, __ATOMIC_RELAXED) != 0 &&
         __atomic_exchange_n(&event->set, 0, __ATOMIC_ACQUIRE) != 0;
}

void gpusim_auto_event_wait(gpusim_auto_event_t* event) {
  if (take_event(event)) return;
  // Setting happens under the guard, too: either it is set by now, or whoever sets it finds me.
  gpusim_waiter_t me;
  gpusim_mutex_lock(&event->waiters.guard);
  const int waits = !take_event(event);
  if (waits) gpusim_waiters_add(&event->waiters, &me);
  gpusim_mutex_unlock(&event->waiters.guard);
  if (waits) gpusim_wait_while_equal(&me.waiting, 1);
}

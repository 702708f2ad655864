/* Loops, a call, loads, stores and an atomic addition. */
long table[256], sums[64], all;

static __attribute__((noinline)) long add_up(long core) {
  long sum = 0;
  for (long i = core; i < 256; i += 3) sum += table[i];
  return sum;
}

long work(long core) {
  for (long i = core; i < 256; i += 3) table[i] = i;
  sums[core] = add_up(core);
  if (sums[core] & 1) __atomic_fetch_add(&all, sums[core], __ATOMIC_RELAXED);
  return 0;
}

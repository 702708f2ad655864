/* Functions that test_python.py calls on each core, and variables that it looks into. */
long table[1024];
long sums[4096];
double weight = 1.5;
volatile long gate;

long fill(long core, long cores) {
  for (long i = core; i < 1024; i += cores) table[i] = 3 * i + 1;
  return 0;
}

long sum(long core, long cores) {
  long s = 0;
  for (long round = 0; round < 4; ++round)
    for (long i = 0; i < 1024; ++i) s += i % cores == core ? table[i] : i;
  sums[core] = s;
  return 0;
}

long scale(long core, double factor) {
  sums[core] = (long)(weight * factor * (double)(core + 1));
  return 0;
}

/* Until somebody opens the gate from outside. */
long wait_for_gate(long core) {
  while (gate == 0) ++((volatile long*)sums)[core];
  sums[core] = -1;
  return 0;
}

long fall(long core) {
  if (core == 2) *(volatile long*)8 = 1;
  return 0;
}

long forever(long core) {
  for (;;) ++((volatile long*)sums)[core];
}

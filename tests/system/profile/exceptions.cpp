// A stack that exceptions unwind.
extern "C" {
__attribute__((noinline, noclone)) void work(long n) {
  for (long i = 0; i < n; ++i) __asm__ volatile("" : "+r"(i));
}
__attribute__((noinline, noclone)) void throws(int depth) {
  work(100);
  if (depth == 0) throw depth;
  throws(depth - 1);
  __asm__ volatile("");
}
__attribute__((noinline, noclone)) void catches() {
  for (int i = 0; i < 3; ++i) {
    try {
      throws(2);
    } catch (int) {
      work(700);
    }
  }
}
__attribute__((noinline, noclone)) void calibrates() {
  work(1000);
  __asm__ volatile("");
}
}

int main() {
  catches();
  calibrates();
  return 0;
}

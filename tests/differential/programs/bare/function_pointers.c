// Tables of functions, callbacks with context, pointers passed through memory, tail calls.
#include "bare.h"

typedef int64_t (*Operation)(int64_t, int64_t);

static int64_t op_add(int64_t a, int64_t b) { return a + b; }
static int64_t op_sub(int64_t a, int64_t b) { return a - b; }
static int64_t op_mul(int64_t a, int64_t b) { return a * b; }
static int64_t op_xor(int64_t a, int64_t b) { return a ^ b; }
static int64_t op_shift(int64_t a, int64_t b) { return a << (b & 7); }
static int64_t op_max(int64_t a, int64_t b) { return a > b ? a : b; }

static const Operation kOperations[] = {op_add, op_sub, op_mul, op_xor, op_shift, op_max};

struct Shape {
  int (*area)(const struct Shape*);
  const char* name;
  int w, h;
};
static int area_box(const struct Shape* s) { return s->w * s->h; }
static int area_triangle(const struct Shape* s) { return s->w * s->h / 2; }
static int area_disc(const struct Shape* s) { return s->w * s->w * 355 / 113; }

static NOINLINE void for_each(const int* items, size_t n, void (*visit)(int, void*),
                              void* context) {
  for (size_t i = 0; i < n; i++) visit(items[i], context);
}
static void add_up(int item, void* context) { *(int64_t*)context += item; }
static void multiply_up(int item, void* context) { *(int64_t*)context *= item | 1; }

static NOINLINE Operation compose(int which) { return kOperations[which % 6]; }
static NOINLINE int64_t tail(int64_t a, int64_t b, Operation op) { return op(b, a); }

int main(void) {
  int64_t a = 12345, b = 678;
  for (int i = 0; i < 24; i++) {
    a = kOperations[i % 6](a, b);
    b = tail(a & 0xffff, b & 0xfff, compose(i * 5 + 1));
    print("%d: %ld %ld\n", i, a, b);
    a &= 0xffffff;
  }
  const struct Shape shapes[] = {
      {area_box, "box", 3, 4}, {area_triangle, "triangle", 10, 5}, {area_disc, "disc", 7, 0}};
  for (size_t i = 0; i < LENGTH(shapes); i++)
    print("%s %d\n", shapes[i].name, shapes[i].area(&shapes[i]));
  const int items[] = {3, 1, 4, 1, 5, 9, 2, 6};
  int64_t sum = 0, product = 1;
  for_each(items, LENGTH(items), add_up, &sum);
  for_each(items, LENGTH(items), multiply_up, &product);
  print("%ld %ld\n", sum, product);
  return 0;
}

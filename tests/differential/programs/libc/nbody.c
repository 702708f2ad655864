// Five bodies under gravity; energy before and after.
#include <math.h>
#include <stdio.h>

struct Body {
  double x[3], v[3], mass;
};
static struct Body bodies[5];

static double energy(void) {
  double e = 0;
  for (int i = 0; i < 5; i++) {
    const struct Body* a = &bodies[i];
    e += 0.5 * a->mass * (a->v[0] * a->v[0] + a->v[1] * a->v[1] + a->v[2] * a->v[2]);
    for (int j = i + 1; j < 5; j++) {
      double d2 = 0;
      for (int k = 0; k < 3; k++) d2 += (a->x[k] - bodies[j].x[k]) * (a->x[k] - bodies[j].x[k]);
      e -= a->mass * bodies[j].mass / sqrt(d2);
    }
  }
  return e;
}

static void advance(double dt) {
  for (int i = 0; i < 5; i++)
    for (int j = i + 1; j < 5; j++) {
      double d[3], d2 = 0;
      for (int k = 0; k < 3; k++) {
        d[k] = bodies[i].x[k] - bodies[j].x[k];
        d2 += d[k] * d[k];
      }
      double f = dt / (d2 * sqrt(d2));
      for (int k = 0; k < 3; k++) {
        bodies[i].v[k] -= d[k] * bodies[j].mass * f;
        bodies[j].v[k] += d[k] * bodies[i].mass * f;
      }
    }
  for (int i = 0; i < 5; i++)
    for (int k = 0; k < 3; k++) bodies[i].x[k] += dt * bodies[i].v[k];
}

int main(void) {
  for (int i = 0; i < 5; i++) {
    bodies[i].mass = i ? 0.01 * i : 1;
    bodies[i].x[0] = 2.0 * i * cos(i);
    bodies[i].x[1] = 2.0 * i * sin(i);
    bodies[i].x[2] = 0.1 * i;
    bodies[i].v[0] = i ? -sin(i) / sqrt(2.0 * i) : 0;
    bodies[i].v[1] = i ? cos(i) / sqrt(2.0 * i) : 0;
  }
  printf("%.15f\n", energy());
  for (int step = 0; step < 300; step++) advance(0.01);
  printf("%.15f\n", energy());
  for (int i = 0; i < 5; i++) printf("%a %a %a\n", bodies[i].x[0], bodies[i].x[1], bodies[i].x[2]);
  return 0;
}

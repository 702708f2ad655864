// Fixed moments as dates and back: gmtime, timegm, strftime, difftime; no clock is read.
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

int main(void) {
  static const time_t moments[] = {0,          1,          86399,      951782400,
                                   951868799,  1000000000, 1709164800, 2147483647,
                                   4102444800, -1,         -2208988800};
  for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
    struct tm t;
    char text[128];
    gmtime_r(&moments[i], &t);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %a %A %b %j %U %V %y %e %I %p", &t);
    printf("%ld: %s back %d\n", (long)moments[i], text, timegm(&t) == moments[i]);
  }
  struct tm odd = {.tm_year = 124, .tm_mon = 14, .tm_mday = -3, .tm_hour = 30};
  time_t normal = timegm(&odd);
  printf("%ld %s%g\n", (long)normal, asctime(&odd), difftime(moments[5], moments[1]));
  return 0;
}

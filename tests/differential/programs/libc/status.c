// abort() is not called, but the status is not 0 either: 250 from main.
#include <stdio.h>

int main(void) {
  printf("leaving with 250");
  return 250;
}

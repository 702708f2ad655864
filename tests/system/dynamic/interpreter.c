// What a script names in its first line: tells its arguments, and what the script holds.
#include <stdio.h>

int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("<%s>", argv[i]);
  // The script follows an argument, if there is one.
  char line[80];
  for (int i = 1; i < argc && i < 3; ++i) {
    FILE* const script = fopen(argv[i], "r");
    if (!script) continue;
    while (fgets(line, sizeof line, script)) printf("%s", line[0] == '#' ? "\n" : line);
    fclose(script);
    return 5;
  }
  printf(" no script\n");
  return 6;
}

// args: one "two words" --flag=3 -x "" last
// Arguments, getopt_long, and an environment that is empty.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) printf("%d: [%s]\n", i, argv[i]);
  const char* name = strrchr(argv[0], '/');
  printf("named %d, last is null %d\n", name && strstr(name, "arguments") != NULL,
         argv[argc] == NULL);
  int count = 0;
  for (char** e = environ; e && *e; e++) count++;
  printf("%d variables, HOME %s\n", count, getenv("HOME") ? "set" : "unset");
  setenv("COLOUR", "blue", 1);
  setenv("SIZE", "12", 1);
  unsetenv("SIZE");
  printf("%s %s\n", getenv("COLOUR"), getenv("SIZE") ? "set" : "unset");
  static const struct option options[] = {{"flag", required_argument, NULL, 'f'},
                                          {NULL, 0, NULL, 0}};
  for (int c; (c = getopt_long(argc, argv, "xf:", options, NULL)) != -1;)
    printf("option %c %s\n", c, optarg ? optarg : "-");
  for (int i = optind; i < argc; i++) printf("rest [%s]\n", argv[i]);
  return argc;
}

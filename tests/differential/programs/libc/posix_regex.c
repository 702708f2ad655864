// regcomp and regexec, basic and extended, with sub-matches.
#include <regex.h>
#include <stdio.h>

int main(void) {
  static const char* const patterns[] = {
      "^([a-z]+)[0-9]*$", "(a|b)*abb", "[[:digit:]]{2,4}",        "^$", "x+y?z*",
      "(foo|bar)(baz)?",  "a.c",       "[^ ]+@[^ ]+\\.(com|org)", "("};
  static const char* const texts[] = {"hello42", "ababb",  "12345",   "",
                                      "xxyzzz",  "barbaz", "abc a-c", "mail me@example.org now"};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    regex_t re;
    int e = regcomp(&re, patterns[i], REG_EXTENDED);
    if (e) {
      char message[80];
      regerror(e, &re, message, sizeof message);
      printf("%s: %s\n", patterns[i], message);
      continue;
    }
    printf("%s:", patterns[i]);
    for (size_t j = 0; j < sizeof texts / sizeof *texts; j++) {
      regmatch_t m[3];
      if (regexec(&re, texts[j], 3, m, 0) == 0)
        printf(" %d-%d/%d-%d", (int)m[0].rm_so, (int)m[0].rm_eo, (int)m[1].rm_so, (int)m[1].rm_eo);
      else
        printf(" no");
    }
    puts("");
    regfree(&re);
  }
  return 0;
}

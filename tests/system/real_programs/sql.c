// Runs its argument's SQL statements against the database named first, and prints the rows.
#include <sqlite3.h>
#include <stdio.h>

static int print_row(void* unused, int columns, char** values, char** names) {
  (void)unused;
  (void)names;
  for (int i = 0; i < columns; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "");
  putchar('\n');
  return 0;
}

int main(int argc, char** argv) {
  sqlite3* database;
  char* error = NULL;
  if (argc != 3 || sqlite3_open(argv[1], &database) != SQLITE_OK) return 2;
  if (sqlite3_exec(database, argv[2], print_row, NULL, &error) != SQLITE_OK) {
    printf("error: %s\n", error);
    return 1;
  }
  return sqlite3_close(database) != SQLITE_OK;
}

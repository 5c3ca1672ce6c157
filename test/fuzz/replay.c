/* replay FOLDER: runs a target with the inputs in a folder. */
#include <dirent.h>

#include "fuzz/fuzz.h"

#define INPUT_MAX ((size_t)1 << 20)

static void replay(const char *folder, const char *name) {
  static uint8_t input[INPUT_MAX];
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  REQUIRE(file != NULL);
  size_t len = fread(input, 1, sizeof input, file);
  fclose(file);
  printf("%s: %zu bytes\n", name, len);
  fflush(stdout);
  LLVMFuzzerTestOneInput(input, len);
}

int main(int argc, char **argv) {
  unsigned inputs = 0;
  DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
  REQUIRE(folder != NULL);
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') {
      replay(argv[1], entry->d_name);
      inputs++;
    }
  closedir(folder);
  REQUIRE(inputs > 0);
  return 0;
}

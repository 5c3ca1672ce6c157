#include "demo/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "/belay-demo-XXXXXX"

int scratch_make(char path[SCRATCH_PATH_MAX]) {
  const char *parent = getenv("TMPDIR");
  if (parent == NULL || *parent != '/' || strlen(parent) + sizeof NAME > SCRATCH_PATH_MAX)
    parent = "/tmp";
  (void)snprintf(path, SCRATCH_PATH_MAX, "%s%s", parent, NAME);
  if (mkdtemp(path) != NULL)
    return 0;
  path[0] = '\0';
  return -1;
}

void scratch_remove(const char *path) {
  if (*path == '\0')
    return;
  DIR *folder = opendir(path);
  if (folder == NULL)
    return;
  const struct dirent *entry;
  while ((entry = readdir(folder)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      (void)unlinkat(dirfd(folder), entry->d_name, 0);
  (void)closedir(folder);
  (void)rmdir(path);
}

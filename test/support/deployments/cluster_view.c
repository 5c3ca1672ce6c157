#include "support/deployments/cluster_view.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cluster_read_line(const char *text, cluster_line_t *line) {
  int n = 0;
  *line = (cluster_line_t){.id = ""};
  if (sscanf(text, "%40s %*s %63s %40s %*s %*s %llu %15s%n", line->id, line->flags, line->primary,
             &line->epoch, line->link, &n) < 5)
    return NULL;
  text += n;
  for (char word[128]; *text == ' ' && sscanf(text, " %127s%n", word, &n) == 1; text += n)
    if (word[0] != '[') {
      size_t len = strlen(line->slots);
      snprintf(line->slots + len, sizeof line->slots - len, "%s ", word);
    }
  return text + strcspn(text, "\n") + 1;
}

bool cluster_look_up(const char *view, const char *id, cluster_line_t *line) {
  while (view != NULL && (view = cluster_read_line(view, line)) != NULL)
    if (strcmp(line->id, id) == 0)
      return true;
  return false;
}

bool cluster_has_slot(const cluster_line_t *line, unsigned slot) {
  char *text = (char *)(uintptr_t)line->slots;
  while (*text != '\0') {
    unsigned long first = strtoul(text, &text, 10), last = first;
    if (*text == '-')
      last = strtoul(text + 1, &text, 10);
    if (slot >= first && slot <= last)
      return true;
    text += strspn(text, " ");
  }
  return false;
}

bool cluster_is_primary(const cluster_line_t *line) {
  return strstr(line->flags, "master") != NULL;
}

#include "shell/line.h"

#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/common.h"
#include "shell/options.h"
#include "ui/out.h"

#define NAMES_MAX 64

/* Options that everybody tries first. */
static const char *name_of(const char *word) {
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    return "help";
  return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

/* "add, get or set". */
static const char *names_of(const command_t *const *list) {
  static char text[256];
  size_t len = 0;
  for (size_t i = 0; list[i] != NULL && len < sizeof text; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                            i == 0                ? ""
                            : list[i + 1] == NULL ? " or "
                                                  : ", ",
                            list[i]->name);
  return text;
}

/* What was written is not repeated: it may be anything, a URL with a password too. of: NULL, or the command that the list
 * is the parts of. */
static const command_t *find(const command_t *const *list, const char *word, const command_t *of) {
  const char *names[NAMES_MAX];
  size_t n = 0;
  for (; list[n] != NULL && n < NAMES_MAX; n++) {
    names[n] = list[n]->name;
    if (strcmp(names[n], word) == 0)
      return list[n];
  }
  const char *near = nearest(word, strlen(word), names, n);
  if (near != NULL)
    complain("there is no such command; did you mean %s?", near);
  else if (of != NULL)
    complain("there is no such command: %s is followed by %s", of->name, names_of(list));
  else
    complain("there is no such command: see belay help");
  return NULL;
}

/* How many of the words are options and their values. -1: one is none, which was said. */
static int words_in_front(int argc, char **argv) {
  int n = 0, words;
  for (; n < argc && argv[n][0] == '-' && name_of(argv[n]) == argv[n]; n += words) {
    words = option_words(argv[n]);
    if (words == 0) {
      complain("there is no such option that may stand before a command's name: see belay help");
      return -1;
    }
  }
  return n < argc ? n : argc;
}

/* The command that the words begin with, and at *argv what is behind its name. */
static const command_t *find_all(int *argc, char ***argv) {
  if (*argc == 0) {
    complain("a command is missing: see belay help");
    return NULL;
  }
  const command_t *command = find(commands, name_of(**argv), NULL);
  if (command == NULL)
    return NULL;
  --*argc;
  ++*argv;
  if (command->parts == NULL)
    return command;
  if (*argc > 0 && strcmp(name_of(**argv), "help") == 0)
    common.help = true;
  if (common.help && (*argc == 0 || strcmp(name_of(**argv), "help") == 0))
    return command;
  out_name(command->name);
  if (*argc == 0) {
    complain("%s is missing\nusage: %s", names_of(command->parts), command_usage(command));
    return NULL;
  }
  command = find(command->parts, **argv, command);
  --*argc;
  ++*argv;
  return command;
}

const command_t *command_find(int *argc, char ***argv) {
  char **words = *argv;
  int options = words_in_front(*argc, words);
  if (options < 0)
    return NULL;
  *argc -= options;
  *argv += options;
  const command_t *command = find_all(argc, argv);
  for (char **name = words + options; name < *argv; name++, words++) {
    char *first = *name;
    memmove(words + 1, words, (size_t)options * sizeof *words);
    *words = first;
  }
  *argc += options;
  *argv -= options;
  options_in_front = (size_t)options;
  return command;
}

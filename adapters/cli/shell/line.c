#include "shell/line.h"

#include <stdio.h>
#include <string.h>

#include "shell/commands.h"
#include "shell/common.h"
#include "shell/options.h"
#include "ui/out.h"

/* Options that everybody tries first. */
static const char *name_of(const char *word) {
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    return "help";
  return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

/* "add, get or set". */
static const char *names_of(const command_t *parts) {
  static char text[256];
  size_t len = 0;
  for (const command_t *part = parts; part->name != NULL && len < sizeof text; part++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                            part == parts          ? ""
                            : part[1].name == NULL ? " or "
                                                   : ", ",
                            part->name);
  return text;
}

/* How many of the words are options and their values. -1: one is none, which was said. */
static int words_in_front(int argc, char **argv) {
  const option_set_t set = options_of(&in_front);
  int n = 0;
  bool next;
  for (; n < argc && argv[n][0] == '-' && name_of(argv[n]) == argv[n]; n += 1 + next) {
    if (option_of_word(&set, argv[n], &next) == NULL) {
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
  const command_t *command = command_named(name_of(**argv));
  if (command == NULL) { /* the word may be a URL with a password */
    complain("there is no such command: see belay help");
    return NULL;
  }
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
  const command_t *part = command_part(command, **argv);
  if (part == NULL)
    complain("there is no such command: %s is followed by %s", command->name,
             names_of(command->parts));
  --*argc;
  ++*argv;
  return part;
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

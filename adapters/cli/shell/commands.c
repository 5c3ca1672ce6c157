#include "shell/commands.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shell/common.h"
#include "ui/out.h"

#define USAGE_MAX 256

#define COMMAND(name) extern const command_t name##_command;
#include "command_list.h"
#undef COMMAND

const command_t *const commands[] = {
#define COMMAND(name) &name##_command,
#include "command_list.h"
#undef COMMAND
    NULL,
};

const command_t *command_parent(const command_t *command) {
  for (size_t i = 0; commands[i] != NULL; i++)
    for (const command_t *sub = commands[i]->subcommands; sub != NULL && sub->name != NULL; sub++)
      if (sub == command)
        return commands[i];
  return NULL;
}

const command_t *command_named(const char *name) {
  for (size_t i = 0; commands[i] != NULL; i++)
    if (strcmp(commands[i]->name, name) == 0)
      return commands[i];
  return NULL;
}

const command_t *command_find_subcommand(const command_t *command, const char *name) {
  for (const command_t *sub = command->subcommands; sub != NULL && sub->name != NULL; sub++)
    if (strcmp(sub->name, name) == 0)
      return sub;
  return NULL;
}

size_t command_arguments(const command_t *command, size_t *most) {
  size_t least = 0;
  *most = 0;
  for (const char *word = command->arguments; word != NULL && *word != '\0';) {
    size_t len = strcspn(word, " ");
    least += *word != '[';
    *most = len > 3 && memcmp(word + len - 3, "...", 3) == 0 ? SIZE_MAX : *most + 1;
    word += len + strspn(word + len, " ");
  }
  return least;
}

unsigned command_urls(const command_t *command) {
  bool asks = command->begin != NULL && !command->offline;
  return command->urls > 0 ? command->urls : asks;
}

const char *command_full_name(const command_t *command) {
  static char name[USAGE_MAX];
  const command_t *parent = command_parent(command);
  (void)snprintf(name, sizeof name, "%s%s%s", parent != NULL ? parent->name : "",
                 parent != NULL ? " " : "", command->name);
  return name;
}

const char *command_usage(const command_t *command) {
  static char usage[USAGE_MAX];
  static const char *const runs[] = {"", " [-- COMMAND [ARGUMENT]...]",
                                     " -- COMMAND [ARGUMENT]..."};
  size_t n = (size_t)snprintf(usage, sizeof usage, "belay %s", command_full_name(command));
  if (command->subcommands != NULL) {
    for (const command_t *sub = command->subcommands; sub->name != NULL; sub++)
      n += (size_t)snprintf(usage + n, sizeof usage - n, "%s%s",
                            sub == command->subcommands ? " " : "|", sub->name);
    (void)snprintf(usage + n, sizeof usage - n, " ...");
  } else
    (void)snprintf(usage + n, sizeof usage - n, "%s%s [OPTION]...%s",
                   command->arguments != NULL ? " " : "",
                   command->arguments != NULL ? command->arguments : "", runs[command->runs]);
  return usage;
}

/* ---- the command of a line ---- */

/* The command that a common option stands for. */
static const char *name_of(const char *word) {
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    return "help";
  return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

/* Return the names of the subcommands: "add, get or set". */
static const char *names_of(const command_t *subcommands) {
  static char text[256];
  size_t len = 0;
  for (const command_t *sub = subcommands; sub->name != NULL && len < sizeof text; sub++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                            sub == subcommands    ? ""
                            : sub[1].name == NULL ? " or "
                                                  : ", ",
                            sub->name);
  return text;
}

const command_t *command_find(int *argc, char ***argv) {
  if (*argc == 0) {
    complain("a command is missing: see belay help");
    return NULL;
  }
  const command_t *command = command_named(name_of(**argv));
  if (command == NULL) { /* the word may be a URL with a password */
    complain(***argv == '-' ? "options stand behind the command's name: see belay help"
                            : "there is no such command: see belay help");
    return NULL;
  }
  --*argc;
  ++*argv;
  if (command->subcommands == NULL)
    return command;
  if (*argc > 0 && strcmp(name_of(**argv), "help") == 0)
    common.help = true;
  if (common.help && (*argc == 0 || strcmp(name_of(**argv), "help") == 0))
    return command;
  out_name(command->name);
  if (*argc == 0) {
    complain("%s is missing\nusage: %s", names_of(command->subcommands), command_usage(command));
    return NULL;
  }
  const command_t *sub = command_find_subcommand(command, **argv);
  if (sub == NULL)
    complain("there is no such command: %s is followed by %s", command->name,
             names_of(command->subcommands));
  --*argc;
  ++*argv;
  return sub;
}

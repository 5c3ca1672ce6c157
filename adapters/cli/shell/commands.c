#include "shell/commands.h"

#include <stdio.h>

#define USAGE_MAX 256

const command_t *const commands[] = {
    &acl_command,        &allow_command,   &bloom_command, &break_command,  &cache_command,
    &completion_command, &count_command,   &exec_command,  &help_command,   &id_command,
    &leader_command,     &limit_command,   &ls_command,    &manual_command, &once_command,
    &online_command,     &ping_command,    &rank_command,  &show_command,   &sweep_command,
    &top_command,        &version_command, NULL,
};

const command_t *command_parent(const command_t *command) {
  for (size_t i = 0; commands[i] != NULL; i++)
    for (size_t j = 0; commands[i]->parts != NULL && commands[i]->parts[j] != NULL; j++)
      if (commands[i]->parts[j] == command)
        return commands[i];
  return NULL;
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
  if (command->parts != NULL) {
    for (size_t i = 0; command->parts[i] != NULL; i++)
      n += (size_t)snprintf(usage + n, sizeof usage - n, "%s%s", i == 0 ? " " : "|",
                            command->parts[i]->name);
    (void)snprintf(usage + n, sizeof usage - n, " ...");
  } else
    (void)snprintf(usage + n, sizeof usage - n, "%s%s [OPTION]...%s",
                   command->arguments != NULL ? " " : "",
                   command->arguments != NULL ? command->arguments : "", runs[command->runs]);
  return usage;
}

/* `belay help` and `belay version`. */
#include <stdio.h>

#include "belay/version.h"
#include "shell/commands.h"
#include "shell/common.h"
#include "shell/help.h"
#include "shell/line.h"
#include "ui/out.h"
#include "ui/status.h"

static int run_help(const arguments_t *arguments) {
  int argc = (int)arguments->n;
  char **argv = arguments->item;
  common.help = true;
  const command_t *command = argc > 0 ? command_find(&argc, &argv) : NULL;
  if (arguments->n > 0 && command == NULL)
    return STATUS_USAGE;
  help_print(command);
  return STATUS_YES;
}

static const char *name_of(size_t i) {
  return commands[i] != NULL ? commands[i]->name : NULL;
}

const command_t help_command = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "say which commands there are, or all about one",
    .examples = (const example_t[]){{"All about one command", "belay help count add"}, {0}},
    .words = name_of,
    .most = 2,
    .run = run_help,
};

static int run_version(const arguments_t *arguments) {
  (void)arguments;
  out_begin();
  out_string("version", BELAY_VERSION_STRING);
  out_say("belay %s", BELAY_VERSION_STRING);
  (void)out_end();
  return STATUS_YES;
}

const command_t version_command = {
    .name = "version",
    .summary = "say which belay this is",
    .examples = (const example_t[]){{"In a script", "belay version --json | jq -r .version"}, {0}},
    .reports = true,
    .run = run_version,
};

/* The belay command: the library for shells. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shell/commands.h"
#include "shell/common.h"
#include "shell/completion.h"
#include "shell/config.h"
#include "harness.h"
#include "shell/help.h"
#include "run/supervisor.h"
#include "shell/options.h"
#include "ui/out.h"
#include "ui/status.h"

static out_form_t form(void) {
  if (common.quiet)
    return OUT_NONE;
  return common.json ? OUT_JSON : OUT_PLAIN;
}

/* Opens /dev/null in place of closed standard files. Otherwise the next opened file would take
 * their place. */
static void hold_standard_files(void) {
  for (int fd = 0; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) == -1)
      (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int run(const command_t *command, const arguments_t *arguments) {
  if (command_urls(command) > 0 && !config_read())
    return STATUS_USAGE;
  out_verbose(common.verbose);
  if (command->begin != NULL)
    return harness_run(command, arguments);
  int status = command->run(arguments);
  return out_finish() || status >= STATUS_UNREACHABLE ? status : STATUS_TROUBLE;
}

int main(int argc, char **argv) {
  hold_standard_files();
  if (argc > 1 && strcmp(argv[1], SUPERVISOR_NAME) == 0) /* a hidden subcommand of belay exec */
    return command_supervisor(argc, argv);
  if (argc > 1 &&
      strcmp(argv[1], COMPLETE_NAME) == 0) /* called by the scripts of `belay completion` */
    return completion_words((size_t)argc - 2, argv + 2);
  argc -= argc > 0;
  argv++;
  out_init(OUT_PLAIN);
  const command_t *command = command_find(&argc, &argv);
  if (command == NULL)
    return STATUS_USAGE;
  static char name[64];
  arguments_t arguments;
  (void)snprintf(name, sizeof name, "%s", command_full_name(command));
  out_name(name);
  if (!options_read(command, argc, argv, &arguments))
    return STATUS_USAGE;
  out_init(form());
  if (!common.help)
    return run(command, &arguments);
  help_print(command);
  return out_finish() ? STATUS_YES : STATUS_TROUBLE;
}

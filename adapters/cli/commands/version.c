/* `belay version`. */
#include "belay/version.h"
#include "command.h"
#include "ui/out.h"
#include "ui/status.h"

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
    .summary = "print the version of belay",
    .examples = EXAMPLES({"In a script", "belay version --json | jq -r .version"}),
    .run = run_version,
};

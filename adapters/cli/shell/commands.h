/* All commands. */
#ifndef BELAY_CLI_SHELL_COMMANDS_H
#define BELAY_CLI_SHELL_COMMANDS_H

#include "command.h"

extern const command_t acl_command;
extern const command_t allow_command;
extern const command_t bloom_command;
extern const command_t break_command;
extern const command_t cache_command;
extern const command_t completion_command;
extern const command_t count_command;
extern const command_t exec_command;
extern const command_t help_command;
extern const command_t id_command;
extern const command_t leader_command;
extern const command_t limit_command;
extern const command_t ls_command;
extern const command_t manual_command;
extern const command_t once_command;
extern const command_t online_command;
extern const command_t ping_command;
extern const command_t rank_command;
extern const command_t show_command;
extern const command_t sweep_command;
extern const command_t top_command;
extern const command_t version_command;

/* Those above, in the order in which help says them; ends with NULL. */
extern const command_t *const commands[];

/* The command that it is a part of; NULL: it is none. */
const command_t *command_parent(const command_t *command);

/* Its name, with that of the one it is a part of: "count add". Valid to the next call. */
const char *command_full_name(const command_t *command);

/* How it is used, in one line: "belay count add KEY [N] [OPTION]...". Valid to the next call. */
const char *command_usage(const command_t *command);

#endif /* BELAY_CLI_SHELL_COMMANDS_H */

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

/* The one that the line begins with; its name, or names, are left out of the rest. Options in front of it are put behind
 * it, where the others are. NULL: there is none, which was said. */
const command_t *command_find(int *argc, char ***argv);

#endif /* BELAY_CLI_SHELL_COMMANDS_H */

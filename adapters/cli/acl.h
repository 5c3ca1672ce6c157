/* `belay acl`: the rules of a user who may do what belay does, and nothing else. */
#ifndef BELAY_CLI_ACL_H
#define BELAY_CLI_ACL_H

#include <stdio.h>

int command_acl(int argc, char **argv);

/* What it takes. */
void help_acl(FILE *out);

#endif /* BELAY_CLI_ACL_H */

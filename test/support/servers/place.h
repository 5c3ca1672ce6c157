/* Resources of the machine that one test's servers have for themselves. */
#ifndef TEST_SUPPORT_SERVERS_PLACE_H
#define TEST_SUPPORT_SERVERS_PLACE_H

/* A free TCP port of an address, reserved until its descriptor is closed: no other process, and
 * no outgoing connection, gets it while no server uses it. */
int place_hold_port(const char *address, int *fd);

/* A folder and all that is in it. Only what a signal handler may do, more or less. */
void place_remove(const char *path);

#endif /* TEST_SUPPORT_SERVERS_PLACE_H */

/* Where a test's servers are: what the machine gives each of them alone. */
#ifndef TEST_SUPPORT_SERVERS_PLACE_H
#define TEST_SUPPORT_SERVERS_PLACE_H

/* A free TCP port of an address, kept until its descriptor is closed: nobody else, not even a connection that goes out,
 * gets it while no server is there. */
int place_hold_port(const char *address, int *fd);

/* A folder and all that is in it. Only what a signal handler may do, more or less. */
void place_remove(const char *path);

#endif /* TEST_SUPPORT_SERVERS_PLACE_H */

/* A private temporary folder, without folders in it. */
#ifndef BELAY_DEMO_SCRATCH_H
#define BELAY_DEMO_SCRATCH_H

/* Short enough that a unix socket in it has a path the system takes. */
#define SCRATCH_PATH_MAX 80

/* Makes it, under $TMPDIR if that is short enough, else under /tmp. Returns 0 or -1; then errno says why. */
int scratch_make(char path[SCRATCH_PATH_MAX]);

/* Removes it with all that is in it, as far as possible. An empty path is none. */
void scratch_remove(const char *path);

#endif /* BELAY_DEMO_SCRATCH_H */

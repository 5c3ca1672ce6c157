/* Which processors the server and its clients run on. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From here on this process runs on the last of its processors, or on all but that. */
void place_as_server(void);
void place_as_client(void);

/* The processor that a process ran on last; -1 if that cannot be told. */
int place_of(pid_t pid);

/* In words, for the report. Ends the program if there is but one processor, and nothing to pin. */
void place_describe(bool pin, char *text, size_t size);

#endif /* BENCH_PLACE_H */

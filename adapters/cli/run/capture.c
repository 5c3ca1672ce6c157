#include "run/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ui/out.h"

bool capture_open(capture_t *capture) {
  for (size_t i = 0; i < 2; i++) {
    capture->file[i] = tmpfile();
    if (capture->file[i] == NULL)
      return false;
    (void)fcntl(fileno(capture->file[i]), F_SETFD, FD_CLOEXEC);
  }
  return true;
}

static void copy(FILE *from, int to) {
  static char bytes[65536];
  size_t n;
  if (fseek(from, 0, SEEK_SET) != 0)
    return;
  int error = 0;
  while (error == 0 && (n = fread(bytes, 1, sizeof bytes, from)) > 0)
    error = out_write(to, bytes, n, -1);
  if (error != 0 && error != EPIPE) /* a reader that is gone needs no more */
    complain("the command's output could not be written: %s", strerror(error));
}

void capture_show(capture_t *capture) {
  for (int i = 0; i < 2; i++) {
    if (capture->file[i] == NULL)
      continue;
    copy(capture->file[i], i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    (void)fclose(capture->file[i]);
    capture->file[i] = NULL;
  }
}

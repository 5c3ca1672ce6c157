#include "run/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* A reader that is slow is waited for; one that is gone is not. */
static bool write_all(int to, const char *bytes, size_t len) {
  struct pollfd room = {.fd = to, .events = POLLOUT};
  while (len > 0) {
    ssize_t n = write(to, bytes, len);
    if (n < 0 && errno == EAGAIN)
      (void)poll(&room, 1, -1);
    else if (n < 0 && errno != EINTR)
      return false;
    if (n > 0) {
      bytes += n;
      len -= (size_t)n;
    }
  }
  return true;
}

static void copy(FILE *from, int to) {
  static char bytes[65536];
  size_t n;
  if (fseek(from, 0, SEEK_SET) != 0)
    return;
  while ((n = fread(bytes, 1, sizeof bytes, from)) > 0) {
    if (write_all(to, bytes, n))
      continue;
    if (errno != EPIPE)
      complain("the command's output could not be written: %s", strerror(errno));
    return;
  }
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

/* Settings files of the command: a file is read completely or refused with a message. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "shell/common.h"
#include "shell/config.h"

/* Reads the file with the messages, which the fuzzer would print each time, going nowhere. */
static bool read_quietly(void) {
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), errors = dup(STDERR_FILENO);
  REQUIRE(nowhere >= 0 && errors >= 0);
  (void)fflush(stderr);
  REQUIRE(dup2(nowhere, STDERR_FILENO) >= 0);
  bool well = config_read();
  (void)fflush(stderr);
  REQUIRE(dup2(errors, STDERR_FILENO) >= 0);
  close(nowhere);
  close(errors);
  return well;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  static char path[64];
  int fd = memfd_create("settings", MFD_CLOEXEC);
  REQUIRE(fd >= 0 && write(fd, data, len) == (ssize_t)len);
  REQUIRE(fchmod(fd, 0600) == 0);
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  common = (common_t){.config = path};
  if (read_quietly()) {
    REQUIRE(memchr(data, 0, len) == NULL);
    REQUIRE(common.timeout_ms > 0 && common.urls.n <= URLS_MAX);
  }
  close(fd);
  return 0;
}

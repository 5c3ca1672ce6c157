#include "belay/error.h"

const char *belay_strerror(int error) {
  switch (error) {
  case 0:
    return "success";
#define TEXT(name, value, retryable, text)                                                         \
  case value:                                                                                      \
    return text;
    BELAY_ERRORS(TEXT)
#undef TEXT
  default:
    return "not an error of belay";
  }
}

const char *belay_err_name(int error) {
  switch (error) {
  case 0:
    return "OK";
#define NAME(name, value, retryable, text)                                                         \
  case value:                                                                                      \
    return #name;
    BELAY_ERRORS(NAME)
#undef NAME
  default:
    return "E?";
  }
}

int belay_err_retryable(int error) {
  switch (error) {
#define RETRYABLE(name, value, retryable, text)                                                    \
  case value:                                                                                      \
    return retryable;
    BELAY_ERRORS(RETRYABLE)
#undef RETRYABLE
  default:
    return 0;
  }
}

#include "ui/status.h"

#include "belay/error.h"

int status_of(int error) {
  switch (error) {
  case 0:
    return STATUS_YES;
  case BELAY_EINVAL:
  case BELAY_EURL:
    return STATUS_USAGE;
  case BELAY_EUNREACHABLE:
  case BELAY_ERESOLVE:
  case BELAY_ENOQUORUM:
  case BELAY_ENOSENTINEL:
  case BELAY_ENOMASTER:
  case BELAY_ESPLIT:
  case BELAY_ELOADING:
  case BELAY_ECLUSTERDOWN:
  case BELAY_EMAXCLIENTS:
  case BELAY_ETLS:
    return STATUS_UNREACHABLE;
  default:
    return STATUS_TROUBLE;
  }
}

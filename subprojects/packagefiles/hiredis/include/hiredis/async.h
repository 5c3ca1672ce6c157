/* An installed hiredis is included as <hiredis/async.h>; so is this one. */
#include "../../async.h"

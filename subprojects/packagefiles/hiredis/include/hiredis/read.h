/* An installed hiredis is included as <hiredis/read.h>; so is this one. */
#include "../../read.h"

/* An installed hiredis is included as <hiredis/sds.h>; so is this one. */
#include "../../sds.h"

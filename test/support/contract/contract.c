#include "support/contract/contract.h"

void rig_make(rig_t *rig, const contract_t *row, bed_t *bed, belay_client_t *client) {
  *rig = (rig_t){.row = row, .bed = bed};
  int error = row->make(client, rig, &rig->handle);
  if (error != 0)
    fail_msg("%s: %s: %s", row->name, belay_err_name(error), belay_detail(bed->belay));
}

int rig_begin(rig_t *rig, rig_call_t *call, unsigned n) {
  call->rig = rig;
  call->n = n;
  call->request.data = call;
  rig->bed->inside++;
  int error = rig->row->begin(rig->handle, &call->request, n, true);
  rig->bed->inside--;
  call->begun += error == 0;
  return error;
}

int rig_close(rig_t *rig) {
  rig->bed->inside++;
  int error = rig->row->close(rig->handle, true);
  rig->bed->inside--;
  rig->closing += error == 0;
  return error;
}

void rig_on_ended(belay_request_t *request, int status) {
  rig_call_t *call = request->data;
  bed_t *bed = call->rig->bed;
  unsigned inside = bed->inside;
  bed->wrong += inside + call->rig->closed + (call->ended >= call->begun);
  bed->inside = 0;
  call->ended++;
  call->status = status;
  if (call->on_ended != NULL)
    call->on_ended(call);
  bed->inside = inside;
}

void rig_on_closed(void *data) {
  rig_t *rig = data;
  unsigned inside = rig->bed->inside;
  rig->bed->wrong += inside + rig->closed;
  rig->bed->inside = 0;
  rig->closed++;
  if (rig->on_closed != NULL)
    rig->on_closed(rig);
  rig->bed->inside = inside;
}

#include "support/contract/contract.h"

void rig_make(rig_t *rig, const contract_t *row, env_t *env, belay_client_t *client) {
  *rig = (rig_t){.row = row, .env = env};
  int error = row->make(client, rig, &rig->handle);
  if (error != 0)
    fail_msg("%s: %s: %s", row->name, belay_err_name(error), belay_detail(env->belay));
}

int rig_begin(rig_t *rig, rig_call_t *call, unsigned n) {
  call->rig = rig;
  call->n = n;
  call->request.data = call;
  rig->env->inside++;
  int error = rig->row->begin(rig->handle, &call->request, n, true);
  rig->env->inside--;
  call->begun += error == 0;
  return error;
}

int rig_close(rig_t *rig) {
  rig->env->inside++;
  int error = rig->row->close(rig->handle, true);
  rig->env->inside--;
  rig->closing += error == 0;
  return error;
}

void rig_on_ended(belay_request_t *request, int status) {
  rig_call_t *call = request->data;
  env_t *env = call->rig->env;
  unsigned inside = env->inside;
  env->wrong += inside + call->rig->closed + (call->ended >= call->begun);
  env->inside = 0;
  call->ended++;
  call->status = status;
  if (call->on_ended != NULL)
    call->on_ended(call);
  env->inside = inside;
}

void rig_on_closed(void *data) {
  rig_t *rig = data;
  unsigned inside = rig->env->inside;
  rig->env->wrong += inside + rig->closed;
  rig->env->inside = 0;
  rig->closed++;
  if (rig->on_closed != NULL)
    rig->on_closed(rig);
  rig->env->inside = inside;
}

/* Who is told of moments: see hooks.h. */
#include "inject/probe/torch/torch.h"

static _Atomic(prb_torch_listener *) listeners[PRB_TORCH_LISTENERS_MAX];
atomic_uint prb_torch_listeners;

bool prb_torch_listen(prb_torch_listener *listener)
{
    for (int i = 0; i < PRB_TORCH_LISTENERS_MAX; i++)
        if (listeners[i] == listener)
            return true;
    for (int i = 0; i < PRB_TORCH_LISTENERS_MAX; i++) {
        prb_torch_listener *none = NULL;
        if (atomic_compare_exchange_strong(&listeners[i], &none, listener)) {
            prb_torch_listeners++;
            return true;
        }
    }
    return false;
}

void prb_torch_unlisten(prb_torch_listener *listener)
{
    for (int i = 0; i < PRB_TORCH_LISTENERS_MAX; i++) {
        prb_torch_listener *there = listener;
        if (atomic_compare_exchange_strong(&listeners[i], &there, NULL))
            prb_torch_listeners--;
    }
}

void prb_torch_tell(const struct prb_torch_now *now)
{
    for (int i = 0; i < PRB_TORCH_LISTENERS_MAX; i++) {
        prb_torch_listener *listener = listeners[i];
        if (listener)
            listener(now);
    }
}

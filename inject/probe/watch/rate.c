/*
 * The learning rate of the anchor, for training_logs: optimizer.param_groups[0]["lr"].
 *
 * Where its step ends the optimizer is known, but PyTorch has released the GIL; so the rate is read
 * at the next backward, with it.  Whether the optimizer is still there, a weak reference tells: asking
 * the kernel costs microseconds.  It is made at that backward, when the optimizer may be gone already:
 * one that stands in the collector's lists is not.  And it is made without the lock: up to CPython 3.11
 * an allocation may run the collector, so the program's finalizers, which may return from watched
 * functions, or give the GIL to a thread that does.
 */
#include "inject/probe/watch/watch.h"

static struct {
    struct prb_py *param_groups, *lr; /* interned */
    uintptr_t optimizer;              /* of the last step; 0: none yet */
    uint64_t type;
    uintptr_t referred; /* the optimizer that reference is of */
    struct prb_py *reference;
    struct prb_watch_value value;
    bool read;
} anchor;

static const struct prb_watch_reader direct = {.direct = true}, safe = {.direct = false};

static void read_rate(const struct prb_watch_reader *reader)
{
    const char *object = (const char *)anchor.optimizer;
    object = prb_watch_attribute(reader, object, (const char *)anchor.param_groups);
    object = object ? prb_watch_item(reader, object, 0) : NULL;
    object = object ? prb_watch_dict_get(reader, object, (const char *)anchor.lr) : NULL;
    prb_watch_value(reader, object, &anchor.value);
    anchor.read = anchor.value.bound && anchor.value.has_number;
}

static void drop_reference(void)
{
    prb_py_drop(anchor.reference);
    anchor.reference = NULL;
    anchor.referred = 0;
}

/* Whether one link of the collector's list leads back to head; both have flags. */
static bool is_linked(const char *head, enum prb_field there, enum prb_field back)
{
    enum { FLAGS = 7 };
    uint64_t other, same;
    return prb_watch_field(&safe, head, there, &other) &&
           prb_watch_field(&safe, (const char *)(uintptr_t)(other & ~(uint64_t)FLAGS), back,
                           &same) &&
           (same & ~(uint64_t)FLAGS) == (uintptr_t)head;
}

/* Memory that was freed keeps its type, but who frees an object takes it out of the collector's
 * lists first, and what comes to that place is no member of one just there. */
static bool is_object(void)
{
    const char *object = (const char *)anchor.optimizer;
    const char *head = object - PRB_OFF(&prb_watch_facts.layout, gc_head, size);
    uint64_t type = 0;
    return PRB_WATCH_FIELD(&safe, object, object, type, &type) && type == anchor.type &&
           is_linked(head, PRB_F_gc_head_next, PRB_F_gc_head_prev) &&
           is_linked(head, PRB_F_gc_head_prev, PRB_F_gc_head_next);
}

/* With the GIL. */
static bool is_alive(void)
{
    uint64_t object = 0;
    if (anchor.reference && anchor.referred == anchor.optimizer) {
        if (PRB_WATCH_FIELD(&direct, (const char *)anchor.reference, weakref, object, &object) &&
            object == anchor.optimizer)
            return true;
        drop_reference(); /* another one may have its place */
    }
    return is_object();
}

/* With the GIL: the optimizer, which is alive, if it is still to get its weak reference. */
static struct prb_py *take_unreferred(void)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (anchor.referred == anchor.optimizer || !py || py->PyErr_Occurred())
        return NULL; /* it has one, or can have none, or not now */
    drop_reference();
    anchor.referred = anchor.optimizer;
    py->Py_IncRef((struct prb_py *)anchor.optimizer);
    return (struct prb_py *)anchor.optimizer;
}

struct prb_py *prb_watch_rate_refer(struct prb_py *optimizer)
{
    struct prb_py *reference = prb_watch_facts.new_reference(optimizer, NULL);
    if (!reference) /* its class allows none */
        prb_py_api(NULL)->PyErr_Clear();
    return reference;
}

struct prb_py *prb_watch_rate_keep(struct prb_py *optimizer, struct prb_py *reference)
{
    if (anchor.referred != (uintptr_t)optimizer || anchor.reference)
        return reference; /* another one trains meanwhile, or nothing is watched any more */
    anchor.reference = reference;
    return NULL;
}

struct prb_py *prb_watch_rate_at(const struct prb_torch_now *now)
{
    if (now->moment == PRB_TORCH_STEP_ENDS && now->optimizer) {
        if (anchor.optimizer != now->optimizer) {
            anchor.optimizer = now->optimizer;
            anchor.type = 0;
            anchor.read = false;
        }
        if (!anchor.read) /* the first one */
            read_rate(&safe);
        if (anchor.read && !anchor.type)
            PRB_WATCH_FIELD(&safe, (const char *)anchor.optimizer, object, type, &anchor.type);
    } else if (now->moment == PRB_TORCH_BACKWARD_ENDS && anchor.optimizer && anchor.type) {
        if (is_alive()) {
            read_rate(&direct);
            return take_unreferred();
        }
        anchor.optimizer = anchor.type = 0;
    }
    return NULL;
}

const struct prb_watch_value *prb_watch_rate_take(void)
{
    bool read = anchor.read;
    anchor.read = false;
    return read ? &anchor.value : NULL;
}

void prb_watch_rate_begin(void)
{
    if (!anchor.lr && prb_watch_facts.intern) {
        anchor.param_groups = prb_watch_facts.intern("param_groups");
        anchor.lr = prb_watch_facts.intern("lr");
    }
    drop_reference();
    anchor.read = false;
    anchor.optimizer = anchor.type = 0;
}

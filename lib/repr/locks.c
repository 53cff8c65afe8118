/*
 * The texts of locks and threads, with who holds a lock.  Sources: Modules/_threadmodule.c,
 * Lib/threading.py of 3.6 to 3.15.
 */
#include <inttypes.h>

#include "base/secret.h"
#include "repr/writer.h"

void prb_repr_lock(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    const struct prb_layout *layout = repr->objects->layout;
    bool large =
        PRB_HAS(layout, lock, locked) && type->basicsize > (int64_t)PRB_OFF(layout, lock, locked);
    uint64_t locked;
    if (!prb_objects_field(repr->objects, object, large ? PRB_F_lock_locked : PRB_F_lock_mutex,
                           &locked)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_text_add(&repr->text, locked & 1 ? "<locked " : "<unlocked ");
    prb_text_addf(&repr->text, "%s object at 0x%" PRIx64 ">", type->name, object);
}

void prb_repr_rlock(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_objects *objects = repr->objects;
    uint64_t owner, count, mutex;
    if (!PRB_GET(objects, object, rlock, owner, &owner) ||
        !PRB_GET(objects, object, rlock, count, &count)) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (PRB_GET(objects, object, rlock, mutex, &mutex))
        count = mutex & 1 ? count + 1 : 0;
    prb_text_addf(&repr->text,
                  "<%s %s object owner=%" PRIu64 " count=%" PRIu64 " at 0x%" PRIx64 ">",
                  count ? "locked" : "unlocked", type->name, count ? owner : 0, count, object);
}

/* "<threading.Event at 0x…: set>", as 3.11 and newer print it. */
void prb_repr_event(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_flag", NULL};
    prb_addr flag;
    struct prb_int set;
    if (!prb_pick_attributes(repr->objects, object, type, names, &flag) || !flag ||
        !prb_int_open(repr->objects, flag, &set, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_begin(repr, type);
    prb_text_addf(&repr->text, " at 0x%" PRIx64 ": %s>", object, set.sign ? "set" : "unset");
}

void prb_repr_semaphore(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_value", NULL};
    prb_addr value;
    if (!prb_pick_attributes(repr->objects, object, type, names, &value) || !value) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_begin(repr, type);
    prb_text_addf(&repr->text, " at 0x%" PRIx64 ": value=", object);
    prb_repr_value(repr, value);
    prb_text_add(&repr->text, ">");
}

/* "<Condition(<unlocked _thread.lock …>, 2)>": its lock, and how many threads wait. */
void prb_repr_condition(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { LOCK, WAITERS, COUNT };
    static const char *const names[] = {"_lock", "_waiters", NULL};
    prb_addr values[COUNT];
    uint64_t waiters;
    if (!prb_pick_attributes(repr->objects, object, type, names, values) || !values[LOCK] ||
        !values[WAITERS] || !PRB_GET(repr->objects, values[WAITERS], deque, length, &waiters)) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, "<Condition(");
    prb_repr_value(repr, values[LOCK]);
    prb_text_addf(&repr->text, ", %" PRIu64 ")>", waiters);
    prb_repr_leave(repr);
}

static bool is_true(struct prb_objects *objects, prb_addr object)
{
    struct prb_int number;
    return object && prb_int_open(objects, object, &number, NULL) && number.sign;
}

/* "<Thread(loader, started daemon 139…)>" (Thread.__repr__ of Lib/threading.py).  From 3.13 on C
 * code knows whether it is running: the word is left out. */
void prb_repr_thread(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { NAME, DAEMON, IDENT, STOPPED, COUNT };
    static const char *const names[] = {"_name", "_daemonic", "_ident", "_is_stopped", NULL};
    struct prb_objects *objects = repr->objects;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_addr values[COUNT];
    if (!prb_pick_attributes(objects, object, type, names, values) || !values[NAME] ||
        !prb_object_str(objects, values[NAME], PRB_REPR_CHARACTERS, &name, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    bool began = values[IDENT] && prb_object_kind(objects, values[IDENT], NULL) == PRB_OBJ_INT;
    prb_text_addf(&repr->text, "<%s(%s,", prb_type_short_name(type), name.data ? name.data : "");
    if (!began)
        prb_text_add(&repr->text, " initial");
    else if (values[STOPPED])
        prb_text_add(&repr->text, is_true(objects, values[STOPPED]) ? " stopped" : " started");
    if (is_true(objects, values[DAEMON]))
        prb_text_add(&repr->text, " daemon");
    if (began) {
        prb_text_add(&repr->text, " ");
        prb_repr_value(repr, values[IDENT]);
    }
    prb_text_add(&repr->text, ")>");
}

/* What processes of multiprocessing prove themselves with: repr() shows its bytes. */
void prb_repr_authkey(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)object;
    prb_text_addf(&repr->text, "<%s %s>", prb_type_short_name(type), PRB_MASK);
}

/*
 * Calls of modules.  torch.nn.Module is a heap type, so tp_call of every class below it is CPython's
 * generic function, which looks __call__ up; ours is stored there and calls the one that it found.
 * Nothing in Python shows it.  Others undo it: who assigns Module.__call__ has CPython put its own
 * function back into every class (Objects/typeobject.c, update_slot), so it is armed again.
 */
#include <string.h>

#include "inject/probe/python/job.h"
#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/frames.h"
#include "inject/probe/torch/torch.h"

#define HEAP_TYPE (1ul << 9) /* Py_TPFLAGS_HEAPTYPE, Include/object.h */
#define CLASSES_MAX 100000   /* below Module */
#define DEPTH_MAX 64         /* of classes below classes */
#define KNOWN_MAX 4096       /* a power of two: labels of classes, by address */

typedef struct prb_py *call_function(struct prb_py *self, struct prb_py *args,
                                     struct prb_py *kwargs);

static call_function *_Atomic original;
static struct prb_py *_Atomic module_class; /* with a reference while armed */
static struct {
    int32_t type, call, flags, name; /* offsets */
    bool found;
} place;

static struct {
    const void *_Atomic type;
    atomic_uint label;
} known[KNOWN_MAX];

/* ---- the hook ---- */

static inline const char *type_of(const struct prb_py *object)
{
    const char *type;
    memcpy(&type, (const char *)object + place.type, sizeof type);
    return type;
}

/* The class's name, as a label. */
static unsigned label_of(const char *type)
{
    size_t at = ((uintptr_t)type >> 5) * UINT64_C(0x9e3779b97f4a7c15) >> 52;
    for (size_t i = 0; i < 8; i++) {
        size_t slot = (at + i) & (KNOWN_MAX - 1);
        const void *there = atomic_load_explicit(&known[slot].type, memory_order_acquire);
        if (there == type)
            return known[slot].label;
        if (there)
            continue;
        const char *name;
        memcpy(&name, type + place.name, sizeof name);
        unsigned label = prb_torch_label(name, strnlen(name, PRB_TORCH_LABEL_MAX));
        known[slot].label = label;
        atomic_store_explicit(&known[slot].type, type, memory_order_release);
        return label;
    }
    return 0;
}

static void record_call(struct prb_torch_thread *thread, const struct prb_py *self, uint64_t begin,
                        uint64_t end, int64_t step, uint32_t number, bool recompute,
                        const struct prb_cuda_memory *before)
{
    const struct prb_torch_event event = {
        .begin = begin,
        .end = end,
        .stage = PRB_TRACE_FORWARD,
        .object = (uintptr_t)self,
        .label = label_of(type_of(self)),
        .depth = thread->depth,
        .recompute = recompute,
        .step = step,
        .number = number,
        .tid = thread->tid,
        .before = before,
    };
    prb_torch_record(&event);
}

/* The same modules in each step. */
static bool has_rows(const struct prb_py *self, unsigned depth)
{
    unsigned layers = atomic_load_explicit(&prb_torch.layers, memory_order_relaxed);
    uint64_t hash = ((uintptr_t)self >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return depth < atomic_load_explicit(&prb_torch.depth, memory_order_relaxed) &&
           depth < atomic_load_explicit(&prb_torch.shallow, memory_order_relaxed) && hash <= layers;
}

static struct prb_py *on_call(struct prb_py *self, struct prb_py *args, struct prb_py *kwargs)
{
    call_function *call = atomic_load_explicit(&original, memory_order_relaxed);
    bool looks = atomic_load_explicit(&prb_torch.on, memory_order_acquire) &&
                 !atomic_load_explicit(&prb_torch.quiet, memory_order_relaxed);
    struct prb_torch_thread *thread = looks ? prb_torch_thread() : NULL;
    if (!thread)
        return call(self, args, kwargs);
    bool root = thread->depth == 0;
    uint64_t begin = prb_clock_ns();
    if (root)
        prb_torch_root_begins(thread, begin);
    bool recompute = atomic_load_explicit(&prb_torch.backward, memory_order_relaxed) > 0;
    bool sampled = atomic_load_explicit(&prb_torch.sampled, memory_order_relaxed) &&
                   has_rows(self, thread->depth);
    int64_t step = atomic_load_explicit(&prb_torch.step, memory_order_relaxed);
    uint32_t number = prb_torch_number(thread, step);
    unsigned arming = thread->arming;
    struct prb_cuda_memory before;
    bool told = sampled && prb_cuda_memory_read(&before);
    thread->calls++;
    thread->depth++;
    struct prb_py *result = call(self, args, kwargs);
    if (thread->arming != arming) /* off and on meanwhile: it is not counted there */
        return result;
    thread->depth--;
    bool ends = prb_torch_ending_kind() == PRB_TORCH_ENDS_MODULE && !recompute &&
                prb_torch_ends_module((uintptr_t)self, label_of(type_of(self)));
    if (!sampled && !root && !ends)
        return result;
    uint64_t end = prb_clock_ns();
    if (sampled && atomic_load_explicit(&prb_torch.on, memory_order_relaxed)) {
        thread->rows++;
        record_call(thread, self, begin, end, step, number, recompute, told ? &before : NULL);
    }
    if (root)
        prb_torch_root_ends(thread, end);
    if (ends)
        prb_torch_step_ends(thread, end, true);
    return result;
}

/* ---- classes ---- */

static bool find_place(const struct prb_py_api *py, struct prb_error *err)
{
    if (place.found)
        return true;
    if (!prb_torch_frames_find(py, err))
        return false;
    const struct prb_layout *layout = prb_torch_layout();
    place.type = PRB_OFF(layout, object, type);
    place.call = PRB_OFF(layout, type, call);
    place.flags = PRB_OFF(layout, type, flags);
    place.name = PRB_OFF(layout, type, name);
    place.found = true;
    return true;
}

static call_function *_Atomic *slot_of(struct prb_py *type)
{
    return (call_function * _Atomic *)(void *)((char *)type + place.call);
}

static bool is_heap_type(const struct prb_py *type)
{
    unsigned long flags;
    memcpy(&flags, (const char *)type + place.flags, sizeof flags);
    return flags & HEAP_TYPE;
}

/* A walk lets the program's threads have the GIL now and then, and other jobs, too: the last one to
 * begin is what is wanted, and an older one goes no further. */
static atomic_uint walks;

struct walk {
    const struct prb_py_api *py;
    unsigned number;
    struct prb_py *subclasses; /* type.__subclasses__: no code of a metaclass runs */
    call_function *from, *to;
    unsigned seen;
};

static void set_slot(struct walk *walk, struct prb_py *type)
{
    call_function *_Atomic *slot = slot_of(type);
    if (is_heap_type(type) && atomic_load_explicit(slot, memory_order_relaxed) == walk->from)
        atomic_store_explicit(slot, walk->to, memory_order_release);
}

static bool is_newest(const struct walk *walk)
{
    return walk->number == atomic_load_explicit(&walks, memory_order_relaxed);
}

static void walk_classes(struct walk *walk, struct prb_py *type, unsigned depth)
{
    const struct prb_py_api *py = walk->py;
    if (!is_newest(walk))
        return;
    set_slot(walk, type);
    if (depth >= DEPTH_MAX || walk->seen++ >= CLASSES_MAX)
        return;
    PRB_AUTO(prb_py) struct prb_py *args = py->PyTuple_Pack(1, type);
    PRB_AUTO(prb_py)
    struct prb_py *list = args ? py->PyObject_CallObject(walk->subclasses, args) : NULL;
    if (!list) {
        py->PyErr_Clear();
        return;
    }
    for (ptrdiff_t i = 0; i < py->PyList_Size(list); i++)
        walk_classes(walk, py->PyList_GetItem(list, i), depth + 1);
    prb_py_yield_gil(py);
}

/* *whole_out: no other walk began meanwhile. */
static bool each_class(const struct prb_py_api *py, call_function *from, call_function *to,
                       bool *whole_out)
{
    struct prb_py *builtins = py->PyEval_GetBuiltins();
    struct prb_py *type = builtins ? py->PyDict_GetItemString(builtins, "type") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *subclasses = type ? py->PyObject_GetAttrString(type, "__subclasses__") : NULL;
    struct walk walk = {.py = py,
                        .number = atomic_fetch_add(&walks, 1) + 1,
                        .subclasses = subclasses,
                        .from = from,
                        .to = to};
    *whole_out = false;
    if (!subclasses) {
        py->PyErr_Clear();
        return false;
    }
    walk_classes(&walk, module_class, 0);
    *whole_out = is_newest(&walk);
    return true;
}

/* ---- arming ---- */

/* The class torch.nn.Module, when PyTorch is imported whole; a new reference. */
static struct prb_py *find_module_class(const struct prb_py_api *py)
{
    struct prb_py *modules = py->PyImport_GetModuleDict(), *torch = NULL, *found = NULL;
    if (modules) {
        torch = py->PyDict_GetItemString(modules, "torch.nn");
        found = py->PyDict_GetItemString(modules, "torch.nn.modules.module");
    }
    struct prb_py *class = torch && found ? py->PyObject_GetAttrString(found, "Module") : NULL;
    if (!class)
        py->PyErr_Clear();
    return class;
}

bool prb_torch_slots_arm(const struct prb_py_api *py, struct prb_error *err)
{
    if (!find_place(py, err))
        return false;
    if (!module_class && !(module_class = find_module_class(py)))
        return prb_fail(err, PRB_NOT_FOUND, "PyTorch is not imported yet");
    call_function *there = atomic_load(slot_of(module_class));
    if (there != on_call)
        original = there;
    if (!is_heap_type(module_class) || !original)
        return prb_fail(err, PRB_UNSUPPORTED, "torch.nn.Module is no class of Python's");
    bool whole; /* else another job arms or disarms, and its caller sees to the rest */
    if (!each_class(py, original, on_call, &whole))
        return prb_fail(err, PRB_UNSUPPORTED, "the classes below torch.nn.Module cannot be listed");
    return true;
}

void prb_torch_slots_disarm(const struct prb_py_api *py)
{
    if (!module_class)
        return;
    bool whole;
    if (each_class(py, on_call, original, &whole) && !whole)
        return;
    PRB_AUTO(prb_py) struct prb_py *last = atomic_exchange(&module_class, NULL);
    for (size_t i = 0; i < KNOWN_MAX; i++) /* an address may be another class's by then */
        known[i].type = NULL;
}

bool prb_torch_slots_hold(void)
{
    struct prb_py *class = atomic_load_explicit(&module_class, memory_order_relaxed);
    return class && atomic_load_explicit(slot_of(class), memory_order_relaxed) == on_call;
}

void prb_torch_slots_forked(void) { module_class = NULL; }

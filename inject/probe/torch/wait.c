/*
 * Waiting for collectives that end on another thread, as those of gloo do: the time counts as
 * comm_wait of the thread that waits.
 *
 * Who waits in Python calls Work.wait: dist.all_reduce does, and who asked for async_op=True.  Its
 * method is followed as the engine's is (method.h).  DistributedDataParallel waits in C++, at the end
 * of a backward, for the reductions that it began as gradients were ready.  No call of that is seen,
 * so it is told by when these began and ended: from the begin of the last one, when no gradient is
 * left to compute, to the end of all.
 */
#include "inject/probe/torch/method.h"
#include "inject/probe/torch/torch.h"

#define MODULE "torch._C._distributed_c10d"

typedef struct prb_py *wait_function(struct prb_py *self, struct prb_py *args,
                                     struct prb_py *kwargs);
typedef struct prb_py *fast_wait_function(struct prb_py *self, struct prb_py *const *arguments,
                                          ptrdiff_t count, struct prb_py *names);

/* Its method is freed with the function (pybind11), which is ours as long as we are in it. */
static struct prb_py *holder;
static struct prb_torch_method *_Atomic method;
static prb_torch_any_function *_Atomic original;

/* Of the backward that runs. */
static _Atomic uint64_t last_begin, last_end; /* ns, of collectives */
static atomic_uint begun, ended;              /* ... that end on other threads */
static atomic_bool waits_itself;              /* somebody called Work.wait */
static atomic_bool is_reduced; /* DistributedDataParallel was called since the one before */

/* ---- Work.wait ---- */

static struct prb_torch_thread *begin_wait(uint64_t *begin_out)
{
    if (!atomic_load_explicit(&prb_torch.on, memory_order_acquire))
        return NULL;
    *begin_out = prb_clock_ns();
    return prb_torch_thread();
}

static void end_wait(struct prb_torch_thread *thread, unsigned arming, uint64_t begin)
{
    if (thread->arming != arming || !atomic_load_explicit(&prb_torch.on, memory_order_relaxed))
        return;
    atomic_store_explicit(&waits_itself, true, memory_order_relaxed);
    uint64_t now = prb_clock_ns();
    prb_torch_move(thread, PRB_PHASE_COMM_WAIT, now - begin, now);
}

static struct prb_py *on_wait(struct prb_py *self, struct prb_py *args, struct prb_py *kwargs)
{
    wait_function *call = (wait_function *)atomic_load_explicit(&original, memory_order_relaxed);
    uint64_t begin = 0;
    struct prb_torch_thread *thread = begin_wait(&begin);
    unsigned arming = thread ? thread->arming : 0;
    struct prb_py *result = call(self, args, kwargs);
    if (thread)
        end_wait(thread, arming, begin);
    return result;
}

static struct prb_py *on_fast_wait(struct prb_py *self, struct prb_py *const *arguments,
                                   ptrdiff_t count, struct prb_py *names)
{
    fast_wait_function *call =
        (fast_wait_function *)atomic_load_explicit(&original, memory_order_relaxed);
    uint64_t begin = 0;
    struct prb_torch_thread *thread = begin_wait(&begin);
    unsigned arming = thread ? thread->arming : 0;
    struct prb_py *result = call(self, arguments, count, names);
    if (thread)
        end_wait(thread, arming, begin);
    return result;
}

static prb_torch_any_function *ours_for(int flags)
{
    return flags == PRB_TORCH_VARARGS_KEYWORDS         ? (prb_torch_any_function *)on_wait
           : flags == (int)PRB_TORCH_FASTCALL_KEYWORDS ? (prb_torch_any_function *)on_fast_wait
                                                       : NULL;
}

/* pybind11 gives an instancemethod, which has the function. */
static struct prb_py *find_function(const struct prb_py_api *py)
{
    struct prb_py *modules = py->PyImport_GetModuleDict();
    struct prb_py *module = modules ? py->PyDict_GetItemString(modules, MODULE) : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *work = module ? py->PyObject_GetAttrString(module, "Work") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *wait = work ? py->PyObject_GetAttrString(work, "wait") : NULL;
    struct prb_py *function = wait ? py->PyObject_GetAttrString(wait, "__func__") : NULL;
    if (!function)
        py->PyErr_Clear();
    return function ? function : PRB_STEAL(wait);
}

/* Whether it is CPython's own kind of a function in C, by the name of its type. */
static bool is_function(const struct prb_py_api *py, struct prb_py *object)
{
    PRB_AUTO(prb_py) struct prb_py *own = py->PyObject_Type((struct prb_py *)object);
    PRB_AUTO(prb_py)
    struct prb_py *known = py->PyObject_GetAttrString(py->PyEval_GetBuiltins(), "get");
    PRB_AUTO(prb_py) struct prb_py *type = known ? py->PyObject_Type(known) : NULL;
    return own && own == type;
}

void prb_torch_wait_arm(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py) struct prb_py *function = find_function(py);
    struct prb_torch_method *found =
        function && is_function(py, function) ? prb_torch_method_of_function(function) : NULL;
    prb_torch_any_function *ours;
    if (!found || found == method || !prb_torch_method_is(found, "wait") ||
        !(ours = ours_for(found->flags)))
        return;
    prb_torch_wait_disarm();
    original = found->call;
    holder = PRB_STEAL(function);
    method = found;
    atomic_store(&found->call, ours);
}

void prb_torch_wait_disarm(void)
{
    struct prb_torch_method *there = atomic_exchange(&method, NULL);
    if (there && there->call == ours_for(there->flags))
        atomic_store(&there->call, atomic_load(&original));
    prb_py_drop(holder);
    holder = NULL;
}

/* ---- at the end of a backward ---- */

void prb_torch_reducer_called(void)
{
    atomic_store_explicit(&is_reduced, true, memory_order_relaxed);
}

void prb_torch_collectives_begin(void)
{
    atomic_store(&waits_itself, false);
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&last_begin, 0);
    atomic_store(&last_end, 0);
}

void prb_torch_collective_begins(uint64_t now)
{
    if (atomic_load_explicit(&prb_torch.backward, memory_order_relaxed) <= 0)
        return;
    atomic_store_explicit(&last_begin, now, memory_order_relaxed);
    atomic_fetch_add_explicit(&begun, 1, memory_order_relaxed);
}

void prb_torch_collective_ends(uint64_t begin, uint64_t now)
{
    if (!begin || begin > atomic_load_explicit(&last_begin, memory_order_relaxed))
        return;
    uint64_t before = atomic_load(&last_end);
    while (now > before && !atomic_compare_exchange_weak(&last_end, &before, now)) {
    }
    atomic_fetch_add_explicit(&ended, 1, memory_order_release);
}

/* The last one may end a moment after who waited for it went on. */
uint64_t prb_torch_collectives_waited(uint64_t now)
{
    /* The counts first: an end that is counted is in last_end. */
    bool all_ended = atomic_load(&ended) >= atomic_load(&begun);
    uint64_t from = atomic_load(&last_begin), to = atomic_load(&last_end);
    if (!atomic_exchange(&is_reduced, false) || atomic_load(&waits_itself) || !from)
        return 0;
    to = all_ended && to < now ? to : now;
    return to > from ? to - from : 0;
}

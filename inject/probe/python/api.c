/*
 * Finding CPython in our own process: among the global symbols (libpython linked to the program, or
 * the program itself), else in each loaded library, as programs that embed Python load it locally.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inject/probe/python/api.h"

static struct prb_py_api api;
static bool found;
static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;

#define F(result, name, parameters) {#name, offsetof(struct prb_py_api, name)},
static const struct {
    const char *name;
    size_t offset;
} functions[] = {PRB_PY_FUNCTIONS(F)}, optional[] = {PRB_PY_OPTIONAL(F)};
#undef F

/* All of them from one library, or none. */
static bool take(void *handle, const char **missing)
{
    struct prb_py_api new = {0};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address) {
            *missing = functions[i].name;
            return false;
        }
        memcpy((char *)&new + functions[i].offset, &address, sizeof address);
    }
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        void *address = dlsym(handle, optional[i].name);
        memcpy((char *)&new + optional[i].offset, &address, sizeof address);
    }
    new.none = dlsym(handle, "_Py_NoneStruct");
    new.keyboard_interrupt = dlsym(handle, "PyExc_KeyboardInterrupt");
    new.exception = dlsym(handle, "PyExc_Exception");
    new.runtime_error = dlsym(handle, "PyExc_RuntimeError");
    new.memory_error = dlsym(handle, "PyExc_MemoryError");
    void *ending = dlsym(handle, "Py_IsFinalizing");
    if (!ending)
        ending = dlsym(handle, "_Py_IsFinalizing");
    memcpy(&new.is_finalizing, &ending, sizeof ending);
    new.finalizing = dlsym(handle, "_Py_Finalizing");
    if (!new.none || !new.keyboard_interrupt || !new.exception || !new.runtime_error ||
        !new.memory_error) {
        *missing = "_Py_NoneStruct";
        return false;
    }
    api = new;
    return true;
}

struct search {
    const char *missing;
    bool seen; /* a library that has a part of it */
};

static int look_into(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct search *search = context;
    if (!info->dlpi_name || !info->dlpi_name[0])
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!handle)
        return 0;
    const char *missing = NULL;
    bool taken = false;
    if (dlsym(handle, "Py_IsInitialized")) {
        search->seen = true;
        taken = take(handle, &missing) && api.Py_IsInitialized();
        if (missing)
            search->missing = missing;
    }
    dlclose(handle); /* it stays loaded: NOLOAD only counted it */
    return taken;
}

static bool find(struct prb_error *err)
{
    const char *missing = NULL;
    if (take(RTLD_DEFAULT, &missing) && api.Py_IsInitialized())
        return true;
    struct search search = {0};
    if (dl_iterate_phdr(look_into, &search))
        return true;
    if (search.missing)
        return prb_fail(err, PRB_UNSUPPORTED, "the interpreter in this process has no %s",
                        search.missing);
    if (search.seen || api.Py_IsInitialized)
        return prb_fail(err, PRB_NOT_PYTHON, "the interpreter in this process has not started");
    return prb_fail(
        err, PRB_NOT_PYTHON,
        "no library of this process, nor its program, lets Python's functions be found by name");
}

const struct prb_py_api *prb_py_api(struct prb_error *err)
{
    if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&finding);
        bool ok = found || find(err);
        __atomic_store_n(&found, ok, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&finding);
        if (!ok)
            return NULL;
    }
    if (!api.Py_IsInitialized())
        return PRB_NULL(prb_fail(err, PRB_GONE, "the interpreter in this process has ended"));
    return &api;
}

void prb_py_drop(struct prb_py *object)
{
    if (object)
        api.Py_DecRef(object);
}

/* ---- the GIL of a program with one thread ---- */

#define MAKE_GIL_S 0.2 /* a thread that computes comes by far sooner */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made;
PRB_CLOCK_COND(made)

/* On the main thread, between two instructions. */
static int make_gil(void *context)
{
    (void)context;
    api.PyEval_InitThreads();
    pthread_mutex_lock(&making);
    pthread_cond_broadcast(&made);
    pthread_mutex_unlock(&making);
    return 0;
}

bool prb_py_make_gil(const struct prb_py_api *py, struct prb_error *err)
{
    if (!py->PyEval_ThreadsInitialized || !py->PyEval_InitThreads || !py->Py_AddPendingCall ||
        py->PyEval_ThreadsInitialized())
        return true;
    struct timespec until = prb_clock_in(MAKE_GIL_S);
    pthread_mutex_lock(&making);
    bool asked = py->Py_AddPendingCall(make_gil, NULL) == 0;
    while (asked && !py->PyEval_ThreadsInitialized())
        asked = pthread_cond_timedwait(&made, &making, &until) != ETIMEDOUT;
    pthread_mutex_unlock(&making);
    if (py->PyEval_ThreadsInitialized() || !py->_PyThreadState_UncheckedGet)
        return true;
    if (!py->PyInterpreterState_Head || !py->PyInterpreterState_Head())
        return prb_fail(err, PRB_NOT_PYTHON, "the interpreter in this process has not started");
    if (!py->_PyThreadState_UncheckedGet())
        return true; /* one that waits in native code asks for the GIL when it comes back */
    return prb_fail(err, PRB_BUSY,
                    "the program's only thread is in native code that keeps the interpreter");
}

void prb_py_forked(void)
{
    pthread_mutex_init(&finding, NULL);
    pthread_mutex_init(&making, NULL);
    prb_clock_cond_init(&made);
}

struct prb_py *prb_py_nothing(void)
{
    if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE))
        return NULL;
    api.Py_IncRef(api.none);
    return api.none;
}

bool prb_py_finalizing(const struct prb_py_api *py)
{
    if (py->is_finalizing)
        return py->is_finalizing();
    return py->finalizing && *py->finalizing;
}

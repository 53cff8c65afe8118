/*
 * How soon a job gets the GIL.  A thread that computes gives it up only after another one has waited
 * for the switch interval (5 ms), and any of those that wait may be next: in a program of many such
 * threads a pause would wait for them all.  While an urgent job waits, the interval is short.
 *
 * The interval is a word of the interpreter's data that every waiting thread reads again
 * (take_gil() in Python/ceval_gil.*).  It is found by its value, and by what
 * sys.setswitchinterval() changes; where it is not found for sure, nothing is done.  No layout file
 * has its address: before 3.7 it is a static variable without a symbol, and later its place in
 * _PyRuntime or in the interpreter is none of the fields that debuggers are given.
 */
#include "inject/probe/python/switch_interval.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "inject/probe/python/job.h"

#define SHORT_US 100u
#define CHANGE_US 3u /* for the search */
#define CANDIDATES_MAX 64u

typedef _Atomic(unsigned long) interval_word;

static struct {
    pthread_mutex_t lock; /* of count and usual */
    bool looked;          /* GIL */
    _Atomic(interval_word *) word;
    unsigned count;
    unsigned long usual; /* 0: the word is as it was */
} interval = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the word ---- */

struct search {
    uintptr_t inside; /* an address of the object that is searched */
    unsigned long value;
    interval_word *found[CANDIDATES_MAX];
    size_t count;
};

static void search_segment(struct search *search, uintptr_t start, size_t size)
{
    uintptr_t step = sizeof(interval_word);
    for (uintptr_t at = (start + step - 1) / step * step; at + step <= start + size; at += step) {
        interval_word *word = (interval_word *)at;
        if (atomic_load_explicit(word, memory_order_relaxed) != search->value)
            continue;
        if (search->count < CANDIDATES_MAX)
            search->found[search->count] = word;
        search->count++;
    }
}

static int search_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct search *search = context;
    bool is = false;
    for (int i = 0; i < info->dlpi_phnum && !is; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        is = segment->p_type == PT_LOAD &&
             search->inside - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz;
    }
    for (int i = 0; i < info->dlpi_phnum && is; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W))
            search_segment(search, info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
    }
    return is;
}

static bool get_seconds(const struct prb_py_api *py, double *seconds_out)
{
    struct prb_py *get = py->PySys_GetObject("getswitchinterval");
    PRB_AUTO(prb_py) struct prb_py *result = get ? py->PyObject_CallObject(get, NULL) : NULL;
    if (result)
        *seconds_out = py->PyFloat_AsDouble(result);
    return result && !py->PyErr_Occurred() && *seconds_out > 0 && *seconds_out < 1e6;
}

static bool set_seconds(const struct prb_py_api *py, double seconds)
{
    struct prb_py *set = py->PySys_GetObject("setswitchinterval");
    PRB_AUTO(prb_py) struct prb_py *value = py->PyFloat_FromDouble(seconds);
    PRB_AUTO(prb_py) struct prb_py *args = set && value ? py->PyTuple_Pack(1, value) : NULL;
    PRB_AUTO(prb_py) struct prb_py *done = args ? py->PyObject_CallObject(set, args) : NULL;
    return done;
}

/* Of the words that have the interval's value the one that changes with it. */
static interval_word *changed(const struct prb_py_api *py, const struct search *search,
                              double seconds)
{
    interval_word *found = NULL;
    size_t count = 0;
    bool set = set_seconds(py, seconds + CHANGE_US / 1e6);
    for (size_t i = 0; set && i < search->count; i++) {
        unsigned long by = atomic_load(search->found[i]) - search->value;
        if (by == CHANGE_US || by == CHANGE_US - 1) {
            found = search->found[i];
            count++;
        }
    }
    if (count == 1)
        atomic_store(found, search->value);
    else if (set)
        set_seconds(py, seconds);
    return count == 1 ? found : NULL;
}

void prb_switch_interval_find(const struct prb_py_api *py)
{
    double seconds;
    if (interval.looked)
        return;
    interval.looked = true;
    if (get_seconds(py, &seconds)) {
        struct search search = {.inside = (uintptr_t)py->Py_IsInitialized,
                                .value = (unsigned long)(seconds * 1e6 + 0.5)};
        void *saved = py->PyEval_SaveThread();
        dl_iterate_phdr(search_object, &search);
        py->PyEval_RestoreThread(saved);
        prb_py_gil_acquired(py);
        if (search.count && search.count <= CANDIDATES_MAX)
            interval.word = changed(py, &search, seconds);
    }
    py->PyErr_Clear();
}

/* ---- its use ---- */

bool prb_switch_interval_known(void) { return interval.word != NULL; }

void prb_switch_interval_shorten(bool on)
{
    interval_word *word = interval.word;
    if (!word)
        return;
    pthread_mutex_lock(&interval.lock);
    bool first = on && interval.count++ == 0;
    bool last = !on && interval.count && --interval.count == 0;
    unsigned long now = atomic_load(word);
    if (first && now > SHORT_US) {
        interval.usual = now;
        atomic_store(word, SHORT_US);
    }
    if (last && interval.usual) {
        unsigned long ours = SHORT_US; /* the program may have set another one meanwhile */
        atomic_compare_exchange_strong(word, &ours, interval.usual);
        interval.usual = 0;
    }
    pthread_mutex_unlock(&interval.lock);
}

void prb_switch_interval_forked(void)
{
    pthread_mutex_init(&interval.lock, NULL);
    interval_word *word = interval.word;
    unsigned long ours = SHORT_US;
    if (word && interval.usual)
        atomic_compare_exchange_strong(word, &ours, interval.usual);
    interval.count = 0;
    interval.usual = 0;
}

/* What marks our own doings to those who look at the program: threads, and exceptions. */
#include <pthread.h>
#include <stdint.h>

#include "inject/probe/python/api.h"

static pthread_key_t inside_key;
static pthread_once_t inside_once = PTHREAD_ONCE_INIT;

static void make_key(void) { pthread_key_create(&inside_key, NULL); }

void prb_py_inside(int change)
{
    pthread_once(&inside_once, make_key);
    intptr_t depth = (intptr_t)pthread_getspecific(inside_key);
    pthread_setspecific(inside_key, (void *)(depth + change));
}

bool prb_py_is_inside(void)
{
    pthread_once(&inside_once, make_key);
    return pthread_getspecific(inside_key) != NULL;
}

struct prb_py *prb_py_interruption(const struct prb_py_api *py)
{
    static struct prb_py *made; /* never freed; with the GIL */
    if (!made)
        made = py->PyErr_NewException("probing.Interrupted", *py->keyboard_interrupt, NULL);
    if (made)
        return made;
    py->PyErr_Clear();
    return *py->keyboard_interrupt;
}

/*
 * Preloaded: a program that destroys read-write locks at its end, while threads that it began run still, is ended by SIGABRT.
 * Those of libcrypto are what is meant: a thread of libnats that takes one then reads freed memory, once in many thousand runs.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_bool ends;

static void end(void) { ends = true; }

/* What is registered last runs first: a thread that listens begins after the login, by which libcrypto's own is
 * registered. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *out,
                                                          const pthread_attr_t *attributes,
                                                          void *(*function)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    atexit(end);
    return real(out, attributes, function, argument);
}

__attribute__((visibility("default"))) int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
    int (*real)(pthread_rwlock_t *) = dlsym(RTLD_NEXT, "pthread_rwlock_destroy");
    if (ends)
        abort();
    return real(lock);
}

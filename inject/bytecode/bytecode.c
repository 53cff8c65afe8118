/* Byte code for one attach: see bytecode.h. */
#include "inject/bytecode/bytecode.h"

#include <pthread.h>
#include <signal.h>

#include "inject/bytecode/cache.h"
#include "inject/bytecode/run.h"

struct prb_bytecode {
    pid_t pid;
    uint64_t key;
    bool runs;
    pthread_t maker;
    struct prb_buf blob;
};

static void *make(void *context)
{
    struct prb_bytecode *bytecode = context;
    bool ours = false;
    if (prb_bytecode_make(bytecode->pid, &bytecode->blob, &ours) && ours)
        prb_bytecode_store(bytecode->key, &bytecode->blob);
    return NULL;
}

struct prb_bytecode *prb_bytecode_begin(pid_t pid)
{
    PRB_AUTO(prb_bytecode) struct prb_bytecode *bytecode = calloc(1, sizeof *bytecode);
    if (!bytecode)
        return NULL;
    bytecode->pid = pid;
    bytecode->key = prb_bytecode_key(pid);
    if (!bytecode->key)
        return NULL;
    if (prb_bytecode_load(bytecode->key, &bytecode->blob))
        return PRB_STEAL(bytecode);
    /* Ctrl-Z must not stop us while another of our threads has a thread of the target stopped. */
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP), sigaddset(&stops, SIGTTIN), sigaddset(&stops, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    bytecode->runs = pthread_create(&bytecode->maker, NULL, make, bytecode) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return PRB_STEAL(bytecode);
}

const struct prb_buf *prb_bytecode_wait(struct prb_bytecode *bytecode)
{
    if (bytecode->runs)
        pthread_join(bytecode->maker, NULL);
    bytecode->runs = false;
    return &bytecode->blob;
}

void prb_bytecode_free(struct prb_bytecode *bytecode)
{
    prb_bytecode_wait(bytecode);
    prb_buf_deinit(&bytecode->blob);
    free(bytecode);
}

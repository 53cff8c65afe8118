/* See method.h. */
#include "inject/probe/torch/method.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject/probe/torch/frames.h"

#define NAME_MAX_ 32

static struct prb_torch_method *method_at(const struct prb_py *object, int32_t words)
{
    int32_t at = PRB_OFF(prb_torch_layout(), object, size) + words * (int32_t)sizeof(void *);
    return (struct prb_torch_method *)(uintptr_t)prb_torch_word((const char *)object, at);
}

struct prb_torch_method *prb_torch_method_of_descriptor(const struct prb_py *descriptor)
{
    return method_at(descriptor, 3);
}

struct prb_torch_method *prb_torch_method_of_function(const struct prb_py *function)
{
    return method_at(function, 0);
}

static bool read_own(const void *from, void *out, size_t len)
{
    struct iovec here = {out, len}, there = {(void *)(uintptr_t)from, len};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)len;
}

/* The same words, back to where they are. */
static bool is_writable(struct prb_torch_method *candidate, const struct prb_torch_method *copy)
{
    struct iovec here = {(void *)(uintptr_t)&copy->call, sizeof copy->call},
                 there = {(void *)(uintptr_t)&candidate->call, sizeof copy->call};
    return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof copy->call;
}

bool prb_torch_method_is(struct prb_torch_method *candidate, const char *name)
{
    struct prb_torch_method copy;
    char text[NAME_MAX_] = "";
    size_t len = strlen(name) + 1;
    return len <= sizeof text && read_own(candidate, &copy, sizeof copy) &&
           read_own(copy.name, text, len) && strcmp(text, name) == 0 && copy.call &&
           is_writable(candidate, &copy);
}

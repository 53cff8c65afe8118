/*
 * LD_PRELOAD=libprobe.so: the one constructor of the library that starts something.  It does nothing
 * unless the library was preloaded, the program is a Python interpreter and the environment asks for a probe:
 * everything else that is started with the same environment (shells, compilers) is left alone.  A
 * program with more rights than its caller (AT_SECURE) obeys no variable of his, whoever got the
 * library into it; -I and -E mean Python's own variables, and the preloaded library runs already.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "inject/probe/start.h"

static bool is_on(const char *value) { return value && *value && strcmp(value, "0") != 0; }

/* The forms of PROBING that need no look at the program; the others are the start-up hook's. */
static bool probing_says_so(const char *value)
{
    static const char *const forms[] = {"1", "followed", "2", "nested"};
    const char *plus = value ? strrchr(value, '+') : NULL;
    if (value && !strncmp(value, "init:", 5) && plus)
        value = plus + 1;
    for (size_t i = 0; value && i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(value, forms[i]))
            return true;
    return false;
}

static bool is_wanted(void)
{
    static const char *const names[] = {"PROBE", "PROBE_PPROF", "PROBE_ADDR", "PROBE_BG",
                                        "PROBE_TORCH_EXPRS"};
    const char *preloaded = getenv("LD_PRELOAD");
    if (!preloaded || !strstr(preloaded, "libprobe"))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_on(getenv(names[i])))
            return true;
    return probing_says_so(getenv("PROBING"));
}

/* PROBING=1 means this process and not what it starts. */
static void end_inheritance(void)
{
    const char *value = getenv("PROBING"), *preloaded = getenv("LD_PRELOAD");
    if (!value || (strcmp(value, "1") && strcmp(value, "followed")))
        return;
    unsetenv("PROBING");
    if (preloaded && !strpbrk(preloaded, " :"))
        unsetenv("LD_PRELOAD");
}

__attribute__((constructor)) static void preload(void)
{
    struct prb_probe_call call = {
        .version = PRB_PROBE_START_VERSION, .size = sizeof call, .how = PRB_HOW_PRELOAD};
    if (getauxval(AT_SECURE) || !is_wanted() || !dlsym(RTLD_DEFAULT, "Py_GetVersion"))
        return;
    prb_probe_start(&call); /* a failure could not be reported */
    end_inheritance();
}

/*
 * A program that has the probe first, then loads libpython for itself alone, as programs with
 * plug-ins do, and begins it at a line of input: embed LIBPROBE LIBPYTHON.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "inject/probe/start.h"

int main(int argc, char **argv)
{
    void *probe = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *python = probe ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!python) {
        fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "embed LIBPROBE LIBPYTHON");
        return 1;
    }
    int (*start)(struct prb_probe_call *) = dlsym(probe, "prb_probe_start");
    struct prb_probe_call call = {
        .version = PRB_PROBE_START_VERSION, .size = sizeof call, .how = "import"};
    if (start(&call) != 0) {
        fprintf(stderr, "%s\n", call.error);
        return 1;
    }
    puts("ready");
    fflush(stdout);
    getchar();
    void (*begin)(void) = dlsym(python, "Py_Initialize");
    void *(*let_go)(void) = dlsym(python, "PyEval_SaveThread");
    begin();
    let_go();
    puts("begun");
    fflush(stdout);
    pause();
    return 0;
}

/*
 * Has byte code made for a process: PID; "made SIZE VERSION", with " ours" when it may be kept, or
 * "none".  With any other words it sits there for ever, as an interpreter that is none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/bytecode/run.h"
#include "inject/probe/bytecode_form.h"

int main(int argc, char **argv)
{
    PRB_AUTO(prb_buf) struct prb_buf blob = {0};
    pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
    bool ours = false;
    if (pid <= 0) {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
    if (!prb_bytecode_make(pid, &blob, &ours)) {
        puts("none");
        return 0;
    }
    size_t len;
    const char *version = prb_bytecode_version(blob.data, &len);
    printf("made %zu %.*s%s\n", blob.len, (int)len, version, ours ? " ours" : "");
    return 0;
}

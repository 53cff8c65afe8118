/*
 * Has byte code made for a process: PID; "made SIZE VERSION", with " ours" when it may be kept, or
 * "none".  With any other words it sits there for ever, as an interpreter that is none; with those
 * that an interpreter is given it first tries what it should not be able to, and tells what came of
 * it as its name: "key+ fork-", and a process that it could begin is "escaped".
 */
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/bytecode/run.h"
#include "inject/probe/python/bytecode_form.h"

static void try_to_escape(void)
{
    bool key =
        syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "prb-test", 0) > 0;
    pid_t pid = fork();
    char name[16];
    if (pid == 0) {
        setsid();
        prctl(PR_SET_NAME, "escaped");
        for (;;)
            pause();
    }
    snprintf(name, sizeof name, "key%c fork%c", key ? '+' : '-', pid > 0 ? '+' : '-');
    prctl(PR_SET_NAME, name);
}

int main(int argc, char **argv)
{
    PRB_AUTO(prb_buf) struct prb_buf blob = {0};
    pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
    bool ours = false;
    if (pid <= 0) {
        puts("ready");
        fflush(stdout);
        if (argc > 3)
            try_to_escape();
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

/*
 * The page that the tracer, the stub and the new thread share: what to call with which arguments,
 * the progress, and the result.  The stub's code stands before it.  The stubs' assembly
 * includes this file for the offsets.
 */
#ifndef PRB_INJECT_STUB_H
#define PRB_INJECT_STUB_H

#define PRB_STUB_PAGE 4096 /* bytes of the shared page, and at most of the code */

/* Bytes from the code to the shared page, and from there to scratch memory: each has rights of its
 * own, so this is the largest page that kernels of the processor have. */
#define PRB_STUB_APART_X86_64 4096
#define PRB_STUB_APART_AARCH64 65536

#define PRB_STUB_STEP 0
#define PRB_STUB_PROGRESS 4
#define PRB_STUB_GO 8
#define PRB_STUB_FLAGS 12
#define PRB_STUB_CREATED 16
#define PRB_STUB_DESCRIPTOR 20
#define PRB_STUB_RESULT 24
#define PRB_STUB_LEFT 28
#define PRB_STUB_CLOCK 32
#define PRB_STUB_PATIENCE 40
#define PRB_STUB_OPEN_MODE 44
#define PRB_STUB_PTHREAD_CREATE 48
#define PRB_STUB_PTHREAD_SELF 56
#define PRB_STUB_PTHREAD_DETACH 64
#define PRB_STUB_DLOPEN 72
#define PRB_STUB_DLSYM 80
#define PRB_STUB_DLERROR 88
#define PRB_STUB_ENTRY 96
#define PRB_STUB_BLOCK_MASK 104
#define PRB_STUB_MASK_PLACE 112
#define PRB_STUB_MASK 120
#define PRB_STUB_XMASK 128
#define PRB_STUB_XSTATE 136
#define PRB_STUB_FRAME 144
#define PRB_STUB_SCRATCH 152
#define PRB_STUB_SCRATCH_LEN 160
#define PRB_STUB_THREAD 168
#define PRB_STUB_NAP 176
#define PRB_STUB_REGISTERS 192
#define PRB_STUB_CALL 320
#define PRB_STUB_SYMBOL 608
#define PRB_STUB_MEMFD_NAME 640
#define PRB_STUB_HOW 672
#define PRB_STUB_THREAD_NAME 688
#define PRB_STUB_TEXT 704
#define PRB_STUB_TEXT_MAX 512
#define PRB_STUB_PATH 1216
#define PRB_STUB_PATH_MAX 1024
#define PRB_STUB_MUNMAP 2240
#define PRB_STUB_SETTINGS 2248
#define PRB_STUB_SETTINGS_MAX 1848

/* flags */
#define PRB_STUB_FETCH 1 /* make a memory file and wait for go, then open path */
#define PRB_STUB_START 2 /* find the symbol and call it */

/* go: the tracer */
#define PRB_STUB_PATH_IS_THERE 1 /* path is to be opened */
#define PRB_STUB_OVER 2          /* the result was read, and the borrowed thread has left */

/* step: the borrowed thread */
#define PRB_STUB_CALLING 1  /* it runs the stub */
#define PRB_STUB_RETURNED 2 /* see created */

/* progress: the new thread */
#define PRB_STUB_BEGAN 1
#define PRB_STUB_WAITS 2 /* for go: descriptor is its memory file, or a negative errno */
#define PRB_STUB_OPENS 3 /* the file that go announced */
#define PRB_STUB_DONE 4
#define PRB_STUB_NOT_OPENED 5 /* see text */
#define PRB_STUB_NO_SYMBOL 6  /* see text */
#define PRB_STUB_TIMED_OUT 7  /* go never came */

/* Naps for which the new thread waits for the tracer: about 10 s. */
#define PRB_STUB_PATIENCE_NAPS 100000
#define PRB_STUB_NAP_NS 100000

#ifndef __ASSEMBLER__
#include <stddef.h>

#include "inject/probe/start.h"
#include "probing.h"

struct prb_stub_page {
    uint32_t step, progress, go, flags;
    int32_t created;    /* what pthread_create returned: 0 or an errno */
    int32_t descriptor; /* -1: none */
    int32_t result;     /* of the symbol's function */
    uint32_t left;      /* 1: the borrowed thread is about to leave, or has left */
    uint64_t clock;     /* the CPU's counter when the thread was about to return */
    uint32_t patience;  /* naps until the new thread gives up */
    uint32_t open_mode; /* dlopen(3) */
    prb_addr pthread_create, pthread_self, pthread_detach;
    prb_addr dlopen, dlsym, dlerror; /* dlerror 0: none */
    prb_addr entry;                  /* 0: open the path first */
    uint64_t block_mask;             /* signals, bit N - 1 for signal N */
    prb_addr mask_place;             /* where the thread's own mask is saved meanwhile */
    uint64_t mask;
    uint64_t xmask; /* state components of the image at xstate */
    prb_addr xstate;
    prb_addr frame; /* of rt_sigreturn(2); 0: return to the system call by registers */
    prb_addr scratch;
    uint64_t scratch_len;
    uint64_t thread; /* pthread_t */
    int64_t nap[2];  /* struct timespec */
    uint64_t registers[16];
    struct prb_probe_call call;
    char symbol[32], memfd_name[32], how[16], thread_name[16];
    char text[PRB_STUB_TEXT_MAX];
    char path[PRB_STUB_PATH_MAX];
    prb_addr munmap;
    char settings[PRB_STUB_SETTINGS_MAX];
};

#define AT(member, offset)                                                                         \
    _Static_assert(offsetof(struct prb_stub_page, member) == (offset), #member)
AT(step, PRB_STUB_STEP);
AT(progress, PRB_STUB_PROGRESS);
AT(left, PRB_STUB_LEFT);
AT(clock, PRB_STUB_CLOCK);
AT(open_mode, PRB_STUB_OPEN_MODE);
AT(pthread_create, PRB_STUB_PTHREAD_CREATE);
AT(dlerror, PRB_STUB_DLERROR);
AT(entry, PRB_STUB_ENTRY);
AT(block_mask, PRB_STUB_BLOCK_MASK);
AT(mask_place, PRB_STUB_MASK_PLACE);
AT(frame, PRB_STUB_FRAME);
AT(thread, PRB_STUB_THREAD);
AT(nap, PRB_STUB_NAP);
AT(registers, PRB_STUB_REGISTERS);
AT(call, PRB_STUB_CALL);
AT(symbol, PRB_STUB_SYMBOL);
AT(thread_name, PRB_STUB_THREAD_NAME);
AT(text, PRB_STUB_TEXT);
AT(path, PRB_STUB_PATH);
AT(munmap, PRB_STUB_MUNMAP);
AT(settings, PRB_STUB_SETTINGS);
_Static_assert(sizeof(struct prb_stub_page) == PRB_STUB_PAGE, "a page");
#undef AT
#endif

#endif

/*
 * Target memory: one read interface, whatever the source.
 *
 * A source fills as many bytes of each range as it can, in order, and says how many: a short
 * read is a fact, not an error.  The wrappers below turn it into an error where all bytes are
 * needed.
 *
 * To add a source: a file mem/NAME.c with a constant struct prb_mem_ops and a prb_mem_NAME_new()
 * declared here, its name in mem/local.mk, and a case in tests/unit/mem.c.
 */
#ifndef PRB_MEM_MEM_H
#define PRB_MEM_MEM_H

#include "base/cleanup.h"
#include "base/error.h"

/* len bytes wanted at addr, to buf; got: how many came, from the start of the range (0 … len). */
struct prb_range {
    prb_addr addr;
    void *buf;
    size_t len, got;
};

struct prb_mem;

struct prb_mem_ops {
    const char *name; /* "process", "core", … */
    /* Set got of every range.  False only when the source itself is lost (GONE, PERMISSION), not
     * for bad addresses. */
    bool (*readv)(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                  struct prb_error *err);
    void (*free)(struct prb_mem *mem);
};

/* First member of every source. */
struct prb_mem {
    const struct prb_mem_ops *ops;
    uint64_t calls, bytes; /* how often and how much was read, for figures */
};

/* Read all ranges; true when every byte of every range came.  False with FAULT: got says how many
 * came; other codes: the source is lost. */
bool prb_mem_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                   struct prb_error *err);
/* The same, but the caller checks got for short reads; false only when the source is lost. */
bool prb_mem_readv_some(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                        struct prb_error *err);
/* Read len bytes, all or FAULT. */
bool prb_mem_read(struct prb_mem *mem, prb_addr addr, void *buf, size_t len, struct prb_error *err);
/* Read up to len bytes; returns how many came (0: none). */
size_t prb_mem_read_some(struct prb_mem *mem, prb_addr addr, void *buf, size_t len);
/* Little-endian words. */
bool prb_mem_u64(struct prb_mem *mem, prb_addr addr, uint64_t *out, struct prb_error *err);
bool prb_mem_u32(struct prb_mem *mem, prb_addr addr, uint32_t *out, struct prb_error *err);
/* A NUL-terminated string of at most cap - 1 bytes, cut there. */
bool prb_mem_string(struct prb_mem *mem, prb_addr addr, char *out, size_t cap,
                    struct prb_error *err);

void prb_mem_free(struct prb_mem *mem);
PRB_DEFINE_AUTO_PTR(prb_mem, struct prb_mem, prb_mem_free)

/* Another process: process_vm_readv, or /proc/PID/mem where the kernel lacks or forbids it
 * (gVisor, seccomp). */
struct prb_mem *prb_mem_process_new(pid_t pid, struct prb_error *err);
/* The fallback by itself. */
struct prb_mem *prb_mem_process_file_new(pid_t pid, struct prb_error *err);
/* This process, read through the kernel, so that a stale pointer is a short read. */
struct prb_mem *prb_mem_self_new(struct prb_error *err);
/* A function of the caller: returns how many bytes it put into buf, as gdb's plugin does. */
typedef size_t prb_mem_fn(void *context, prb_addr addr, void *buf, size_t len);
struct prb_mem *prb_mem_callback_new(prb_mem_fn *read, void *context, struct prb_error *err);

/* An ELF core file (and so a snapshot): see mem/core.h for what else it knows. */

/*
 * Wraps a source, which it does not own, and remembers every page that was read, with the bytes
 * of the latest reading: what a snapshot is made of.
 */
struct prb_mem *prb_mem_record_new(struct prb_mem *inner, struct prb_error *err);
/* OFF: reads pass through, nothing is remembered any more.  STILL: pages that are known are read
 * from memory, as they were last read; others come as they are now, and are counted. */
enum prb_record_mode { PRB_RECORD_OFF, PRB_RECORD_ON, PRB_RECORD_STILL };
void prb_mem_record_set(struct prb_mem *record, enum prb_record_mode mode); /* a new one is ON */
/* Read every page that is known again, in one go. */
bool prb_mem_record_renew(struct prb_mem *record, struct prb_error *err);
/* How many pages were not known in mode STILL. */
size_t prb_mem_record_late(const struct prb_mem *record);
/* How many pages are recorded, and to forget all but the first so many that were: what was read
 * first counts most. */
size_t prb_mem_record_pages(const struct prb_mem *record);
void prb_mem_record_cut(struct prb_mem *record, size_t pages);
#define PRB_RECORD_PAGE 4096 /* bytes */
/* Zeros instead of what is recorded of [start, end): what must not leave the process. */
void prb_mem_record_blank(struct prb_mem *record, prb_addr start, prb_addr end);
/* The pages recorded, ascending: calls each(context, addr, data, len) for each run of adjacent
 * pages; stops at false. */
bool prb_mem_record_each(struct prb_mem *record,
                         bool (*each)(void *context, prb_addr addr, const void *data, size_t len),
                         void *context);
/* The same to change them in place: change returns whether it did.  False: out of memory. */
bool prb_mem_record_change(struct prb_mem *record,
                           bool (*change)(void *context, void *data, size_t len), void *context);

#endif

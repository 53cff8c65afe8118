/*
 * What is in an ELF core file: segments and notes, core(5), elf(5), and the kernel's
 * fs/binfmt_elf.c for the notes. A snapshot is a core with one note of ours.
 */
#ifndef PRB_PROC_CORE_FILE_H
#define PRB_PROC_CORE_FILE_H

#include "arch/arch.h"
#include "mem/core.h"
#include "proc/source.h"

/* Segments, notes and mapped files of one core: max_map_count can be raised, but not beyond reason.
 */
#define PRB_CORE_SEGMENTS_MAX (1u << 20)
#define PRB_CORE_NOTES_MAX (1u << 30) /* bytes */
#define PRB_CORE_THREADS_MAX 4194304

/* Our own note: texts of /proc and "probing/…" ones, each with a name.  See prb_core_texts_*. */
#define PRB_NOTE_NAME "PROBING"
#define PRB_NOTE_TEXTS 1

struct prb_core_segment {
    prb_addr addr;
    uint64_t memory_len, file_len, offset;
    bool readable, writable, executable;
};

/* A thread, NT_PRSTATUS. */
struct prb_core_thread {
    pid_t tid;
    int signal;               /* pr_cursig: what ended the process; 0: none */
    uint64_t utime, stime;    /* microseconds */
    const uint8_t *registers; /* the kernel's register set */
    size_t registers_len;
};

/* A mapped file, NT_FILE. */
struct prb_core_mapped {
    prb_addr start, end;
    uint64_t offset; /* bytes */
    const char *path;
};

struct prb_core_file {
    const struct prb_arch *arch;
    struct prb_core_segment *segments; /* ascending */
    size_t segment_count;
    struct prb_core_thread *threads; /* in the order of the file: the one that crashed first */
    size_t thread_count, thread_cap;
    struct prb_core_mapped *mapped;
    size_t mapped_count;
    pid_t pid;
    char state;              /* 0: unknown */
    char name[17], args[81]; /* NT_PRPSINFO: comm, and the start of the command line */
    const uint8_t *auxv;     /* NT_AUXV */
    size_t auxv_len;
    const uint8_t *texts; /* our note; NULL: no snapshot */
    size_t texts_len;
    uint8_t *notes; /* the bytes that the pointers above point to */
    struct prb_arena arena;
};

/* Read fd; name is for messages. */
bool prb_core_file_read(int fd, const char *name, struct prb_core_file *out, struct prb_error *err);
void prb_core_file_deinit(struct prb_core_file *core);
PRB_DEFINE_AUTO(prb_core_file, struct prb_core_file, prb_core_file_deinit)
/* A word of the auxiliary vector, getauxval(3); 0 when it is not there. */
uint64_t prb_core_auxv(const struct prb_core_file *core, uint64_t type);
/* Text as /proc/PID/maps would be, from segments and mapped files. */
bool prb_core_maps_text(const struct prb_core_file *core, struct prb_buf *out,
                        struct prb_error *err);

/* Arguments and environment as /proc/PID/cmdline and environ have them; false when the core's
 * memory does not show them. */
bool prb_core_arguments(const struct prb_core_file *core, struct prb_mem *mem,
                        struct prb_buf *arguments, struct prb_buf *environment);
/* The build id of the ELF file whose first page is mapped at start, read from memory by `read`; its
 * length, or 0. */
size_t prb_core_build_id(prb_mem_fn *read, void *context, prb_addr start, uint8_t out[64]);
/* Names of texts that only snapshots have. */
#define PRB_TEXT_INFO "probing/info" /* "time 1700000000.5\n" and the like */
#define PRB_SNAPSHOT_FORMAT                                                                        \
    1 /* its line "format": raised when an older reader would read wrongly */
#define PRB_TEXT_REGISTERS "probing/registers" /* lines "TID MASK": which registers are known */
#define PRB_TEXT_BUILD_IDS                                                                         \
    "probing/build-ids" /* lines "START HEX": of the modules mapped there                          \
                         */

/* Texts as a note's contents, and back: each is saved in proc. */
void prb_core_texts_write(const struct prb_proc *proc, struct prb_buf *out);
bool prb_core_texts_read(struct prb_proc *proc, const uint8_t *data, size_t len,
                         struct prb_error *err);

#endif

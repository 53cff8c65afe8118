/* A core file or snapshot: opened, and asked everything. */
#include <stdint.h>

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/elf.h"

static void ask(struct prb_proc *proc)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    struct prb_registers registers;
    uint8_t bytes[8192];
    const struct prb_maps *maps = prb_proc_maps(proc, false, NULL);
    struct prb_mem *mem = prb_proc_mem(proc, NULL);
    if (prb_proc_tasks(proc, &tasks, NULL))
        prb_proc_registers(proc, tasks.items[tasks.count - 1].tid, &registers, NULL);
    for (size_t i = 0; maps && mem && i < maps->count && i < 8; i++)
        prb_mem_read_some(mem, maps->items[i].end - 4096, bytes, sizeof bytes);
    if (maps && prb_modules_init(&modules, proc, NULL) && modules.count)
        prb_modules_elf(&modules, &modules.items[0], NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char path[64];
    int fd = memfd_create("core", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        __builtin_trap();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct prb_proc *proc = prb_proc_open_core(path, NULL, NULL, NULL);
    if (proc)
        ask(proc);
    prb_proc_free(proc);
    close(fd);
    return 0;
}

/* An ELF file of the target. */
#include <stdint.h>

#include <sys/mman.h>
#include <unistd.h>

#include "proc/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const names[] = {"first", "_PyRuntime", "malloc", ""};
    int fd = memfd_create("elf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        __builtin_trap();
    PRB_AUTO(prb_elf) struct prb_elf *elf = prb_elf_open(fd, "fuzz", NULL);
    if (!elf)
        return 0;
    struct prb_symbol symbol, named[4];
    uint64_t addr, size;
    uint8_t id[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        prb_elf_symbol(elf, names[i], &symbol, NULL);
    prb_elf_name(elf, (uint64_t[]){0x1000, 0x10110, 0x10200, UINT64_MAX}, 4, named);
    prb_elf_section(elf, ".PyRuntime", &addr, &size);
    prb_elf_eh_frame_hdr(elf, &addr, &size);
    prb_elf_bias(elf, 0x7f0000000000, 0x1000, true, &addr);
    if (prb_elf_build_id(elf, id) > sizeof id)
        __builtin_trap();
    return 0;
}

/*
 * Where the unwind tables are: .eh_frame_hdr of each module and of the vdso, found by the program
 * headers that lie in the target's memory, so that no file need be opened (deleted files,
 * containers, the vdso); if they cannot be read there, by the file's.  Format: LSB Core, "Exception
 * Frames", section 10.6.2; values are checked before use.
 */
#include <elf.h>
#include <string.h>

#include "native/unwinder.h"

#define PROGRAM_HEADERS_MAX 64

/* Pointer encodings of .eh_frame_hdr that linkers write: DW_EH_PE_* of the LSB. */
enum { EH_UDATA4 = 0x03, EH_DATAREL_SDATA4 = 0x3b };

/* Read the header at addr (size bytes long) and note where its search table is. */
static void read_header(struct prb_unwinder *u, prb_addr addr, uint64_t size,
                        struct prb_unwind_table *table)
{
    struct {
        uint8_t version, frame_encoding, count_encoding, table_encoding;
        uint32_t frame, count;
    } head;
    if (size < sizeof head || !prb_unwinder_read(u, addr, &head, sizeof head))
        return;
    if (head.version != 1 || head.count_encoding != EH_UDATA4 ||
        head.table_encoding != EH_DATAREL_SDATA4)
        return;
    /* Other encodings of the first pointer would move what follows. */
    unsigned format = head.frame_encoding & 0x0f;
    if (format != EH_UDATA4 && format != 0x0b)
        return;
    uint64_t room = (size - sizeof head) / 8;
    table->header = addr;
    table->entries = addr + sizeof head;
    table->count = head.count < room ? head.count : room;
}

/* The ELF image whose first byte is mapped at start, by what is there. */
static bool by_memory(struct prb_unwinder *u, prb_addr start, struct prb_unwind_table *table)
{
    Elf64_Ehdr head;
    Elf64_Phdr program[PROGRAM_HEADERS_MAX];
    if (!prb_unwinder_read(u, start, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof *program ||
        head.e_phnum > PROGRAM_HEADERS_MAX || head.e_phoff > PRB_PAGE ||
        !prb_unwinder_read(u, start + head.e_phoff, program, head.e_phnum * sizeof *program))
        return false;
    uint64_t bias = 0;
    const Elf64_Phdr *found = NULL;
    bool biased = false;
    for (size_t i = 0; i < head.e_phnum; i++) {
        if (program[i].p_type == PT_LOAD && program[i].p_offset == 0) {
            bias = start - program[i].p_vaddr;
            biased = true;
        }
        if (program[i].p_type == PT_GNU_EH_FRAME)
            found = &program[i];
    }
    if (found && biased)
        read_header(u, found->p_vaddr + bias, found->p_memsz, table);
    return biased;
}

static void by_file(struct prb_unwinder *u, struct prb_module *module,
                    struct prb_unwind_table *table)
{
    struct prb_elf *elf = prb_modules_elf(u->modules, module, NULL);
    uint64_t addr, size;
    if (elf && prb_elf_eh_frame_hdr(elf, &addr, &size))
        read_header(u, addr + module->bias, size, table);
}

static const struct prb_unwind_table *vdso_table(struct prb_unwinder *u, prb_addr pc)
{
    struct prb_unwind_table *table = &u->vdso;
    if (!table->tried) {
        table->tried = true;
        const struct prb_maps *maps = prb_proc_maps(u->modules->proc, false, NULL);
        for (size_t i = 0; maps && i < maps->count; i++)
            if (strcmp(maps->items[i].path, "[vdso]") == 0) {
                table->start = maps->items[i].start;
                table->end = maps->items[i].end;
                by_memory(u, table->start, table);
            }
    }
    return table->header && pc >= table->start && pc < table->end ? table : NULL;
}

const struct prb_unwind_table *prb_unwind_table(struct prb_unwinder *u, prb_addr pc)
{
    struct prb_module *module = prb_modules_find(u->modules, pc);
    if (!module || strcmp(module->path, "[vdso]") == 0)
        return vdso_table(u, pc);
    struct prb_unwind_table *table = &u->tables[module - u->modules->items];
    if (!table->tried) {
        table->tried = true;
        table->start = module->start;
        table->end = module->end;
        if (module->first->offset != 0 || !by_memory(u, module->start, table))
            by_file(u, module, table);
    }
    return table->header ? table : NULL;
}

bool prb_unwind_tables_follow(struct prb_unwinder *u, bool again)
{
    struct prb_proc *proc = u->modules->proc;
    PRB_AUTO(prb_modules) struct prb_modules now = {0};
    if (u->tables) {
        if (!again || !prb_proc_exists(proc))
            return true;
        prb_proc_forget_maps(proc);
        if (!prb_modules_init(&now, proc, NULL))
            return false;
        if (now.code == u->code)
            return true;
    }
    size_t count = u->tables ? now.count : u->modules->count;
    struct prb_unwind_table *tables = calloc(count + 1, sizeof *tables);
    if (!tables)
        return false;
    if (u->tables) {
        struct prb_modules old = u->own;
        u->own = now;
        now = old;
        u->modules = &u->own;
        free(u->tables);
    }
    u->tables = tables;
    u->vdso.tried = false;
    u->code = u->modules->code;
    return true;
}

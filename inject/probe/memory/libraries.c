/*
 * The slots of loaded libraries that hold the address of malloc(3) and the like: relocations
 * JUMP_SLOT and GLOB_DAT (ELF, psABI), found by each object's dynamic section.
 *
 * A slot is changed only where it holds the program's ordinary function, and put back only where it
 * holds ours: nothing needs to be remembered of a library, and one that brings an allocator of its
 * own keeps it.  A slot that is not bound yet (lazy binding) is looked at again once a second.
 *
 * A library that is being loaded is in the loader's list before it is relocated.  So the list is
 * taken twice: what was in it before a call that waits for the loader's lock is complete after that
 * call, and if none was unloaded meanwhile, it is the same library.  Then the page of a slot may be
 * made writable and read-only again (RELRO).
 */
#include "inject/probe/memory/libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define OBJECTS_MAX 4096
#define PENDING_MAX 2048
#define TRIES 3

#ifdef __x86_64__
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#endif
#define TORCH "/libc10.so"

static struct {
    uintptr_t objects[OBJECTS_MAX]; /* complete ones, by where their program headers are */
    unsigned object_count;
    uint64_t adds, subs;           /* the loader's counts when they were taken */
    uint64_t seen_adds, seen_subs; /* and when all slots were looked at last */
    bool scanned;
    uintptr_t *pending[PENDING_MAX]; /* slots that are not bound */
    uint8_t pending_function[PENDING_MAX];
    unsigned pending_count;
    unsigned hooked;            /* libraries */
    uintptr_t torch, torch_end; /* text of libc10 */
} libraries;

/* ---- an object ---- */

static uintptr_t page_bytes(void) { return getauxval(AT_PAGESZ); }
static uintptr_t page_of(uintptr_t at) { return at & ~(page_bytes() - 1); }

struct object {
    uintptr_t base, start, end; /* end: of its last segment */
    uintptr_t relro, relro_end; /* pages that are read-only once it is relocated */
    const ElfW(Sym) * symbols;
    const char *texts;
    const ElfW(Rela) * tables[2];
    size_t counts[2];
};

static uintptr_t absolute(const struct object *object, uintptr_t value)
{
    return value >= object->base ? value : object->base + value;
}

static bool read_dynamic(struct object *object, const ElfW(Dyn) * dynamic)
{
    uintptr_t rela = 0, jump = 0;
    size_t rela_bytes = 0, jump_bytes = 0, relative = 0;
    bool is_rela = true;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            object->symbols = (const void *)absolute(object, value);
            break;
        case DT_STRTAB:
            object->texts = (const void *)absolute(object, value);
            break;
        case DT_RELA:
            rela = absolute(object, value);
            break;
        case DT_RELASZ:
            rela_bytes = value;
            break;
        case DT_RELACOUNT:
            relative = value;
            break;
        case DT_JMPREL:
            jump = absolute(object, value);
            break;
        case DT_PLTRELSZ:
            jump_bytes = value;
            break;
        case DT_PLTREL:
            is_rela = value == DT_RELA;
            break;
        default:
            break;
        }
    }
    object->tables[0] = (const void *)rela;
    object->counts[0] = rela ? rela_bytes / sizeof(ElfW(Rela)) : 0;
    if (relative <= object->counts[0]) { /* they come first, and have no symbol */
        object->tables[0] += relative;
        object->counts[0] -= relative;
    }
    object->tables[1] = (const void *)jump;
    object->counts[1] = jump ? jump_bytes / sizeof(ElfW(Rela)) : 0;
    return object->symbols && object->texts && is_rela;
}

static bool read_object(const struct dl_phdr_info *info, struct object *out)
{
    const ElfW(Dyn) *dynamic = NULL;
    *out = (struct object){.base = info->dlpi_addr, .start = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t at = out->base + header->p_vaddr, end = at + header->p_memsz;
        if (header->p_type == PT_LOAD) {
            out->start = at < out->start ? at : out->start;
            out->end = end > out->end ? end : out->end;
        } else if (header->p_type == PT_DYNAMIC) {
            dynamic = (const void *)at;
        } else if (header->p_type == PT_GNU_RELRO) {
            out->relro = page_of(at);
            out->relro_end = page_of(end);
        }
    }
    return dynamic && read_dynamic(out, dynamic);
}

static bool holds(const struct object *object, uintptr_t address)
{
    return address >= object->start && address < object->end;
}

/* Ours, the loader, libc, and whoever has the allocator itself. */
static bool is_left_alone(const struct object *object)
{
    if (holds(object, (uintptr_t)&libraries) || holds(object, getauxval(AT_BASE)) ||
        holds(object, getauxval(AT_SYSINFO_EHDR)))
        return true;
    for (unsigned i = 0; i < prb_memory_function_count; i++)
        if (prb_memory_functions[i].real[0] && holds(object, prb_memory_functions[i].real[0]))
            return true;
    return false;
}

/* ---- its slots ---- */

static int function_of(const char *name)
{
    if (!strchr("acfmpr", *name))
        return -1;
    for (unsigned i = 0; i < prb_memory_function_count; i++)
        if (!strcmp(prb_memory_functions[i].name, name))
            return (int)i;
    return -1;
}

typedef void slot_fn(const struct object *object, uintptr_t *slot, unsigned function, bool call);

static void each_slot(const struct object *object, slot_fn *each)
{
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < object->counts[table]; i++) {
            const ElfW(Rela) *one = &object->tables[table][i];
            unsigned type = (unsigned)ELF64_R_TYPE(one->r_info);
            if (type != JUMP_SLOT && type != GLOB_DAT)
                continue;
            const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(one->r_info)];
            int function = function_of(object->texts + symbol->st_name);
            if (function >= 0)
                each(object, (uintptr_t *)(object->base + one->r_offset), (unsigned)function,
                     type == JUMP_SLOT);
        }
}

/* Of our own: what a call gets to. */
static void note_real(const struct object *object, uintptr_t *slot, unsigned function, bool call)
{
    (void)object;
    if (call || !prb_memory_functions[function].real[0])
        prb_memory_functions[function].real[0] = *slot;
}

static void store(const struct object *object, uintptr_t *slot, uintptr_t value)
{
    uintptr_t at = (uintptr_t)slot;
    bool locked = at >= object->relro && at < object->relro_end;
    void *page = (void *)page_of(at);
    if (locked && mprotect(page, page_bytes(), PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (locked)
        mprotect(page, page_bytes(), PROT_READ);
}

static bool is_real(unsigned function, uintptr_t value)
{
    const struct prb_memory_function *one = &prb_memory_functions[function];
    return value && (value == one->real[0] || value == one->real[1]);
}

static bool changed_one;

static void put(const struct object *object, uintptr_t *slot, unsigned function, bool call)
{
    (void)call;
    uintptr_t value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (is_real(function, value)) {
        store(object, slot, prb_memory_functions[function].hook);
        changed_one = true;
    } else if (value == prb_memory_functions[function].hook) {
        changed_one = true;
    } else if (holds(object, value) && libraries.pending_count < PENDING_MAX) {
        libraries.pending[libraries.pending_count] = slot;
        libraries.pending_function[libraries.pending_count++] = (uint8_t)function;
    }
}

static void put_back(const struct object *object, uintptr_t *slot, unsigned function, bool call)
{
    (void)call;
    const struct prb_memory_function *one = &prb_memory_functions[function];
    if (__atomic_load_n(slot, __ATOMIC_RELAXED) == one->hook)
        store(object, slot, one->real[0] ? one->real[0] : one->real[1]);
}

/* ---- all objects ---- */

static int look_at_counts(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    uint64_t *counts = out;
    counts[0] = info->dlpi_adds;
    counts[1] = info->dlpi_subs;
    return 1;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    libraries.adds = info->dlpi_adds;
    libraries.subs = info->dlpi_subs;
    if (libraries.object_count < OBJECTS_MAX)
        libraries.objects[libraries.object_count++] = (uintptr_t)info->dlpi_phdr;
    return 0;
}

static bool is_complete(const struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < libraries.object_count; i++)
        if (libraries.objects[i] == (uintptr_t)info->dlpi_phdr)
            return true;
    return false;
}

static int find_own(struct dl_phdr_info *info, size_t size, void *context)
{
    struct object object;
    (void)size, (void)context;
    if (!read_object(info, &object) || !holds(&object, (uintptr_t)&libraries))
        return 0;
    each_slot(&object, note_real);
    return 1;
}

static void note_torch(const struct dl_phdr_info *info)
{
    if (!info->dlpi_name || !strstr(info->dlpi_name, TORCH))
        return;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        libraries.torch_end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
        libraries.torch = info->dlpi_addr + header->p_vaddr;
    }
}

/* Stops where something was unloaded: what is complete has to be found anew. */
static int change_object(struct dl_phdr_info *info, size_t size, void *each)
{
    struct object object;
    (void)size;
    if (info->dlpi_subs != libraries.subs)
        return 1;
    if (!is_complete(info) || !read_object(info, &object) || is_left_alone(&object))
        return 0;
    note_torch(info);
    changed_one = false;
    each_slot(&object, *(slot_fn **)each);
    libraries.hooked += changed_one;
    return 0;
}

/* Each slot of each library that is complete. */
static void change_all(slot_fn *each)
{
    for (int try = 0; try < TRIES; try++) {
        libraries.object_count = libraries.pending_count = libraries.hooked = 0;
        dl_iterate_phdr(note_object, NULL);
        void *handle = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD); /* waits for who loads something */
        if (handle)
            dlclose(handle);
        if (dl_iterate_phdr(change_object, &each) == 0)
            return;
    }
}

/* Slots that were bound since; nothing was unloaded. */
static int look_at_pending(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    if (info->dlpi_subs != libraries.subs)
        return 1;
    unsigned kept = 0;
    for (unsigned i = 0; i < libraries.pending_count; i++) {
        unsigned function = libraries.pending_function[i];
        uintptr_t *slot = libraries.pending[i];
        if (is_real(function, __atomic_load_n(slot, __ATOMIC_RELAXED))) {
            /* What is bound late is writable. */
            __atomic_store_n(slot, prb_memory_functions[function].hook, __ATOMIC_RELEASE);
            continue;
        }
        libraries.pending[kept] = slot;
        libraries.pending_function[kept++] = (uint8_t)function;
    }
    libraries.pending_count = kept;
    return 1;
}

unsigned prb_memory_native_put(void)
{
    uint64_t now[2] = {0, 0};
    if (!libraries.scanned) {
        dl_iterate_phdr(find_own, NULL);
        for (unsigned i = 0; i < prb_memory_function_count; i++)
            prb_memory_functions[i].real[1] =
                (uintptr_t)dlsym(RTLD_DEFAULT, prb_memory_functions[i].name);
    }
    dl_iterate_phdr(look_at_counts, now);
    if (libraries.scanned && now[0] == libraries.seen_adds && now[1] == libraries.seen_subs) {
        dl_iterate_phdr(look_at_pending, NULL);
        return libraries.hooked;
    }
    change_all(put);
    libraries.scanned = true;
    libraries.seen_adds = now[0];
    libraries.seen_subs = now[1];
    return libraries.hooked;
}

void prb_memory_native_take_out(void)
{
    if (!libraries.scanned)
        return;
    change_all(put_back);
    libraries.scanned = false;
    libraries.hooked = libraries.pending_count = 0;
}

bool prb_memory_is_torch(const void *caller)
{
    return (uintptr_t)caller - libraries.torch < libraries.torch_end - libraries.torch;
}

void prb_memory_native_forked(void) { libraries.scanned = false; }

/* proc/elf, proc/symbol, proc/module: this program and its libraries, a file made by hand, and
 * damaged files. */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/elf_file.h"

static int file_of(const void *data, size_t len)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    assert_int_equal(write(fd, data, len), len);
    return fd;
}

/* ---- a file made by hand: three symbols, found by the older hash table or by none ---- */

struct made {
    Elf64_Ehdr header;
    Elf64_Phdr load[2];
    Elf64_Sym symbols[5];
    uint32_t hash[2 + 1 + 5];
    char names[32], section_names[32];
    Elf64_Shdr sections[5];
};

#define AT(member) offsetof(struct made, member)

static void make(struct made *made, bool hash)
{
    memset(made, 0, sizeof *made);
    made->header =
        (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                     .e_type = ET_DYN,
                     .e_machine = EM_X86_64,
                     .e_version = EV_CURRENT,
                     .e_phoff = AT(load),
                     .e_shoff = AT(sections),
                     .e_ehsize = sizeof(Elf64_Ehdr),
                     .e_phentsize = sizeof(Elf64_Phdr),
                     .e_phnum = 2,
                     .e_shentsize = sizeof(Elf64_Shdr),
                     .e_shnum = 5,
                     .e_shstrndx = 4};
    made->load[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                 .p_flags = PF_R | PF_X,
                                 .p_offset = 0,
                                 .p_vaddr = 0x10000,
                                 .p_filesz = 0x1800,
                                 .p_memsz = 0x1800};
    made->load[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                 .p_flags = PF_R | PF_W,
                                 .p_offset = 0x1800,
                                 .p_vaddr = 0x13800,
                                 .p_filesz = 0x900,
                                 .p_memsz = 0x2000};
    memcpy(made->names, "\0first\0second\0__second\0gone", 28);
    const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    made->symbols[1] = (Elf64_Sym){1, function, 0, 1, 0x10100, 0x50};
    made->symbols[2] = (Elf64_Sym){7, function, 0, 1, 0x10200, 0};
    made->symbols[3] = (Elf64_Sym){14, function, 0, 1, 0x10200, 0};
    made->symbols[4] = (Elf64_Sym){23, function, 0, SHN_UNDEF, 0, 0};
    /* One bucket, whose chain is 3, 2, 1, 4. */
    memcpy(made->hash, (uint32_t[]){1, 5, 3, 0, 4, 1, 2, 0}, sizeof made->hash);
    memcpy(made->section_names, "\0.dynsym\0.dynstr\0.hash\0.shstrtab", 32);
    made->sections[1] = (Elf64_Shdr){.sh_name = 1,
                                     .sh_type = SHT_DYNSYM,
                                     .sh_addr = 0x77,
                                     .sh_offset = AT(symbols),
                                     .sh_size = sizeof made->symbols,
                                     .sh_link = 2,
                                     .sh_entsize = sizeof(Elf64_Sym)};
    made->sections[2] = (Elf64_Shdr){
        .sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = AT(names), .sh_size = sizeof made->names};
    made->sections[3] = (Elf64_Shdr){.sh_name = 17,
                                     .sh_type = hash ? SHT_HASH : SHT_PROGBITS,
                                     .sh_offset = AT(hash),
                                     .sh_size = sizeof made->hash,
                                     .sh_link = 1};
    made->sections[4] = (Elf64_Shdr){
        .sh_name = 23, .sh_type = SHT_STRTAB, .sh_offset = AT(section_names), .sh_size = 32};
}

static struct prb_elf *open_made(const struct made *made)
{
    struct prb_error err;
    struct prb_elf *elf = prb_elf_open(file_of(made, sizeof *made), "made", &err);
    if (!elf)
        fail_msg("%s", err.text);
    return elf;
}

static void symbols_by_name(void **state)
{
    (void)state;
    for (int hash = 0; hash < 2; hash++) {
        struct made made;
        make(&made, hash);
        PRB_AUTO(prb_elf) struct prb_elf *elf = open_made(&made);
        struct prb_symbol symbol;
        struct prb_error err;
        assert_ok(prb_elf_symbol(elf, "first", &symbol, &err), err);
        assert_int_equal(symbol.value, 0x10100);
        assert_int_equal(symbol.size, 0x50);
        assert_string_equal(symbol.name, "first");
        assert_ok(prb_elf_symbol(elf, "second", &symbol, &err), err);
        assert_false(prb_elf_symbol(elf, "gone", &symbol, &err));
        assert_int_equal(err.code, PRB_NOT_FOUND);
        assert_false(prb_elf_symbol(elf, "firs", &symbol, &err));
        assert_false(prb_elf_symbol(elf, "", &symbol, &err));
    }
}

static void hash_chain_that_loops(void **state)
{
    (void)state;
    struct made made;
    make(&made, true);
    made.hash[2 + 1 + 2] = 3; /* 3, 2, 3, … */
    PRB_AUTO(prb_elf) struct prb_elf *elf = open_made(&made);
    struct prb_symbol symbol;
    assert_false(prb_elf_symbol(elf, "first", &symbol, NULL));
    assert_true(prb_elf_symbol(elf, "second", &symbol, NULL));
}

/* A file that is asked again and again answers by an index what a pass over its symbols says. */
static void the_index_names_alike(void **state)
{
    (void)state;
    struct prb_error err;
    Dl_info libc;
    assert_true(dladdr((void *)(uintptr_t)malloc, &libc) != 0);
    PRB_AUTO(prb_elf)
    struct prb_elf *often = prb_elf_open(open(libc.dli_fname, O_RDONLY), "often", &err);
    PRB_AUTO(prb_elf)
    struct prb_elf *once = prb_elf_open(open(libc.dli_fname, O_RDONLY), "once", &err);
    assert_non_null(often);
    assert_non_null(once);
    enum { COUNT = 20000, STEP = 97 };
    PRB_AUTO_FREE uint64_t *addrs = calloc(COUNT, sizeof *addrs);
    PRB_AUTO_FREE struct prb_symbol *names = calloc(COUNT, sizeof *names);
    size_t named = 0;
    for (size_t i = 0; i < COUNT; i++)
        addrs[i] = i * STEP;
    prb_elf_name(once, addrs, COUNT, names);
    for (size_t i = 0; i < COUNT; i++) {
        struct prb_symbol name;
        prb_elf_name(often, &addrs[i], 1, &name);
        assert_int_equal(name.name != NULL, names[i].name != NULL);
        if (name.name) {
            assert_string_equal(name.name, names[i].name);
            assert_int_equal(name.value, names[i].value);
            named++;
        }
    }
    assert_non_null(often->exported.index.items);
    assert_true(named > COUNT / 10);
}

static void addresses_get_names(void **state)
{
    (void)state;
    struct made made;
    make(&made, false);
    PRB_AUTO(prb_elf) struct prb_elf *elf = open_made(&made);
    const uint64_t addrs[] = {0, 0x100ff, 0x10100, 0x1014f, 0x10150, 0x10200, 0x10300, 0x20200};
    struct prb_symbol names[8];
    prb_elf_name(elf, addrs, 8, names);
    static const char *const want[] = {NULL, NULL,     "first",  "first",
                                       NULL, "second", "second", NULL};
    for (int i = 0; i < 8; i++) {
        if (want[i])
            assert_string_equal(names[i].name, want[i]);
        else
            assert_null(names[i].name);
    }
    prb_elf_name(elf, addrs, 0, names);
}

static void places(void **state)
{
    (void)state;
    struct made made;
    make(&made, false);
    PRB_AUTO(prb_elf) struct prb_elf *elf = open_made(&made);
    uint64_t addr, size, bias;
    assert_true(prb_elf_section(elf, ".dynsym", &addr, &size));
    assert_int_equal(addr, 0x77);
    assert_int_equal(size, sizeof made.symbols);
    assert_false(prb_elf_section(elf, ".data", &addr, &size));
    assert_false(prb_elf_eh_frame_hdr(elf, &addr, &size));
    assert_true(prb_elf_bias(elf, 0x7f0000010000, 0, false, &bias));
    assert_int_equal(bias, 0x7f0000000000);
    assert_true(prb_elf_bias(elf, 0x7f0000013000 + 0x1000, 0x2000, false, &bias));
    assert_int_equal(bias, 0x7f0000000000);
    assert_false(prb_elf_bias(elf, 0x7f0000013000, 0x5000, false, &bias));
    /* This page of the file is mapped twice: as code, and as data. */
    assert_true(prb_elf_bias(elf, 0x7f0000011000, 0x1000, true, &bias));
    assert_int_equal(bias, 0x7f0000000000);
    assert_true(prb_elf_bias(elf, 0x7f0000013000, 0x1000, false, &bias));
    assert_int_equal(bias, 0x7f0000000000);
    assert_false(prb_elf_written(elf, 0, 0x1000));
    assert_true(prb_elf_written(elf, 0x1000, 0x1000));
    uint8_t id[64];
    assert_int_equal(prb_elf_build_id(elf, id), 0);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    struct prb_error err;
    struct made made;
    assert_null(prb_elf_open(file_of("hello, this is no ELF file", 26), "x", &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_null(prb_elf_open(file_of("", 0), "x", &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_null(prb_elf_open(-1, "x", &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    assert_null(prb_elf_open(open("/", O_RDONLY), "x", &err));
    assert_int_equal(err.code, PRB_CORRUPT);
    make(&made, false);
    made.header.e_machine = EM_S390;
    assert_null(prb_elf_open(file_of(&made, sizeof made), "x", &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    make(&made, false);
    made.header.e_ident[EI_CLASS] = ELFCLASS32;
    assert_null(prb_elf_open(file_of(&made, sizeof made), "x", &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
}

/* Many names in one pass: exported, in .symtab alone, twice, nowhere. */
static void many_names(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_elf)
    struct prb_elf *elf =
        prb_elf_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "this test", &err);
    assert_non_null(elf);
    static const char *const names[] = {"no such name",    "many_names", "main", "_many_names",
                                        "symbols_by_name", "many_names", ""};
    enum { COUNT = sizeof names / sizeof *names };
    struct prb_symbol all[COUNT], one;
    assert_ok(prb_elf_symbols(elf, names, COUNT, all, &err), err);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(prb_elf_symbol(elf, names[i], &one, NULL), all[i].name != NULL);
        if (all[i].name) {
            assert_string_equal(all[i].name, names[i]);
            assert_int_equal(all[i].value, one.value);
            assert_int_equal(all[i].size, one.size);
        }
    }
    assert_null(all[0].name);
    assert_non_null(all[1].name);
    assert_non_null(all[2].name);
    assert_non_null(all[4].name);
    assert_non_null(all[5].name);
}

/* ---- damage ---- */

static void use(const uint8_t *data, size_t len)
{
    PRB_AUTO(prb_elf) struct prb_elf *elf = prb_elf_open(file_of(data, len), "damaged", NULL);
    if (!elf)
        return;
    struct prb_symbol symbol, names[3];
    uint64_t addr, size;
    uint8_t id[64];
    prb_elf_symbol(elf, "first", &symbol, NULL);
    prb_elf_symbol(elf, "malloc", &symbol, NULL);
    prb_elf_name(elf, (uint64_t[]){0x1000, 0x10210, 0x20000}, 3, names);
    prb_elf_section(elf, ".dynsym", &addr, &size);
    prb_elf_section(elf, "no such", &addr, &size);
    prb_elf_eh_frame_hdr(elf, &addr, &size);
    prb_elf_bias(elf, 0x7f0000000000, 0x1000, true, &addr);
    assert_in_range(prb_elf_build_id(elf, id), 0, 64);
}

static void damaged_everywhere(void **state)
{
    (void)state;
    for (int hash = 0; hash < 2; hash++) {
        struct made made;
        make(&made, hash);
        uint8_t *bytes = (uint8_t *)&made;
        for (size_t len = 0; len < sizeof made; len += 3)
            use(bytes, len);
        static const uint8_t values[] = {0, 0xff, 0x7f, 0x80};
        for (size_t i = 0; i < sizeof made; i++) {
            uint8_t was = bytes[i];
            for (size_t k = 0; k < sizeof values; k++) {
                bytes[i] = values[k];
                use(bytes, sizeof made);
            }
            bytes[i] = was;
        }
    }
}

static void own_file_cut(void **state)
{
    (void)state;
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat info;
    fstat(fd, &info);
    size_t len = (size_t)info.st_size;
    uint8_t *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    for (int i = 0; i <= 64; i++)
        use(bytes, len / 64 * (size_t)i);
    munmap(bytes, len);
    close(fd);
}

/* ---- this process ---- */

static void own_modules(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    assert_non_null(proc);
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    assert_ok(prb_modules_init(&modules, proc, &err), err);
    assert_non_null(prb_proc_maps(proc, true, &err)); /* what modules hold is their own */

    struct prb_module *own = prb_modules_find(&modules, (uintptr_t)own_modules);
    assert_non_null(own);
    struct prb_elf *elf = prb_modules_elf(&modules, own, &err);
    assert_non_null(elf);
    struct prb_symbol symbol;
    assert_ok(prb_elf_symbol(elf, "main", &symbol, &err), err);
    int main(void);
    assert_int_equal(symbol.value + own->bias, (uintptr_t)main);
    /* A static function is in .symtab alone. */
    assert_ok(prb_elf_symbol(elf, "own_modules", &symbol, &err), err);
    assert_int_equal(symbol.value + own->bias, (uintptr_t)own_modules);
    prb_elf_name(elf, (uint64_t[]){(uintptr_t)own_modules - own->bias + 1}, 1, &symbol);
    assert_string_equal(symbol.name, "own_modules");
    uint64_t addr, size;
    assert_true(prb_elf_eh_frame_hdr(elf, &addr, &size));
    assert_true(prb_elf_section(elf, ".eh_frame_hdr", &size, &(uint64_t){0}));
    assert_int_equal(addr, size);

    void *libc_function = dlsym(RTLD_DEFAULT, "qsort");
    struct prb_module *libc = prb_modules_find(&modules, (uintptr_t)libc_function);
    assert_non_null(libc);
    assert_ptr_not_equal(libc, own);
    elf = prb_modules_elf(&modules, libc, &err);
    assert_non_null(elf);
    assert_ptr_equal(prb_modules_elf(&modules, libc, &err), elf);
    assert_ok(prb_elf_symbol(elf, "qsort", &symbol, &err), err);
    assert_int_equal(symbol.value + libc->bias, (uintptr_t)libc_function);
    uint8_t id[64];
    assert_true(prb_elf_build_id(elf, id) > 0);
    assert_null(prb_modules_find(&modules, 1));
    assert_null(prb_modules_find(&modules, UINT64_MAX));
    for (size_t i = 0; i < modules.count; i++) {
        assert_true(modules.items[i].start < modules.items[i].end);
        assert_ptr_equal(prb_modules_find(&modules, modules.items[i].start), &modules.items[i]);
    }
}

/* What the kernel says of code maps alone, and what the whole list says. */
static void modules_of_code(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    PRB_AUTO(prb_modules) struct prb_modules code = {0}, all = {0};
    assert_ok(prb_modules_init(&code, proc, &err), err);
    assert_non_null(prb_proc_maps(proc, true, &err));
    assert_ok(prb_modules_init(&all, proc, &err), err);
    assert_int_equal(code.count, all.count);
    for (size_t i = 0; i < all.count; i++) {
        struct prb_module *a = &code.items[i], *b = &all.items[i];
        assert_string_equal(a->path, b->path);
        assert_true(a->start >= b->start && a->end <= b->end);
        assert_int_equal(prb_modules_elf(&code, a, NULL) != NULL,
                         prb_modules_elf(&all, b, NULL) != NULL);
        assert_int_equal(a->bias, b->bias);
    }
}

static void notes(void **state)
{
    (void)state;
    /* Name of 3, description of 5; then one whose size runs over. */
    static const uint8_t bytes[] = {4, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0,
                                    1, 2, 3, 4, 5, 0, 0, 0, 9, 0, 0, 0, 255, 255, 255, 255};
    struct prb_note note;
    size_t at = 0;
    uint8_t id[64];
    assert_true(prb_note_next(bytes, sizeof bytes, &at, &note));
    assert_true(prb_note_is(&note, "GNU", 3));
    assert_false(prb_note_is(&note, "GNU", 4));
    assert_false(prb_note_is(&note, "GN", 3));
    assert_int_equal(note.desc_len, 5);
    assert_false(prb_note_next(bytes, sizeof bytes, &at, &note));
    assert_int_equal(prb_note_build_id(bytes, sizeof bytes, id), 5);
    assert_int_equal(id[4], 5);
    for (size_t len = 0; len < sizeof bytes; len++)
        prb_note_build_id(bytes, len, id);
}

static void cut_short_while_open(void **state)
{
    (void)state;
    struct made made;
    make(&made, true);
    for (size_t len = 0; len < sizeof made; len += 8) {
        int fd = file_of(&made, sizeof made);
        struct prb_error err;
        PRB_AUTO(prb_elf) struct prb_elf *elf = prb_elf_open(fd, "made", &err);
        assert_non_null(elf);
        assert_int_equal(ftruncate(fd, (off_t)len), 0);
        struct prb_symbol symbol, name;
        uint64_t addr, size;
        size_t count;
        if (prb_elf_symbol(elf, "first", &symbol, NULL))
            assert_string_equal(symbol.name, "first");
        prb_elf_name(elf, (uint64_t[]){0x10110}, 1, &name);
        prb_elf_section(elf, ".hash", &addr, &size);
        PRB_AUTO_FREE struct prb_symbol *exports = prb_elf_exports(elf, &count, NULL);
        assert_null(prb_elf_debug_image(elf, &count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_by_name),
        cmocka_unit_test(hash_chain_that_loops),
        cmocka_unit_test(many_names),
        cmocka_unit_test(addresses_get_names),
        cmocka_unit_test(the_index_names_alike),
        cmocka_unit_test(places),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(damaged_everywhere),
        cmocka_unit_test(own_file_cut),
        cmocka_unit_test(cut_short_while_open),
        cmocka_unit_test(own_modules),
        cmocka_unit_test(modules_of_code),
        cmocka_unit_test(notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* mem: the sources self, process (both ways) and callback, and the wrappers over them. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/mem.h"

#define PAGE 4096

/* Three pages, the middle one taken away. */
static uint8_t *holed(void)
{
    uint8_t *pages =
        mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (int i = 0; i < 3 * PAGE; i++)
        pages[i] = (uint8_t)(i * 7 + i / PAGE);
    munmap(pages + PAGE, PAGE);
    return pages;
}

static void check_reads(struct prb_mem *mem)
{
    uint8_t *pages = holed();
    prb_addr base = (uintptr_t)pages;
    uint8_t a[16], b[PAGE + 16], c[16], d[16];
    struct prb_range ranges[] = {
        {.addr = base, .buf = a, .len = sizeof a},
        {.addr = base + 100, .buf = b, .len = sizeof b},  /* runs into the hole */
        {.addr = base + PAGE, .buf = c, .len = sizeof c}, /* lies in it */
        {.addr = base, .buf = c, .len = 0},
        {.addr = UINT64_MAX - 3, .buf = c, .len = sizeof c},
        {.addr = base + 2 * PAGE, .buf = d, .len = sizeof d},
    };
    struct prb_error err;
    assert_ok(prb_mem_readv_some(mem, ranges, 6, &err), err);
    assert_int_equal(ranges[0].got, sizeof a);
    assert_int_equal(ranges[1].got, PAGE - 100);
    assert_int_equal(ranges[2].got, 0);
    assert_int_equal(ranges[3].got, 0);
    assert_int_equal(ranges[4].got, 0);
    assert_int_equal(ranges[5].got, sizeof d);
    assert_memory_equal(a, pages, sizeof a);
    assert_memory_equal(b, pages + 100, PAGE - 100);
    assert_memory_equal(d, pages + 2 * PAGE, sizeof d);

    assert_false(prb_mem_readv(mem, ranges, 6, &err));
    assert_int_equal(err.code, PRB_FAULT);
    assert_int_equal(err.addr, base + PAGE);
    assert_false(prb_mem_read(mem, base + PAGE - 8, a, 16, &err));
    assert_int_equal(prb_mem_read_some(mem, base + PAGE - 8, a, 16), 8);
    assert_true(mem->calls >= 4);
    munmap(pages, PAGE);
    munmap(pages + 2 * PAGE, PAGE);
}

static void self_source(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(&err);
    assert_non_null(mem);
    check_reads(mem);
}

static void self_follows_fork(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(&err);
    volatile uint32_t word = 1;
    pid_t child = fork();
    if (child == 0) {
        word = 2;
        uint32_t read = 0;
        _exit(prb_mem_u32(mem, (uintptr_t)&word, &read, NULL) && read == 2 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void file_source(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_process_file_new(getpid(), &err);
    assert_non_null(mem);
    check_reads(mem);
}

static void more_ranges_than_one_call_takes(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_process_new(getpid(), &err);
    enum { COUNT = 2500 };
    static uint32_t from[COUNT], to[COUNT];
    static struct prb_range ranges[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        from[i] = i * 3 + 1;
        bool bad = i == 1023 || i == 1024 || i == 2499;
        ranges[i] = (struct prb_range){
            .addr = bad ? 8 : (uintptr_t)&from[i], .buf = &to[i], .len = sizeof to[i]};
    }
    assert_ok(prb_mem_readv_some(mem, ranges, COUNT, &err), err);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(to[i], i == 1023 || i == 1024 || i == 2499 ? 0 : i * 3 + 1);
}

/* A child that waits until it is killed. */
static pid_t sleeper(void)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return child;
}

static void ended_process_is_gone(void **state)
{
    (void)state;
    struct prb_error err;
    pid_t child = sleeper();
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_process_new(child, &err);
    PRB_AUTO(prb_mem) struct prb_mem *file = prb_mem_process_file_new(child, &err);
    assert_non_null(mem);
    assert_non_null(file);
    uint32_t word, here = 77;
    assert_ok(prb_mem_u32(mem, (uintptr_t)&here, &word, &err), err);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(prb_mem_u32(mem, (uintptr_t)&here, &word, &err));
    assert_int_equal(err.code, PRB_GONE);
    assert_false(prb_mem_u32(file, (uintptr_t)&here, &word, &err));
    assert_int_equal(err.code, PRB_GONE);
    assert_null(prb_mem_process_new(child, &err));
    assert_int_equal(err.code, PRB_GONE);
}

static size_t read_text(void *context, prb_addr addr, void *buf, size_t len)
{
    const char *text = context;
    size_t size = strlen(text) + 1;
    if (addr < 1000 || addr >= 1000 + size)
        return 0;
    size_t n = 1000 + size - addr < len ? 1000 + size - addr : len;
    memcpy(buf, text + (addr - 1000), n);
    return n;
}

static void callback_source(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_callback_new(read_text, "0123456789", &err);
    char buf[32];
    assert_ok(prb_mem_read(mem, 1002, buf, 3, &err), err);
    assert_memory_equal(buf, "234", 3);
    assert_int_equal(prb_mem_read_some(mem, 1008, buf, 32), 3);
    assert_false(prb_mem_read(mem, 1008, buf, 32, &err));
    assert_int_equal(err.addr, 1011);
    uint64_t word;
    assert_ok(prb_mem_u64(mem, 1000, &word, &err), err);
    assert_memory_equal(&word, "01234567", 8);
}

static void strings(void **state)
{
    (void)state;
    struct prb_error err;
    uint8_t *pages = holed();
    memcpy(pages + PAGE - 6, "hello", 6);
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_self_new(&err);
    char text[600];
    assert_ok(prb_mem_string(mem, (uintptr_t)pages + PAGE - 6, text, sizeof text, &err), err);
    assert_string_equal(text, "hello");
    assert_ok(prb_mem_string(mem, (uintptr_t)pages + PAGE - 6, text, 4, &err), err);
    assert_string_equal(text, "hel");
    memset(pages + PAGE - 6, 'x', 6);
    assert_false(prb_mem_string(mem, (uintptr_t)pages + PAGE - 6, text, sizeof text, &err));
    memset(pages, 'y', 1000);
    assert_ok(prb_mem_string(mem, (uintptr_t)pages, text, sizeof text, &err), err);
    assert_int_equal(strlen(text), sizeof text - 1);
    munmap(pages, PAGE);
    munmap(pages + 2 * PAGE, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_source),
        cmocka_unit_test(self_follows_fork),
        cmocka_unit_test(file_source),
        cmocka_unit_test(more_ranges_than_one_call_takes),
        cmocka_unit_test(ended_process_is_gone),
        cmocka_unit_test(callback_source),
        cmocka_unit_test(strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

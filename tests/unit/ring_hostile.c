/* ring: files that lie, file systems that are full, folders of the dead. */
#include "ring.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "proc/proc.h"
#include "ring/folder.h"
#include "table/recorded/folder.h"

/* ---- bytes ---- */

static bool touch(void *context, const struct prb_ring_value *values)
{
    uint64_t *sum = context;
    sum[0]++;
    for (size_t i = 0; i < values[3].len; i++)
        sum[1] += (unsigned char)values[3].text[i];
    return true;
}

/* Rows that a file's bytes give; -1: it is refused. */
static long rows_of(const char *path)
{
    uint64_t sum[2] = {0};
    struct prb_ring_reader *reader = prb_ring_open(AT_FDCWD, path, NULL);
    if (!reader)
        return -1;
    size_t count;
    const struct prb_ring_column *columns = prb_ring_columns(reader, &count);
    bool same = count == 5 && columns[3].type == PRB_RING_TEXT;
    bool good = !same || prb_ring_each(reader, touch, sum, NULL, NULL);
    prb_ring_latest(reader);
    prb_ring_close(reader);
    assert_true(good);
    return (long)sum[0];
}

#define ROWS 30

static size_t write_sample(char *path, char **bytes_out)
{
    const struct prb_ring_limits limits = {.bytes_max = 1};
    ring_path(path, "sample");
    unlink(path);
    struct prb_ring_table *table =
        prb_ring_table_parse(ring_folder, "sample", RING_PROOF_COLUMNS, &limits, NULL);
    assert_non_null(table);
    for (int64_t n = 0; n < ROWS; n++)
        assert_true(ring_write_proof(table, 1, n));
    prb_ring_table_free(table);
    FILE *file = fopen(path, "r");
    char *bytes = malloc(1 << 20);
    size_t len = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    *bytes_out = bytes;
    assert_int_equal(rows_of(path), ROWS);
    return len;
}

static void each_byte_may_lie(void **state)
{
    (void)state;
    char path[128], *bytes;
    size_t len = write_sample(path, &bytes), refused = 0, fewer = 0;
    PRB_AUTO_FD int fd = open(path, O_WRONLY);
    for (size_t at = 0; at < len; at++) {
        if (!bytes[at] && at % 7) /* much is empty */
            continue;
        for (int change = 1; change < 256; change = change * 16 - 1) { /* 1, 15, 239 */
            char lie = (char)(bytes[at] ^ change);
            assert_int_equal(pwrite(fd, &lie, 1, (off_t)at), 1);
            long rows = rows_of(path);
            assert_true(rows <= ROWS);
            refused += rows < 0;
            fewer += rows >= 0 && rows < ROWS;
        }
        assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
    }
    assert_int_equal(rows_of(path), ROWS);
    print_message("%zu files refused, %zu with fewer rows\n", refused, fewer);
    assert_true(refused > 50 && fewer > 300);
    free(bytes);
}

static void each_length_may_be_the_end(void **state)
{
    (void)state;
    char path[128], *bytes;
    size_t len = write_sample(path, &bytes);
    for (size_t cut = len; cut-- > 0; cut -= cut > 16000 ? 97 : 0) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        assert_true(rows_of(path) <= ROWS);
    }
    free(bytes);
}

/* ---- a full file system ---- */

static int fill_up(const char *folder)
{
    char path[128];
    struct prb_error err;
    snprintf(path, sizeof path, "%s/full", folder);
    if (mkdir(path, 0700) != 0 || mount("none", path, "tmpfs", 0, "size=400k") != 0)
        return 77;
    const struct prb_ring_limits limits = {.bytes_max = 8 << 20};
    struct prb_ring_table *table =
        prb_ring_table_parse(path, "full", RING_PROOF_COLUMNS, &limits, &err);
    if (!table)
        return 2;
    for (int64_t n = 0; n < 50000; n++) /* far more than there is room for */
        if (!ring_write_proof(table, 1, n))
            return 3;
    if (prb_ring_table_parse(path, "more", RING_PROOF_COLUMNS, NULL, &err) || err.sys != ENOSPC)
        return 4;
    char file[160];
    snprintf(file, sizeof file, "%s/full.ring", path);
    struct prb_ring_reader *reader = prb_ring_open(AT_FDCWD, file, &err);
    struct ring_proofs proofs = {0};
    struct prb_ring_counts counts;
    if (!reader || !prb_ring_each(reader, ring_check_proof, &proofs, &counts, &err))
        return 5;
    prb_ring_close(reader);
    return proofs.wrong || proofs.last[1] != 50000 || !counts.full || counts.dropped ? 6 : 0;
}

static void full_file_systems_are_no_signal(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
            _exit(77);
        _exit(fill_up(ring_folder));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    char path[128];
    snprintf(path, sizeof path, "%s/full", ring_folder);
    rmdir(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no mount for this user: RLIMIT_FSIZE in ring.c does the same */
    assert_int_equal(status, 0);
}

/* ---- folders ---- */

/* A process that makes its folder with a row in it, and ends; its folder's path in out. */
static void die_with_a_folder(char out[PRB_RING_PATH_MAX])
{
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        char path[PRB_RING_PATH_MAX] = "";
        int lock;
        struct prb_ring_table *table =
            prb_ring_folder_new(path, &lock, NULL)
                ? prb_ring_table_parse(path, "rows", RING_PROOF_COLUMNS, NULL, NULL)
                : NULL;
        _exit(!table || !ring_write_proof(table, 1, 0) ||
              write(told[1], path, sizeof path) != sizeof path);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(told[0], out, PRB_RING_PATH_MAX), PRB_RING_PATH_MAX);
    close(told[0]);
    close(told[1]);
}

static void folders_of_the_dead_are_swept(void **state)
{
    (void)state;
    char dead[2][PRB_RING_PATH_MAX], own[PRB_RING_PATH_MAX], data[PRB_RING_PATH_MAX];
    char wanted[128];
    struct prb_error err;
    int lock;
    snprintf(wanted, sizeof wanted, "%s/data", ring_folder);
    setenv(PRB_RING_DATA_VARIABLE, wanted, 1);
    assert_ok(prb_ring_data_dir(data, &err), err);
    assert_string_equal(data, wanted);
    assert_ok(prb_ring_folder_new(own, &lock, &err), err);
    for (int i = 0; i < 2; i++)
        die_with_a_folder(dead[i]);
    assert_int_equal(prb_ring_sweep(data, 3600, 0), 0); /* too young */
    assert_int_equal(prb_ring_sweep(data, 0, 0), 0);
    assert_int_equal(prb_ring_sweep(data, 0, 400 << 10), 1); /* too much: the older one */
    assert_int_not_equal(access(dead[0], F_OK), 0);
    assert_int_equal(access(dead[1], F_OK), 0);
    /* Held by somebody whose pid is not seen here. */
    PRB_AUTO_FD int held = open(dead[1], O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(held, LOCK_SH), 0);
    assert_int_equal(prb_ring_sweep(data, 1e-9, 0), 0);
    assert_int_equal(flock(held, LOCK_UN), 0);
    assert_int_equal(prb_ring_sweep(data, 1e-9, 0), 1);
    assert_int_equal(access(own, F_OK), 0); /* the living keep theirs */
    assert_int_equal(rmdir(own), 0);
    close(lock);
    chmod(data, 0777);
    assert_false(prb_ring_data_dir(data, &err));
    assert_int_equal(err.code, PRB_PERMISSION);
    rmdir(wanted);
    unsetenv(PRB_RING_DATA_VARIABLE);
}

static bool become_root_of_a_namespace(void)
{
    static const char map[] = "0 12345 1\n";
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return false;
    for (size_t i = 0; i < PRB_RING_PARENTS; i++) {
        char path[PRB_RING_PATH_MAX];
        prb_ring_place(i, 0, 0, path);
        if (mount("none", prb_ring_parents[i], "tmpfs", 0, "mode=1777") || mkdir(path, 0700))
            return false;
    }
    if (setresuid(12345, 12345, 12345) || prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
        return false;
    PRB_AUTO_FD int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, map, sizeof map - 1) == sizeof map - 1;
}

static void user_0_of_a_namespace_is_not_in_the_way_of_root(void **state)
{
    (void)state;
    int told[2], wait[2], status;
    char path[PRB_RING_PATH_MAX] = "", expected[PRB_RING_PATH_MAX], proc_path[32];
    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(wait), 0);
    pid_t child = fork();
    if (child == 0) {
        int lock;
        close(wait[1]);
        unsetenv(PRB_RING_DATA_VARIABLE);
        if (!become_root_of_a_namespace())
            _exit(77);
        bool made = prb_ring_folder_new(path, &lock, NULL);
        _exit(write(told[1], path, sizeof path) < 0 || read(wait[0], path, 1) != 0 || !made);
    }
    close(told[1]);
    if (read(told[0], path, sizeof path) > 0) {
        snprintf(proc_path, sizeof proc_path, "/proc/%d", (int)child);
        prb_ring_place(2, 0, prb_ring_user_namespace(proc_path), expected);
        assert_memory_equal(path, expected, strlen(expected));
        PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(child, NULL);
        PRB_AUTO_FD int found = prb_recorded_folder_of(proc);
        assert_true(found >= 0);
    }
    close(wait[1]);
    close(wait[0]);
    close(told[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no namespaces for this user */
    assert_int_equal(status, 0);
}

static void folder_names_are_read(void **state)
{
    (void)state;
    pid_t pid;
    uint64_t started;
    assert_true(prb_ring_folder_name("12-345", &pid, &started));
    assert_true(pid == 12 && started == 345);
    static const char *const others[] = {"",      "12",      "-12-345",      "12-345x",
                                         "0-345", "probing", "12-345/../..", "99999999999-1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(prb_ring_folder_name(others[i], &pid, &started));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_may_lie),
        cmocka_unit_test(each_length_may_be_the_end),
        cmocka_unit_test(full_file_systems_are_no_signal),
        cmocka_unit_test(folders_of_the_dead_are_swept),
        cmocka_unit_test(user_0_of_a_namespace_is_not_in_the_way_of_root),
        cmocka_unit_test(folder_names_are_read),
    };
    return cmocka_run_group_tests(tests, ring_begin, ring_end);
}

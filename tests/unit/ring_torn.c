/* ring: readers beside writers that are fast, in small tables, and killed at any moment: no row is
 * ever half. */
#include "ring.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define WRITERS 4
#define ROUNDS 40
#define BYTES ((uint64_t)256 << 10) /* 64 chunks, begun anew all the time */

static void *write_for_ever(void *context)
{
    static _Atomic int64_t writers;
    int64_t writer = atomic_fetch_add(&writers, 1);
    for (int64_t n = 0;; n++)
        ring_write_proof(context, writer, n);
    return NULL;
}

/* A process that writes until it is killed; returns when its table is there. */
static pid_t start_writers(const char *name, bool *made)
{
    int ready[2];
    if (pipe(ready) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        const struct prb_ring_limits limits = {.bytes_max = BYTES};
        struct prb_ring_table *table =
            prb_ring_table_parse(ring_folder, name, RING_PROOF_COLUMNS, &limits, NULL);
        pthread_t thread;
        char done = table != NULL;
        for (int i = 1; table && i < WRITERS; i++)
            done = done && pthread_create(&thread, NULL, write_for_ever, table) == 0;
        if (write(ready[1], &done, 1) != 1 || !done)
            _exit(1);
        write_for_ever(table);
    }
    char done = 0;
    *made = read(ready[0], &done, 1) == 1 && done;
    close(ready[0]);
    close(ready[1]);
    return child;
}

struct reading {
    const char *name;
    atomic_bool *stop;
    uint64_t readings, rows, wrong, broken, failed;
};

static void read_once(struct reading *reading, struct prb_ring_reader *reader)
{
    struct ring_proofs proofs = {0};
    struct prb_ring_counts counts = {0};
    reading->failed += !prb_ring_each(reader, ring_check_proof, &proofs, &counts, NULL);
    reading->readings++;
    reading->rows += proofs.rows;
    reading->wrong += proofs.wrong;
    reading->broken += counts.broken;
}

static void *read_on(void *context)
{
    struct reading *reading = context;
    struct prb_ring_reader *reader = ring_reader(reading->name);
    while (!atomic_load(reading->stop))
        read_once(reading, reader);
    prb_ring_close(reader);
    return NULL;
}

static void check_reading(const struct reading *reading)
{
    assert_int_equal(reading->wrong, 0);
    assert_int_equal(reading->broken, 0);
    assert_int_equal(reading->failed, 0);
}

static void no_row_is_half(void **state)
{
    (void)state;
    uint64_t rows = 0, readings = 0;
    unsigned seed = 12345; /* the moments differ anyway, by the machine */
    /* On a busy machine a round may be over before anybody has read or written much. */
    for (int round = 0;
         round < ROUNDS || ((readings < ROUNDS || rows <= ROUNDS * 100) && round < 100 * ROUNDS);
         round++) {
        bool made;
        atomic_bool stop = false;
        pid_t child = start_writers("killed", &made);
        assert_true(child > 0 && made);
        struct reading reading[2] = {{"killed", &stop}, {"killed", &stop}};
        pthread_t readers[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&readers[i], NULL, read_on, &reading[i]), 0);
        const struct timespec moment = {0, 1000000 + rand_r(&seed) % 20000000};
        nanosleep(&moment, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        atomic_store(&stop, true);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(readers[i], NULL), 0);
            check_reading(&reading[i]);
            readings += reading[i].readings;
        }
        /* What the dead left: all of it whole, too. */
        struct reading after = {"killed", &stop};
        struct prb_ring_reader *reader = ring_reader("killed");
        read_once(&after, reader);
        prb_ring_close(reader);
        check_reading(&after);
        rows += after.rows;
    }
    assert_true(readings >= ROUNDS);
    assert_true(rows > ROUNDS * 100);
    print_message("%llu readings beside writers, %llu rows left by the dead\n",
                  (unsigned long long)readings, (unsigned long long)rows);
}

/* A writer that stands still for ever between any two of its stores. */
static void stopped_writers_are_read(void **state)
{
    (void)state;
    bool made;
    atomic_bool stop = false;
    pid_t child = start_writers("stopped", &made);
    assert_true(child > 0 && made);
    struct reading reading = {"stopped", &stop};
    struct prb_ring_reader *reader = ring_reader("stopped");
    /* On a busy machine a writer may get no CPU between two stops. */
    for (int i = 0; i < 50 || (reading.rows <= 50 && i < 10000); i++) {
        int status;
        assert_int_equal(kill(child, SIGSTOP), 0);
        assert_int_equal(waitpid(child, &status, WUNTRACED), child);
        read_once(&reading, reader);
        assert_int_equal(kill(child, SIGCONT), 0);
        usleep(1000);
    }
    prb_ring_close(reader);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    check_reading(&reading);
    assert_true(reading.rows > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_is_half),
        cmocka_unit_test(stopped_writers_are_read),
    };
    return cmocka_run_group_tests(tests, ring_begin, ring_end);
}

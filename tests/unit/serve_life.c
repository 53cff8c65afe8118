/* How long a server of its own lives, where its thread gets no processor until all is over. */
#include "serve/doors/life.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "inject/control.h"

#include "unit.h"

#define PATIENCE 60 /* s */

static pthread_t tester;
static pthread_mutex_t processor = PTHREAD_MUTEX_INITIALIZER; /* that the server's thread gets */
static atomic_bool probed;
static sem_t over;

/* In place of the one that looks for a probe. */
bool prb_control_present(pid_t pid)
{
    bool late = !pthread_equal(pthread_self(), tester);
    if (late)
        pthread_mutex_lock(&processor);
    bool present = atomic_load(&probed) && pid == getpid();
    if (late)
        pthread_mutex_unlock(&processor);
    return present;
}

static void end(void) { sem_post(&over); }

static struct prb_life *begin(double linger, int *stop_out)
{
    struct prb_error err = {0};
    *stop_out = eventfd(0, EFD_CLOEXEC);
    sem_init(&over, 0, 0);
    struct prb_life *life = prb_life_new(*stop_out, true, linger, end, &err);
    if (!life)
        fail_msg("%s", err.text);
    return life;
}

static void finish(struct prb_life *life, int stop)
{
    eventfd_write(stop, 1);
    prb_life_free(life);
    close(stop);
    sem_destroy(&over);
}

/* The probe is there when a process joins, and gone before the server looks for it. */
static void test_a_detach_before_its_first_look(void **unused)
{
    struct prb_error err = {0};
    struct timespec limit;
    int stop;
    (void)unused;
    struct prb_life *life = begin(0.1, &stop);
    pthread_mutex_lock(&processor);
    atomic_store(&probed, true);
    assert_ok(prb_life_add(life, getpid(), &err), err);
    atomic_store(&probed, false);
    pthread_mutex_unlock(&processor);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += PATIENCE;
    assert_int_equal(sem_timedwait(&over, &limit), 0);
    finish(life, stop);
}

/* Its thread may come to its first look before there is a process to look at. */
static void test_it_waits_for_its_first_process(void **unused)
{
    struct prb_error err = {0};
    int stop;
    (void)unused;
    struct prb_life *life = begin(0, &stop);
    usleep(50000);
    atomic_store(&probed, true);
    assert_ok(prb_life_add(life, getpid(), &err), err);
    assert_int_equal(sem_trywait(&over), -1);
    finish(life, stop);
}

int main(void)
{
    tester = pthread_self();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_detach_before_its_first_look),
                                       cmocka_unit_test(test_it_waits_for_its_first_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

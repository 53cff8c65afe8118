/*
 * An allocation storm: threads that are inside malloc nearly all the time, the worst case for an
 * injector.
 *
 *     storm THREADS [alone]     and one parked in read(2); alone: the first thread storms, too, so
 * none is parked
 */
#include <pthread.h>
#include <string.h>

#include "report.h"

#define SLOTS 64

static void *storm(void *lane_)
{
    volatile uint64_t *count = lane_;
    uint64_t random = (uintptr_t)lane_ | 1;
    unsigned char *slots[SLOTS] = {0};
    for (;; ++*count) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = random >> 58, size = 16 + (random >> 33) % 5000;
        if (slots[slot] && *slots[slot] != slot)
            report_damage("a block of lane %d changed", (int)(count - report->progress));
        if (random >> 20 & 1) {
            free(slots[slot]);
            slots[slot] = malloc(size);
        } else {
            slots[slot] = realloc(slots[slot], size);
        }
        if (!slots[slot])
            report_damage("no memory");
        else
            memset(slots[slot], (int)slot, 16);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2, alone = argc > 2 && !strcmp(argv[2], "alone");
    report_open();
    report->lanes = (uint64_t)threads;
    for (int i = alone; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, storm, (void *)&report->progress[i]))
            return 1;
    }
    if (alone) {
        report_ready();
        storm((void *)&report->progress[0]);
    }
    report_park();
    return 0;
}

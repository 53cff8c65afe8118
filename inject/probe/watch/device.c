/*
 * Values that lie on a device: one element is copied behind what the thread's stream has to do, and
 * its row is written when it has come, with the time and step of the moment that asked.  Nothing
 * waits.  With moments.c's lock.
 */
#include <string.h>

#include "inject/probe/cuda/cuda.h"
#include "inject/probe/watch/watch.h"

#define PLACES 64u /* values that may be under way at once; a power of two */

struct place {
    unsigned ticket; /* of the value that was begun last */
    bool kept;       /* its row waits for it */
    int device;
    void *event;
};
static struct place places[PLACES];
static uint64_t *arrived; /* the host's memory: a word for each place */
static unsigned last;     /* ticket */

static struct place *place_of(unsigned ticket)
{
    struct place *place = &places[ticket % PLACES];
    return ticket && place->ticket == ticket ? place : NULL;
}

unsigned prb_watch_device_begin(const void *from, size_t size, int device)
{
    unsigned ticket = last + 1 ? last + 1 : 1;
    struct place *place = &places[ticket % PLACES];
    struct prb_cuda_visit visit;
    if (place->kept || !prb_cuda_enter(&visit))
        return 0;
    if (!arrived)
        arrived = prb_cuda_host_memory(PLACES * sizeof *arrived);
    bool begun = arrived && visit.device == device;
    if (begun) {
        if (place->device != device)
            place->event = NULL; /* an event is of one device; there are few */
        place->device = device;
        place->ticket = last = ticket;
        begun = prb_cuda_copy(&visit, from, &arrived[ticket % PLACES], size) &&
                prb_cuda_record(&visit, false, &place->event);
        if (!begun)
            place->ticket = 0;
    }
    prb_cuda_leave(&visit);
    return begun ? ticket : 0;
}

bool prb_watch_device_keep(unsigned ticket)
{
    struct place *place = place_of(ticket);
    if (place)
        place->kept = true;
    return place;
}

bool prb_watch_device_take(unsigned ticket, uint64_t *out)
{
    struct place *place = place_of(ticket);
    struct prb_cuda_visit visit;
    if (!place || !prb_cuda_enter(&visit))
        return false;
    bool done = prb_cuda_is_done(place->event);
    prb_cuda_leave(&visit);
    if (done) {
        *out = arrived[ticket % PLACES];
        place->kept = false;
    }
    return done;
}

void prb_watch_device_forget(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        places[i].kept = false;
}

void prb_watch_device_forked(void)
{
    memset(places, 0, sizeof places);
    arrived = NULL;
}

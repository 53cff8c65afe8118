/*
 * The record of samples: the region that the tool reads (lib/allocation/region.h), and beside it
 * what only the probe needs: the live samples by address, and the index of sites.  One lock, held
 * for a microsecond; a thousand times that where cells are folded or live samples thinned, which is
 * seldom.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/memory/memory.h"

#define LIVE_MAX 65536u /* samples that are not freed; a power of two */
#define LIVE_FULL (LIVE_MAX / 8 * 7)
#define CELLS_FULL (PRB_REGION_CELLS_MAX / 4 * 3)
#define INDEX_MAX (2 * PRB_REGION_SITES_MAX)
#define PERIOD_LEAST 1024.0
#define PERIOD_MOST 1e12
#define WINDOW_NS 100000000u /* in which a rate that is too high is seen at once */
#define INTERVAL_MOST (1u << 30)

struct private {
    struct prb_memory_sample live[LIVE_MAX]; /* open addressing by block */
    uint8_t filter_count[1u << PRB_MEMORY_FILTER_BITS];
    uint32_t site_index[INDEX_MAX]; /* 1 + site, open addressing by hash; 0: free */
    uint32_t site_hash[PRB_REGION_SITES_MAX];
};

struct prb_memory_words prb_memory_words;
struct prb_memory_thread prb_memory_threads[1u << PRB_MEMORY_THREADS_BITS];

static struct {
    pthread_mutex_t lock;
    struct prb_region *region;
    struct private *private;
    struct prb_memory_limits limits;
    uint64_t random;
    uint32_t epoch;
    uint32_t live_count, cell_count;
    uint64_t began;             /* ns, monotonic */
    uint64_t window, second;    /* ns: since when taken and rate count */
    uint32_t taken, rate_taken; /* samples since */
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* here: of a thread of the program, which may be interrupted by a signal handler that allocates; or
 * NULL. */
static void lock(struct prb_memory_thread *here)
{
    if (here)
        here->locked = 1;
    pthread_mutex_lock(&record.lock);
}

static void unlock(struct prb_memory_thread *here)
{
    pthread_mutex_unlock(&record.lock);
    if (here)
        here->locked = 0;
}

/* ---- threads ---- */

#define THREADS (1u << PRB_MEMORY_THREADS_BITS)

/* Open addressing by the thread pointer; nobody is ever removed. */
struct prb_memory_thread *prb_memory_find(uintptr_t pointer)
{
    uint32_t at =
        (uint32_t)(pointer * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PRB_MEMORY_THREADS_BITS));
    for (uint32_t i = 0; i < THREADS; i++) {
        struct prb_memory_thread *one = &prb_memory_threads[(at + i) % THREADS];
        uintptr_t owner = __atomic_load_n(&one->pointer, __ATOMIC_RELAXED);
        if (!owner)
            __atomic_compare_exchange_n(&one->pointer, &owner, pointer, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        if (one->pointer == pointer)
            return one;
    }
    return NULL;
}

/* ---- memory ---- */

struct shape {
    size_t sites, frames, cells[2], bytes;
};

static size_t page_up(size_t bytes) { return (bytes + 4095) & ~(size_t)4095; }

static struct shape shape_of_region(void)
{
    struct shape shape = {.sites = page_up(sizeof(struct prb_region))};
    shape.frames = shape.sites + page_up(PRB_REGION_SITES_MAX * sizeof(struct prb_site));
    shape.cells[0] = shape.frames + page_up(PRB_REGION_FRAMES_MAX * sizeof(struct prb_site_frame));
    size_t cells = page_up(PRB_REGION_CELLS_MAX * sizeof(struct prb_cell));
    shape.cells[1] = shape.cells[0] + cells;
    shape.bytes = shape.cells[1] + cells;
    return shape;
}

static void *map_anonymous(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* By its name in the maps the tool finds it. */
static void *map_region(size_t bytes)
{
    int fd = (int)syscall(SYS_memfd_create, PRB_REGION_NAME, 1u /* MFD_CLOEXEC */);
    if (fd < 0)
        return NULL;
    void *at = ftruncate(fd, (off_t)bytes) == 0
                   ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_DONTFORK);
    return at;
}

static bool have_private(void)
{
    if (record.private) {
        memset(record.private, 0, sizeof *record.private);
        return true;
    }
    record.private = map_anonymous(sizeof *record.private);
    if (record.private)
        madvise(record.private, sizeof *record.private, MADV_DONTFORK);
    return record.private;
}

/* ---- the period ---- */

static void set_period(double period)
{
    period = period < PERIOD_LEAST ? PERIOD_LEAST : period > PERIOD_MOST ? PERIOD_MOST : period;
    record.region->period = period;
    if (!++record.epoch)
        record.epoch = 1;
    __atomic_store_n(&prb_memory_words.epoch, record.epoch, __ATOMIC_RELEASE);
}

/* A program that begins to allocate much must not wait a second for a longer period. */
static void count_sample(uint64_t now)
{
    record.region->samples++;
    record.rate_taken++;
    if (now - record.window > WINDOW_NS) {
        record.window = now;
        record.taken = 0;
    }
    if (++record.taken > 4 + 2 * record.limits.samples * WINDOW_NS / 1e9) {
        set_period(2 * record.region->period);
        record.window = now;
        record.taken = 0;
    }
}

void prb_memory_record_adapt(void)
{
    lock(NULL);
    uint64_t now = prb_clock_ns();
    double seconds = (double)(now - record.second) / 1e9;
    if (prb_memory_words.epoch && seconds > 0.2) {
        double rate = record.rate_taken / seconds;
        if (rate > record.limits.samples)
            set_period(2 * record.region->period);
        else if (rate < 0.4 * record.limits.samples && record.region->period > PERIOD_LEAST)
            set_period(record.region->period / 2);
        record.second = now;
        record.rate_taken = 0;
    }
    unlock(NULL);
}

/* ---- cells ---- */

static struct prb_cell *cells_of(uint32_t which)
{
    return (struct prb_cell *)((char *)record.region + record.region->cell_place[which]);
}

/* The cell of that key, or the free one where it would be; NULL: neither. */
static struct prb_cell *find_cell(struct prb_cell *cells, uint32_t site, uint32_t thread,
                                  uint32_t interval)
{
    uint64_t hash =
        (((uint64_t)site << 32 | interval) ^ (uint64_t)thread << 20) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 40);
    for (uint32_t i = 0; i < PRB_REGION_CELLS_MAX; i++) {
        struct prb_cell *cell = &cells[(at + i) % PRB_REGION_CELLS_MAX];
        if (!cell->samples ||
            (cell->site == site && cell->thread == thread && cell->interval == interval))
            return cell;
    }
    return NULL;
}

/* Intervals of twice the length, until half of the cells are free or nothing is won any more. */
static void fold(void)
{
    struct prb_region *region = record.region;
    while (record.cell_count > PRB_REGION_CELLS_MAX / 2 && region->interval < INTERVAL_MOST) {
        struct prb_cell *from = cells_of(region->cells), *to = cells_of(1 - region->cells);
        __atomic_add_fetch(&region->moves, 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE); /* it is odd before any cell changes */
        memset(to, 0, PRB_REGION_CELLS_MAX * sizeof *to);
        record.cell_count = 0;
        for (uint32_t i = 0; i < PRB_REGION_CELLS_MAX; i++) {
            if (!from[i].samples)
                continue;
            struct prb_cell *cell =
                find_cell(to, from[i].site, from[i].thread, from[i].interval / 2);
            record.cell_count += !cell->samples;
            *cell = (struct prb_cell){
                .site = from[i].site,
                .thread = from[i].thread,
                .interval = from[i].interval / 2,
                .samples = cell->samples + from[i].samples,
                .bytes = cell->bytes + from[i].bytes,
                .count = cell->count + from[i].count,
                .live_bytes = cell->live_bytes + from[i].live_bytes,
                .live_count = cell->live_count + from[i].live_count,
                .live_variance = cell->live_variance + from[i].live_variance,
            };
        }
        region->interval *= 2;
        region->cells = 1 - region->cells;
        __atomic_add_fetch(&region->moves, 1, __ATOMIC_RELEASE);
    }
}

/* What a sample stands for. */
struct weight {
    double bytes, count, variance;
};

static struct weight weight_of(const struct prb_memory_sample *sample)
{
    double size = (double)(sample->size ? sample->size : 1);
    double chance = prb_memory_chance(size / (double)sample->period);
    return (struct weight){size / chance, 1 / chance,
                           size * size * (1 - chance) / (chance * chance)};
}

/* sign 1: it lives; -1: it was freed. */
static void count_live(const struct prb_memory_sample *sample, double sign)
{
    struct prb_cell *cell = find_cell(cells_of(record.region->cells), sample->site, sample->thread,
                                      sample->second / record.region->interval);
    if (!cell || !cell->samples)
        return;
    struct weight weight = weight_of(sample);
    cell->live_bytes += sign * weight.bytes;
    cell->live_count += sign * weight.count;
    cell->live_variance += sign * weight.variance;
}

/* ---- live samples ---- */

static uint32_t live_place(uint64_t block)
{
    return (uint32_t)((block >> 4) * UINT64_C(0xd1342543de82ef95) >> 48) % LIVE_MAX;
}

static void filter_add(uint64_t block)
{
    uint32_t place = prb_memory_place((void *)(uintptr_t)block);
    uint8_t *count = &record.private->filter_count[place];
    if (*count < UINT8_MAX)
        ++*count;
    __atomic_or_fetch(&prb_memory_words.filter[place / 64], UINT64_C(1) << place % 64,
                      __ATOMIC_RELAXED);
}

static void filter_remove(uint64_t block)
{
    uint32_t place = prb_memory_place((void *)(uintptr_t)block);
    uint8_t *count = &record.private->filter_count[place];
    if (*count == UINT8_MAX || --*count) /* so many that they were not counted: it stays */
        return;
    __atomic_and_fetch(&prb_memory_words.filter[place / 64], ~(UINT64_C(1) << place % 64),
                       __ATOMIC_RELAXED);
}

static struct prb_memory_sample *find_live(uint64_t block)
{
    struct prb_memory_sample *live = record.private->live;
    for (uint32_t at = live_place(block); live[at].block; at = (at + 1) % LIVE_MAX)
        if (live[at].block == block)
            return &live[at];
    return NULL;
}

static void add_live(const struct prb_memory_sample *sample)
{
    struct prb_memory_sample *live = record.private->live;
    uint32_t at = live_place(sample->block);
    while (live[at].block)
        at = (at + 1) % LIVE_MAX;
    live[at] = *sample;
    record.live_count++;
    filter_add(sample->block);
    count_live(sample, 1);
    record.region->live_samples = record.live_count;
}

/* What stands behind it moves up where its chain would be cut (Knuth, 6.4, algorithm R). */
static void remove_live(struct prb_memory_sample *sample)
{
    struct prb_memory_sample *live = record.private->live;
    count_live(sample, -1);
    filter_remove(sample->block);
    record.live_count--;
    record.region->live_samples = record.live_count;
    uint32_t hole = (uint32_t)(sample - live), at = hole;
    for (;;) {
        live[hole].block = 0;
        do {
            at = (at + 1) % LIVE_MAX;
            if (!live[at].block)
                return;
        } while ((at - live_place(live[at].block)) % LIVE_MAX < (at - hole) % LIVE_MAX);
        live[hole] = live[at];
        hole = at;
    }
}

/* Too many live: each stays with the chance that a period of twice the length gives it, and stands
 * for more. */
static void thin(void)
{
    struct prb_memory_sample *live = record.private->live;
    /* Removing moves others up, so what is looked at again decides anew: backwards nothing is. */
    for (uint32_t i = LIVE_MAX; i-- > 0;) {
        if (!live[i].block)
            continue;
        struct prb_memory_sample kept = live[i];
        double size = (double)(kept.size ? kept.size : 1);
        double keep = prb_memory_chance(size / (2.0 * (double)kept.period)) /
                      prb_memory_chance(size / (double)kept.period);
        bool stays = (double)(prb_memory_random(&record.random) >> 11) * 0x1p-53 < keep;
        count_live(&live[i], -1);
        kept.period *= 2;
        live[i].period = kept.period;
        count_live(&live[i], 1);
        if (!stays)
            remove_live(&live[i]);
    }
    if (record.region->period < PERIOD_MOST)
        set_period(2 * record.region->period);
}

/* ---- sites ---- */

static uint32_t hash_site(const struct prb_site *site, const struct prb_site_frame *frames)
{
    uint64_t hash = site->caller * UINT64_C(0x9e3779b97f4a7c15) + site->kind;
    for (uint32_t i = 0; i < site->count; i++) {
        hash = (hash ^ frames[i].code) * UINT64_C(0xd1342543de82ef95);
        hash = (hash ^ ((uint64_t)(uint32_t)frames[i].instruction << 32 | frames[i].check)) *
               UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32);
}

static bool same_site(const struct prb_site *a, const struct prb_site_frame *a_frames,
                      const struct prb_site *b, const struct prb_site_frame *b_frames)
{
    return a->caller == b->caller && a->kind == b->kind && a->count == b->count &&
           a->cut == b->cut && memcmp(a_frames, b_frames, a->count * sizeof *a_frames) == 0;
}

/* Its number; UINT32_MAX: no room. */
static uint32_t site_number(struct prb_site *site, const struct prb_site_frame *frames)
{
    struct prb_region *region = record.region;
    struct prb_site *sites = (void *)((char *)region + region->site_place);
    struct prb_site_frame *all = (void *)((char *)region + region->frame_place);
    uint32_t hash = hash_site(site, frames), at = hash % INDEX_MAX, number;
    for (; (number = record.private->site_index[at]); at = (at + 1) % INDEX_MAX)
        if (record.private->site_hash[number - 1] == hash &&
            same_site(&sites[number - 1], &all[sites[number - 1].first], site, frames))
            return number - 1;
    number = region->site_count;
    if (number >= PRB_REGION_SITES_MAX || region->frame_count + site->count > PRB_REGION_FRAMES_MAX)
        return UINT32_MAX;
    site->first = region->frame_count;
    memcpy(&all[site->first], frames, site->count * sizeof *frames);
    sites[number] = *site;
    region->frame_count += site->count;
    __atomic_store_n(&region->site_count, number + 1, __ATOMIC_RELEASE);
    record.private->site_hash[number] = hash;
    record.private->site_index[at] = number + 1;
    return number;
}

/* ---- a sample ---- */

/* Add it to its cell.  False: there is no room. */
static bool count_allocated(const struct prb_memory_sample *sample)
{
    struct prb_region *region = record.region;
    if (record.cell_count >= CELLS_FULL)
        fold();
    uint32_t interval = sample->second / region->interval;
    struct prb_cell *cell =
        find_cell(cells_of(region->cells), sample->site, sample->thread, interval);
    if (!cell || (!cell->samples && record.cell_count >= CELLS_FULL))
        return false;
    struct weight weight = weight_of(sample);
    if (!cell->samples) {
        cell->site = sample->site;
        cell->thread = sample->thread;
        cell->interval = interval;
        record.cell_count++;
    }
    cell->bytes += weight.bytes;
    cell->count += weight.count;
    __atomic_store_n(&cell->samples, cell->samples + 1, __ATOMIC_RELEASE);
    return true;
}

static void add_sample(struct prb_site *site, const struct prb_site_frame *frames,
                       struct prb_memory_sample *sample)
{
    uint64_t now = prb_clock_ns();
    sample->second = (uint32_t)((now - record.began) / 1000000000u);
    count_sample(now);
    /* A block whose free was not seen: it has gone, as another one is there. */
    struct prb_memory_sample *stale = find_live(sample->block);
    if (stale)
        remove_live(stale);
    sample->site = site_number(site, frames);
    if (sample->site == UINT32_MAX || !count_allocated(sample)) {
        record.region->lost++;
        return;
    }
    if (record.live_count >= LIVE_FULL)
        thin();
    add_live(sample);
}

/* The distance to the thread's next sample. */
static void draw(struct prb_memory_thread *here)
{
    here->period = (float)record.region->period;
    here->left = (int64_t)(prb_memory_exponential(&record.random) * (double)here->period);
    here->epoch = record.epoch;
}

/* Whether the thread's distance ends in this block. */
static bool is_sampled(struct prb_memory_thread *here, size_t size)
{
    if (here->epoch == prb_memory_words.epoch)
        return true; /* left is below 0 */
    lock(here);
    if (prb_memory_words.epoch) {
        draw(here);
        here->left -= (int64_t)size;
    }
    bool sampled = prb_memory_words.epoch && here->left < 0;
    unlock(here);
    return sampled;
}

static void sample_block(struct prb_memory_thread *here, struct prb_memory_sample *sample,
                         struct prb_site *site)
{
    struct prb_site_frame frames[PRB_SITE_FRAMES_MAX];
    bool cut = false;
    site->count = prb_memory_frames(site->kind == PRB_ALLOCATION_PYTHON, frames, &cut);
    site->cut = cut;
    sample->thread = (uint32_t)syscall(SYS_gettid);
    lock(here);
    if (prb_memory_words.epoch) {
        add_sample(site, frames, sample);
        draw(here);
    }
    unlock(here);
}

void prb_memory_take(struct prb_memory_thread *here, void *block, size_t size,
                     enum prb_allocation_kind kind, const void *caller)
{
    if (!prb_memory_words.epoch || here->locked)
        return;
    int saved_errno = errno;
    here->depth = 1;
    if (is_sampled(here, size)) {
        struct prb_site site = {.caller = (uintptr_t)caller, .kind = kind};
        if (caller && prb_memory_is_torch(caller))
            site.kind = PRB_ALLOCATION_TORCH_CPU;
        struct prb_memory_sample sample = {
            .block = (uintptr_t)block, .size = size, .period = here->period};
        sample_block(here, &sample, &site);
    }
    here->depth = 0;
    errno = saved_errno;
}

struct prb_memory_sample prb_memory_forget_slow(const void *block)
{
    struct prb_memory_thread *here = prb_memory_here();
    struct prb_memory_sample sample = {0};
    if (here && here->locked)
        return sample;
    lock(here);
    struct prb_memory_sample *live = prb_memory_words.epoch ? find_live((uintptr_t)block) : NULL;
    if (live) {
        sample = *live;
        remove_live(live);
    }
    unlock(here);
    return sample;
}

void prb_memory_restore(const struct prb_memory_sample *sample)
{
    struct prb_memory_thread *here = prb_memory_here();
    if (!sample->block || (here && here->locked))
        return;
    lock(here);
    if (prb_memory_words.epoch && !find_live(sample->block) && record.live_count < LIVE_FULL)
        add_live(sample);
    unlock(here);
}

/* ---- beginning and end ---- */

static void begin_region(const struct shape *shape)
{
    struct prb_region *region = record.region;
    region->size = sizeof *region;
    region->pid = getpid();
    region->since = prb_clock_epoch_s();
    region->interval = 1;
    region->site_place = shape->sites;
    region->frame_place = shape->frames;
    memcpy(region->cell_place, shape->cells, sizeof shape->cells);
    record.began = record.window = record.second = prb_clock_ns();
    record.taken = record.rate_taken = record.live_count = record.cell_count = 0;
    record.random = (record.began ^ (uintptr_t)region << 17) | 1;
}

bool prb_memory_record_begin(const struct prb_memory_limits *limits, struct prb_error *err)
{
    struct shape shape = shape_of_region();
    bool ok = true;
    lock(NULL);
    if (!have_private()) {
        ok = prb_fail(err, PRB_NOMEM, "no memory for the record of allocations");
    } else {
        madvise(&prb_memory_words, sizeof prb_memory_words,
                MADV_WIPEONFORK); /* else forked() does it */
        memset(&prb_memory_words, 0, sizeof prb_memory_words);
        if (record.region)
            munmap(record.region, shape.bytes);
        record.region = map_region(shape.bytes);
        ok = record.region || prb_fail_sys(err, errno, "making the record of allocations");
    }
    if (ok) {
        record.limits = *limits;
        begin_region(&shape);
        __atomic_store_n(&record.region->magic, PRB_REGION_MAGIC, __ATOMIC_RELEASE);
        set_period(limits->period);
    }
    unlock(NULL);
    return ok;
}

void prb_memory_record_end(void)
{
    lock(NULL);
    __atomic_store_n(&prb_memory_words.epoch, 0, __ATOMIC_RELEASE);
    memset(prb_memory_words.filter, 0, sizeof prb_memory_words.filter);
    if (record.region && !record.region->until)
        record.region->until = prb_clock_epoch_s();
    unlock(NULL);
}

void prb_memory_record_limit(const struct prb_memory_limits *limits)
{
    lock(NULL);
    bool other = record.limits.period != limits->period;
    record.limits = *limits;
    if (other && record.region && prb_memory_words.epoch)
        set_period(limits->period);
    unlock(NULL);
}

void prb_memory_record_hooked(bool python, const char *why, unsigned libraries)
{
    lock(NULL);
    if (record.region) {
        record.region->python = python;
        record.region->libraries = libraries;
        strncpy(record.region->why_no_python, why ? why : "",
                sizeof record.region->why_no_python - 1);
    }
    unlock(NULL);
}

void prb_memory_record_free(void)
{
    struct shape shape = shape_of_region();
    lock(NULL);
    if (record.region)
        munmap(record.region, shape.bytes);
    if (record.private)
        munmap(record.private, sizeof *record.private);
    record.region = NULL;
    record.private = NULL;
    unlock(NULL);
}

void prb_memory_record_forked(void)
{
    pthread_mutex_init(&record.lock, NULL);
    record.region = NULL; /* they are not mapped here */
    record.private = NULL;
    memset(&prb_memory_words, 0, sizeof prb_memory_words);
}

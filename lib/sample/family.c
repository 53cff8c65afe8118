/* The processes that sampled processes start (family.h). */
#include "sample/family.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/target.h"

#define LOOK_NS 100000000
#define FIRST_TRY_NS 50000000 /* doubled each time */
#define TRIES_MAX 10
#define FAMILY_MAX 4096

void prb_family_deinit(struct prb_family *family) { free(family->items); }

static struct prb_kin *find(struct prb_family *family, pid_t pid)
{
    for (size_t i = 0; i < family->count; i++)
        if (family->items[i].pid == pid)
            return &family->items[i];
    return NULL;
}

void prb_family_add(struct prb_family *family, pid_t pid, bool member, bool ranks)
{
    struct prb_kin *known = find(family, pid);
    if (known) {
        known->seen = true;
        known->member |= member;
        return;
    }
    if (family->count >= FAMILY_MAX || !PRB_GROW(family->items, family->count, family->cap))
        return;
    family->items[family->count++] =
        (struct prb_kin){.pid = pid, .member = member, .ranks = ranks, .seen = true};
}

static void add_children(struct prb_family *family, const char *path, bool ranks)
{
    char text[4096];
    prb_read_text(path, text, sizeof text);
    char *end;
    for (char *at = text; *at; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at || (*end && *end != ' '))
            return; /* the end, or a number that was cut */
        prb_family_add(family, (pid_t)pid, false, ranks);
    }
}

static bool is_rank(pid_t pid)
{
    return prb_process_rank(pid) >= 0 && prb_process_is_python(pid, NULL);
}

/* Where ranks are wanted a rank's children are its workers, also before it is a member itself. */
static void look_at(struct prb_family *family, struct prb_kin kin)
{
    char path[80];
    bool ranks = kin.ranks && !kin.member;
    if ((kin.member && !family->children) || (ranks && is_rank(kin.pid)))
        return;
    snprintf(path, sizeof path, "/proc/%d/task", (int)kin.pid);
    PRB_AUTO(dir) DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        long tid = strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%ld/children", (int)kin.pid, tid);
        add_children(family, path, ranks);
    }
}

static bool exists(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return access(path, F_OK) == 0;
}

static void forget_the_dead(struct prb_family *family)
{
    size_t kept = 0;
    for (size_t i = 0; i < family->count; i++)
        if (family->items[i].seen || exists(family->items[i].pid))
            family->items[kept++] = family->items[i];
    family->count = kept;
}

void prb_family_look(struct prb_family *family, uint64_t now, prb_family_add_fn *add, void *context)
{
    if (now < family->next_look)
        return;
    family->next_look = now + LOOK_NS;
    for (size_t i = 0; i < family->count; i++)
        family->items[i].seen = false;
    for (size_t i = 0; i < family->count; i++) /* also those that are found meanwhile */
        look_at(family, family->items[i]);
    forget_the_dead(family);
    for (size_t i = 0; i < family->count; i++) {
        struct prb_kin *kin = &family->items[i];
        if (kin->member || kin->tries >= TRIES_MAX || now < kin->next_try)
            continue;
        kin->next_try = now + ((uint64_t)FIRST_TRY_NS << kin->tries++);
        kin->member = (kin->ranks ? is_rank(kin->pid) : prb_process_is_python(kin->pid, NULL)) &&
                      add(context, kin->pid);
    }
}

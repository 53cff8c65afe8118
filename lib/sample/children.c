/* The processes that sampled processes start (children.h). */
#include "sample/children.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/target.h"

#define SEARCH_NS 100000000
#define FIRST_TRY_NS 50000000 /* doubled each time */
#define TRIES_MAX 10
#define CHILDREN_MAX 4096

void prb_children_deinit(struct prb_children *children) { free(children->items); }

static struct prb_child *find(struct prb_children *children, pid_t pid)
{
    for (size_t i = 0; i < children->count; i++)
        if (children->items[i].pid == pid)
            return &children->items[i];
    return NULL;
}

void prb_children_add(struct prb_children *children, pid_t pid, bool sampled, bool ranks)
{
    struct prb_child *known = find(children, pid);
    if (known) {
        known->seen = true;
        known->sampled |= sampled;
        return;
    }
    if (children->count >= CHILDREN_MAX ||
        !PRB_GROW(children->items, children->count, children->cap))
        return;
    children->items[children->count++] =
        (struct prb_child){.pid = pid, .sampled = sampled, .ranks = ranks, .seen = true};
}

static void add_children(struct prb_children *children, const char *path, bool ranks)
{
    char text[4096];
    prb_read_text(path, text, sizeof text);
    char *end;
    for (char *at = text; *at; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at || (*end && *end != ' '))
            return; /* the end, or a number that was cut */
        prb_children_add(children, (pid_t)pid, false, ranks);
    }
}

static bool is_rank(pid_t pid)
{
    return prb_process_rank(pid) >= 0 && prb_process_is_python(pid, NULL);
}

/* Where ranks are wanted, a rank's children are its workers, even before the rank is sampled. */
static void look_at(struct prb_children *children, struct prb_child child)
{
    char path[80];
    bool ranks = child.ranks && !child.sampled;
    if ((child.sampled && !children->of_sampled) || (ranks && is_rank(child.pid)))
        return;
    snprintf(path, sizeof path, "/proc/%d/task", (int)child.pid);
    PRB_AUTO(dir) DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        long tid = strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%ld/children", (int)child.pid, tid);
        add_children(children, path, ranks);
    }
}

static bool exists(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return access(path, F_OK) == 0;
}

static void forget_the_dead(struct prb_children *children)
{
    size_t kept = 0;
    for (size_t i = 0; i < children->count; i++)
        if (children->items[i].seen || exists(children->items[i].pid))
            children->items[kept++] = children->items[i];
    children->count = kept;
}

void prb_children_search(struct prb_children *children, uint64_t now, prb_children_add_fn *add,
                         void *context)
{
    if (now < children->next_search)
        return;
    children->next_search = now + SEARCH_NS;
    for (size_t i = 0; i < children->count; i++)
        children->items[i].seen = false;
    for (size_t i = 0; i < children->count; i++) /* those that are found meanwhile, too */
        look_at(children, children->items[i]);
    forget_the_dead(children);
    for (size_t i = 0; i < children->count; i++) {
        struct prb_child *child = &children->items[i];
        if (child->sampled || child->tries >= TRIES_MAX || now < child->next_try)
            continue;
        child->next_try = now + ((uint64_t)FIRST_TRY_NS << child->tries++);
        child->sampled =
            (child->ranks ? is_rank(child->pid) : prb_process_is_python(child->pid, NULL)) &&
            add(context, child->pid);
    }
}

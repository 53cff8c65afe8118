/* A launched program and the processes that descend from it, to be ended together. */
#ifndef PRB_DAP_TREE_H
#define PRB_DAP_TREE_H

#include <stdbool.h>
#include <sys/types.h>

#define PRB_DAP_TREE_MAX 4096

struct prb_dap_tree {
    int *pidfds;
    size_t count;
};

/* Add the processes that descend from root now, and those of its process group if it leads one;
 * not root itself.  They are known by descriptors, so that no other process is meant later. */
void prb_dap_tree_add(struct prb_dap_tree *tree, pid_t root);
void prb_dap_tree_signal(const struct prb_dap_tree *tree, int number);
/* Whether all have ended; wait_ms: how long to wait for that. */
bool prb_dap_tree_has_ended(const struct prb_dap_tree *tree, int wait_ms);
void prb_dap_tree_deinit(struct prb_dap_tree *tree);

#endif

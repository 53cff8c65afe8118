/* The functions that plugins are given (probing_plugin.h). */
#ifndef PRB_PLUGIN_HOST_H
#define PRB_PLUGIN_HOST_H

struct probing_host;
extern const struct probing_host prb_plugin_host;

#endif

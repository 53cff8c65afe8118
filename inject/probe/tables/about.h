/* What the folder of rings says of this process, for readers that come when it has ended. */
#ifndef PRB_PROBE_TABLES_ABOUT_H
#define PRB_PROBE_TABLES_ABOUT_H

/* Write the file of ring/folder.h into a folder: rank, world size, command line.  Where that fails,
 * it is not there. */
void prb_tables_about(int folder);

#endif

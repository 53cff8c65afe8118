/*
 * What launchers set in the environment of a rank: torchrun, Open MPI, Slurm, MPICH.  Initializers
 * of arrays; the first that is set counts.
 */
#ifndef PRB_BASE_RANK_VARIABLES_H
#define PRB_BASE_RANK_VARIABLES_H

#define PRB_RANK_VARIABLES "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"
#define PRB_LOCAL_RANK_VARIABLES                                                                   \
    "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"
#define PRB_WORLD_SIZE_VARIABLES "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"

#endif

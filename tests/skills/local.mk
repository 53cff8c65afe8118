# Skills: each finds the fault that it is for, in a job that was planted with it.
PYTESTS += %D%/test_skills.py
EXTRA_DIST += %D%/job.py

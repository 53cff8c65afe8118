# What a job recorded, as files of other programs.
PYTESTS += %D%/test_export.py %D%/test_tensorboard.py

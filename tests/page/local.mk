# serve/page: what it is made of; the page in Chromium on real jobs.
if SERVE
PYTESTS += %D%/test_page_files.py
PYTESTS += %D%/test_assets.py
PYTESTS += %D%/test_screens.py
PYTESTS += %D%/test_overview.py
PYTESTS += %D%/test_ranks.py
PYTESTS += %D%/test_job_target.py
PYTESTS += %D%/test_hosts_of_a_job.py
PYTESTS += %D%/test_training.py
PYTESTS += %D%/test_heat.py
PYTESTS += %D%/test_everywhere.py
PYTESTS += %D%/test_jobs.py
PYTESTS += %D%/test_pictures.py
PYTESTS += %D%/test_speed.py
endif
EXTRA_DIST += %D%/conftest.py %D%/test_page_files.py %D%/test_assets.py %D%/test_screens.py %D%/test_everywhere.py \
	%D%/test_jobs.py %D%/test_pictures.py %D%/test_speed.py %D%/jobs/crashes.py %D%/jobs/hangs.py %D%/jobs/healthy.py %D%/jobs/leaks.py \
	%D%/jobs/hostile.py %D%/jobs/tasks.py %D%/jobs/nan.py %D%/jobs/ranks.py %D%/jobs/trains.py %D%/jobs/deep.py %D%/jobs/steps.py %D%/test_overview.py \
	%D%/test_ranks.py %D%/test_job_target.py %D%/test_hosts_of_a_job.py %D%/test_training.py %D%/test_heat.py

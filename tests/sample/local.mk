# Profiles: what they say, their formats as other readers read them, and what goes wrong on the way.
PYTESTS += %D%/test_profile.py %D%/test_formats.py %D%/test_page.py %D%/test_bad_input.py %D%/test_hostile.py
EXTRA_DIST += %D%/conftest.py %D%/profiles.py

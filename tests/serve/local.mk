# probing serve: routes, access, plain text, hostile bytes.
if SERVE
PYTESTS += %D%/test_routes.py
PYTESTS += %D%/test_access.py
PYTESTS += %D%/test_protocol.py
PYTESTS += %D%/test_tls.py
PYTESTS += %D%/test_websocket.py
PYTESTS += %D%/test_limits.py
PYTESTS += %D%/test_fuzz.py
PYTESTS += %D%/test_tools.py
PYTESTS += %D%/test_text.py
PYTESTS += %D%/test_streams.py
PYTESTS += %D%/test_control.py
PYTESTS += %D%/test_history.py
PYTESTS += %D%/test_elsewhere.py
PYTESTS += %D%/test_looking.py
PYTESTS += %D%/test_live.py
PYTESTS += %D%/test_profiles.py
PYTESTS += %D%/test_openapi.py
PYTESTS += %D%/test_own.py
PYTESTS += %D%/test_metrics.py
PYTESTS += %D%/test_browser.py
endif
EXTRA_DIST += %D%/test_history.py %D%/test_live.py %D%/test_profiles.py %D%/test_metrics.py %D%/websocket.py
EXTRA_DIST += %D%/serving.py %D%/conftest.py %D%/test_routes.py %D%/test_access.py %D%/test_protocol.py %D%/test_text.py %D%/test_streams.py \
	%D%/test_control.py %D%/test_elsewhere.py
EXTRA_DIST += %D%/test_looking.py %D%/test_openapi.py
EXTRA_DIST += %D%/test_own.py %D%/test_browser.py %D%/test_tls.py %D%/test_websocket.py %D%/test_limits.py %D%/test_fuzz.py %D%/test_tools.py
if SERVE
PYTESTS += %D%/test_skills.py %D%/test_mcp.py
endif
EXTRA_DIST += %D%/test_skills.py %D%/test_mcp.py %D%/mcp_client.py
if SERVE
PYTESTS += %D%/test_upstream.py %D%/test_started.py %D%/test_again.py %D%/test_jobs.py
endif
EXTRA_DIST += %D%/test_upstream.py %D%/test_started.py %D%/test_again.py %D%/test_jobs.py

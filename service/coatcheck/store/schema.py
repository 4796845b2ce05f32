"""The schema's fixed names: its revision, its roles, the settings that a transaction claims, the oldest server it runs on."""

from __future__ import annotations

SCHEMA_REVISION = "0012"
"""The newest migration; a test holds that it is."""

OLDEST_SERVER = 15

OWNER_ROLE = "coatcheck_owner"
"""Owns the tables; NOLOGIN. Migrations run as it."""
APP_ROLE = "coatcheck_app"
"""What one principal may read and write; NOLOGIN."""
WORKER_ROLE = "coatcheck_worker"
"""One tenant, whole; NOLOGIN."""
LOGIN_ROLE = "coatcheck_login"
"""The embedded server's login: member of app and worker, inheriting from neither."""

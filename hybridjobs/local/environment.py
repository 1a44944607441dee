"""Environment variables: what points AWS clients at the embedded cloud, and what its own processes run with."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import boto3
import botocore.session
from botocore.config import Config

from hybridjobs.local.processes import MARKER
from hybridjobs.local.run_folder import RunFolder

ACCOUNT = "000000000000"
REGION = "us-east-1"
_LOOPBACK = "127.0.0.1,localhost"

CACHE_FOLDER = "HYBRIDJOBS_CACHE_FOLDER"
"""Names the folder where the contraction simulator keeps plans and compiled kernels from one job to the next."""

UNSET = (
    "AWS_CA_BUNDLE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_DEFAULT_PROFILE",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
"""Variables that would lead an AWS client away from the embedded cloud; unset them where `aws_environment` is set."""

# Everything else of the caller's environment stays outside: an option of the emulator, a profile or a proxy in it
# would change what runs.
_INHERITED = (
    "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "OMP_NUM_THREADS", "PATH", "PYTHONPYCACHEPREFIX", "TZ", "USER",
)  # fmt: skip
# How this machine reaches its package registries: a job that brings a requirements.txt installs it.
_INHERITED_PREFIX = "PIP_"
# Whether jobs run as processes or in containers, of which engine, and how many at once.
_INHERITED_RUNNER = (
    "HYBRIDJOBS_RUNNER", "HYBRIDJOBS_MAX_CONCURRENT_JOBS", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
)  # fmt: skip
_INHERITED_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "XDG_CONFIG_DIRS")


def aws_environment(aws_port: int, braket_url: str | None = None) -> dict[str, str]:
    """The variables that point any AWS client at the embedded cloud.

    The credentials are dummies that no other cloud accepts, and no file of the user's is read.
    Without `braket_url` (the Braket endpoint does not listen yet) its variable is left out.
    """
    return ({"AWS_ENDPOINT_URL_BRAKET": braket_url} if braket_url else {}) | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{aws_port}",
        "AWS_REGION": REGION,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def loopback_without_proxy(base: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep loopback away from the proxy that `base` names; none where it names no proxy."""
    if not any(name.lower() in {"http_proxy", "all_proxy"} for name in base):
        return {}
    kept = base.get("no_proxy") or base.get("NO_PROXY")
    exceptions = f"{kept},{_LOOPBACK}" if kept else _LOOPBACK
    return {"NO_PROXY": exceptions, "no_proxy": exceptions}


def client_session(variables: Mapping[str, str]) -> boto3.Session:
    """A boto3 session with the credentials and region of `variables`, whatever the caller's AWS and proxy settings are.

    Endpoints are not part of a session: give them to each client.
    """
    core = botocore.session.Session(
        session_vars={
            "profile": (None, [], None, None),
            "config_file": (None, [], os.devnull, None),
            "credentials_file": (None, [], os.devnull, None),
            "ca_bundle": (None, [], None, None),
        }
    )
    core.set_default_client_config(Config(proxies={}))
    return boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=variables["AWS_REGION"],
        botocore_session=core,
    )


def process_environment(folder: RunFolder, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of every process that the embedded cloud starts: ours by its marker, with its files in `folder`.

    Args:
        folder: Where temporary files, caches and the home folder are.
        base: The caller's environment, of which only the search path, the language and the like are passed on;
            this process's own by default.
    """
    base = os.environ if base is None else base
    inherited = {
        name: value
        for name, value in base.items()
        if name in (*_INHERITED, *_INHERITED_CERTIFICATES, *_INHERITED_RUNNER) or name.startswith(_INHERITED_PREFIX)
    }
    programs = [str(Path(sys.executable).parent), str(folder.root / "node_modules" / ".bin")]
    home, temporary = str(folder.home), str(folder.temporary)
    return inherited | {
        CACHE_FOLDER: base.get(CACHE_FOLDER, _user_cache_folder(base)),
        MARKER: str(folder.path),
        "HOME": home,
        "PATH": os.pathsep.join(dict.fromkeys([*programs, *inherited.get("PATH", os.defpath).split(os.pathsep)])),
        "TEMP": temporary,
        "TMP": temporary,
        "TMPDIR": temporary,
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_RUNTIME_DIR": temporary,
        "XDG_STATE_HOME": f"{home}/.local/state",
    }


def _user_cache_folder(base: Mapping[str, str]) -> str:
    """Outlives the run folder; empty, which keeps nothing, for a user without a home."""
    if base.get("XDG_CACHE_HOME"):
        return f"{base['XDG_CACHE_HOME']}/hybridjobs"
    return f"{base['HOME']}/.cache/hybridjobs" if base.get("HOME") else ""

"""What pip in a job's container needs to reach the package index that this machine uses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The file with all certificates that this machine trusts, most specific first.
_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_FOLDER = "/etc/hybrid-jobs"
# What has no files in it; caches, targets and configuration files of this machine mean nothing in a container.
_PLAIN = (
    "PIP_DEFAULT_TIMEOUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_RETRIES",
    "PIP_TRUSTED_HOST",
)


@dataclass(frozen=True)
class PipSettings:
    """Variables of the container, and files and folders of this machine that are mounted read-only by their place."""

    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path] = field(default_factory=dict)


NO_PIP_SETTINGS = PipSettings()


def pip_settings(environment: Mapping[str, str]) -> PipSettings:
    """Return what of this machine's settings of pip can hold in a container.

    They concern the installation of a job's requirements.txt alone: the job's own connections trust what its image
    trusts, as on AWS.
    """
    variables = {name: environment[name] for name in _PLAIN if environment.get(name)}
    mounts: dict[str, Path] = {}
    certificates = next((Path(environment[name]) for name in _CERTIFICATES if environment.get(name)), None)
    if certificates is not None and certificates.is_file():
        mounts[f"{_FOLDER}/certificates.crt"] = certificates.resolve()
        variables["PIP_CERT"] = f"{_FOLDER}/certificates.crt"
    links = []
    for place, link in enumerate(environment.get("PIP_FIND_LINKS", "").split()):
        if "://" in link:
            links.append(link)
        elif Path(link).is_dir():
            links.append(f"{_FOLDER}/packages-{place}")
            mounts[links[-1]] = Path(link).resolve()
    return PipSettings(variables | ({"PIP_FIND_LINKS": " ".join(links)} if links else {}), mounts)

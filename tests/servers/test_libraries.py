"""Missing libraries are found in real output, and Debian's packages named."""

import json
from pathlib import Path

import pytest

from pgstrata.servers.libraries import debian_packages, parse_missing

CAPTURES = Path(__file__).parent.parent / "captures" / "ldd"


@pytest.mark.parametrize("capture", sorted(CAPTURES.iterdir()), ids=lambda path: path.name)
def test_captured_output_names_what_is_missing(capture):
    missing = parse_missing((capture / "output.txt").read_text())
    expected = json.loads((capture / "expected.json").read_text())
    assert list(missing.libraries) == expected["libraries"]
    assert list(missing.glibc) == expected["glibc"]
    assert bool(missing) == bool(expected["libraries"] or expected["glibc"])


@pytest.mark.parametrize(
    ("soname", "package"),
    [
        ("libxml2.so.2", "libxml2"),
        ("libssl.so.3", "libssl3"),
        ("libcrypto.so.3", "libssl3"),
        ("libzstd.so.1", "libzstd1"),
        ("liblz4.so.1", "liblz4-1"),
        ("libgssapi_krb5.so.2", "libgssapi-krb5-2"),
        ("libkrb5.so.3", "libkrb5-3"),
        ("libk5crypto.so.3", "libk5crypto3"),
        ("libkrb5support.so.0", "libkrb5support0"),
        ("libcom_err.so.2", "libcom-err2"),
        ("libkeyutils.so.1", "libkeyutils1"),
        ("libreadline.so.8", "libreadline8"),
        ("libtinfo.so.6", "libtinfo6"),
        ("libicuuc.so.72", "libicu72"),
        ("libicudata.so.74", "libicu74"),
        ("libstdc++.so.6", "libstdc++6"),
        ("libgcc_s.so.1", "libgcc-s1"),
        ("libz.so.1", "zlib1g"),
        ("libldap-2.5.so.0", "libldap-2.5-0"),
        ("liburing.so.2", "liburing2"),
    ],
)
def test_libraries_are_known_by_their_debian_packages(soname, package):
    assert debian_packages(soname) == (package, f"{package}t64")


def test_a_name_that_is_no_library_has_no_package():
    assert debian_packages("postgres") == ()

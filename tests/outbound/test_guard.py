"""Threat T30: where the service may be made to look, and where not, however the address is written."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.domain.errors import OutboundRefused
from coatcheck.outbound.guard import Allowance, judge, kind_of, target_of

NOTHING, PRIVATE, LOOPBACK = Allowance(), Allowance(private=True), Allowance(loopback=True)
BOTH = Allowance(private=True, loopback=True)

ELSEWHERE = [
    "http://keys.example/jwks",
    "ftp://keys.example/jwks",
    "file:///etc/passwd",
    "gopher://keys.example/",
    "//keys.example/jwks",
    "keys.example/jwks",
    "https://",
    "https:///jwks",
    "https://user@keys.example/",
    "https://user:word@keys.example/",
    "https://keys.example@127.0.0.1/",
    "https://keys.example/#part",
    "https://keys.example:0x1bb/",
    "https://keys.example:99999/",
    "https://keys.example\\@127.0.0.1/",
    "https://keys.example/ a",
    "https://keys.example/\n",
    "https://keys.example/\x00",
    "https://[::1",
    "https://" + "a" * 3_000,
    "",
]
NUMBERS = [
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://1.2.3.4.5/",
    "https://127.0.0.1./",
    "https://0/",
    "https://keys.example.0x1/",
    "https://\u0661\u0662\u0667.0.0.1/",
    "https://１２７.0.0.1/",
    "https://127。0。0。1/",
    "https://keys%2eexample/",
    "https://[fe80::1%25eth0]/",
]
INSIDE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:7f00:1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "2001:db8::1",
    "100::1",
    "4000::1",
]
OUTSIDE = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]


def refused(url: str, allowance: Allowance) -> bool:
    try:
        target_of(url, allowance)
    except OutboundRefused:
        return True
    return False


@pytest.mark.parametrize("url", [*ELSEWHERE, *NUMBERS], ids=lambda url: repr(url)[:40])
def test_T30_an_address_in_any_but_its_plain_form_is_refused_whatever_is_open(url: str) -> None:
    assert refused(url, NOTHING)
    assert refused(url, BOTH) or url == "http://keys.example/jwks"  # whose addresses must then be this machine's


@pytest.mark.parametrize("text", INSIDE)
def test_T30_no_address_inside_is_connected_to(text: str) -> None:
    address = ipaddress.ip_address(text)

    with pytest.raises(OutboundRefused):
        judge(address, NOTHING, secure=True)
    assert refused(f"https://{f'[{text}]' if ':' in text else text}/jwks", NOTHING)


@pytest.mark.parametrize("text", OUTSIDE)
def test_a_public_address_is_connected_to_by_https_alone(text: str) -> None:
    address = ipaddress.ip_address(text)

    judge(address, NOTHING, secure=True)

    with pytest.raises(OutboundRefused):
        judge(address, BOTH, secure=False)


def test_what_an_operator_opens_opens_that_alone() -> None:
    open_to = {
        allowance: {text for text in INSIDE if not refused(f"https://{f'[{text}]' if ':' in text else text}/", allowance)}
        for allowance in (PRIVATE, LOOPBACK)
    }

    assert {"10.0.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "::ffff:10.0.0.1"} <= open_to[PRIVATE]
    assert {"127.0.0.1", "::1"} <= open_to[LOOPBACK]
    for text in ("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1", "0.0.0.0", "224.0.0.1"):
        assert text not in open_to[PRIVATE] | open_to[LOOPBACK]
    assert not open_to[PRIVATE] & {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert not refused("http://127.0.0.1:8080/jwks", LOOPBACK)
    assert refused("http://10.0.0.1/jwks", BOTH)


def test_http_is_opened_to_private_addresses_by_a_word_of_its_own_and_to_nothing_else() -> None:
    plain = Allowance(private=True, private_http=True)

    opened = {text for text in [*INSIDE, *OUTSIDE] if not refused(f"http://{f'[{text}]' if ':' in text else text}/v1", plain)}

    assert {"10.0.0.1", "172.16.0.1", "192.168.1.1", "fc00::1"} <= opened
    assert not opened & {"127.0.0.1", "::1", "169.254.169.254", "::ffff:169.254.169.254", "0.0.0.0", "fe80::1", *OUTSIDE}
    assert refused("http://10.0.0.1/v1", Allowance(private_http=True))
    with pytest.raises(OutboundRefused):
        judge(ipaddress.ip_address("1.1.1.1"), plain, secure=False)


@pytest.mark.parametrize(
    "url", ["https://keys.example/jwks", "https://a-b.keys.example:8443/x?y=z", "https://1.1.1.1/", "https://xn--80ak6aa92e.com/"]
)
def test_an_ordinary_address_is_a_target(url: str) -> None:
    target = target_of(url, NOTHING)

    assert (target.url, target.secure) == (url, True)
    assert target.port == (8443 if "8443" in url else 443)


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_T30_an_address_inside_another_is_judged_by_what_it_leads_to(number: int) -> None:
    plain = ipaddress.IPv4Address(number)
    carriers = [
        ipaddress.IPv6Address(f"::ffff:{plain}"),
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) + number),
        ipaddress.IPv6Address((0x2002 << 112) + (number << 80) + 1),
    ]

    for carrier in carriers:
        if kind_of(plain) != "public":
            with pytest.raises(OutboundRefused):
                judge(carrier, NOTHING, secure=True)


@given(st.text(max_size=60))
def test_no_text_breaks_the_guard(text: str) -> None:
    refused(text, NOTHING)
    refused(f"https://{text}/", NOTHING)

"""Which addresses may be fetched from: public ones by https, and what an operator has opened besides.

A host is judged by the addresses it resolves to, each of them, and the connection goes to the address that was judged: a name
that resolves differently a moment later gains nothing (DNS rebinding). Addresses that carry another one inside (v4-mapped, 6to4,
NAT64, Teredo) are judged by both. Link-local addresses, where clouds keep their credentials, are never allowed.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from coatcheck.domain.errors import OutboundRefused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Kind = Literal["public", "private", "loopback", "never"]

MAX_URL_CHARS = 2_000
_VISIBLE = re.compile(r"[!-~]+")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_ENDS_IN_A_NUMBER = re.compile(r"(?:^|\.)(?:\d+|0[xX][0-9a-fA-F]*)$")

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_V4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "fc00::/7")
)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is open besides public addresses by https. ``loopback`` opens http as well, to this machine alone."""

    private: bool = False
    loopback: bool = False
    private_http: bool = False
    """Http to private addresses too, where ``private`` opens them: a model server of one's own network mostly speaks no other."""

    @property
    def any_http(self) -> bool:
        return self.loopback or (self.private and self.private_http)


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be tried: its host is a name or an address in its one plain form."""

    url: str
    host: str
    port: int
    secure: bool


def target_of(url: str, allowance: Allowance) -> Target:
    """Raises OutboundRefused for what no address that it may resolve to could make right."""
    parts = _split(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    if not secure and not (parts.scheme == "http" and allowance.any_http):
        raise OutboundRefused("Only https is fetched from.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise OutboundRefused("The address holds a user or a fragment.")
    literal = _literal(host)
    if literal is None and (not _NAME.fullmatch(host) or _ENDS_IN_A_NUMBER.search(host)):
        # inet_aton reads 2130706433, 0x7f.1 and 0177.0.0.1 as addresses; nobody writes a public one like that.
        raise OutboundRefused("The host is neither a name nor an address in its plain form.")
    if literal is not None:
        judge(literal, allowance, secure=secure)
    try:
        port = parts.port or (443 if secure else 80)
    except ValueError as error:
        raise OutboundRefused("The port is none.") from error
    return Target(url, host, port, secure)


def judge(address: Address, allowance: Allowance, *, secure: bool) -> None:
    """Raises OutboundRefused unless the address, and every one inside it, may be connected to."""
    for one in (address, *_inside(address)):
        kind = kind_of(one)
        allowed = kind == "public" or (kind == "private" and allowance.private) or (kind == "loopback" and allowance.loopback)
        plain = kind == "loopback" or (kind == "private" and allowance.private_http)
        if not allowed or not (secure or plain):
            raise OutboundRefused("The address is not one that this service fetches from.")


def kind_of(address: Address) -> Kind:
    """What kind of place an address is, whatever it carries inside."""
    if address.is_loopback:
        return "loopback"
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return "never"
    if any(address in network for network in _PRIVATE if network.version == address.version):
        return "private"
    if _inside(address):
        return "public"
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return "never"
    return "public" if address.is_global and not address.is_reserved else "never"


def _inside(address: Address) -> tuple[Address, ...]:
    """IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    low = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64 or (address in _V4_COMPATIBLE and int(address) > 1):
        found.append(low)
    return tuple(one for one in found if one is not None)


def _split(url: str) -> SplitResult:
    if len(url) > MAX_URL_CHARS or not _VISIBLE.fullmatch(url) or "\\" in url:
        raise OutboundRefused("The address is none, or too long.")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise OutboundRefused("The address is none.") from error


def _literal(host: str) -> Address | None:
    if "%" in host:
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None

//! Which addresses are on the public Internet, and what those are that are not.
//!
//! After the registries of the IANA: [IPv4 special-purpose], [IPv6 special-purpose], [IPv4
//! multicast] and [IPv6 unicast]. An address that carries another one inside of it leads there, so
//! it is what that one is.
//!
//! [IPv4 special-purpose]: https://www.iana.org/assignments/iana-ipv4-special-registry
//! [IPv6 special-purpose]: https://www.iana.org/assignments/iana-ipv6-special-registry
//! [IPv4 multicast]: https://www.iana.org/assignments/multicast-addresses
//! [IPv6 unicast]: https://www.iana.org/assignments/ipv6-unicast-address-assignments

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// Anybody on the Internet can have it.
    Public,
    /// This machine.
    Loopback,
    /// A network of somebody's own.
    Private,
    /// The same cable, and services of clouds for their machines.
    LinkLocal,
    /// Between a provider and its customers, and overlay networks.
    Shared,
    /// Many machines at once.
    Multicast,
    /// No machine, or this one.
    Unspecified,
    /// Examples in documents.
    Documentation,
    /// Anything else that no machine on the Internet has.
    Reserved,
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Documentation => "documentation",
            Self::Reserved => "reserved",
        })
    }
}

/// What is special of IPv4: the beginning of a block, the length of its prefix, and what it is for.
const V4: &[([u8; 4], u32, AddressKind)] = &[
    ([0, 0, 0, 0], 8, AddressKind::Unspecified),
    ([10, 0, 0, 0], 8, AddressKind::Private),
    ([100, 64, 0, 0], 10, AddressKind::Shared),
    ([127, 0, 0, 0], 8, AddressKind::Loopback),
    ([169, 254, 0, 0], 16, AddressKind::LinkLocal),
    ([172, 16, 0, 0], 12, AddressKind::Private),
    ([192, 0, 0, 0], 24, AddressKind::Reserved),
    ([192, 0, 2, 0], 24, AddressKind::Documentation),
    // Relays to 6to4, which are no more.
    ([192, 88, 99, 0], 24, AddressKind::Reserved),
    ([192, 168, 0, 0], 16, AddressKind::Private),
    // Benchmarks.
    ([198, 18, 0, 0], 15, AddressKind::Reserved),
    ([198, 51, 100, 0], 24, AddressKind::Documentation),
    ([203, 0, 113, 0], 24, AddressKind::Documentation),
    ([224, 0, 0, 0], 4, AddressKind::Multicast),
    // Broadcast is the last of them.
    ([240, 0, 0, 0], 4, AddressKind::Reserved),
];

/// The same of IPv6. A block that has others in it comes after them.
const V6: &[([u16; 8], u32, AddressKind)] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, AddressKind::Unspecified),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, AddressKind::Loopback),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, AddressKind::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, AddressKind::LinkLocal),
    // Site-local, as private addresses were called before.
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, AddressKind::Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, AddressKind::Multicast),
    // NAT64 with a network's own translation.
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, AddressKind::Private),
    // Protocols of the IETF, benchmarks and hashes among them.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, AddressKind::Reserved),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, AddressKind::Documentation),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, AddressKind::Documentation),
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, AddressKind::Public),
    // What is not assigned, and what carries IPv4 in ways that are no more.
    ([0, 0, 0, 0, 0, 0, 0, 0], 0, AddressKind::Reserved),
];

impl AddressKind {
    /// What an address is for.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => kind_of_v4(address),
            IpAddr::V6(address) => match carried(address) {
                [Some(carried), other] => {
                    let other = other.map_or(Self::Public, kind_of_v4);
                    match kind_of_v4(carried) {
                        Self::Public => other,
                        kind => kind,
                    }
                }
                [None, _] => kind_of_v6(address),
            },
        }
    }
}

/// Endings of names that no registry gives away, as networks of somebody's own have them:
/// RFC 6761, RFC 6762 with its appendix G, and RFC 8375.
const OWN_NETWORKS: &[&str] = &[
    "corp",
    "example",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "private",
    "test",
];

/// Whether a URL's host is a name for addresses of a kind, of which everybody can tell that it is.
pub fn is_own_name(url: &Url, kind: AddressKind) -> bool {
    let Some(Host::Domain(name)) = url.host() else { return false };
    let name = name.strip_suffix('.').unwrap_or(name);
    let ends_with = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
    if name == "localhost" || ends_with("localhost") {
        return kind == AddressKind::Loopback;
    }
    let is_own = !name.contains('.') || OWN_NETWORKS.iter().any(|end| ends_with(end));
    is_own && matches!(kind, AddressKind::Loopback | AddressKind::Private | AddressKind::Shared)
}

fn kind_of_v4(address: Ipv4Addr) -> AddressKind {
    let bits = u32::from(address);
    let block = V4.iter().find(|(block, length, _)| {
        let block = u32::from(Ipv4Addr::from(*block));
        (bits ^ block).leading_zeros() >= *length
    });
    block.map_or(AddressKind::Public, |(.., kind)| *kind)
}

fn kind_of_v6(address: Ipv6Addr) -> AddressKind {
    let bits = u128::from(address);
    let block = V6.iter().find(|(block, length, _)| {
        let block = u128::from(Ipv6Addr::from(*block));
        (bits ^ block).leading_zeros() >= *length
    });
    block.map_or(AddressKind::Reserved, |(.., kind)| *kind)
}

/// The IPv4 addresses to which packets for an IPv6 address are taken.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        // IPv4-mapped.
        [0, 0, 0, 0, 0, 0xffff, high, low] => [v4(high, low), None],
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [v4(high, low), None],
        // 6to4.
        [0x2002, high, low, ..] => [v4(high, low), None],
        // Teredo: the server, and the client with its bits inverted.
        [0x2001, 0, server, low_server, _, _, client, low_client] => {
            [v4(server, low_server), v4(!client, !low_client)]
        }
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_what_the_registries_say() {
        let check = |address: &str, expected: AddressKind| {
            assert_eq!(AddressKind::of(address.parse().unwrap()), expected, "{address}");
        };
        check("0.0.0.0", AddressKind::Unspecified);
        check("0.1.2.3", AddressKind::Unspecified);
        check("1.1.1.1", AddressKind::Public);
        check("9.255.255.255", AddressKind::Public);
        check("10.0.0.0", AddressKind::Private);
        check("10.255.255.255", AddressKind::Private);
        check("11.0.0.0", AddressKind::Public);
        check("100.63.255.255", AddressKind::Public);
        check("100.64.0.0", AddressKind::Shared);
        check("100.127.255.255", AddressKind::Shared);
        check("100.128.0.0", AddressKind::Public);
        check("127.0.0.1", AddressKind::Loopback);
        check("127.255.255.255", AddressKind::Loopback);
        check("128.0.0.0", AddressKind::Public);
        check("169.253.255.255", AddressKind::Public);
        check("169.254.169.254", AddressKind::LinkLocal);
        check("169.255.0.0", AddressKind::Public);
        check("172.15.255.255", AddressKind::Public);
        check("172.16.0.0", AddressKind::Private);
        check("172.31.255.255", AddressKind::Private);
        check("172.32.0.0", AddressKind::Public);
        check("192.0.0.1", AddressKind::Reserved);
        check("192.0.1.0", AddressKind::Public);
        check("192.0.2.1", AddressKind::Documentation);
        check("192.88.99.1", AddressKind::Reserved);
        check("192.167.255.255", AddressKind::Public);
        check("192.168.0.1", AddressKind::Private);
        check("192.169.0.0", AddressKind::Public);
        check("198.17.255.255", AddressKind::Public);
        check("198.18.0.0", AddressKind::Reserved);
        check("198.19.255.255", AddressKind::Reserved);
        check("198.20.0.0", AddressKind::Public);
        check("198.51.100.1", AddressKind::Documentation);
        check("203.0.113.1", AddressKind::Documentation);
        check("223.255.255.255", AddressKind::Public);
        check("224.0.0.1", AddressKind::Multicast);
        check("239.255.255.255", AddressKind::Multicast);
        check("240.0.0.1", AddressKind::Reserved);
        check("255.255.255.255", AddressKind::Reserved);

        check("::", AddressKind::Unspecified);
        check("::1", AddressKind::Loopback);
        check("::2", AddressKind::Reserved);
        check("::7f00:1", AddressKind::Reserved);
        check("::8.8.8.8", AddressKind::Reserved);
        check("::ffff:127.0.0.1", AddressKind::Loopback);
        check("::ffff:10.0.0.1", AddressKind::Private);
        check("::ffff:169.254.169.254", AddressKind::LinkLocal);
        check("::ffff:8.8.8.8", AddressKind::Public);
        check("::ffff:0:8.8.8.8", AddressKind::Reserved);
        check("64:ff9b::127.0.0.1", AddressKind::Loopback);
        check("64:ff9b::192.168.0.1", AddressKind::Private);
        check("64:ff9b::8.8.8.8", AddressKind::Public);
        check("64:ff9b::1:8.8.8.8", AddressKind::Reserved);
        check("64:ff9b:1::8.8.8.8", AddressKind::Private);
        check("100::1", AddressKind::Reserved);
        check("2001:4860:4860::8888", AddressKind::Public);
        check("2001:2::1", AddressKind::Reserved);
        check("2001:20::1", AddressKind::Reserved);
        check("2001:1ff:ffff::1", AddressKind::Reserved);
        check("2001:200::1", AddressKind::Public);
        check("2001:db8::1", AddressKind::Documentation);
        // 65.54.227.120 and 8.8.8.8, inverted; then with a private one in either place.
        check("2001:0:4136:e378:8000:63bf:f7f7:f7f7", AddressKind::Public);
        check("2001:0:4136:e378:8000:63bf:3f57:fefe", AddressKind::Private);
        check("2001:0:7f00:1:8000:63bf:f7f7:f7f7", AddressKind::Loopback);
        // 198.51.100.1, inverted.
        check("2001:0:4136:e378:8000:63bf:39cc:9bfe", AddressKind::Documentation);
        check("2002:808:808::1", AddressKind::Public);
        check("2002:7f00:1::1", AddressKind::Loopback);
        check("2002:a9fe:a9fe::", AddressKind::LinkLocal);
        check("2606:4700:4700::1111", AddressKind::Public);
        check("3fff::1", AddressKind::Documentation);
        check("3fff:fff:ffff::", AddressKind::Documentation);
        check("4000::1", AddressKind::Reserved);
        check("5f00::1", AddressKind::Reserved);
        check("fc00::1", AddressKind::Private);
        check("fd12:3456:789a::1", AddressKind::Private);
        check("fe80::1", AddressKind::LinkLocal);
        check("febf::1", AddressKind::LinkLocal);
        check("fec0::1", AddressKind::Private);
        check("ff02::1", AddressKind::Multicast);
    }

    proptest! {
        #[test]
        fn what_carries_an_address_is_what_that_is(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let expected = AddressKind::of(v4.into());
            let [a, b, c, d] = v4.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            for carrying in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
                Ipv6Addr::new(0x2001, 0, 0x0808, 0x0808, 0, 0, !high, !low),
                Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0xf7f7, 0xf7f7),
            ] {
                prop_assert_eq!(AddressKind::of(carrying.into()), expected, "{}", carrying);
            }
        }

        #[test]
        fn nothing_is_public_that_the_standard_library_knows_not_to_be(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local()
                || v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified()
                || v4.is_documentation();
            prop_assert!(!(special && AddressKind::of(v4.into()) == AddressKind::Public));
        }

        #[test]
        fn only_global_unicast_and_what_carries_a_public_address_is_public(bits: u128) {
            let v6 = Ipv6Addr::from(bits);
            if AddressKind::of(v6.into()) == AddressKind::Public {
                prop_assert!(v6.segments()[0] >> 13 == 1 || carried(v6)[0].is_some(), "{}", v6);
            }
        }
    }

    #[test]
    fn each_kind_has_a_name() {
        let check = |kind: AddressKind, expected: &str| assert_eq!(kind.to_string(), expected);
        check(AddressKind::Public, "public");
        check(AddressKind::LinkLocal, "link-local");
        check(AddressKind::Reserved, "reserved");
    }
}

//! Who a request comes from, as far as limits are concerned.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

/// The other end of a connection, put into every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// A client, by its address. Whoever has one address of IPv6 has its whole network of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    address: u128,
    /// What the proxy on this machine says of its own client.
    behind: Option<u128>,
}

fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) | 1 << 64,
    }
}

impl Client {
    pub(crate) fn at(address: IpAddr) -> Client {
        Client { address: network(address), behind: None }
    }

    /// Who sends a request. Only a proxy on this machine is believed: others could give themselves
    /// as many addresses as they like. The last address is the one that the proxy has seen itself.
    pub(crate) fn of(peer: Option<&Peer>, headers: &HeaderMap) -> Client {
        let Some(Peer(peer)) = peer else { return Client::default() };
        let last = headers.get_all("x-forwarded-for").iter().next_back();
        let last = last.and_then(|list| list.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
        let behind = last.filter(|_| peer.ip().to_canonical().is_loopback()).map(network);
        Client { behind, ..Client::at(peer.ip()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proxy_on_this_machine_is_believed() {
        let of = |peer: &str, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            Client::of(Some(&Peer(peer.parse().unwrap())), &headers)
        };
        let there = |address: &str| Client::at(address.parse().unwrap());
        assert_eq!(of("192.0.2.1:5", "203.0.113.9"), there("192.0.2.1"));
        assert_eq!(of("127.0.0.1:5", "nonsense"), there("127.0.0.1"));
        assert_ne!(of("127.0.0.1:5", "203.0.113.9"), of("127.0.0.1:5", "203.0.113.8"));
        // What the client itself has sent stands before what the proxy adds.
        assert_eq!(of("127.0.0.1:5", "1.2.3.4, 203.0.113.9"), of("[::ffff:127.0.0.1]:7", "203.0.113.9"));
        assert_eq!(there("2001:db8::1"), there("2001:db8::2:3"));
        assert_ne!(there("2001:db8:0:1::1"), there("2001:db8::1"));
    }
}

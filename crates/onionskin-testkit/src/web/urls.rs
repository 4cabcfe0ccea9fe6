//! Addresses.
//!
//! Every page is a file below a host: `http://host/folder/page.html`, never a bare slash and never a query, so that a
//! folder, a WARC and a JSONL file of the same web give the same URLs. They are in normal form:
//! lower-case host, no port, no dots, nothing to percent-encode.

use super::{links::Style, *};
use crate::draft::push_number;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subdomain {
    None,
    Www,
    People,
    Alias(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) domain: u32,
    pub(crate) subdomain: Subdomain,
}

const SUFFIXES: [&str; 10] = ["com", "org", "net", "edu", "co.uk", "de", "fr", "ac.jp", "com.br", "info"];

impl Web {
    /// The URL of a page.
    pub fn url(&self, page: u64) -> String {
        let mut url = Vec::new();
        self.push_url(self.locate(page), &mut url);
        String::from_utf8_lossy(&url).into_owned()
    }

    pub(crate) fn push_url(&self, location: Location, out: &mut Vec<u8>) {
        out.extend_from_slice(b"http://");
        self.push_host(location.place, out);
        self.push_path(location, out);
    }

    pub(crate) fn push_host(&self, place: u32, out: &mut Vec<u8>) {
        let Host { domain, subdomain } = self.hosts[self.places[place as usize].host as usize];
        match subdomain {
            Subdomain::None => {}
            Subdomain::Www => out.extend_from_slice(b"www."),
            Subdomain::People => out.extend_from_slice(b"people."),
            Subdomain::Alias(nth) => {
                out.extend_from_slice(b"web");
                push_number(out, u64::from(nth) + 2);
                out.push(b'.');
            }
        }
        let roll = mix(mix(self.spec.seed, topic::NAMES), u64::from(domain));
        self.latin.name(roll, out);
        push_number(out, u64::from(domain));
        out.push(b'.');
        out.extend_from_slice(SUFFIXES[below(mix(roll, 1), SUFFIXES.len() as u64) as usize].as_bytes());
    }

    /// The path of a page, with its leading slash.
    pub(crate) fn push_path(&self, location: Location, out: &mut Vec<u8>) {
        let place = &self.places[location.place as usize];
        out.push(b'/');
        match place.folder {
            Folder::Root => {}
            Folder::Mirror { collection, replica } => {
                out.extend_from_slice(if replica % 2 == 0 { b"pub/" } else { b"mirrors/" });
                self.latin.name(self.collections[collection as usize].key, out);
                out.push(b'-');
                push_number(out, u64::from(collection));
                out.push(b'-');
                push_number(out, u64::from(replica));
                out.push(b'/');
            }
            Folder::Version { replica, version } => {
                out.push(b'v');
                push_number(out, u64::from(version));
                out.push(b'-');
                push_number(out, u64::from(replica));
                out.push(b'/');
            }
        }
        match location.spot {
            Spot::Added(nth) => {
                out.extend_from_slice(b"new/");
                push_number(out, u64::from(nth));
                out.extend_from_slice(b".html");
            }
            Spot::Slot(0) => out.extend_from_slice(b"index.html"),
            Spot::Slot(slot) => self.push_slot_path(place.collection, slot, out),
        }
    }

    fn push_slot_path(&self, collection: u32, slot: u32, out: &mut Vec<u8>) {
        let entry = &self.collections[collection as usize];
        if entry.kind == CollectionKind::Calendar {
            let (year, month, day) = calendar_date(slot);
            for (number, end) in [(year, "/"), (month, "/"), (day, ".html")] {
                if number < 10 {
                    out.push(b'0');
                }
                push_number(out, u64::from(number));
                out.extend_from_slice(end.as_bytes());
            }
            return;
        }
        let name = |slot: u32, out: &mut Vec<u8>| {
            self.latin.name(mix(entry.key, u64::from(slot)), out);
            push_number(out, u64::from(slot));
        };
        if matches!(self.style(collection), Style::Tree | Style::Tangled) {
            let branching = self.branching(collection);
            // The nearest three ancestors: deep enough for relative links, short enough for people.
            let mut ancestors = [0; 3];
            let mut above = slot;
            for ancestor in ancestors.iter_mut().rev() {
                above = if above == 0 { 0 } else { (above - 1) / branching };
                *ancestor = above;
            }
            for ancestor in ancestors.into_iter().filter(|&ancestor| ancestor > 0) {
                name(ancestor, out);
                out.push(b'/');
            }
            if slot < first_leaf(entry.slots, branching) {
                name(slot, out);
                return out.extend_from_slice(b"/index.html");
            }
        }
        name(slot, out);
        out.extend_from_slice(b".html");
    }
}

/// Appends the reference that leads from one path to another on the same host.
pub(crate) fn push_relative(from: &[u8], to: &[u8], out: &mut Vec<u8>) {
    // Common folders end at the last slash up to which both agree.
    let agree = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let common = to[..agree].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let ups = from[common..].iter().filter(|&&byte| byte == b'/').count();
    for _ in 0..ups {
        out.extend_from_slice(b"../");
    }
    out.extend_from_slice(&to[common..]);
}

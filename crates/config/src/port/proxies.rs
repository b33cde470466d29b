//! `trusted_proxies`: networks and addresses of proxies.

use std::net::IpAddr;

use ipnet::IpNet;
use settings::{InvalidValue, Section, SettingsReader};

/// The networks of a list.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Vec<IpNet> {
    let networks = reader.parsed_texts(section, key, |text| {
        let label = "expected an IP address, with the bits of its network or without";
        let help = "for example 10.0.0.7, 10.0.0.0/8 or fd00::/8; names are not looked up";
        network(text).ok_or_else(|| InvalidValue::new("is neither an address nor a network", label).help(help))
    });
    networks.into_iter().map(|found| found.value).collect()
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())))
}

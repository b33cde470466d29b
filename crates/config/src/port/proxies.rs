//! `trusted_proxies`: networks and addresses of proxies.

use std::net::IpAddr;

use ipnet::IpNet;
use settings::{Diagnostic, Section, SettingsReader};

/// The networks of a list.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Vec<IpNet> {
    let listed = reader.texts(section, key).map(|list| list.value).unwrap_or_default();
    let mut networks = Vec::with_capacity(listed.len());
    for (index, found) in listed.into_iter().enumerate() {
        match network(&found.value) {
            Some(network) => networks.push(network),
            None => {
                let title = format!("`{}[{index}]` is no address and no network", section.key_path(key));
                let help = "for example 10.0.0.7, 10.0.0.0/8 or fd00::/8; names are not looked up";
                let mistake =
                    Diagnostic::new(title, found.span, "wanted an IP address, with the bits of its network or without");
                reader.push(mistake.help(help.to_owned()));
            }
        }
    }
    networks
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())))
}

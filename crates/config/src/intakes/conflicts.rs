//! Conflicts of intakes with each other and with the rest of the configuration.

use std::net::SocketAddr;

use ::gateway::BridgeRule;
use access::{Scope, Scopes};
use settings::{Diagnostic, SettingsReader, nearest};
use text::OperatorCommand;

use crate::event_types::event_type::Types;
use crate::gateway::{GatewayConfig, collide};
use crate::intakes::{Declared, Intakes, Root};
use crate::port::address::is_loopback;

/// What intakes may be in conflict with.
pub(crate) struct Others<'a> {
    pub(crate) gateway: &'a GatewayConfig,
    pub(crate) bridges: &'a [BridgeRule],
    pub(crate) types: &'a Types,
    pub(crate) scopes: Scopes,
}

/// Reports all conflicts.
pub(crate) fn check(reader: &mut SettingsReader<'_>, intakes: &Intakes, others: &Others<'_>) {
    for (index, intake) in intakes.0.iter().enumerate() {
        let earlier = &intakes.0[..index];
        check_path(reader, intake, earlier, others.bridges);
        check_address(reader, intake, earlier, others.gateway);
        check_reach(reader, intake, others);
        check_type(reader, intake, others);
    }
}

fn check_path(reader: &mut SettingsReader<'_>, intake: &Declared, earlier: &[Declared], bridges: &[BridgeRule]) {
    let Some(span) = &intake.path else { return };
    let path = &intake.config.path;
    let root = Root::new(path);
    let mut others = earlier.iter().filter_map(|other| Some((&other.config.path, other.path.as_ref()?)));
    if let Some((other, at)) = others.find(|(other, _)| root.overlaps(&Root::new(other))) {
        let title = if path == other {
            format!("conflict: two intakes have the path {path}")
        } else {
            format!("conflict: the paths {other} and {path} of two intakes overlap")
        };
        let mistake = Diagnostic::new(title, span.clone(), "this one").also(at.clone(), "the other one");
        reader.push(mistake.help(format!("set another `path`, as in path = \"/{}\"", intake.name)));
    }
    if let Some(bridge) = bridges.iter().find(|bridge| root.has(&bridge.path)) {
        let title = format!("conflict: the bridge {} is at or below the intake's path {path}", bridge.path);
        let mistake = Diagnostic::new(title, span.clone(), "the intake serves every path below this one");
        reader.push(mistake.help("set another `path` of the intake or the bridge".to_owned()));
    }
}

fn check_address(reader: &mut SettingsReader<'_>, intake: &Declared, earlier: &[Declared], gateway: &GatewayConfig) {
    let Some(listen) = &intake.listen else { return };
    let title = format!("conflict: `intakes.{}.listen` is the address of another port", intake.name);
    let mistake = |label: &str| Diagnostic::new(title.clone(), listen.span.clone(), label.to_owned());
    let help =
        "choose another port, or remove `listen`: the intake is also at its path on the gateway's port".to_owned();
    for (address, label) in [(gateway.listen, "the port of the gateway"), (gateway.admin, "the admin port")] {
        if collide(listen.value, address) {
            return reader.push(mistake(label).help(help));
        }
    }
    let address_of = |other: &Declared| -> Option<SocketAddr> { other.config.listen };
    if let Some(other) = earlier.iter().find(|other| address_of(other).is_some_and(|at| collide(at, listen.value)))
        && let Some(first) = &other.listen
    {
        reader.push(mistake("this one").also(first.span.clone(), "the other one").help(help));
    }
}

/// The rule of the gateway's port, for each port of an intake.
fn check_reach(reader: &mut SettingsReader<'_>, intake: &Declared, others: &Others<'_>) {
    let Some(listen) = intake.listen.as_ref().filter(|found| !is_loopback(found.value)) else { return };
    if others.gateway.allow_anonymous || others.scopes.has(Scope::Ingest) || intake.config.intake.is_signed() {
        return;
    }
    let title = format!("conflict: `intakes.{}.listen` would let any client post without a token", intake.name);
    let command = OperatorCommand::TokenNew(Scope::Ingest.as_str());
    let help = format!(
        "create a token ({command}), or set `allow_anonymous = true` in [gateway] to allow this, or listen on 127.0.0.1 or [::1]"
    );
    reader.push(Diagnostic::new(title, listen.span.clone(), "not a loopback address").help(help));
}

/// The type of an intake is one that the gateway accepts.
fn check_type(reader: &mut SettingsReader<'_>, intake: &Declared, others: &Others<'_>) {
    let (Some(name), Some(span)) = (&intake.config.type_name, &intake.type_name) else { return };
    let types = others.types;
    let is_alias = || types.named.values().any(|config| config.aliases.iter().any(|alias| alias == name.as_str()));
    let is_any = types.others.is_some() || others.gateway.naming.unknown.is_some();
    if is_any || types.named.is_empty() || types.named.contains_key(name) || is_alias() {
        return;
    }
    let title = format!("invalid value for `intakes.{}.type`: there is no such type", intake.name);
    let help = match nearest(name.as_str(), types.named.keys().map(event::TypeName::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add [types.{name}] with routes"),
    };
    reader.push(Diagnostic::new(title, span.clone(), "no such type").help(help));
}

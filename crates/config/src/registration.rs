//! The registration of a writer: `[writer] advertise` and `[writer.etcd]`.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use net::http_client::Endpoint;
use settings::{Diagnostic, InvalidValue, Section, Setting, SettingsReader, URL, Unset, names};
use sink_remote::EtcdConfig;

use crate::etcd;
use crate::server_address;

/// The setting of `[writer]`.
const ADVERTISE: &str = "advertise";
/// Its declaration.
pub(crate) const ADVERTISED: Setting = Setting::new(
    ADVERTISE,
    URL,
    "the URL that gateways use; with `[writer.tls]` an `https://` one. Its host can't be `0.0.0.0` or `[::]`",
)
.or(Unset::Described("required with `[writer.etcd]`, else an error"))
.example("\"http://10.0.0.5:8081\"");
/// The setting of the admin port.
const ADVERTISE_ADMIN: &str = "advertise_admin";
/// Its declaration.
pub(crate) const ADVERTISED_ADMIN: Setting = Setting::new(
    ADVERTISE_ADMIN,
    URL,
    "the URL of the admin port in etcd, for [consoles of the fleet](../../guides/console.md#fleet)",
)
.example("\"http://10.0.0.5:9001\"");
/// The settings of `[writer.etcd]` that gateways don't have.
pub(crate) const SETTINGS: &[Setting] = &[LEASE];
/// The shortest lease is the shortest that etcd creates.
const LEASE: Setting = Setting::duration(
    "lease",
    (Duration::from_secs(2), Duration::from_hours(1)),
    "the time after which etcd removes a writer that has been killed or can't reach etcd, rounded up to seconds",
)
.or(Unset::Duration(Duration::from_secs(10)));

/// How a writer registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterEtcd {
    /// The etcd.
    pub etcd: EtcdConfig,
    /// The URL that gateways use.
    pub advertise: Endpoint,
    /// The URL of the admin port, for consoles.
    pub advertise_admin: Option<Endpoint>,
    /// The time after which etcd removes the registration of a writer that has ended, in whole seconds.
    pub lease: Duration,
}

/// Reads both; relative paths start at `folder`. With `has_tls` the writer's port speaks TLS.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    writer: &Section<'_>,
    folder: &Path,
    has_tls: bool,
) -> Option<WriterEtcd> {
    let errors_before = reader.errors();
    let advertise = reader.text(writer, ADVERTISE, |text| advertised(text, has_tls));
    let is_missing = advertise.is_none() && reader.errors() == errors_before;
    // The admin port of a writer has no TLS.
    let admin = reader.text(writer, ADVERTISE_ADMIN, |text| advertised(text, false));
    let Some(section) = etcd::section(reader, writer) else {
        for (name, found) in [(ADVERTISE, advertise), (ADVERTISE_ADMIN, admin)] {
            if let Some(found) = found.filter(|_| writer.get(etcd::TABLE).is_none()) {
                let title = format!("unused setting `{}` without [writer.etcd]", writer.key_path(name));
                reader.push(Diagnostic::new(title, found.span, "only the registration in etcd uses it"));
            }
        }
        return None;
    };
    reader.check_keys(&section, names(etcd::SETTINGS).chain(names(SETTINGS)));
    let etcd = etcd::read(reader, &section, folder);
    let lease = whole_seconds(reader.duration_or_default(&section, &LEASE));
    if is_missing {
        let help = "set the address that gateways use, as in advertise = \"http://10.0.0.5:8081\" or \
                    \"http://${HOSTNAME}:8081\"";
        reader.missing(writer, ADVERTISE, help);
    }
    Some(WriterEtcd {
        etcd: etcd?,
        advertise: advertise?.value,
        advertise_admin: admin.map(|found| found.value),
        lease,
    })
}

fn advertised(text: &str, has_tls: bool) -> Result<Endpoint, InvalidValue> {
    let url = server_address::parse(text).map_err(|error| server_address::not_of_writer(&error))?;
    let host = url.host_and_port().map(|(host, _)| host).unwrap_or_default();
    if host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_unspecified()) {
        return Err(InvalidValue::new("can't be used by gateways", "expected an address or a name of this machine"));
    }
    if has_tls && url.to_string().starts_with("http://") {
        return Err(InvalidValue::new(
            "is not https://, but the writer uses TLS",
            "expected https://, because [writer.tls] is set",
        ));
    }
    Ok(url)
}

/// etcd counts in seconds.
const fn whole_seconds(lease: Duration) -> Duration {
    Duration::from_secs(lease.as_secs() + (lease.subsec_nanos() > 0) as u64)
}

//! Checks that the files in `deploy/` are valid, each with the program that reads it. Nothing is started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::kubernetes_schema;
use crate::workspace::{self, has_program, output, run};

/// The environment of a configuration: the variables that the container platforms set.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PROXIES", "172.30.80.0/24"),
    ("WRITERS_TOKEN", "fb_0000000000000000000000000000000000000000000000000000"),
    ("POSTGRES_PASSWORD", "secret"),
    ("POSTGRES_URL", "postgres://forebay:secret@postgres:5432/forebay"),
];

/// Checks all files. Prints the checks that this machine can't run.
pub(crate) fn check() -> Result<()> {
    let deploy = workspace::root()?.join("deploy");
    let scratch = workspace::scratch_directory("deployments")?;
    configurations(&deploy, &scratch)?;
    compose(&deploy)?;
    kubernetes(&deploy.join("kubernetes"), &scratch)?;
    prometheus(&deploy.join("compose"))?;
    proxies(&deploy, &scratch)?;
    fs::remove_dir_all(&scratch).with_context(|| format!("removing {}", scratch.display()))
}

/// Whether the programs are installed. If one is missing, prints the check that is skipped.
fn has(programs: &[&str], purpose: &str) -> Result<bool> {
    let missing = programs.iter().find(|program| !has_program(program));
    if let Some(missing) = missing {
        workspace::skipped(&format!("{purpose}: {missing} is missing, which `cargo xtask services` installs"))?;
    }
    Ok(missing.is_none())
}

/// Runs `forebay check`, with the tokens of a deployment.
fn configurations(deploy: &Path, scratch: &Path) -> Result<()> {
    let binary = workspace::tested_binary(None)?;
    let tokens = scratch.join("tokens.json");
    for (name, scopes) in [("gateways", "deliver"), ("operator", "admin,read"), ("shop", "ingest")] {
        let mut new = Command::new(&binary);
        new.args(["token", "new", name, "--scope", scopes, "--file"]).arg(&tokens);
        workspace::captured(&mut new)?;
    }
    let file = |folder: &str, role: &str| deploy.join(folder).join(format!("{role}.toml"));
    // With the sinks of all profiles.
    let whole = scratch.join("gateway.toml");
    let text = fs::read_to_string(file("compose", "gateway")).context("reading the gateway's configuration")?;
    fs::write(&whole, text.replace("#: ", ""))?;
    let delivered =
        ["compose", "kubernetes"].map(|folder| ["gateway", "writer"].map(|role| (role, file(folder, role))));
    for (role, config) in delivered.into_iter().flatten().chain([("gateway", whole)]) {
        let mut check = Command::new(&binary);
        check.args(["check", "--role", role, "--config"]).arg(config);
        check.arg("--data").arg(scratch.join("data")).envs(ENVIRONMENT.iter().copied());
        check.env("TOKEN_FILE", &tokens).env(format!("FOREBAY_{}_TOKEN_FILE", role.to_uppercase()), &tokens);
        run(&mut check)?;
    }
    Ok(())
}

fn compose(deploy: &Path) -> Result<()> {
    if !has(&["docker-compose"], "the files of Compose and Swarm")? {
        return Ok(());
    }
    for file in ["compose/compose.yaml", "swarm/stack.yaml"] {
        let mut compose = Command::new("docker-compose");
        run(compose.arg("--file").arg(deploy.join(file)).args(["config", "--quiet"]))?;
    }
    Ok(())
}

fn kubernetes(folder: &Path, scratch: &Path) -> Result<()> {
    if !kubernetes_schema::PACKAGE.is_there() {
        workspace::skipped("Kubernetes: its schemas are missing, which `cargo xtask services` fetches")?;
        return Ok(());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_resource = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "yaml") && !path.ends_with("kustomization.yaml")
    };
    let mut files: Vec<PathBuf> = paths.filter(is_resource).collect();
    if has_program("kubectl") {
        // The resources as kubectl applies them, with names, labels and ConfigMaps of kustomize.
        let made = scratch.join("kustomized.yaml");
        fs::write(&made, output(Command::new("kubectl").arg("kustomize").arg(folder))?)?;
        files.push(made);
    } else {
        workspace::skipped("kustomize: there is no kubectl")?;
    }
    kubernetes_schema::check(&files)
}

fn prometheus(folder: &Path) -> Result<()> {
    if !has(&["promtool"], "alert rules")? {
        return Ok(());
    }
    run(Command::new("promtool").args(["check", "config", "--syntax-only"]).arg(folder.join("prometheus.yml")))?;
    run(Command::new("promtool").args(["check", "rules", "--lint-fatal"]).arg(folder.join("alerts.yml")))?;
    run(Command::new("promtool").args(["test", "rules"]).arg(folder.join("alerts.test.yml")))
}

fn proxies(deploy: &Path, scratch: &Path) -> Result<()> {
    if !has(&["haproxy", "nginx"], "the files of the proxies")? {
        return Ok(());
    }
    let mut haproxy = Command::new("haproxy");
    // A warning is a failure.
    haproxy.args(["-c", "-dW", "-f"]).arg(deploy.join("haproxy/haproxy.cfg")).env("GATEWAYS", "127.0.0.1:8080");
    run(&mut haproxy)?;
    let path = deploy.join("nginx/forebay.conf");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    if !text.contains("server gateway-1:8080") {
        bail!("{} has no server gateway-1:8080", path.display());
    }
    // nginx resolves names when it checks.
    let text = text.replace("gateway-1:", "127.0.0.1:").replace("gateway-2:", "127.0.0.2:");
    let folder = scratch.display();
    let whole = format!(
        "pid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\nclient_body_temp_path {folder}/body;\n{text}\n}}\n"
    );
    let whole_path = scratch.join("nginx.conf");
    fs::write(&whole_path, whole)?;
    run(Command::new("nginx").args(["-t", "-e", "stderr", "-c"]).arg(whole_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of metrics in a text, without the suffixes of histograms.
    fn metrics(text: &str) -> Vec<&str> {
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        let names = text.match_indices("forebay_").map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
        });
        names.map(|name| name.strip_suffix("_bucket").unwrap_or(name)).collect()
    }

    #[test]
    fn alerts_and_dashboards_use_existing_metrics() {
        let root = workspace::root().unwrap();
        let documented = fs::read_to_string(root.join("docs/reference/metrics.md")).unwrap();
        let documented = metrics(&documented);
        for file in dashboards().into_iter().chain([root.join("deploy/compose/alerts.yml")]) {
            let text = fs::read_to_string(&file).unwrap();
            let (asked, file) = (metrics(&text), file.display());
            assert!(asked.len() > 8, "{file}");
            let unknown: Vec<_> = asked.iter().filter(|name| !documented.contains(name)).collect();
            assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
        }
    }

    /// The name and the rule of each alert, as `promtool` formats them.
    fn alerts(rules: &str) -> Vec<(&str, &str)> {
        let rules = rules.split("- alert: ").skip(1);
        rules.map(|rule| (rule.lines().next().unwrap_or_default(), rule)).collect()
    }

    #[test]
    fn each_alert_has_a_heading_in_the_runbook() {
        let read = |path: &str| fs::read_to_string(workspace::root().unwrap().join(path)).unwrap();
        let (rules, page) = (read("deploy/compose/alerts.yml"), read("docs/guides/alerts.md"));
        let alerts = alerts(&rules);
        let names: Vec<&str> = alerts.iter().map(|(name, _)| *name).collect();
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, names, "the runbook has the alerts in the order of their file");
        for (name, rule) in alerts {
            let link = format!("runbook: docs/guides/alerts.md#{}", name.to_lowercase());
            assert!(rule.lines().any(|line| line.trim() == link), "{name} lacks the annotation `{link}`");
        }
    }

    #[test]
    fn dashboards_are_json_with_positioned_panels() {
        for path in dashboards() {
            let dashboard: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let panels = dashboard["panels"].as_array().unwrap();
            let places: std::collections::BTreeSet<String> =
                panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
            assert_eq!(places.len(), panels.len());
        }
    }

    fn dashboards() -> Vec<std::path::PathBuf> {
        let folder = workspace::root().unwrap().join("deploy/compose/grafana/dashboards");
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

